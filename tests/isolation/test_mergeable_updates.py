"""P1, P3, P5, P9: an update by key that lost is computed again at its commit.

Threads update while no commit is let through, so that all of them have the same snapshot.
"""

from __future__ import annotations

import threading
import time

import pytest

import tique
from tests.effort import effort
from tests.isolation.overtaking import held_up, overtaken, together
from tique.writes.tickets import Ticket

pytestmark = pytest.mark.one_duckdb

MOST = 2**31 - 1


ADD = ("UPDATE t SET n = n + %s WHERE id = 1", 1)


@pytest.mark.usefixtures("batches")
def test_increments(engine, row, losses):
    assert together(engine, ADD, ADD, ADD) == [1, 1, 1]
    assert row() == [(3, 0, "a")]
    assert not losses


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
    assert not losses


@pytest.mark.usefixtures("batches")
def test_many_rows_of_parameters(engine, row, losses):
    """Later ones are computed on what the earlier ones made."""
    twice = ("UPDATE t SET n = n + %s WHERE id = 1", (10,), (20,))
    assert together(engine, twice, twice) == [2, 2]
    assert row() == [(60, 0, "a")]
    assert not losses


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


@pytest.mark.slow
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
    assert not losses


NOTE = "UPDATE t SET n = n + 10, note = 'mine' WHERE id = 1"
OTHER = "UPDATE u SET v = v + 1 WHERE id = %s"
INCREMENT = "UPDATE t SET n = n + 1 WHERE id = 1"


