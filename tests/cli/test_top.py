"""``tique top``: its frames, on a terminal and elsewhere."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from dataclasses import replace

import pytest
from rich.console import Console

import tique
from tests.cli.conftest import PROGRAM
from tique.cli import _output
from tique.cli._top import frame


@pytest.fixture
def conn(adopted):
    with tique.connect(adopted, checkpoint="manual") as conn:
        yield conn


def shown(*arguments):
    console = Console(width=200)
    with console.capture() as capture:
        console.print(frame(*arguments))
    return [line.split() for line in capture.get().splitlines()]


def test_rates(conn):
    conn.execute("UPDATE account SET balance = 0 WHERE id < 3")
    conn.commit()
    before = conn.status()
    assert ["cts", "1", "-"] in shown(before)
    checkpoint = replace(before.checkpoint, folded_rows=3000)
    after = replace(before, cts=11, sts=6, checkpoint=checkpoint)
    lines = shown(after, before, 2.0)
    assert ["cts", "11", "5.0/s"] in lines
    assert ["sts", "6", "2.5/s"] in lines
    assert ["λ", "1", "10", "behind"] in lines
    assert ["folded", "3,000", "1,500.0/s"] in lines


def test_the_largest_tables_and_oldest_snapshots_come_first(conn, adopted):
    conn.execute("INSERT INTO log VALUES ('a'), ('b')")
    conn.commit()
    for number in range(12):
        conn.execute(f"CREATE TABLE empty{number} (id INTEGER)")
    conn.execute("SELECT * FROM log").fetchall()
    lines = shown(conn.status())
    heading = lines.index(["14", "tables,", "4", "of", "them", "not", "shown"])
    assert lines[heading + 2] == ["main.log", "2", "0"]
    start = lines.index(["1", "active", "transaction"])
    txid, sts, _, _, number, thread = lines[start + 2]
    assert (int(txid), int(number)) == (conn.txid, conn.info.number)
    assert int(sts) == conn.status().sts
    assert thread == "MainThread"


def test_what_an_operator_must_see(conn):
    status = conn.status()
    tables = (replace(status.tables[0], obstacle="full"), *status.tables[1:])
    checkpoint = replace(status.checkpoint, last_error="disk\x07 full")
    lines = shown(replace(status, tables=tables, checkpoint=checkpoint))
    assert ["Last", "error:", "disk\\x07", "full"] in lines
    assert any(line[:1] == ["main.account"] and "not" in line for line in lines)


def test_frames_without_a_terminal(run, adopted):
    found = run("top", adopted, "--interval", "0.01", "--count", "3")
    assert found.count("main.account") == 3
    assert "\x1b" not in found


@pytest.mark.parametrize("command", [["top"], ["status", "--watch", "1"]])
def test_an_interruption_is_the_ordinary_end(run, adopted, monkeypatch, command):
    def interrupt(_seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(_output.time, "sleep", interrupt)
    assert run(*command, adopted).count("main.account") == 1


@pytest.mark.slow
def test_a_terminal(adopted):
    """The frames are on the alternate screen, which is left at the end."""
    reading, writing = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment |= {"TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    options = ("--interval", "0.01", "--count", "2")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "top", adopted, *options],
        env=environment,
        stdin=writing,
        stdout=writing,
        stderr=subprocess.STDOUT,
    ) as process:
        os.close(writing)
        found = b""
        try:
            while part := os.read(reading, 65536):
                found += part
        except OSError:
            # Linux's way to say that the other side is closed.
            pass
        os.close(reading)
    assert process.returncode == 0, found.decode()
    assert found.count(b"main.account") >= 2
    assert b"\x1b[?1049h" in found
    assert b"\x1b[?1049l" in found
