/*
 * Threads that begin, refresh, commit, abort and end as fast as they can, beside
 * checkpointers that read lambda, clients that die in any step, whose doubtful
 * timestamps are fenced by waiting clients, clients that write the same few keys, and
 * clients that lock the same few rows, and leave with locks or without.
 * Exits with 1 and a message when a promise breaks.
 */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "sequencer.h"

#define WORKERS 4
#define CHECKPOINTERS 2
#define MORTALS 2
#define WRITERS 2
#define LOCKERS 3
#define ROWS 4
#define KEYS 50
#define TRANSACTIONS 20000
/* However slowly the workers come on, there is room for so many fences. */
#define MOST_LIVES (TIQUE_FENCE_CAPACITY / MORTALS)
#define FEWEST_LIVES 100

static tique_handle handle;
static _Atomic int64_t published;
static _Atomic int working = WORKERS;

static void
require(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	exit(1);
}

static void
publish(int64_t lambda)
{
	int64_t before = atomic_load(&published);

	while (before < lambda &&
	       !atomic_compare_exchange_weak(&published, &before, lambda))
		continue;
}

static void *
check_point(void *unused)
{
	int64_t before = 0;

	while (atomic_load(&working) > 0) {
		int64_t lambda = tique_lambda(handle);

		require(lambda >= before, "lambda went back");
		publish(lambda);
		before = lambda;
	}
	return unused;
}

static void
fence(void)
{
	int64_t doubtful = tique_doubtful(handle);

	/* Another one may have been quicker. */
	if (doubtful > 0)
		require(tique_fence(handle, doubtful) == TIQUE_OK, "fence");
}

static void
await(int64_t cts)
{
	int waited = 0;

	for (int i = 0; i < 100000 && waited == 0; i++) {
		waited = tique_wait(handle, cts, 20000000000);
		if (waited == 0)
			fence();
	}
	require(waited == 1, "wait");
}

/* A client in every life: it leaves, or its lease runs out, or it lives on. */
static void *
die(void *seed)
{
	unsigned state = (unsigned)(uintptr_t)seed * 2246822519u + 1;

	for (int life = 0; life < MOST_LIVES; life++) {
		unsigned choice;
		tique_client client;
		struct tique_transaction begun;
		int64_t cts;

		if (life >= FEWEST_LIVES && atomic_load(&working) == 0)
			break;
		state = state * 1664525u + 1013904223u;
		choice = state >> 16;
		client = tique_join(handle, choice & 1 ? 20000 : 20000000000);
		require(client > 0, "join");
		begun = tique_begin_for(handle, client);
		cts = tique_next_cts_for(handle, client);
		require(cts > 0 || cts == TIQUE_FENCED, "take");
		if (cts > 0 && choice & 2) {
			int finished = tique_finish_for(handle, client, cts);

			require(finished == TIQUE_OK || finished == TIQUE_FENCED,
			        "finish for");
		}
		if (choice & 4) {
			require(tique_leave(handle, client) == TIQUE_OK || choice & 1,
			        "leave");
			require(tique_end_for(handle, client, begun.txid) ==
			            TIQUE_FENCED,
			        "a client that left is fenced");
		} else if (!(choice & 1)) {
			require(tique_end_for(handle, client, begun.txid) ==
			            TIQUE_OK,
			        "end for");
			require(tique_finish_for(handle, client, cts) == TIQUE_OK,
			        "a client that lives is not fenced");
			require(tique_leave(handle, client) == TIQUE_OK, "leave");
		}
	}
	return NULL;
}

/* Writes a key or two, which were read some commits ago. Between that and the end
 * no other client may. */
static void *
write_keys(void *seed)
{
	static _Atomic int64_t last[KEYS];
	unsigned state = (unsigned)(uintptr_t)seed * 3266489917u + 1;
	tique_client client = tique_join(handle, INT64_MAX);
	int64_t sts = 0;
	int commits = 0;

	/* No client is refused for ever. */
	while (atomic_load(&working) > 0 || commits == 0) {
		struct tique_key keys[2] = {0};
		int64_t winner = 0;
		int64_t cts;

		state = state * 1664525u + 1013904223u;
		keys[0].bytes[15] = (uint8_t)(state >> 16) % KEYS;
		keys[1].bytes[15] = (uint8_t)(state >> 20) % KEYS;
		cts = tique_certify_for(handle, client, 0, sts, keys, 2, &winner, NULL,
		                        0);
		if (cts == TIQUE_CONFLICT) {
			require(winner > sts, "the winner came first");
			sts = tique_sts_for(handle, client);
			continue;
		}
		require(cts > sts, "certify");
		commits++;
		for (int i = 0; i < 2; i++)
			require(atomic_load(&last[keys[i].bytes[15]]) <= sts,
			        "first committer wins");
		if (state & 1 << 24) {
			for (int i = 0; i < 2; i++)
				atomic_store(&last[keys[i].bytes[15]], cts);
			require(tique_finish_for(handle, client, cts) == TIQUE_OK,
			        "finish for");
		} else {
			require(tique_abort_for(handle, client, cts) == TIQUE_OK,
			        "abort for");
		}
		require(tique_key_count(handle) <= TIQUE_KEY_CAPACITY,
		        "keys are bounded");
	}
	require(tique_leave(handle, client) == TIQUE_OK, "leave");
	return NULL;
}

/* Locks two rows, one after the other: no other client has them meanwhile, and none
 * commits them. */
