"""P4, P7: a table that cannot be folded stops no other table, no reader, no opening.

Its rows stay readable, the status says which table it is and why, the log is kept as far
as it is needed, and all is over when the reason is.
"""

from __future__ import annotations

import time
from contextlib import contextmanager

import pytest

import tique
from tique_backends.errors import ConnectionLostError, EngineError, ErrorKind

NO_ROOM = EngineError(ErrorKind.INTEGRITY, "no room in the inn")
LOST = ConnectionLostError(ErrorKind.OPERATIONAL, "the connection is lost")


@contextmanager
def failing(connection, *calls, table="bad", error=NO_ROOM):
    """The engine cannot do these calls for a table."""
    engine = type(connection._database.engine)
    with pytest.MonkeyPatch.context() as patch:
        for name in calls:
            patch.setattr(engine, name, _failing(getattr(engine, name), table, error))
        yield


def _failing(call, name, error):
    def fail(self, session, table, *arguments, **options):
        if table.name == name:
            raise error
        return call(self, session, table, *arguments, **options)

    return fail


def obstacles(connection):
    return {table.name: table.obstacle for table in connection.status().tables}


def contents(connection, table):
    rows = sorted(connection.execute(f"SELECT * FROM {table}").fetchall())
    connection.rollback()
    return rows


def logged(connection):
    session = connection._database.engine.session()
    try:
        return session.execute("SELECT count(*) FROM tique.log").fetch_all()[0][0]
    finally:
        session.close()


@pytest.fixture
def connection(engine):
    opened = engine.connect(checkpoint="manual", retention=0.0)
    for table in ("good", "bad", "other"):
        opened.execute(
            f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, v INTEGER, u INTEGER UNIQUE)"
        )
        opened.execute(f"INSERT INTO {table} VALUES (1, 1, 1), (2, 2, 2)")
        opened.commit()
    opened.checkpoint()
    for table in ("good", "bad", "other"):
        opened.execute(f"UPDATE {table} SET v = 9 WHERE id = 1")
        opened.execute(f"DELETE FROM {table} WHERE id = 2")
        opened.execute(f"INSERT INTO {table} VALUES (3, 3, 3)")
        opened.commit()
        opened.execute(f"UPDATE {table} SET v = 10 WHERE id = 1")
        opened.commit()
    return opened


ROWS = [(1, 10, 1), (3, 3, 3)]


def test_the_others_are_folded_and_the_log_is_kept(engine, connection):
    before = logged(connection)
    with failing(connection, "store", "fold"):
        with pytest.raises(tique.IntegrityError) as refused:
            connection.checkpoint()
        label = f"{engine.schema}.bad"
        assert f"table {label} cannot be folded: no room" in str(refused.value)
        status = connection.status()
        assert {t.name: t.cached_rows > 0 for t in status.tables} == {
            f"{engine.schema}.good": False,
            label: True,
            f"{engine.schema}.other": False,
        }
        assert {n: o is None for n, o in obstacles(connection).items()} == {
            f"{engine.schema}.good": True,
            label: False,
            f"{engine.schema}.other": True,
        }
        assert "no room in the inn" in obstacles(connection)[label]
        assert label in status.checkpoint.last_error
        # The entries of the log that it needs are there, earlier ones are not.
        assert 0 < logged(connection) <= before
        # Reads and commits go on, of that table too.
        connection.execute("UPDATE bad SET v = v + 1 WHERE id = 1")
        connection.execute("INSERT INTO good VALUES (7, 7, 7)")
        connection.commit()
        assert contents(connection, "bad") == [(1, 11, 1), (3, 3, 3)]
        with pytest.raises(tique.errors.UniqueViolation):
            connection.execute("INSERT INTO bad VALUES (5, 5, 3)")
        connection.rollback()
        with pytest.raises(tique.IntegrityError):
            connection.checkpoint()
        assert contents(connection, "good") == [*ROWS, (7, 7, 7)]
    assert connection.checkpoint() > 0
    assert set(obstacles(connection).values()) == {None}
    assert connection.status().checkpoint.last_error is None
    assert logged(connection) == 0
    native = engine.native()
    for table, rows in (
        ("good", [*ROWS, (7, 7, 7)]),
        ("bad", [(1, 11, 1), (3, 3, 3)]),
        ("other", ROWS),
    ):
        assert sorted(native.execute(f"SELECT * FROM {table}").fetchall()) == rows


