"""The sequencer's limits in time, and in number per role, in both forms."""

from __future__ import annotations

import time

import pytest

from tests.effort import patience
from tests.postgresql.sequencers import LONG, REFUSED, refused

OVERDUE = "TQ004"
LIMIT = 200


def doubts(service):
    return service.main.execute("SELECT tique.doubts(10)").fetchone()[0]


def test_a_barrier_in_time(service):
    client = service.join()
    cts = service.main.next_cts(client, LONG)
    assert service.main.holds(client, cts)
    assert service.main.doubtful() == 0
    refused(REFUSED, service.main.next_cts, client, LONG)
    assert service.main.finish(client, cts) == cts
    assert not service.main.holds(client, cts)
    assert service.main.finish(client, cts) == cts
    cts = service.main.next_cts(client, LONG)
    assert service.main.abort(client, cts) == cts


def test_a_barrier_that_is_late(service):
    """P1, P6: it is in doubt, and never finished; its client and others are as before."""
    client, other = service.join(), service.join()
    txid, sts = service.main.row("begin_transaction", client)
    cts = service.main.next_cts(client, LIMIT)
    waited = time.monotonic()
    assert not service.main.wait(cts, 10_000)
    assert LIMIT / 1000 - 0.1 < time.monotonic() - waited < patience(5)
    assert service.main.doubtful() == cts
    assert doubts(service) == [cts]
    assert not service.main.holds(client, cts)
    refused(OVERDUE, service.main.finish, client, cts)
    service.main.abort(client, cts)
    assert service.main.doubtful() == cts
    service.main.fence(cts)
    assert service.main.sts() == cts
    refused(OVERDUE, service.main.finish, client, cts)
    # Also when nothing else knows of it any more.
    assert service.main.forget_fences(cts) == 1
    refused(OVERDUE, service.main.finish, client, cts)
    assert service.main.stable() == sts
    service.main.renew_client(client, LONG)
    service.main.end_transaction(client, txid)
    assert service.commit(other, 1) == cts + 1
    again = service.main.next_cts(client, LONG)
    assert service.main.finish(client, again) == again


def test_a_client_that_goes_with_a_late_barrier(service):
    client = service.join()
    cts = service.main.next_cts(client, LIMIT)
    time.sleep(2 * LIMIT / 1000)
    assert service.main.doubtful() == cts
    service.main.leave_client(client)
    assert doubts(service) == [cts]
    service.main.fence(cts)
    assert service.main.sts() == cts
    assert service.main.doubtful() == 0


def test_a_client_whose_lease_ends_with_a_fenced_barrier(service):
    client = service.join(1000)
    cts = service.main.next_cts(client, LIMIT)
    time.sleep(2 * LIMIT / 1000)
    service.main.fence(cts)
    time.sleep(1)
    assert service.main.doubtful() == 0
    assert service.main.sts() == cts


@pytest.mark.slow
def test_the_share_of_a_role(service):
    places = "SELECT array_agg(tique.join_client(%s, %s)) FROM generate_series(1, %s)"
    service.main.execute(places, 1000, 7, 1024)
    call = lambda: service.main.execute(places, 1000, 7, 1)  # noqa: E731
    assert "as many clients as one may have" in str(refused(REFUSED, call))
    service.main.execute(places, 1000, 8, 1)
    service.join()
    time.sleep(1.1)
    call()
