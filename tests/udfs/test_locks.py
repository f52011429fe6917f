"""One body for both sequencers: row locks, and commits that look for them (P3, P6, P11)."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tique_udfs import (
    EXCLUSIVE_PREFIX,
    SHARED_PREFIX,
    DeadlockError,
    FencedError,
    InterruptedWaitError,
    KeysLockedError,
    SequencerError,
    open_sequencer,
)
from tique_udfs._interface import LOCKERS_PER_CLIENT, LOCKS_PER_LOCKER, lock_number

pytestmark = pytest.mark.engine_free

LONG = 3600.0
PATIENCE = 20.0


def key(number):
    return number.to_bytes(8, "big", signed=True) + bytes(8)


class Owner:
    """A locker of a client, new by default."""

    def __init__(self, sequencer, client=None, lease=LONG):
        self.sequencer = sequencer
        self.client = sequencer.join(lease) if client is None else client
        self.number = sequencer.open_locker(self.client)

    def lock(self, *numbers, shared=False, timeout=0.0):
        return self.sequencer.lock(
            self.client, self.number, numbers, shared=shared, timeout=timeout
        )

    def unlock(self, *numbers, shared=False):
        self.sequencer.unlock(self.client, self.number, numbers, shared=shared)

    def certify(self, *numbers, sts=0):
        keys = list(map(key, numbers))
        return self.sequencer.certify_for(self.client, sts, keys, self.number)

    def close(self):
        self.sequencer.close_locker(self.client, self.number)


@pytest.fixture
def one(sequencer):
    return Owner(sequencer)


@pytest.fixture
def two(sequencer):
    return Owner(sequencer)


@pytest.fixture
def three(sequencer, one):
    """Of the same client as the first: that is no reason to share anything."""
    return Owner(sequencer, one.client)


@pytest.fixture
def pool():
    with ThreadPoolExecutor(3) as pool:
        yield pool


def waits(pool, owner, number, **options):
    """Let an owner wait for a number in another thread; return when it does."""
    began = threading.Event()

    def work():
        began.set()
        return owner.lock(number, timeout=PATIENCE, **options)

    outcome = pool.submit(work)
    assert began.wait(PATIENCE)
    time.sleep(0.05)
    assert not outcome.done()
    return outcome


def test_a_number_has_one_owner(one, two, three):
    assert one.lock(5, -(2**63), 2**63 - 1) == 3
    assert two.lock(4, 5, 6) == 1
    assert three.lock(5) == 0
    assert one.lock(5, 5) == 2
    assert one.sequencer.locks() == 4
    one.unlock(5, 9)
    assert three.lock(5) == 1
    assert two.lock(-(2**63)) == 0


def test_several_share_a_number(one, two, three):
    assert one.lock(1, shared=True) == two.lock(1, shared=True) == 1
    assert three.lock(1) == 0
    # One that shares it gets it alone when the others have let go.
    assert one.lock(1) == 0
    two.unlock(1, shared=True)
    assert one.lock(1) == 1
    one.unlock(1)
    assert two.lock(1) == 0
    assert two.lock(1, shared=True) == 1


def test_closing_gives_all_back(one, two):
    one.lock(*range(50))
    one.lock(*range(50, 60), shared=True)
    one.close()
    assert one.sequencer.locks() == 0
    assert two.lock(*range(60)) == 60
    with pytest.raises(SequencerError, match="no row locks"):
        one.lock(1)


def test_a_wait_ends_with_the_lock(one, two, pool):
    one.lock(1)
    outcome = waits(pool, two, 1)
    one.unlock(1)
    assert outcome.result(PATIENCE) == 1
    assert one.lock(1) == 0


def test_a_wait_ends_with_its_time(one, two):
    one.lock(1)
    started = time.monotonic()
    assert two.lock(1, timeout=0.15) == 0
    assert 0.15 <= time.monotonic() - started < PATIENCE


def test_those_that_wait_come_in_their_order(one, two, three, pool):
    one.lock(1)
    first = waits(pool, two, 1)
    second = waits(pool, three, 1)
    one.unlock(1)
    assert first.result(PATIENCE) == 1
    time.sleep(0.05)
    assert not second.done()
    two.close()
    assert second.result(PATIENCE) == 1


def test_a_wait_keeps_its_place_until_its_next_call(one, two, three):
    one.lock(1)
    assert two.lock(1, timeout=0.001) == 0
    one.unlock(1)
    assert three.lock(1) == 0
    assert two.lock(1, timeout=0.001) == 1
    two.unlock(1)
    one.lock(1)
    assert two.lock(1, timeout=0.001) == 0
    assert two.lock(2) == 1
    one.unlock(1)
    assert three.lock(1) == 1


def test_none_that_shares_overtakes_one_that_waits(one, two, three, pool):
    one.lock(1, shared=True)
    outcome = waits(pool, two, 1)
    assert three.lock(1, shared=True) == 0
    one.unlock(1, shared=True)
    assert outcome.result(PATIENCE) == 1


def test_one_that_wants_more_of_what_it_has_overtakes(one, two, three, pool):
    for owner in (one, two):
        owner.lock(1, shared=True)
    last = waits(pool, three, 1)
    more = waits(pool, one, 1)
    two.unlock(1, shared=True)
    assert more.result(PATIENCE) == 1
    time.sleep(0.05)
    assert not last.done()
    one.close()
    assert last.result(PATIENCE) == 1


def test_those_behind_a_wait_that_ends_go_on(one, two, three, pool):
    one.lock(1, shared=True)
    outcome = waits(pool, two, 1)
    behind = waits(pool, three, 1, shared=True)
    two.sequencer.interrupt_locker(two.client, two.number)
    with pytest.raises(InterruptedWaitError):
        outcome.result(PATIENCE)
    assert behind.result(PATIENCE) == 1


def test_a_deadlock_is_found_as_the_wait_begins(one, two, three, pool):
    for owner, number in ((one, 1), (two, 2), (three, 3)):
        owner.lock(number)
    first = waits(pool, one, 2)
    waits(pool, two, 3)
    with pytest.raises(DeadlockError):
        three.lock(1, timeout=PATIENCE)
    # The victim has what it had, and waits for nothing.
    assert Owner(one.sequencer).lock(3) == 0
    with pytest.raises(DeadlockError):
        three.lock(2, timeout=PATIENCE)
    three.close()
    two.close()
    assert first.result(PATIENCE) == 1


def test_a_deadlock_by_the_order_of_those_that_wait(one, two, three, pool):
    """The one that has a number waits for another behind one that waits for the number."""
    one.lock(1)
    two.lock(2, shared=True)
    three.lock(3)
    first = waits(pool, three, 2)
    last = waits(pool, one, 2, shared=True)
    with pytest.raises(DeadlockError):
        two.lock(1, timeout=PATIENCE)
    two.close()
    assert first.result(PATIENCE) == 1
    three.close()
    assert last.result(PATIENCE) == 1


def test_two_that_share_and_want_it_alone(one, two, pool):
    for owner in (one, two):
        owner.lock(1, shared=True)
    outcome = waits(pool, one, 1)
    with pytest.raises(DeadlockError):
        two.lock(1, timeout=PATIENCE)
    two.close()
    assert outcome.result(PATIENCE) == 1


def test_an_interrupt_meets_a_wait_only(one, two):
    two.sequencer.interrupt_locker(two.client, two.number)
    one.lock(1)
    assert two.lock(1, timeout=0.001) == 0
    two.sequencer.interrupt_locker(two.client, two.number)
    with pytest.raises(InterruptedWaitError):
        two.lock(1, timeout=PATIENCE)
    assert two.lock(1, timeout=0.001) == 0


def test_a_wait_ends_with_another_call_for_its_owner(one, two, three, pool):
    """The answer of a call that was cut off is not waited for: it takes no lock later."""
    one.lock(1)
    outcome = waits(pool, two, 1)
    assert two.lock(2) == 1
    with pytest.raises(InterruptedWaitError):
        outcome.result(PATIENCE)
    one.unlock(1)
    assert three.lock(1) == 1


@pytest.mark.parametrize("end", ["lease", "leave"])
def test_locks_go_with_their_client(sequencer, two, pool, end):
    """P6: and a wait for them ends."""
    doomed = Owner(sequencer, lease=0.3 if end == "lease" else LONG)
    doomed.lock(1)
    doomed.lock(2, shared=True)
    outcome = waits(pool, two, 1)
    if end == "leave":
        sequencer.leave(doomed.client)
    assert outcome.result(PATIENCE) == 1
    assert two.lock(2) == 1
    with pytest.raises(FencedError):
        doomed.lock(3)
    with pytest.raises(FencedError):
        doomed.certify(3)


def test_a_wait_goes_with_its_client(sequencer, one, two, pool):
    """P6: it is in no other's way, and learns why it ends."""
    doomed = Owner(sequencer)
    one.lock(1)
    outcome = waits(pool, doomed, 1)
    last = waits(pool, two, 1)
    sequencer.leave(doomed.client)
    with pytest.raises(FencedError):
        outcome.result(PATIENCE)
    one.unlock(1)
    assert last.result(PATIENCE) == 1


