/*
 * Declarations that only the core's files share.
 *
 * A sequencer is one block of memory of fixed size without pointers: places in its
 * tables are numbers, and zeroes are an empty sequencer. So several processes may map
 * the block at different addresses, and parts that were never used take no memory.
 * The keeper decides where it lies, which lock guards it and how threads sleep; for
 * the threads of one process it is registry.c. The keeper gives an empty sequencer its
 * secret (tique_seed) before any other thread sees it.
 *
 * The caller of a function that takes a sequencer holds its lock.
 */
#ifndef TIQUE_STATE_H
#define TIQUE_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "sequencer.h"

/* The owner of a timestamp or a snapshot that belongs to no client. */
#define NOBODY 0
#define DOUBTFUL (-1)

/* The limit of other keys' writes in a bucket that a search for one key looks at. */
#define TIQUE_PROBES 256

/* An active snapshot: a member of the list by age and of one bucket by txid. */
struct node {
	int64_t txid;
	int64_t sts;
	int64_t taken;
	tique_client client;
	int32_t older;
	int32_t newer;
	int32_t next; /* in its bucket; of a free one, the next free one */
};

struct client {
	tique_client id;
	int64_t deadline;
	int32_t next;       /* in its bucket: a place, counted from 1 */
	int32_t snapshots;  /* their number */
	int32_t unfinished; /* the number of timestamps that it has to finish */
	int64_t role;       /* 0 when it has no share */
	int64_t limited;    /* the last timestamp that it has or had to finish in time */
	int64_t finish_by;  /* its deadline; 0 when that is over */
	bool is_overdue;    /* whether it was not finished in time */
};

/* A key that a timestamp wrote. */
struct write {
	struct tique_key key;
	int64_t cts;   /* less than 0 when it was taken back */
	int64_t older; /* the number of the write before, in its bucket */
};

__extension__ typedef unsigned __int128 wide_uint;

/* The secret of the hash of keys; it never leaves the sequencer. */
struct secret {
	wide_uint first;
	wide_uint second;
	wide_uint third;
};

struct sequencer {
	struct secret secret;

	int64_t txid;
	int64_t cts;
	int64_t sts;

	int64_t active;
	int32_t used_nodes; /* 1 .. used_nodes have been in use */
	int32_t free_node;  /* one of those that is free, or 0 */

	int64_t client_count;
	int64_t buried; /* the number of clients that have gone */
	int64_t next_deadline; /* the earliest of the clients' */
	int64_t doubtful;      /* the number of doubtful timestamps */
	int64_t fence_count;

	int64_t barrier;   /* the log has all later commits' keys, but for aborts */
	int64_t written;   /* writes are numbered from 1, in the order of cts */
	int64_t forgotten; /* up to this number */

	/* Timestamp t in (sts, cts] is finished if finished[t % capacity], and
	 * otherwise owners[t % capacity] has to finish it. */
	bool finished[TIQUE_RING_CAPACITY];
	tique_client owners[TIQUE_RING_CAPACITY];

	/* Place 0 is both ends of the list by age: its `older` is the newest of all,
	 * its `newer` the oldest. 0 also stands for no place. */
	struct node nodes[TIQUE_SNAPSHOT_CAPACITY + 1];
	int32_t buckets[TIQUE_SNAPSHOT_CAPACITY];

	struct client clients[TIQUE_CLIENT_CAPACITY]; /* in no order */
	int32_t client_buckets[TIQUE_CLIENT_CAPACITY];
	int64_t fences[TIQUE_FENCE_CAPACITY];         /* ascending */

	/* Write n is writes[n % capacity]. A bucket has the number of its last write. */
	struct write writes[TIQUE_KEY_CAPACITY];
	int64_t write_buckets[TIQUE_KEY_CAPACITY];
};

/* A number that a locker has, in one mode. */
struct lock {
	int64_t number;
	int32_t locker; /* its place */
	int32_t next;   /* in its bucket, or the next free one: a place, counted from 1 */
	bool shared;
};

