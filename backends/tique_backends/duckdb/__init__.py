"""DuckDB: one process owns the file, many threads use it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tique_backends.duckdb.engine import DuckDBEngine
from tique_backends.location import Location

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tique_backends.engine import Engine
    from tique_backends.location import Server

__all__ = ["DuckDBEngine", "locate", "open_engine"]


def locate(
    path: str, options: Mapping[str, str], server: Server | None = None
) -> Location:
    """Parse a URL to the file that it names; ``:memory:`` or nothing means none.

    There is no ``server``: DuckDB's URLs cannot have one.
    """
    if path in ("", ":memory:"):
        return Location(":memory:", None, dict(options))
    absolute = os.path.realpath(path)
    return Location(absolute, absolute, dict(options))


def open_engine(location: Location) -> Engine:
    """Open the database, creating the file if it is not there.

    Raises
    ------
    EngineError
        LOCKED if another process has it open, OPERATIONAL if it is no database.
    """
    return DuckDBEngine(location)
