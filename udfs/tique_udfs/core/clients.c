#if defined(__APPLE__)
#define _DARWIN_C_SOURCE
#include <sys/random.h>
#else
#define _DEFAULT_SOURCE
#endif

#include "state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_FENCES 16

/* The link that points to the client, or to NULL when it is gone. */
static struct client **
find_client(struct sequencer *sequencer, tique_client id)
{
	struct client **link = &sequencer->clients;

	while (*link && (*link)->id != id)
		link = &(*link)->next;
	return link;
}

static void
note_deadlines(struct sequencer *sequencer)
{
	int64_t earliest = INT64_MAX;

	for (struct client *client = sequencer->clients; client;
	     client = client->next)
		if (client->deadline < earliest)
			earliest = client->deadline;
	sequencer->next_deadline = earliest;
}

/* Whoever waits must look again: for a lease that ends earlier than it knew, or
 * a timestamp that has become doubtful. */
static void
wake(struct sequencer *sequencer)
{
	if (sequencer->waiters > 0)
		pthread_cond_broadcast(&sequencer->advanced);
}

/* Drops a client that is unlinked already. */
static void
bury(struct sequencer *sequencer, struct client *client)
{
	for (struct node *node = sequencer->oldest, *newer; node; node = newer) {
		newer = node->newer;
		if (node->client == client->id)
			tique_drop(sequencer, node);
	}
	for (int64_t cts = sequencer->sts + 1; cts <= sequencer->cts; cts++) {
		int64_t slot = cts % TIQUE_RING_CAPACITY;

		if (!sequencer->finished[slot] &&
		    sequencer->owners[slot] == client->id) {
			sequencer->owners[slot] = DOUBTFUL;
			sequencer->doubtful++;
		}
	}
	free(client);
}

void
tique_expire(struct sequencer *sequencer)
{
	int64_t time;
	struct client **link = &sequencer->clients;

	if (!sequencer->clients)
		return;
	time = tique_now();
	if (time < sequencer->next_deadline)
		return;
	while (*link) {
		struct client *client = *link;

		if (client->deadline > time) {
			link = &client->next;
			continue;
		}
		*link = client->next;
		bury(sequencer, client);
	}
	note_deadlines(sequencer);
	wake(sequencer);
}

int64_t
tique_first_doubtful(struct sequencer *sequencer)
{
	if (sequencer->doubtful == 0)
		return 0;
	for (int64_t cts = sequencer->sts + 1; cts <= sequencer->cts; cts++) {
		int64_t slot = cts % TIQUE_RING_CAPACITY;

		if (!sequencer->finished[slot] && sequencer->owners[slot] == DOUBTFUL)
			return cts;
	}
	return 0;
}

void
tique_forget_clients(struct sequencer *sequencer)
{
	for (struct client *client = sequencer->clients, *next; client;
	     client = next) {
		next = client->next;
		free(client);
	}
	free(sequencer->fences);
}

static int64_t
deadline_after(int64_t nanoseconds)
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
	if (!sequencer || *find_client(sequencer, client))
		return sequencer;
	tique_exit(sequencer);
	return NULL;
}

tique_client
tique_join(tique_handle handle, int64_t nanoseconds)
{
	struct sequencer *sequencer = tique_enter(handle);
	struct client *client;

	if (!sequencer)
		return TIQUE_CLOSED;
	client = malloc(sizeof *client);
	if (!client) {
		tique_exit(sequencer);
		return TIQUE_NO_MEMORY;
	}
	do {
		if (getentropy(&client->id, sizeof client->id) != 0) {
			free(client);
			tique_exit(sequencer);
			return TIQUE_NO_MEMORY;
		}
		client->id &= INT64_MAX;
	} while (client->id == 0 || *find_client(sequencer, client->id));
	client->deadline = deadline_after(nanoseconds);
	client->next = sequencer->clients;
	sequencer->clients = client;
	note_deadlines(sequencer);
	wake(sequencer);
	nanoseconds = client->id;
	tique_exit(sequencer);
	return nanoseconds;
}

int
tique_renew(tique_handle handle, tique_client client, int64_t nanoseconds)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);

	if (!sequencer)
		return status;
	(*find_client(sequencer, client))->deadline = deadline_after(nanoseconds);
	note_deadlines(sequencer);
	wake(sequencer);
	tique_exit(sequencer);
	return TIQUE_OK;
}

int
tique_leave(tique_handle handle, tique_client client)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);
	struct client **link;
	struct client *leaving;

	if (!sequencer)
		return status;
	link = find_client(sequencer, client);
	leaving = *link;
	*link = leaving->next;
	bury(sequencer, leaving);
	note_deadlines(sequencer);
	wake(sequencer);
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
	cts = tique_take(sequencer, client);
	if (cts > 0)
		sequencer->barrier = cts;
	tique_exit(sequencer);
	return cts;
}

int
tique_finish_for(tique_handle handle, tique_client client, int64_t cts)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);

	if (!sequencer)
		return status;
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
	int64_t count = 0;

	if (!sequencer)
		return TIQUE_CLOSED;
	for (struct client *client = sequencer->clients; client;
	     client = client->next)
		count++;
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

/* The place of the first fence that is not smaller. */
static int64_t
fence_place(const struct sequencer *sequencer, int64_t cts)
{
	int64_t place = sequencer->fence_count;

	while (place > 0 && sequencer->fences[place - 1] >= cts)
		place--;
	return place;
}

static bool
is_fenced(const struct sequencer *sequencer, int64_t cts)
{
	int64_t place = fence_place(sequencer, cts);

	return place < sequencer->fence_count && sequencer->fences[place] == cts;
}

static bool
make_room(struct sequencer *sequencer)
{
	int64_t capacity = sequencer->fence_capacity
	                       ? sequencer->fence_capacity * 2
	                       : FIRST_FENCES;
	int64_t *fences;

	if (sequencer->fence_count < sequencer->fence_capacity)
		return true;
	fences = realloc(sequencer->fences, (size_t)capacity * sizeof *fences);
	if (!fences)
		return false;
	sequencer->fences = fences;
	sequencer->fence_capacity = capacity;
	return true;
}

static int
fence(struct sequencer *sequencer, int64_t cts)
{
	int64_t slot = cts % TIQUE_RING_CAPACITY;
	int64_t place;

	if (cts <= 0 || cts > sequencer->cts)
		return TIQUE_UNKNOWN;
	if (is_fenced(sequencer, cts))
		return TIQUE_OK;
	if (cts <= sequencer->sts || sequencer->finished[slot] ||
	    sequencer->owners[slot] != DOUBTFUL)
		return TIQUE_IN_USE;
	if (!make_room(sequencer))
		return TIQUE_NO_MEMORY;
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

int
tique_forget_fence(tique_handle handle, int64_t cts)
{
	struct sequencer *sequencer = tique_enter(handle);
	int status = TIQUE_UNKNOWN;

	if (!sequencer)
		return TIQUE_CLOSED;
	if (is_fenced(sequencer, cts)) {
		int64_t place = fence_place(sequencer, cts);

		sequencer->fence_count--;
		memmove(sequencer->fences + place, sequencer->fences + place + 1,
		        (size_t)(sequencer->fence_count - place) *
		            sizeof *sequencer->fences);
		status = TIQUE_OK;
	}
	tique_exit(sequencer);
	return status;
}
