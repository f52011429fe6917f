"""Faults happen where they were asked for: otherwise a run shows nothing."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import nullcontext
from functools import partial

import pytest

from jepsen import preload
from jepsen.faultpoints import Fault, FaultPoints
from jepsen.preload import Preload
from jepsen.systems import kind_of
from jepsen.systems import monetdb as monetdb_system
from jepsen.systems import postgresql as postgresql_system
from jepsen.systems.base import sever


class Call:
    """A call to an engine, which notes when it was made and when it was cut."""

    def __init__(self, points):
        self.points = points
        self.log = []

    def __call__(self):
        with self.points.passing(lambda moment: self.log.append("cut")):
            self.log.append("call")


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("before", ["call", "cut", "call", "call"]),
        ("amid", ["call", "cut", "call", "call"]),
        ("after", ["call", "call", "cut", "call"]),
    ],
)
def test_a_connection_is_cut_at_the_nth_call_of_its_phase(moment, expected):
    points = FaultPoints({})
    call = Call(points)
    happened = []
    points.happened = happened.append
    points.plan(fault := Fault("cut", "commit", 2, moment))
    points.enter("body")
    call()
    points.enter("commit")
    call.log.clear()
    for _ in range(3):
        call()
    assert call.log == expected
    assert happened == [fault]


def test_a_fault_waits_for_an_operation_that_gets_to_its_place():
    points = FaultPoints({})
    call = Call(points)
    points.plan(Fault("cut", "commit", 2, "before"))
    for _ in range(2):
        points.enter("body")
        call()
        points.enter("commit")
        call()
        points.enter("")
        call()
    assert call.log == ["call"] * 4 + ["cut"] + ["call"] * 2


def test_what_is_done_beside_a_call_does_not_cut_it():
    done = []
    points = FaultPoints({"ddl": lambda: done.append("defined")})
    call = Call(points)
    points.plan(Fault("ddl", "body", 2, "before"))
    points.enter("body")
    call()
    assert done == []
    call()
    points.wait()
    assert call.log == ["call"] * 2
    assert done == ["defined"]


MOMENTS = {"before": False, "amid": True, "after": True}
"""Whether the call that is cut gets to the server."""


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_cut_reaches_the_wire(shared_engine, monkeypatch, moment):
    """The server gets the request or not; the client never hears of it."""
    points = FaultPoints({})
    # The methods that it replaces are put back.
    for module, name, methods in (
        (postgresql_system.psycopg, "Cursor", ("execute", "copy")),
        (monetdb_system.connections, "Connection", ("execute",)),
    ):
        owner = getattr(module, name)
        for method in methods:
            monkeypatch.setattr(owner, method, getattr(owner, method))
    kind_of(shared_engine.url).instrument(points)
    with shared_engine.connect() as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        connection.commit()
    native = shared_engine.native()
    points.plan(Fault("cut", "body", 1, moment))
    points.enter("body")
    lost = pytest.raises((OSError, shared_engine.driver.Error))
    with nullcontext() if moment == "after" else lost:
        native.execute("INSERT INTO t VALUES (1)")
    with lost:
        native.execute("SELECT 1")
    points.enter("")
    another = shared_engine.native()
    deadline = time.monotonic() + 10
    expected = (int(MOMENTS[moment]),)
    # The server does not tell when it is done with it.
    while another.execute("SELECT count(*) FROM t").fetchone() != expected:
        assert time.monotonic() < deadline


def test_a_quick_reply_is_not_heard():
    """A reply that is there before the client asks for it: TCP keeps it, unless told."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        wire = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
    with wire, server:
        sever(wire, "amid")
        wire.sendall(b"request")
        assert server.recv(7) == b"request"
        server.sendall(b"reply")
        assert wire.recv(5) == b""


@pytest.fixture
def preloaded(tmp_path):
    """Run a Python program with a library; its output."""

    def run(name, nanoseconds, program):
        library = Preload(
            name, preload.compiled(name, tmp_path), tmp_path / f"{name}.number"
        )
        library.set(nanoseconds)
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, **preload.environment(library)},
            capture_output=True,
            text=True,
            check=True,
        )
        return float(done.stdout)

    return run


SYNC = """
import os, tempfile, time
with tempfile.TemporaryFile() as file:
    started = time.monotonic()
    os.fdatasync(file.fileno())
    os.fsync(file.fileno())
    print(time.monotonic() - started)
"""


def test_a_slow_disk(preloaded):
    assert preloaded("slow_disk", 300_000_000, SYNC) >= 0.6


@pytest.mark.parametrize("seconds", [-3600, 0, 86400])
def test_a_clock_that_is_wrong(preloaded, seconds):
    """The wall clock's, and not the one that histories are stamped with."""
    ask = partial(preloaded, "clock_jump", seconds * 10**9)
    assert abs(ask("import time; print(time.time())") - time.time() - seconds) < 60
    assert abs(ask("import time; print(time.monotonic())") - time.monotonic()) < 60
