"""Only PEP 249's errors leave the driver (P10, P12).

Whatever fails inside of it; a wrong argument of its own API is a ProgrammingError, of
``connect()`` an InterfaceError. What the application's code raises stays what it is.
"""

from __future__ import annotations

import pytest

import tique
from tique.checkpoint.checkpointer import Checkpointer
from tique.database import database as databases
from tique.database.database import Database
from tique.query.transaction.ddl_transaction import DDLTransaction


class _Fault(Exception):
    """An exception that nothing in the driver foresees."""


@pytest.fixture
def connection(engine):
    connection = engine.connect()
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    connection.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    connection.commit()
    return connection


def _fail_within():
    """A function that raises KeyError as code of the driver's would."""
    within = {"__name__": "tique.database"}
    exec("def fail(*_, **__):\n    return {}[1]", within)
    return within["fail"]


BODIES = {
    "commit": (databases.Committer, "commit"),
    "rollback": (DDLTransaction, "end"),
    "savepoint": (DDLTransaction, "savepoint"),
    "checkpoint": (Checkpointer, "checkpoint_now"),
    "outcome": (Database, "outcome"),
    "connect": (databases, "_acquire"),
}


def _use(name, connection, engine):
    if name == "commit":
        connection.commit()
    elif name == "rollback":
        connection.rollback()
    elif name == "savepoint":
        with connection.transaction("inner"):
            pass
    elif name == "checkpoint":
        connection.checkpoint()
    elif name == "outcome":
        connection.outcome(1)
    else:
        tique.connect(engine.url)


@pytest.mark.parametrize("name", BODIES)
def test_a_fault_within(engine, connection, monkeypatch, name):
    """It is an InternalError that asks for a report, and the connection goes on."""
    connection.execute("UPDATE t SET n = 3 WHERE id = 1")
    with monkeypatch.context() as patch:
        patch.setattr(*BODIES[name], _fail_within())
        with pytest.raises(tique.InternalError, match="report") as raised:
            _use(name, connection, engine)
    assert isinstance(raised.value.__cause__, KeyError)


@pytest.mark.parametrize("fetch", ["fetchone", "fetchmany", "fetchall", "__next__"])
def test_a_fault_in_a_fetch(connection, fetch):
    """So it is in fetches and iteration."""
    cursor = connection.execute("SELECT id FROM t")

    class Failing:
        fetch = fetch_all = _fail_within()

        def close(self):
            pass

    cursor._outcome.result, cursor._outcome.rows = Failing(), None
    with pytest.raises(tique.InternalError, match="report"):
        getattr(cursor, fetch)()


WRONG = {
    "a size": lambda cursor: cursor.fetchmany("x"),
    "a negative size": lambda cursor: cursor.fetchmany(-1),
    "the arraysize": lambda cursor: (
        setattr(cursor, "arraysize", "x"),
        cursor.fetchmany(),
    ),
    "a place": lambda cursor: cursor.scroll("x"),
    "rows of a batch": lambda cursor: cursor.fetch_record_batch("x"),
    "a statement": lambda cursor: cursor.execute(5),
    "no statement": lambda cursor: cursor.execute(None),
    "parameters": lambda cursor: cursor.execute("SELECT %s", 5),
    "rows": lambda cursor: cursor.executemany("INSERT INTO t VALUES (%s, %s)", 5),
    "a row": lambda cursor: cursor.executemany("INSERT INTO t VALUES (%s, %s)", [5]),
    "a procedure": lambda cursor: cursor.executemany(5, []),
    "a name": lambda cursor: cursor.append(5, {}),
    "data": lambda cursor: cursor.append("t", 5),
    "a copy": lambda cursor: cursor.copy(5),
    "a level": lambda cursor: cursor.connection.set_isolation_level(5),
    "a time-out": lambda cursor: setattr(cursor.connection, "lock_timeout", "x"),
    "a txid": lambda cursor: cursor.connection.outcome("x"),
    "a function": lambda cursor: cursor.connection.trust_function(5),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument(connection, name):
    """It is the program's fault, and an error of PEP 249's."""
    cursor = connection.execute("SELECT id, n FROM t ORDER BY id")
    with pytest.raises(tique.Error) as raised:
        WRONG[name](cursor)
    assert not isinstance(raised.value, tique.InternalError | tique.OperationalError)
    connection.rollback()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (2,)


@pytest.mark.parametrize(
    "options",
    [
        {"url": 5},
        {"url": None},
        {"url": "\0"},
        {"url": "duckdb://["},
        {"isolation_level": 5},
        {"paramstyle": []},
        {"conflicts": []},
        {"lock_timeout": "x"},
        {"lease": "x"},
        {"checkpoint_rows": "x"},
    ],
    ids=str,
)
def test_a_wrong_argument_of_connect(engine, options):
    """An InterfaceError, or NotSupportedError: nothing was opened."""
    with pytest.raises((tique.InterfaceError, tique.NotSupportedError)):
        tique.connect(**{"url": engine.url, **options})


@pytest.mark.written_for(["postgresql"], reason="only PostgreSQL has such a COPY")
@pytest.mark.parametrize(
    ("write", "data"),
    [*(("write", data) for data in (5, None, 1.5, [b"x"])), ("write_row", 5)],
)
def test_a_wrong_piece_of_copy(connection, write, data):
    """``write(5)`` wrote five zero bytes."""
    with (
        connection.cursor().copy("COPY t FROM STDIN") as copy,
        pytest.raises(tique.InterfaceError),
    ):
        getattr(copy, write)(data)


def test_the_applications_own_exception(connection):
    """A row factory's and a parameter iterator's stay what they are."""

    def rows():
        yield (3, 3)
        raise _Fault

    with pytest.raises(_Fault):
        connection.cursor().executemany("INSERT INTO t VALUES (%s, %s)", rows())
    cursor = connection.cursor(row_factory=lambda names: {}.__getitem__)
    with pytest.raises(KeyError):
        cursor.execute("SELECT id FROM t").fetchall()
