"""``MonetDBServer``: MonetDB for tests and for people who have none."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pymonetdb
import pytest

from tests.plugins.monetdb import connect_natively
from tique_backends.monetdb.server import MonetDBServer, ServerError


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "server"


@pytest.fixture
def server(folder):
    with MonetDBServer(folder) as server:
        yield server


def ask(url, sql, **changes):
    with closing(connect_natively(url, **changes)) as connection:
        cursor = connection.cursor()
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else None


def wait_for_end(pid, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_it_answers_at_its_url(server):
    assert server.url.startswith("monetdb://monetdb:")
    assert ask(server.url, "SELECT 6 * 7") == [(42,)]


def test_it_listens_on_the_loopback_address_only(server):
    """Among this machine's listening sockets (state 0A), as the kernel shows them."""
    port = f":{urlsplit(server.url).port:04X}"
    tables = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]
    lines = [
        line.split() for table in tables for line in table.read_text().splitlines()
    ]
    found = [at for _, at, _, state, *_ in lines if state == "0A" and at.endswith(port)]
    assert found == ["0100007F" + port]


@pytest.mark.parametrize("password", ["monetdb", "", "wrong"])
def test_no_other_password_opens_it(server, password):
    """P11."""
    with pytest.raises(pymonetdb.Error, match="invalid credentials"):
        connect_natively(server.url, password=password)


def test_every_folder_has_a_password_of_its_own_that_others_cannot_read(
    tmp_path, folder, server
):
    with MonetDBServer(tmp_path / "other") as other:
        assert other.url.split("@")[0] != server.url.split("@")[0]
    assert (folder / "password").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder.joinpath("tique").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_restart_finds_the_data(folder, end):
    server = MonetDBServer(folder)
    ask(server.start(), "CREATE TABLE kept (id INTEGER)")
    ask(server.url, "INSERT INTO kept VALUES (1), (2)")
    before = server.url.split("@")[0]
    getattr(server, end)()
    with MonetDBServer(folder) as again:
        assert again.url.split("@")[0] == before
        assert ask(again.url, "SELECT count(*) FROM kept") == [(2,)]


def test_a_large_log_does_not_stay(folder):
    """MonetDB may have written it as far as the disk or a limit lets it."""
    with MonetDBServer(folder) as server:
        ask(server.url, "CREATE TABLE kept (id INTEGER)")
    (log,) = folder.rglob("mdbtrace.log")
    os.truncate(log, 65 << 20)
    with MonetDBServer(folder) as server:
        assert ask(server.url, "SELECT * FROM kept") == []
        assert log.stat().st_size < 1 << 20
        assert log.with_suffix(".old").stat().st_size == 65 << 20


@pytest.mark.slow
def test_one_object_starts_again_after_its_stop(folder):
    server = MonetDBServer(folder)
    server.start()
    with pytest.raises(ServerError, match="started already"):
        server.start()
    server.stop()
    server.stop()
    with pytest.raises(ServerError, match="does not run"):
        _ = server.url
    assert ask(server.start(), "SELECT 1") == [(1,)]
    server.stop()


def test_a_crash_is_told_with_its_log(folder):
    server = MonetDBServer(folder)
    server.start()
    pid = server.pid
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(ServerError, match=r"status -9; see .*/server/server\.log"):
        _ = server.url
    server.kill()
    assert ask(server.start(), "SELECT 1") == [(1,)]
    server.stop()


def test_a_second_server_on_the_folder_is_refused(folder, server):
    with pytest.raises(ServerError, match=rf"runs on .*\(process {server.pid}\)"):
        MonetDBServer(folder).start()
    assert ask(server.url, "SELECT 1") == [(1,)]


def test_a_folder_with_something_else_in_it_is_refused(folder):
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(ServerError, match="not tique's MonetDB server"):
        MonetDBServer(folder).start()
    assert [entry.name for entry in folder.iterdir()] == ["thesis.txt"]


def test_a_database_without_its_password_is_refused(folder):
    with MonetDBServer(folder):
        pass
    (folder / "password").unlink()
    with pytest.raises(ServerError, match="password is gone"):
        MonetDBServer(folder).start()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ServerError, match="file/server: Not a directory"):
        MonetDBServer(tmp_path / "file" / "server").start()


def test_a_given_port_is_used(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServerError, match=rf"cannot listen on 127.0.0.1:{port}"):
            MonetDBServer(folder, port=port).start()
    with MonetDBServer(folder, port=port) as server:
        assert f"@127.0.0.1:{port}/" in server.url


def test_a_socket_takes_the_place_of_the_port(folder, tmp_path):
    path = tmp_path / "a b.sock"
    with MonetDBServer(folder, socket=path) as server:
        assert ask(server.url, "SELECT 1") == [(1,)]
        listening = (folder / "tique" / ".conn").read_text().split()
        assert all("localhost" not in line for line in listening)
        with pytest.raises(ServerError, match="another server listens on"):
            MonetDBServer(tmp_path / "other", socket=path).start()
        server.kill()
    with MonetDBServer(folder, socket=path) as server:
        assert ask(server.url, "SELECT 1") == [(1,)]


def test_sockets_that_cannot_be_are_refused(folder, tmp_path):
    with pytest.raises(ServerError, match="at most 107 bytes"):
        MonetDBServer(folder, socket=tmp_path / ("x" * 107)).start()
    with pytest.raises(ServerError, match="no folder"):
        MonetDBServer(folder, socket=tmp_path / "none" / "s").start()
    (tmp_path / "file").write_text("")
    with pytest.raises(ServerError, match="is no socket"):
        MonetDBServer(folder, socket=tmp_path / "file").start()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_it_cleanly(folder, number):
    server = MonetDBServer(folder)
    server.start()
    os.kill(server.pid, number)
    server.stop()
    assert not (folder / "tique" / ".started").exists()


def test_a_signal_ends_it_while_a_query_runs(server):
    """P6: and the client that waits gets an error."""
    query = (
        "SELECT count(*) FROM columns a, columns b, columns c WHERE a.id + b.id > c.id"
    )
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(ask, server.url, query)
        time.sleep(0.5)
        assert not running.done()
        os.kill(server.pid, signal.SIGTERM)
        with pytest.raises((pymonetdb.Error, OSError)):
            running.result(60)


PARENT = """
import sys, time
from tique_backends.monetdb.server import MonetDBServer
server = MonetDBServer(sys.argv[1])
server.start()
print(server.pid, flush=True)
time.sleep(100)
"""


def test_a_forked_child_knows_its_url(server):
    expected = server.url
    child = os.fork()
    if child == 0:
        try:
            os._exit(server.url != expected)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_it_ends_with_the_process_that_started_it(folder):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    assert wait_for_end(pid)
    with MonetDBServer(folder) as server:
        assert ask(server.url, "SELECT 1") == [(1,)]


def test_many_clients_at_once(server):
    connections = [connect_natively(server.url) for _ in range(100)]
    for connection in connections:
        connection.close()