static void *
lock_rows(void *seed)
{
	static _Atomic int owners[ROWS + 1];
	unsigned state = (unsigned)(uintptr_t)seed * 2246822519u + 1;
	int taken = 0;

	while (atomic_load(&working) > 0 || taken == 0) {
		tique_client client = tique_join(handle, INT64_MAX);
		tique_locker locker = tique_open_locker(handle, client);
		int64_t rows[2];
		int held = 0;

		require(locker > 0, "open a locker");
		for (int i = 0; i < 2; i++) {
			struct tique_key key = {0};
			int64_t winner, locked, found;

			state = state * 1664525u + 1013904223u;
			rows[i] = 1 + (state >> 16) % ROWS;
			if (i == 1 && rows[1] == rows[0])
				break;
			found = tique_lock(handle, client, locker, &rows[i], 1, 0,
			                   5000000);
			if (found == 0 || found == TIQUE_DEADLOCK)
				break;
			require(found == 1, "lock");
			held++;
			taken++;
			require(atomic_exchange(&owners[rows[i]], 1) == 0,
			        "a row has one owner");
			key.bytes[7] = (uint8_t)rows[i];
			require(tique_certify_for(handle, client, 0, tique_sts(handle), &key,
			                          1, &winner, &locked,
			                          1) == TIQUE_LOCKED &&
			            locked == rows[i],
			        "a locked row is not committed");
		}
		for (int i = 0; i < held; i++)
			atomic_store(&owners[rows[i]], 0);
		if (state & 1 << 20)
			require(tique_unlock(handle, client, locker, rows, held, 0) ==
			            TIQUE_OK,
			        "unlock");
		if (state & 1 << 21)
			require(tique_close_locker(handle, client, locker) == TIQUE_OK,
			        "close a locker");
		require(tique_leave(handle, client) == TIQUE_OK, "leave");
	}
	return NULL;
}

static void
commit(int64_t sts, unsigned choice)
{
	int64_t cts = tique_next_cts(handle);

	require(cts > sts, "cts is after sts");
	if (choice & 2) {
		/* Finished out of order: this one after a later one. */
		int64_t later = tique_next_cts(handle);

		require(later > cts, "cts is unique");
		require(tique_finish(handle, later) == TIQUE_OK, "finish");
	}
	require(tique_finish(handle, cts) == TIQUE_OK, "finish");
	require(tique_finish(handle, cts) == TIQUE_OK, "finish twice");
	await(cts);
	require(tique_sts(handle) >= cts, "sts covers the awaited timestamp");
}

static void *
work(void *seed)
{
	unsigned state = (unsigned)(uintptr_t)seed * 2654435761u + 1;

	for (int i = 0; i < TRANSACTIONS; i++) {
		int64_t floor = atomic_load(&published);
		struct tique_transaction begun = tique_begin(handle);
		unsigned choice;

		state = state * 1664525u + 1013904223u;
		choice = state >> 16;
		require(begun.txid > 0, "begin");
		require(floor <= begun.sts, "a checkpoint overtook begin");
		if (choice & 4) {
			floor = atomic_load(&published);
			begun.sts = tique_refresh(handle, begun.txid);
			require(floor <= begun.sts,
			        "a checkpoint overtook refresh");
		}
		if (choice & 1)
			commit(begun.sts, choice);
		require(atomic_load(&published) <= begun.sts,
		        "a checkpoint overtook an active snapshot");
		require(tique_end(handle, begun.txid) == TIQUE_OK, "end");
		require(tique_end(handle, begun.txid) == TIQUE_OK, "end twice");
	}
	atomic_fetch_sub(&working, 1);
	return NULL;
}

static void *
wait_for_close(void *unused)
{
	int waited = 0;

	while (waited == 0) {
		waited = tique_wait(handle, INT64_MAX, INT64_MAX);
		if (waited == 0)
			fence();
	}
	require(waited == TIQUE_CLOSED, "close wakes a waiter");
	return unused;
}

int
main(void)
{
	pthread_t threads[WORKERS + CHECKPOINTERS];
	pthread_t clients[MORTALS + WRITERS];
	pthread_t lockers[LOCKERS];
	pthread_t waiter;

	handle = tique_open();
	require(handle > 0, "open");
	pthread_create(&waiter, NULL, wait_for_close, NULL);
	for (uintptr_t i = 0; i < WORKERS + CHECKPOINTERS; i++)
		pthread_create(&threads[i], NULL,
		               i < WORKERS ? work : check_point, (void *)i);
	for (uintptr_t i = 0; i < MORTALS + WRITERS; i++)
		pthread_create(&clients[i], NULL,
		               i < MORTALS ? die : write_keys, (void *)i);
	for (uintptr_t i = 0; i < LOCKERS; i++)
		pthread_create(&lockers[i], NULL, lock_rows, (void *)i);
	for (int i = 0; i < WORKERS + CHECKPOINTERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < MORTALS + WRITERS; i++)
		pthread_join(clients[i], NULL);
	for (int i = 0; i < LOCKERS; i++)
		pthread_join(lockers[i], NULL);
	require(tique_lock_count(handle) == 0, "no lock is left");
	await(tique_cts(handle));
	require(tique_fences(handle, NULL, 0) > 0, "some died");
	require(tique_client_count(handle) == 0, "no client lives on");
	require(tique_active_count(handle) == 0, "no client is active");
	require(tique_sts(handle) == tique_cts(handle), "no hole is left");
	require(tique_lambda(handle) == tique_sts(handle), "lambda is sts");
	require(tique_close(handle) == TIQUE_OK, "close");
	pthread_join(waiter, NULL);
	require(tique_sts(handle) == TIQUE_CLOSED, "closed");
	require(tique_close(handle) == TIQUE_CLOSED, "close twice");
	return 0;
}
