"""A coordinator and workers of Citus, of the run's own."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

import psycopg
from psycopg import sql
from typing_extensions import override

import tique
from benchmarks.targets.citus_cluster import CitusCluster, is_installed
from jepsen.systems.base import Unusable
from jepsen.systems.postgresql import PostgreSQL
from jepsen.workloads.bank import Bank
from jepsen.workloads.list_append import ListAppend

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.targets.cluster import Cluster
    from jepsen.workloads.base import Workload

_LONGEST = 1.5
"""Seconds that a killed server is away at most, besides its recovery."""

_AMID = 0.7
_PATIENCE = 1.0
"""Seconds in which a distributed commit comes, or else the kill is between two."""
_PAUSE = 0.001

_KEYED = (
    "SELECT n.nspname, c.relname, a.attname FROM pg_index AS i "
    "JOIN pg_class AS c ON c.oid = i.indrelid JOIN pg_namespace AS n ON n.oid = relnamespace "
    "JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] "
    "WHERE i.indisprimary AND n.nspname = current_schema() AND NOT EXISTS "
    "(SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'e') ORDER BY c.relname"
)


class Citus(PostgreSQL):
    """A coordinator with tique's extension, and two workers, which have the workload's rows.

    ``citus:?sequencer=plain`` is one without tique's extension. There is no URL of an
    existing one: tables are distributed before tique manages them.
    """

    workloads: ClassVar[tuple[type[Workload], ...]] = (Bank, ListAppend)
    _scheme = "citus:"

    def __init__(self, url: str, folder: Path) -> None:
        if url.partition("?")[0] != self._scheme:
            raise Unusable("a system of Citus is the run's own: give citus: alone")
        if not is_installed():
            raise Unusable("the server has no Citus (make citus builds it)")
        super().__init__(url, folder)

    @override
    def _prepare(self, folder: Path, *, extension: bool) -> Cluster:
        self._servers = CitusCluster(folder, extension=extension)
        return self._servers.coordinator

    @property
    def _nodes(self) -> Mapping[str, Cluster]:
        return {node.folder.name: node for node in self._servers.nodes}

    @override
    def _begin(self) -> None:
        self._serve(self._servers.start)

    @override
    def create(self, workload: type[Workload]) -> None:
        """Make the tables, and distribute them by the first columns of their keys.

        tique does not distribute tables that it manages: it lets go of them before that.
        """
        super().create(workload)
        tique.detach(self.url)
        with psycopg.connect(self._servers.url, autocommit=True) as connection:
            for schema, name, column in connection.execute(_KEYED).fetchall():
                table = sql.Identifier(schema, name).as_string()
                connection.execute(
                    "SELECT create_distributed_table(%s, %s)", [table, column]
                )
        tique.adopt(self.url)

    @override
    def crash(self, chance: random.Random) -> str:
        """SIGKILL one session of the coordinator or a worker, or all of that server.

        Mostly it is amid a distributed commit, when a worker has prepared its part.
        """
        name = chance.choice(list(self._nodes))
        node = self._nodes[name]
        watched = chance.choice(self._servers.workers)
        if node is not self._servers.coordinator:
            watched = node
        is_amid = chance.random() < _AMID and _await_prepared(watched)
        killed = self._crash(node, chance, chance.uniform(0, _LONGEST))
        return f"{name}: {killed}" + ", amid a commit" * is_amid

    @override
    def stop(self) -> None:
        """Stop all servers, keep their logs, and remove their data."""
        self._end(self._nodes)


def _await_prepared(worker: Cluster) -> bool:
    """Whether a worker comes to have a transaction prepared."""
    deadline = time.monotonic() + _PATIENCE
    with (
        suppress(psycopg.OperationalError),
        psycopg.connect(worker.socket_url, autocommit=True) as connection,
    ):
        while time.monotonic() < deadline:
            if connection.execute("SELECT FROM pg_prepared_xacts").fetchall():
                return True
            time.sleep(_PAUSE)
    return False


SYSTEM = Citus
