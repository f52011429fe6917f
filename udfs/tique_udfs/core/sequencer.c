#if defined(__APPLE__)
#define _DARWIN_C_SOURCE
#else
#define _POSIX_C_SOURCE 200809L
#endif

#include "state.h"

#include <stdlib.h>
#include <time.h>

#define FIRST_BUCKETS 64

static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct sequencer *registry;
static tique_handle last_handle;

int64_t
tique_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static bool
initialise_condition(pthread_cond_t *condition)
{
#if defined(__APPLE__)
	return pthread_cond_init(condition, NULL) == 0;
#else
	pthread_condattr_t attributes;
	bool initialised;

	if (pthread_condattr_init(&attributes) != 0)
		return false;
	initialised =
	    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
	    pthread_cond_init(condition, &attributes) == 0;
	pthread_condattr_destroy(&attributes);
	return initialised;
#endif
}

/* Sleeps until woken or until the monotonic clock shows `deadline`. */
static void
sleep_until(struct sequencer *sequencer, int64_t deadline)
{
#if defined(__APPLE__)
	int64_t left = deadline - tique_now();
	struct timespec time = {left > 0 ? left / 1000000000 : 0,
	                        left > 0 ? left % 1000000000 : 0};

	pthread_cond_timedwait_relative_np(&sequencer->advanced,
	                                   &sequencer->mutex, &time);
#else
	struct timespec time = {deadline / 1000000000, deadline % 1000000000};

	pthread_cond_timedwait(&sequencer->advanced, &sequencer->mutex, &time);
#endif
}

static void
release(struct sequencer *sequencer)
{
	if (atomic_fetch_sub(&sequencer->references, 1) > 1)
		return;
	for (struct node *node = sequencer->oldest, *newer; node; node = newer) {
		newer = node->newer;
		free(node);
	}
	tique_forget_clients(sequencer);
	tique_forget_writes(sequencer);
	pthread_cond_destroy(&sequencer->advanced);
	pthread_mutex_destroy(&sequencer->mutex);
	free(sequencer->buckets);
	free(sequencer);
}

/* The reference keeps it in memory when another thread closes it meanwhile. */
struct sequencer *
tique_enter(tique_handle handle)
{
	struct sequencer *sequencer;

	pthread_mutex_lock(&registry_mutex);
	for (sequencer = registry; sequencer; sequencer = sequencer->next)
		if (sequencer->handle == handle)
			break;
	if (sequencer)
		atomic_fetch_add(&sequencer->references, 1);
	pthread_mutex_unlock(&registry_mutex);
	if (!sequencer)
		return NULL;
	pthread_mutex_lock(&sequencer->mutex);
	if (!sequencer->closed) {
		tique_expire(sequencer);
		return sequencer;
	}
	pthread_mutex_unlock(&sequencer->mutex);
	release(sequencer);
	return NULL;
}

void
tique_exit(struct sequencer *sequencer)
{
	pthread_mutex_unlock(&sequencer->mutex);
	release(sequencer);
}

static struct node **
bucket(struct sequencer *sequencer, int64_t txid)
{
	return &sequencer->buckets[(uint64_t)txid & sequencer->bucket_mask];
}

/* The link that points to txid's node, or to NULL when txid is not active. */
static struct node **
find(struct sequencer *sequencer, int64_t txid)
{
	struct node **link = bucket(sequencer, txid);

	while (*link && (*link)->txid != txid)
		link = &(*link)->next_in_bucket;
	return link;
}

/* Doubles the buckets; without memory the chains get longer and that is all. */
static void
grow(struct sequencer *sequencer)
{
	uint64_t size = (sequencer->bucket_mask + 1) * 2;
	struct node **buckets = calloc(size, sizeof *buckets);

	if (!buckets)
		return;
	free(sequencer->buckets);
	sequencer->buckets = buckets;
	sequencer->bucket_mask = size - 1;
	for (struct node *node = sequencer->oldest; node; node = node->newer) {
		struct node **head = bucket(sequencer, node->txid);

		node->next_in_bucket = *head;
		*head = node;
	}
}

/* The list is in the order of snapshots; most are the newest. */
static void
put_in_list(struct sequencer *sequencer, struct node *node, int64_t sts)
{
	struct node *older = sequencer->newest;

	while (older && older->sts > sts)
		older = older->older;
	node->sts = sts;
	node->taken = tique_now();
	node->older = older;
	node->newer = older ? older->newer : sequencer->oldest;
	if (node->newer)
		node->newer->older = node;
	else
		sequencer->newest = node;
	if (older)
		older->newer = node;
	else
		sequencer->oldest = node;
}

static void
remove_from_list(struct sequencer *sequencer, struct node *node)
{
	if (node->older)
		node->older->newer = node->newer;
	else
		sequencer->oldest = node->newer;
	if (node->newer)
		node->newer->older = node->older;
	else
		sequencer->newest = node->older;
}

