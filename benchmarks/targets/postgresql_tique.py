"""PostgreSQL through tique, with the sequencer that is an extension of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

import tique
from benchmarks.targets.base import LOCKING, OPTIMISTIC
from benchmarks.targets.duckdb_tique import TiqueDuckDBTarget
from benchmarks.targets.postgresql_server import LoadedServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class TiquePostgreSQLTarget(TiqueDuckDBTarget):
    """Tables that were loaded natively and then adopted."""

    name: ClassVar[str] = "postgresql+tique"
    is_server: ClassVar[bool] = True
    has_distance: ClassVar[bool] = True
    protocols = (OPTIMISTIC, LOCKING)

    sequencer: ClassVar[str] = "extension"
    """The URL's option for the form of the sequencer."""

    load: Callable[..., LoadedServer] = LoadedServer
    """Starts a server with a file's tables."""

    def __init__(self, checkpoint: str | None = None) -> None:
        super().__init__(checkpoint)
        self._server: LoadedServer | None = None

    @override
    def prepare(self, path: Path) -> None:
        """Start a server with the file's tables, and adopt them."""
        self._server = self.load(
            path, self.distance, extension=self.sequencer == "extension"
        )
        self._url = f"{self._server.url}&sequencer={self.sequencer}"
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

    @property
    def server(self) -> LoadedServer:
        """The server that was prepared."""
        assert self._server is not None
        return self._server

    @override
    def settings(self) -> dict[str, str]:
        """Return the server's version and settings."""
        return self._server.settings() if self._server else {}

    @override
    def sizes(self) -> dict[str, int]:
        """Return the sizes of the tables and of tique's own beside them."""
        return self._server.sizes() if self._server else {}

    @override
    def close(self) -> None:
        """Close the last connection, and stop the server if it is this process's."""
        super().close()
        if self._server is not None:
            self._server.stop()


TARGET = TiquePostgreSQLTarget
