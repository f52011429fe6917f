#if defined(__APPLE__)
#define _DARWIN_C_SOURCE
#include <sys/random.h>
#else
#define _DEFAULT_SOURCE
#endif

#include "state.h"

#include <string.h>
#include <unistd.h>

bool
tique_seed(struct sequencer *sequencer)
{
	return getentropy(&sequencer->secret, sizeof sequencer->secret) == 0;
}

/* The link to a client's place, counted from 1; it is 0 when the client is gone. Ids are
 * random, and none but the sequencer's own are ever in a bucket. */
static int32_t *
client_link(struct sequencer *sequencer, tique_client id)
{
	int32_t *link =
	    &sequencer->client_buckets[(uint64_t)id % TIQUE_CLIENT_CAPACITY];

	while (*link && sequencer->clients[*link - 1].id != id)
		link = &sequencer->clients[*link - 1].next;
	return link;
}

struct client *
tique_find_client(struct sequencer *sequencer, tique_client id)
{
	int32_t place = *client_link(sequencer, id);

	return place ? &sequencer->clients[place - 1] : NULL;
}

/* After a change of leases. Threads that wait must look again: for a lease that ends
 * earlier than they knew, or a timestamp that has become doubtful. */
static void
note_deadlines(struct sequencer *sequencer)
{
	int64_t earliest = INT64_MAX;

	for (int64_t i = 0; i < sequencer->client_count; i++) {
		const struct client *client = &sequencer->clients[i];

		if (client->deadline < earliest)
			earliest = client->deadline;
		if (client->finish_by > 0 && client->finish_by < earliest)
			earliest = client->finish_by;
	}
	sequencer->next_deadline = earliest;
	tique_wake(sequencer);
}

/* Snapshots and unfinished timestamps of clients that are gone. */
struct estate {
	int64_t snapshots;
	int64_t unfinished;
};

/* Drops a client; the last one takes its place. What it leaves is settled afterwards,
 * in one pass for all clients that are dropped at a time. */
static void
bury(struct sequencer *sequencer, struct client *client, struct estate *left)
{
	struct client *last = &sequencer->clients[sequencer->client_count - 1];

	left->snapshots += client->snapshots;
	left->unfinished += client->unfinished;
	*client_link(sequencer, client->id) = client->next;
	if (client != last) {
		*client_link(sequencer, last->id) =
		    (int32_t)(client - sequencer->clients) + 1;
		*client = *last;
	}
	sequencer->client_count--;
	sequencer->buried++;
}

static void
settle_estate(struct sequencer *sequencer, const struct estate *left)
{
	if (left->snapshots > 0)
		tique_drop_orphans(sequencer);
	if (left->unfinished == 0)
		return;
	for (int64_t cts = sequencer->sts + 1; cts <= sequencer->cts; cts++) {
		int64_t slot = cts % TIQUE_RING_CAPACITY;

		if (!sequencer->finished[slot] && sequencer->owners[slot] > NOBODY &&
		    !tique_find_client(sequencer, sequencer->owners[slot])) {
			sequencer->owners[slot] = DOUBTFUL;
			sequencer->doubtful++;
		}
	}
}

/* Takes the client's timestamp away, if it was not finished in time. */
static void
limit(struct sequencer *sequencer, struct client *client, int64_t time)
{
	if (client->finish_by == 0 || client->finish_by > time)
		return;
	client->finish_by = 0;
	if (!tique_is_under_way(sequencer, client->id, client->limited))
		return;
	client->is_overdue = true;
	client->unfinished--;
	sequencer->owners[client->limited % TIQUE_RING_CAPACITY] = DOUBTFUL;
	sequencer->doubtful++;
}

int64_t
tique_first_expiry(const struct sequencer *sequencer)
{
	return sequencer->client_count > 0 ? sequencer->next_deadline : INT64_MAX;
}

void
tique_expire(struct sequencer *sequencer)
{
	struct estate left = {0, 0};
	int64_t i = 0;
	int64_t time;

	if (sequencer->client_count == 0)
		return;
	time = tique_now();
	if (time < sequencer->next_deadline)
		return;
	while (i < sequencer->client_count)
		if (sequencer->clients[i].deadline > time)
			limit(sequencer, &sequencer->clients[i++], time);
		else
			bury(sequencer, &sequencer->clients[i], &left);
	settle_estate(sequencer, &left);
	note_deadlines(sequencer);
}

int64_t
tique_first_doubtful(const struct sequencer *sequencer)
{
	if (sequencer->doubtful == 0)
		return 0;
	for (int64_t cts = sequencer->sts + 1; cts <= sequencer->cts; cts++)
		if (tique_is_under_way(sequencer, DOUBTFUL, cts))
			return cts;
	return 0;
}

