"""A MonetDB server of the test run's own."""

from __future__ import annotations

import resource
import shutil
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pymonetdb
import pytest

from tique_backends.monetdb.server import MonetDBServer, ServerError

if TYPE_CHECKING:
    from collections.abc import Iterator


_VIEW = 1

_SERVER = pytest.StashKey[MonetDBServer]()
_LOG = pytest.StashKey[Path]()

_LARGEST_FILE = 6 << 30
"""Bytes of a file of the server's: it once logged an error until the disk was full."""

_LARGEST_LOG = 1 << 20
"""Bytes that MonetDB may log during a test, or in the time in which a session that cannot
send ends (a second after it began): one that never ends logs 50 MB a second."""

_ENDING, _LOOKING = 1.5, 0.2
"""Seconds."""

_SHOWN = 4000
"""Characters of the output of a server that crashed."""


def connect_natively(url: str, **changes: Any) -> pymonetdb.Connection:
    """Connect to a server by its URL, without tique; autocommitting."""
    parts = urlsplit(url)
    arguments = {
        "database": parts.path.removeprefix("/"),
        "hostname": parts.hostname,
        "port": parts.port or 50000,
        "unix_socket": parse_qs(parts.query).get("sock", [None])[0],
        "username": parts.username,
        "password": parts.password,
        "autocommit": True,
    }
    return pymonetdb.connect(**(arguments | changes))


def empty(url: str) -> None:
    """Drop all tables, sequences and schemas of the database that are not its own."""
    with closing(connect_natively(url)) as connection:
        cursor = connection.cursor()
        with suppress(pymonetdb.Error):
            # The sequencer would remember killed processes until their leases end.
            cursor.execute("SELECT tique.leave_client(client) FROM tique.clients")
        cursor.execute("SELECT name FROM sys.schemas WHERE NOT system")
        for (schema,) in cursor.fetchall():
            cursor.execute(f"DROP SCHEMA {_quoted(schema)} CASCADE")
        cursor.execute(
            "SELECT name, type FROM sys.tables WHERE NOT system AND temporary = 0"
        )
        for name, kind in cursor.fetchall():
            what = "VIEW" if kind == _VIEW else "TABLE"
            cursor.execute(f"DROP {what} IF EXISTS {_quoted(name)} CASCADE")
        cursor.execute(
            "SELECT q.name FROM sys.sequences AS q JOIN sys.schemas AS s "
            "ON s.id = q.schema_id WHERE s.name = 'sys'"
        )
        for (name,) in cursor.fetchall():
            cursor.execute(f"DROP SEQUENCE {_quoted(name)}")


def is_damaged(url: str) -> bool:
    """Whether MonetDB cannot read its own catalog any more."""
    with closing(connect_natively(url)) as connection:
        try:
            connection.cursor().execute(
                "SELECT count(t.name), count(c.name) FROM sys.columns AS c "
                "JOIN sys.tables AS t ON t.id = c.table_id"
            )
        except pymonetdb.Error as error:
            if "does not match always" not in str(error):
                raise
            return True
    return False


def begin_anew(server: MonetDBServer) -> None:
    """Start the server with a new database."""
    server.kill()
    shutil.rmtree(Path(server._arguments[0]) / "tique")
    with small_files():
        server.start()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def small_files() -> Iterator[None]:
    """Limit the files of processes that are started meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_FILE, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="session")
def monetdb_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MonetDBServer]:
    """One server for the whole run."""
    folder = tmp_path_factory.mktemp("monetdb") / "server"
    server = MonetDBServer(folder)
    with ExitStack() as stack:
        with small_files():
            stack.enter_context(server)
        request.session.stash[_SERVER] = server
        request.session.stash[_LOG] = folder / "tique" / "mdbtrace.log"
        yield server
        del request.session.stash[_SERVER], request.session.stash[_LOG]


@pytest.fixture(autouse=True)
def server_crash_is_this_tests(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test under which the run's server ends or loops, and start it again."""
    before = _logged(request)
    yield
    server = request.session.stash.get(_SERVER, None)
    if server is None:
        return
    try:
        _ = server.url
    except ServerError as error:
        log = Path(str(error).rpartition(" ")[2])
        failure = f"{error}\n{log.read_text(errors='replace')[-_SHOWN:]}"
    else:
        if _logged(request) - before <= _LARGEST_LOG:
            return
        time.sleep(_ENDING)
        before = _logged(request)
        time.sleep(_LOOKING)
        if _logged(request) - before <= _LARGEST_LOG:
            return
        failure = "a session logs without end"
    server.kill()
    with small_files():
        server.start()
    pytest.fail(f"MonetDB: {failure}", pytrace=False)


def _logged(request: pytest.FixtureRequest) -> int:
    """The size of the run's server's log."""
    log = request.session.stash.get(_LOG, None)
    return log.stat().st_size if log is not None and log.exists() else 0
