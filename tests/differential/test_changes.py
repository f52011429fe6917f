"""The same change through tique and through the bare engine (P8, P9)."""

from __future__ import annotations

import re
from unittest.mock import ANY

import duckdb
import psycopg
import pymonetdb
import pytest

from tests.differential import world
from tests.differential.generator import changes

HAND_WRITTEN = list(world.statements("changes.sql"))
GENERATED = list(changes(seed=20230802, count=60))

_expected: dict[tuple[object, str], object] = {}


PROVIDED = re.compile("ON CONFLICT|RETURNING|INSERT OR|BY SOURCE|MATCHED AND")
CHANGES_IN_WITH = re.compile(r"WITH .*\((INSERT|UPDATE|DELETE)")
_TARGET = re.compile(r"(?:INSERT (?:OR \w+ )?INTO|UPDATE|DELETE FROM|MERGE INTO) (\w+)")


def content(connection, sql):
    """The rows of the table that ``sql`` changes."""
    target = _TARGET.search(sql).group(1)
    return world.content(connection, [target] if target in world.ROWS else [])


def returned(cursor):
    """The result of RETURNING: names and rows."""
    return [c[0] for c in cursor.description], sorted(cursor.fetchall(), key=repr)


def lacks_clause(error, sql):
    """Whether the engine refuses a clause that tique provides, and tests elsewhere."""
    refusals = pymonetdb.Error | psycopg.ProgrammingError
    if isinstance(error, duckdb.ParserException):
        # DuckDB 1.5 has no changes in WITH.
        return CHANGES_IN_WITH.match(sql) is not None
    return isinstance(error, refusals) and PROVIDED.search(sql) is not None


_JOINED = re.compile(
    r"UPDATE \w+ (AS \w+ )?SET .* FROM|DELETE FROM \w+ (AS \w+ )?USING|MERGE"
)


def counts_joined_rows(native, sql):
    """Whether the engine may count a changed row for each row that it is joined with.

    DuckDB 2.0.0 counts it once, 1.5 and 2.0.1 do not.
    """
    return (
        isinstance(native, duckdb.DuckDBPyConnection) and _JOINED.match(sql) is not None
    )


_KEYS = """
SELECT conname, pg_get_constraintdef(oid) FROM pg_catalog.pg_constraint
WHERE conrelid = to_regclass(%s) AND contype IN ('p', 'u')"""


def check_keys_at_the_end(native, sql):
    """Let PostgreSQL check keys when an UPDATE is over, as SQL has it and all others do.

    By default it does so row by row, in the order that it comes across them.
    """
    if sql.startswith(("UPDATE", "MERGE", "WITH")) and isinstance(
        native, psycopg.Connection
    ):
        target = _TARGET.search(sql).group(1)
        for name, definition in native.execute(_KEYS, (target,)).fetchall():
            native.execute(f"ALTER TABLE {target} DROP CONSTRAINT {name}")
            native.execute(f"ALTER TABLE {target} ADD {definition} DEFERRABLE")


def expected(native, sql):
    """The native result and content afterwards, or the kind of error."""
    if (native, sql) not in _expected:
        native.execute("BEGIN TRANSACTION")
        try:
            check_keys_at_the_end(native, sql)
            cursor = native.execute(sql)
            names = [column[0] for column in cursor.description or ()]
            if "RETURNING" in sql and names not in ([], ["Count"]):
                result = returned(cursor)
            else:
                result = (
                    cursor.fetchall()[0][0] if cursor.description else cursor.rowcount
                )
            if counts_joined_rows(native, sql):
                result = ANY
            _expected[native, sql] = result, content(native, sql)
        except Exception as error:
            refused = "error", world.category(error)
            _expected[native, sql] = ANY if lacks_clause(error, sql) else refused
        finally:
            native.execute("ROLLBACK")
    return _expected[native, sql]


def outcome(connection, sql, before):
    try:
        cursor = connection.execute(sql)
        result = returned(cursor) if cursor.description else cursor.rowcount
        return result, content(connection, sql)
    except Exception as error:
        for table, rows in content(connection, sql).items():
            assert rows == before[table], "a failed statement left a trace"
        return "error", world.category(error)
    finally:
        connection.execute("ROLLBACK TO SAVEPOINT start")


@pytest.fixture(scope="session")
def before(native):
    return world.content(native)


@pytest.mark.parametrize("sql", HAND_WRITTEN, ids=lambda sql: sql[:50])
def test_hand_written_change(native, through_tique, before, sql):
    assert outcome(through_tique, sql, before) == expected(native, sql)


def test_generated_changes(native, through_tique, before):
    failed = {
        sql: (found, wanted)
        for sql in GENERATED
        if (found := outcome(through_tique, sql, before))
        != (wanted := expected(native, sql))
    }
    assert not failed
