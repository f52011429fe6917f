"""One body for both sequencers: the promises of a sequencer."""

import gc
import math
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.effort import patience
from tique_udfs import (
    LARGEST_TXID,
    RING_CAPACITY,
    RingFullError,
    Sequencer,
    SequencerClosedError,
    SequencerError,
    open_sequencer,
)

pytestmark = pytest.mark.engine_free


def test_a_new_sequencer_is_at_zero(sequencer):
    assert sequencer.sts() == sequencer.cts() == sequencer.stable() == 0
    assert sequencer.active() == []
    assert sequencer.begin() == (1, 0)
    assert sequencer.next_cts() == 1


def test_sts_advances_over_the_contiguous_prefix(sequencer):
    assert [sequencer.next_cts() for _ in range(4)] == [1, 2, 3, 4]
    seen = []
    for cts in (3, 2, 4, 1):
        sequencer.finish(cts)
        seen.append(sequencer.sts())
    assert seen == [0, 0, 0, 4]
    assert sequencer.cts() == 4


def test_an_aborted_timestamp_leaves_no_hole(sequencer):
    aborted, committed = sequencer.next_cts(), sequencer.next_cts()
    sequencer.finish(committed)
    assert sequencer.sts() == 0
    sequencer.finish(aborted)
    assert sequencer.sts() == committed


def test_finish_is_idempotent(sequencer):
    first, second = sequencer.next_cts(), sequencer.next_cts()
    for _ in range(2):
        sequencer.finish(second)
    for _ in range(2):
        sequencer.finish(first)
    sequencer.finish(second)
    assert sequencer.sts() == 2
    third = sequencer.next_cts()
    assert sequencer.sts() == 2
    sequencer.finish(third)
    assert sequencer.sts() == 3


@pytest.mark.parametrize("cts", [-1, 0, 2])
def test_a_timestamp_that_was_never_handed_out_cannot_finish(sequencer, cts):
    sequencer.next_cts()
    with pytest.raises(SequencerError, match=f"never handed out cts {cts}"):
        sequencer.finish(cts)
    assert sequencer.sts() == 0


def commit(sequencer: Sequencer) -> int:
    cts = sequencer.next_cts()
    sequencer.finish(cts)
    return cts


def test_lambda_is_the_oldest_active_snapshot(sequencer):
    begun = []
    for _ in range(5):
        begun.append(sequencer.begin()[0])
        commit(sequencer)
    assert sequencer.stable() == 0
    assert [(found.txid, found.sts) for found in sequencer.active()] == [
        (txid, sts) for sts, txid in enumerate(begun)
    ]
    sequencer.end(begun[2])
    assert sequencer.stable() == 0
    sequencer.end(begun[0])
    assert sequencer.stable() == 1
    sequencer.end(begun[1])
    assert sequencer.stable() == 3
    sequencer.end(begun[4])
    sequencer.end(begun[3])
    assert sequencer.stable() == sequencer.sts() == 5
    assert sequencer.active() == []


def test_a_snapshot_does_not_move(sequencer):
    txid, sts = sequencer.begin()
    commit(sequencer)
    assert sequencer.active()[0][:2] == (txid, sts) == (1, 0)


def test_refresh_moves_a_snapshot_to_the_end_of_the_line(sequencer):
    first, _ = sequencer.begin()
    commit(sequencer)
    second, _ = sequencer.begin()
    commit(sequencer)
    assert sequencer.refresh(first) == 2
    assert sequencer.stable() == 1
    assert [found.txid for found in sequencer.active()] == [second, first]
    sequencer.end(second)
    assert sequencer.stable() == 2
    assert sequencer.refresh(first) == 2


def test_refresh_of_a_transaction_that_is_over_is_refused(sequencer):
    txid, _ = sequencer.begin()
    sequencer.end(txid)
    with pytest.raises(SequencerError, match=f"transaction {txid} is not active"):
        sequencer.refresh(txid)
    assert sequencer.active() == []


