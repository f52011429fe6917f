"""``tique replicate`` and ``tique promote``: a replica of PostgreSQL in a DuckDB file."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import duckdb
import pytest

import tique
from tests.cli.conftest import PROGRAM
from tests.cli.test_prometheus import read
from tests.plugins.postgresql import empty
from tique.cli._top import frame, replica_line


@pytest.fixture
def source(postgresql_cluster):
    """A server's database with two tables, one without a key."""
    empty(postgresql_cluster.url)
    with tique.connect(postgresql_cluster.url, autocommit=True) as conn:
        conn.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY, price NUMERIC(8,2))")
        conn.execute("CREATE TABLE log (entry TEXT)")
        conn.execute(
            "INSERT INTO sale SELECT i, i FROM generate_series(1, 500) AS t(i)"
        )
    return postgresql_cluster.url


@pytest.fixture
def file(tmp_path):
    return tmp_path / "replica.duckdb"


@pytest.fixture
def target(file):
    return f"duckdb:///{file}"


@contextmanager
def replicating(*arguments, end=signal.SIGTERM, code=0):
    """A replicator in a process of its own, from its first line of figures on."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "replicate", *arguments],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PYTHONUNBUFFERED": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process.stdout.readline()
        process.send_signal(end)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == code, errors
    assert errors == ""


def stored(file, sql):
    """Ask the file without tique."""
    with duckdb.connect(file, read_only=True) as native:
        return native.execute(sql).fetchone()


def write(source, first, last):
    with tique.connect(source, autocommit=True) as conn:
        for number in range(first, last + 1):
            conn.execute("INSERT INTO sale VALUES (%s, 1)", (number,))
            conn.execute("INSERT INTO log VALUES (%s)", (f"{number}",))


def wait_for_slot(run, source, target):
    """Wait until the replica has all of the source durably, as the source knows."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = run("replicate", source, target, "--status", "--json")
        if set(found["slots"].values()) == {found["newest"]}:
            return found
        time.sleep(0.2)
    raise AssertionError(found)


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_what_was_committed_is_in_the_file_when_it_was_stopped(
    source, target, file, end
):
    """P4, P5: it is told to stop right after the commits, and has all of them."""
    with replicating(source, target, end=end) as line:
        assert line.startswith("replica following, at cts "), line
        write(source, 501, 520)
    assert stored(file, "SELECT count(*), sum(price) FROM public.sale") == (
        520,
        500 * 501 / 2 + 20,
    )
    assert stored(file, "SELECT count(*) FROM public.log") == (20,)


@pytest.mark.long_only
def test_killed_and_started_again(source, target, file):
    """P5: nothing twice, nothing left out."""
    with replicating(source, target, end=signal.SIGKILL, code=-signal.SIGKILL):
        write(source, 501, 510)
    write(source, 511, 520)
    with replicating(source, target) as line:
        assert "copying" not in line
        write(source, 521, 530)
    assert stored(file, "SELECT count(*) FROM public.sale") == (530,)
    assert stored(file, "SELECT count(*), count(DISTINCT entry) FROM public.log") == (
        30,
        30,
    )


@pytest.mark.slow
def test_the_status_while_it_runs_and_when_it_has_stopped(run, source, target):
    with replicating(source, target):
        write(source, 501, 505)
        found = wait_for_slot(run, source, target)
        assert len(found["slots"]) == 1
        assert found["file"] is None
        assert "is in use" in run("replicate", source, target, "--status")
    found = run("replicate", source, target, "--status", "--json")
    assert found["file"]["durable"] == found["newest"]
    shown = run("replicate", source, target, "--status")
    assert f"durable up to {found['newest']:,}" in shown
    assert re.search(r"replica-\w+ at [\d,]+, 0 behind", shown)
    status = run("status", target)
    assert "Replica of" in status
    assert "secret" not in status


