"""One body for every form of PostgreSQL's sequencer."""

import threading
import time

import psycopg
import pytest

from tests.effort import patience
from tests.postgresql.sequencers import (
    GONE,
    LONG,
    REFUSED,
    UNRECOVERED,
    certify,
    packed,
    refused,
)
from tique_udfs import EXCLUSIVE_PREFIX, SHARED_PREFIX

SHORT = 100
PATIENCE = 30_000


@pytest.fixture
def client(service):
    return service.join()


@pytest.fixture
def other(service):
    return service.join()


def outlive(milliseconds=SHORT):
    time.sleep(milliseconds / 1000 * 1.5)


def in_background(call, *arguments):
    """Call it in a thread; a function that returns its result or raises its error."""
    outcome = []

    def run():
        try:
            outcome.append((call(*arguments), None))
        except psycopg.Error as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()

    def result():
        thread.join(30)
        ((found, error),) = outcome
        if error:
            raise error
        return found

    return result


def test_clients_are_numbers_that_nobody_can_guess(service):
    """P11."""
    before = service.main.clients()
    clients = {service.join() for _ in range(100)}
    assert len(clients) == service.main.clients() - before == 100
    assert min(clients) > 0
    assert 2**62 < max(clients) < 2**63


def test_a_commit_is_covered_when_it_is_visible_and_not_before(service, client):
    """P2."""
    watcher = service.connect()
    with service.main.connection.transaction():
        cts = service.commit(client, 1)
        assert cts > service.base
        # A timestamp that only it sees must not get out before it has committed.
        assert service.main.sts() == watcher.sts() == service.base
        assert service.main.sts_for(client) == service.base
    assert watcher.sts() == service.main.sts() == watcher.cts() == cts


def test_the_first_committer_wins(service, client, other):
    """P3."""
    base = service.base
    cts = service.commit(client, 1, 2)
    assert service.commit(other, 3, 2, after=base) == -cts
    assert service.commit(other, 3, 4, after=base) == cts + 1
    assert service.commit(other, 2) == cts + 2
    assert service.commit(client, 2, after=base) == -(cts + 2)
    assert service.commit(client, after=base) == cts + 3
    assert service.main.cts() == cts + 3


def test_large_write_sets(service, client):
    """P3."""
    base = service.base
    many = range(100, 400)
    cts = service.commit(client, *many)
    assert service.commit(client, 399, after=base) == -cts
    assert service.commit(client, *range(399, 700), after=base) == -cts
    assert service.commit(client, *range(400, 700), after=base) == cts + 1


def test_keys_that_were_chosen_to_collide_hold_nobody_up(service, client):
    """P6: the halves of each are alike; a larger write set is refused."""
    keys = b"".join(number.to_bytes(8, "big") * 2 for number in range(1, 65_537))
    started = time.monotonic()
    cts = service.main.certify(client, service.base, keys)
    # Only the extension and small ones remember all of them.
    assert service.main.certify(client, service.base, keys) == -cts
    assert time.monotonic() - started < patience(4)
    error = refused(REFUSED, service.main.certify, client, cts, keys + packed(1))
    assert "too many keys" in str(error)


def test_one_client_has_no_more_than_its_share(service, client, other):
    """P6."""
    taken = [service.main.next_cts(client) for _ in range(16)]
    refused(REFUSED, service.main.next_cts, client)
    assert service.main.next_cts(other) == taken[-1] + 1
    service.main.finish(client, taken[0])
    service.main.next_cts(client)
    for _ in range(256):
        service.main.begin_transaction(client)
    refused(REFUSED, service.main.begin_transaction, client)
    service.main.begin_transaction(other)


def test_what_is_in_doubt_is_fenced_in_sets(service, client, other):
    taken = [service.main.next_cts(client) for _ in range(5)]
    kept = service.main.next_cts(other)
    asked = service.main.connection
    assert asked.execute("SELECT tique.doubts(9)").fetchone() == ([],)
    service.main.leave_client(client)
    assert asked.execute("SELECT tique.doubts(3)").fetchone() == (taken[:3],)
    assert asked.execute("SELECT tique.doubts(-1)").fetchone() == ([],)
    assert asked.execute("SELECT tique.doubts(99999)").fetchone() == (taken,)
    for cts in taken:
        service.main.fence(cts)
    service.main.finish(other, kept)
    _, fences = service.main.row("sts_for", other)
    assert fences[-5:] == taken
    service.main.forget_fences(taken[2])
    assert service.main.row("sts_for", other) == (kept, taken[3:])
    service.main.forget_fences(taken[4])
    assert service.main.row("sts_for", other) == (kept, [])


