"""The subset means the same in DuckDB as in PostgreSQL, for every entry (P10).

The tables hold NULL, extremes, infinity, halves, blanks and letters of several bytes. What
PostgreSQL calls an error is one in DuckDB. An entry with ``--?`` may be an error in DuckDB
alone, for values in the tables that are not the same there: the source has to be asked.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from tests.effort import effort
from tests.replica.subset import entries, queries, world
from tique_rewriter import Rewriter
from tique_rewriter.replica import Refusal, parameter_type

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.duckdb
ENTRIES = entries.read()
TRANSLATED = [entry for entry in ENTRIES if entry.mark != entries.REFUSED]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.sql[:60])
def test_becomes(entry):
    assert entry.now() == entry


@pytest.mark.parametrize("entry", TRANSLATED, ids=lambda entry: entry.sql[:60])
def test_means_the_same(entry, both):
    wanted, found = both(entry.sql)
    if found.rows is None and entry.mark == entries.ASKS:
        return
    assert found.rows == wanted.rows, (found.error, wanted.error)


@pytest.mark.slow
def test_replicas_rewriter_takes_them():
    rewriter = Rewriter(world.Replica(), "duckdb")
    for entry in TRANSLATED:
        rewriter.plan_body(world.translated(entry.sql).sql)


PARAMETERS: list[tuple[str, Sequence[object]]] = [
    ("SELECT id FROM numbers WHERE i = %s ORDER BY id", [5]),
    (
        "SELECT id, i + %s AS a, i / %s AS b FROM numbers WHERE i < %s ORDER BY id",
        [1, 2, 100],
    ),
    ("SELECT id, s + %s AS a FROM numbers WHERE s < 100 ORDER BY id", [40000]),
    ("SELECT id, i + %s AS a FROM numbers WHERE i < 100 ORDER BY id", [2**40]),
    (
        "SELECT id, n * %s AS a, n > %s AS b FROM numbers ORDER BY id",
        [Decimal("1.50"), Decimal("-2")],
    ),
    ("SELECT id FROM numbers WHERE d > %s ORDER BY id", [0.25]),
    (
        "SELECT id FROM numbers WHERE f = %s OR f IS NOT DISTINCT FROM %s ORDER BY id",
        [True, None],
    ),
    ("SELECT id, coalesce(i, %s) AS a FROM numbers ORDER BY id", [None]),
    (
        "SELECT id FROM texts WHERE t = %s OR c = %s OR t LIKE %s ORDER BY id",
        ["a", "ab", "a%"],
    ),
    ("SELECT id, t || %s AS a, %s AS b FROM texts ORDER BY id", ["é'", "x"]),
    ("SELECT id FROM texts WHERE t LIKE %s ORDER BY id", ["a\\"]),
    (
        "SELECT id FROM moments WHERE d > %s AND ts < %s ORDER BY id",
        [datetime.date(2020, 1, 1), datetime.datetime(2024, 1, 1, 12)],
    ),
    (
        "SELECT id FROM moments WHERE tz < %s AND t > %s ORDER BY id",
        [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), datetime.time(12)],
    ),
    ("SELECT id FROM others WHERE u = %s OR y = %s ORDER BY id", [UUID(int=0), b"abc"]),
    ("SELECT id FROM numbers ORDER BY id LIMIT %s OFFSET %s", [2, 1]),
    ("SELECT id FROM numbers ORDER BY id LIMIT %s", [-1]),
    ("SELECT id FROM numbers WHERE i IN (%s, %s) ORDER BY id", [5, 7]),
]


@pytest.mark.parametrize(("sql", "values"), PARAMETERS, ids=lambda each: str(each)[:40])
def test_parameters(sql, values, both):
    wanted, found = both(sql, values)
    assert found.rows == wanted.rows, (found.error, wanted.error)


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT id FROM numbers WHERE i = %s", ["5"]),
        ("SELECT id FROM moments WHERE d = %s", ["2024-02-29"]),
        ("SELECT id FROM numbers WHERE i = %s", [2**63]),
        ("SELECT id FROM numbers WHERE n = %s", [Decimal("NaN")]),
        ("SELECT id FROM moments WHERE ts + %s > ts", [datetime.timedelta(days=1)]),
    ],
    ids=str,
)
def test_refused_parameters(sql, values):
    with pytest.raises(Refusal):
        world.translated(sql, [*map(parameter_type, values)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(effort(10, 1000)))
def test_random_queries(seed, both):
    for sql in queries.some(seed, 40):
        try:
            world.translated(sql)
        except Refusal:
            continue
        wanted, found = both(sql)
        # (The source is asked first whether it takes a statement at all.)
        if None not in (found.rows, wanted.rows):
            assert found.rows == wanted.rows, sql
