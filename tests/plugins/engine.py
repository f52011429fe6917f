"""The ``engine`` fixture: a fresh database per test, on every engine there is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import tique
    from tique_backends.base import Capabilities


class Engine(ABC):
    """One test's database, open either through tique or natively, never both."""

    name: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._through_tique: list[Any] = []
        self._natively: list[Any] = []

    @property
    @abstractmethod
    def url(self) -> str:
        """The database's URL."""

    @property
    def capabilities(self) -> Capabilities:
        """What the backend says its engine can do."""
        return capabilities(self.name)

    def connect(self, **options: Any) -> tique.Connection:
        """Connect through tique; native connections are closed first."""
        import tique

        self._close(self._natively)
        connection = tique.connect(self.url, **options)
        self._through_tique.append(connection)
        return connection

    def native(self) -> Any:
        """Connect without tique; its connections are closed first."""
        self._close(self._through_tique)
        connection = self._connect_natively()
        self._natively.append(connection)
        return connection

    def close(self) -> None:
        """Close every connection that was handed out."""
        self._close(self._natively)
        self._close(self._through_tique)

    @abstractmethod
    def _connect_natively(self) -> Any: ...

    @staticmethod
    def _close(connections: list[Any]) -> None:
        while connections:
            connections.pop().close()


class DuckDB(Engine):
    """A DuckDB file in the test's own folder."""

    name = "duckdb"

    @property
    def path(self) -> Path:
        """The database's file."""
        return self._folder / "test.duckdb"

    @property
    def url(self) -> str:
        return f"duckdb:///{self.path}"

    def _connect_natively(self) -> Any:
        import duckdb

        return duckdb.connect(self.path)


ENGINES: tuple[type[Engine], ...] = (DuckDB,)


@cache
def capabilities(name: str) -> Capabilities:
    """The capability matrix's row for one engine."""
    from tique_backends import registry

    backend = registry.find(name)
    opened = backend.open_engine(backend.locate(":memory:", {}))
    try:
        return opened.capabilities
    finally:
        opened.close()


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.name)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """A fresh database; every connection to it is closed when the test ends."""
    opened: Engine = request.param(tmp_path)
    yield opened
    opened.close()
