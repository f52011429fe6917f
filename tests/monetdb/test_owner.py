"""One process at a time: which one may open the database, and which one is dead."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pymonetdb
import pytest

from tests.crash.faults import watched_connect
from tests.effort import patience
from tests.monetdb.conftest import Home
from tests.plugins.monetdb import connect_natively
from tique_backends.errors import ConnectionLostError, EngineError, ErrorKind
from tique_backends.location import Server
from tique_backends.monetdb import backend as monetdb
from tique_backends.monetdb.server import MonetDBServer
from tique_backends.monetdb.sessions.connection import Connection
from tique_backends.monetdb.sessions.owner import Ownership
from tique_backends.monetdb.sessions.reply import Reply
from tique_backends.records import CommitRecord, Statistics

CHILD = """
import sys, time
from urllib.parse import urlsplit
from tique_backends.monetdb import backend as monetdb
from tique_backends.location import Server
parts = urlsplit(sys.argv[1])
server = Server(parts.hostname, parts.port, parts.username, parts.password)
engine = monetdb.open_engine(monetdb.locate(parts.path[1:], {}, server))
session = engine.session()
print("open", flush=True)
if len(sys.argv) > 2:
    session.execute(sys.argv[2])
    print("done", flush=True)
time.sleep(100)
"""


@pytest.fixture(scope="module")
def monetdb_server(tmp_path_factory):
    """A server without the sequencer: its databases belong to one process at a time."""
    folder = tmp_path_factory.mktemp("unprepared") / "server"
    with MonetDBServer(folder, sequencer=False) as server:
        yield server


@pytest.fixture
def child(home):
    started = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD, home.url, *arguments],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout.readline() == "open\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def install(home):
    engine = home.open()
    engine.close()


def test_a_second_opener_is_refused(home, child):
    install(home)
    process = child()
    with pytest.raises(EngineError, match=f"process {process.pid} on .* end it") as no:
        home.open()
    assert no.value.kind is ErrorKind.LOCKED
    assert "monetdb://" not in str(no.value)


def test_in_the_same_process_too(home, engine):
    with pytest.raises(EngineError, match=f"process {os.getpid()} ") as refusal:
        monetdb.open_engine(home.location)
    assert refusal.value.kind is ErrorKind.LOCKED
    # The refused one has left the owner alone.
    home.session(engine).log([CommitRecord(1, 1, {})])


def test_sessions_of_a_living_engine_are_no_orphans(home):
    """P6: they rest, and others look for sessions without a process."""
    living, other = (Ownership(home.location.address, Statistics()) for _ in range(2))
    with closing(living), closing(other), closing(living.connect()) as resting:
        for _ in range(3):
            other.end_orphans()
            # Longer than an orphan is left alone, and than the least session time-out.
            time.sleep(0.7)
        for _ in range(2):
            assert resting.ask("SELECT 1").rows == [(1,)]


def test_the_engines_own_questions_have_whole_replies(home):
    """P6: so its own session ends with it, and others see that it has gone."""
    statistics = Statistics()
    digits = "(VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))"
    with closing(Ownership(home.location.address, statistics)) as own:
        before = statistics.statements
        sources = ", ".join(f"{digits} AS {name}(x)" for name in "abcde")
        assert len(own.ask(f"SELECT a.x FROM {sources}")) == 100_000
        assert statistics.statements == before + 1


def test_a_closed_database_opens_again(home):
    for _ in range(3):
        engine = home.open()
        session = engine.session()
        session.close()
        engine.close()


def test_a_dead_owner_is_followed(home, child):
    install(home)
    process = child()
    process.kill()
    process.wait()
    started = time.monotonic()
    engine = home.open()
    assert time.monotonic() - started < patience(2)
    home.session(engine).log([CommitRecord(1, 1, {})])


def test_not_while_a_statement_of_the_dead_still_runs(home, child):
    """P5: it could still commit after recovery had looked for it."""
    install(home)
    slow = (
        "INSERT INTO tique.log SELECT 77, n, R'[]' FROM (SELECT count(*) AS n FROM "
        "sys.columns a, sys.columns b, sys.columns c WHERE a.id + b.id > c.id "
        "AND c.number < 3) AS x"
    )
    process = child(slow)
    time.sleep(0.5)
    process.kill()
    process.wait()
    with pytest.raises(EngineError) as refusal:
        home.open()
    assert refusal.value.kind is ErrorKind.LOCKED
    deadline = time.monotonic() + 120
    while True:
        try:
            engine = home.open()
            break
        except EngineError:
            assert time.monotonic() < deadline
    assert engine.last_commit(home.session(engine)) == 77


@pytest.mark.parametrize("installed", [True, False])
def test_of_two_openers_at_the_same_moment_one_wins(home, installed):
    if installed:
        install(home)

    def attempt(_):
        engine = monetdb.open_engine(home.location)
        try:
            if not installed:
                session = engine.session()
                try:
                    engine.install(session)
                finally:
                    session.close()
        except EngineError:
            engine.close()
            raise
        return engine

    for _ in range(3):
        with ThreadPoolExecutor(4) as pool:
            futures = [pool.submit(attempt, n) for n in range(4)]
        errors = [f.exception() for f in futures if f.exception() is not None]
        winners = [f.result() for f in futures if f.exception() is None]
        assert len(winners) == 1
        assert {e.kind for e in errors} == {ErrorKind.LOCKED}
        session = winners[0].session()
        session.log([CommitRecord(1, 1, {})])
        if not installed:
            winners[0].uninstall(session)
        session.close()
        winners[0].close()


def test_a_user_without_the_privileges_is_told(home):
    with closing(connect_natively(home.url)) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE USER joe WITH PASSWORD 'joe' NAME 'Joe' SCHEMA app")
        try:
            location = home.location
            server = Server(location.address.host, location.address.port, "joe", "joe")
            with pytest.raises(EngineError, match=r"sys\.sessions") as refusal:
                monetdb.open_engine(monetdb.locate(location.path, {}, server))
            assert refusal.value.kind is ErrorKind.UNSUPPORTED
        finally:
            cursor.execute("DROP USER joe")


def test_a_connection_lost_while_it_looks_is_no_missing_privilege(home, monkeypatch):
    """The server may be back the next time; a privilege will not."""
    genuine = pymonetdb.connect

    def lose(when, text):
        if when == "before" and "SELECT count(*) FROM sys.sessions" in text:
            raise ConnectionResetError(104, "Connection reset by peer")

    monkeypatch.setattr(pymonetdb, "connect", watched_connect(pymonetdb, lose))
    with pytest.raises(ConnectionLostError) as failure:
        monetdb.open_engine(home.location)
    assert failure.value.kind is ErrorKind.OPERATIONAL
    monkeypatch.setattr(pymonetdb, "connect", genuine)
    home.open()


@pytest.fixture
def own(tmp_path):
    with MonetDBServer(tmp_path / "server", sequencer=False) as server:
        home = Home(server.url)
        yield server, home
        home.close()


def restart(server, home):
    server.kill()
    home.url = server.start()


def test_a_restarted_server_has_no_owner(own):
    """Session ids start again: the old owner's are others' now."""
    server, home = own
    home.open()
    restart(server, home)
    others = [connect_natively(home.url) for _ in range(5)]
    try:
        home.open()
    finally:
        for other in others:
            other.close()


def test_what_was_logged_survives_the_servers_death(own):
    """P4, P5: every acknowledged commit, and each of the others as a whole or not."""
    server, home = own
    engine = home.open()
    session = engine.session()
    acknowledged = []

    def log():
        for cts in range(1, 100_000):
            session.log([CommitRecord(cts, 1000 + cts, {1: [((cts,), False)]})])
            acknowledged.append(cts)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(log)
        while len(acknowledged) < 50:
            time.sleep(0.01)
        server.kill()
        with pytest.raises(EngineError) as failure:
            running.result(60)
    assert failure.value.kind is ErrorKind.OPERATIONAL
    home.url = server.start()
    engine = home.open()
    session = home.session(engine)
    rows = session.execute("SELECT cts FROM tique.log ORDER BY cts").fetch_all()
    last = engine.last_commit(session)
    assert [cts for (cts,) in rows] == list(range(1, last + 1))
    assert last - len(acknowledged) in (0, 1)
    assert engine.find_commit(session, 1000 + len(acknowledged)) == len(acknowledged)


def test_whoever_lost_the_database_at_a_restart_is_fenced(own, tmp_path):
    """P6: it cannot open another session and go on."""
    server, home = own
    port = home.location.address.port
    old = home.open()
    server.kill()
    restarted = MonetDBServer(tmp_path / "server", port=port, sequencer=False)
    home.url = restarted.start()
    try:
        # No other process came: it may go on.
        session = old.session()
        session.log([CommitRecord(1, 1, {})])
        session.close()
        old._ownership.close()
        new = home.open()
        with pytest.raises(EngineError, match="taken it over") as refusal:
            old.session()
        assert refusal.value.kind is ErrorKind.LOCKED
        with suppress(EngineError):
            old.is_managed()
        home.session(new).log([CommitRecord(2, 2, {})])
    finally:
        home.close()
        restarted.stop()


def test_an_owner_that_comes_back_while_it_is_taken_over_stays(home, monkeypatch):
    """Its session appears between the opener's look and the opener's write."""
    first = home.open()
    returned = []
    ask = Connection.ask

    def returning(connection, sql):
        if sql.startswith("SELECT count(*) FROM sys.sessions") and len(returned) < 2:
            reply = ask(connection, sql)
            if reply.rows == [(1,)] and not returned:
                returned.append("own mark")
                return reply
            returned.append("the owner, unseen")
            return Reply(rows=[(0,)])
        return ask(connection, sql)

    monkeypatch.setattr(Connection, "ask", returning)
    with pytest.raises(EngineError, match=f"process {os.getpid()} .* has it open"):
        monetdb.open_engine(home.location)
    assert len(returned) == 2
    home.session(first).log([CommitRecord(1, 1, {})])


@pytest.mark.parametrize(
    ("path", "options"), [("", {}), (":memory:", {}), ("a/b", {}), ("a", {"x": "1"})]
)
def test_locations_that_cannot_be(path, options):
    with pytest.raises(EngineError) as refusal:
        monetdb.locate(path, options)
    assert refusal.value.kind is ErrorKind.PROGRAMMING


def test_location():
    server = Server("db.example", None, "joe", "secret")
    location = monetdb.locate("shop", {}, server)
    assert location.identity == "monetdb://db.example:50000/shop"
    assert "secret" not in repr(location) + repr(server)
    assert location.address.password == "secret"
    by_socket = monetdb.locate("shop", {"sock": "/tmp/s"})
    assert by_socket.address.socket == "/tmp/s"
    assert by_socket.identity == "monetdb:///tmp/s/shop"


def test_nobody_there(home, tmp_path):
    for options, server in (
        ({"sock": str(tmp_path / "none")}, Server()),
        ({}, Server("127.0.0.1", 1, "joe", "secret")),
        ({}, Server(*[getattr(home.location.address, n) for n in ("host", "port")],
                    "monetdb", "wrong-secret")),
    ):  # fmt: skip
        with pytest.raises(EngineError, match="cannot connect to MonetDB") as refusal:
            monetdb.open_engine(monetdb.locate("tique", options, server))
        assert refusal.value.kind is ErrorKind.OPERATIONAL
        assert "secret" not in str(refusal.value)


def test_a_socket(tmp_path):
    with MonetDBServer(tmp_path / "server", socket=tmp_path / "s") as server:
        password = server.url.split(":")[2].split("@")[0]
        options = {"sock": str(tmp_path / "s")}
        where = monetdb.locate("tique", options, Server(password=password))
        engine = monetdb.open_engine(where)
        assert not engine.is_managed()
        engine.close()
