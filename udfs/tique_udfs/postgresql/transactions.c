/*
 * Timestamps that end with the PostgreSQL transaction in which they were taken.
 *
 * Every one of them is in the list of exactly one backend from the moment it is taken:
 * it is put down before the sequencer's lock is given back, and room for it was made
 * before that was taken. It leaves the list when it is finished.
 *
 *   COMMIT      The event comes when the transaction is durable (certify asks for a
 *               synchronous commit, whatever synchronous_commit says) and every later
 *               snapshot sees it; interrupts are held off from its commit record to
 *               here. So whoever finds sts at the timestamp or behind it, and then
 *               takes a snapshot, finds its rows (promise P2).
 *   ABORT       Also by FATAL: a backend that exits aborts its transaction before it
 *               gives its shared memory back. An error in COMMIT before the commit
 *               record is an abort; one after it is a PANIC.
 *   savepoints  What was taken inside one is aborted when it is rolled back, and goes
 *               to the level above when it is released.
 *   PREPARE     is refused: a prepared transaction outlives its backend.
 *
 * Nothing below the registration may fail, since an abort may not.
 */
#include "keeper.h"

#include "access/xact.h"
#include "utils/memutils.h"

struct taken {
	int64_t cts;
	int level; /* of nested transactions; it never falls along the list */
};

static struct taken *list;
static int count;
static int room;

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

/* Finishes what was taken at this level or further in. */
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

static void
at_end(XactEvent event, void *ignored)
{
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
