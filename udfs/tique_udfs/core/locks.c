#include "state.h"

/* An owner of row locks: a transaction of a client. Its id is a place among the
 * lockers, and a number that tells its users apart. */
static struct locker *
find_locker(struct locks *locks, tique_client client, tique_locker id)
{
	struct locker *locker = &locks->lockers[(uint64_t)id % TIQUE_LOCKER_CAPACITY];

	return id > 0 && locker->id == id && locker->client == client ? locker : NULL;
}

static int32_t
place_of(const struct locks *locks, const struct locker *locker)
{
	return (int32_t)(locker - locks->lockers);
}

/* As write_bucket: which numbers share a bucket cannot be known. */
static int32_t *
lock_bucket(struct locks *locks, const struct sequencer *sequencer, int64_t number)
{
	const struct secret *secret = &sequencer->secret;
	wide_uint hash = secret->first * (uint64_t)number + secret->third;

	return &locks->buckets[(uint64_t)(hash >> 96) * TIQUE_LOCK_CAPACITY >> 32];
}

/* Takes the lock that a link leads to out of its bucket. */
static void
drop_lock(struct locks *locks, int32_t *link)
{
	int32_t place = *link;
	struct lock *lock = &locks->all[place - 1];

	*link = lock->next;
	lock->next = locks->free_lock;
	locks->free_lock = place;
	locks->lockers[lock->locker].count--;
	locks->held--;
}

/* Drops all locks of lockers that are gone: one pass, for however many. */
static void
drop_left(struct locks *locks)
{
	for (int32_t i = 0; i < TIQUE_LOCK_CAPACITY && locks->held > 0; i++) {
		int32_t *link = &locks->buckets[i];

		while (*link) {
			struct lock *lock = &locks->all[*link - 1];

			if (locks->lockers[lock->locker].id == 0)
				drop_lock(locks, link);
			else
				link = &lock->next;
		}
	}
}

/* The locks, without those of clients that are gone. */
static struct locks *
settled_locks(struct sequencer *sequencer)
{
	struct locks *locks = tique_locks(sequencer);
	bool is_any_left = false;

	if (locks->buried == sequencer->buried)
		return locks;
	locks->buried = sequencer->buried;
	for (int32_t i = 0; i < locks->used_lockers; i++) {
		struct locker *locker = &locks->lockers[i];

		if (locker->id == 0 || tique_find_client(sequencer, locker->client))
			continue;
		is_any_left |= locker->count > 0;
		locks->waiting -= locker->waits;
		locker->waits = false;
		locker->id = 0;
	}
	if (is_any_left)
		drop_left(locks);
	return locks;
}

/* Whether a lock is one of another locker's that excludes a mode. */
static bool
excludes(const struct lock *lock, int64_t number, bool shared, int32_t own)
{
	return lock->number == number && lock->locker != own &&
	       !(shared && lock->shared);
}

/* Whether a locker has a number in a mode, or in any. */
static bool
has(struct locks *locks, struct sequencer *sequencer, int32_t own, int64_t number,
    bool shared, bool any)
{
	for (int32_t i = *lock_bucket(locks, sequencer, number); i;) {
		const struct lock *lock = &locks->all[i - 1];

		if (lock->number == number && lock->locker == own &&
		    (any || lock->shared == shared))
			return true;
		i = lock->next;
	}
	return false;
}

/* Whether a waiting locker comes before another one's wait for a number. */
static bool
comes_before(const struct locker *waiting, const struct locker *locker,
             int64_t number, bool shared)
{
	return waiting->waits && waiting != locker && waiting->number == number &&
	       !(shared && waiting->shared) &&
	       !(locker->waits && locker->turn < waiting->turn);
}

/* Whether a locker may have a number now. One that has it already, in another mode,
 * comes before all that wait: they wait for that one. */
static bool
is_free(struct locks *locks, struct sequencer *sequencer,
        const struct locker *locker, int64_t number, bool shared)
{
	int32_t own = place_of(locks, locker);

	for (int32_t i = *lock_bucket(locks, sequencer, number); i;) {
		const struct lock *lock = &locks->all[i - 1];

		if (excludes(lock, number, shared, own))
			return false;
		i = lock->next;
	}
	if (locks->waiting == 0 || has(locks, sequencer, own, number, shared, true))
		return true;
	for (int32_t i = 0; i < locks->used_lockers; i++)
		if (comes_before(&locks->lockers[i], locker, number, shared))
			return false;
	return true;
}