int64_t
tique_deadline(int64_t nanoseconds)
{
	int64_t time = tique_now();

	if (nanoseconds < 0)
		nanoseconds = 0;
	return nanoseconds < INT64_MAX - time ? time + nanoseconds : INT64_MAX;
}

struct sequencer *
tique_enter_for(tique_handle handle, tique_client client, int *status)
{
	struct sequencer *sequencer = tique_enter(handle);

	*status = sequencer ? TIQUE_FENCED : TIQUE_CLOSED;
	if (!sequencer || tique_find_client(sequencer, client))
		return sequencer;
	tique_exit(sequencer);
	return NULL;
}

static int64_t
clients_of(const struct sequencer *sequencer, int64_t role)
{
	int64_t count = 0;

	for (int64_t i = 0; i < sequencer->client_count; i++)
		count += sequencer->clients[i].role == role;
	return count;
}

static tique_client
join(struct sequencer *sequencer, int64_t nanoseconds, int64_t role)
{
	struct client *client = &sequencer->clients[sequencer->client_count];
	tique_client id;

	if (sequencer->client_count >= TIQUE_CLIENT_CAPACITY)
		return TIQUE_CLIENTS_FULL;
	if (role != 0 && clients_of(sequencer, role) >= TIQUE_ROLE_SHARE)
		return TIQUE_ROLE_TOO_MUCH;
	do {
		if (getentropy(&id, sizeof id) != 0)
			return TIQUE_NO_MEMORY;
		id &= INT64_MAX;
	} while (id == 0 || tique_find_client(sequencer, id));
	*client_link(sequencer, id) = (int32_t)sequencer->client_count + 1;
	*client = (struct client){
	    .id = id, .deadline = tique_deadline(nanoseconds), .role = role};
	sequencer->client_count++;
	note_deadlines(sequencer);
	return id;
}

tique_client
tique_join(tique_handle handle, int64_t nanoseconds)
{
	return tique_join_as(handle, nanoseconds, 0);
}

tique_client
tique_join_as(tique_handle handle, int64_t nanoseconds, int64_t role)
{
	struct sequencer *sequencer = tique_enter(handle);
	tique_client client;

	if (!sequencer)
		return TIQUE_CLOSED;
	client = join(sequencer, nanoseconds, role);
	tique_exit(sequencer);
	return client;
}

int
tique_renew(tique_handle handle, tique_client client, int64_t nanoseconds)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);

	if (!sequencer)
		return status;
	tique_find_client(sequencer, client)->deadline = tique_deadline(nanoseconds);
	note_deadlines(sequencer);
	tique_exit(sequencer);
	return TIQUE_OK;
}

int
tique_leave(tique_handle handle, tique_client client)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);
	struct estate left = {0, 0};

	if (!sequencer)
		return status;
	bury(sequencer, tique_find_client(sequencer, client), &left);
	settle_estate(sequencer, &left);
	note_deadlines(sequencer);
	tique_exit(sequencer);
	return TIQUE_OK;
}

struct tique_transaction
tique_begin_for(tique_handle handle, tique_client client)
{
	struct tique_transaction begun = {0, 0};
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);

	if (!sequencer) {
		begun.txid = status;
		return begun;
	}
	begun = tique_start(sequencer, client);
	tique_exit(sequencer);
	return begun;
}

int64_t
tique_advance_for(tique_handle handle, tique_client client, int64_t txid,
                  int64_t sts)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);

	if (!sequencer)
		return status;
	sts = tique_restart(sequencer, client, txid, sts);
	tique_exit(sequencer);
	return sts;
}

int
tique_end_for(tique_handle handle, tique_client client, int64_t txid)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);

	if (!sequencer)
		return status;
	status = tique_stop(sequencer, client, txid);
	tique_exit(sequencer);
	return status;
}

int64_t
tique_next_cts_for(tique_handle handle, tique_client client)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);
	int64_t cts;

	if (!sequencer)
		return status;
	cts = TIQUE_CLIENT_TOO_MUCH;
	if (tique_find_client(sequencer, client)->unfinished <
	    TIQUE_BARRIERS_PER_CLIENT)
		cts = tique_take(sequencer, client);
	if (cts > 0)
		sequencer->barrier = cts;
	tique_exit(sequencer);
	return cts;
}

int64_t
tique_next_cts_within(tique_handle handle, tique_client client,
                      int64_t nanoseconds)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);
	struct client *taker;
	int64_t cts = TIQUE_CLIENT_TOO_MUCH;

	if (!sequencer)
		return status;
	taker = tique_find_client(sequencer, client);
	if (taker->unfinished == 0)
		cts = tique_take(sequencer, client);
	if (cts > 0) {
		sequencer->barrier = taker->limited = cts;
		taker->finish_by = tique_deadline(nanoseconds);
		taker->is_overdue = false;
		note_deadlines(sequencer);
	}
	tique_exit(sequencer);
	return cts;
}

