"""Citus through tique, with the sequencer that is an extension of the coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

import tique
from benchmarks.targets.citus_server import WORKERS, LoadedCitus
from benchmarks.targets.postgresql_tique import TiquePostgreSQLTarget

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class TiqueCitusTarget(TiquePostgreSQLTarget):
    """Tables that were loaded and distributed natively, and then adopted."""

    name: ClassVar[str] = "citus+tique"
    has_distance: ClassVar[bool] = False

    workers: int = WORKERS
    """How many workers there are; set before `prepare`."""

    node_settings: Mapping[str, str] | None = None
    """Settings of all nodes that differ; set before `prepare`."""

    @override
    def prepare(self, path: Path) -> None:
        """Start a cluster with the file's tables, and adopt them."""
        self._server = LoadedCitus(
            path, self.workers, self.node_settings, extension=True
        )
        self._url = self._server.url
        tique.adopt(self._url)


TARGET = TiqueCitusTarget
