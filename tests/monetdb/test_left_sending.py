"""A client that dies or breaks off while rows come: its session ends, on every server.

MonetDB sends them again for ever (backends/tique_backends/monetdb/README.md).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from pymonetdb import mapi

import tique
from tests.effort import patience
from tests.plugins.monetdb import connect_natively
from tique_backends.monetdb.server import MonetDBServer
from tique_backends.monetdb.sessions.owner import Ownership

DIGITS = "(VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))"
ROWS = "SELECT a.x, 'abcdefghijklmnopqrstuvwxyz' FROM " + ", ".join(
    f"{DIGITS} AS {name}(x)" for name in "abcde"
)
"""100,000 of them."""

CHILD = f"""
import os, signal, sys, time
import tique
from pymonetdb import mapi

connection = tique.connect(sys.argv[1])
cursor = connection.cursor()
cursor.execute({ROWS!r})
assert len(cursor.fetchmany(9000)) == 9000
genuine = mapi.Connection._putblock

def ask_and_die(self, block):
    genuine(self, block)
    if block.startswith("Xexport"):
        if int(sys.argv[2]) == signal.SIGKILL:
            time.sleep(float(sys.argv[3]))
            # A process's end takes longer than the server to send.
            self.sock.close()
        os.kill(os.getpid(), int(sys.argv[2]))

mapi.Connection._putblock = ask_and_die
try:
    cursor.fetchmany(9000)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module", params=[True, False], ids=["shared", "owned"])
def sequencer(request):
    """Whether the server has one, so that processes share it."""
    return request.param


@pytest.fixture(scope="module")
def log(sequencer, tmp_path_factory):
    """The file into which the server writes its errors."""
    return tmp_path_factory.mktemp("left") / "server" / "tique" / "mdbtrace.log"


@pytest.fixture(scope="module")
def monetdb_server(sequencer, log):
    with MonetDBServer(log.parent.parent, sequencer=sequencer) as server:
        yield server


def sessions(url):
    """The number of sessions, but for the one that asks."""
    with closing(connect_natively(url)) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT count(*) FROM sys.sessions")
        return cursor.fetchone()[0] - 1


def await_sessions(url, at_most, seconds):
    deadline = time.monotonic() + patience(seconds)
    while sessions(url) > at_most:
        assert time.monotonic() < deadline, f"{sessions(url)} sessions"
        time.sleep(0.1)


def run(url, number, seconds=0.0):
    """A process that sends itself a signal some time after it asked for more rows."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, url, str(int(number)), str(seconds)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_all_rows_come(monetdb_server):
    with closing(tique.connect(monetdb_server.url)) as connection:
        cursor = connection.cursor()
        rows = cursor.execute(ROWS).fetchmany(15_000)
        while some := cursor.fetchmany(15_000):
            rows += some
        assert sorted(x for x, _ in rows) == sorted([*range(10)] * 10_000)


def test_of_a_process_that_is_killed(monetdb_server):
    """P6: the next process has the database soon, and ends what is left."""
    url = monetdb_server.url
    tique.connect(url).close()
    with run(url, signal.SIGKILL) as process:
        assert process.wait(60) == -signal.SIGKILL
    with closing(tique.connect(url)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        connection.execute("DROP TABLE t")
        there = sessions(url)
        time.sleep(1)
        await_sessions(url, there, 10)
    await_sessions(url, 0, 10)


def test_of_a_process_that_is_killed_before_it_reads():
    """P6: the server is done by then, and no other process has to come."""
    with TemporaryDirectory() as folder:
        place = Path(folder)
        with MonetDBServer(place / "server", socket=place / "socket") as server:
            with run(server.url, signal.SIGKILL, 0.5) as process:
                assert process.wait(60) == -signal.SIGKILL
            await_sessions(server.url, 0, 5)


def expect_silence(log):
    """The server logs nothing, after the second that a session has to end."""
    time.sleep(1)
    size = log.stat().st_size
    time.sleep(0.5)
    assert log.stat().st_size < size + 10_000


def test_of_a_query_that_is_interrupted(monetdb_server, log):
    """P6: the process goes on; no session of its is left when it is done."""
    url = monetdb_server.url
    with run(url, signal.SIGINT) as process:
        assert process.stdout.readline() == "interrupted\n"
        expect_silence(log)
        process.communicate("")
    await_sessions(url, 0, 10)


def test_of_a_query_that_is_interrupted_twice(monetdb_server, log, monkeypatch):
    """P6: the second time in what ends its session, which is done when it connects."""
    genuine = mapi.Connection._putblock

    def interrupt(self, block):
        genuine(self, block)
        if block.startswith("Xexport"):
            monkeypatch.setattr(Ownership, "ask", interrupt_again)
            raise KeyboardInterrupt

    def interrupt_again(self, sql):
        monkeypatch.undo()
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        return self.ask(sql)

    with closing(tique.connect(monetdb_server.url)) as connection:
        cursor = connection.cursor()
        cursor.execute(ROWS)
        assert len(cursor.fetchmany(9000)) == 9000
        monkeypatch.setattr(mapi.Connection, "_putblock", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cursor.fetchmany(9000)
        with closing(tique.connect(monetdb_server.url)) as other:
            assert other.execute("SELECT 1").fetchall() == [(1,)]
            expect_silence(log)