/* Puts a locker into the search for a circle, once. */
static void
visit(struct locks *locks, int32_t place, int32_t *count)
{
	struct locker *locker = &locks->lockers[place];

	if (!locker->waits || locker->visited == locks->search)
		return;
	locker->visited = locks->search;
	locks->found[(*count)++] = place;
}

/* Whether the lockers that a waiting one waits for wait for that one in turn. */
static bool
closes_circle(struct locks *locks, struct sequencer *sequencer, int32_t start)
{
	int32_t count = 0;

	locks->search++;
	visit(locks, start, &count);
	for (int32_t next = 0; next < count; next++) {
		int32_t own = locks->found[next];
		const struct locker *locker = &locks->lockers[own];

		for (int32_t i = *lock_bucket(locks, sequencer, locker->number); i;) {
			const struct lock *lock = &locks->all[i - 1];

			if (excludes(lock, locker->number, locker->shared, own)) {
				if (lock->locker == start)
					return true;
				visit(locks, lock->locker, &count);
			}
			i = lock->next;
		}
		if (has(locks, sequencer, own, locker->number, locker->shared, true))
			continue;
		for (int32_t i = 0; i < locks->used_lockers; i++)
			if (comes_before(&locks->lockers[i], locker, locker->number,
			                 locker->shared)) {
				if (i == start)
					return true;
				visit(locks, i, &count);
			}
	}
	return false;
}

static int
begin_wait(struct locks *locks, struct sequencer *sequencer, struct locker *locker,
           int64_t number, bool shared)
{
	if (locker->waits)
		return TIQUE_OK;
	locker->number = number;
	locker->shared = shared;
	locker->waits = true;
	locker->turn = ++locks->turns;
	locker->is_interrupted = false;
	locks->waiting++;
	return closes_circle(locks, sequencer, place_of(locks, locker)) ? TIQUE_DEADLOCK
	                                                                : TIQUE_OK;
}

/* Those behind it may go on. */
static void
end_wait(struct locks *locks, struct sequencer *sequencer, struct locker *locker)
{
	if (!locker->waits)
		return;
	locker->waits = false;
	locks->waiting--;
	tique_wake(sequencer);
}

static void
take_lock(struct locks *locks, struct sequencer *sequencer, struct locker *locker,
          int64_t number, bool shared)
{
	int32_t *head = lock_bucket(locks, sequencer, number);
	int32_t own = place_of(locks, locker);
	int32_t place = locks->free_lock;

	if (has(locks, sequencer, own, number, shared, false))
		return;
	if (place)
		locks->free_lock = locks->all[place - 1].next;
	else
		place = ++locks->used_locks;
	locks->all[place - 1] = (struct lock){
	    .number = number, .locker = own, .shared = shared, .next = *head};
	*head = place;
	locker->count++;
	locks->held++;
}

static int64_t
locks_of(const struct locks *locks, tique_client client)
{
	int64_t count = 0;

	for (int32_t i = 0; i < locks->used_lockers; i++)
		if (locks->lockers[i].id != 0 && locks->lockers[i].client == client)
			count += locks->lockers[i].count;
	return count;
}

static int
expect_room(const struct locks *locks, const struct locker *locker, int64_t count)
{
	if (count < 0)
		return TIQUE_UNKNOWN;
	if (count > TIQUE_LOCKS_PER_LOCKER ||
	    locker->count + count > TIQUE_LOCKS_PER_LOCKER ||
	    locks_of(locks, locker->client) + count > TIQUE_LOCKS_PER_CLIENT)
		return TIQUE_CLIENT_TOO_MUCH;
	return locks->held + count > TIQUE_LOCK_CAPACITY ? TIQUE_LOCKS_FULL : TIQUE_OK;
}

/* Locks numbers as far as they are free; then waits for the next, or says why not. */
static int
advance(struct locks *locks, struct sequencer *sequencer, struct locker *locker,
        const int64_t *numbers, int64_t count, bool shared, bool may_wait,
        int64_t *done)
{
	int status = expect_room(locks, locker, count - *done);

	if (status != TIQUE_OK)
		return status;
	while (*done < count &&
	       is_free(locks, sequencer, locker, numbers[*done], shared)) {
		take_lock(locks, sequencer, locker, numbers[*done], shared);
		end_wait(locks, sequencer, locker);
		++*done;
	}
	if (*done == count || !may_wait)
		return TIQUE_OK;
	if (locker->waits && locker->is_interrupted)
		return TIQUE_INTERRUPTED;
	return begin_wait(locks, sequencer, locker, numbers[*done], shared);
}

