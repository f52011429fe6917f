/*
 * MonetDB's skin of the sequencer: a MAL module "tique" over one sequencer, the
 * server's own, for the SQL functions that tique_udfs.monetdb declares.
 *
 * The server opens the library before it serves, and the functions are registered
 * then, unless it is of a release that is not known.
 *
 * The sequencer starts empty with every start of the server, and the stored state
 * says where it has to go on. So until tique.recover was called, every other call is
 * refused; and tique.incarnation tells one start of the server from the next.
 *
 * A function that changes something does it in a client's name, and a client's
 * number cannot be guessed (P11). recover and fence need none: like every function
 * only the administrator may call them until they are granted.
 */
#define _POSIX_C_SOURCE 200809L

#include "mal.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../core/sequencer.h"

#define MOST_PARAMETERS 5
#define LONGEST_WAIT_MILLISECONDS 1000
#define SLICE_MILLISECONDS 100
#define MILLISECOND 1000000
#define NUMBER_LENGTH 21
#define KEY_BYTES ((int64_t)sizeof(struct tique_key))
#define LOCKS_TOLD 100

static tique_handle handle;
static lng incarnation;
static atomic_bool recovered;

static char *
failure(const char *function, const char *sqlstate, const char *what)
{
	char message[256];

	snprintf(message, sizeof message, "MALException:tique.%s:%s!tique.%s: %s",
	         function, sqlstate, function, what);
	return GDKstrdup(message);
}

static char *
refusal(const char *function, lng status)
{
	switch (status) {
	case TIQUE_CLOSED:
		return failure(function, "57P01", "the sequencer is closed");
	case TIQUE_NO_MEMORY:
		return failure(function, "HY013", "no memory for the sequencer");
	case TIQUE_RING_FULL:
		return failure(function, "53400",
		               "too many timestamps wait for an unfinished one");
	case TIQUE_SNAPSHOTS_FULL:
		return failure(function, "53400", "too many transactions are active");
	case TIQUE_CLIENTS_FULL:
		return failure(function, "53400", "too many clients have joined");
	case TIQUE_FENCES_FULL:
		return failure(function, "53400", "too many fences are there");
	case TIQUE_KEYS_TOO_MANY:
		return failure(function, "54000", "too many keys in one write set");
	case TIQUE_CLIENT_TOO_MUCH:
		return failure(function, "53400",
		               "the client has as much as one may have; end some");
	case TIQUE_LOCKS_FULL:
		return failure(function, "53400", "there is no room for more row locks");
	case TIQUE_IN_USE:
		return failure(function, "55006", "it is in use");
	case TIQUE_BACKWARDS:
		return failure(function, "22003",
		               "numbers would be handed out for the second time");
	case TIQUE_FENCED:
		return failure(function, "08006", "fenced: the client's lease ran out");
	default:
		return failure(function, "02000", "it is not known");
	}
}

/* The result that a function of the sequencer gave, or why it gave none. */
static char *
answer(const char *function, lng *result, lng found)
{
	if (!atomic_load(&recovered))
		return failure(function, "55000",
		               "recovery has not run since the server started");
	if (found < 0)
		return refusal(function, found);
	*result = found;
	return NULL;
}

static char *
mal_incarnation(lng *result)
{
	*result = incarnation;
	return NULL;
}

static char *
mal_recover(lng *result, const lng *sts, const lng *txid)
{
	int status = *sts < 0 || *txid < 0 ? TIQUE_UNKNOWN
	                                   : tique_recover(handle, *sts, *txid);

	if (status != TIQUE_OK)
		return refusal("recover", status);
	atomic_store(&recovered, true);
	*result = *sts;
	return NULL;
}

/* Milliseconds as nanoseconds, or a negative number for a value that is no time. */
static lng
nanoseconds(lng milliseconds)
{
	if (milliseconds < 0)
		return -1;
	return milliseconds < INT64_MAX / MILLISECOND ? milliseconds * MILLISECOND
	                                              : INT64_MAX;
}

static char *
mal_join_client(lng *result, const lng *milliseconds)
{
	lng lease = nanoseconds(*milliseconds);

	if (lease < 0)
		return refusal("join_client", TIQUE_UNKNOWN);
	/* No client may join before recovery: it would be in its way. */
	if (!atomic_load(&recovered))
		return answer("join_client", result, 0);
	return answer("join_client", result, tique_join(handle, lease));
}

