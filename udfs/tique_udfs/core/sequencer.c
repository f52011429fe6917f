#include "state.h"

int
tique_continue(struct sequencer *sequencer, int64_t sts, int64_t txid)
{
	if (sequencer->active > 0 || sequencer->sts != sequencer->cts)
		return TIQUE_IN_USE;
	if (sts < sequencer->sts || txid < sequencer->txid)
		return TIQUE_BACKWARDS;
	sequencer->sts = sequencer->cts = sequencer->barrier = sts;
	sequencer->txid = txid;
	tique_wake(sequencer);
	return TIQUE_OK;
}

int
tique_recover(tique_handle handle, int64_t sts, int64_t txid)
{
	struct sequencer *sequencer = tique_enter(handle);
	int status;

	if (!sequencer)
		return TIQUE_CLOSED;
	status = tique_continue(sequencer, sts, txid);
	tique_exit(sequencer);
	return status;
}

int
tique_skip_txids(tique_handle handle, int64_t txid)
{
	struct sequencer *sequencer = tique_enter(handle);

	if (!sequencer)
		return TIQUE_CLOSED;
	if (txid > sequencer->txid)
		sequencer->txid = txid;
	tique_exit(sequencer);
	return TIQUE_OK;
}

int64_t
tique_take(struct sequencer *sequencer, tique_client client)
{
	if (sequencer->cts - sequencer->sts >= TIQUE_RING_CAPACITY)
		return TIQUE_RING_FULL;
	sequencer->cts++;
	sequencer->owners[sequencer->cts % TIQUE_RING_CAPACITY] = client;
	if (client > NOBODY)
		tique_find_client(sequencer, client)->unfinished++;
	return sequencer->cts;
}

bool
tique_is_under_way(const struct sequencer *sequencer, tique_client owner,
                   int64_t cts)
{
	int64_t slot = cts % TIQUE_RING_CAPACITY;

	return cts > sequencer->sts && cts <= sequencer->cts &&
	       !sequencer->finished[slot] && sequencer->owners[slot] == owner;
}

int
tique_settle(struct sequencer *sequencer, tique_client client, int64_t cts)
{
	int64_t before = sequencer->sts;
	int64_t slot = cts % TIQUE_RING_CAPACITY;
	bool *next = &sequencer->finished[(before + 1) % TIQUE_RING_CAPACITY];

	if (cts <= 0 || cts > sequencer->cts)
		return TIQUE_UNKNOWN;
	if (cts <= before)
		return TIQUE_OK;
	if (sequencer->owners[slot] != client)
		return TIQUE_UNKNOWN;
	if (client > NOBODY && !sequencer->finished[slot])
		tique_find_client(sequencer, client)->unfinished--;
	sequencer->finished[slot] = true;
	while (*next) {
		*next = false;
		sequencer->sts++;
		next = &sequencer->finished[(sequencer->sts + 1) % TIQUE_RING_CAPACITY];
	}
	if (sequencer->sts > before)
		tique_wake(sequencer);
	return TIQUE_OK;
}

int64_t
tique_next_cts(tique_handle handle)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t cts;

	if (!sequencer)
		return TIQUE_CLOSED;
	cts = tique_take(sequencer, NOBODY);
	tique_exit(sequencer);
	return cts;
}

int
tique_finish(tique_handle handle, int64_t cts)
{
	struct sequencer *sequencer = tique_enter(handle);
	int status;

	if (!sequencer)
		return TIQUE_CLOSED;
	status = tique_settle(sequencer, NOBODY, cts);
	tique_exit(sequencer);
	return status;
}

int64_t
tique_sts(tique_handle handle)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t sts;

	if (!sequencer)
		return TIQUE_CLOSED;
	sts = sequencer->sts;
	tique_exit(sequencer);
	return sts;
}

int64_t
tique_cts(tique_handle handle)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t cts;

	if (!sequencer)
		return TIQUE_CLOSED;
	cts = sequencer->cts;
	tique_exit(sequencer);
	return cts;
}

int
tique_wait(tique_handle handle, int64_t cts, int64_t nanoseconds)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t deadline = tique_deadline(nanoseconds);
	int result;

	if (!sequencer)
		return TIQUE_CLOSED;
	while (sequencer->sts < cts && tique_now() < deadline) {
		int64_t doubtful = tique_first_doubtful(sequencer);
		int64_t expiry = tique_first_expiry(sequencer);

		if (doubtful > 0 && doubtful <= cts)
			break;
		if (!tique_sleep(sequencer, expiry < deadline ? expiry : deadline)) {
			tique_exit(sequencer);
			return TIQUE_CLOSED;
		}
		tique_expire(sequencer);
	}
	result = sequencer->sts >= cts;
	tique_exit(sequencer);
	return result;
}
