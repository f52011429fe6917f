"""Citus by itself: transactions of REPEATABLE READ, in which each node has a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from benchmarks.targets.base import READ_COMMITTED, SNAPSHOT, Connection
from benchmarks.targets.citus_server import WORKERS, LoadedCitus
from benchmarks.targets.postgresql_native import PostgreSQLTarget

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.targets.postgresql_server import LoadedServer


class CitusTarget(PostgreSQLTarget):
    """A cluster whose coordinator is reached over its Unix socket."""

    name: ClassVar[str] = "citus"
    has_distance: ClassVar[bool] = False
    levels = (READ_COMMITTED, SNAPSHOT)

    workers: int = WORKERS
    """How many workers there are; set before `prepare`."""

    node_settings: Mapping[str, str] | None = None
    """Settings of all nodes that differ; set before `prepare`."""

    @override
    def prepare(self, path: Path) -> None:
        """Start a cluster with the file's tables."""
        self._server = LoadedCitus(path, self.workers, self.node_settings)
        self._url = self._server.url

    @property
    def server(self) -> LoadedServer:
        """The cluster that was prepared."""
        assert self._server is not None
        return self._server

    @override
    def compact(self, connection: Connection) -> None:
        """Run the checkpoints of all nodes."""
        connection.cursor().execute(
            "SELECT * FROM run_command_on_all_nodes('CHECKPOINT')"
        )
        connection.commit()


TARGET = CitusTarget