static char *
mal_renew_client(lng *result, const lng *client, const lng *milliseconds)
{
	lng lease = nanoseconds(*milliseconds);

	return answer("renew_client", result,
	              lease < 0 ? TIQUE_UNKNOWN
	                        : tique_renew(handle, *client, lease));
}

static char *
mal_leave_client(lng *result, const lng *client)
{
	return answer("leave_client", result, tique_leave(handle, *client));
}

/* The text, and the fences that a snapshot at sts covers. They are read after it was
 * taken, so that all of them are there. */
static char *
with_fences(const char *function, char **result, const char *text, lng sts)
{
	int64_t count = tique_fences(handle, NULL, 0);
	int64_t room = count > 0 ? count : 1;
	int64_t *fences = malloc((size_t)room * sizeof *fences);
	char *whole = malloc(strlen(text) + (size_t)(room + 1) * NUMBER_LENGTH);

	*result = NULL;
	if (fences && whole) {
		int length = sprintf(whole, "%s", text);

		tique_fences(handle, fences, count);
		for (int64_t i = 0; i < count && fences[i] <= sts; i++)
			length += sprintf(whole + length, " %" PRId64, fences[i]);
		*result = GDKstrdup(whole);
	}
	free(fences);
	free(whole);
	return *result ? NULL : refusal(function, TIQUE_NO_MEMORY);
}

/* "txid sts fence fence ..." */
static char *
mal_begin_transaction(char **result, const lng *client)
{
	struct tique_transaction begun = tique_begin_for(handle, *client);
	char text[2 * NUMBER_LENGTH];
	lng ignored;
	char *failed = answer("begin_transaction", &ignored, begun.txid);

	if (failed)
		return failed;
	sprintf(text, "%" PRId64 " %" PRId64, begun.txid, begun.sts);
	failed = with_fences("begin_transaction", result, text, begun.sts);
	if (failed)
		tique_end_for(handle, *client, begun.txid);
	return failed;
}

/* "sts fence fence ..." */
static char *
mal_sts_for(char **result, const lng *client)
{
	lng sts;
	char *failed = answer("sts_for", &sts, tique_sts_for(handle, *client));
	char text[NUMBER_LENGTH];

	if (failed)
		return failed;
	sprintf(text, "%" PRId64, sts);
	return with_fences("sts_for", result, text, sts);
}

static char *
mal_advance_transaction(lng *result, const lng *client, const lng *txid,
                        const lng *sts)
{
	return answer("advance_transaction", result,
	              tique_advance_for(handle, *client, *txid, *sts));
}

static char *
mal_end_transaction(lng *result, const lng *client, const lng *txid)
{
	return answer("end_transaction", result,
	              tique_end_for(handle, *client, *txid));
}

static char *
mal_next_cts(lng *result, const lng *client)
{
	return answer("next_cts", result, tique_next_cts_for(handle, *client));
}

/* Returns sts afterwards: when it covers cts, there is nothing to wait for. */
static char *
mal_finish(lng *result, const lng *client, const lng *cts)
{
	int status = tique_finish_for(handle, *client, *cts);

	return answer("finish", result,
	              status == TIQUE_OK ? tique_sts(handle) : status);
}

static int
digit(char character)
{
	if (character >= '0' && character <= '9')
		return character - '0';
	if (character >= 'a' && character <= 'f')
		return character - 'a' + 10;
	return -1;
}

/* Bytes from two hexadecimal digits each; returns how many of so large units they are,
 * or a negative number. */
static lng
read_hexadecimal(const char *text, uint8_t *bytes, lng unit)
{
	lng count = 0;

	for (; text[0]; text += 2, count++) {
		int high = digit(text[0]);
		int low = digit(text[1]);

		if (high < 0 || low < 0)
			return -1;
		bytes[count] = (uint8_t)(high << 4 | low);
	}
	return count % unit == 0 ? count / unit : -1;
}

