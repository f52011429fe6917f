#if defined(__APPLE__)
#define _DARWIN_C_SOURCE
#else
#define _POSIX_C_SOURCE 200809L
#endif

#include "state.h"

#include <time.h>

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