def test_end_is_idempotent(sequencer):
    first, _ = sequencer.begin()
    commit(sequencer)
    second, _ = sequencer.begin()
    for _ in range(3):
        sequencer.end(first)
    assert [found.txid for found in sequencer.active()] == [second]
    assert sequencer.begin()[0] == second + 1


@pytest.mark.parametrize("txid", [-1, 0, 2])
def test_a_transaction_that_never_began_cannot_end(sequencer, txid):
    sequencer.begin()
    with pytest.raises(SequencerError, match=f"never handed out txid {txid}"):
        sequencer.end(txid)


def test_many_transactions_may_be_active(sequencer):
    begun = [sequencer.begin()[0] for _ in range(5000)]
    assert begun == list(range(1, 5001))
    assert [found.txid for found in sequencer.active()] == begun
    random.Random(1).shuffle(begun)
    for txid in begun[:-1]:
        sequencer.end(txid)
    assert [found.txid for found in sequencer.active()] == begun[-1:]


def test_active_transactions_are_bounded(small, sequencer):
    begun = [sequencer.begin()[0] for _ in range(small["SNAPSHOT_CAPACITY"])]
    for _ in range(2):
        with pytest.raises(SequencerError, match="no room for more; end some"):
            sequencer.begin()
    for txid in (begun.pop(2), begun.pop(0), begun.pop()):
        sequencer.end(txid)
        begun.append(sequencer.begin()[0])
        commit(sequencer)
    assert begun[-1] == small["SNAPSHOT_CAPACITY"] + 3
    assert [found.txid for found in sequencer.active()] == begun
    with pytest.raises(SequencerError, match="no room for more"):
        sequencer.begin()


def test_age_counts_from_the_snapshot(sequencer):
    txid, _ = sequencer.begin()
    time.sleep(0.05)
    (aged,) = sequencer.active()
    assert 0.05 <= aged.age < 5
    sequencer.refresh(txid)
    (fresh,) = sequencer.active()
    assert fresh.age < aged.age


def test_a_finaliser_may_end_a_transaction(sequencer):
    """Garbage collection inside any method does not block or break it."""

    class Connection:
        def __init__(self):
            self.txid, _ = sequencer.begin()
            self.cycle = self

        def __del__(self):
            sequencer.end(self.txid)

    threshold = gc.get_threshold()
    gc.set_threshold(3, 1, 1)
    try:
        for _ in range(300):
            Connection()
            commit(sequencer)
            assert sequencer.stable() <= sequencer.sts()
            sequencer.active()
    finally:
        gc.set_threshold(*threshold)
    gc.collect()
    assert sequencer.active() == []
    assert sequencer.stable() == 300


def test_wait_returns_at_once_when_sts_is_there(sequencer):
    commit(sequencer)
    assert sequencer.wait(1, 0) is True
    assert sequencer.wait(1, -5) is True
    assert sequencer.wait(0, 100) is True


def test_wait_times_out(sequencer):
    cts = sequencer.next_cts()
    start = time.monotonic()
    assert sequencer.wait(cts, 0.15) is False
    assert 0.14 < time.monotonic() - start < patience(5)
    assert sequencer.wait(cts, 0) is False


@pytest.mark.parametrize("timeout", [math.inf, math.nan])
def test_every_wait_is_bounded(sequencer, timeout):
    with pytest.raises(ValueError, match="finite"):
        sequencer.wait(0, timeout)


def test_wait_is_woken_by_the_timestamp_that_closes_the_gap(sequencer):
    first, second = sequencer.next_cts(), sequencer.next_cts()
    with ThreadPoolExecutor(4) as pool:
        waits = [pool.submit(sequencer.wait, cts, 30) for cts in (1, 2, 2, 1)]
        sequencer.finish(second)
        time.sleep(0.02)
        assert not any(wait.done() for wait in waits)
        start = time.monotonic()
        sequencer.finish(first)
        assert all(wait.result() for wait in waits)
    assert time.monotonic() - start < patience(5)


