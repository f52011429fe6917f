"""A PostgreSQL server of the test run's own."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from benchmarks.targets.cluster import Cluster, binaries
from benchmarks.targets.relocated import relocate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_HOME = "TIQUE_TEST_SERVERS"
"""The folder of all servers of a run: a worker that is killed leaves its behind."""


def pytest_configure(config: pytest.Config) -> None:
    if _HOME in os.environ or hasattr(config, "workerinput"):
        return
    # Below pytest's own folder the server's account cannot get.
    home = Path(tempfile.mkdtemp(prefix="tique-servers-"))
    home.chmod(0o755)
    os.environ[_HOME] = str(home)

    def remove() -> None:
        del os.environ[_HOME]
        shutil.rmtree(home, ignore_errors=True)

    config.add_cleanup(remove)


def server_pg_config() -> str:
    """The ``pg_config`` of the server that clusters run, if there are several."""
    return str(binaries() / "pg_config")


@contextmanager
def private_cluster(auth: str = "md5", **settings: str) -> Iterator[Cluster]:
    """A server in a folder that goes with it, which has the extension's files."""
    home = os.environ.get(_HOME)
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir=home))
    folder.chmod(0o755)
    try:
        # Servers are killed here, machines are not: no page is ever torn. SCRAM takes
        # most of the time of a connection, and there are thousands.
        with Cluster(
            folder / "server",
            {"fsync": "off", "full_page_writes": "off", **settings},
            extension=True,
            auth=auth,
        ) as cluster:
            yield cluster
    finally:
        shutil.rmtree(folder)


def in_database(url: str, name: str) -> str:
    """The URL of another database of the same server."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def empty(url: str) -> None:
    """Drop every schema and every extension that a new database does not have."""
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        _end_others(connection)
        with suppress(psycopg.Error):
            # The extension would remember killed processes until their leases end.
            for client in connection.execute("SELECT client FROM tique.clients"):
                with suppress(psycopg.Error):
                    connection.execute("SELECT tique.leave_client(%s)", client)
            while connection.execute("SELECT tique.doubtful()").fetchone() != (0,):
                connection.execute("SELECT tique.fence(tique.doubtful())")
        # Also those that a test has put into pg_catalog.
        extensions = connection.execute(
            "SELECT quote_ident(extname) FROM pg_extension WHERE extname <> 'plpgsql'"
        ).fetchall()
        for (name,) in extensions:
            connection.execute(f"DROP EXTENSION IF EXISTS {name} CASCADE")
        schemas = connection.execute(
            "SELECT quote_ident(nspname) FROM pg_namespace "
            "WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'"
        ).fetchall()
        if schemas:
            names = ", ".join(name for (name,) in schemas)
            try:
                connection.execute(f"DROP SCHEMA {names} CASCADE")
            except psycopg.errors.DeadlockDetected:
                # A thread whose connection was ended has come back with another one.
                _end_others(connection)
                connection.execute(f"DROP SCHEMA {names} CASCADE")
        connection.execute("CREATE SCHEMA public")


def _end_others(connection: psycopg.Connection[Any]) -> None:
    """End all sessions but this one: a killed process may have a statement under way."""
    connection.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid() "
        "AND backend_type = 'client backend'"
    )


def create_extension(url: str) -> None:
    """Make the database's schema and the extension in it."""
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        connection.execute("CREATE SCHEMA tique")
        connection.execute("CREATE EXTENSION tique WITH SCHEMA tique")


@pytest.fixture
def bare_postgresql(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """PostgreSQL as it is on a fresh machine, for this test: nothing of tique's in it."""
    with tempfile.TemporaryDirectory(prefix="tique-bare-") as name:
        Path(name).chmod(0o755)
        installed = binaries()
        programs = relocate(installed, Path(name) / "postgresql", extension=False)
        for program in installed.iterdir():
            if program.name != "postgres":
                (programs / program.name).symlink_to(program)
        monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.delenv("PG_CONFIG", raising=False)
        yield programs


@pytest.fixture
def pg_config(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Path]:
    """Let the server's library and extension folders be below another one."""
    genuine = server_pg_config()

    def place(folder: Path) -> Path:
        (folder / "lib").mkdir()
        (folder / "share" / "extension").mkdir(parents=True)
        program = folder / "pg_config"
        program.write_text(
            "#!/bin/sh\n"
            'case "$1" in\n'
            f"--pkglibdir) echo {folder}/lib ;;\n"
            f"--sharedir) echo {folder}/share ;;\n"
            f'*) exec {genuine} "$@" ;;\n'
            "esac\n"
        )
        program.chmod(0o755)
        monkeypatch.setenv("PG_CONFIG", str(program))
        return folder

    return place


@pytest.fixture(scope="session")
def postgresql_cluster() -> Iterator[Cluster]:
    """One server for the whole run."""
    # A test that kills it waits for the recovery of all changes since its checkpoint.
    # Every database with a sequencer takes 15 MB until the server ends, and a
    # container's /dev/shm has 64.
    with private_cluster(
        max_prepared_transactions="2",
        dynamic_shared_memory_type="mmap",
        checkpoint_timeout="30s",
    ) as cluster:
        yield cluster
