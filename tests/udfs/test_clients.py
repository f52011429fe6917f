"""One body for both sequencers: several clients, of which some die (P6)."""

import random
import threading
import time
from functools import partial

import pytest

from tests.effort import patience
from tique_udfs import FencedError, SequencerError, open_sequencer
from tique_udfs._interface import BARRIERS_PER_CLIENT, SNAPSHOTS_PER_CLIENT

pytestmark = pytest.mark.engine_free

LONG = 3600.0
SHORT = 0.05


@pytest.fixture
def client(sequencer):
    return sequencer.join(LONG)


def die(sequencer):
    """A client that is silent after it began and took a timestamp."""
    client = sequencer.join(SHORT)
    begun = sequencer.begin_for(client)
    cts = sequencer.next_cts_for(client)
    time.sleep(SHORT * 1.5)
    return client, begun[0], cts


def commit(sequencer, client):
    cts = sequencer.next_cts_for(client)
    sequencer.finish_for(client, cts)
    return cts


def test_clients_are_numbers_that_nobody_can_guess(sequencer):
    """P11."""
    clients = {sequencer.join(LONG) for _ in range(100)}
    assert len(clients) == sequencer.clients() == 100
    assert min(clients) > 0
    assert max(clients) > 2**56


def test_a_client_does_what_an_owner_does(sequencer, client):
    txid, sts = sequencer.begin_for(client)
    assert (txid, sts) == (1, 0)
    assert commit(sequencer, client) == 1
    assert sequencer.stable() == 0
    sequencer.advance_for(client, txid, 1)
    assert sequencer.stable() == 1
    for _ in range(2):
        sequencer.end_for(client, txid)
    assert sequencer.active() == []


def test_a_clients_snapshots_go_when_it_leaves(sequencer, client):
    other = sequencer.join(LONG)
    for _ in range(3):
        sequencer.begin_for(client)
        commit(sequencer, client)
    kept = sequencer.begin_for(other)
    commit(sequencer, other)
    assert sequencer.stable() == 0
    sequencer.leave(client)
    assert [entry[:2] for entry in sequencer.active()] == [kept]
    assert sequencer.stable() == 3
    assert sequencer.clients() == 1


def test_a_dead_clients_snapshots_stop_holding_lambda_back(sequencer, client):
    dying = sequencer.join(SHORT)
    sequencer.begin_for(dying)
    commit(sequencer, client)
    assert sequencer.stable() == 0
    time.sleep(SHORT * 1.5)
    assert sequencer.stable() == 1
    assert sequencer.clients() == 1


def test_leases_that_run_out_together(sequencer, client):
    for _ in range(3):
        sequencer.join(SHORT)
    time.sleep(SHORT * 1.5)
    assert sequencer.clients() == 1


def test_a_client_that_renews_its_lease_lives_on(sequencer):
    client = sequencer.join(0.2)
    txid, _ = sequencer.begin_for(client)
    for _ in range(8):
        time.sleep(0.05)
        sequencer.renew(client, 0.2)
    sequencer.advance_for(client, txid, sequencer.sts())


@pytest.mark.parametrize(
    "call",
    [
        lambda s, client, txid, cts: s.renew(client, LONG),
        lambda s, client, txid, cts: s.leave(client),
        lambda s, client, txid, cts: s.begin_for(client),
        lambda s, client, txid, cts: s.advance_for(client, txid, 0),
        lambda s, client, txid, cts: s.end_for(client, txid),
        lambda s, client, txid, cts: s.next_cts_for(client),
        lambda s, client, txid, cts: s.finish_for(client, cts),
        lambda s, client, txid, cts: s.sts_for(client),
    ],
    ids=["renew", "leave", "begin", "refresh", "end", "next_cts", "finish", "sts"],
)
def test_who_wakes_up_after_its_lease_is_fenced(sequencer, call):
    client, txid, cts = die(sequencer)
    for _ in range(2):
        with pytest.raises(FencedError, match="its lease ran out"):
            call(sequencer, client, txid, cts)
    sequencer.fence(cts)
    with pytest.raises(FencedError):
        call(sequencer, client, txid, cts)
    assert sequencer.active() == []
    assert sequencer.sts() == 1


def test_nobody_acts_for_a_client_that_never_was(sequencer):
    for client in (0, -1, 7):
        with pytest.raises(FencedError):
            sequencer.begin_for(client)
    assert sequencer.begin() == (1, 0)


