"""Differences between tique and psycopg: the behaviour of each, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
import pytest

import tique
from tests.postgresql.pairs import Failure

if TYPE_CHECKING:
    from collections.abc import Callable


class Difference(NamedTuple):
    """psycopg's outcome, tique's outcome, and why."""

    body: Callable[[Any], Any]
    psycopg: Any
    tique: Any
    reason: str


def _sql(statement: str, parameters: Any = None) -> Callable[[Any], Any]:
    return lambda c: c.execute(statement, parameters).rowcount


def _after_an_error(connection: Any) -> Any:
    with pytest.raises((psycopg.Error, tique.Error)):
        connection.execute("SELECT 1 / 0")
    return connection.execute("SELECT 1").fetchall()


def _described(connection: Any) -> Any:
    columns = connection.execute("SELECT id, truth FROM t").description
    return [tuple(column) for column in columns]


_REFUSED = Failure("NotSupportedError", "0A000")

DIFFERENCES = {
    "description": Difference(
        _described,
        [
            ("id", 23, None, 4, None, None, None),
            ("truth", 16, None, 1, None, None, None),
        ],
        [
            ("id", "INTEGER", None, None, None, None, None),
            ("truth", "BOOLEAN", None, None, None, None, None),
        ],
        "the type is its name, the same on every engine, instead of an OID",
    ),
    "column_of_a_table": Difference(
        _sql("SELECT k.nope FROM k"),
        Failure("ProgrammingError", "42703"),
        _REFUSED,
        "the rewriter must know what every qualified name means (P10)",
    ),
    "after_an_error": Difference(
        _after_an_error,
        Failure("InternalError", "25P02"),
        [(1,)],
        "a statement that fails is undone alone; the transaction goes on (P8)",
    ),
    "fetchmany_0": Difference(
        lambda c: c.execute("SELECT 1").fetchmany(0),
        [(1,)],
        [],
        "no rows are no rows; psycopg takes arraysize",
    ),
    "two_statements": Difference(
        _sql("SELECT 1; SELECT 2"), 1, _REFUSED, "one statement per call"
    ),
    "do": Difference(
        _sql("DO $$ BEGIN RAISE EXCEPTION 'x'; END $$"),
        Failure("ProgrammingError", "P0001"),
        _REFUSED,
        "the effect of its text is unknown (P10)",
    ),
    "search_path": Difference(
        _sql("SET search_path = 'tique'"),
        -1,
        _REFUSED,
        "its tables are tique's own",
    ),
    "definition_inside": Difference(
        lambda c: (
            (c.execute("DELETE FROM k"), c.execute("CREATE TABLE z (a INTEGER)"))[
                1
            ].rowcount
        ),
        -1,
        Failure("NotSupportedError", "25001"),
        "a schema change is a transaction of its own",
    ),
    "savepoint": Difference(
        _sql("RELEASE nope"),
        Failure("OperationalError", "3B001"),
        Failure("ProgrammingError", "3B001"),
        "the class is the same on every engine",
    ),
    "read_only": Difference(
        lambda c: (c.execute("SET TRANSACTION READ ONLY"), c.execute("DELETE FROM k")),
        Failure("InternalError", "25006"),
        Failure("OperationalError", "25006"),
        "the class is the same on every engine",
    ),
    "parameters": Difference(
        _sql("SELECT %s", "a"),
        Failure("TypeError"),
        Failure("ProgrammingError", "42000"),
        "PEP 249's classes only",
    ),
    "quoted_placeholder": Difference(
        _sql("SELECT '%s'", [1]),
        1,
        Failure("ProgrammingError", "42000"),
        "in a string it is no placeholder (P11)",
    ),
    "many_queries": Difference(
        lambda c: c.cursor().executemany("SELECT %s", [(1,)]),
        None,
        Failure("ProgrammingError", "42000"),
        "executemany() writes",
    ),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_differences(pair, name):
    """Differences are as the table says: one that is gone leaves the table."""
    known = DIFFERENCES[name]
    assert pair.both(known.body) == (known.psycopg, known.tique), known.reason
