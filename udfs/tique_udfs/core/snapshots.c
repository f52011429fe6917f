#include "state.h"

#include <stdlib.h>

static struct node **
bucket(struct sequencer *sequencer, int64_t txid)
{
	return &sequencer->buckets[(uint64_t)txid & sequencer->bucket_mask];
}

/* The link that points to txid's node, or to NULL when txid is not active. */
static struct node **
find(struct sequencer *sequencer, int64_t txid)
{
	struct node **link = bucket(sequencer, txid);

	while (*link && (*link)->txid != txid)
		link = &(*link)->next_in_bucket;
	return link;
}

/* Doubles the buckets; without memory the chains get longer and that is all. */
static void
grow(struct sequencer *sequencer)
{
	uint64_t size = (sequencer->bucket_mask + 1) * 2;
	struct node **buckets = calloc(size, sizeof *buckets);

	if (!buckets)
		return;
	free(sequencer->buckets);
	sequencer->buckets = buckets;
	sequencer->bucket_mask = size - 1;
	for (struct node *node = sequencer->oldest; node; node = node->newer) {
		struct node **head = bucket(sequencer, node->txid);

		node->next_in_bucket = *head;
		*head = node;
	}
}

/* The list is in the order of snapshots; most are the newest. */
static void
put_in_list(struct sequencer *sequencer, struct node *node, int64_t sts)
{
	struct node *older = sequencer->newest;

	while (older && older->sts > sts)
		older = older->older;
	node->sts = sts;
	node->taken = tique_now();
	node->older = older;
	node->newer = older ? older->newer : sequencer->oldest;
	if (node->newer)
		node->newer->older = node;
	else
		sequencer->newest = node;
	if (older)
		older->newer = node;
	else
		sequencer->oldest = node;
}

static void
remove_from_list(struct sequencer *sequencer, struct node *node)
{
	if (node->older)
		node->older->newer = node->newer;
	else
		sequencer->oldest = node->newer;
	if (node->newer)
		node->newer->older = node->older;
	else
		sequencer->newest = node->older;
}

struct tique_transaction
tique_start(struct sequencer *sequencer, tique_client client)
{
	struct tique_transaction begun = {TIQUE_NO_MEMORY, 0};
	struct node *node = malloc(sizeof *node);
	struct node **head;

	if (!node)
		return begun;
	if ((uint64_t)sequencer->active > sequencer->bucket_mask)
		grow(sequencer);
	node->txid = ++sequencer->txid;
	node->client = client;
	head = bucket(sequencer, node->txid);
	node->next_in_bucket = *head;
	*head = node;
	put_in_list(sequencer, node, sequencer->sts);
	sequencer->active++;
	begun.txid = node->txid;
	begun.sts = node->sts;
	return begun;
}

int64_t
tique_snapshot_of(struct sequencer *sequencer, tique_client client, int64_t txid)
{
	struct node *node = *find(sequencer, txid);

	return node && node->client == client ? node->sts : TIQUE_UNKNOWN;
}

int64_t
tique_oldest(struct sequencer *sequencer)
{
	return sequencer->oldest ? sequencer->oldest->sts : sequencer->sts;
}

int64_t
tique_restart(struct sequencer *sequencer, tique_client client, int64_t txid,
              int64_t sts)
{
	struct node *node = *find(sequencer, txid);

	if (!node || node->client != client || sts < node->sts ||
	    sts > sequencer->sts)
		return TIQUE_UNKNOWN;
	remove_from_list(sequencer, node);
	put_in_list(sequencer, node, sts);
	return sts;
}

void
tique_drop(struct sequencer *sequencer, struct node *node)
{
	*find(sequencer, node->txid) = node->next_in_bucket;
	remove_from_list(sequencer, node);
	sequencer->active--;
	free(node);
}

int
tique_stop(struct sequencer *sequencer, tique_client client, int64_t txid)
{
	struct node *node = *find(sequencer, txid);

	if (!node)
		return txid <= 0 || txid > sequencer->txid ? TIQUE_UNKNOWN : TIQUE_OK;
	if (node->client != client)
		return TIQUE_UNKNOWN;
	tique_drop(sequencer, node);
	return TIQUE_OK;
}

struct tique_transaction
tique_begin(tique_handle handle)
{
	struct tique_transaction begun = {TIQUE_CLOSED, 0};
	struct sequencer *sequencer = tique_enter(handle);

	if (!sequencer)
		return begun;
	begun = tique_start(sequencer, NOBODY);
	tique_exit(sequencer);
	return begun;
}

int64_t
tique_refresh(tique_handle handle, int64_t txid)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t sts;

	if (!sequencer)
		return TIQUE_CLOSED;
	sts = tique_restart(sequencer, NOBODY, txid, sequencer->sts);
	tique_exit(sequencer);
	return sts;
}

int
tique_end(tique_handle handle, int64_t txid)
{
	struct sequencer *sequencer = tique_enter(handle);
	int status;

	if (!sequencer)
		return TIQUE_CLOSED;
	status = tique_stop(sequencer, NOBODY, txid);
	tique_exit(sequencer);
	return status;
}

int64_t
tique_lambda(tique_handle handle)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t lambda;

	if (!sequencer)
		return TIQUE_CLOSED;
	lambda = tique_oldest(sequencer);
	tique_exit(sequencer);
	return lambda;
}

int64_t
tique_active_count(tique_handle handle)
{
	return tique_active(handle, NULL, 0);
}

int64_t
tique_active(tique_handle handle, struct tique_snapshot *snapshots,
             int64_t capacity)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t time;
	int64_t active;

	if (!sequencer)
		return TIQUE_CLOSED;
	time = tique_now();
	active = sequencer->active;
	for (struct node *node = sequencer->oldest; node && capacity > 0;
	     node = node->newer, snapshots++, capacity--) {
		snapshots->txid = node->txid;
		snapshots->sts = node->sts;
		snapshots->age_nanoseconds = time - node->taken;
	}
	tique_exit(sequencer);
	return active;
}
