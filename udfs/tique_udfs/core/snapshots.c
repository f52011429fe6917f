#include "state.h"

static int32_t *
bucket(struct sequencer *sequencer, int64_t txid)
{
	return &sequencer->buckets[(uint64_t)txid % TIQUE_SNAPSHOT_CAPACITY];
}

/* The link to txid's place; it is 0 when txid is not active. */
static int32_t *
find(struct sequencer *sequencer, int64_t txid)
{
	int32_t *link = bucket(sequencer, txid);

	while (*link && sequencer->nodes[*link].txid != txid)
		link = &sequencer->nodes[*link].next;
	return link;
}

/* A free place, or 0. */
static int32_t
take_place(struct sequencer *sequencer)
{
	int32_t place = sequencer->free_node;

	if (place)
		sequencer->free_node = sequencer->nodes[place].next;
	else if (sequencer->used_nodes < TIQUE_SNAPSHOT_CAPACITY)
		place = ++sequencer->used_nodes;
	return place;
}

static void
give_back(struct sequencer *sequencer, int32_t place)
{
	sequencer->nodes[place].next = sequencer->free_node;
	sequencer->free_node = place;
}

/* The list is in the order of snapshots; most are the newest. No sts is less than
 * that of place 0, where it ends. */
static void
put_in_list(struct sequencer *sequencer, int32_t place, int64_t sts)
{
	struct node *nodes = sequencer->nodes;
	int32_t older = nodes[0].older;

	while (nodes[older].sts > sts)
		older = nodes[older].older;
	nodes[place].sts = sts;
	nodes[place].taken = tique_now();
	nodes[place].older = older;
	nodes[place].newer = nodes[older].newer;
	nodes[nodes[older].newer].older = place;
	nodes[older].newer = place;
}

static void
remove_from_list(struct sequencer *sequencer, const struct node *node)
{
	sequencer->nodes[node->older].newer = node->newer;
	sequencer->nodes[node->newer].older = node->older;
}

struct tique_transaction
tique_start(struct sequencer *sequencer, tique_client client)
{
	struct tique_transaction begun = {TIQUE_SNAPSHOTS_FULL, 0};
	int32_t place = take_place(sequencer);
	struct node *node = &sequencer->nodes[place];
	struct client *owner = tique_find_client(sequencer, client);
	int32_t *head;

	if (!place)
		return begun;
	if (owner && owner->snapshots >= TIQUE_SNAPSHOTS_PER_CLIENT) {
		give_back(sequencer, place);
		begun.txid = TIQUE_CLIENT_TOO_MUCH;
		return begun;
	}
	if (owner)
		owner->snapshots++;
	node->txid = ++sequencer->txid;
	node->client = client;
	head = bucket(sequencer, node->txid);
	node->next = *head;
	*head = place;
	put_in_list(sequencer, place, sequencer->sts);
	sequencer->active++;
	begun.txid = node->txid;
	begun.sts = node->sts;
	return begun;
}

int64_t
tique_restart(struct sequencer *sequencer, tique_client client, int64_t txid,
              int64_t sts)
{
	int32_t place = *find(sequencer, txid);
	struct node *node = &sequencer->nodes[place];

	if (!place || node->client != client || sts < node->sts ||
	    sts > sequencer->sts)
		return TIQUE_UNKNOWN;
	remove_from_list(sequencer, node);
	put_in_list(sequencer, place, sts);
	return sts;
}

static void
drop(struct sequencer *sequencer, int32_t place)
{
	struct node *node = &sequencer->nodes[place];
	struct client *owner = tique_find_client(sequencer, node->client);

	if (owner)
		owner->snapshots--;
	*find(sequencer, node->txid) = node->next;
	remove_from_list(sequencer, node);
	give_back(sequencer, place);
	sequencer->active--;
}

void
tique_drop_orphans(struct sequencer *sequencer)
{
	const struct node *nodes = sequencer->nodes;

	for (int32_t place = nodes[0].newer, newer; place; place = newer) {
		newer = nodes[place].newer;
		if (nodes[place].client != NOBODY &&
		    !tique_find_client(sequencer, nodes[place].client))
			drop(sequencer, place);
	}
}

int
tique_stop(struct sequencer *sequencer, tique_client client, int64_t txid)
{
	int32_t place = *find(sequencer, txid);

	if (!place)
		return txid <= 0 || txid > sequencer->txid ? TIQUE_UNKNOWN : TIQUE_OK;
	if (sequencer->nodes[place].client != client)
		return TIQUE_UNKNOWN;
	drop(sequencer, place);
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
	lambda = sequencer->active ? sequencer->nodes[sequencer->nodes[0].newer].sts
	                           : sequencer->sts;
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
	for (int32_t place = sequencer->nodes[0].newer; place && capacity > 0;
	     place = sequencer->nodes[place].newer, snapshots++, capacity--) {
		const struct node *node = &sequencer->nodes[place];

		snapshots->txid = node->txid;
		snapshots->sts = node->sts;
		snapshots->age_nanoseconds = time - node->taken;
	}
	tique_exit(sequencer);
	return active;
}