int64_t
tique_lock(tique_handle handle, tique_client client, tique_locker id,
           const int64_t *numbers, int64_t count, int shared, int64_t nanoseconds)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);
	int64_t deadline = tique_deadline(nanoseconds);
	bool may_wait = nanoseconds > 0;
	int64_t done = 0;

	if (!sequencer)
		return status;
	if (may_wait && count != 1) {
		tique_exit(sequencer);
		return TIQUE_UNKNOWN;
	}
	for (bool is_first = true;; is_first = false) {
		struct locks *locks = settled_locks(sequencer);
		struct locker *locker = find_locker(locks, client, id);
		int64_t expiry;

		if (!locker) {
			status = tique_find_client(sequencer, client) ? TIQUE_UNKNOWN
			                                              : TIQUE_FENCED;
			break;
		}
		if (is_first && !(may_wait && locker->number == numbers[0] &&
		                  locker->shared == (shared != 0)))
			end_wait(locks, sequencer, locker);
		/* Another call for it came, perhaps since this one's answer is not
		 * waited for any more. */
		if (!is_first && !locker->waits) {
			status = TIQUE_INTERRUPTED;
			break;
		}
		status = advance(locks, sequencer, locker, numbers, count, shared != 0,
		                 may_wait, &done);
		if (status != TIQUE_OK)
			end_wait(locks, sequencer, locker);
		if (status != TIQUE_OK || done == count || !may_wait ||
		    tique_now() >= deadline)
			break;
		expiry = tique_first_expiry(sequencer);
		if (!tique_sleep(sequencer, expiry < deadline ? expiry : deadline)) {
			status = TIQUE_CLOSED;
			break;
		}
		tique_expire(sequencer);
	}
	tique_exit(sequencer);
	return status == TIQUE_OK ? done : status;
}

tique_locker
tique_open_locker(tique_handle handle, tique_client client)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);
	struct locks *locks;
	int32_t place = -1;
	int32_t count = 0;
	tique_locker id;

	if (!sequencer)
		return status;
	locks = settled_locks(sequencer);
	for (int32_t i = 0; i < locks->used_lockers; i++)
		if (locks->lockers[i].id == 0)
			place = i;
		else
			count += locks->lockers[i].client == client;
	if (count >= TIQUE_LOCKERS_PER_CLIENT)
		id = TIQUE_CLIENT_TOO_MUCH;
	else if (place < 0 && locks->used_lockers >= TIQUE_LOCKER_CAPACITY)
		id = TIQUE_LOCKS_FULL;
	else {
		if (place < 0)
			place = locks->used_lockers++;
		id = ++locks->opened * TIQUE_LOCKER_CAPACITY + place;
		locks->lockers[place] = (struct locker){.id = id, .client = client};
	}
	tique_exit(sequencer);
	return id;
}

/* The sequencer with its lock held, if the locker is there; else NULL, and the reason
 * in *status. What it waited for it waits for no more. */
static struct sequencer *
enter_idle(tique_handle handle, tique_client client, tique_locker id,
           struct locker **locker, int *status)
{
	struct sequencer *sequencer = tique_enter_for(handle, client, status);

	if (!sequencer)
		return NULL;
	*status = TIQUE_UNKNOWN;
	*locker = find_locker(settled_locks(sequencer), client, id);
	if (*locker) {
		end_wait(tique_locks(sequencer), sequencer, *locker);
		return sequencer;
	}
	tique_exit(sequencer);
	return NULL;
}

int
tique_unlock(tique_handle handle, tique_client client, tique_locker id,
             const int64_t *numbers, int64_t count, int shared)
{
	int status;
	struct locker *locker;
	struct sequencer *sequencer =
	    enter_idle(handle, client, id, &locker, &status);
	struct locks *locks;

	if (!sequencer)
		return status;
	locks = tique_locks(sequencer);
	status = count < 0 || count > TIQUE_LOCKS_PER_LOCKER ? TIQUE_CLIENT_TOO_MUCH
	                                                     : TIQUE_OK;
	for (int64_t i = 0; i < count && status == TIQUE_OK; i++) {
		int32_t *link = lock_bucket(locks, sequencer, numbers[i]);

		while (*link) {
			struct lock *lock = &locks->all[*link - 1];

			if (lock->number == numbers[i] &&
			    lock->locker == place_of(locks, locker) &&
			    lock->shared == (shared != 0)) {
				drop_lock(locks, link);
				break;
			}
			link = &lock->next;
		}
	}
	tique_wake(sequencer);
	tique_exit(sequencer);
	return status;
}