/* Certifies keys from their text. */
static char *
certify(const char *function, const char *text, lng client, lng locker, lng sts,
        lng *cts, lng *winner, int64_t *locked)
{
	struct tique_key *keys = malloc(strlen(text) / 2 + (size_t)KEY_BYTES);
	lng count;

	if (!keys)
		return refusal(function, TIQUE_NO_MEMORY);
	count = read_hexadecimal(text, (uint8_t *)keys, KEY_BYTES);
	if (count >= 0)
		*cts = tique_certify_for(handle, client, locker, sts, keys, count,
		                         winner, locked, LOCKS_TOLD);
	free(keys);
	return count >= 0 ? NULL
	                  : failure(function, "22023",
	                            "a key has 32 hexadecimal digits, in lower case");
}

/* A commit timestamp; or, so that one statement can ask for several, the winner's
 * negated where another transaction committed a key first. Older releases call it,
 * for which a key that is locked is one that was committed just now. */
static char *
mal_certify(lng *result, const lng *client, const lng *sts,
            const char *const *text)
{
	int64_t locked[LOCKS_TOLD];
	lng winner = 0;
	lng cts = 0;
	char *failed = certify("certify", *text, *client, 0, *sts, &cts, &winner, locked);

	if (failed)
		return failed;
	if (cts == TIQUE_LOCKED)
		winner = tique_sts(handle);
	else if (cts != TIQUE_CONFLICT)
		return answer("certify", result, cts);
	*result = -winner;
	return NULL;
}

static char *
say(const char *function, char **result, const char *text)
{
	*result = GDKstrdup(text);
	return *result ? NULL : refusal(function, TIQUE_NO_MEMORY);
}

/* As certify, for the locker of a transaction, or 0; "locked number number ..." where
 * others have locked keys. */
static char *
mal_certify_as(char **result, const lng *client, const lng *locker, const lng *sts,
               const char *const *text)
{
	int64_t locked[LOCKS_TOLD];
	char whole[(LOCKS_TOLD + 1) * NUMBER_LENGTH];
	lng winner = 0;
	lng cts = 0;
	char *failed = certify("certify_as", *text, *client, *locker, *sts, &cts, &winner,
	                       locked);

	if (failed)
		return failed;
	if (cts == TIQUE_LOCKED) {
		int length = sprintf(whole, "locked");

		for (lng i = 0; i < winner; i++)
			length += sprintf(whole + length, " %" PRId64, locked[i]);
		return say("certify_as", result, whole);
	}
	if (cts == TIQUE_CONFLICT)
		cts = -winner;
	else {
		failed = answer("certify_as", &cts, cts);
		if (failed)
			return failed;
	}
	sprintf(whole, "%" PRId64, cts);
	return say("certify_as", result, whole);
}

static char *
mal_open_locker(lng *result, const lng *client)
{
	return answer("open_locker", result, tique_open_locker(handle, *client));
}

static char *
mal_close_locker(lng *result, const lng *client, const lng *locker)
{
	return answer("close_locker", result,
	              tique_close_locker(handle, *client, *locker));
}

static char *
mal_interrupt_locker(lng *result, const lng *client, const lng *locker)
{
	return answer("interrupt_locker", result,
	              tique_interrupt_locker(handle, *client, *locker));
}

/* The numbers of a text, big-endian, for free; or NULL, and what is wrong. */
static int64_t *
read_numbers(const char *function, const char *text, lng *count, char **failed)
{
	size_t length = strlen(text) / 2;
	uint8_t *bytes = malloc(length + sizeof(int64_t));
	int64_t *numbers = malloc(length + sizeof(int64_t));

	*failed = NULL;
	*count = -1;
	if (!bytes || !numbers)
		*failed = refusal(function, TIQUE_NO_MEMORY);
	else {
		*count = read_hexadecimal(text, bytes, sizeof(int64_t));
		if (*count < 0)
			*failed = failure(function, "22023",
			                  "a number has 16 hexadecimal digits, in lower case");
	}
	for (lng i = 0; i < *count; i++) {
		uint64_t number = 0;

		for (size_t j = 0; j < sizeof number; j++)
			number = number << 8 | bytes[(size_t)i * sizeof number + j];
		numbers[i] = (int64_t)number;
	}
	free(bytes);
	if (!*failed)
		return numbers;
	free(numbers);
	return NULL;
}

