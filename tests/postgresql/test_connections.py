"""Connections: options of a URL, settings of a role, and servers that tique refuses."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import psycopg
import pytest

import tique
from benchmarks.targets.cluster import Cluster
from tests.plugins.postgresql import empty, in_database, private_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def cluster(postgresql_cluster: Cluster) -> Iterator[Cluster]:
    empty(postgresql_cluster.socket_url)
    yield postgresql_cluster
    empty(postgresql_cluster.socket_url)


@contextmanager
def role(cluster: Cluster, *settings: str) -> Iterator[str]:
    """The URL of a role with settings of its own."""
    elsewhere = in_database(cluster.url, "postgres")
    with closing(psycopg.connect(elsewhere, autocommit=True)) as connection:
        connection.execute(
            f"CREATE ROLE odd SUPERUSER LOGIN PASSWORD '{cluster.password}'"
        )
        try:
            for setting in settings:
                connection.execute(f"ALTER ROLE odd SET {setting}")
            yield cluster.url.replace("//tique:", "//odd:")
        finally:
            empty(cluster.socket_url)
            connection.execute("DROP ROLE odd")


@contextmanager
def database(cluster: Cluster, name: str, *options: str) -> Iterator[str]:
    """The URL of a database of its own."""
    cluster.run("createdb", *options, name)
    try:
        yield in_database(cluster.url, name)
    finally:
        cluster.run("dropdb", name)


def ask(url: str, query: str) -> list[tuple[Any, ...]]:
    with closing(tique.connect(url)) as connection:
        return connection.execute(query).fetchall()


def test_tcp_and_socket_are_one_server(cluster):
    with closing(tique.connect(cluster.url, autocommit=True)) as one:
        one.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
        one.execute("INSERT INTO t VALUES (1)")
        with closing(tique.connect(cluster.socket_url)) as other:
            assert other.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_options_are_those_of_libpq(cluster):
    options = quote("-c work_mem=9MB -c lock_timeout=7s")
    url = f"{cluster.url}?application_name=a%20b&options={options}&connect_timeout=5"
    query = (
        "SELECT current_setting('application_name'), current_setting('work_mem'), "
        "current_setting('lock_timeout')"
    )
    assert ask(url, query) == [("a b", "9MB", "7s")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("colour=red", "colour"),
        ("threads=4", "threads"),
        ("port=many", "port"),
        ("sslmode=perhaps", "sslmode"),
    ],
)
def test_what_libpq_does_not_know_is_refused(cluster, options, message):
    with pytest.raises(tique.Error, match=message) as caught:
        tique.connect(f"{cluster.url}?{options}")
    assert isinstance(
        caught.value,
        tique.ProgrammingError | tique.InterfaceError | tique.OperationalError,
    )
    assert cluster.password not in str(caught.value)


def test_wrong_password(cluster):
    """P11: and the message does not repeat it."""
    url = cluster.url.replace(cluster.password, "letmein")
    with pytest.raises(
        tique.OperationalError, match="password authentication"
    ) as caught:
        tique.connect(url)
    assert "letmein" not in str(caught.value)
    assert "'tique' at 127.0.0.1" in str(caught.value)


@pytest.mark.slow
def test_scram():
    """P11: the password itself is never sent to a server of this kind."""
    with private_cluster("scram-sha-256") as cluster:
        with closing(psycopg.connect(cluster.url)) as native:
            (kept,) = native.execute(
                "SELECT rolpassword FROM pg_authid WHERE rolcanlogin"
            ).fetchone()
        assert kept.startswith("SCRAM-SHA-256$")
        with closing(tique.connect(cluster.url)) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(tique.OperationalError, match="password authentication"):
            tique.connect(cluster.url.replace(cluster.password, "letmein"))


def test_unknown_database(cluster):
    with pytest.raises(tique.OperationalError, match='"nope" does not exist'):
        tique.connect(in_database(cluster.url, "nope"))


def test_nobody_listens():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(tique.OperationalError, match=f"127.0.0.1:{port}"):
            tique.connect(f"postgresql://u:p@127.0.0.1:{port}/d")


def test_two_databases_in_one_process(cluster):
    """P1: each with its own timestamps."""
    with (
        database(cluster, "second") as url,
        closing(tique.connect(cluster.url, autocommit=True)) as first,
        closing(tique.connect(url, autocommit=True)) as second,
    ):
        for number, connection in enumerate((first, second), 1):
            connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
            for key in range(number * 3):
                connection.execute("INSERT INTO t VALUES (%s)", [key])
        count = "SELECT count(*) FROM t"
        assert first.execute(count).fetchall() == [(3,)]
        assert second.execute(count).fetchall() == [(6,)]
        before = first.status().cts, second.status().cts
        first.execute("INSERT INTO t VALUES (100)")
        assert (first.status().cts, second.status().cts) == (before[0] + 1, before[1])


ODD = {
    "standard_conforming_strings": ("off", "on"),
    "DateStyle": ("German", "ISO"),
    "client_encoding": ("LATIN1", "UTF8"),
    "default_transaction_isolation": ("read uncommitted", "read\\ committed"),
    "backslash_quote": ("on", "off"),
}
"""A role's values, and those that the URL gives in their place."""


