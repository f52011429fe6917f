/*
 * What the core's files share and nobody else sees. Functions that take a
 * sequencer want its mutex held.
 */
#ifndef TIQUE_STATE_H
#define TIQUE_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "sequencer.h"

/* Who owns a timestamp or a snapshot, when it is no client. */
#define NOBODY 0
#define DOUBTFUL (-1)

/* An active snapshot: a member of the list by age and of one bucket by txid. */
struct node {
	int64_t txid;
	int64_t sts;
	int64_t taken;
	tique_client client;
	struct node *older;
	struct node *newer;
	struct node *next_in_bucket;
};

/* The last commit of a key, and the one before. */
struct write {
	struct tique_key key;
	int64_t cts;
	int64_t previous;
	struct write *next_in_bucket;
};

/* What a timestamp under way has entered. */
struct write_set {
	int64_t count;
	struct write *writes[];
};

struct client {
	tique_client id;
	int64_t deadline;
	struct client *next;
};

struct sequencer {
	tique_handle handle;
	struct sequencer *next;
	atomic_long references; /* the registry's, and one per call under way */

	pthread_mutex_t mutex; /* guards everything below */
	pthread_cond_t advanced;
	long waiters;
	bool closed;
	int64_t txid;
	int64_t cts;
	int64_t sts;
	struct node *oldest;
	struct node *newest;
	int64_t active;
	struct node **buckets;
	uint64_t bucket_mask;
	struct client *clients;
	int64_t next_deadline; /* the earliest of the clients' */
	int64_t doubtful;      /* how many timestamps are */
	int64_t *fences;       /* ascending */
	int64_t fence_count;
	int64_t fence_capacity;
	struct write **write_buckets;
	uint64_t write_mask;
	int64_t write_count;
	int64_t barrier; /* the last one, or 0 */
	/* Timestamp t in (sts, cts] is finished when finished[t % capacity], and
	 * otherwise owners[t % capacity] has to finish it. */
	bool finished[TIQUE_RING_CAPACITY];
	tique_client owners[TIQUE_RING_CAPACITY];
	/* Of those under way; NULL for none. */
	struct write_set *write_sets[TIQUE_RING_CAPACITY];
};

/* Nanoseconds of the monotonic clock. */
int64_t tique_now(void);

/* The open sequencer of that handle with its mutex held and leases that have run
 * out dealt with, or NULL. It stays in memory until tique_exit. */
struct sequencer *tique_enter(tique_handle handle);
void tique_exit(struct sequencer *sequencer);

struct tique_transaction tique_start(struct sequencer *sequencer,
                                     tique_client client);
int64_t tique_restart(struct sequencer *sequencer, tique_client client,
                      int64_t txid, int64_t sts);
int tique_stop(struct sequencer *sequencer, tique_client client, int64_t txid);
void tique_drop(struct sequencer *sequencer, struct node *node);
int64_t tique_snapshot_of(struct sequencer *sequencer, tique_client client,
                          int64_t txid);
int64_t tique_oldest(struct sequencer *sequencer);
int64_t tique_take(struct sequencer *sequencer, tique_client client);
int tique_settle(struct sequencer *sequencer, tique_client client, int64_t cts);

/* Sees to the leases that have run out, and to those who wait because of it. */
void tique_expire(struct sequencer *sequencer);
int64_t tique_first_doubtful(struct sequencer *sequencer);
void tique_forget_clients(struct sequencer *sequencer);

/* The sequencer as tique_enter gives it, if the client is still there; else NULL, and
 * why in *status. */
struct sequencer *tique_enter_for(tique_handle handle, tique_client client,
                                  int *status);

/* What a timestamp entered stays, or is taken back. */
void tique_keep_writes(struct sequencer *sequencer, int64_t cts);
void tique_revert_writes(struct sequencer *sequencer, int64_t cts);
void tique_forget_writes(struct sequencer *sequencer);

#endif