def test_a_commit_steps_back_from_a_lock(one, two):
    """P3: and takes no timestamp."""
    one.lock(1)
    one.lock(2, shared=True)
    with pytest.raises(KeysLockedError) as met:
        two.certify(3, 2, 1)
    assert met.value.numbers == {1, 2}
    assert one.sequencer.cts() == 0
    with pytest.raises(KeysLockedError):
        one.sequencer.certify_for(one.client, 0, [key(1)])
    assert one.certify(1, 2) == 1
    assert two.certify(3) == 2
    one.close()
    one.sequencer.finish_for(one.client, 1)
    assert two.certify(1, sts=1) == 3


def test_a_wait_is_no_lock_for_a_commit(one, two, three, pool):
    one.lock(1)
    outcome = waits(pool, two, 1)
    assert one.certify(1) == 1
    one.close()
    assert outcome.result(PATIENCE) == 1
    with pytest.raises(KeysLockedError):
        three.certify(1)


def test_a_reference_is_no_row(one, two):
    """Checks of FOREIGN KEYs wait for no lock, whatever numbers are locked."""
    references = [prefix + bytes(8) for prefix in (SHARED_PREFIX, EXCLUSIVE_PREFIX)]
    one.lock(*map(lock_number, references))
    assert two.sequencer.certify_for(two.client, 0, references, two.number) == 1