int
tique_close_locker(tique_handle handle, tique_client client, tique_locker id)
{
	int status;
	struct locker *locker;
	struct sequencer *sequencer =
	    enter_idle(handle, client, id, &locker, &status);

	if (!sequencer)
		return status;
	locker->id = 0;
	if (locker->count > 0)
		drop_left(tique_locks(sequencer));
	tique_wake(sequencer);
	tique_exit(sequencer);
	return TIQUE_OK;
}

int
tique_interrupt_locker(tique_handle handle, tique_client client, tique_locker id)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);
	struct locker *locker;

	if (!sequencer)
		return status;
	locker = find_locker(settled_locks(sequencer), client, id);
	if (locker && locker->waits) {
		locker->is_interrupted = true;
		tique_wake(sequencer);
	}
	tique_exit(sequencer);
	return locker ? TIQUE_OK : TIQUE_UNKNOWN;
}

/* Whether another locker than `own` has a number, in whatever mode. */
static bool
is_locked(struct locks *locks, struct sequencer *sequencer, int32_t own,
          int64_t number)
{
	for (int32_t i = *lock_bucket(locks, sequencer, number); i;) {
		const struct lock *lock = &locks->all[i - 1];

		if (excludes(lock, number, false, own))
			return true;
		i = lock->next;
	}
	return false;
}

/* Copies the numbers, `room` at the most, of keys that others have locked. */
static int64_t
find_locked(struct locks *locks, struct sequencer *sequencer, int32_t own,
            const struct tique_key *keys, int64_t count, int64_t *locked,
            int64_t room)
{
	int64_t met = 0;

	for (int64_t i = 0; i < count && met < room && locks->held > 0; i++) {
		uint64_t number = 0;

		if (tique_has_mode(&keys[i]))
			continue;
		for (int byte = 0; byte < 8; byte++)
			number = number << 8 | keys[i].bytes[byte];
		if (is_locked(locks, sequencer, own, (int64_t)number))
			locked[met++] = (int64_t)number;
	}
	return met;
}

int64_t
tique_locked(tique_handle handle, const int64_t *numbers, int64_t count,
             int64_t *locked, int64_t room)
{
	struct sequencer *sequencer = tique_enter(handle);
	struct locks *locks;
	int64_t met = 0;

	if (!sequencer)
		return TIQUE_CLOSED;
	locks = settled_locks(sequencer);
	for (int64_t i = 0; i < count && met < room && locks->held > 0; i++)
		if (is_locked(locks, sequencer, -1, numbers[i]))
			locked[met++] = numbers[i];
	tique_exit(sequencer);
	return met;
}

int64_t
tique_certify_for(tique_handle handle, tique_client client, tique_locker id,
                  int64_t sts, const struct tique_key *keys, int64_t count,
                  int64_t *winner, int64_t *locked, int64_t room)
{
	int status;
	struct sequencer *sequencer = tique_enter_for(handle, client, &status);
	struct locks *locks;
	const struct locker *locker;
	int64_t cts = TIQUE_UNKNOWN;

	if (!sequencer)
		return status;
	locks = settled_locks(sequencer);
	locker = find_locker(locks, client, id);
	if (locker || id == 0) {
		*winner = count > TIQUE_KEYS_PER_CALL
		              ? 0
		              : find_locked(locks, sequencer,
		                            locker ? place_of(locks, locker) : -1, keys,
		                            count, locked, room);
		cts = *winner > 0 ? TIQUE_LOCKED
		                  : tique_certify(sequencer, client, sts, keys, count,
		                                  winner);
	}
	tique_exit(sequencer);
	return cts;
}

int64_t
tique_lock_count(tique_handle handle)
{
	struct sequencer *sequencer = tique_enter(handle);
	int64_t count;

	if (!sequencer)
		return TIQUE_CLOSED;
	count = settled_locks(sequencer)->held;
	tique_exit(sequencer);
	return count;
}
