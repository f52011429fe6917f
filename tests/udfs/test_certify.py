"""One body for both sequencers: first committer wins, in memory (P3)."""

import os
import pickle
import random
import time
from pathlib import Path

import pytest

from tests.effort import patience
from tique_udfs import (
    EXCLUSIVE_PREFIX,
    SHARED_PREFIX,
    FencedError,
    KeyConflictError,
    SequencerError,
)
from tique_udfs._interface import KEY_CAPACITY, KEYS_PER_CALL

pytestmark = pytest.mark.engine_free

LONG = 3600.0
STATM = Path("/proc/self/statm")


def key(number):
    return number.to_bytes(16, "big")


class Client:
    """A client, and its transactions by name."""

    def __init__(self, sequencer):
        self.sequencer = sequencer
        self.number = sequencer.join(LONG)

    def begin(self):
        return self.sequencer.begin_for(self.number)

    def certify(self, transaction, *numbers, sts=None):
        if sts is None:
            _, sts = transaction
        return self.sequencer.certify_for(self.number, sts, list(map(key, numbers)))

    def finish(self, cts):
        self.sequencer.finish_for(self.number, cts)

    def abort(self, cts):
        self.sequencer.abort_for(self.number, cts)

    def commit(self, transaction, *numbers):
        cts = self.certify(transaction, *numbers)
        self.finish(cts)
        self.sequencer.end_for(self.number, transaction[0])
        return cts

    def write(self, *numbers):
        return self.commit(self.begin(), *numbers)


@pytest.fixture
def client(sequencer):
    return Client(sequencer)


@pytest.fixture
def other(sequencer):
    return Client(sequencer)


def refused(client, transaction, *numbers, winner):
    before = client.sequencer.cts()
    with pytest.raises(KeyConflictError) as caught:
        client.certify(transaction, *numbers)
    assert caught.value.winner == winner
    assert client.sequencer.cts() == before


def test_the_first_committer_wins(client, other):
    one, two = client.begin(), other.begin()
    assert client.commit(one, 1, 2) == 1
    refused(other, two, 3, 2, winner=1)
    assert other.commit(two, 3, 4) == 2


def test_a_commit_under_way_wins_already(client, other):
    one, two = client.begin(), other.begin()
    cts = client.certify(one, 1)
    refused(other, two, 1, winner=cts)
    client.finish(cts)
    refused(other, two, 1, winner=cts)


def test_one_after_the_other_is_no_conflict(client, other):
    assert [client.write(1), other.write(1), client.write(1)] == [1, 2, 3]


def test_what_was_refused_leaves_no_trace(client, other):
    old, one, two = client.begin(), client.begin(), other.begin()
    client.commit(one, 1)
    refused(other, two, 7, 8, 1, winner=1)
    assert client.commit(old, 7, 8) == 2


def test_an_abort_frees_the_keys(client, other):
    one, two = client.begin(), other.begin()
    cts = client.certify(one, 1)
    client.abort(cts)
    assert other.commit(two, 1) == cts + 1


def test_an_abort_goes_back_to_the_commit_before(client, other):
    old = client.begin()
    first = other.write(1)
    other.abort(other.certify(other.begin(), 1))
    refused(client, old, 1, winner=first)
    assert client.write(1) == 3


def test_an_abort_after_the_end_changes_nothing(client, other):
    old, gap = other.begin(), client.certify(client.begin(), 9)
    committed = client.write(1)
    client.abort(committed)
    refused(other, old, 1, winner=committed)
    client.finish(gap)
    client.abort(committed)
    refused(other, old, 1, winner=committed)


def test_a_fence_frees_the_keys(sequencer, client, other):
    one, two = client.begin(), other.begin()
    cts = client.certify(one, 1)
    sequencer.leave(client.number)
    refused(other, two, 1, winner=cts)
    sequencer.fence(cts)
    with pytest.raises(FencedError):
        client.certify(one, 5)
    assert other.commit(two, 1) == cts + 1