tique_handle
tique_open(void)
{
	struct sequencer *sequencer = calloc(1, sizeof *sequencer);
	tique_handle handle;

	if (!sequencer)
		return TIQUE_NO_MEMORY;
	sequencer->buckets = calloc(FIRST_BUCKETS, sizeof *sequencer->buckets);
	sequencer->bucket_mask = FIRST_BUCKETS - 1;
	sequencer->next_deadline = INT64_MAX;
	if (!sequencer->buckets || !initialise_condition(&sequencer->advanced)) {
		free(sequencer->buckets);
		free(sequencer);
		return TIQUE_NO_MEMORY;
	}
	pthread_mutex_init(&sequencer->mutex, NULL);
	atomic_init(&sequencer->references, 1);
	pthread_mutex_lock(&registry_mutex);
	handle = sequencer->handle = ++last_handle;
	sequencer->next = registry;
	registry = sequencer;
	pthread_mutex_unlock(&registry_mutex);
	return handle;
}

int
tique_close(tique_handle handle)
{
	struct sequencer *sequencer;
	struct sequencer **link = &registry;

	pthread_mutex_lock(&registry_mutex);
	while (*link && (*link)->handle != handle)
		link = &(*link)->next;
	sequencer = *link;
	if (sequencer)
		*link = sequencer->next;
	pthread_mutex_unlock(&registry_mutex);
	if (!sequencer)
		return TIQUE_CLOSED;
	pthread_mutex_lock(&sequencer->mutex);
	sequencer->closed = true;
	pthread_cond_broadcast(&sequencer->advanced);
	tique_exit(sequencer);
	return TIQUE_OK;
}

int
tique_recover(tique_handle handle, int64_t sts, int64_t txid)
{
	struct sequencer *sequencer = tique_enter(handle);
	int status = TIQUE_OK;

	if (!sequencer)
		return TIQUE_CLOSED;
	if (sequencer->active > 0 || sequencer->sts != sequencer->cts) {
		status = TIQUE_IN_USE;
	} else if (sts < sequencer->sts || txid < sequencer->txid) {
		status = TIQUE_BACKWARDS;
	} else {
		sequencer->sts = sequencer->cts = sts;
		sequencer->txid = txid;
		if (sequencer->waiters > 0)
			pthread_cond_broadcast(&sequencer->advanced);
	}
	tique_exit(sequencer);
	return status;
}

struct tique_transaction
tique_start(struct sequencer *sequencer, tique_client client)
{
	struct tique_transaction begun = {TIQUE_NO_MEMORY, 0};
	struct node *node = malloc(sizeof *node);
	struct node **head;

	if (!node)
		return begun;
	if ((uint64_t)sequencer->active > sequencer->bucket_mask)
		grow(sequencer);
	node->txid = ++sequencer->txid;
	node->client = client;
	head = bucket(sequencer, node->txid);
	node->next_in_bucket = *head;
	*head = node;
	put_in_list(sequencer, node, sequencer->sts);
	sequencer->active++;
	begun.txid = node->txid;
	begun.sts = node->sts;
	return begun;
}

int64_t
tique_snapshot_of(struct sequencer *sequencer, tique_client client, int64_t txid)
{
	struct node *node = *find(sequencer, txid);

	return node && node->client == client ? node->sts : TIQUE_UNKNOWN;
}

int64_t
tique_oldest(struct sequencer *sequencer)
{
	return sequencer->oldest ? sequencer->oldest->sts : sequencer->sts;
}

int64_t
tique_restart(struct sequencer *sequencer, tique_client client, int64_t txid,
              int64_t sts)
{
	struct node *node = *find(sequencer, txid);

	if (!node || node->client != client || sts < node->sts ||
	    sts > sequencer->sts)
		return TIQUE_UNKNOWN;
	remove_from_list(sequencer, node);
	put_in_list(sequencer, node, sts);
	return sts;
}

void
tique_drop(struct sequencer *sequencer, struct node *node)
{
	*find(sequencer, node->txid) = node->next_in_bucket;
	remove_from_list(sequencer, node);
	sequencer->active--;
	free(node);
}

int
tique_stop(struct sequencer *sequencer, tique_client client, int64_t txid)
{
	struct node *node = *find(sequencer, txid);

	if (!node)
		return txid <= 0 || txid > sequencer->txid ? TIQUE_UNKNOWN : TIQUE_OK;
	if (node->client != client)
		return TIQUE_UNKNOWN;
	tique_drop(sequencer, node);
	return TIQUE_OK;
}

int64_t
tique_take(struct sequencer *sequencer, tique_client client)
{
	if (sequencer->cts - sequencer->sts >= TIQUE_RING_CAPACITY)
		return TIQUE_RING_FULL;
	sequencer->cts++;
	sequencer->owners[sequencer->cts % TIQUE_RING_CAPACITY] = client;
	return sequencer->cts;
}

