"""The queries of CH-benCHmark run on a replica, with the source's results (P10, P12)."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

import tique
from benchmarks.ch.queries import QUERIES
from tests.plugins.engine import PostgreSQL
from tests.replica.subset.test_ch import TABLES, _rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.postgresql


@pytest.fixture
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A connection to the source, and one that may read from the replica."""
    source = PostgreSQL.fresh(request)
    target = f"duckdb:///{tmp_path / 'replica.duckdb'}"
    with closing(tique.connect(source.url)) as owner:
        for table in TABLES.values():
            columns = ", ".join(f"{c.name} {c.type}" for c in table.columns)
            # (A replica has no CHAR(n).)
            columns = columns.replace("pg_catalog.bpchar", "VARCHAR")
            owner.execute(f"CREATE TABLE {table.name} ({columns})")
            rows = [[row[c.name] for c in table.columns] for row in _rows(table.name)]
            places = ", ".join(["%s"] * len(table.columns))
            if rows:
                insert = f"INSERT INTO {table.name} VALUES ({places})"
                owner.cursor().executemany(insert, rows)
            owner.commit()
    options = {"autocommit": True, "replica": target, "on_stale": "wait"}
    with (
        tique.replicate(source.url, target),
        closing(tique.connect(source.url, **options)) as plain,
        closing(tique.connect(source.url, freshness=10, **options)) as routed,
    ):
        yield plain, routed
    source.close()


@pytest.mark.long_only
def test_every_query_runs_on_the_replica(pair: Any) -> None:
    plain, routed = pair
    refused = {}
    for number, (name, query) in enumerate(QUERIES.items(), 1):
        expected, found = plain.execute(query), routed.execute(query)
        if routed._execution.router.routed != number - len(refused):
            refused[name] = dict(routed.execute(f"EXPLAIN {query}"))["replica"]
            continue
        assert found.description == expected.description, name
        assert sorted(map(repr, found)) == sorted(map(repr, expected)), name
    assert not refused
