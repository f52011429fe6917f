"""MonetDB through tique, from one process or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

import tique
from benchmarks.targets.base import LOCKING, OPTIMISTIC
from benchmarks.targets.duckdb_tique import TiqueDuckDBTarget
from benchmarks.targets.monetdb_server import LoadedServer

if TYPE_CHECKING:
    from pathlib import Path


class TiqueMonetDBTarget(TiqueDuckDBTarget):
    """Tables that were loaded natively and then adopted."""

    name: ClassVar[str] = "monetdb+tique"
    is_server: ClassVar[bool] = True
    protocols = (OPTIMISTIC, LOCKING)

    def __init__(self, checkpoint: str | None = None) -> None:
        super().__init__(checkpoint)
        self._server: LoadedServer | None = None

    @override
    def prepare(self, path: Path) -> None:
        """Start a server with the file's tables, and adopt them."""
        self._server = LoadedServer(path)
        self._url = self._server.url
        tique.adopt(self._url)

    @override
    def address(self) -> str:
        """Return the server's URL."""
        return self._url

    @override
    def attach(self, address: str) -> None:
        """Use another process's server."""
        self._url = address
        self._observe()

    @override
    def close(self) -> None:
        """Close the last connection, and stop the server if it is this process's."""
        super().close()
        if self._server is not None:
            self._server.stop()


TARGET = TiqueMonetDBTarget
