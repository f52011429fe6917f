/*
 * The keeper of sequencers for PostgreSQL's backends: one for each database, in
 * memory that they share.
 *
 * Two pieces, neither of which wants shared_preload_libraries:
 *
 *   the control block   some hundred bytes of the server's main shared memory, under a
 *                       name with the database's OID. The first backend that asks
 *                       makes it (AddinShmemInitLock sees to that). It has the lock,
 *                       the condition variable and the segment's handle.
 *   the segment         a dynamic one with the sequencer and its row locks, pinned: it
 *                       outlives the backend that made it and goes with the server.
 *
 * Invariants
*   1. A backend that uses the sequencer, `segment` or `recovered` holds the
 *      control block's lock, exclusively. tique_enter takes it, tique_exit releases it,
 *      and so does tique_sleep while it sleeps.
 *   2. While it is held nothing can raise an error, allocate, or look at interrupts:
 *      the core does none of these, and below only ConditionVariablePrepareToSleep is
 *      called besides, which puts a process into a list under a spinlock. Steps that
 *      may fail (making, mapping, room for a timestamp) come before.
 *   3. No backend waits for anything but the clock while it holds the lock. It is the
 *      only lock that is held then.
 *
 * When a backend dies or is interrupted
 *   ERROR, FATAL (also a cancel, a time limit, pg_terminate_backend): by 2 they strike
 *     while this process does not hold the lock, and LWLockAcquire holds them off
 *     until the release. So the sequencer is whole. In keeper_attach they leave, at
 *     worst, a control block without a segment, which the next one makes; a segment
 *     that is not pinned goes with its resource owner. In tique_sleep they come out of
 *     ConditionVariableTimedSleep; the transaction's abort takes the process from the
 *     list. Timestamps under way are transactions.c's affair.
 *   SIGKILL, SIGSEGV, PANIC: the postmaster ends all backends and makes its shared
 *     memory anew. The control block is gone with it and the segments are removed, so
 *     the sequencer starts empty and not recovered, as it does with every start.
 *
 * Waking
 *   The core wakes with the lock held, but a process that is woken wants that lock.
 *   So the broadcast is put off to the release; no interrupt is looked at in between,
 *   and a sleeper puts itself into the list before it gives the lock back. Hence none
 *   is missed.
 */
#include "keeper.h"

#include "miscadmin.h"
#include "storage/condition_variable.h"
#include "storage/dsm.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/wait_event.h"

#include <time.h>

#define LOCK_NAME "tique"
#define LONGEST_SLEEP_MILLISECONDS 60000
#define NANOSECONDS_PER_MILLISECOND 1000000

struct control {
	LWLock lock;
	ConditionVariable woken;
	char build[32]; /* TIQUE_BUILD, of the source; never changes */
	dsm_handle segment;
	bool recovered;
};

struct shared {
	struct sequencer sequencer;
	struct locks locks;
};

static struct control *control;
static struct sequencer *attached;
static uint32 wait_event;
static bool recovered; /* as far as this backend knows */
static bool has_to_wake;

static void
attach_control(void)
{
	char name[32];
	struct control *block;
	bool found;

	snprintf(name, sizeof name, "tique %u", MyDatabaseId);
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	block = ShmemInitStruct(name, sizeof *block, &found);
	if (!found) {
		memset(block, 0, sizeof *block);
		LWLockInitialize(&block->lock, LWLockNewTrancheId());
		ConditionVariableInit(&block->woken);
		strlcpy(block->build, TIQUE_BUILD, sizeof block->build);
		block->segment = DSM_HANDLE_INVALID;
	}
	LWLockRelease(AddinShmemInitLock);
	if (strcmp(block->build, TIQUE_BUILD) != 0)
		ereport(ERROR,
		        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
		         errmsg("tique.sequencer: this database is in the care of "
		                "another build of the extension"),
		         errhint("Restart the server, then recovery runs anew.")));
	LWLockRegisterTranche(block->lock.tranche, LOCK_NAME);
#if PG_VERSION_NUM >= 170000
	wait_event = WaitEventExtensionNew("TiqueWait");
