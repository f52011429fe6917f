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
