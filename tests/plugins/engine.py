"""The ``engine`` fixture: a fresh database per test, on every engine there is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Self

import duckdb
import psycopg
import pymonetdb
import pytest

from tests.plugins.monetdb import (
    begin_anew,
    connect_natively,
    empty,
    is_damaged,
)
from tests.plugins.postgresql import empty as empty_postgresql
from tests.plugins.postgresql import private_cluster
from tique_backends.monetdb.server import MonetDBServer
from tique_backends.postgresql.sessions.connection import tolerate

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import ModuleType

    import tique
    from benchmarks.targets.cluster import Cluster


class Engine(ABC):
    """One test's database, open either through tique or natively, never both."""

    name: ClassVar[str]
    variant: ClassVar[str] = ""
    """The difference between two of them that are one engine."""
    text: ClassVar[str]
    """The engine's name of a TEXT column's type."""
    schema: ClassVar[str]
    """Where a table is created that names no schema."""
    driver: ClassVar[ModuleType]
    """The module whose connections bring every call to the engine."""
    schemas: ClassVar[str]
    """The query for the names of all schemas."""
    coin: ClassVar[str]
    """A condition that is true for every other row, or so."""
    tables: ClassVar[str]
    """The query for the names of the application's tables."""
    cache_append: ClassVar[str]
    """The beginning of a call that appends versions to a cache table."""
    commit_call: ClassVar[str] = "INSERT INTO tique.log"
    """The beginning of the call that makes a commit's record."""
    money: ClassVar[str] = "DECIMAL(8,2)"
    """The engine's name of that type."""
    longest_name: ClassVar[int | None] = None
    """Bytes of a name, if there is a limit that a test can reach."""
    generated: ClassVar[str] = "VIRTUAL"
    """The kind of generated columns that it has."""
    binary: ClassVar[str] = "BLOB"
    """The type of bytes."""
    huge: ClassVar[str] = "HUGEINT"
    """A type of integers of more than 64 bits."""
    random_uuid: ClassVar[str] = "uuid()"
    """A volatile function."""
    hashed: ClassVar[str] = "hash({})"
    """A number that depends on a column of any type."""
    settles_commits: ClassVar[bool] = False
    """Whether a small commit is the server's own, over and visible when it is done."""
    questions: ClassVar[int] = 1
    """How often an outcome is asked for when :meth:`failure` is the answer."""
    locks_altered_tables: ClassVar[bool] = False
    """Whether nobody reads a table that an open transaction has altered."""
    leaving_aborts: ClassVar[bool] = False
    """Whether a commit in doubt is aborted when its process leaves the others."""
    format_before: ClassVar[tuple[str, ...]] = ()
    """Statements that give tique's schema the shape that it had in the format before."""
    # Its features: MonetDB's row of this matrix names those that it lacks.
    has_checks: ClassVar[bool] = True
    holds_nul: ClassVar[bool] = True
    has_infinity: ClassVar[bool] = True
    lacks: ClassVar[tuple[type, ...]] = ()
    """Python's types that it has no column for, but JSON."""
    names_begin_with_percent: ClassVar[bool] = True

    def __init__(self) -> None:
        self._through_tique: list[Any] = []
        self._natively: list[Any] = []
        self._keeper: Any = None
        self._options: dict[str, Any] = {}
        self.is_kept = False
        """Whether a connection keeps the database open between connections."""

    @classmethod
    @abstractmethod
    def fresh(cls, request: pytest.FixtureRequest) -> Self:
        """An empty database for one test."""

    @classmethod
    def reusable(cls, request: pytest.FixtureRequest) -> Self:
        """An empty database for several tests, one after the other."""
        return cls.fresh(request)

    @classmethod
    @abstractmethod
    def lasting(cls, folders: pytest.TempPathFactory) -> AbstractContextManager[Self]:
        """A database of its own, for many tests."""

    @property
    @abstractmethod
    def url(self) -> str:
        """The database's URL."""

    def literal(self, text: str) -> str:
        """A string literal for a text."""
        return "'" + text.replace("'", "''") + "'"

    def check(self, condition: str) -> str:
        """A CHECK constraint in CREATE TABLE, where the engine has that."""
        return f"CHECK ({condition})" if self.has_checks else ""

    def connect(self, **options: Any) -> tique.Connection:
        """Connect through tique; native connections are closed first."""
        import tique

        self._close(self._natively)
        if options != self._options:
            self.let_go()
        connection = tique.connect(self.url, **options)
        self._through_tique.append(connection)
        if self.is_kept and self._keeper is None:
            self._keeper = tique.connect(self.url, **options)
            self._options = options
        return connection

    def native(self) -> Any:
        """Connect without tique; its connections are closed first."""
        self._close(self._through_tique)
        self.let_go()
        connection = self._connect_natively()
        self._natively.append(connection)
        return connection

    def close(self) -> None:
        """Close every connection that was handed out."""
        self._close(self._natively)
        self._close(self._through_tique)

    def let_go(self) -> None:
        """Keep the database open no longer."""
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None

    def drop_tables(self) -> bool:
        """Drop the tables that a test has made; False if that is not all it has done."""
        self.close()
        if self._keeper is None:
            return False
        for table in list(self._keeper._database.catalog):
            self._keeper.execute(
                f"DROP TABLE {_quoted(table.schema)}.{_quoted(table.name)} CASCADE"
            )
        self._keeper.commit()
        return True

    @abstractmethod
    def begin_again(self) -> None:
        """Close every connection and empty the database."""

    def files(self) -> dict[Path, bytes]:
        """The database, where it is files that a copy of can be put there; closed."""
        return {}

    def restart(self) -> None:
        """Close every connection; the next one finds an engine that has crashed."""
        self.close()
        self.let_go()

    def end_sessions(self, chance: random.Random, count: int) -> int:
        """End so many sessions of the server, of any client; how many it has ended."""
        return 0

    @abstractmethod
    def _connect_natively(self) -> Any: ...

    def failure(self) -> Exception:
        """The driver's error when the engine could not do something."""
        return self.driver.OperationalError("the disk went away")

    @abstractmethod
    def interruption(self) -> Exception:
        """The driver's error when a statement was stopped."""

    @staticmethod
    def _close(connections: list[Any]) -> None:
        while connections:
            connections.pop().close()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class DuckDB(Engine):
    """A DuckDB file in the test's own folder."""

    name = "duckdb"
    text = "VARCHAR"
    schema = "main"
    driver = duckdb
    schemas = "SELECT schema_name FROM duckdb_schemas()"
    tables = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'"
    coin = "random() < 0.5"
    cache_append = "insert_into"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    @classmethod
    def fresh(cls, request: pytest.FixtureRequest) -> Self:
        return cls(request.getfixturevalue("tmp_path"))

    @classmethod
    def reusable(cls, request: pytest.FixtureRequest) -> Self:
        folders: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
        return cls(folders.mktemp("reusable"))

    @classmethod
    @contextmanager
    def lasting(cls, folders: pytest.TempPathFactory) -> Iterator[Self]:
        opened = cls(folders.mktemp("lasting"))
        yield opened
        opened.close()

    @property
    def path(self) -> Path:
        """The database's file."""
        return self._folder / "test.duckdb"

    @property
    def url(self) -> str:
        return f"duckdb:///{self.path}"

    def begin_again(self) -> None:
        self.close()
        for file in self._folder.glob(f"{self.path.name}*"):
            file.unlink()

    def files(self) -> dict[Path, bytes]:
        found = self._folder.glob(f"{self.path.name}*")
        return {file: file.read_bytes() for file in found}

    def _connect_natively(self) -> Any:
        return duckdb.connect(self.path)

    def interruption(self) -> Exception:
        return duckdb.InterruptException("Interrupted!")


