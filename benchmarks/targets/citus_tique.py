"""Citus through tique, with the sequencer that is an extension of the coordinator."""

from __future__ import annotations

from typing import ClassVar

from benchmarks.targets.citus_server import LoadedCitus
from benchmarks.targets.postgresql_tique import TiquePostgreSQLTarget


class TiqueCitusTarget(TiquePostgreSQLTarget):
    """Tables that were loaded and distributed natively, and then adopted."""

    name: ClassVar[str] = "citus+tique"
    has_distance: ClassVar[bool] = False
    load = LoadedCitus


TARGET = TiqueCitusTarget
