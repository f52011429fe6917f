"""A cluster of Citus for one round, with the workload's tables in it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from benchmarks.targets.citus_cluster import CitusCluster
from benchmarks.targets.postgresql_server import LoadedServer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import psycopg

    from benchmarks.targets.cluster import Cluster

_WORKERS = int(os.environ.get("TIQUE_CITUS_WORKERS", "2"))
_REFERENCE = ("item", "region", "nation", "supplier")

# Citus' defaults, and PostgreSQL's, in place of what tests want.
_SETTINGS = {
    "citus.shard_count": "32",
    "citus.recover_2pc_interval": "60s",
    "wal_level": "replica",
}


class LoadedCitus(LoadedServer):
    """A coordinator and workers, loaded from the workload's DuckDB file.

    A table is distributed by the first column of its primary key, which with TPC-C is its
    warehouse; all are co-located. ITEM and what CH-benCHmark adds are reference tables. A table
    without a key, TPC-C's HISTORY, is the coordinator's own: tique refuses it elsewhere.

    Parameters
    ----------
    path, distance, extension
        As for :class:`LoadedServer`; there is no distance.
    workers : int
        How many there are beside the coordinator; TIQUE_CITUS_WORKERS, or two.
    settings : mapping of str to str, optional
        Settings that differ, of all nodes.
    """

    shown = (*LoadedServer.shown, "citus.version", "citus.shard_count")

    def __init__(
        self,
        path: Path,
        distance: float = 0.0,
        *,
        extension: bool = False,
        workers: int = _WORKERS,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._workers = workers
        self._settings = {**_SETTINGS, **(settings or {})}
        super().__init__(path, distance, extension=extension)

    @override
    def _make(self, distance: float, *, extension: bool) -> Cluster:
        self._citus = CitusCluster(
            *(self._parent / "nodes", self._workers, self._settings),
            extension=extension,
        )
        return self._citus.coordinator

    @override
    def _start(self) -> None:
        self._citus.start()

    @property
    @override
    def nodes(self) -> Sequence[Cluster]:
        """The coordinator and the workers."""
        return self._citus.nodes

    @override
    def _place(
        self, connection: psycopg.Connection[Any], table: str, keys: Sequence[str]
    ) -> None:
        if table in _REFERENCE:
            connection.execute("SELECT create_reference_table(%s)", [table])
        elif keys:
            names = [table, keys[0].split(",")[0]]
            connection.execute("SELECT create_distributed_table(%s, %s)", names)

    @override
    def settings(self) -> dict[str, str]:
        """Return also how many workers there are."""
        return {**super().settings(), "workers": str(self._workers)}

    @override
    def sizes(self) -> dict[str, int]:
        """Return nothing: the coordinator has not all of it."""
        return {}

    @override
    def stop(self) -> None:
        """Stop all nodes and remove their data."""
        self._citus.stop()
        super().stop()