@pytest.mark.slow
def test_promoting(run, source, target):
    """What the source has committed since is counted; then the file can be written."""
    with replicating(source, target):
        pass
    with tique.connect(target) as conn, pytest.raises(tique.Error) as raised:
        conn.execute("INSERT INTO public.sale VALUES (1000, 1)")
    assert raised.value.sqlstate == "25006"
    write(source, 501, 503)
    done = run("promote", target, "--source", source, "--json")["promote"]
    assert done["lost"] == 6
    with tique.connect(target, autocommit=True) as conn:
        conn.execute("INSERT INTO public.sale VALUES (1000, 1)")
        assert conn.execute("SELECT count(*) FROM public.sale").fetchone() == (501,)
    assert "is no replica" in run("replicate", source, target, "--status", code=1)


@pytest.mark.slow
def test_some_tables_in_another_schema(source, target, file):
    options = ("--table", "sale", "--schema", "public=main", "--epoch", "50ms")
    with replicating(source, target, *options, "--keep", "1h", "--json") as line:
        assert '"state": "following"' in line
        write(source, 501, 502)
    assert stored(file, "SELECT count(*) FROM main.sale") == (502,)
    with pytest.raises(duckdb.CatalogException):
        stored(file, "SELECT * FROM main.log")


@pytest.mark.parametrize(
    "options",
    [
        ("--epoch", "15"),
        ("--epoch", "ms"),
        ("--keep", "1 fortnight"),
        ("--schema", "public"),
    ],
)
def test_wrong_usage(run, source, target, options):
    assert "Error: Invalid value" in run("replicate", source, target, *options, code=2)


def test_a_target_that_cannot_be_one(run, source, url):
    assert "Error: " in run("replicate", url, source, code=1)


@pytest.mark.slow
def test_a_bar_for_each_table_on_a_terminal(source, target):
    reading, writing = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment |= {"TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "replicate", source, target],
        env=environment,
        stdin=writing,
        stdout=writing,
        stderr=writing,
    ) as process:
        os.close(writing)
        found = b""
        while b"replica following" not in found:
            found += os.read(reading, 65536)
        process.terminate()
        while True:
            try:
                if not os.read(reading, 65536):
                    break
            except OSError:
                # Linux's way to say that the other side is closed.
                break
        os.close(reading)
    assert process.returncode == 0, found.decode()
    assert re.search(rb"public\.sale .*500/500", found), found.decode()


@pytest.mark.slow
def test_figures(source, target):
    """The line of figures, ``tique top`` and the metrics are of one status."""
    with tique.replicate(source, target) as replication, tique.connect(target) as conn:
        before = conn.status()
        write(source, 501, 510)
        with tique.connect(source) as writer:
            assert replication.wait(writer.version, 30)
        after = conn.status()
        conn.rollback()
    replica = after.replica
    assert (replica.commits - before.replica.commits, replica.rows) == (20, 20)
    assert 1 <= replica.epochs <= 20
    assert replica.applied == replica.newest
    line = replica_line(replica, before.replica, 2.0)
    assert "10.0 commits/s in " in line
    epochs = replica.epochs - before.replica.epochs
    assert f"{20 / epochs:,.1f} rows per epoch; of the time: ask " in line
    assert line in [f"{part}" for part in frame(after, before, 2.0).renderables]
    found = read(after.prometheus())
    assert found["tique_replica_commits_total",] == replica.commits
    assert found["tique_sts",] == replica.applied
    assert 0 <= found["tique_replica_lag_seconds",] < 30
    assert found["tique_replica_behind",] == replica.behind == 0
    for step in replica.seconds:
        assert ("tique_replica_step_seconds_total", ("step", step)) in found


def test_what_is_no_replica_has_no_such_figures(run, adopted):
    assert "replica stopped" not in run("top", adopted, "--count", "1")
    assert not [
        name
        for name, *_ in read(run("status", adopted, "--prometheus"))
        if "replica" in name
    ]