@pytest.fixture
def others(engine, row):
    """A second table, of which other transactions change rows."""
    with engine.connect(autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE u (a INTEGER, id INTEGER, v INTEGER, w INTEGER, "
            "PRIMARY KEY (a, id))"
        )
        connection.execute("INSERT INTO u VALUES (1, 1, 0, 0), (1, 2, 0, 0)")
        connection.execute("INSERT INTO u VALUES (2, 1, 0, 0), (2, 2, 0, 0)")


V_OF_1 = "SELECT v FROM u WHERE a = 1 AND id = 1"
CHANGE_V = "UPDATE u SET v = v + 1 WHERE a = 1 AND id = 1"
CHANGE_W = "UPDATE u SET w = w + 1 WHERE a = 1 AND id = 1"


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize(
    "seen",
    [
        pytest.param([], id="nothing"),
        pytest.param([V_OF_1], id="a column of a row"),
        pytest.param(["SELECT v FROM u WHERE a = 1"], id="a column of a group"),
        pytest.param(
            ["SELECT sum(v) FROM u WHERE a = 1"], id="an aggregate of a group"
        ),
        pytest.param(["SELECT count(*) FROM u WHERE a = 1"], id="how many there are"),
        pytest.param(["SELECT v FROM u WHERE a = 3 AND id = 1"], id="no row"),
        pytest.param(["SELECT v FROM u WHERE a = 2"], id="another group"),
        pytest.param(
            ["UPDATE u SET v = 5 WHERE a = 2 AND id = 1"], id="another row's presence"
        ),
        pytest.param(
            ["UPDATE u SET v = 5 WHERE a = 3 AND id = 1"], id="that there is no row"
        ),
        pytest.param(["INSERT INTO u VALUES (3, 1, 0, 0)"], id="a new row"),
    ],
)
def test_what_was_not_changed_may_be_seen(engine, row, seen):
    """P3: the transaction is committed as one that began after the other."""
    for order in ([*seen, NOTE], [NOTE, *seen]):
        before = row()[0]
        overtaken(engine, order, [INCREMENT, CHANGE_W])
        assert row() == [(before[0] + 11, 0, "mine")]
        with engine.connect(autocommit=True) as connection:
            connection.execute("DELETE FROM u WHERE a = 3")


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize(
    ("seen", "change"),
    [
        pytest.param(
            "SELECT n FROM t WHERE id = 1", INCREMENT, id="the changed column"
        ),
        pytest.param("SELECT * FROM t", INCREMENT, id="the table"),
        pytest.param("SELECT sum(n) FROM t", INCREMENT, id="an aggregate"),
        pytest.param(
            "SELECT v FROM u, t WHERE t.id = 1 AND u.id = t.n", INCREMENT, id="a join"
        ),
        pytest.param(
            "UPDATE u SET v = 1 WHERE v = (SELECT n FROM t WHERE id = 1)",
            INCREMENT,
            id="another statement's condition",
        ),
        pytest.param(
            "INSERT INTO u SELECT 9, n, 0, 0 FROM t", INCREMENT, id="a query's rows"
        ),
        pytest.param(
            "UPDATE t SET m = 1 WHERE id = 1 RETURNING n", INCREMENT, id="RETURNING"
        ),
        pytest.param(V_OF_1, CHANGE_V, id="a column of a row"),
        pytest.param(
            V_OF_1, "DELETE FROM u WHERE a = 1 AND id = 1", id="a row that goes"
        ),
        pytest.param("SELECT v FROM u WHERE a = 1", CHANGE_V, id="a column of a group"),
        pytest.param(
            "SELECT v FROM u WHERE a = 1",
            "INSERT INTO u VALUES (1, 3, 0, 0)",
            id="a group that grows",
        ),
        pytest.param(
            "SELECT count(*) FROM u WHERE a = 1",
            "DELETE FROM u WHERE a = 1 AND id = 2",
            id="a group that shrinks",
        ),
        pytest.param("SELECT max(w) FROM u", CHANGE_W, id="an aggregate of a table"),
        pytest.param(
            "SELECT v FROM u WHERE a = 3 AND id = 1",
            "INSERT INTO u VALUES (3, 1, 0, 0)",
            id="a row that comes",
        ),
        pytest.param(
            "UPDATE u SET v = 5 WHERE a = 3 AND id = 1",
            "INSERT INTO u VALUES (3, 1, 0, 0)",
            id="a row that comes, for an update",
        ),
        pytest.param(
            "DELETE FROM u WHERE a = 3",
            "INSERT INTO u VALUES (3, 1, 0, 0)",
            id="a row that comes, for a group's deletion",
        ),
    ],
)
def test_what_was_seen_counts(engine, row, seen, change):
    """P1, P3: of the snapshot that was seen something has changed."""
    for order in ([seen, NOTE], [NOTE, seen]):
        before = row()
        with pytest.raises(tique.SerializationError):
            # A server's process need not know of a commit after that of the row.
            overtaken(engine, order, [change, INCREMENT])
        changed = 2 if change == INCREMENT else 1
        assert row() == [(before[0][0] + changed, 0, "a")]
        with engine.connect(autocommit=True) as connection:
            connection.execute("DELETE FROM u")
            connection.execute("INSERT INTO u VALUES (1, 1, 0, 0), (1, 2, 0, 0)")


def test_columns_of_the_row_itself(engine, row):
    """P3: those that were not changed may be seen before the update, not after it."""
    other = "SELECT m FROM t WHERE id = 1"
    overtaken(engine, [other, NOTE], [INCREMENT])
    with pytest.raises(tique.SerializationError):
        overtaken(engine, [NOTE, other], [INCREMENT])
    assert row() == [(12, 0, "mine")]


def test_columns_that_one_statement_after_another_sees(engine, row):
    """P3: of the same row in memory; each counts, whichever came first."""
    seen = ["SELECT m FROM t WHERE id = 1", "SELECT n FROM t WHERE id = 1"]
    for order in (seen, seen[::-1]):
        with pytest.raises(tique.SerializationError):
            overtaken(engine, [*order, NOTE], [INCREMENT])
    assert row() == [(2, 0, "a")]


@pytest.mark.usefixtures("others", "batches")
@pytest.mark.parametrize(
    "seen", [V_OF_1, "SELECT v FROM u WHERE a = 1", "SELECT max(v) FROM u"]
)
def test_what_was_seen_counts_within_a_group_commit(engine, row, seen):
    """P3: a commit before it in the batch has changed what was seen."""
    outcomes = {}

    def commit(connection):
        try:
            connection.commit()
            outcomes[connection] = None
        except tique.Error as error:
            outcomes[connection] = type(error)

    with engine.connect() as first, engine.connect() as second:
        for connection in (first, second):
            for _ in range(4):
                connection.rollback()
                connection.execute(seen).fetchall()
            connection.execute(INCREMENT)
        first.execute(CHANGE_V)
        threads = []
        with held_up(engine) as committer:
            for connection in (first, second):
                threads.append(threading.Thread(target=commit, args=(connection,)))
                threads[-1].start()
                while len(committer._queue) < len(threads):
                    time.sleep(0.001)
        for thread in threads:
            thread.join()
        assert outcomes == {first: None, second: tique.SerializationError}
    assert row() == [(1, 0, "a")]


def test_what_was_seen_stays_seen(engine, row):
    """P8: a savepoint gives back what was written, not what was shown."""
    with pytest.raises(tique.SerializationError):
        overtaken(
            engine,
            [
                "SAVEPOINT s",
                NOTE,
                "SELECT n FROM t WHERE id = 1",
                "ROLLBACK TO SAVEPOINT s",
                NOTE,
            ],
            [INCREMENT],
        )
    assert row() == [(1, 0, "a")]


def test_an_error_shows_something_too(engine, row):
    """The row that was in the way is gone by then."""
    with engine.connect() as connection:
        connection.execute("INSERT INTO t VALUES (2, 0, 0, 'b')")
        connection.commit()
    with (
        engine.connect() as first,
        engine.connect(autocommit=True) as second,
    ):
        with pytest.raises(tique.IntegrityError):
            first.execute("INSERT INTO t VALUES (2, 0, 0, 'c')")
        first.execute(INCREMENT)
        second.execute("DELETE FROM t WHERE id = 2")
        second.execute(INCREMENT)
        with pytest.raises(tique.SerializationError):
            first.commit()
    assert row() == [(1, 0, "a")]


def test_two_updates_of_two_rows(engine, row):
    """P5: of a transaction all is computed again, or nothing is committed."""
    with engine.connect() as connection:
        connection.execute("INSERT INTO t VALUES (2, 0, 0, 'b')")
        connection.commit()
    both = [NOTE, "UPDATE t SET n = n + 10 WHERE id = 2"]
    overtaken(engine, both, [INCREMENT])
    with pytest.raises(tique.SerializationError):
        overtaken(engine, both, [INCREMENT, "DELETE FROM t WHERE id = 2"])
    assert row() == [(12, 0, "mine")]


def test_a_bulk_commit_after_the_newest_version_in_memory(engine, row):
    """P3: the row is in the cache table only, and is no base for another one."""
    with engine.connect(autocommit=True) as connection:
        numbers = ", ".join(f"({i}, 0, 0, 'c')" for i in range(2, 2600))
        connection.execute(f"INSERT INTO t VALUES {numbers}")
        connection.checkpoint()
    with pytest.raises(tique.SerializationError):
        overtaken(engine, [NOTE], [INCREMENT, "UPDATE t SET n = n + 100"])
    assert row()[:1] == [(101, 0, "a")]


def test_conflicts_by_row(engine, row):
    """The option switches it off."""
    with pytest.raises(tique.SerializationError):
        overtaken(engine, [NOTE], [INCREMENT], conflicts="row")
    assert row() == [(1, 0, "a")]
    with pytest.raises(tique.InterfaceError):
        engine.connect(conflicts="rows")


def test_read_committed(engine, row):
    """What earlier statements saw does not matter, but for the transaction's own rows."""
    level = "READ COMMITTED"
    seen = "SELECT n FROM t WHERE id = 1"
    overtaken(engine, [seen, NOTE], [INCREMENT], isolation_level=level)
    assert row() == [(11, 0, "mine")]
    with pytest.raises(tique.OperationalError) as refused:
        # The other one waits for the row, which was looked at.
        overtaken(
            engine, [NOTE, seen], [INCREMENT], isolation_level=level, patience=0.02
        )
    assert refused.value.sqlstate == "55P03"
    assert row() == [(11, 0, "mine")]


@pytest.mark.slow
def test_columns_that_the_newer_version_lacks(engine):
    """P1: a gap in it is no change, and is filled from the row that was seen."""
    with engine.connect() as connection:
        columns = ", ".join(f"c{i} INTEGER DEFAULT {i}" for i in range(40))
        connection.execute(f"CREATE TABLE wide (id INTEGER PRIMARY KEY, {columns})")
        connection.execute("INSERT INTO wide (id) VALUES (1)")
        connection.commit()
        connection.checkpoint()
    engine.restart()
    with engine.connect() as first, engine.connect() as second:
        second.execute("UPDATE wide SET c3 = c3 + c5 WHERE id = 1")
        first.execute("UPDATE wide SET c7 = c7 + c9 WHERE id = 1")
        second.commit()
        first.commit()
    with engine.connect() as connection:
        for _ in range(2):
            found = connection.execute("SELECT c3, c7, c9, c39 FROM wide").fetchall()
            assert found == [(8, 16, 9, 39)]
            connection.checkpoint()


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


@pytest.mark.written_for(["duckdb"], reason="servers append each ticket by itself")
def test_a_ticket_that_is_certified_again(engine, row):
    """P5: nothing is left in it of rows that were not committed after all."""
    with engine.connect() as first, engine.connect() as second:
        database = first._database
        tickets = []
        for connection in (first, second):
            connection._execution.autocommit = True
            transaction = connection._execution.begin()
            planner = connection._execution.planner
            statement = planner.statement(planner.plan(ADD[0], True))
            statement.run(transaction, ADD[1:])
            tickets.append(Ticket(transaction))
        certifier = database.committer._certifier
        assert certifier.certify(list(tickets), first._execution.session) == (
            tickets,
            [],
        )

        def values():
            return [ticket.writes[0].rows[1,].row[1] for ticket in tickets]

        assert values() == [1, 2]
        assert certifier.certify(tickets[1:], first._execution.session) == (
            tickets[1:],
            [],
        )
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
