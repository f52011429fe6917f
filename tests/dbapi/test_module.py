"""PEP 249's requirements of the module, and of the exceptions on a connection."""

from __future__ import annotations

import threading

import pytest

import tique
from tests.portable import numbers

_EXCEPTIONS = (
    "Warning",
    "Error",
    "InterfaceError",
    "DatabaseError",
    "DataError",
    "OperationalError",
    "IntegrityError",
    "InternalError",
    "ProgrammingError",
    "NotSupportedError",
)


def test_globals():
    assert tique.apilevel == "2.0"
    assert tique.threadsafety == 2
    assert tique.paramstyle == "pyformat"


def test_everything_public_is_there():
    assert all(hasattr(tique, name) for name in tique.__all__)


@pytest.mark.parametrize("name", _EXCEPTIONS)
def test_exceptions_on_the_connection(engine, name):
    assert getattr(engine.connect(), name) is getattr(tique, name)


def test_threads_share_a_connection(engine):
    """threadsafety 2: calls on one connection wait for each other."""
    connection = engine.connect()
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute(f"INSERT INTO t SELECT number, 0 FROM {numbers(50)}")
    connection.commit()
    failures = []

    def work(start):
        try:
            for i in range(start, 50, 4):
                connection.execute("UPDATE t SET v = v + 1 WHERE id = %s", (i,))
                rows = connection.execute("SELECT * FROM t WHERE id >= 0").fetchall()
                assert len(rows) == 50
                connection.execute("SELECT v FROM t WHERE id = %s", (i,)).fetchone()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert connection.execute("SELECT sum(v) FROM t").fetchone() == (50,)
    connection.commit()
    assert connection.execute("SELECT sum(v) FROM t").fetchone() == (50,)


@pytest.mark.parametrize(
    ("column", "type_object"),
    [
        ("1", tique.NUMBER),
        ("1.5", tique.NUMBER),
        ("'x'", tique.STRING),
        ("CAST('78' AS <binary>)", tique.BINARY),
        ("DATE '2024-01-01'", tique.DATETIME),
        ("TIMESTAMP '2024-01-01'", tique.DATETIME),
    ],
)
def test_type_objects_compare_with_description(engine, column, type_object):
    column = column.replace("<binary>", engine.binary)
    cursor = engine.connect().execute(f"SELECT {column}")
    assert cursor.description[0][1] == type_object
