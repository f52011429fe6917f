"""One small database in five states that must be indistinguishable.

``stored``: every row is in its storage table. ``cached``: every row is a recent
version in a cache table. ``mixed``: some here, some there, with rows that were
changed and deleted since the last checkpoint. ``own``: as mixed, but the recent
versions are uncommitted, of the transaction that asks. ``staged``: the same, large
enough to be in the engine and not in the driver's buffer.
"""

from __future__ import annotations

import json
import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from unittest.mock import ANY
from uuid import UUID

import duckdb
import psycopg
import pymonetdb

from tests.portable import numbers

FOLDER = Path(__file__).parent
STATES = ("stored", "cached", "mixed", "own", "staged")
CATEGORIES = (
    "DataError",
    "IntegrityError",
    "NotSupportedError",
    "ProgrammingError",
    "OperationalError",
    "InternalError",
)

MARKS = {"qmark": "?", "pyformat": "%s"}
_OWN_TYPES = {
    "duckdb": "span INTERVAL, list INTEGER[], pair STRUCT(a INTEGER, b VARCHAR), "
    "huge HUGEINT, clock TIME",
    "monetdb": "span JSON, list JSON, pair JSON, huge HUGEINT, clock TIME(6)",
    "postgresql": "span INTERVAL, list INTEGER[], pair JSONB, huge NUMERIC(39,0), "
    "clock TIME",
}
_KINDS = ("tool", "toy", "book", None)
_NAMES = ("hammer", "Saw", "doll", "atlas", "it's", "café", None, "", "100%", "a\\b")


def _items():
    for i in range(1, 41):
        yield (
            i,
            _NAMES[i % len(_NAMES)],
            None if i % 9 == 0 else Decimal(i * 137 % 5000) / 100,
            _KINDS[i * 7 % 4],
            None if i % 11 == 0 else date(2024, 1 + i % 4, 1 + i % 28),
            None if i % 13 == 0 else i * 0.75,
            (True, False, None)[i % 3],
        )


def _sales():
    for day in range(1, 6):
        for item in range(1, 31, 2 + day % 3):
            note = None if item % 4 == 0 else f"n{item}"
            yield (date(2024, 1, day), item, (day * item) % 7, note)


