"""The same query through tique and through the bare engine (P1, P8, P10)."""

from __future__ import annotations

import re

import pytest

from tests.differential import world
from tests.differential.generator import queries

HAND_WRITTEN = list(world.statements("queries.sql"))
REFUSED = {
    # Its parser takes no subquery right after the bracket of a join.
    "monetdb": {
        "SELECT * FROM (item i JOIN sale s ON i.id = s.item) WHERE quantity > 4"
    },
    # A table's name as a value, which is a row; and a number in a form that has been
    # one from release 16 on.
    "postgresql": {
        "SELECT 1_000 + count(*) FROM item",
        "SELECT item FROM item WHERE id = 3",
        "SELECT s FROM sale AS s WHERE s.item = 3",
    },
}
"""Queries that the engine can run and tique cannot."""
GENERATED = list(queries(seed=20230801, count=100))
_ORDERED = re.compile(r"ORDER BY [^()]*$", re.IGNORECASE)

_expected: dict[tuple[object, str], tuple[str, object]] = {}


def outcome(connection, sql):
    """A query's result: its exact names and its rows, or the kind of its error."""
    try:
        cursor = connection.execute(sql)
        rows = cursor.fetchall()
    except Exception as error:
        return "error", world.category(error)
    # pymonetdb leaves a name's quotes and escapes.
    names = [column[0].replace("\\", "").strip('"') for column in cursor.description]
    ordered = _ORDERED.search(sql) is not None
    return "rows", (names, world.compared(rows, ordered=ordered))


def expected(native, sql):
    if (native, sql) not in _expected:
        _expected[native, sql] = outcome(native, sql)
    return _expected[native, sql]


def test_the_worlds_are_the_same(native, through_tique):
    assert world.content(through_tique) == world.content(native)


@pytest.mark.parametrize("sql", HAND_WRITTEN, ids=lambda sql: sql[:50])
def test_hand_written_query(lasting, native, through_tique, sql):
    allowed = [expected(native, sql)]
    if sql in REFUSED.get(lasting.name, ()):
        allowed += [
            ("error", kind) for kind in ("ProgrammingError", "NotSupportedError")
        ]
    assert outcome(through_tique, sql) in allowed


@pytest.mark.slow
def test_generated_queries(native, through_tique):
    failed = {
        sql: (found, wanted)
        for sql in GENERATED
        if (found := outcome(through_tique, sql)) != (wanted := expected(native, sql))
    }
    assert not failed
