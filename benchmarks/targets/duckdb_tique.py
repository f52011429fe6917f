"""DuckDB through tique, embedded in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from typing_extensions import override

import tique
from benchmarks.targets.base import (
    OPTIMISTIC,
    PROTOCOLS,
    READ_COMMITTED,
    SERIALIZABLE,
    SNAPSHOT,
    Connection,
    ParameterStyle,
    Target,
)

if TYPE_CHECKING:
    from pathlib import Path


def database_url(path: Path) -> str:
    """Return tique's URL of a DuckDB file."""
    return f"duckdb:///{quote(str(path.absolute()))}"


class TiqueDuckDBTarget(Target):
    """Tables that were loaded natively and then adopted, which moves no row.

    Parameters
    ----------
    checkpoint : str, optional
        The checkpoint option of `tique.connect`; its own default otherwise.
    """

    name: ClassVar[str] = "duckdb+tique"
    parameter_style: ClassVar[ParameterStyle] = "pyformat"
    levels = (READ_COMMITTED, SNAPSHOT, SERIALIZABLE)
    protocols: ClassVar[tuple[str, ...]] = PROTOCOLS
    conflicts = (tique.errors.SerializationError,)

    def __init__(self, checkpoint: str | None = None) -> None:
        self._options: dict[str, Any] = {}
        if checkpoint is not None:
            self._options["checkpoint"] = checkpoint
        self._url = ""
        self._observer: tique.Connection | None = None
        self._first_count = 0

    @override
    def prepare(self, path: Path) -> None:
        """Adopt the file's tables, if there is a file, and keep the database open."""
        self._url = database_url(path)
        if path.exists():
            tique.adopt(self._url)
        self._observe()

    def _observe(self) -> None:
        if self.history is not None:
            self._options["history"] = self.history
        if self.protocol not in (None, OPTIMISTIC):
            self._options["concurrency"] = self.protocol
        self._observer = tique.connect(self._url, **self._options)
        self._first_count = self._observer.info.engine_statements

    @override
    def connect(self, *, autocommit: bool = False) -> Connection:
        """Return a connection; those of one process share the database."""
        if self._observer is None:
            self._observe()
        return tique.connect(
            self._url,
            autocommit=autocommit,
            isolation_level=self.level,
            **self._options,
        )

    @override
    def leave(self) -> None:
        """Close the connection that keeps the database open."""
        if self._observer is not None:
            self._observer.close()
            self._observer = None

    @override
    def engine_statements(self) -> int:
        """Return the number of the engine's statements, tique's own included."""
        if self._observer is None:
            return 0
        return self._observer.info.engine_statements - self._first_count

    @override
    def close(self) -> None:
        """Close the last connection."""
        self.leave()


TARGET = TiqueDuckDBTarget
