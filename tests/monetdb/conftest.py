"""An empty database per test on the run's shared server, and processes that share it."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.plugins.monetdb import connect_natively, empty
from tests.sharing.playing import Process
from tique_backends.errors import EngineError
from tique_backends.location import Server
from tique_backends.monetdb import backend as monetdb

if TYPE_CHECKING:
    from tique_rewriter.schema import Table


class Home:
    """The server's one database, with nothing in it; engines and sessions on it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._opened: list[Any] = []
        empty(url)
        with closing(connect_natively(url)) as connection:
            cursor = connection.cursor()
            cursor.execute("CREATE SCHEMA app")

    @property
    def location(self):
        parts = urlsplit(self.url)
        server = Server(parts.hostname, parts.port, parts.username, parts.password)
        return monetdb.locate(parts.path.removeprefix("/"), {}, server)

    def open(self, *, install: bool = True):
        """Open the database as an engine, with tique's schema in it."""
        engine = monetdb.open_engine(self.location)
        self._opened.append(engine)
        if install and not engine.is_managed():
            session = engine.session()
            try:
                engine.install(session)
            finally:
                session.close()
        return engine

    def session(self, engine):
        """A session that is closed when the test ends."""
        session = engine.session()
        self._opened.append(session)
        return session

    def native(self):
        """A connection without tique, closed when the test ends."""
        connection = connect_natively(self.url)
        self._opened.append(connection)
        return connection

    def close(self) -> None:
        while self._opened:
            # Some tests close their own connections, and pymonetdb minds.
            with suppress(EngineError, Exception):
                self._opened.pop().close()


@pytest.fixture
def home(monetdb_server):
    home = Home(monetdb_server.url)
    yield home
    home.close()


@pytest.fixture
def engine(home):
    return home.open()


@pytest.fixture
def session(home, engine):
    return home.session(engine)


@pytest.fixture
def managed(engine, session):
    """Create a table in schema app and put it under tique's management."""

    def create(name: str, columns: str) -> Table:
        quoted = '"' + name.replace('"', '""') + '"'
        session.execute(f"CREATE TABLE app.{quoted} ({columns})")
        return engine.manage(session, engine.describe(session, "app", name))

    return create


@pytest.fixture
def process(home):
    started = []

    def start(**options):
        started.append(Process(home.url, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def pair(process):
    first = process()
    first.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, note CLOB)")
    first.commit("INSERT INTO t VALUES (1, 0, 'a'), (2, 0, 'b')")
    return first, process()