class NativeMonetDB:
    """pymonetdb with the shortcut that duckdb's connections have."""

    def __init__(self, url: str) -> None:
        self._connection = connect_natively(url)

    def execute(self, sql: str, parameters: Any = None) -> Any:
        cursor = self._connection.cursor()
        cursor.execute(sql, parameters)
        return cursor

    def close(self) -> None:
        with suppress(pymonetdb.Error):
            self._connection.close()


class MonetDB(Engine):
    """The test run's server, emptied before each test."""

    name = "monetdb"
    text = "CLOB"
    schema = "sys"
    driver = pymonetdb
    schemas = "SELECT name FROM sys.schemas"
    tables = (
        "SELECT t.name FROM sys.tables AS t JOIN sys.schemas AS s ON s.id = t.schema_id "
        "WHERE s.name = 'sys' AND NOT t.system"
    )
    coin = "rand() < 1073741824"
    cache_append = 'INSERT INTO tique."'
    leaving_aborts = True
    has_checks = False
    holds_nul = False
    has_infinity = False
    lacks = (list, dict, timedelta)
    names_begin_with_percent = False

    def __init__(self, server: MonetDBServer) -> None:
        super().__init__()
        self._server = server

    @classmethod
    def fresh(cls, request: pytest.FixtureRequest) -> Self:
        return cls.emptied(request.getfixturevalue("monetdb_server"))

    @classmethod
    @contextmanager
    def lasting(cls, folders: pytest.TempPathFactory) -> Iterator[Self]:
        with MonetDBServer(folders.mktemp("lasting") / "server") as server:
            opened = cls(server)
            yield opened
            opened.close()

    @classmethod
    def emptied(cls, server: MonetDBServer) -> Self:
        """The database of a server, empty."""
        engine = cls(server)
        engine.begin_again()
        return engine

    def begin_again(self) -> None:
        self.close()
        empty(self.url)

    def restart(self) -> None:
        super().restart()
        self._server.kill()
        self._server.start()
        if is_damaged(self.url):
            begin_anew(self._server)
            pytest.xfail("MonetDB has lost its catalog when it was killed (its README)")

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def place(self) -> str:
        """The URL or path by which another process opens the database."""
        return self.url

    def literal(self, text: str) -> str:
        """Without escapes."""
        return "R" + super().literal(text)

    def _connect_natively(self) -> Any:
        return NativeMonetDB(self.url)

    def interruption(self) -> Exception:
        return pymonetdb.OperationalError("HYT00!Query aborted due to timeout")