def test_a_client_cannot_touch_what_belongs_to_another(sequencer, client):
    """P11: nor can the sequencer's owner by mistake."""
    other = sequencer.join(LONG)
    txid, _ = sequencer.begin_for(other)
    cts = sequencer.next_cts_for(other)
    for call in (
        lambda: sequencer.end_for(client, txid),
        lambda: sequencer.advance_for(client, txid, sequencer.sts()),
        lambda: sequencer.refresh(txid),
        lambda: sequencer.finish_for(client, cts),
        lambda: sequencer.finish(cts),
        lambda: sequencer.fence(cts),
    ):
        with pytest.raises(SequencerError):
            call()
    assert sequencer.sts() == 0
    assert sequencer.active()[0].txid == txid
    sequencer.finish_for(other, cts)
    assert sequencer.sts() == 1


def test_sts_stops_in_front_of_a_doubtful_timestamp(sequencer, client):
    dead, _, cts = die(sequencer)
    assert cts == 1
    assert [commit(sequencer, client) for _ in range(2)] == [2, 3]
    assert sequencer.doubtful() == 1
    assert sequencer.sts() == 0
    assert sequencer.fences() == []
    for _ in range(2):
        sequencer.fence(1)
    assert sequencer.sts() == 3
    assert sequencer.doubtful() == 0
    assert sequencer.fences() == [1]
    with pytest.raises(FencedError):
        sequencer.finish_for(dead, 1)


def test_doubtful_timestamps_are_fenced_in_any_order(sequencer, client):
    doomed = sequencer.join(LONG)
    taken = [sequencer.next_cts_for(doomed) for _ in range(5)]
    commit(sequencer, client)
    sequencer.finish_for(doomed, taken[2])
    sequencer.leave(doomed)
    for cts in (4, 1, 5):
        sequencer.fence(cts)
    assert (sequencer.sts(), sequencer.doubtful()) == (1, 2)
    sequencer.fence(2)
    assert (sequencer.sts(), sequencer.doubtful()) == (6, 0)
    assert sequencer.fences() == [1, 2, 4, 5]


def test_what_is_not_doubtful_cannot_be_fenced(sequencer, client):
    finished = commit(sequencer, client)
    under_way = sequencer.next_cts_for(client)
    waiting = commit(sequencer, client)
    for cts in (-1, 0, finished, under_way, waiting, waiting + 1):
        with pytest.raises(SequencerError, match=f"timestamp {cts} is not in doubt"):
            sequencer.fence(cts)
    assert sequencer.fences() == []
    sequencer.finish_for(client, under_way)
    assert sequencer.sts() == waiting


def test_a_fence_is_forgotten_when_its_versions_are_gone(sequencer):
    _, _, cts = die(sequencer)
    assert sequencer.forget_fences(cts) == 0
    sequencer.fence(cts)
    assert sequencer.forget_fences(cts) == 1
    assert sequencer.fences() == []
    assert sequencer.sts() == 1


def test_many_fences(sequencer):
    doomed = sequencer.join(LONG)
    taken = [sequencer.certify_for(doomed, 0, []) for _ in range(100)]
    sequencer.leave(doomed)
    random.Random(1).shuffle(taken)
    for cts in taken:
        sequencer.fence(cts)
    assert sequencer.fences() == list(range(1, 101))
    assert sequencer.forget_fences(50) == 50
    assert sequencer.fences() == list(range(51, 101))


def test_who_waits_notices_that_a_lease_runs_out(sequencer, client):
    """No other call and no thread of the sequencer's is needed for that."""
    dying = sequencer.join(0.2)
    sequencer.next_cts_for(dying)
    mine = commit(sequencer, client)
    start = time.monotonic()
    assert not sequencer.wait(mine, 30)
    assert 0.1 < time.monotonic() - start < patience(10)
    sequencer.fence(sequencer.doubtful())
    assert sequencer.wait(mine, 30)


def test_who_waits_notices_a_client_that_leaves(sequencer, client):
    leaving = sequencer.join(LONG)
    sequencer.next_cts_for(leaving)
    mine = commit(sequencer, client)
    timer = threading.Timer(0.1, sequencer.leave, [leaving])
    timer.start()
    start = time.monotonic()
    assert not sequencer.wait(mine, 30)
    assert time.monotonic() - start < patience(10)
    timer.join()