def test_other_threads_run_while_one_waits(sequencer):
    cts = sequencer.next_cts()
    waiter = threading.Thread(target=sequencer.wait, args=(cts, 30))
    waiter.start()
    assert sum(1 for _ in range(10_000)) == 10_000
    sequencer.finish(cts)
    waiter.join(5)
    assert not waiter.is_alive()


def test_a_signal_interrupts_a_wait(sequencer):
    class Interrupt(Exception):
        pass

    def interrupt(number, frame):
        raise Interrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    start = time.monotonic()
    try:
        with pytest.raises(Interrupt):
            sequencer.wait(1, 30)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - start < patience(5)


def test_recover_continues_behind_the_durable_state(sequencer):
    sequencer.recover(sts=41, txid=99)
    assert sequencer.sts() == sequencer.cts() == sequencer.stable() == 41
    assert sequencer.begin() == (100, 41)
    assert commit(sequencer) == 42
    assert sequencer.sts() == 42


def test_recover_anywhere_in_the_ring(sequencer):
    sequencer.recover(sts=3 * RING_CAPACITY - 2, txid=0)
    handed_out = [sequencer.next_cts() for _ in range(5)]
    for cts in reversed(handed_out):
        sequencer.finish(cts)
    assert sequencer.sts() == handed_out[-1]


def test_recover_never_goes_back(sequencer):
    sequencer.recover(sts=10, txid=10)
    for sts, txid in ((9, 10), (10, 9)):
        with pytest.raises(SequencerError, match="cannot go back"):
            sequencer.recover(sts=sts, txid=txid)
    sequencer.recover(sts=10, txid=10)


@pytest.mark.parametrize(("sts", "txid"), [(-1, 0), (0, -1), (2**62, 0)])
def test_recover_refuses_what_no_sequencer_can_have_reached(sequencer, sts, txid):
    with pytest.raises(ValueError, match="from 0 to"):
        sequencer.recover(sts=sts, txid=txid)


def test_recover_is_refused_in_service(sequencer):
    txid, _ = sequencer.begin()
    with pytest.raises(SequencerError, match="recover before"):
        sequencer.recover(sts=10, txid=10)
    sequencer.end(txid)
    cts = sequencer.next_cts()
    with pytest.raises(SequencerError, match="recover before"):
        sequencer.recover(sts=10, txid=10)
    sequencer.finish(cts)
    sequencer.recover(sts=10, txid=10)


def test_the_ring_is_never_overrun(sequencer):
    stuck = sequencer.next_cts()
    for _ in range(RING_CAPACITY - 1):
        sequencer.finish(sequencer.next_cts())
    for _ in range(2):
        with pytest.raises(RingFullError, match="unfinished commit"):
            sequencer.next_cts()
    assert sequencer.sts() == 0
    assert sequencer.cts() == RING_CAPACITY
    sequencer.finish(stuck)
    assert sequencer.sts() == RING_CAPACITY
    assert commit(sequencer) == sequencer.sts() == RING_CAPACITY + 1


def test_sequencers_are_independent(sequencer):
    other = open_sequencer(sequencer.name)
    try:
        commit(sequencer)
        sequencer.begin()
        assert (other.sts(), other.cts(), other.active()) == (0, 0, [])
        other.recover(sts=7, txid=7)
        assert (sequencer.sts(), sequencer.begin()[0]) == (1, 2)
    finally:
        other.close()
    assert sequencer.sts() == 1


def test_a_closed_sequencer_says_so(sequencer):
    txid, _ = sequencer.begin()
    sequencer.next_cts()
    sequencer.close()
    sequencer.close()
    for call in (
        sequencer.begin,
        sequencer.next_cts,
        sequencer.sts,
        sequencer.cts,
        sequencer.stable,
        sequencer.active,
        lambda: sequencer.refresh(txid),
        lambda: sequencer.finish(1),
        lambda: sequencer.wait(1, 0),
        lambda: sequencer.recover(sts=5, txid=5),
    ):
        with pytest.raises(SequencerClosedError, match="'test' is closed"):
            call()
    sequencer.end(txid)


