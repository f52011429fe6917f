"""P1, P3, P5, P9: an update in autocommit that lost is computed again at its commit.

Threads update while no commit is let through, so that all of them have the same snapshot.
Where statements are not computed again they are run again: the rows are the same.
"""

from __future__ import annotations

import threading
import time
from contextlib import closing, contextmanager

import pytest

import tique
from tests.effort import effort
from tique.commit import committer as committing
from tique.commit.turns import Contender
from tique.writes.tickets import Ticket

pytestmark = pytest.mark.one_duckdb

MOST = 2**31 - 1


@pytest.fixture
def row(engine):
    with engine.connect() as connection:
        connection.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, m INTEGER, "
            "note VARCHAR(20))"
        )
        connection.execute("INSERT INTO t VALUES (1, 0, 0, 'a')")
        connection.commit()
        yield lambda: connection.execute("SELECT n, m, note FROM t").fetchall()


@pytest.fixture
def losses(monkeypatch):
    """The conflicts that connections meet."""
    found = []
    monkeypatch.setattr(Contender, "lose", lambda *_: found.append(None))
    return found


@pytest.fixture(params=[256, 1], ids=["one batch", "one after the other"])
def batches(request, monkeypatch):
    """How many commits there are in a group."""
    monkeypatch.setattr(committing, "_BATCH", request.param)


@contextmanager
def held_up(engine):
    """Let no commit through; those that begin meanwhile have one snapshot."""
    with engine.connect() as connection:
        committer = connection._database.committer
        with committer.paused(10):
            yield committer


def together(engine, *statements):
    """Run statements in threads, in autocommit; what each raises, or its row count."""
    outcomes = [None] * len(statements)

    def run(number, sql, parameters):
        try:
            with closing(engine.connect(autocommit=True)) as connection:
                cursor = connection.cursor()
                if parameters and isinstance(parameters[0], tuple):
                    cursor.executemany(sql, parameters)
                else:
                    cursor.execute(sql, parameters)
                outcomes[number] = cursor.rowcount
        except tique.Error as error:
            outcomes[number] = type(error)

    threads = []
    with held_up(engine) as committer:
        for number, (sql, *parameters) in enumerate(statements):
            thread = threading.Thread(target=run, args=(number, sql, parameters))
            thread.start()
            threads.append(thread)
            while thread.is_alive() and len(committer._queue) < number + 1:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    return outcomes


ADD = ("UPDATE t SET n = n + %s WHERE id = 1", 1)


@pytest.mark.usefixtures("batches")
def test_increments(engine, row, losses):
    assert together(engine, ADD, ADD, ADD) == [1, 1, 1]
    assert row() == [(3, 0, "a")]
    assert bool(losses) != engine.merges


@pytest.mark.usefixtures("batches")
def test_other_columns(engine, row, losses):
    """Each keeps what the others wrote."""
    outcomes = together(
        engine,
        ADD,
        ("UPDATE t SET m = m - 5 WHERE id = 1",),
        ("UPDATE t SET note = %s WHERE id = 1", "b"),
        ("UPDATE t SET n = n + 1, m = m + 2 WHERE id = 1",),
    )
    assert outcomes == [1, 1, 1, 1]
    assert row() == [(2, -3, "b")]
    assert bool(losses) != engine.merges


@pytest.mark.usefixtures("batches")
def test_many_rows_of_parameters(engine, row, losses):
    """Later ones are computed on what the earlier ones made."""
    twice = ("UPDATE t SET n = n + %s WHERE id = 1", (10,), (20,))
    assert together(engine, twice, twice) == [2, 2]
    assert row() == [(60, 0, "a")]
    assert bool(losses) != engine.merges


@pytest.mark.usefixtures("batches")
def test_a_row_that_was_not_there_was_seen(engine, row, losses):
    outcomes = together(
        engine,
        ("INSERT INTO t VALUES (2, 0, 0, 'b')",),
        ADD,
        ("UPDATE t SET n = n + %s WHERE id = %s", (1, 1), (1, 2)),
    )
    assert outcomes[:2] == [1, 1]
    assert sorted(row()) in ([(1, 0, "b"), (2, 0, "a")], [(0, 0, "b"), (2, 0, "a")])
    assert outcomes[2] == (1 if sorted(row())[0][0] == 0 else 2)
    assert losses


