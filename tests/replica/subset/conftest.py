from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import psycopg
import pytest

from tests.plugins.postgresql import private_cluster
from tests.replica.subset import world
from tique_rewriter.replica import parameter_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Both:
    """The same tables in PostgreSQL and in DuckDB, each asked natively."""

    def __init__(
        self, source: psycopg.Connection[Any], replica: duckdb.DuckDBPyConnection
    ) -> None:
        self.source, self.replica = source, replica

    def __call__(
        self, sql: str, values: Sequence[object] | None = None
    ) -> tuple[world.Answer, world.Answer]:
        """Return both answers: to the query, and to its translation."""
        kinds = None if values is None else [*map(parameter_type, values)]
        translation = world.translated(sql, kinds)
        is_ordered = "ORDER BY" in sql
        return (
            world.ask_postgresql(self.source, sql, values, is_ordered=is_ordered),
            world.ask_duckdb(self.replica, translation, values, is_ordered=is_ordered),
        )


@pytest.fixture(scope="session")
def servers() -> Iterator[Both]:
    with (
        private_cluster() as cluster,
        psycopg.connect(cluster.url, autocommit=True) as source,
        duckdb.connect() as replica,
    ):
        yield Both(source, replica)


@pytest.fixture(scope="session")
def both(servers: Both) -> Both:
    world.fill_postgresql(servers.source)
    world.fill_duckdb(servers.replica)
    return servers
