#include "state.h"

#include <string.h>

static struct write *
write_at(struct sequencer *sequencer, int64_t number)
{
	return &sequencer->writes[number % TIQUE_KEY_CAPACITY];
}

/* Keys with modes: the first bytes, the mode, and eight bytes that are the key. */
static const uint8_t moded[] = {0, 't', 'i', 'q', 'u', 'e', 0};
enum mode { PLAIN, SHARED = 'S', EXCLUSIVE = 'X' };

static enum mode
mode_of(const struct tique_key *key)
{
	uint8_t mode = key->bytes[sizeof moded];

	if (memcmp(key->bytes, moded, sizeof moded) != 0)
		return PLAIN;
	return mode == SHARED || mode == EXCLUSIVE ? (enum mode)mode : PLAIN;
}

bool
tique_has_mode(const struct tique_key *key)
{
	return mode_of(key) != PLAIN;
}

static bool
collide(const struct tique_key *one, const struct tique_key *other)
{
	const size_t tail = sizeof moded + 1;

	if (memcmp(one, other, sizeof *one) == 0)
		return mode_of(one) != SHARED;
	return mode_of(one) != PLAIN && mode_of(other) != PLAIN &&
	       memcmp(one->bytes + tail, other->bytes + tail,
	              sizeof one->bytes - tail) == 0;
}

/* Multilinear hashing of a key's halves modulo 2^128, of which the highest bits count
 * (Dietzfelbinger, 1996). Any two keys that are chosen without knowledge of the secret
 * share a bucket as seldom as two random ones. */
static int64_t *
write_bucket(struct sequencer *sequencer, const struct tique_key *key)
{
	const struct secret *secret = &sequencer->secret;
	struct tique_key either = *key;
	uint64_t halves[2];
	wide_uint hash;

	/* Both modes of a key are in one bucket. */
	if (mode_of(key) != PLAIN)
		either.bytes[sizeof moded] = SHARED;
	memcpy(halves, either.bytes, sizeof halves);
	hash = secret->first * halves[0] + secret->second * halves[1] + secret->third;
	return &sequencer
	            ->write_buckets[(uint64_t)(hash >> 96) * TIQUE_KEY_CAPACITY >> 32];
}

/* The timestamp of a write, also of one that was taken back. */
static int64_t
stamp(const struct write *write)
{
	return write->cts < 0 ? -write->cts : write->cts;
}

/* The last timestamp after sts that wrote the key, or 0. A bucket leads from the last
 * write to the first, so a write that sts covers ends the search; and so does a number
 * that is forgotten, whose place another write may have by now. A write that was taken
 * back is unlinked here, so that it is met once. Where too many others are in the way,
 * the newest of them counts as the key's. */
static int64_t
last_write(struct sequencer *sequencer, const struct tique_key *key, int64_t sts)
{
	int64_t *link = write_bucket(sequencer, key);
	int64_t newest = 0;
	int probes = 0;

	while (*link > sequencer->forgotten) {
		struct write *write = write_at(sequencer, *link);

		if (stamp(write) <= sts)
			return 0;
		if (write->cts < 0) {
			*link = write->older;
			continue;
		}
		if (collide(&write->key, key))
			return write->cts;
		if (newest == 0)
			newest = write->cts;
		if (++probes >= TIQUE_PROBES)
			return newest;
		link = &write->older;
	}
	return 0;
}

/* Makes room for so many more writes by forgetting the oldest; or returns false, and
 * forgets none, when sts does not cover all of these. */
static bool
make_room(struct sequencer *sequencer, int64_t count)
{
	int64_t last = sequencer->written + count - TIQUE_KEY_CAPACITY;
	int64_t cts;

	if (last <= sequencer->forgotten)
		return true;
	if (count > TIQUE_KEY_CAPACITY)
		return false;
	cts = stamp(write_at(sequencer, last));
	if (cts > sequencer->sts)
		return false;
	if (cts > sequencer->barrier)
		sequencer->barrier = cts;
	sequencer->forgotten = last;
	return true;
}

static void
write_down(struct sequencer *sequencer, const struct tique_key *key, int64_t cts)
{
	struct write *write = write_at(sequencer, ++sequencer->written);
	int64_t *head = write_bucket(sequencer, key);

	write->key = *key;
	write->cts = cts;
	write->older = *head;
	*head = sequencer->written;
}

void
tique_revert_writes(struct sequencer *sequencer, int64_t cts)
{
	int64_t low = sequencer->forgotten + 1;
	int64_t high = sequencer->written + 1;

	/* A timestamp's writes are one after the other. */
	while (low < high) {
		int64_t middle = low + (high - low) / 2;

		if (stamp(write_at(sequencer, middle)) < cts)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low <= sequencer->written; low++) {
		struct write *write = write_at(sequencer, low);

		if (stamp(write) != cts)
			break;
		write->cts = -cts;
	}
}

int64_t
tique_certify(struct sequencer *sequencer, tique_client owner, int64_t sts,
              const struct tique_key *keys, int64_t count, int64_t *winner)
{
	int64_t cts;

	/* No client has certified up to a timestamp that is not finished. */
	if (sts < 0 || sts > sequencer->sts || count < 0)
		return TIQUE_UNKNOWN;
	if (count > TIQUE_KEYS_PER_CALL)
		return TIQUE_KEYS_TOO_MANY;
	*winner = sequencer->barrier > sts ? sequencer->barrier : 0;
	for (int64_t i = 0; i < count && *winner == 0; i++)
		*winner = last_write(sequencer, &keys[i], sts);
	if (*winner > 0)
		return TIQUE_CONFLICT;
	cts = tique_take(sequencer, owner);
	if (cts < 0)
		return cts;
	if (make_room(sequencer, count))
		for (int64_t i = 0; i < count; i++)
			write_down(sequencer, &keys[i], cts);
	else
		sequencer->barrier = cts;
	return cts;
}

int
tique_abort_for(tique_handle handle, tique_client client, int64_t cts)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);
	const struct client *aborter;

	if (!sequencer)
		return status;
	if (tique_is_under_way(sequencer, client, cts))
		tique_revert_writes(sequencer, cts);
	aborter = tique_find_client(sequencer, client);
	/* A timestamp that was taken away is aborted by the fence. */
	if (aborter->is_overdue && aborter->limited == cts)
		status = TIQUE_OK;
	else
		status = tique_settle(sequencer, client, cts);
	tique_exit(sequencer);
	return status;
}

int64_t
tique_key_count(tique_handle handle)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t count;

	if (!sequencer)
		return TIQUE_CLOSED;
	count = sequencer->written - sequencer->forgotten;
	tique_exit(sequencer);
	return count;
}
