/*
 * What a DuckDB instance has of its sequencer, and the connection in which the
 * driver's prepared statement runs.
 */
#ifndef TIQUE_DUCKDB_BINDING_H
#define TIQUE_DUCKDB_BINDING_H

#include "abi.h"

#include <pthread.h>
#include <stdatomic.h>

#include "../core/sequencer.h"

struct binding {
	int64_t number;
	_Atomic tique_handle handle;
	int references; /* one per registered function, and one per call */
	struct binding *next;
	pthread_mutex_t running; /* guards the two below */
	duckdb_connection connection;
	duckdb_prepared_statement statement;
};

/* DuckDB's functions, complete before there is any binding. */
extern struct duckdb_api duckdb;

/* The binding of that number, to be released; NULL: there is none. */
struct binding *tique_find_binding(int64_t number);
void tique_release_binding(void *binding);

#endif
