"""P6, P11: a resource that a role takes and keeps holds no other role up for long.

Seconds are those of a healthy process of the owner's, which commits meanwhile.
"""

from __future__ import annotations

import threading
import time
from contextlib import closing, suppress

import psycopg
import pytest

import tique
from tests.effort import patience
from tests.postgresql.privileges import Hand, tables_of
from tests.sharing.playing import cached
from tique_backends.postgresql.guests import GuestSession
from tique_backends.postgresql.sequencer import PostgreSQLSequencer

LONGEST_STALL = 2.0
ROWS = "INSERT INTO open SELECT g, g, 'bulk' FROM generate_series(CAST(%s AS INTEGER), %s) AS g"
APPEND = (
    "tique.guest_append({}, tique.sts(), '0123456789abcdef', '{{1}}', "
    """ARRAY[{}::BIGINT], '[{{"{}":[[0,9,90,"x"]]}}]')"""
)


@pytest.fixture
def shop(shop):
    """With an owner that may end others' sessions, as README asks of one without C."""
    if shop.keeper != "tique":
        shop.natively(f"GRANT pg_signal_backend TO {shop.keeper}")
    shop.healthy = shop.process()
    shop.healthy.commit("UPDATE closed SET v = 0 WHERE id = 2")
    return shop


@pytest.fixture
def hand(shop):
    with shop.by_hand("writer") as connection:
        yield Hand(connection, tables_of(shop))


def append(hand):
    return APPEND.format(hand.client, hand.txid, hand.tables["open"])


def stall(process):
    started = time.monotonic()
    process.commit("UPDATE closed SET v = v + 1 WHERE id = 2")
    return time.monotonic() - started


def expect_no_stall(shop, commits=3):
    before = shop.healthy.rows("SELECT v FROM closed WHERE id = 2")[0][0]
    assert max(stall(shop.healthy) for _ in range(commits)) < patience(LONGEST_STALL)
    assert not shop.healthy.database.timeline.is_lost
    assert shop.healthy.rows("SELECT v FROM closed WHERE id = 2") == [
        (before + commits,)
    ]


class Background(threading.Thread):
    """A statement by hand that goes on until something ends it."""

    def __init__(self, connection, sql):
        super().__init__(daemon=True)
        self.connection, self.sql = connection, sql
        self.error = None
        self.start()
        time.sleep(0.3)

    def run(self):
        try:
            self.connection.execute(self.sql)
        except psycopg.Error as error:
            self.error = error


def go_on(connection):
    end = time.monotonic() + patience(10)
    while time.monotonic() < end:
        connection.execute("SELECT 1")
        time.sleep(0.1)


def test_a_barrier_that_is_kept(shop, hand):
    """The lease is renewed all the time; the timestamp alone is taken away."""
    ((barrier,),) = hand.run("SELECT tique.guest_barrier(%s)", hand.client)
    hand.run("SELECT tique.guest_renew(%s, 300000)", hand.client)
    expect_no_stall(shop)
    with pytest.raises(psycopg.Error) as caught:
        hand.run("SELECT tique.finish(%s, %s)", hand.client, barrier)
    assert caught.value.sqlstate == "TQ004"
    hand.run("SELECT tique.abort(%s, %s)", hand.client, barrier)
    # The client is there, and its snapshots count.
    ((_, sts),) = hand.run("SELECT * FROM tique.begin_transaction(%s)", hand.client)
    assert barrier <= sts
    stall(shop.healthy)
    assert hand.run('SELECT tique."lambda"()') <= [(sts,)]


def test_one_barrier_at_a_time(shop, hand):
    ((barrier,),) = hand.run("SELECT tique.guest_barrier(%s)", hand.client)
    with pytest.raises(psycopg.Error, match="as much as one may have"):
        hand.run("SELECT tique.guest_barrier(%s)", hand.client)
    hand.run("SELECT tique.finish(%s, %s)", hand.client, barrier)
    ((barrier,),) = hand.run("SELECT tique.guest_barrier(%s)", hand.client)
    hand.run("SELECT tique.finish(%s, %s)", hand.client, barrier)
    expect_no_stall(shop)


def test_barriers_again_and_again(shop, hand):
    """A role whose last one had to be fenced gets no other until the fence is gone."""

    def keep_on():
        with shop.by_hand("writer") as connection:
            while not done.is_set():
                with suppress(psycopg.Error):
                    other = Hand(connection, hand.tables)
                    other.run("SELECT tique.guest_barrier(%s)", other.client)

    done = threading.Event()
    thread = threading.Thread(target=keep_on, daemon=True)
    with shop.by_hand("writer") as late:
        # An older transaction, which keeps the fence.
        late.execute("BEGIN; SELECT pg_current_xact_id()")
        hand.run("SELECT tique.guest_barrier(%s)", hand.client)
        stall(shop.healthy)
        thread.start()
        expect_no_stall(shop, 10)
        done.set()
        thread.join(patience(20))