def test_close_wakes_those_who_wait(sequencer):
    with ThreadPoolExecutor(2) as pool:
        waits = [pool.submit(sequencer.wait, 1, 30) for _ in range(2)]
        time.sleep(0.02)
        sequencer.close()
        for wait in waits:
            assert isinstance(wait.exception(timeout=5), SequencerClosedError)


def test_no_checkpoint_overtakes_a_snapshot(sequencer):
    """P7: a λ that was read bounds every snapshot, then and later."""
    stop = threading.Event()
    published = [0]

    def checkpoint() -> None:
        while not stop.is_set():
            stable = sequencer.stable()
            assert stable >= published[0]
            published[0] = stable

    def transact(seed: int) -> None:
        rng = random.Random(seed)
        while not stop.is_set():
            floor = published[0]
            txid, sts = sequencer.begin()
            assert floor <= sts
            if rng.random() < 0.3:
                floor = published[0]
                refreshed = sequencer.refresh(txid)
                assert max(floor, sts) <= refreshed
                sts = refreshed
            if rng.random() < 0.5:
                cts = sequencer.next_cts()
                assert sts < cts
                sequencer.finish(cts)
                assert sequencer.wait(cts, 10)
            assert published[0] <= sts
            assert sequencer.stable() <= sts
            sequencer.end(txid)

    with ThreadPoolExecutor(5) as pool:
        futures = [pool.submit(checkpoint)]
        futures += [pool.submit(transact, seed) for seed in range(4)]
        time.sleep(0.4)
        stop.set()
        for future in futures:
            future.result(timeout=20)
    assert sequencer.active() == []
    assert sequencer.stable() == sequencer.sts() == sequencer.cts() > 0


def test_both_sequencers_do_the_same(monkeypatch):
    monkeypatch.setenv("TIQUE_SEQUENCER", "c")
    native = open_sequencer("same")
    monkeypatch.setenv("TIQUE_SEQUENCER", "python")
    python = open_sequencer("same")
    rng = random.Random(4)

    def outcome(sequencer: Sequencer, name: str, arguments: tuple) -> object:
        try:
            return getattr(sequencer, name)(*arguments)
        except SequencerError as error:
            return type(error), str(error)

    for step in range(1500):
        name = rng.choice(
            ["begin", "end", "refresh", "next_cts", "finish", "finish", "stable"]
        )
        arguments = {
            "end": lambda: (rng.randint(0, python.begin()[0] + 1),),
            "refresh": lambda: (rng.randint(0, 600),),
            "finish": lambda: (python.sts() + rng.randint(-1, 5),),
        }.get(name, tuple)()
        if name == "end":
            native.begin()
        assert outcome(native, name, arguments) == outcome(python, name, arguments), (
            step,
            name,
            arguments,
        )
        for look in ("sts", "cts", "stable"):
            assert outcome(native, look, ()) == outcome(python, look, ())
        assert [found[:2] for found in native.active()] == [
            found[:2] for found in python.active()
        ]
    native.close()
    python.close()


def test_ids_that_are_skipped(sequencer):
    """P5: also while transactions are active; none is handed out twice."""
    first, _ = sequencer.begin()
    sequencer.skip_txids(100)
    second, _ = sequencer.begin()
    sequencer.skip_txids(7)
    third, _ = sequencer.begin()
    assert (first, second, third) == (1, 101, 102)
    assert [found.txid for found in sequencer.active()] == [1, 101, 102]
    sequencer.skip_txids(LARGEST_TXID)
    assert sequencer.begin()[0] == LARGEST_TXID + 1 == 2**63 - 1
    with pytest.raises(ValueError, match="txid must be from 0"):
        sequencer.skip_txids(LARGEST_TXID + 1)