@pytest.mark.slow
def test_the_background_thread_goes_on(engine, connection):
    """It tries again by itself, after a while, and says when it is over."""
    with failing(connection, "store", "fold"):
        connection.close()
        connection = engine.connect(checkpoint_age=0.1, checkpoint_rows=1)
        connection.execute("INSERT INTO bad VALUES (4, 4, 4)")
        connection.execute("INSERT INTO good VALUES (4, 4, 4)")
        connection.commit()
        deadline = time.monotonic() + 20
        while not obstacles(connection)[f"{engine.schema}.bad"] or any(
            t.cached_rows
            for t in connection.status().tables
            if not t.name.endswith(".bad")
        ):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    deadline = time.monotonic() + 20
    while any(obstacles(connection).values()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert all(table.cached_rows == 0 for table in connection.status().tables)


@pytest.mark.parametrize("times", [1, 3])
def test_the_database_opens(engine, connection, times):
    """A restart finds the versions in the log or the cache table, and serves them."""
    expected = ROWS
    with failing(connection, "store", "fold"):
        for number in range(times):
            engine.restart()
            connection = engine.connect(checkpoint="manual", retention=0.0)
            assert contents(connection, "bad") == expected
            assert contents(connection, "good") == ROWS
            status = connection.status()
            (bad,) = [t for t in status.tables if t.name == f"{engine.schema}.bad"]
            assert bad.cached_rows >= 4
            if number == 0:
                assert "no room" in bad.obstacle
            connection.execute(
                f"INSERT INTO bad VALUES ({10 + number}, 0, {10 + number})"
            )
            connection.execute("UPDATE bad SET v = v + 1 WHERE id = 3")
            connection.commit()
            expected = sorted(
                [
                    *[r for r in expected if r[0] != 3],
                    (3, 4 + number, 3),
                    (10 + number, 0, 10 + number),
                ]
            )
            assert contents(connection, "bad") == expected
            with pytest.raises(tique.errors.UniqueViolation):
                connection.execute("INSERT INTO bad VALUES (3, 0, 0)")
            connection.rollback()
    connection.checkpoint()
    assert set(obstacles(connection).values()) == {None}
    assert logged(connection) == 0
    native = engine.native()
    rows = native.execute("SELECT * FROM bad ORDER BY id").fetchall()
    assert [tuple(row) for row in rows] == expected


@pytest.mark.written_for(
    ["monetdb", "postgresql"], reason="the log of one process has no fences"
)
def test_a_fenced_entry_of_a_kept_log_counts_for_nothing(engine, connection):
    """P1, P4: not after a restart either."""
    with failing(connection, "store", "fold"):
        with pytest.raises(tique.IntegrityError):
            connection.checkpoint()
        connection.execute("UPDATE good SET v = 66 WHERE id = 1")
        txid = connection.txid
        connection.commit()
        session = connection._database.engine.session()
        session.change("INSERT INTO tique.fences (cts) SELECT max(cts) FROM tique.log")
        session.close()
        for _ in range(2):
            engine.restart()
            connection = engine.connect(checkpoint="manual", retention=0.0)
            assert connection.outcome(txid) == "aborted"
            assert contents(connection, "good") == ROWS
            assert contents(connection, "bad") == ROWS
    connection.execute("UPDATE good SET v = 11 WHERE id = 1")
    connection.commit()
    connection.checkpoint()
    engine.restart()
    assert contents(engine.connect(), "good") == [(1, 11, 1), (3, 3, 3)]


def test_conflicts_with_what_an_opening_left_are_found(engine, connection):
    """P3: certification sees versions that are in the cache table only."""
    with failing(connection, "store", "fold"):
        engine.restart()
        one, two = engine.connect(checkpoint="manual"), engine.connect()
        two.execute("SELECT v FROM bad WHERE id = 1").fetchall()
        one.execute("UPDATE bad SET v = 20 WHERE id = 1")
        two.execute("UPDATE bad SET v = 30 WHERE id = 1")
        one.commit()
        with pytest.raises(tique.errors.SerializationError):
            two.commit()
        tique.run_transaction(two, lambda c: c.execute("UPDATE bad SET v = v + 1"))
        assert contents(one, "bad") == [(1, 21, 1), (3, 4, 3)]


@pytest.mark.slow
def test_other_tables_are_detached(engine, connection):
    with failing(connection, "store", "fold"):
        engine.close()
        good = f"{engine.schema}.good"
        assert tique.detach(engine.url, ["good"]) == [good]
        assert sorted(engine.native().execute("SELECT * FROM good").fetchall()) == ROWS
        engine.close()
        for tables in (["bad"], None):
            with pytest.raises(tique.OperationalError, match=r"\.bad.*no room") as no:
                tique.detach(engine.url, tables)
            assert no.value.sqlstate == "55000"
    connection = engine.connect()
    assert contents(connection, "bad") == ROWS
    engine.close()
    assert len(tique.detach(engine.url)) == 2
    native = engine.native()
    assert sorted(native.execute("SELECT * FROM bad").fetchall()) == ROWS
    assert ("tique",) not in [
        tuple(r) for r in native.execute(engine.schemas).fetchall()
    ]


def test_it_can_be_dropped(engine, connection):
    with failing(connection, "store", "fold"):
        with pytest.raises(tique.IntegrityError):
            connection.checkpoint()
        connection.execute("DROP TABLE bad")
        connection.checkpoint()
        assert set(obstacles(connection).values()) == {None}
        # The DDL's own entry may be there.
        assert logged(connection) <= 1


@pytest.mark.written_for(
    ["duckdb"], reason="a shared database's index is filled from the log itself"
)
@pytest.mark.parametrize("call", ["replay", "remove_orphans"])
def test_what_cannot_be_brought_back_is_not_used(engine, connection, call):
    """P5, P10: rather no answer than one that lacks rows; all else is served."""
    with failing(connection, call):
        engine.restart()
        connection = engine.connect(checkpoint="manual")
        assert contents(connection, "good") == ROWS
        for statement in (
            "SELECT * FROM bad",
            "SELECT v FROM bad WHERE id = 1",
            "INSERT INTO bad VALUES (9, 9, 9)",
            "UPDATE bad SET v = 0",
            "DELETE FROM bad WHERE id = 1",
            "INSERT INTO good SELECT id + 10, v, u + 10 FROM bad",
            "SELECT * FROM good JOIN bad USING (id)",
        ):
            with pytest.raises(tique.OperationalError, match=r"bad cannot be used"):
                connection.execute(statement)
            connection.rollback()
        with pytest.raises(tique.IntegrityError, match="no room"):
            connection.checkpoint()
        assert logged(connection) > 0
    connection.checkpoint()
    assert contents(connection, "bad") == ROWS
    assert logged(connection) == 0


def test_a_connection_that_is_lost_meanwhile_is_told_as_such(connection):
    """P6: the application connects again, as after any other call."""
    connection.execute("INSERT INTO bad VALUES (100, 1, 100)")
    connection.commit()
    with (
        failing(connection, "store", "fold", error=LOST),
        pytest.raises(tique.OperationalError, match=r"bad cannot") as caught,
    ):
        connection.checkpoint()
    assert caught.value.sqlstate == "08006"
    connection.checkpoint()