def test_no_client_uses_anothers_locks(one, two):
    """P11."""
    one.lock(1)
    two.number, own = one.number, two.number
    calls = [
        lambda: two.lock(2),
        lambda: two.unlock(1),
        lambda: two.certify(1),
        lambda: two.sequencer.interrupt_locker(two.client, two.number),
        two.close,
    ]
    for number in (one.number, 0, -1, 2**63 - 1, own + 4096):
        two.number = number
        for call in calls:
            if number == 0 and call is calls[2]:
                continue
            with pytest.raises(SequencerError, match="no row locks"):
                call()
    two.number = own
    assert two.lock(1) == 0
    with pytest.raises(FencedError):
        two.sequencer.lock(one.client + 1, one.number, [1], shared=False)


def test_a_number_is_not_used_again(one, two):
    """One that was closed means none that was opened later."""
    old = one.number
    one.close()
    one.number = one.sequencer.open_locker(one.client)
    one.lock(1)
    one.number = old
    with pytest.raises(SequencerError, match="no row locks"):
        one.unlock(1)
    assert two.lock(1) == 0


def test_the_shares_of_one(one, two):
    """P11."""
    with pytest.raises(SequencerError, match="one client"):
        one.lock(*range(LOCKS_PER_LOCKER + 1))
    assert one.lock(*range(LOCKS_PER_LOCKER)) == LOCKS_PER_LOCKER
    with pytest.raises(SequencerError, match="one client"):
        one.lock(-1)
    for _ in range(LOCKERS_PER_CLIENT - 1):
        one.sequencer.open_locker(one.client)
    with pytest.raises(SequencerError, match="one client"):
        one.sequencer.open_locker(one.client)
    assert two.lock(-1) == 1


def test_the_shares_of_all(small, kind):
    """P11: what is full is refused, and has room again."""
    sequencer = open_sequencer("small")
    owners = [Owner(sequencer) for _ in range(small["LOCKER_CAPACITY"])]
    with pytest.raises(SequencerError, match="no room for more row locks"):
        sequencer.open_locker(owners[0].client)
    assert owners[0].lock(1, 2, 3) == 3
    with pytest.raises(SequencerError, match="no room for more row locks"):
        owners[1].lock(4, 5, 6)
    assert owners[1].lock(4, 5) == 2
    sequencer.leave(owners[0].client)
    assert owners[2].lock(1, 2) == 2
    assert Owner(sequencer, owners[1].client).lock(4) == 0
    sequencer.close()


def test_random_calls_against_a_model(sequencer):
    """Which owner has what is as in a dictionary of sets."""
    chance = random.Random(7)
    client = sequencer.join(LONG)
    owners = [Owner(sequencer, client) for _ in range(5)]
    held = {}
    for _ in range(3000):
        place, number, shared = (
            chance.randrange(5),
            chance.randrange(4),
            chance.random() < 0.5,
        )
        owner = owners[place]
        others = {m for p, m in held.get(number, set()) if p != place}
        if chance.random() < 0.6:
            is_free = not others or (shared and others == {True})
            assert owner.lock(number, shared=shared) == is_free
            if is_free:
                held.setdefault(number, set()).add((place, shared))
        elif chance.random() < 0.9:
            owner.unlock(number, shared=shared)
            held.get(number, set()).discard((place, shared))
        else:
            owner.close()
            owners[place] = Owner(sequencer, client)
            for modes in held.values():
                modes -= {(place, False), (place, True)}
        assert sequencer.locks() == sum(map(len, held.values()))