int
tique_settle(struct sequencer *sequencer, tique_client client, int64_t cts)
{
	int64_t before = sequencer->sts;
	int64_t slot = cts % TIQUE_RING_CAPACITY;
	bool *next = &sequencer->finished[(before + 1) % TIQUE_RING_CAPACITY];

	if (cts <= 0 || cts > sequencer->cts)
		return TIQUE_UNKNOWN;
	if (cts <= before)
		return TIQUE_OK;
	if (sequencer->owners[slot] != client)
		return TIQUE_UNKNOWN;
	tique_keep_writes(sequencer, cts);
	sequencer->finished[slot] = true;
	while (*next) {
		*next = false;
		sequencer->sts++;
		next = &sequencer->finished[(sequencer->sts + 1) % TIQUE_RING_CAPACITY];
	}
	if (sequencer->sts > before && sequencer->waiters > 0)
		pthread_cond_broadcast(&sequencer->advanced);
	return TIQUE_OK;
}

struct tique_transaction
tique_begin(tique_handle handle)
{
	struct tique_transaction begun = {TIQUE_CLOSED, 0};
	struct sequencer *sequencer = tique_enter(handle);

	if (!sequencer)
		return begun;
	begun = tique_start(sequencer, NOBODY);
	tique_exit(sequencer);
	return begun;
}

int64_t
tique_refresh(tique_handle handle, int64_t txid)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t sts;

	if (!sequencer)
		return TIQUE_CLOSED;
	sts = tique_restart(sequencer, NOBODY, txid, sequencer->sts);
	tique_exit(sequencer);
	return sts;
}

int
tique_end(tique_handle handle, int64_t txid)
{
	struct sequencer *sequencer = tique_enter(handle);
	int status;

	if (!sequencer)
		return TIQUE_CLOSED;
	status = tique_stop(sequencer, NOBODY, txid);
	tique_exit(sequencer);
	return status;
}

int64_t
tique_next_cts(tique_handle handle)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t cts;

	if (!sequencer)
		return TIQUE_CLOSED;
	cts = tique_take(sequencer, NOBODY);
	tique_exit(sequencer);
	return cts;
}

int
tique_finish(tique_handle handle, int64_t cts)
{
	struct sequencer *sequencer = tique_enter(handle);
	int status;

	if (!sequencer)
		return TIQUE_CLOSED;
	status = tique_settle(sequencer, NOBODY, cts);
	tique_exit(sequencer);
	return status;
}

int64_t
tique_sts(tique_handle handle)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t sts;

	if (!sequencer)
		return TIQUE_CLOSED;
	sts = sequencer->sts;
	tique_exit(sequencer);
	return sts;
}

int64_t
tique_cts(tique_handle handle)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t cts;

	if (!sequencer)
		return TIQUE_CLOSED;
	cts = sequencer->cts;
	tique_exit(sequencer);
	return cts;
}

int64_t
tique_lambda(tique_handle handle)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t lambda;

	if (!sequencer)
		return TIQUE_CLOSED;
	lambda = tique_oldest(sequencer);
	tique_exit(sequencer);
	return lambda;
}

int64_t
tique_active_count(tique_handle handle)
{
	return tique_active(handle, NULL, 0);
}

int64_t
tique_active(tique_handle handle, struct tique_snapshot *snapshots,
             int64_t capacity)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t time;
	int64_t active;

	if (!sequencer)
		return TIQUE_CLOSED;
	time = tique_now();
	active = sequencer->active;
	for (struct node *node = sequencer->oldest; node && capacity > 0;
	     node = node->newer, snapshots++, capacity--) {
		snapshots->txid = node->txid;
		snapshots->sts = node->sts;
		snapshots->age_nanoseconds = time - node->taken;
	}
	tique_exit(sequencer);
	return active;
}

int
tique_wait(tique_handle handle, int64_t cts, int64_t nanoseconds)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t start = tique_now();
	int64_t deadline;
	int result;

	if (!sequencer)
		return TIQUE_CLOSED;
	if (nanoseconds < 0)
		nanoseconds = 0;
	deadline =
	    nanoseconds < INT64_MAX - start ? start + nanoseconds : INT64_MAX;
	sequencer->waiters++;
	while (!sequencer->closed && sequencer->sts < cts && tique_now() < deadline) {
		int64_t doubtful = tique_first_doubtful(sequencer);

		if (doubtful > 0 && doubtful <= cts)
			break;
		sleep_until(sequencer, sequencer->next_deadline < deadline
		                           ? sequencer->next_deadline
		                           : deadline);
		tique_expire(sequencer);
	}
	sequencer->waiters--;
	result = sequencer->closed ? TIQUE_CLOSED : sequencer->sts >= cts;
	tique_exit(sequencer);
	return result;
}