def test_who_certifies_at_the_same_moment_finds_the_other(service, client, other):
    """P3, however long it takes the first one to commit."""
    rival = service.connect()
    with service.main.connection.transaction():
        cts = service.commit(client, 1)
        answer = in_background(rival.certify, other, service.base, packed(1))
        time.sleep(0.2)
    assert answer() == -cts


def test_a_group_of_commits_in_one_transaction(service, client):
    base = service.base
    with service.main.connection.transaction():
        first = service.commit(client, 1, after=base)
        assert service.commit(client, 2, after=base) == first + 1
        assert service.commit(client, 1, 3, after=base) == -first
    assert service.main.sts() == first + 1
    assert service.commit(client, 2, after=base) == -(first + 1)


@pytest.mark.parametrize("end", ["ROLLBACK", "ROLLBACK TO s; COMMIT"])
def test_an_abort_takes_the_keys_back(service, client, end):
    """P5."""
    service.main.execute("BEGIN")
    service.main.execute("SAVEPOINT s")
    assert service.commit(client, 1) > 0
    service.main.execute(end)
    assert service.main.sts() == service.main.cts()
    assert service.commit(client, 1, after=service.base) > service.base


def test_a_terminated_backend_takes_nothing_with_it(service, client, other):
    """P5, P6."""
    doomed = service.connect()
    doomed.execute("BEGIN")
    certify(doomed, client, 1)
    answer = in_background(service.main.certify, other, service.base, packed(1))
    pid = doomed.connection.info.backend_pid
    service.connect().execute("SELECT pg_terminate_backend(%s)", pid)
    cts = answer()
    # Where the number of the aborted one was seen, it is not doubtful but finished.
    if cts < 0:
        assert service.main.wait(-cts, PATIENCE)
        cts = service.commit(other, 1, after=service.base)
    assert cts > service.base
    assert service.main.sts() == service.main.cts() == cts
    assert service.main.doubtful() == 0


def test_a_commit_needs_no_lease_once_it_has_its_timestamp(service):
    """P6: it is never in doubt."""
    client = service.join(SHORT)
    with service.main.connection.transaction():
        cts = service.commit(client, 1)
        outlive()
        doubtful = in_background(service.connect().doubtful)
        time.sleep(0.1)
    assert doubtful() == 0
    assert service.main.sts() == cts
    refused(GONE, service.commit, client, 1)


def test_barriers_finish_in_any_order(service, client, other):
    main = service.main
    first = main.next_cts(client)
    second = main.next_cts(other)
    assert second == first + 1 == main.cts()
    assert main.sts() == service.base
    assert main.finish(other, second) == service.base
    assert not main.wait(second, 10)
    assert main.abort(client, first) == second == main.sts()
    for _ in range(2):
        assert main.finish(client, first) == second


def test_a_barrier_refuses_who_has_not_certified_up_to_it(service, client, other):
    """P3: the write set of the barrier's transaction is unknown."""
    barrier = service.main.next_cts(client)
    assert service.commit(other, 1) == -barrier
    service.main.finish(client, barrier)
    assert service.commit(other, 1, after=service.base) == -barrier
    assert service.commit(other, 1, after=barrier) == barrier + 1


def test_a_dead_clients_barrier_is_fenced(service, other):
    """P6."""
    main = service.main
    client = service.join(SHORT)
    main.begin_transaction(client)
    barrier = main.next_cts(client)
    later = main.next_cts(other)
    assert main.doubtful() == 0
    refused(REFUSED, main.fence, barrier)
    outlive()
    began = time.monotonic()
    assert not main.wait(later, PATIENCE)
    assert time.monotonic() - began < patience(5)
    assert main.doubtful() == barrier
    refused(REFUSED, main.fence, later)
    for _ in range(2):
        main.fence(barrier)
    assert main.doubtful() == 0
    assert main.finish(other, later) == later
    sts, fences = main.row("sts_for", other)
    assert sts == later
    assert fences == sorted(fences)
    assert barrier in fences
    assert later not in fences