def test_a_wait_is_not_disturbed_by_what_comes_later(sequencer, client):
    mine = sequencer.next_cts_for(client)
    doomed = sequencer.join(LONG)
    sequencer.next_cts_for(doomed)
    sequencer.leave(doomed)
    timer = threading.Timer(0.1, sequencer.finish_for, [client, mine])
    timer.start()
    assert sequencer.wait(mine, 30)
    timer.join()


def test_leases_must_be_finite(sequencer, client):
    for lease in (float("inf"), float("nan")):
        with pytest.raises(ValueError, match="must be finite"):
            sequencer.join(lease)
        with pytest.raises(ValueError, match="must be finite"):
            sequencer.renew(client, lease)


def test_recovery_waits_for_doubts(sequencer):
    _, _, cts = die(sequencer)
    with pytest.raises(SequencerError, match="cannot recover"):
        sequencer.recover(sts=10, txid=10)
    sequencer.fence(cts)
    sequencer.recover(sts=10, txid=10)
    assert sequencer.sts() == 10


def test_clients_are_bounded(small, sequencer):
    joined = [sequencer.join(LONG) for _ in range(small["CLIENT_CAPACITY"])]
    for _ in range(2):
        with pytest.raises(SequencerError, match="no room for more; close"):
            sequencer.join(LONG)
    sequencer.leave(joined[1])
    assert sequencer.join(LONG) not in joined
    assert sequencer.clients() == small["CLIENT_CAPACITY"]
    for client in (joined[0], *joined[2:]):
        sequencer.leave(client)
    assert sequencer.clients() == 1


def test_fences_are_bounded(small, sequencer, client):
    doomed = sequencer.join(LONG)
    taken = [sequencer.next_cts_for(doomed) for _ in range(small["FENCE_CAPACITY"] + 1)]
    mine = commit(sequencer, client)
    sequencer.leave(doomed)
    for cts in taken[1:]:
        sequencer.fence(cts)
    for _ in range(2):
        with pytest.raises(SequencerError, match="no room for more; restart"):
            sequencer.fence(taken[0])
    assert (sequencer.doubtful(), sequencer.sts()) == (taken[0], 0)
    sequencer.fence(taken[1])
    sequencer.forget_fences(taken[1])
    sequencer.fence(taken[0])
    assert sequencer.fences() == [taken[0], *taken[2:]]
    assert sequencer.sts() == mine


@pytest.mark.parametrize("size", ["as it is", "small"])
@pytest.mark.parametrize("seed", range(20))
def test_both_sequencers_do_the_same(monkeypatch, request, size, seed):
    """Random steps of several clients, some of which go."""
    if size == "small":
        request.getfixturevalue("small")
    both = []
    for kind in ("c", "python"):
        monkeypatch.setenv("TIQUE_SEQUENCER", kind)
        both.append(open_sequencer("test"))
    clients = [[s.join(LONG) for s in both]]
    for step in steps(random.Random(seed)):
        outcomes = []
        for side, sequencer in enumerate(both):
            try:
                outcomes.append(step(sequencer, [pair[side] for pair in clients]))
            except SequencerError as error:
                outcomes.append((type(error), getattr(error, "winner", None)))
        if step is join and all(isinstance(outcome, int) for outcome in outcomes):
            clients.append(outcomes)
        else:
            assert outcomes[0] == outcomes[1]
        assert state(both[0]) == state(both[1])
    for sequencer in both:
        sequencer.close()


def state(sequencer):
    return (
        sequencer.sts(),
        sequencer.cts(),
        sequencer.stable(),
        sequencer.doubtful(),
        sequencer.clients(),
        sequencer.keys(),
        tuple(sequencer.fences()),
        tuple(entry[:2] for entry in sequencer.active()),
    )


def join(sequencer, clients):
    return sequencer.join(LONG)