struct locker {
	tique_locker id; /* 0 when there is none */
	tique_client client;
	int64_t count; /* its locks */
	int64_t number; /* that it waits for, or did */
	int64_t turn;   /* waits are numbered in the order in which they began */
	int64_t visited;
	bool shared;
	bool waits;
	bool is_interrupted;
};

/* Row locks, of a sequencer whose keeper has tique_locks; the same lock guards them. */
struct locks {
	int64_t buried; /* as the sequencer's, when the locks of gone clients were dropped */
	int64_t held;
	int64_t waiting;
	int64_t opened;
	int64_t turns;
	int64_t search; /* the number of the last search for a circle */
	int32_t used_lockers;
	int32_t used_locks; /* so many places of `all` have been in use */
	int32_t free_lock;  /* one of those that is free, or 0 */
	int32_t found[TIQUE_LOCKER_CAPACITY];
	struct locker lockers[TIQUE_LOCKER_CAPACITY];
	struct lock all[TIQUE_LOCK_CAPACITY];
	int32_t buckets[TIQUE_LOCK_CAPACITY];
};

/* Gives an empty sequencer its secret; false if the system has no random numbers. */
bool tique_seed(struct sequencer *sequencer);

/* The keeper's: nanoseconds of the monotonic clock. */
int64_t tique_now(void);

/* The keeper's: the open sequencer of that handle with its lock held and leases that
 * have run out dealt with, or NULL. It stays in memory until tique_exit. */
struct sequencer *tique_enter(tique_handle handle);
void tique_exit(struct sequencer *sequencer);

/* The keeper's: sleeps without the lock until woken or until tique_now() reaches the
 * deadline, perhaps less long; whether the sequencer is still open. */
bool tique_sleep(struct sequencer *sequencer, int64_t deadline);
void tique_wake(struct sequencer *sequencer);

/* The keeper's, if it keeps row locks (locks.c). */
struct locks *tique_locks(struct sequencer *sequencer);

struct tique_transaction tique_start(struct sequencer *sequencer,
                                     tique_client client);
int64_t tique_restart(struct sequencer *sequencer, tique_client client,
                      int64_t txid, int64_t sts);
int tique_stop(struct sequencer *sequencer, tique_client client, int64_t txid);

/* Drops the snapshots of clients that are not there. */
void tique_drop_orphans(struct sequencer *sequencer);

int tique_continue(struct sequencer *sequencer, int64_t sts, int64_t txid);
int64_t tique_take(struct sequencer *sequencer, tique_client client);
int tique_settle(struct sequencer *sequencer, tique_client client, int64_t cts);

/* Whether it is unfinished, and the owner's to finish. */
bool tique_is_under_way(const struct sequencer *sequencer, tique_client owner,
                        int64_t cts);

/* NULL when it is gone. */
struct client *tique_find_client(struct sequencer *sequencer, tique_client id);

/* Ends leases and time limits that have run out, and wakes the threads that wait. */
void tique_expire(struct sequencer *sequencer);
int64_t tique_first_expiry(const struct sequencer *sequencer);
int64_t tique_first_doubtful(const struct sequencer *sequencer);

/* The time after so many nanoseconds, none of them less than 0. */
int64_t tique_deadline(int64_t nanoseconds);

/* The sequencer as tique_enter gives it, if the client is still there; else NULL, with
 * the reason in *status. */
struct sequencer *tique_enter_for(tique_handle handle, tique_client client,
                                  int *status);

/* Whether it conflicts by modes: no row has such a key. */
bool tique_has_mode(const struct tique_key *key);

/* As tique_certify_for without locks, and the timestamp is the owner's to finish. A server whose own
 * transaction ends in any case passes NOBODY as the owner, and finishes the timestamp
 * for NOBODY then: the client's fate plays no part any more. */
int64_t tique_certify(struct sequencer *sequencer, tique_client owner,
                      int64_t sts, const struct tique_key *keys, int64_t count,
                      int64_t *winner);

/* Takes back the writes that are recorded for a timestamp under way. */
void tique_revert_writes(struct sequencer *sequencer, int64_t cts);

#endif
