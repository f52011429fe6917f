"""A coordinator and two workers, which can be killed at a chosen message."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

import tique
from benchmarks.targets.citus_cluster import CitusCluster, is_installed
from jepsen.systems.postgresql import kill_all
from tests.citus.proxy import Proxy

if TYPE_CHECKING:
    from benchmarks.targets.cluster import Cluster

ROWS = 12_000
"""Rows of ``account``; a statement that changes them all is staged."""

TABLES = (
    "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL)",
    "CREATE TABLE entry (account INTEGER, number INTEGER, amount INTEGER, "
    "PRIMARY KEY (account, number))",
    "CREATE TABLE currency (code TEXT PRIMARY KEY, name TEXT)",
    "CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT)",
    "SELECT create_distributed_table('account', 'id')",
    "SELECT create_distributed_table('entry', 'account', colocate_with => 'account')",
    "SELECT create_reference_table('currency')",
    f"INSERT INTO account SELECT n, 0 FROM generate_series(1, {ROWS}) AS n",
    "INSERT INTO entry SELECT n, 1, 0 FROM generate_series(1, 100) AS n",
    "INSERT INTO currency VALUES ('EUR', 'euro'), ('CHF', 'franc')",
    "INSERT INTO setting VALUES ('a', '1'), ('b', '2')",
)


class Servers:
    """The servers of a run, with a proxy before each worker."""

    def __init__(self, folder: Path) -> None:
        self.cluster = CitusCluster(folder, settings={"fsync": "off"})
        self.cluster.way = self._way
        self.proxies: dict[Cluster, Proxy] = {}
        # A server ends with the thread that started it.
        self._starter = ThreadPoolExecutor(1)

    @property
    def url(self) -> str:
        return self.cluster.url

    @property
    def workers(self) -> list[Cluster]:
        return self.cluster.workers

    def _way(self, worker: Cluster) -> int:
        self.proxies[worker] = Proxy(worker.port)
        return self.proxies[worker].port

    def kill(self, node: Cluster, back: float | None) -> None:
        """Kill a node; start it again after so many seconds, or never."""
        kill_all(node.pid)
        node.kill()
        if back is not None:
            self._starter.submit(self._restart, node, back)

    def await_restarts(self) -> None:
        self._starter.submit(lambda: None).result()

    @staticmethod
    def _restart(node: Cluster, back: float) -> None:
        time.sleep(back)
        node.start()

    def start(self, node: Cluster) -> None:
        self._starter.submit(node.start).result()

    def ask(self, statement: str, node: Cluster | None = None):
        with psycopg.connect(
            (node or self.cluster.coordinator).url, autocommit=True
        ) as c:
            cursor = c.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def clear(self) -> None:
        """Drop everything that a test has made."""
        self.await_restarts()
        self.ask(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend' AND application_name NOT LIKE 'citus%'"
        )
        with suppress(psycopg.Error):
            # The extension would remember clients of before.
            while self.ask("SELECT tique.doubtful() > 0") == [(True,)]:
                self.ask("SELECT tique.fence(tique.doubtful())")
        self.ask("SELECT recover_prepared_transactions()")
        self.ask("DROP SCHEMA IF EXISTS tique CASCADE")
        # The extension is in schema public.
        for (table,) in self.ask(
            "SELECT CAST(oid AS regclass)::text FROM pg_class WHERE relkind = 'r' AND "
            "relnamespace NOT IN (SELECT oid FROM pg_namespace WHERE nspname LIKE 'pg\\_%' "
            "OR nspname IN ('information_schema', 'citus', 'citus_internal')) AND NOT "
            "EXISTS (SELECT FROM pg_depend WHERE objid = pg_class.oid AND deptype = 'e')"
        ):
            self.ask(f"DROP TABLE IF EXISTS {table} CASCADE")

    def stop(self) -> None:
        self._starter.shutdown()
        self.cluster.stop()
        for proxy in self.proxies.values():
            proxy.close()


@pytest.fixture(scope="session")
def servers():
    if not is_installed():
        pytest.skip("the server has no Citus (make citus builds it)")
    folder = Path(
        tempfile.mkdtemp(prefix="citus-", dir=os.environ.get("TIQUE_TEST_SERVERS"))
    )
    folder.chmod(0o755)
    servers = Servers(folder / "nodes")
    try:
        servers._starter.submit(servers.cluster.start).result()
        yield servers
    finally:
        servers.stop()
        shutil.rmtree(folder)


@pytest.fixture
def empty(servers):
    """No tables."""
    yield servers
    servers.clear()


@pytest.fixture
def bank(empty):
    """Tables of all kinds, adopted."""
    for statement in TABLES:
        empty.ask(statement)
    tique.adopt(empty.url)
    return empty


@pytest.fixture
def connect(bank):
    """Connections, which are closed at the end."""
    opened = []

    def connect(**options):
        opened.append(tique.connect(bank.url, **options))
        return opened[-1]

    yield connect
    for connection in opened:
        with suppress(tique.Error):
            connection.close()


def one(connection: tique.Connection, query: str):
    """The first row of a query's, in a transaction of its own."""
    with closing(connection.cursor()) as cursor:
        try:
            cursor.execute(query)
            return cursor.fetchone()
        finally:
            connection.rollback()


def run(connection: tique.Connection, *statements: str) -> None:
    """Run statements and commit."""
    with closing(connection.cursor()) as cursor:
        for statement in statements:
            cursor.execute(statement)
    connection.commit()
