/*
 * The SQL functions of the extension, in the order of tique--1.0.sql, which says what
 * each does. Every one checks first that the sequencer was recovered since the server
 * was started: the stored state says where it has to go on.
 *
 * A function that changes something does it in a client's name, and a client's number
 * cannot be guessed. recover and fence need none: like every function only their owner
 * may call them until they are granted (P11).
 */
#include "keeper.h"

#include "access/htup_details.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "utils/array.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* The symbols that the server looks for, up to the end; see the Makefile. */
#pragma GCC visibility push(default)

PG_MODULE_MAGIC;

#define CLIENT_GONE MAKE_SQLSTATE('T', 'Q', '0', '0', '1')
#define NOT_RECOVERED MAKE_SQLSTATE('T', 'Q', '0', '0', '2')
#define REFUSED MAKE_SQLSTATE('T', 'Q', '0', '0', '3')
#define OVERDUE MAKE_SQLSTATE('T', 'Q', '0', '0', '4')
#define LOCKED MAKE_SQLSTATE('T', 'Q', '0', '0', '5')

#define LARGEST_START (INT64_C(1) << 62)
#define NANOSECONDS_PER_MILLISECOND INT64_C(1000000)
#define LONGEST_WAIT_MILLISECONDS 1000
#define ROOM_FOR_LOCKED 64

