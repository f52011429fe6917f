"""Commits in bulk that are begun and given up, by hand and in numbers (P6, P11)."""

from __future__ import annotations

import time
from contextlib import closing

import psycopg
import pytest

from tests.effort import patience
from tests.postgresql.privileges import Hand, tables_of

PATIENCE = 2.0
"""Seconds by which a client may hold the others up."""

BARRIERS = 16


@pytest.fixture
def hand(shop):
    with shop.by_hand("writer") as connection:
        yield Hand(connection, tables_of(shop))


def flood(hand, clients=BARRIERS):
    """Let so many clients take a barrier each, and leave."""
    ((hand.flooding,),) = hand.run(
        "SELECT array_agg(tique.guest_join(60000)) FROM generate_series(1, %s)", clients
    )
    hand.run(
        "SELECT count(tique.guest_barrier(c)) FROM unnest(%s::BIGINT[]) AS c",
        hand.flooding,
    )
    leave(hand)


def leave(hand):
    hand.run(
        "SELECT tique.guest_leave(c) FROM unnest(%s::BIGINT[]) AS c", hand.flooding
    )


def flood_on(hand):
    for _ in range(100):
        flood(hand, 256)


def natively(shop, sql, *parameters):
    with shop.by_hand() as connection:
        return connection.execute(sql, parameters).fetchall()


def tend_until(shop, condition):
    deadline = time.monotonic() + 20
    while not natively(shop, f"SELECT {condition}")[0][0]:
        assert time.monotonic() < deadline
        shop.owner.database.engine.shared.tend()
        time.sleep(0.05)


NOTHING = "NOT EXISTS (SELECT FROM tique.fences) AND tique.doubtful() = 0"


def test_two_thousand_barriers_of_one_client(shop, hand):
    """It has its share of them and no more."""
    with pytest.raises(psycopg.Error, match="has as much as one may have"):
        hand.run(
            "SELECT count(tique.guest_barrier(%s)) FROM generate_series(1, 2000)",
            hand.client,
        )
    hand.run("SELECT tique.guest_leave(%s)", hand.client)
    started = time.monotonic()
    shop.owner.commit("UPDATE open SET v = 11 WHERE id = 1")
    assert time.monotonic() - started < patience(PATIENCE)
    assert not shop.owner.database.timeline.is_lost


def test_barriers_of_very_many_clients(shop, hand):
    """They are fenced in sets, so that a healthy process has its turn."""
    shop.owner.run("SELECT 1")
    with pytest.raises(psycopg.Error, match="begun and given up"):
        flood_on(hand)
    leave(hand)
    doubtful, cts = natively(shop, "SELECT tique.doubtful(), tique.cts()")[0]
    other = shop.process("writer")
    started = time.monotonic()
    with closing(shop.owner.another()) as connection:
        connection.execute("UPDATE open SET v = 12 WHERE id = 1")
        connection.commit()
    assert time.monotonic() - started < patience(3 * PATIENCE)
    other.commit("UPDATE open SET v = v + 1 WHERE id = 2")
    for process in (shop.owner, other):
        assert not process.database.timeline.is_lost
        process.connection.rollback()
        assert process.rows("SELECT v FROM open ORDER BY id") == [(12,), (21,)]
    assert (doubtful, cts) <= natively(shop, "SELECT tique.sts(), tique.cts()")[0]
    # And barriers are granted again.
    tend_until(shop, NOTHING)
    flood(hand)


def test_a_fence_that_can_have_no_more_effect_is_forgotten(shop, hand):
    """P1: nothing of its commit is there then; a late transaction keeps the fence."""
    table = int(hand.tables["open"])
    ((barrier,),) = hand.run("SELECT tique.guest_barrier(%s)", hand.client)
    entry = f'[{{}},{{"{table}":1}}]'
    with shop.by_hand("writer") as late:
        late.execute("BEGIN")
        late.execute(
            "SELECT tique.guest_log_bulk(%s, %s, %s, %s)",
            [hand.client, barrier, hand.txid, entry],
        )
        hand.run("SELECT tique.guest_leave(%s)", hand.client)
        shop.owner.commit("UPDATE open SET v = 11 WHERE id = 1")
        for _ in range(5):
            shop.owner.database.engine.shared.tend()
        assert natively(shop, "SELECT cts FROM tique.fences") == [(barrier,)]
        ((fences,),) = natively(
            shop,
            "SELECT fences FROM tique.sts_for((SELECT client FROM tique.clients LIMIT 1))",
        )
        assert barrier in fences
        # Its commit counts for nothing, and goes.
        late.execute("COMMIT")
    assert natively(shop, "SELECT txid FROM tique.log WHERE cts = %s", barrier) == [
        (hand.txid,)
    ]
    assert shop.owner.rows("SELECT v FROM open ORDER BY id") == [(11,), (20,)]
    tend_until(shop, NOTHING)
    assert natively(shop, "SELECT txid FROM tique.log WHERE cts = %s", barrier) == []
    ((fences,),) = natively(
        shop,
        "SELECT fences FROM tique.sts_for((SELECT client FROM tique.clients LIMIT 1))",
    )
    assert fences == []
    again = shop.process()
    for process in (shop.owner, again):
        assert process.rows("SELECT v FROM open ORDER BY id") == [(11,), (20,)]


def test_who_may_write_nothing_keeps_nobody_from_committing(shop):
    """P6, P11: neither by a barrier nor by a commit of nothing."""
    shop.natively("GRANT USAGE ON SCHEMA tique TO stranger")
    for role in ("reader", "stranger"):
        with shop.by_hand(role) as connection:
            hand = Hand(connection, {})
            cts = natively(shop, "SELECT tique.cts()")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                hand.run("SELECT tique.guest_barrier(%s)", hand.client)
            for entry in ("[{}]", "[{},{}]"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    hand.append_text(entry)
            assert natively(shop, "SELECT tique.cts()") == cts
    shop.owner.commit("UPDATE open SET v = 11 WHERE id = 1")
