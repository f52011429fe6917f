/*
 * Timestamps that end with the PostgreSQL transaction in which they were taken.
 *
 * Every one of them is in the list of exactly one backend from the moment it is taken:
 * it is recorded before the sequencer's lock is released, and room for it was made
 * before the lock was taken. It leaves the list when it is finished.
 *
 *   COMMIT      The event comes when the transaction is durable (certify asks for a
 *               synchronous commit, whatever synchronous_commit says) and every later
 *               snapshot sees it; interrupts are held off from its commit record to
 *               here. So a reader that finds sts at the timestamp or behind it, and
 *               then takes a snapshot, finds its rows (promise P2).
 *   ABORT       Also by FATAL: a backend that exits aborts its transaction before it
 *               gives its shared memory back. An error in COMMIT before the commit
 *               record is an abort; one after it is a PANIC.
 *   savepoints  A timestamp that was taken inside one is aborted when the savepoint is
 *               rolled back, and goes to the level above when it is released.
 *   PREPARE     is refused: a prepared transaction outlives its backend.
 *
 * A transaction with a limit (P6, P11) is over when that has passed, whatever its session
 * does, waits for or has set: a timer ends the backend as pg_terminate_backend does, also
 * one that waits for its client. A mere cancel could be caught, and does nothing to a
 * transaction that is idle. From XACT_EVENT_PRE_COMMIT on, after the last user code
 * (deferred triggers), the timer is off: a COMMIT is never cut off in its wait for a
 * replica. An error takes all timers away; when only a savepoint is rolled back by it,
 * this one is set again for the time that is left.
 *
 * Nothing below the registration may fail, since an abort may not.
 */
#include "keeper.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

struct taken {
	int64_t cts;
	int level; /* of nested transactions; it never falls along the list */
};

static struct taken *list;
static int count;
static int room;

static TimeoutId timer;
static bool has_timer;
static TimestampTz deadline; /* 0 when the transaction has none */

void
transaction_prepare(void)
{
	if (!list) {
		room = 16;
		list = MemoryContextAlloc(TopMemoryContext, room * sizeof *list);
	} else if (count == room) {
		list = repalloc(list, 2 * room * sizeof *list);
		room *= 2;
	}
	ForceSyncCommit();
}

void
transaction_own(int64_t cts)
{
	list[count].cts = cts;
	list[count].level = GetCurrentTransactionNestLevel();
	count++;
}

/* Finishes the timestamps that were taken at this level or further in. */
static void
finish(int level, bool committed)
{
	struct sequencer *sequencer;

	if (count == 0 || list[count - 1].level < level)
		return;
	sequencer = tique_enter(HERE);
	while (count > 0 && list[count - 1].level >= level) {
		int64_t cts = list[--count].cts;

		if (!committed)
			tique_revert_writes(sequencer, cts);
		tique_settle(sequencer, NOBODY, cts);
	}
	tique_exit(sequencer);
}

/* Runs in a signal handler. */
static void
at_deadline(void)
{
	if (deadline == 0)
		return;
	ProcDiePending = true;
	InterruptPending = true;
	SetLatch(MyLatch);
}

void
transaction_limit(int64_t milliseconds)
{
	TimestampTz wanted =
	    TimestampTzPlusMilliseconds(GetCurrentTimestamp(), milliseconds);

	if (!has_timer) {
		timer = RegisterTimeout(USER_TIMEOUT, at_deadline);
		has_timer = true;
	}
	if (deadline != 0 && deadline <= wanted)
		return;
	deadline = wanted;
	enable_timeout_at(timer, deadline);
}

static void
limit_no_more(void)
{
	if (deadline == 0)
		return;
	deadline = 0;
	disable_timeout(timer, false);
}

static void
at_end(XactEvent event, void *ignored)
{
	if (event != XACT_EVENT_PRE_PREPARE)
		limit_no_more();
	if (event == XACT_EVENT_COMMIT)
		finish(0, true);
	else if (event == XACT_EVENT_ABORT)
		finish(0, false);
	else if (event == XACT_EVENT_PRE_PREPARE && count > 0)
		ereport(ERROR,
		        (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
		         errmsg("tique.certify: a transaction with a commit timestamp "
		                "cannot be prepared"),
		         errhint("Use COMMIT.")));
}

static void
at_end_of_level(SubXactEvent event, SubTransactionId id,
                SubTransactionId parent, void *ignored)
{
	int level = GetCurrentTransactionNestLevel();

	if (event == SUBXACT_EVENT_ABORT_SUB && deadline != 0)
		enable_timeout_at(timer, deadline);
	if (event == SUBXACT_EVENT_ABORT_SUB)
		finish(level, false);
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
		for (int i = count; i > 0 && list[i - 1].level >= level; i--)
			list[i - 1].level = level - 1;
}

void
transaction_register(void)
{
	static bool is_registered;

	if (is_registered)
		return;
	RegisterXactCallback(at_end, NULL);
	RegisterSubXactCallback(at_end_of_level, NULL);
	is_registered = true;
}
