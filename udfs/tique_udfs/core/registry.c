/*
 * The keeper of sequencers for the threads of one process: open ones by handle, each
 * with a mutex and a condition.
 */
#if defined(__APPLE__)
#define _DARWIN_C_SOURCE
#else
#define _DEFAULT_SOURCE
#endif

#include "state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

struct opened {
	struct sequencer sequencer; /* first: its address is also this structure's */
	tique_handle handle;
	struct locks locks;
	struct opened *next;
	atomic_long references; /* the registry's, and one per call under way */
	pthread_mutex_t mutex;  /* guards the sequencer, its locks and the members below */
	pthread_cond_t woken;
	long sleepers;
	bool closed;
};

static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct opened *registry;
static tique_handle last_handle;

/* A forked process has no sequencer of its parent's: threads that are not there may
 * have their mutexes. */
static void
forget(void)
{
	registry_mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	registry = NULL;
}

__attribute__((constructor)) static void
watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget);
}

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
release(struct opened *opened)
{
	if (atomic_fetch_sub(&opened->references, 1) > 1)
		return;
	pthread_cond_destroy(&opened->woken);
	pthread_mutex_destroy(&opened->mutex);
	munmap(opened, sizeof *opened);
}

/* The reference keeps it in memory when another thread closes it meanwhile. */
struct sequencer *
tique_enter(tique_handle handle)
{
	struct opened *opened;

	pthread_mutex_lock(&registry_mutex);
	for (opened = registry; opened; opened = opened->next)
		if (opened->handle == handle)
			break;
	if (opened)
		atomic_fetch_add(&opened->references, 1);
	pthread_mutex_unlock(&registry_mutex);
	if (!opened)
		return NULL;
	pthread_mutex_lock(&opened->mutex);
	if (!opened->closed) {
		tique_expire(&opened->sequencer);
		return &opened->sequencer;
	}
	pthread_mutex_unlock(&opened->mutex);
	release(opened);
	return NULL;
}

void
tique_exit(struct sequencer *sequencer)
{
	struct opened *opened = (struct opened *)sequencer;

	pthread_mutex_unlock(&opened->mutex);
	release(opened);
}

struct locks *
tique_locks(struct sequencer *sequencer)
{
	return &((struct opened *)sequencer)->locks;
}

bool
tique_sleep(struct sequencer *sequencer, int64_t deadline)
{
	struct opened *opened = (struct opened *)sequencer;
#if defined(__APPLE__)
	int64_t left = deadline - tique_now();
	struct timespec time = {left > 0 ? left / 1000000000 : 0,
	                        left > 0 ? left % 1000000000 : 0};

	opened->sleepers++;
	pthread_cond_timedwait_relative_np(&opened->woken, &opened->mutex, &time);
#else
	struct timespec time = {deadline / 1000000000, deadline % 1000000000};

	opened->sleepers++;
	pthread_cond_timedwait(&opened->woken, &opened->mutex, &time);
#endif
	opened->sleepers--;
	return !opened->closed;
}

void
tique_wake(struct sequencer *sequencer)
{
	struct opened *opened = (struct opened *)sequencer;

	if (opened->sleepers > 0)
		pthread_cond_broadcast(&opened->woken);
}

tique_handle
tique_open(void)
{
	/* Not calloc, which clears memory that it has had before, all of it. */
	struct opened *opened =
	    mmap(NULL, sizeof *opened, PROT_READ | PROT_WRITE,
	         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	tique_handle handle;

	if (opened == MAP_FAILED)
		return TIQUE_NO_MEMORY;
	if (!tique_seed(&opened->sequencer) ||
	    !initialise_condition(&opened->woken)) {
		munmap(opened, sizeof *opened);
		return TIQUE_NO_MEMORY;
	}
	pthread_mutex_init(&opened->mutex, NULL);
	atomic_init(&opened->references, 1);
	pthread_mutex_lock(&registry_mutex);
	handle = opened->handle = ++last_handle;
	opened->next = registry;
	registry = opened;
	pthread_mutex_unlock(&registry_mutex);
	return handle;
}

int
tique_close(tique_handle handle)
{
	struct opened *opened;
	struct opened **link = &registry;

	pthread_mutex_lock(&registry_mutex);
	while (*link && (*link)->handle != handle)
		link = &(*link)->next;
	opened = *link;
	if (opened)
		*link = opened->next;
	pthread_mutex_unlock(&registry_mutex);
	if (!opened)
		return TIQUE_CLOSED;
	pthread_mutex_lock(&opened->mutex);
	opened->closed = true;
	tique_wake(&opened->sequencer);
	tique_exit(&opened->sequencer);
	return TIQUE_OK;
}