int
tique_holds(tique_handle handle, tique_client client, int64_t cts)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);

	if (!sequencer)
		return status;
	status = tique_is_under_way(sequencer, client, cts);
	tique_exit(sequencer);
	return status;
}

int
tique_finish_for(tique_handle handle, tique_client client, int64_t cts)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);
	const struct client *finisher;

	if (!sequencer)
		return status;
	finisher = tique_find_client(sequencer, client);
	if (finisher->is_overdue && finisher->limited == cts)
		status = TIQUE_OVERDUE;
	else
		status = tique_settle(sequencer, client, cts);
	tique_exit(sequencer);
	return status;
}

int64_t
tique_sts_for(tique_handle handle, tique_client client)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);
	int64_t sts;

	if (!sequencer)
		return status;
	sts = sequencer->sts;
	tique_exit(sequencer);
	return sts;
}

int64_t
tique_client_count(tique_handle handle)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t count;

	if (!sequencer)
		return TIQUE_CLOSED;
	count = sequencer->client_count;
	tique_exit(sequencer);
	return count;
}

int64_t
tique_doubtful(tique_handle handle)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t cts;

	if (!sequencer)
		return TIQUE_CLOSED;
	cts = tique_first_doubtful(sequencer);
	tique_exit(sequencer);
	return cts;
}

int64_t
tique_doubts(tique_handle handle, int64_t *stamps, int64_t capacity)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t count;

	if (!sequencer)
		return TIQUE_CLOSED;
	count = sequencer->doubtful;
	if (capacity > count)
		capacity = count;
	for (int64_t cts = sequencer->sts + 1; capacity > 0; cts++)
		if (tique_is_under_way(sequencer, DOUBTFUL, cts)) {
			*stamps++ = cts;
			capacity--;
		}
	tique_exit(sequencer);
	return count;
}

/* The place of the first fence that is not smaller. */
static int64_t
fence_place(const struct sequencer *sequencer, int64_t cts)
{
	int64_t low = 0;
	int64_t high = sequencer->fence_count;

	while (low < high) {
		int64_t middle = low + (high - low) / 2;

		if (sequencer->fences[middle] < cts)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool
is_fenced(const struct sequencer *sequencer, int64_t cts)
{
	int64_t place = fence_place(sequencer, cts);

	return place < sequencer->fence_count && sequencer->fences[place] == cts;
}

static int
fence(struct sequencer *sequencer, int64_t cts)
{
	int64_t place;

	if (cts <= 0 || cts > sequencer->cts)
		return TIQUE_UNKNOWN;
	if (is_fenced(sequencer, cts))
		return TIQUE_OK;
	if (!tique_is_under_way(sequencer, DOUBTFUL, cts))
		return TIQUE_IN_USE;
	if (sequencer->fence_count >= TIQUE_FENCE_CAPACITY)
		return TIQUE_FENCES_FULL;
	place = fence_place(sequencer, cts);
	memmove(sequencer->fences + place + 1, sequencer->fences + place,
	        (size_t)(sequencer->fence_count - place) *
	            sizeof *sequencer->fences);
	sequencer->fences[place] = cts;
	sequencer->fence_count++;
	sequencer->doubtful--;
	tique_revert_writes(sequencer, cts);
	return tique_settle(sequencer, DOUBTFUL, cts);
}

int
tique_fence(tique_handle handle, int64_t cts)
{
	struct sequencer *sequencer = tique_enter(handle);
	int status;

	if (!sequencer)
		return TIQUE_CLOSED;
	status = fence(sequencer, cts);
	tique_exit(sequencer);
	return status;
}

int64_t
tique_fences(tique_handle handle, int64_t *fences, int64_t capacity)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t count;

	if (!sequencer)
		return TIQUE_CLOSED;
	count = sequencer->fence_count;
	if (capacity > 0 && count > 0)
		memcpy(fences, sequencer->fences,
		       (size_t)(count < capacity ? count : capacity) * sizeof *fences);
	tique_exit(sequencer);
	return count;
}

int64_t
tique_forget_fences(tique_handle handle, int64_t until)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t gone;

	if (!sequencer)
		return TIQUE_CLOSED;
	gone = until < INT64_MAX ? fence_place(sequencer, until + 1)
	                         : sequencer->fence_count;
	sequencer->fence_count -= gone;
	memmove(sequencer->fences, sequencer->fences + gone,
	        (size_t)sequencer->fence_count * sizeof *sequencer->fences);
	tique_exit(sequencer);
	return gone;
}