def steps(rng):
    """A thousand of them, each to be done in both."""
    names = ["begin_for"] * 3 + ["next_cts_for", "next_cts", "leave", "join"]
    names += (
        ["end_for"] * 3 + ["advance_for", "forget_fences"] + ["finish", "fence"] * 4
    )
    names += ["certify_for"] * 12 + ["finish_for"] * 30 + ["abort_for"] * 6
    for _ in range(1000):
        name = rng.choice(names)
        if name == "join":
            yield join
            continue
        yield partial(
            do,
            name,
            rng.randrange(10),
            txid=rng.randint(0, 100),
            behind=rng.choice((0, 0, 0, 0, 1, 2, 5, 9)),
            ahead=rng.choice((-1, 0, 1, 1, 1, 1, 2, 3)),
            keys=[
                bytes([rng.randrange(20)] * 16)
                for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 9)))
            ],
        )


def do(name, who, sequencer, clients, *, txid, behind, ahead, keys):
    """One step, of which not all is needed; sts is the same in both."""
    sts = sequencer.sts()
    arguments = {
        "end_for": [txid],
        "advance_for": [txid, sts - behind],
        "certify_for": [sts - behind, keys],
        "finish_for": [sts + ahead],
        "abort_for": [sts + ahead],
        "finish": [sts + ahead],
        "fence": [sts + ahead],
        "forget_fences": [min(sequencer.fences(), default=0)],
    }.get(name, [])
    if name.endswith("_for") or name == "leave":
        latest = clients[-4:]
        arguments = [latest[who % len(latest)], *arguments]
    return getattr(sequencer, name)(*arguments)


def test_one_client_has_no_more_than_its_share(sequencer, client):
    """P6: capacity is left for the others, and little to fence when it goes."""
    other = sequencer.join(LONG)
    begun = [sequencer.begin_for(client)[0] for _ in range(SNAPSHOTS_PER_CLIENT)]
    taken = [sequencer.next_cts_for(client) for _ in range(BARRIERS_PER_CLIENT)]
    for call in (sequencer.begin_for, sequencer.next_cts_for):
        with pytest.raises(SequencerError, match="may have no more"):
            call(client)
    assert sequencer.begin_for(other)[1] == 0
    sequencer.finish_for(other, sequencer.next_cts_for(other))
    for _ in range(2):
        sequencer.finish_for(client, taken[0])
        sequencer.end_for(client, begun[0])
    sequencer.begin_for(client)
    sequencer.next_cts_for(client)
    with pytest.raises(SequencerError, match="may have no more"):
        sequencer.next_cts_for(client)
    sequencer.leave(client)
    assert len(sequencer.active()) == 1
    again = sequencer.join(LONG)
    sequencer.begin_for(again)
    assert sequencer.next_cts_for(again) == BARRIERS_PER_CLIENT + 3


def test_what_is_in_doubt_is_fenced_in_sets(sequencer):
    stamps = []
    for _ in range(3):
        client = sequencer.join(LONG)
        stamps += [sequencer.next_cts_for(client) for _ in range(4)]
        sequencer.leave(client)
    kept = sequencer.next_cts_for(sequencer.join(LONG))
    assert sequencer.doubts(0) == []
    assert sequencer.doubts(5) == stamps[:5]
    assert sequencer.doubts(100) == stamps
    for cts in reversed(stamps):
        sequencer.fence(cts)
    assert (sequencer.doubts(100), sequencer.fences()) == ([], stamps)
    assert sequencer.sts() == kept - 1
    assert sequencer.forget_fences(0) == 0
    assert sequencer.forget_fences(stamps[4]) == 5
    assert sequencer.fences() == stamps[5:]
    assert sequencer.forget_fences(2**63 - 1) == 7
    assert sequencer.fences() == []


def test_many_leases_that_run_out_together_hold_nobody_up(sequencer):
    """P6: their open timestamps are settled in one pass, not in one for each client."""
    kept = sequencer.join(LONG)
    stuck = sequencer.next_cts_for(kept)
    lasting, each = 3.0, 16
    number = 2000 if sequencer.kind == "c" else 100
    started = time.monotonic()
    clients = [sequencer.join(lasting) for _ in range(number)]
    for client in clients:
        for _ in range(each):
            sequencer.begin_for(client)
            sequencer.next_cts_for(client)
    time.sleep(max(0.0, started + lasting + 0.1 - time.monotonic()))
    started = time.monotonic()
    assert sequencer.clients() == 1
    assert time.monotonic() - started < patience(0.1)
    assert sequencer.active() == []
    assert len(sequencer.doubts(2**16)) == number * each
    sequencer.finish_for(kept, stuck)
