#include "state.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_WRITE_BUCKETS 1024
#define LONGEST_WRITE_SET (INT64_C(1) << 32)

static struct write **
write_bucket(struct sequencer *sequencer, const struct tique_key *key)
{
	uint64_t halves[2];
	uint64_t hash;

	/* Keys should be hashes already, but nobody has to rely on it. */
	memcpy(halves, key->bytes, sizeof halves);
	hash = (halves[0] ^ halves[1]) * UINT64_C(0x9E3779B97F4A7C15);
	return &sequencer->write_buckets[hash >> 32 & sequencer->write_mask];
}

static struct write *
find_write(struct sequencer *sequencer, const struct tique_key *key)
{
	struct write *write = *write_bucket(sequencer, key);

	while (write && memcmp(&write->key, key, sizeof *key) != 0)
		write = write->next_in_bucket;
	return write;
}

/* Drops what can refuse nobody: every snapshot that is active or will ever begin
 * covers it. What is under way is newer than that. */
static void
sweep(struct sequencer *sequencer)
{
	int64_t lambda = tique_oldest(sequencer);

	for (uint64_t i = 0; i <= sequencer->write_mask; i++) {
		struct write **link = &sequencer->write_buckets[i];

		while (*link) {
			struct write *write = *link;

			if (write->cts > lambda) {
				link = &write->next_in_bucket;
				continue;
			}
			*link = write->next_in_bucket;
			free(write);
			sequencer->write_count--;
		}
	}
}

/* Room for so many more writes; sweeps first, and grows when that did not help enough,
 * so that either is rare. Without memory the chains get longer and that is all. */
static bool
prepare(struct sequencer *sequencer, int64_t count)
{
	uint64_t needed = (uint64_t)(sequencer->write_count + count);
	uint64_t size = sequencer->write_mask + 1;
	struct write **old = sequencer->write_buckets;
	struct write **buckets;

	if (!old) {
		sequencer->write_buckets = calloc(FIRST_WRITE_BUCKETS, sizeof *old);
		sequencer->write_mask = FIRST_WRITE_BUCKETS - 1;
		return sequencer->write_buckets != NULL;
	}
	if (needed < size)
		return true;
	sweep(sequencer);
	if ((uint64_t)(sequencer->write_count + count) < size / 2)
		return true;
	buckets = calloc(size * 2, sizeof *buckets);
	if (!buckets)
		return true;
	sequencer->write_buckets = buckets;
	sequencer->write_mask = size * 2 - 1;
	for (uint64_t i = 0; i < size; i++)
		for (struct write *write = old[i], *next; write; write = next) {
			struct write **head = write_bucket(sequencer, &write->key);

			next = write->next_in_bucket;
			write->next_in_bucket = *head;
			*head = write;
		}
	free(old);
	return true;
}

static struct write *
enter_write(struct sequencer *sequencer, const struct tique_key *key)
{
	struct write *write = find_write(sequencer, key);
	struct write **head;

	if (write)
		return write;
	write = calloc(1, sizeof *write);
	if (!write)
		return NULL;
	write->key = *key;
	head = write_bucket(sequencer, key);
	write->next_in_bucket = *head;
	*head = write;
	sequencer->write_count++;
	return write;
}

void
tique_keep_writes(struct sequencer *sequencer, int64_t cts)
{
	struct write_set **set =
	    &sequencer->write_sets[cts % TIQUE_RING_CAPACITY];

	free(*set);
	*set = NULL;
}

void
tique_revert_writes(struct sequencer *sequencer, int64_t cts)
{
	struct write_set **set =
	    &sequencer->write_sets[cts % TIQUE_RING_CAPACITY];

	for (int64_t i = 0; *set && i < (*set)->count; i++)
		(*set)->writes[i]->cts = (*set)->writes[i]->previous;
	tique_keep_writes(sequencer, cts);
}

void
tique_forget_writes(struct sequencer *sequencer)
{
	for (int64_t i = 0; i < TIQUE_RING_CAPACITY; i++)
		free(sequencer->write_sets[i]);
	for (uint64_t i = 0; sequencer->write_buckets && i <= sequencer->write_mask;
	     i++)
		for (struct write *write = sequencer->write_buckets[i], *next; write;
		     write = next) {
			next = write->next_in_bucket;
			free(write);
		}
	free(sequencer->write_buckets);
}

static int64_t
certify(struct sequencer *sequencer, tique_client client, int64_t sts,
        const struct tique_key *keys, int64_t count, int64_t *winner)
{
	struct write_set *set;
	int64_t cts;

	if (sequencer->barrier > sts) {
		*winner = sequencer->barrier;
		return TIQUE_CONFLICT;
	}
	/* Before all else: it may free writes, of which nobody holds any now. */
	if (!prepare(sequencer, count))
		return TIQUE_NO_MEMORY;
	for (int64_t i = 0; i < count; i++) {
		const struct write *write = find_write(sequencer, &keys[i]);

		if (write && write->cts > sts) {
			*winner = write->cts;
			return TIQUE_CONFLICT;
		}
	}
	set = malloc(sizeof *set + (size_t)count * sizeof *set->writes);
	if (!set)
		return TIQUE_NO_MEMORY;
	set->count = 0;
	for (int64_t i = 0; i < count; i++) {
		struct write *write = enter_write(sequencer, &keys[i]);

		if (!write) {
			/* Those that were entered have no timestamp: nobody minds. */
			free(set);
			return TIQUE_NO_MEMORY;
		}
		set->writes[set->count++] = write;
	}
	cts = tique_take(sequencer, client);
	if (cts < 0) {
		free(set);
		return cts;
	}
	for (int64_t i = 0; i < count; i++) {
		struct write *write = set->writes[i];

		/* A key that is there twice has it already. */
		if (write->cts != cts) {
			write->previous = write->cts;
			write->cts = cts;
		}
	}
	sequencer->write_sets[cts % TIQUE_RING_CAPACITY] = set;
	return cts;
}

int64_t
tique_certify_for(tique_handle handle, tique_client client, int64_t txid,
                  int64_t sts, const struct tique_key *keys, int64_t count,
                  int64_t *winner)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);
	int64_t snapshot;
	int64_t cts = TIQUE_UNKNOWN;

	if (!sequencer)
		return status;
	snapshot = tique_snapshot_of(sequencer, client, txid);
	/* What an older snapshot must know may have been swept. */
	if (snapshot >= 0 && sts >= snapshot && sts <= sequencer->sts &&
	    count >= 0 && count <= LONGEST_WRITE_SET)
		cts = certify(sequencer, client, sts, keys, count, winner);
	tique_exit(sequencer);
	return cts;
}

int
tique_abort_for(tique_handle handle, tique_client client, int64_t cts)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);
	int64_t slot = cts % TIQUE_RING_CAPACITY;

	if (!sequencer)
		return status;
	if (cts > sequencer->sts && cts <= sequencer->cts &&
	    sequencer->owners[slot] == client)
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
	count = sequencer->write_count;
	tique_exit(sequencer);
	return count;
}