@pytest.mark.slow
def test_a_roles_settings_do_not_change_what_text_means(cluster):
    r"""P11, P12: with backslash escapes, ``\'`` would end no string."""
    for name, (value, _) in ODD.items():
        with (
            role(cluster, f"{name} = '{value}'") as url,
            pytest.raises(tique.NotSupportedError, match=name),
        ):
            tique.connect(url)
    with role(cluster, *(f"{name} = '{odd}'" for name, (odd, _) in ODD.items())) as url:
        options = " ".join(f"-c{name}={usual}" for name, (_, usual) in ODD.items())
        with closing(
            tique.connect(f"{url}?options={quote(options)}", autocommit=True)
        ) as connection:
            # Through tique the level is that of its own transactions.
            level = connection._execution.session.execute("SHOW transaction_isolation")
            assert level.fetch_all() == [("read committed",)]
            connection.execute("CREATE TABLE t (v TEXT PRIMARY KEY, d DATE)")
            hostile = ["\\'; DROP TABLE t; --", "\\", "'", "é\U0001f600"]
            for value in hostile:
                connection.execute("INSERT INTO t VALUES (%s, '2020-01-02')", [value])
                found = connection.execute(
                    "SELECT v, d::text FROM t WHERE v = %s", [value]
                )
                assert found.fetchall() == [(value, "2020-01-02")]
            assert connection.execute(r"SELECT '\'").fetchall() == [("\\",)]
            assert connection.execute("SELECT count(*) FROM t").fetchall() == [(4,)]


@pytest.mark.parametrize(
    ("role_has", "tique_has"),
    [("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply", "remote_apply")],
)
def test_commits_are_durable_whatever_the_role_says(cluster, role_has, tique_has):
    """P4: a setting that waits for more than the server's own disk stays as it is."""
    with role(cluster, f"synchronous_commit = {role_has}") as url:
        query = "SELECT current_setting('synchronous_commit')"
        assert ask(url, query) == [(tique_has,)]


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII", "EUC_JP"])
def test_another_encoding_is_refused(cluster, encoding):
    """P11: names and strings are cut from the text as UTF-8's."""
    options = ("--encoding", encoding, "--locale", "C", "--template", "template0")
    with database(cluster, "strange", *options) as url:
        with pytest.raises(tique.NotSupportedError, match=f"encoding {encoding}"):
            tique.connect(url)
        with closing(psycopg.connect(url)) as connection:
            query = "SELECT count(*) FROM pg_namespace WHERE nspname = 'tique'"
            assert connection.execute(query).fetchone() == (0,)


@contextmanager
def pooler(cluster: Cluster, mode: str) -> Iterator[str]:
    """The URL of a pgbouncer before the server, which ends with the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="tique-pgbouncer-") as name:
        folder = Path(name)
        users, config = folder / "users", folder / "pgbouncer.ini"
        users.write_text(f'"tique" "{cluster.password}"\n')
        config.write_text(
            f"[databases]\ntique = host=127.0.0.1 port={cluster.port}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
            f"unix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {users}\n"
            f"pool_mode = {mode}\n"
        )
        # Debian's is where only root looks.
        program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
        assert program is not None, "apt-get install pgbouncer"
        command = [program, "-q", str(config)]
        if os.geteuid() == 0:
            # It refuses to be root's.
            for path in (folder, users, config):
                shutil.chown(path, "postgres")
            command[1:1] = ["-u", "postgres"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                _await_port(port)
                yield cluster.url.replace(f":{cluster.port}/", f":{port}/")
            finally:
                process.terminate()


def _await_port(port: int) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "pgbouncer does not start"
            time.sleep(0.05)


@pytest.mark.parametrize("mode", ["transaction", "session", "statement"])
def test_a_pooler_is_refused(cluster, mode):
    """P1: locks and temporary tables would be another client's a moment later."""
    with pooler(cluster, mode) as url:
        with closing(psycopg.connect(url, autocommit=True)) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(
            tique.NotSupportedError, match="connection pooler"
        ) as caught:
            tique.connect(url)
        assert "connect to the server itself" in str(caught.value)


@pytest.mark.slow
def test_a_standby_is_refused(cluster):
    """P4: nothing could be written there, not even a reader's lease."""
    with tempfile.TemporaryDirectory(prefix="tique-standby-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        standby = Cluster(folder / "server")
        with standby:
            ask(standby.url, "SELECT 1")
        (folder / "server" / "data" / "standby.signal").touch()
        with (
            standby,
            pytest.raises(tique.OperationalError, match="is a standby") as caught,
        ):
            tique.connect(standby.url)
        assert caught.value.sqlstate == "25006"