def _nodes():
    yield (1, None, "root")
    for i in range(2, 16):
        yield (i, i // 2, f"n{i}" if i % 3 else "leaf")


_CODES = [
    ("a", "first", 1),
    ("A", "second", 2),
    ("b", "toy", 3),
    ("", "empty", None),
    ("a ", "padded", 7),
    ("it's", "tool", 7),
    ("é", None, 7),
    ("e\u0301", None, 7),
]


def _logs():
    at = datetime(2024, 1, 1, 12)
    for i in range(20):
        yield (
            i % 5 or None,
            ("again", "once", None)[i % 3],
            at + timedelta(hours=i % 4),
        )
    for _ in range(3):
        yield (1, "again", None)
        yield (None, None, None)


def _things():
    yield (
        1,
        timedelta(days=3),
        [1, 2, 3],
        {"a": 1, "b": "x"},
        2**100,
        time(1, 2),
        0.5,
        UUID(int=1),
    )
    yield (
        2,
        timedelta(hours=5),
        [],
        {"a": None, "b": None},
        -(2**90),
        None,
        1.25,
        UUID(int=2),
    )
    yield (3, None, None, None, None, time(23, 59, 59, 999999), None, None)
    for i in range(4, 10):
        yield (
            i,
            timedelta(minutes=i),
            [i, None],
            {"a": i, "b": "y" * i},
            i,
            time(i),
            i / 4,
            UUID(int=i),
        )


ROWS = {
    "item": list(_items()),
    "sale": list(_sales()),
    "node": list(_nodes()),
    "code": _CODES,
    "log": list(_logs()),
    "thing": list(_things()),
}
_KEYS = {"item": 1, "sale": 2, "node": 1, "code": 1, "log": 0, "thing": 1}
_CHANGED = {
    "item": "UPDATE item SET name = 'x', price = -1 WHERE id % 3 = 0",
    "sale": "UPDATE sale SET quantity = 9 WHERE quantity % 2 = 0",
    "node": "UPDATE node SET parent = 99 WHERE id > 3",
    "code": "UPDATE code SET rank = -1 WHERE code <> 'a'",
    "thing": "UPDATE thing SET ratio = 0, span = NULL WHERE id % 2 = 0",
}
_FILLERS = {
    "item": "INSERT INTO item (id) SELECT 100000 + number FROM",
    "sale": "INSERT INTO sale SELECT DATE '2000-01-01', 100000 + number, 1, NULL FROM",
    "node": "INSERT INTO node (id) SELECT 100000 + number FROM",
    "code": "INSERT INTO code SELECT 'fill' || number, NULL, 1 FROM",
    "log": "INSERT INTO log SELECT 100000, 'fill', NULL FROM",
}
_UNFILL = {
    "item": "DELETE FROM item WHERE id >= 100000",
    "sale": "DELETE FROM sale WHERE item >= 100000",
    "node": "DELETE FROM node WHERE id >= 100000",
    "code": "DELETE FROM code WHERE code LIKE 'fill%'",
    "log": "DELETE FROM log WHERE item = 100000",
}


def statements(name):
    """The statements of a file, one per paragraph, without comment lines."""
    for paragraph in (FOLDER / name).read_text().split("\n\n"):
        lines = [s for s in paragraph.strip().split("\n") if not s.startswith("-- ")]
        text = "\n".join(lines).removesuffix(";")
        if text:
            yield text


def _insert(connection, table, rows, mark="?"):
    marks = ", ".join([mark] * len(ROWS[table][0]))
    for row in rows:
        connection.execute(f"INSERT INTO {table} VALUES ({marks})", list(row))


def create(engine, connection):
    for statement in statements("schema.sql"):
        statement = statement.replace("<check>", engine.check("quantity >= 0"))
        connection.execute(statement.replace("<own types>", _OWN_TYPES[engine.name]))


def fill_natively(engine, connection):
    create(engine, connection)
    for table, rows in rows_on(engine).items():
        # pymonetdb cuts a time of day to seconds, but not a text.
        texts = [[str(v) if isinstance(v, time) else v for v in row] for row in rows]
        _insert(connection, table, texts, MARKS[engine.driver.paramstyle])


def rows_on(engine):
    """The tables' rows; values without a type in the engine as JSON."""
    return {
        table: [
            tuple(
                json.dumps(
                    value, separators=(",", ":"), default=timedelta.total_seconds
                )
                if isinstance(value, engine.lacks)
                else value
                for value in row
            )
            for row in rows
        ]
        for table, rows in ROWS.items()
    }


def fill(engine, connection, state):
    """Bring a database to a state; ``own`` and ``staged`` leave a transaction open."""
    create(engine, connection)
    rows_by_table = rows_on(engine)
    if state in ("stored", "cached"):
        for table, rows in rows_by_table.items():
            _insert(connection, table, rows)
        connection.commit()
        if state == "stored":
            connection.checkpoint()
        return
    for table, rows in rows_by_table.items():
        _insert(connection, table, [row for i, row in enumerate(rows) if i % 4])
        if table in _CHANGED:
            connection.execute(_CHANGED[table])
        _insert(connection, table, [_stranger(table)])
    connection.commit()
    connection.checkpoint()
    if state == "staged":
        for table in _FILLERS:
            connection.execute(f"{_FILLERS[table]} {numbers(2100)}")
            connection.execute(_UNFILL[table])
    _correct(connection, rows_by_table)
    if state == "mixed":
        connection.commit()


def _stranger(table):
    """A row that the target state has not."""
    return {
        "item": (77, "stranger", 1, "toy", None, 1.0, True),
        "sale": (date(2023, 1, 1), 77, 1, "stranger"),
        "node": (77, 1, "stranger"),
        "code": ("stranger", "stranger", 0),
        "log": (77, "stranger", None),
        "thing": (77, None, None, None, 77, None, None, None),
    }[table]


def _correct(connection, rows_by_table):
    """Correct the rows that the first half of the history left wrong."""
    cursor = connection.cursor()
    for table, rows in rows_by_table.items():
        names = [c[0] for c in cursor.execute(f"SELECT * FROM {table}").description]
        keys = names[: _KEYS[table]]
        where = " AND ".join(f"{key} = ?" for key in keys or names)
        stranger = _stranger(table)
        if keys:
            cursor.execute(
                f"DELETE FROM {table} WHERE {where}", list(stranger[: len(keys)])
            )
        else:
            cursor.execute(f"DELETE FROM {table} WHERE item = ?", [stranger[0]])
        _insert(connection, table, [row for i, row in enumerate(rows) if not i % 4])
        values = names[len(keys) :]
        assignments = ", ".join(f"{name} = ?" for name in values)
        for i, row in enumerate(rows):
            if keys and i % 4:
                cursor.execute(
                    f"UPDATE {table} SET {assignments} WHERE {where}",
                    [*row[len(keys) :], *row[: len(keys)]],
                )


def plain(value):
    """A value as something that can be compared and sorted."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.9g}")
    if isinstance(value, dict):
        return tuple((k, plain(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(plain(v) for v in value)
    return value


def compared(rows, *, ordered=False):
    """Rows in a form in which equal results are equal."""
    texts = [repr(plain(row)) for row in rows]
    return texts if ordered else sorted(texts)


class _Either(str):
    """Names of exceptions, each of which is equal to it."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        return other in self.split(" or ")


def category(error):
    """The exception of PEP 249 that ``error`` is a kind of.

    MonetDB's driver tells violations from other errors, and no more. A statement that
    PostgreSQL does not understand tique may refuse for a word that it does not know.
    """
    if isinstance(error, psycopg.ProgrammingError):
        return _Either("ProgrammingError or NotSupportedError")
    if isinstance(error, duckdb.DependencyException):
        # It is of no other kind there.
        return "OperationalError"
    if isinstance(error, pymonetdb.Error) and not isinstance(
        error, pymonetdb.IntegrityError
    ):
        return ANY
    names = [cls.__name__ for cls in type(error).__mro__]
    return next((name for name in CATEGORIES if name in names), names[0])


def content(connection, tables=tuple(ROWS)):
    """The tables' rows."""
    return {
        table: compared(connection.execute(f"SELECT * FROM {table}").fetchall())
        for table in tables
    }