def test_a_wait_ends_when_a_lease_does(service, other):
    """P6."""
    client = service.join(3 * SHORT)
    barrier = service.main.next_cts(client)
    began = time.monotonic()
    assert not service.main.wait(barrier, PATIENCE)
    assert time.monotonic() - began < patience(10)
    assert service.main.doubtful() == barrier


def test_a_wait_ends_with_what_it_waits_for(service, client):
    barrier = service.main.next_cts(client)
    covered = in_background(service.connect().wait, barrier, PATIENCE)
    time.sleep(0.1)
    service.main.finish(client, barrier)
    assert covered()
    assert service.main.wait(barrier, 0)


def test_a_wait_can_be_cancelled(service, client):
    """P6."""
    barrier = service.main.next_cts(client)
    waiter = service.connect()
    waiter.execute("SET statement_timeout = 100")
    with pytest.raises(psycopg.errors.QueryCanceled):
        waiter.wait(barrier, PATIENCE)
    waiter.execute("SET statement_timeout = 0")
    answer = in_background(waiter.wait, barrier, PATIENCE)
    time.sleep(0.1)
    waiter.connection.cancel_safe()
    with pytest.raises(psycopg.errors.QueryCanceled):
        answer()
    assert not service.main.wait(service.main.cts() + 1, 10)


def test_snapshots_hold_lambda_back(service, client, other):
    """P7."""
    main = service.main
    txid, sts = main.row("begin_transaction", client)
    assert sts == service.base
    active = main.active()
    cts = service.commit(other, 1)
    assert main.row("begin_transaction", other)[1] == cts
    assert main.row("begin_transaction", other)[0] > txid
    assert main.stable() == service.base
    main.advance_transaction(client, txid, cts)
    assert main.stable() == cts
    for _ in range(2):
        main.end_transaction(client, txid)
    assert main.active() == active + 1


def test_a_dead_clients_snapshots_stop_holding_lambda_back(service, other):
    """P6."""
    main = service.main
    client = service.join(SHORT)
    main.begin_transaction(client)
    leaving = service.join()
    main.begin_transaction(leaving)
    cts = service.commit(other, 1)
    assert main.stable() == service.base
    main.leave_client(leaving)
    outlive()
    assert main.stable() == cts


def test_a_client_that_renews_its_lease_lives_on(service):
    client = service.join(3 * SHORT)
    for _ in range(6):
        outlive()
        service.main.renew_client(client, 3 * SHORT)
    assert service.main.sts_for(client) == service.base


def test_who_is_renewing_its_lease_is_not_buried(service):
    """P6: not before the transaction has ended with which it renews and commits."""
    main, watcher = service.main, service.connect()
    client = service.join(SHORT)
    main.begin_transaction(client)
    barrier = main.next_cts(client)
    with main.connection.transaction():
        main.renew_client(client, LONG)
        outlive()
        assert watcher.doubtful() == 0
        refused(REFUSED, watcher.fence, barrier)
        assert watcher.stable() == service.base
        assert certify(watcher, client, 1, after=service.base) == -barrier
        began = time.monotonic()
        assert not watcher.wait(barrier, 3 * SHORT)
        assert time.monotonic() - began >= 3 * SHORT / 1000
    assert main.finish(client, barrier) == barrier