@pytest.mark.parametrize(
    "statements",
    [
        ["BEGIN", "SELECT {append}"],
        ["BEGIN", "SELECT {append}", "SAVEPOINT s", "SELECT 1/0", "ROLLBACK TO s"],
        [
            "SET idle_in_transaction_session_timeout = 0",
            "BEGIN",
            "SELECT {append}",
            "SET LOCAL idle_in_transaction_session_timeout = 0",
        ],
        ["SELECT {append}, pg_sleep(60)"],
        [
            "DO $$ BEGIN PERFORM {append}; BEGIN PERFORM pg_sleep(60); "
            "EXCEPTION WHEN query_canceled THEN PERFORM pg_sleep(60); END; END $$"
        ],
        ["BEGIN", "SELECT tique.guest_disown()"],
        ["BEGIN", "SELECT tique.guest_leave({client})"],
        ["BEGIN", "SELECT tique.begin_transaction({client})"],
        ["BEGIN", "SELECT tique.guest_barrier({client})"],
    ],
    ids=[
        "idle",
        "savepoint",
        "setting",
        "sleep",
        "caught",
        "disown",
        "leave",
        "begin",
        "bar",
    ],
)
def test_a_transaction_that_is_left_open(shop, hand, statements):
    """With any settings of its session, and any statements or handlers."""
    connection = hand._connection
    *first, last = [
        sql.replace("{append}", append(hand)).replace("{client}", str(hand.client))
        for sql in statements
    ]
    for sql in first:
        with suppress(psycopg.errors.DivisionByZero):
            connection.execute(sql)
    open_one = Background(connection, last)
    expect_no_stall(shop)
    open_one.join(patience(10))
    if shop.keeper == "tique" and "begin_transaction" not in last:
        with pytest.raises(psycopg.OperationalError):
            go_on(connection)
    with shop.by_hand("writer") as again:
        assert Hand(again, hand.tables).append({"open": [[0, 9, 90, "y"]]}) > 0
    assert shop.healthy.rows("SELECT note FROM open WHERE id = 9") == [("y",)]


@pytest.mark.slow
@pytest.mark.parametrize("call", ["guest_drain({}, {})", "guest_fold({}, {}, NULL)"])
def test_a_table_whose_versions_are_moved_for_ever(shop, hand, call):
    """Others drain it for a query over all of it, and fold it."""
    shop.owner.commit("UPDATE open SET v = 11 WHERE id = 1")
    for process in shop.processes:
        process.database.timeline.advance()
    connection = hand._connection
    connection.execute("BEGIN")
    connection.execute(
        f"SELECT tique.{call.format(hand.tables['open'], 'tique.sts()')}"
    )
    started = time.monotonic()
    assert shop.healthy.rows("SELECT sum(v + id) FROM open GROUP BY note") == [
        (12,),
        (22,),
    ]
    shop.owner.connection.checkpoint()
    assert time.monotonic() - started < patience(LONGEST_STALL)
    assert shop.process().rows("SELECT v FROM open ORDER BY id") == [(11,), (20,)]


NO_LIMIT = "SET LOCAL idle_in_transaction_session_timeout = 0"


def expect_ended(connection):
    with pytest.raises(psycopg.OperationalError):
        go_on(connection)


def test_a_commits_lock_that_is_kept(shop, hand):
    """A timestamp in doubt is fenced though a guest's session has the committers' lock."""
    hand.run("SELECT tique.guest_barrier(%s)", hand.client)
    with shop.by_hand("writer") as other:
        other.execute("BEGIN")
        other.execute("SELECT tique.guest_committing()")
        with suppress(psycopg.Error):
            other.execute(NO_LIMIT)
        assert stall(shop.healthy) < patience(2 * LONGEST_STALL)
        expect_ended(other)
    expect_no_stall(shop)


def fold_and_define(process):
    """Work of the owner's that needs the checkpointer's lease."""
    process.commit("UPDATE closed SET v = v + 1 WHERE id = 1")
    end = time.monotonic() + patience(10)
    while cached(process):
        process.connection.checkpoint()
        assert time.monotonic() < end
    process.commit("CREATE TABLE made (id INTEGER PRIMARY KEY)")
    process.commit("DROP TABLE made")


