/*
 * Declarations that the files of PostgreSQL's skin share.
 */
#ifndef TIQUE_KEEPER_H
#define TIQUE_KEEPER_H

#include "postgres.h"

#include "../core/state.h"

/* A backend knows one sequencer, that of its database: the core's functions take this
 * as its handle. */
#define HERE 1

/* Before anything else: the sequencer of this database, made if there is none yet. It
 * may raise an error, and does it with nothing locked. */
void keeper_attach(void);

/* Whether it was recovered since the server was started; once it was, it is. */
bool keeper_is_recovered(void);

/* As tique_recover; TIQUE_IN_USE if it was recovered already. */
int keeper_recover(int64_t sts, int64_t txid);

/* Timestamps that this PostgreSQL transaction has taken; in the sequencer their owner
 * is NOBODY. Room for one is made before, since that may fail; it is recorded with the
 * sequencer entered. */
void transaction_prepare(void);
void transaction_own(int64_t cts);
void transaction_register(void);

/* The backend is ended when the transaction does not reach its commit within so many
 * milliseconds; of several limits the first counts. */
void transaction_limit(int64_t milliseconds);

#endif
