"""A DuckDB file, in the process of the clients."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

import duckdb
from typing_extensions import override

from jepsen.systems.base import System, Unusable
from tique_udfs.duckdb import Prepared

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping
    from pathlib import Path

    from jepsen.faultpoints import FaultPoints

_AMID_SECONDS = 0.0005
_CALLS = frozenset({"execute", "insert_into"})
_WRAPPED = duckdb.DuckDBPyConnection | duckdb.DuckDBPyRelation


class DuckDB(System):
    """A file of the run's own, or one that is there."""

    is_embedded: ClassVar[bool] = True

    def __init__(self, url: str, folder: Path) -> None:
        if url == "duckdb:":
            url = f"duckdb:///{quote(str((folder / 'database.duckdb').absolute()))}"
        super().__init__(url, folder)

    @property
    @override
    def is_own(self) -> bool:
        """There is no server."""
        return False

    @override
    def start(self, environment: Mapping[str, str]) -> None:
        """There is nothing to start."""

    @override
    def crash(self, chance: random.Random) -> str:
        """Refused: there is no server."""
        raise Unusable("an embedded database has no server to kill")

    @override
    def stop(self) -> None:
        """There is nothing to stop."""

    @classmethod
    @override
    def instrument(cls, points: FaultPoints) -> None:
        """Put itself between the driver and the application, for this process."""
        genuine, append = duckdb.connect, Prepared.run

        def connect(*arguments: Any, **options: Any) -> Any:
            return _Watched(genuine(*arguments, **options), points)

        def run(prepared: Prepared, first: int, second: int, text: str) -> bool:
            with points.passing(_die):
                return append(prepared, first, second, text)

        duckdb.connect = connect
        Prepared.run = run  # type: ignore[assignment]


def _die(moment: str) -> None:
    """There is no connection to cut: the process dies."""
    if moment == "amid":
        threading.Timer(_AMID_SECONDS, os.kill, (os.getpid(), signal.SIGKILL)).start()
    else:
        os.kill(os.getpid(), signal.SIGKILL)


class _Watched:
    """A connection or relation whose calls pass fault points."""

    def __init__(self, target: Any, points: FaultPoints) -> None:
        self._target = target
        self._points = points

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not callable(value):
            return value

        def call(*arguments: Any, **options: Any) -> Any:
            if name in _CALLS:
                with self._points.passing(_die):
                    result = value(*arguments, **options)
            else:
                result = value(*arguments, **options)
            if isinstance(result, _WRAPPED):
                return _Watched(result, self._points)
            return result

        return call


SYSTEM = DuckDB