#define FUNCTION(name)                                                         \
	PG_FUNCTION_INFO_V1(sql_##name);                                           \
	Datum sql_##name(PG_FUNCTION_ARGS)

static const struct {
	int64_t status;
	const char *what;
	const char *hint;
} refusals[] = {
    {TIQUE_NO_MEMORY, "the system has no random numbers",
     "Try again when it has."},
    {TIQUE_RING_FULL, "too many timestamps wait for an unfinished one",
     "Finish it: commit or end the oldest transaction that has one."},
    {TIQUE_SNAPSHOTS_FULL, "too many transactions are active", "End some."},
    {TIQUE_CLIENTS_FULL, "too many clients have joined",
     "Close the database in some processes."},
    {TIQUE_FENCES_FULL, "too many fences are there",
     "Restart the server, whose recovery needs none."},
    {TIQUE_KEYS_TOO_MANY, "too many keys in one write set",
     "Take a barrier for it: next_cts."},
    {TIQUE_CLIENT_TOO_MUCH, "the client has as much as one may have",
     "End some of its transactions, or finish its timestamps."},
    {TIQUE_ROLE_TOO_MUCH, "the role has as many clients as one may have",
     "Close the database in some of its processes."},
    {TIQUE_LOCKS_FULL, "too many rows are locked",
     "Lock fewer, or end transactions that lock some."},
    {TIQUE_IN_USE, "it is in use",
     "Recover once, before the first transaction; fence only what is in "
     "doubt."},
    {TIQUE_BACKWARDS, "numbers would be handed out for the second time",
     "Recover behind everything that was handed out."},
    {TIQUE_UNKNOWN, "it is not known",
     "It was never handed out or is not active, is another's, or not all up "
     "to it is finished."},
};

__attribute__((noreturn)) static void
refuse(const char *function, int64_t status)
{
	if (status == TIQUE_FENCED)
		ereport(ERROR,
		        (errcode(CLIENT_GONE),
		         errmsg("tique.%s: fenced: the client's lease ran out",
		                function),
		         errhint("What it had under way is aborted; connect again.")));
	if (status == TIQUE_OVERDUE)
		ereport(ERROR,
		        (errcode(OVERDUE),
		         errmsg("tique.%s: the timestamp was not finished within its "
		                "time, and others went on without it",
		                function),
		         errhint("What has it is aborted; write less in one "
		                 "transaction.")));
	for (size_t i = 0; i < lengthof(refusals); i++)
		if (refusals[i].status == status)
			ereport(ERROR, (errcode(REFUSED),
			                errmsg("tique.%s: %s", function, refusals[i].what),
			                errhint("%s", refusals[i].hint)));
	elog(ERROR, "tique.%s: unexpected status " INT64_FORMAT, function,
	     (int64)status);
}

/* The result of one of the sequencer's functions, unless it refused. */
static int64
accepted(const char *function, int64_t result)
{
	if (result < 0)
		refuse(function, result);
	return result;
}

static void
need_recovery(const char *function)
{
	keeper_attach();
	if (!keeper_is_recovered())
		ereport(ERROR, (errcode(NOT_RECOVERED),
		                errmsg("tique.%s: recovery has not run since the "
		                       "server started",
		                       function),
		                errhint("Open the database with tique, which does "
		                        "it.")));
}

static int64_t
nanoseconds(int64_t milliseconds)
{
	if (milliseconds > INT64_MAX / NANOSECONDS_PER_MILLISECOND)
		return INT64_MAX;
	return Max(milliseconds, 0) * NANOSECONDS_PER_MILLISECOND;
}

/* A row of a bigint and of another bigint or several, made once. */
static TupleDesc
row_type(TupleDesc *kept, const char *first, const char *second, Oid type)
{
	if (!*kept) {
		MemoryContext before = MemoryContextSwitchTo(TopMemoryContext);
		TupleDesc made = CreateTemplateTupleDesc(2);

		TupleDescInitEntry(made, 1, first, INT8OID, -1, 0);
		TupleDescInitEntry(made, 2, second, type, -1, 0);
		*kept = BlessTupleDesc(made);
		MemoryContextSwitchTo(before);
	}
	return *kept;
}

static Datum
row(TupleDesc type, Datum first, Datum second)
{
	Datum values[] = {first, second};
	bool nulls[] = {false, false};

	return HeapTupleGetDatum(heap_form_tuple(type, values, nulls));
}

static ArrayType *
array_of(const int64_t *numbers, int64_t count)
{
	Datum *values;

	if (count == 0)
		return construct_empty_array(INT8OID);
	values = palloc(count * sizeof *values);
	for (int64_t i = 0; i < count; i++)
		values[i] = Int64GetDatum(numbers[i]);
	return construct_array(values, (int)count, INT8OID, sizeof(int64),
	                       FLOAT8PASSBYVAL, TYPALIGN_DOUBLE);
}

FUNCTION(ready)
{
	keeper_attach();
	PG_RETURN_BOOL(keeper_is_recovered());
}

FUNCTION(recover)
{
	int64_t sts = PG_GETARG_INT64(0);
	/* No earlier life's transaction ids are stored, but a clock is ahead of them:
	 * fewer than one in a microsecond was handed out. */
	int64_t txid = GetCurrentTimestamp();

	if (RecoveryInProgress())
		ereport(ERROR,
		        (errcode(REFUSED),
		         errmsg("tique.recover: the server is a standby"),
		         errhint("What it has may not be all yet; promote it first.")));
	if (sts < 0 || sts >= LARGEST_START)
		refuse("recover", TIQUE_UNKNOWN);
	keeper_attach();
	accepted("recover", keeper_recover(sts, Max(sts, txid)));
	PG_RETURN_VOID();
}

FUNCTION(join_client)
{
	need_recovery("join_client");
	PG_RETURN_INT64(accepted("join_client",
	                         tique_join(HERE, nanoseconds(PG_GETARG_INT64(0)))));
}

FUNCTION(join_client_as)
{
	need_recovery("join_client");
	PG_RETURN_INT64(
	    accepted("join_client", tique_join_as(HERE, nanoseconds(PG_GETARG_INT64(0)),
	                                          PG_GETARG_OID(1))));
}

FUNCTION(renew_client)
{
	need_recovery("renew_client");
	accepted("renew_client", tique_renew(HERE, PG_GETARG_INT64(0),
	                                     nanoseconds(PG_GETARG_INT64(1))));
	PG_RETURN_VOID();
}

FUNCTION(leave_client)
{
	need_recovery("leave_client");
	accepted("leave_client", tique_leave(HERE, PG_GETARG_INT64(0)));
	PG_RETURN_VOID();
}

FUNCTION(begin_transaction)
{
	static TupleDesc kept;
	TupleDesc type;
	struct tique_transaction begun;

	need_recovery("begin_transaction");
	type = row_type(&kept, "txid", "sts", INT8OID);
	begun = tique_begin_for(HERE, PG_GETARG_INT64(0));
	accepted("begin_transaction", begun.txid);
	return row(type, Int64GetDatum(begun.txid), Int64GetDatum(begun.sts));
}

FUNCTION(advance_transaction)
{
	need_recovery("advance_transaction");
	accepted("advance_transaction",
	         tique_advance_for(HERE, PG_GETARG_INT64(0), PG_GETARG_INT64(1),
	                           PG_GETARG_INT64(2)));
	PG_RETURN_VOID();
}

FUNCTION(end_transaction)
{
	need_recovery("end_transaction");
	accepted("end_transaction",
	         tique_end_for(HERE, PG_GETARG_INT64(0), PG_GETARG_INT64(1)));
	PG_RETURN_VOID();
}

/* The sts of a client, and the fences that are there at the same moment, for which
 * there has to be room before. */
static int64_t
sts_and_fences(tique_client client, int64_t **fences, int64_t *count)
{
	int64_t room = 0;

	*fences = NULL;
	for (;;) {
		int status;
		struct sequencer *sequencer = tique_enter_for(HERE, client, &status);
		int64_t sts;

		if (!sequencer)
			return status;
		sts = sequencer->sts;
		*count = sequencer->fence_count;
		if (*count > 0 && *count <= room)
			memcpy(*fences, sequencer->fences, *count * sizeof **fences);
		tique_exit(sequencer);
		if (*count <= room)
			return sts;
		room = *count;
		*fences = palloc(room * sizeof **fences);
	}
}

FUNCTION(sts_for)
{
	static TupleDesc kept;
	TupleDesc type;
	int64_t *fences;
	int64_t count = 0;
	int64_t sts;

	need_recovery("sts_for");
	type = row_type(&kept, "sts", "fences", INT8ARRAYOID);
	sts = accepted("sts_for",
	               sts_and_fences(PG_GETARG_INT64(0), &fences, &count));
	return row(type, Int64GetDatum(sts),
	           PointerGetDatum(array_of(fences, count)));
}

/* A timestamp that ends with this transaction; or, so that one statement can ask for
 * several, the winner's negated. */
FUNCTION(certify)
{
	int64_t after = PG_GETARG_INT64(1);
	bytea *text = PG_GETARG_BYTEA_PP(2);
	int64_t bytes = VARSIZE_ANY_EXHDR(text);
	const struct tique_key *keys =
	    (const struct tique_key *)VARDATA_ANY(text);
	struct sequencer *sequencer;
	int64_t winner = 0;
	int64_t cts;
	int status;

	need_recovery("certify");
	if (bytes % sizeof *keys != 0)
		ereport(ERROR, (errcode(REFUSED),
		                errmsg("tique.certify: a key has 16 bytes"),
		                errhint("Pass the keys one after the other.")));
	transaction_prepare();
	sequencer = tique_enter_for(HERE, PG_GETARG_INT64(0), &status);
	if (!sequencer)
		refuse("certify", status);
	cts = tique_certify(sequencer, NOBODY, after, keys, bytes / sizeof *keys,
	                    &winner);
	if (cts > 0)
		transaction_own(cts);
	tique_exit(sequencer);
	if (cts == TIQUE_CONFLICT)
		PG_RETURN_INT64(-winner);
	PG_RETURN_INT64(accepted("certify", cts));
}

FUNCTION(next_cts)
{
	need_recovery("next_cts");
	PG_RETURN_INT64(
	    accepted("next_cts", tique_next_cts_for(HERE, PG_GETARG_INT64(0))));
}

FUNCTION(next_cts_within)
{
	need_recovery("next_cts");
	PG_RETURN_INT64(
	    accepted("next_cts", tique_next_cts_within(HERE, PG_GETARG_INT64(0),
	                                               nanoseconds(PG_GETARG_INT64(1)))));
}

FUNCTION(holds)
{
	need_recovery("holds");
	PG_RETURN_BOOL(accepted(
	    "holds", tique_holds(HERE, PG_GETARG_INT64(0), PG_GETARG_INT64(1))));
}

FUNCTION(limit_transaction)
{
	keeper_attach();
	transaction_limit(Min(Max(PG_GETARG_INT64(0), 1), INT32_MAX));
	PG_RETURN_VOID();
}

FUNCTION(finish)
{
	need_recovery("finish");
	accepted("finish",
	         tique_finish_for(HERE, PG_GETARG_INT64(0), PG_GETARG_INT64(1)));
	PG_RETURN_INT64(tique_sts(HERE));
}

FUNCTION(abort)
{
	need_recovery("abort");
	accepted("abort",
	         tique_abort_for(HERE, PG_GETARG_INT64(0), PG_GETARG_INT64(1)));
	PG_RETURN_INT64(tique_sts(HERE));
}

FUNCTION(wait)
{
	need_recovery("wait");
	PG_RETURN_BOOL(tique_wait(HERE, PG_GETARG_INT64(0),
	                          nanoseconds(PG_GETARG_INT64(1))) == 1);
}

FUNCTION(sts)
{
	need_recovery("sts");
	PG_RETURN_INT64(tique_sts(HERE));
}

FUNCTION(cts)
{
	need_recovery("cts");
	PG_RETURN_INT64(tique_cts(HERE));
}

FUNCTION(lambda)
{
	need_recovery("lambda");
	PG_RETURN_INT64(tique_lambda(HERE));
}

FUNCTION(clients)
{
	need_recovery("clients");
	PG_RETURN_INT64(tique_client_count(HERE));
}

FUNCTION(active)
{
	need_recovery("active");
	PG_RETURN_INT64(tique_active_count(HERE));
}

FUNCTION(keys)
{
	need_recovery("keys");
	PG_RETURN_INT64(tique_key_count(HERE));
}

FUNCTION(doubtful)
{
	need_recovery("doubtful");
	PG_RETURN_INT64(tique_doubtful(HERE));
}

FUNCTION(doubts)
{
	int64_t most = Min(Max(PG_GETARG_INT32(0), 0), TIQUE_RING_CAPACITY);
	int64_t *stamps = palloc((most + 1) * sizeof *stamps);
	int64_t count;

	need_recovery("doubts");
	count = accepted("doubts", tique_doubts(HERE, stamps, most));
	PG_RETURN_ARRAYTYPE_P(array_of(stamps, Min(count, most)));
}

FUNCTION(forget_fences)
{
	need_recovery("forget_fences");
	PG_RETURN_INT64(accepted("forget_fences",
	                         tique_forget_fences(HERE, PG_GETARG_INT64(0))));
}

FUNCTION(fence)
{
	need_recovery("fence");
	accepted("fence", tique_fence(HERE, PG_GETARG_INT64(0)));
	PG_RETURN_VOID();
}

/* Row locks. */

static int64_t *
numbers_of(const char *function, ArrayType *array, int64_t *count)
{
	if (ARR_NDIM(array) > 1 || array_contains_nulls(array))
		refuse(function, TIQUE_UNKNOWN);
	*count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	return (int64_t *)ARR_DATA_PTR(array);
}

FUNCTION(open_locker)
{
	need_recovery("open_locker");
	PG_RETURN_INT64(
	    accepted("open_locker", tique_open_locker(HERE, PG_GETARG_INT64(0))));
}

FUNCTION(close_locker)
{
	need_recovery("close_locker");
	accepted("close_locker",
	         tique_close_locker(HERE, PG_GETARG_INT64(0), PG_GETARG_INT64(1)));
	PG_RETURN_VOID();
}

FUNCTION(interrupt_locker)
{
	need_recovery("interrupt_locker");
	accepted("interrupt_locker", tique_interrupt_locker(HERE, PG_GETARG_INT64(0),
	                                                    PG_GETARG_INT64(1)));
	PG_RETURN_VOID();
}

/* The status of a wait that ended without the lock is no error: the client asks on. */
FUNCTION(lock)
{
	int64_t count;
	int64_t *numbers = numbers_of("lock", PG_GETARG_ARRAYTYPE_P(4), &count);
	int64_t found;

	need_recovery("lock");
	found = tique_lock(
	    HERE, PG_GETARG_INT64(0), PG_GETARG_INT64(1), numbers, count,
	    PG_GETARG_BOOL(2),
	    nanoseconds(Min(PG_GETARG_INT64(3), LONGEST_WAIT_MILLISECONDS)));
	if (found == TIQUE_UNKNOWN || found == TIQUE_DEADLOCK ||
	    found == TIQUE_INTERRUPTED)
		PG_RETURN_INT64(found);
	PG_RETURN_INT64(accepted("lock", found));
}

FUNCTION(unlock)
{
	int64_t count;
	int64_t *numbers = numbers_of("unlock", PG_GETARG_ARRAYTYPE_P(3), &count);

	need_recovery("unlock");
	accepted("unlock",
	         tique_unlock(HERE, PG_GETARG_INT64(0), PG_GETARG_INT64(1), numbers,
	                      count, PG_GETARG_BOOL(2)));
	PG_RETURN_VOID();
}

FUNCTION(expect_free)
{
	int64_t count;
	int64_t *numbers = numbers_of("expect_free", PG_GETARG_ARRAYTYPE_P(0), &count);
	int64_t locked[ROOM_FOR_LOCKED];
	int64_t met;
	StringInfoData text;

	need_recovery("expect_free");
	met = accepted("expect_free",
	               tique_locked(HERE, numbers, count, locked, ROOM_FOR_LOCKED));
	if (met == 0)
		PG_RETURN_VOID();
	initStringInfo(&text);
	for (int64_t i = 0; i < met; i++)
		appendStringInfo(&text, " " INT64_FORMAT, (int64)locked[i]);
	ereport(ERROR, (errcode(LOCKED), errmsg("tique.expect_free: locked%s", text.data),
	                errhint("Wait for these locks, then try again.")));
}