class PostgreSQL(Engine):
    """A database of the test run's server, emptied before each test."""

    name = "postgresql"
    locks_altered_tables = True
    sequencer: ClassVar[str] = "extension"
    text = "TEXT"
    schema = "public"
    driver = psycopg
    schemas = "SELECT nspname FROM pg_namespace"
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    coin = "random() < 0.5"
    cache_append = 'COPY tique."'
    commit_call = "SELECT stamps"
    money = "NUMERIC(8,2)"
    longest_name = 63
    generated = "STORED"
    binary = "BYTEA"
    huge = "NUMERIC(39,0)"
    random_uuid = "gen_random_uuid()"
    hashed = "hashtext(CAST({} AS TEXT))"
    settles_commits = True
    format_before = (
        "DROP TABLE tique.clients",
        "CREATE TABLE tique.clients (client BIGINT PRIMARY KEY, epoch BIGINT NOT NULL, "
        "mark INTEGER NOT NULL, role NAME NOT NULL DEFAULT session_user)",
        "ALTER TABLE tique.fences DROP COLUMN settled, DROP COLUMN is_swept",
        "DROP FUNCTION tique.guest_sweep, tique.guest_forget",
    )
    # Its failure looks like a connection that was lost: another one may serve.
    questions = 3
    holds_nul = False
    lacks = (dict,)

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster

    @classmethod
    def fresh(cls, request: pytest.FixtureRequest) -> Self:
        engine = cls(request.getfixturevalue("postgresql_cluster"))
        engine.begin_again()
        return engine

    @classmethod
    @contextmanager
    def lasting(cls, folders: pytest.TempPathFactory) -> Iterator[Self]:
        with private_cluster() as cluster:
            opened = cls(cluster)
            yield opened
            opened.close()

    @property
    def url(self) -> str:
        return f"{self._cluster.socket_url}&sequencer={self.sequencer}"

    @property
    def place(self) -> str:
        """The URL or path by which another process opens the database."""
        return self._cluster.socket_url

    def begin_again(self) -> None:
        self.close()
        empty_postgresql(self._cluster.socket_url)

    def restart(self) -> None:
        super().restart()
        self._cluster.kill()
        self._cluster.start()

    def end_sessions(self, chance: random.Random, count: int) -> int:
        with closing(self._connect_natively()) as connection:
            there = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
                "AND backend_type = 'client backend' AND pid <> pg_backend_pid() "
                "ORDER BY pid"
            ).fetchall()
            ended = [
                connection.execute("SELECT pg_terminate_backend(%s)", pid).fetchone()
                for pid in chance.sample(there, min(count, len(there)))
            ]
        return ended.count((True,))

    def _connect_natively(self) -> Any:
        connection = psycopg.connect(self._cluster.socket_url, autocommit=True)
        # psycopg refuses to show an infinite date.
        tolerate(connection)
        return connection

    def interruption(self) -> Exception:
        return psycopg.errors.QueryCanceled("canceling statement due to user request")


class PlainPostgreSQL(PostgreSQL):
    """The same, with the sequencer that needs no extension of the server."""

    sequencer = variant = "plain"


ENGINES: tuple[type[Engine], ...] = (DuckDB, MonetDB, PostgreSQL, PlainPostgreSQL)


def label(engine: type[Engine]) -> str:
    """Its name in tests."""
    return "-".join(filter(None, (engine.name, engine.variant)))


FRESH_TABLES = "fresh_tables"
"""The mark of modules that do with fresh tables in a database that was used before."""

_reused: dict[str, Engine] = {}
"""The databases that stay open between the tests of a module, by the engine's name."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{FRESH_TABLES}: (of a module) needs fresh tables only, in a database that "
        "stays open from test to test",
    )


@pytest.fixture(scope="module")
def _reuse() -> Iterator[None]:
    """Let databases stay open until the module ends."""
    yield
    for name in list(_reused):
        _end_reuse(name)


def _end_reuse(name: str) -> None:
    opened = _reused.pop(name, None)
    if opened is not None:
        opened.close()
        opened.let_go()


@contextmanager
def _opened(kind: type[Engine], request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.node.get_closest_marker(FRESH_TABLES) is None:
        opened = kind.fresh(request)
        yield opened
        opened.close()
        return
    request.getfixturevalue("_reuse")
    if type(_reused.get(kind.name)) is not kind:
        # A server has one database for both of its engines.
        _end_reuse(kind.name)
        _reused[kind.name] = kind.reusable(request)
        _reused[kind.name].is_kept = True
    opened = _reused[kind.name]
    is_as_before = False
    try:
        yield opened
        is_as_before = opened.drop_tables()
    finally:
        if not is_as_before:
            _end_reuse(kind.name)


@pytest.fixture(params=ENGINES, ids=label)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """A fresh database, or fresh tables; every connection is closed when the test ends."""
    with _opened(request.param, request) as opened:
        yield opened


@pytest.fixture(params=ENGINES[1:], ids=label)
def shared_engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """A fresh database that several processes may use."""
    with _opened(request.param, request) as opened:
        yield opened
