"""MonetDB through tique, which this process owns it for."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import tique
from benchmarks.targets.duckdb_tique import TiqueDuckDBTarget
from benchmarks.targets.monetdb_server import LoadedServer

if TYPE_CHECKING:
    from pathlib import Path


class TiqueMonetDBTarget(TiqueDuckDBTarget):
    """Tables that were loaded natively and then adopted."""

    name: ClassVar[str] = "monetdb+tique"

    def prepare(self, path: Path) -> None:
        """Start a server with the file's tables, and adopt them."""
        self._server = LoadedServer(path)
        self._url = self._server.url
        tique.adopt(self._url)
        self._observe()

    def close(self) -> None:
        """Close the last connection and stop the server."""
        super().close()
        self._server.stop()


TARGET = TiqueMonetDBTarget
