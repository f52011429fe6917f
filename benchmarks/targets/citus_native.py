"""Citus by itself: transactions of REPEATABLE READ, in which each node has a snapshot."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from benchmarks.targets.base import READ_COMMITTED, SNAPSHOT, Connection
from benchmarks.targets.citus_server import LoadedCitus
from benchmarks.targets.postgresql_native import PostgreSQLTarget


class CitusTarget(PostgreSQLTarget):
    """A cluster whose coordinator is reached over its Unix socket."""

    name: ClassVar[str] = "citus"
    has_distance: ClassVar[bool] = False
    levels = (READ_COMMITTED, SNAPSHOT)
    load = LoadedCitus

    @override
    def compact(self, connection: Connection) -> None:
        """Run the checkpoints of all nodes."""
        connection.cursor().execute("SELECT run_command_on_all_nodes('CHECKPOINT')")
        connection.commit()


TARGET = CitusTarget
