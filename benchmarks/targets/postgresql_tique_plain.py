"""PostgreSQL through tique, without an extension of the server."""

from __future__ import annotations

from typing import ClassVar

from benchmarks.targets.postgresql_tique import TiquePostgreSQLTarget


class PlainTiquePostgreSQLTarget(TiquePostgreSQLTarget):
    """The same tables; the sequencer is plain SQL, which any server runs."""

    name: ClassVar[str] = "postgresql+tique-plain"
    sequencer: ClassVar[str] = "plain"


TARGET = PlainTiquePostgreSQLTarget