static bool
is_mode(lng shared)
{
	return shared == 0 || shared == 1;
}

/* How many of the first numbers were locked; or "deadlock", "interrupted", or "gone"
 * where the client has no such locker. It waits a second at most. */
static char *
mal_lock(char **result, const lng *client, const lng *locker, const lng *shared,
         const lng *milliseconds, const char *const *text)
{
	lng left = *milliseconds;
	char word[NUMBER_LENGTH];
	char *failed;
	lng count;
	int64_t *numbers;
	lng found;

	if (left < 0 || !is_mode(*shared))
		return refusal("lock", TIQUE_UNKNOWN);
	numbers = read_numbers("lock", *text, &count, &failed);
	if (failed)
		return failed;
	if (left > LONGEST_WAIT_MILLISECONDS)
		left = LONGEST_WAIT_MILLISECONDS;
	do {
		lng slice = left < SLICE_MILLISECONDS ? left : SLICE_MILLISECONDS;

		found = tique_lock(handle, *client, *locker, numbers, count, *shared == 1,
		                   nanoseconds(slice));
		left -= slice;
	} while (found >= 0 && found < count && left > 0 && !GDKexiting());
	free(numbers);
	if (atomic_load(&recovered)) {
		if (found == TIQUE_DEADLOCK)
			return say("lock", result, "deadlock");
		if (found == TIQUE_INTERRUPTED)
			return say("lock", result, "interrupted");
		if (found == TIQUE_UNKNOWN)
			return say("lock", result, "gone");
	}
	failed = answer("lock", &found, found);
	if (failed)
		return failed;
	sprintf(word, "%" PRId64, found);
	return say("lock", result, word);
}

static char *
mal_unlock(lng *result, const lng *client, const lng *locker, const lng *shared,
           const char *const *text)
{
	char *failed;
	lng count;
	int64_t *numbers;
	int status;

	if (!is_mode(*shared))
		return refusal("unlock", TIQUE_UNKNOWN);
	numbers = read_numbers("unlock", *text, &count, &failed);
	if (failed)
		return failed;
	status = tique_unlock(handle, *client, *locker, numbers, count, *shared == 1);
	free(numbers);
	return answer("unlock", result, status);
}

static char *
mal_locks(lng *result)
{
	return answer("locks", result, tique_lock_count(handle));
}

static char *
mal_abort(lng *result, const lng *client, const lng *cts)
{
	return answer("abort", result, tique_abort_for(handle, *client, *cts));
}

/* 1 when sts covers cts; 0 after the time, a second at most, or when a doubtful
 * timestamp is in the way. */
static char *
mal_wait(lng *result, const lng *cts, const lng *milliseconds)
{
	lng left = *milliseconds;
	lng covered = 0;

	if (*cts == LNG_NULL || left < 0)
		return refusal("wait", TIQUE_UNKNOWN);
	if (left > LONGEST_WAIT_MILLISECONDS)
		left = LONGEST_WAIT_MILLISECONDS;
	do {
		lng slice = left < SLICE_MILLISECONDS ? left : SLICE_MILLISECONDS;
		lng doubtful;

		covered = tique_wait(handle, *cts, nanoseconds(slice));
		doubtful = tique_doubtful(handle);
		if (doubtful > 0 && doubtful <= *cts)
			break;
		left -= slice;
	} while (covered == 0 && left > 0 && !GDKexiting());
	return answer("wait", result, covered);
}

static char *
mal_sts(lng *result)
{
	return answer("sts", result, tique_sts(handle));
}

static char *
mal_cts(lng *result)
{
	return answer("cts", result, tique_cts(handle));
}

static char *
mal_lambda(lng *result)
{
	return answer("lambda", result, tique_lambda(handle));
}

static char *
mal_active(lng *result)
{
	return answer("active", result, tique_active_count(handle));
}

static char *
mal_clients(lng *result)
{
	return answer("clients", result, tique_client_count(handle));
}

static char *
mal_keys(lng *result)
{
	return answer("keys", result, tique_key_count(handle));
}

static char *
mal_doubtful(lng *result)
{
	return answer("doubtful", result, tique_doubtful(handle));
}