@pytest.mark.usefixtures("batches")
@pytest.mark.parametrize(
    ("first", "second", "outcome", "rows"),
    [
        pytest.param(
            ("DELETE FROM t WHERE id = 1",), ADD, 0, [], id="the row is deleted"
        ),
        pytest.param(
            ("UPDATE t SET n = %s WHERE id = 1", MOST),
            ADD,
            tique.DataError,
            [(MOST, 0, "a")],
            id="the value does not fit",
        ),
        pytest.param(
            ("UPDATE t SET m = NULL WHERE id = 1",),
            ("UPDATE t SET n = m WHERE id = 1",),
            tique.IntegrityError,
            [(0, None, "a")],
            id="the value is missing",
        ),
        pytest.param(
            ADD,
            ("UPDATE t SET n = n + 10 WHERE id = 1 AND n < 1",),
            0,
            [(1, 0, "a")],
            id="the condition no longer holds",
        ),
    ],
)
def test_the_conflict_stands(engine, row, losses, first, second, outcome, rows):
    """The statement is run again, on a new snapshot."""
    outcomes = together(engine, first, second)
    assert outcomes[0] == 1
    assert outcomes[1] == outcome or issubclass(outcomes[1], outcome)
    assert row() == rows
    assert losses


NO_CHECK = pytest.mark.never(
    ["monetdb"], raises=tique.NotSupportedError, reason="MonetDB 11.41 has no CHECK"
)


@pytest.mark.usefixtures("batches")
@pytest.mark.parametrize(
    "constraint",
    [
        pytest.param("CHECK (n < 2)", marks=NO_CHECK),
        "UNIQUE (n)",
        "FOREIGN KEY (n) REFERENCES p (id)",
    ],
)
def test_constraints_hold(engine, losses, constraint):
    """P9: one of two increments is allowed."""
    with engine.connect() as connection:
        for sql in (
            "CREATE TABLE p (id INTEGER PRIMARY KEY)",
            f"CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, {constraint})",
            "INSERT INTO p VALUES (0), (1), (3)",
            "INSERT INTO t VALUES (1, 0), (2, NULL)",
        ):
            connection.execute(sql)
            connection.commit()
        if constraint.startswith("UNIQUE"):
            connection.execute("UPDATE t SET n = 2 WHERE id = 2")
    outcomes = together(engine, ADD, ADD)
    outcomes.remove(1)
    assert issubclass(*outcomes, tique.IntegrityError)
    assert losses


@pytest.mark.usefixtures("batches")
def test_a_row_in_place_of_it(engine, row, losses):
    together(engine, ("UPDATE t SET id = 2 WHERE id = 1",))
    outcomes = together(
        engine,
        ("INSERT INTO t VALUES (1, 100, 7, 'new')",),
        ("UPDATE t SET n = n + 1 WHERE id = 2",),
        ("UPDATE t SET n = n + 1 WHERE id = 2",),
    )
    assert outcomes == [1, 1, 1]
    assert sorted(row()) == [(2, 0, "a"), (100, 7, "new")]
    assert bool(losses) != engine.merges


def test_what_was_seen_counts(engine, row):
    """An update of a transaction, or with RETURNING, meets its conflict as before."""
    with engine.connect() as first, engine.connect() as second:
        for connection in (first, second):
            connection.execute("UPDATE t SET n = n + 1 WHERE id = 1")
        second.commit()
        with pytest.raises(tique.SerializationError):
            first.commit()
    assert row() == [(1, 0, "a")]


def test_after_reopening(engine):
    """P4, P5: the log has the rows that were computed."""
    with engine.connect() as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
        connection.execute("INSERT INTO t VALUES (1, 0)")
    together(engine, ADD, ADD)
    engine.restart()
    with engine.connect() as connection:
        for _ in range(2):
            assert connection.execute("SELECT n FROM t").fetchall() == [(2,)]
            connection.checkpoint()


@pytest.mark.written_for(["duckdb"], reason="servers certify keys and know no rows")
def test_a_ticket_that_is_certified_again(engine, row):
    """P5: nothing is left in it of rows that were not committed after all."""
    with engine.connect() as first, engine.connect() as second:
        database = first._database
        tickets = []
        for connection in (first, second):
            connection._autocommit = True
            transaction = connection._begin()
            statement = connection._executable(connection._plan(ADD[0], True))
            transaction.is_blind = statement.is_blind
            statement.run(transaction, ADD[1:])
            tickets.append(Ticket(transaction))
        certifier = database.committer._certifier
        assert certifier.certify(list(tickets), first._session) == tickets

        def values():
            return [ticket.writes[0].rows[1,].row[1] for ticket in tickets]

        assert values() == [1, 2]
        assert certifier.certify(tickets[1:], first._session) == tickets[1:]
        assert values() == [1, 1]


def test_many_threads(engine, row):
    """None is lost, none is counted twice."""
    done = []

    def work():
        with engine.connect(autocommit=True) as connection:
            while time.monotonic() < end:
                connection.execute(ADD[0], ADD[1:])
                done.append(None)

    end = time.monotonic() + effort(1, 20)
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    with engine.connect() as connection:
        while time.monotonic() < end:
            connection.checkpoint()
    for thread in threads:
        thread.join()
    assert row() == [(len(done), 0, "a")]