CALLS = {
    "renew": lambda s, client, txid, cts: s.renew_client(client, LONG),
    "leave": lambda s, client, txid, cts: s.leave_client(client),
    "begin": lambda s, client, txid, cts: s.begin_transaction(client),
    "advance": lambda s, client, txid, cts: s.advance_transaction(client, txid, 0),
    "end": lambda s, client, txid, cts: s.end_transaction(client, txid),
    "certify": lambda s, client, txid, cts: s.certify(client, s.sts(), packed(1)),
    "next_cts": lambda s, client, txid, cts: s.next_cts(client),
    "finish": lambda s, client, txid, cts: s.finish(client, cts),
    "abort": lambda s, client, txid, cts: s.abort(client, cts),
    "sts_for": lambda s, client, txid, cts: s.sts_for(client),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("is_noticed", [False, True])
def test_who_wakes_up_after_its_lease_is_refused(service, call, is_noticed):
    """P6."""
    client = service.join(SHORT)
    txid = service.main.begin_transaction(client)
    cts = service.main.next_cts(client)
    outlive()
    if is_noticed:
        service.main.fence(cts)
    for _ in range(2):
        error = refused(GONE, call, service.main, client, txid, cts)
        assert "lease ran out" in str(error)


@pytest.mark.parametrize(
    "call",
    [
        lambda s, client, other, base: s.certify(client, base + 1, b""),
        lambda s, client, other, base: s.certify(client, -1, b""),
        lambda s, client, other, base: s.certify(client, base, b"short"),
        lambda s, client, other, base: s.finish(client, base + 1),
        lambda s, client, other, base: s.finish(client, 0),
        lambda s, client, other, base: s.finish(client, s.next_cts(other)),
        lambda s, client, other, base: s.abort(client, s.next_cts(other)),
        lambda s, client, other, base: s.fence(base + 1),
        lambda s, client, other, base: s.fence(s.next_cts(client)),
        lambda s, client, other, base: s.end_transaction(client, 0),
        lambda s, client, other, base: s.end_transaction(
            client, s.begin_transaction(other)
        ),
        lambda s, client, other, base: s.advance_transaction(
            client, s.begin_transaction(other), base
        ),
        lambda s, client, other, base: s.advance_transaction(
            client, s.begin_transaction(client), base - 1
        ),
        lambda s, client, other, base: s.advance_transaction(
            client, s.begin_transaction(client), base + 1
        ),
        lambda s, client, other, base: s.recover(base + 10),
    ],
)
def test_what_the_sequencer_refuses(service, client, other, call):
    """P11: and nothing is changed."""
    before = [service.main.sts(), service.main.keys()]
    refused(REFUSED, call, service.main, client, other, service.base)
    assert [service.main.sts(), service.main.keys()] == before


@pytest.mark.crash
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_after_a_restart_it_refuses_until_it_is_recovered(service, client, end):
    """P5."""
    cts = service.commit(client, 1)
    service.main.next_cts(client)
    service.main.begin_transaction(client)
    cluster = service.form.cluster
    getattr(cluster, end)()
    cluster.start()
    main = service.connect()
    assert not main.ready()
    for name in ("sts", "cts", "stable", "clients", "active", "keys", "doubtful"):
        refused(UNRECOVERED, getattr(main, name))
    for call in CALLS.values():
        refused(UNRECOVERED, call, main, client, 1, cts)
    refused(UNRECOVERED, main.join_client, LONG)
    refused(UNRECOVERED, main.wait, cts, 10)
    refused(UNRECOVERED, main.fence, cts)
    main.recover(cts)
    assert main.ready()
    refused(REFUSED, main.recover, cts)
    assert (main.sts(), main.cts(), main.clients(), main.active()) == (cts, cts, 0, 0)
    refused(GONE, main.sts_for, client)
    after = main.join_client(LONG)
    assert certify(main, after, 1, after=cts - 1) == -cts
    assert certify(main, after, 1, after=cts) == cts + 1
    main.leave_client(after)


@pytest.mark.parametrize("first", ["shared", "exclusive"])
@pytest.mark.parametrize("second", ["shared", "exclusive"])
@pytest.mark.parametrize("more", [0, 100])
def test_keys_with_modes(service, client, first, second, more):
    """P9: a reference and the deletion of what it references exclude each other."""
    tail = (7).to_bytes(8, "big")
    keys = {
        "shared": SHARED_PREFIX + tail,
        "exclusive": SHARED_PREFIX + tail + EXCLUSIVE_PREFIX + tail,
    }
    for number, mode in enumerate((first, second)):
        others = b"".join(
            (number * 1000 + n + 1).to_bytes(16, "big") for n in range(more)
        )
        found = service.main.certify(client, service.base, others + keys[mode])
        is_refused = number == 1 and not first == second == "shared"
        assert (found < 0) == is_refused
        if not is_refused:
            service.main.finish(client, found)