def test_a_key_may_be_there_twice(client, other):
    old = other.begin()
    first = client.write(1)
    client.abort(client.certify(client.begin(), 1, 2, 1))
    refused(other, old, 1, winner=first)
    assert other.certify(old, 2) == 3


def test_a_transaction_without_keys_gets_a_timestamp(client):
    assert client.write() == 1


def test_a_later_statements_snapshot(sequencer, client, other):
    """READ COMMITTED writes under newer snapshots than its first."""
    mine = client.begin()
    seen = other.write(1)
    refused(client, mine, 1, winner=seen)
    assert client.certify(mine, 1, sts=seen) == 2


def test_nobody_has_certified_what_is_not_finished(sequencer, client, other):
    mine = client.begin()
    other.certify(mine, 1)
    for sts in (-1, 1, 2):
        with pytest.raises(SequencerError, match=f"up to {sts} is finished"):
            client.certify(mine, 2, sts=sts)
    assert sequencer.cts() == 1


def test_what_was_before_recovery_is_behind_the_barrier(sequencer, client):
    begun = client.begin()
    sequencer.end_for(client.number, begun[0])
    sequencer.recover(sts=10, txid=10)
    refused(client, begun, 1, winner=10)
    assert client.write(1) == 11


def test_a_key_has_sixteen_bytes(sequencer, client):
    for wrong in (b"", b"x" * 15, b"x" * 17):
        with pytest.raises(ValueError, match="16 bytes"):
            sequencer.certify_for(client.number, 0, [key(1), wrong])
    assert sequencer.cts() == 0


