#include "state.h"

#include <string.h>

static struct write *
write_at(struct sequencer *sequencer, int64_t number)
{
	return &sequencer->writes[number % TIQUE_KEY_CAPACITY];
}

static int64_t *
write_bucket(struct sequencer *sequencer, const struct tique_key *key)
{
	uint64_t halves[2];
	uint64_t hash;

	/* Keys should be hashes already, but nobody has to rely on it. */
	memcpy(halves, key->bytes, sizeof halves);
	hash = (halves[0] ^ halves[1]) * UINT64_C(0x9E3779B97F4A7C15);
	return &sequencer->write_buckets[(hash >> 32) % TIQUE_KEY_CAPACITY];
}

/* The last timestamp after sts that wrote the key, or 0. A bucket leads from the last
 * write to the first, so what sts covers ends the search; and so does a number that is
 * forgotten, whose place may be another one's by now. */
static int64_t
last_write(struct sequencer *sequencer, const struct tique_key *key, int64_t sts)
{
	int64_t number = *write_bucket(sequencer, key);

	while (number > sequencer->forgotten) {
		const struct write *write = write_at(sequencer, number);

		if (write->cts <= sts)
			return 0;
		if (memcmp(&write->key, key, sizeof *key) == 0)
			return write->cts;
		number = write->older;
	}
	return 0;
}

/* Room for so many more writes, where the oldest are forgotten; or false, and nothing
 * is, when sts does not cover all of these. */
static bool
make_room(struct sequencer *sequencer, int64_t count)
{
	int64_t last = sequencer->written + count - TIQUE_KEY_CAPACITY;
	int64_t cts;

	if (last <= sequencer->forgotten)
		return true;
	if (count > TIQUE_KEY_CAPACITY)
		return false;
	cts = write_at(sequencer, last)->cts;
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
	for (int64_t number = sequencer->written; number > sequencer->forgotten;
	     number--) {
		struct write *write = write_at(sequencer, number);
		int64_t *link;

		if (write->cts < cts)
			break;
		if (write->cts > cts)
			continue;
		link = write_bucket(sequencer, &write->key);
		while (*link != number)
			link = &write_at(sequencer, *link)->older;
		*link = write->older;
	}
}

int64_t
tique_certify(struct sequencer *sequencer, tique_client owner, int64_t sts,
              const struct tique_key *keys, int64_t count, int64_t *winner)
{
	int64_t cts;

	/* Nobody has certified what is not finished. */
	if (sts < 0 || sts > sequencer->sts || count < 0)
		return TIQUE_UNKNOWN;
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

int64_t
tique_certify_for(tique_handle handle, tique_client client, int64_t sts,
                  const struct tique_key *keys, int64_t count, int64_t *winner)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);
	int64_t cts;

	if (!sequencer)
		return status;
	cts = tique_certify(sequencer, client, sts, keys, count, winner);
	tique_exit(sequencer);
	return cts;
}

int
tique_abort_for(tique_handle handle, tique_client client, int64_t cts)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);

	if (!sequencer)
		return status;
	if (tique_is_under_way(sequencer, client, cts))
		tique_revert_writes(sequencer, cts);
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