@pytest.mark.slow
def test_the_checkpointers_table_that_is_kept(shop, hand):
    connection = hand._connection
    connection.execute("BEGIN")
    hand.run("SELECT tique.guest_checkpoint(%s, 300000)", hand.client)
    with suppress(psycopg.Error):
        connection.execute(NO_LIMIT)
    fold_and_define(shop.healthy)
    expect_ended(connection)


def test_the_checkpointers_lease_that_is_kept(shop, hand):
    """It is another guest's that has to wait for it, and no process of the owner's."""
    take = "SELECT tique.guest_checkpoint(%s, 300000)"
    assert hand.run(take, hand.client) == [(True,)]
    with shop.by_hand("reader") as reader:
        other = Hand(reader, hand.tables)
        assert other.run(take, other.client) == [(False,)]
    fold_and_define(shop.healthy)


def test_clients_of_one_role(shop, hand):
    """It has its share of them; others can still open the database."""

    def join(times):
        hand.run(
            "SELECT count(tique.guest_join(60000)) FROM generate_series(1, %s)", times
        )

    for _ in range(3):
        join(256)
    # With the one that the hand has they are too many.
    with pytest.raises(psycopg.Error, match="as many clients as one may have"):
        join(256)
    for _ in range(256):
        with suppress(psycopg.Error):
            join(1)
    reader = shop.process("reader")
    assert reader.rows("SELECT v FROM open ORDER BY id") == [(10,), (20,)]
    assert shop.process().rows("SELECT v FROM open ORDER BY id") == [(10,), (20,)]
    expect_no_stall(shop)


def commit_in_bulk(writer, first, last):
    """Again where it took too long, as it may on a busy machine."""
    end = time.monotonic() + patience(20)
    while True:
        try:
            writer.commit(ROWS, [first, last])
        except tique.OperationalError as refusal:
            assert "too long" in str(refusal)  # noqa: PT017
            assert time.monotonic() < end
            writer.connection.rollback()
            time.sleep(0.2)
        else:
            return


def test_a_commit_in_bulk_of_an_ordinary_role(shop):
    writer = shop.process("writer")
    shop.healthy.rows("SELECT * FROM open")
    commit_in_bulk(writer, 100, 20_099)
    for process in (writer, shop.healthy, shop.process("reader")):
        process.connection.rollback()
        assert process.rows("SELECT count(*) FROM open WHERE note = 'bulk'") == [
            (20_000,)
        ]
    commit_in_bulk(writer, 30_000, 50_000)
    expect_no_stall(shop)


def slowed(monkeypatch, owner, method):
    usual = getattr(owner, method)

    def slow(*args, **options):
        time.sleep(2.5)
        return usual(*args, **options)

    monkeypatch.setattr(owner, method, slow)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "method"),
    [
        (GuestSession, "append_staged"),
        (GuestSession, "log"),
        (PostgreSQLSequencer, "commit"),
        (PostgreSQLSequencer, "finish"),
    ],
    ids=["append", "log", "commit", "finish"],
)
def test_a_commit_in_bulk_that_takes_too_long(shop, monkeypatch, owner, method):
    """P1, P4: aborted for every reader, at any step; the process goes on."""
    writer, reader = shop.process("writer"), shop.process("reader")
    with closing(writer.another()) as other:
        assert other.execute("SELECT v FROM open WHERE id = 1").fetchall() == [(10,)]
        writer.run(ROWS, [100, 20_099])
        writer.run("UPDATE open SET note = 'with it' WHERE id = 1")
        txid = writer.connection.txid
        failures = []

        def commit():
            try:
                writer.connection.commit()
            except tique.Error as error:
                failures.append(error)

        with monkeypatch.context() as patch:
            slowed(patch, owner, method)
            thread = threading.Thread(target=commit)
            thread.start()
            time.sleep(0.5)
            assert stall(shop.healthy) < patience(LONGEST_STALL)
            assert other.execute("SELECT v FROM open WHERE id = 1").fetchall() == [
                (10,)
            ]
            thread.join(patience(30))
        (error,) = failures
        assert isinstance(error, tique.OperationalError)
        assert error.sqlstate == "54000"
        assert "write fewer rows" in str(error)
    assert shop.owner.connection.outcome(txid) != "committed"
    rows = [(1, "a"), (2, "b")]
    for process in (writer, reader, shop.healthy, shop.process("reader")):
        assert not process.database.timeline.is_lost
        process.connection.rollback()
        assert process.rows("SELECT id, note FROM open ORDER BY id") == rows
    expect_no_stall(shop)
    # Its fence is removed with the next beats; then the role may write in bulk again.
    commit_in_bulk(writer, 100, 10_000)
    for process in (writer, shop.healthy):
        process.connection.rollback()
        assert process.rows("SELECT count(*) FROM open") == [(9_903,)]