def test_keys_are_remembered_as_long_as_there_is_room(sequencer, client, other):
    old = other.begin()
    for start in range(0, 20_000, 100):
        client.write(*range(start, start + 100))
    assert sequencer.keys() == 20_000
    for number in (0, 150, 9_999, 19_999):
        refused(other, old, number, winner=number // 100 + 1)


def test_an_old_snapshot_holds_no_memory(sequencer, client, other):
    old = other.begin()
    for start in range(0, 1_000_000, 5000):
        client.write(*range(start, start + 5000))
    assert sequencer.keys() <= KEY_CAPACITY
    refused(other, old, 999_999, winner=200 - KEY_CAPACITY // 5000)


@pytest.mark.skipif(not STATM.exists(), reason="no /proc")
def test_memory_is_bounded(native):
    """The memory of the process, not only by the sequencer's own account."""
    client, page = Client(native), os.sysconf("SC_PAGE_SIZE")
    client.begin()
    resident = []
    for start in range(0, 1_000_000, 5000):
        client.write(*range(start, start + 5000))
        resident.append(int(STATM.read_text().split()[1]) * page)
    assert resident[-1] - resident[0] < 16 * 2**20


def test_who_is_behind_what_is_forgotten_follows(small, sequencer, client, other):
    """The keys that are forgotten, and the barrier: their newest timestamp."""
    old = other.begin()
    for start in range(0, 12, 3):
        client.write(start, start + 1, start + 2)
    assert sequencer.keys() == 8
    for mine in (0, 1, 11, 99):
        refused(other, old, mine, winner=2)
    assert other.certify(old, 0, 3, sts=2) == 5


def test_the_barrier_is_not_older_than_it_must_be(small, sequencer, client, other):
    client.write(1)
    mine = other.begin()
    for number in range(2, 10):
        client.write(number)
    assert sequencer.keys() == 8
    for number in range(2, 10):
        refused(other, mine, number, winner=number)
    assert other.certify(mine, 1) == 10


def test_what_is_under_way_is_not_forgotten(small, sequencer, client, other):
    """It would make all clients wait for its end."""
    old = other.begin()
    slow = client.certify(client.begin(), 0)
    for number in range(1, 8):
        client.write(number)
    assert (sequencer.sts(), sequencer.keys()) == (0, 8)
    refused(other, old, 0, winner=slow)
    refused(other, old, 7, winner=8)
    # Nothing can be forgotten: the next one is a barrier.
    assert other.certify(old, 20) == 9
    assert sequencer.keys() == 8
    refused(client, client.begin(), 30, winner=9)
    client.finish(slow)
    other.finish(9)
    assert client.write(0, 20, 30) == 10
    assert sequencer.keys() == 8


def test_more_keys_than_can_be_remembered(small, sequencer, client, other):
    old = other.begin()
    client.write(1)
    refused(other, old, *range(20), winner=1)
    large = client.certify(client.begin(), *range(20))
    assert (large, sequencer.keys()) == (2, 1)
    refused(other, other.begin(), 99, winner=large)
    client.finish(large)
    refused(other, old, 99, winner=large)
    assert other.write(*range(8)) == 3
    assert sequencer.keys() == 8


def test_an_abort_of_more_keys_than_can_be_remembered(small, client, other):
    mine = other.begin()
    large = client.certify(client.begin(), *range(20))
    client.abort(large)
    refused(other, mine, 1, winner=large)
    assert other.certify(mine, 1, sts=large) == 2


def test_an_abort_when_the_commit_before_is_forgotten(small, sequencer, client, other):
    old = other.begin()
    client.write(1)
    late = other.begin()
    again = client.certify(client.begin(), 1)
    for number in range(10, 17):
        client.write(number)
    assert sequencer.keys() == 8
    client.abort(again)
    refused(other, old, 1, winner=1)
    assert other.certify(late, 1) == 10
    assert sequencer.keys() == 8


PATIENCE = 2.0
"""Seconds within which others must get their turn."""


def in_time(call):
    """Run it; no other client waited for it longer than that."""
    started = time.monotonic()
    result = call()
    assert time.monotonic() - started < patience(PATIENCE)
    return result


def collisions(count):
    """Keys that are all alike to a hash which adds their halves up."""
    return [number.to_bytes(8, "big") * 2 for number in range(1, count + 1)]


def test_keys_that_were_chosen_to_collide_hold_nobody_up(sequencer, client, other):
    """P6: the time for a write set is linear in its keys, for any keys."""
    old = other.begin()[1]
    keys = collisions(KEYS_PER_CALL)
    cts = in_time(lambda: sequencer.certify_for(client.number, 0, keys))
    client.finish(cts)
    fresh = [key[::-1] for key in keys[256:]]
    assert not set(fresh) & set(keys)
    second = in_time(lambda: sequencer.certify_for(other.number, old, fresh))
    assert second == cts + 1


def test_a_write_set_is_bounded(sequencer, client):
    """P6: a larger one takes a barrier."""
    keys = [key(number) for number in range(KEYS_PER_CALL + 1)]
    with pytest.raises(SequencerError, match="take a barrier"):
        sequencer.certify_for(client.number, 0, keys)
    assert (sequencer.cts(), sequencer.keys()) == (0, 0)
    assert sequencer.certify_for(client.number, 0, keys[1:]) == 1
    assert sequencer.keys() == KEYS_PER_CALL


def test_aborts_do_not_look_at_what_others_wrote(sequencer, client, other):
    """P6: also when very many are taken back, each before many others."""
    numbers = range(60_000 if sequencer.kind == "c" else 20_000)
    stamps = [client.certify((0, 0), number) for number in numbers]
    in_time(lambda: [client.abort(cts) for cts in stamps[:-1]])
    refused(other, (0, 0), numbers[-1], winner=stamps[-1])
    client.finish(stamps[-1])
    assert other.certify((0, 0), *numbers[:-1]) == len(stamps) + 1


def test_a_key_that_is_taken_back_again_and_again(sequencer, client, other):
    first = client.write(1)
    for _ in range(20_000):
        client.abort(client.certify((0, first), 1))
    in_time(lambda: [refused_by(other, 1, first) for _ in range(2000)])
    assert other.certify((0, first), 1) == 20_002


def refused_by(client, number, winner):
    with pytest.raises(KeyConflictError) as caught:
        client.certify((0, 0), number)
    assert caught.value.winner == winner


def moded(number, *, gives_up=False):
    """A key in shared mode; or in exclusive mode, which is passed with it."""
    tail = number.to_bytes(8, "big")
    keys = [SHARED_PREFIX + tail]
    return [*keys, EXCLUSIVE_PREFIX + tail] if gives_up else keys


class Modes:
    """Certification of keys that have modes, as of one snapshot."""

    def __init__(self, client, other):
        self.turns = [client, other]
        self.sts = client.sequencer.sts()

    def certify(self, number, *, gives_up=False):
        self.turns.reverse()
        client = self.turns[0]
        keys = moded(number, gives_up=gives_up)
        cts = client.sequencer.certify_for(client.number, self.sts, keys)
        client.finish(cts)
        return cts


@pytest.fixture
def modes(client, other):
    return Modes(client, other)


def test_a_key_in_shared_mode_does_not_conflict_with_itself(modes):
    """P9: many rows reference one."""
    for _ in range(5):
        modes.certify(1)


@pytest.mark.parametrize("first", ["shared", "exclusive"])
@pytest.mark.parametrize("second", ["shared", "exclusive"])
def test_modes_of_a_key(modes, first, second):
    """P9: a reference and the deletion of what it references exclude each other."""
    winner = modes.certify(1, gives_up=first == "exclusive")
    if first == second == "shared":
        modes.certify(1)
        return
    with pytest.raises(KeyConflictError) as caught:
        modes.certify(1, gives_up=second == "exclusive")
    assert caught.value.winner == winner
    modes.certify(2, gives_up=True)


def test_a_conflict_behind_many_shared_keys(modes):
    """One that gave a key up is found behind others that share it."""
    winner = modes.certify(1, gives_up=True)
    since, modes.sts = modes.sts, winner
    for _ in range(20):
        modes.certify(1)
    modes.sts = since
    with pytest.raises(KeyConflictError):
        modes.certify(1)


def test_an_earlier_release_would_refuse_the_same():
    """Its sequencer has no modes: there, equal bytes conflict."""
    deletion, reference = moded(1, gives_up=True), moded(1)
    assert set(deletion) & set(reference)


def test_keys_like_one_with_a_mode_are_plain(client, other):
    for prefix in (SHARED_PREFIX[:7] + b"T", b"x" + SHARED_PREFIX[1:]):
        plain = [prefix + (1).to_bytes(8, "big")]
        sts = client.sequencer.sts()
        client.finish(client.sequencer.certify_for(client.number, sts, plain))
        with pytest.raises(KeyConflictError):
            other.sequencer.certify_for(other.number, sts, plain)


def test_the_error_can_be_pickled():
    again = pickle.loads(pickle.dumps(KeyConflictError(7)))
    assert (again.winner, str(again)) == (7, str(KeyConflictError(7)))


@pytest.mark.parametrize("seed", range(10))
def test_against_the_definition(sequencer, seed):
    """A write set conflicts with every one committed, or under way, after its snapshot."""
    rng = random.Random(seed)
    clients = [Client(sequencer) for _ in range(3)]
    active, under_way, committed = [], [], []
    for _ in range(2000):
        choice = rng.random()
        if choice < 0.4 or not active:
            client = rng.choice(clients)
            active.append((client, client.begin()))
        elif choice < 0.75:
            client, transaction = active.pop(rng.randrange(len(active)))
            keys = {rng.randrange(30) for _ in range(rng.randint(0, 3))}
            rivals = [
                cts
                for cts, others in committed + [entry[1:] for entry in under_way]
                if cts > transaction[1] and keys & others
            ]
            if rivals:
                with pytest.raises(KeyConflictError) as caught:
                    client.certify(transaction, *keys)
                assert caught.value.winner in rivals
                sequencer.end_for(client.number, transaction[0])
            else:
                under_way.append((client, client.certify(transaction, *keys), keys))
        elif under_way:
            client, cts, keys = under_way.pop(rng.randrange(len(under_way)))
            if choice < 0.9:
                client.finish(cts)
                committed.append((cts, keys))
            else:
                client.abort(cts)