static char *
mal_fence(lng *result, const lng *cts)
{
	return answer("fence", result, tique_fence(handle, *cts));
}

#define FUNCTION(name, result, ...)                                            \
	{#name, (void *)mal_##name, {result, __VA_ARGS__}}

/* Types as MAL names them: the result's, then the parameters'. */
static const struct {
	const char *name;
	void *implementation;
	const char *types[MOST_PARAMETERS + 2];
} functions[] = {
    FUNCTION(incarnation, "lng", NULL),
    FUNCTION(recover, "lng", "lng", "lng"),
    FUNCTION(join_client, "lng", "lng"),
    FUNCTION(renew_client, "lng", "lng", "lng"),
    FUNCTION(leave_client, "lng", "lng"),
    FUNCTION(begin_transaction, "str", "lng"),
    FUNCTION(advance_transaction, "lng", "lng", "lng", "lng"),
    FUNCTION(end_transaction, "lng", "lng", "lng"),
    FUNCTION(certify, "lng", "lng", "lng", "str"),
    FUNCTION(certify_as, "str", "lng", "lng", "lng", "str"),
    FUNCTION(next_cts, "lng", "lng"),
    FUNCTION(finish, "lng", "lng", "lng"),
    FUNCTION(sts_for, "str", "lng"),
    FUNCTION(abort, "lng", "lng", "lng"),
    FUNCTION(wait, "lng", "lng", "lng"),
    FUNCTION(sts, "lng", NULL),
    FUNCTION(cts, "lng", NULL),
    FUNCTION(lambda, "lng", NULL),
    FUNCTION(active, "lng", NULL),
    FUNCTION(clients, "lng", NULL),
    FUNCTION(keys, "lng", NULL),
    FUNCTION(doubtful, "lng", NULL),
    FUNCTION(fence, "lng", "lng"),
    FUNCTION(open_locker, "lng", "lng"),
    FUNCTION(close_locker, "lng", "lng", "lng"),
    FUNCTION(interrupt_locker, "lng", "lng", "lng"),
    FUNCTION(lock, "str", "lng", "lng", "lng", "lng", "str"),
    FUNCTION(unlock, "lng", "lng", "lng", "lng", "str"),
    FUNCTION(locks, "lng", NULL),
};

#define FUNCTIONS (sizeof functions / sizeof *functions)

/* Releases whose melFunction is the one declared here and which call a command with
 * nothing but pointers to its result and arguments. Later ones pass a client first. */
static const char *const releases[] = {"11.41", "11.43", "11.45", "11.47",
                                       "11.49", "11.51", "11.53"};

#define RELEASES (sizeof releases / sizeof *releases)

static bool
is_known(const char *version)
{
	for (size_t i = 0; i < RELEASES; i++) {
		size_t length = strlen(releases[i]);

		if (strncmp(version, releases[i], length) == 0 &&
		    version[length] == '.')
			return true;
	}
	return false;
}

static char *
start(void)
{
	for (size_t i = 0; i < FUNCTIONS; i++) {
		const char *name = functions[i].name;
		struct mal_type types[MOST_PARAMETERS + 1] = {{0}};
		int count = 0;

		for (; functions[i].types[count]; count++)
			types[count].number =
			    (uint16_t)ATOMindex(functions[i].types[count]);
		/* Types beyond `count` are not read. */
		if (melFunction(MAL_COMMAND, "tique", name,
		                functions[i].implementation, name, MAL_UNSAFE, "", 1,
		                count, types[0], types[1], types[2], types[3],
		                types[4], types[5]) != 0)
			return failure(name, "HY013", "it cannot be registered");
	}
	return NULL;
}

__attribute__((constructor)) static void
load(void)
{
	const char *version = GDKversion();
	struct timespec now;

	if (!is_known(version)) {
		fprintf(stderr,
		        "tique: MonetDB %s is none of those that the module knows (",
		        version);
		for (size_t i = 0; i < RELEASES; i++)
			fprintf(stderr, "%s%s", i ? ", " : "", releases[i]);
		fprintf(stderr, "); it was not loaded\n");
		return;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	incarnation = (lng)now.tv_sec * 1000000000 + now.tv_nsec;
	handle = tique_open();
	mal_module2("tique", NULL, NULL, start, NULL);
}