#else
	wait_event = PG_WAIT_EXTENSION;
#endif
	control = block;
}

/* The database's segment: the one that is there already, or else the given one. */
static dsm_handle
agree_on(dsm_handle offered)
{
	dsm_handle agreed;

	LWLockAcquire(&control->lock, LW_EXCLUSIVE);
	if (control->segment == DSM_HANDLE_INVALID)
		control->segment = offered;
	agreed = control->segment;
	LWLockRelease(&control->lock);
	return agreed;
}

/* A new segment, unless another backend was faster. */
static dsm_segment *
make_segment(void)
{
	dsm_segment *segment = dsm_create(sizeof(struct shared), 0);
	dsm_handle handle = dsm_segment_handle(segment);
	dsm_handle agreed;

	/* Memory that was set aside at the server's start may have been used. */
	memset(dsm_segment_address(segment), 0, sizeof(struct shared));
	if (!tique_seed(dsm_segment_address(segment)))
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
		                errmsg("tique.sequencer: the system has no random "
		                       "numbers"),
		                errhint("Try again when it has.")));
	dsm_pin_segment(segment);
	agreed = agree_on(handle);
	if (agreed == handle)
		return segment;
	dsm_unpin_segment(handle);
	dsm_detach(segment);
	return dsm_attach(agreed);
}

void
keeper_attach(void)
{
	dsm_handle handle;
	dsm_segment *segment;

	if (attached)
		return;
	transaction_register();
	if (!control)
		attach_control();
	handle = agree_on(DSM_HANDLE_INVALID);
	segment =
	    handle == DSM_HANDLE_INVALID ? make_segment() : dsm_attach(handle);
	if (!segment)
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
		                errmsg("tique.sequencer: its memory cannot be mapped"),
		                errhint("Restart the server.")));
	dsm_pin_mapping(segment);
	attached = dsm_segment_address(segment);
}

bool
keeper_is_recovered(void)
{
	if (!recovered) {
		LWLockAcquire(&control->lock, LW_EXCLUSIVE);
		recovered = control->recovered;
		LWLockRelease(&control->lock);
	}
	return recovered;
}

int
keeper_recover(int64_t sts, int64_t txid)
{
	struct sequencer *sequencer = tique_enter(HERE);
	int status = TIQUE_IN_USE;

	if (!control->recovered)
		status = tique_continue(sequencer, sts, txid);
	if (status == TIQUE_OK)
		control->recovered = true;
	tique_exit(sequencer);
	return status;
}

int64_t
tique_now(void)
{
	struct timespec time;

	/* The machine's clock, so that all backends share it. */
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

struct sequencer *
tique_enter(tique_handle handle)
{
	Assert(handle == HERE);
	LWLockAcquire(&control->lock, LW_EXCLUSIVE);
	tique_expire(attached);
	return attached;
}

void
tique_exit(struct sequencer *sequencer)
{
	bool wakes = has_to_wake;

	Assert(sequencer == attached);
	has_to_wake = false;
	LWLockRelease(&control->lock);
	if (wakes)
		ConditionVariableBroadcast(&control->woken);
}

/* A process that wakes others ends its own preparation; its sleep then ends at once,
 * and the caller looks again. */
bool
tique_sleep(struct sequencer *sequencer, int64_t deadline)
{
	int64_t left = (deadline - tique_now()) / NANOSECONDS_PER_MILLISECOND + 1;

	left = Min(Max(left, 0), LONGEST_SLEEP_MILLISECONDS);
	ConditionVariablePrepareToSleep(&control->woken);
	tique_exit(sequencer);
	ConditionVariableTimedSleep(&control->woken, (long)left, wait_event);
	ConditionVariableCancelSleep();
	LWLockAcquire(&control->lock, LW_EXCLUSIVE);
	return true;
}

void
tique_wake(struct sequencer *sequencer)
{
	has_to_wake = true;
}

struct locks *
tique_locks(struct sequencer *sequencer)
{
	return &((struct shared *)sequencer)->locks;
}
