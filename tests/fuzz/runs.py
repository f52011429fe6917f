"""Runs of numbered statements in child processes, which may die and be stopped."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pymonetdb

from tests.fuzz.mutations import statement
from tests.plugins.monetdb import connect_natively
from tests.plugins.postgresql import private_cluster
from tique_backends.monetdb.server import MonetDBServer, ServerError

ROOT = Path(__file__).parents[2]
ENGINES = ("duckdb", "monetdb", "postgresql")
ENGINE_DIED = os.EX_TEMPFAIL
"""A child's exit after the bare engine died of a statement: the next one goes on."""
_PATIENCE = 120.0
"""Seconds without a word from a child, after which it is killed."""


@dataclass
class Outcome:
    """The result of a run."""

    counts: Counter = field(default_factory=Counter)
    findings: list[dict] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    faults: list[dict] = field(default_factory=list)
    done: int = 0

    @property
    def read(self):
        """The share of statements that some parser could read."""
        return 1 - self.counts["syntax"] / max(1, self.done)


@contextmanager
def place_of(engine):
    """A database of the run's own: tells what a child needs to open it."""
    with tempfile.TemporaryDirectory(prefix="tique-fuzz-") as folder:
        if engine == "duckdb":
            yield lambda: str(Path(folder) / "fuzz.duckdb")
        elif engine == "monetdb":
            with MonetDBServer(Path(folder) / "server") as server:
                yield lambda: revived(server)
        else:
            with private_cluster(dynamic_shared_memory_type="mmap") as cluster:
                yield lambda: cluster.socket_url


def revived(server):
    """The URL of a server that a statement may have ended; the next ones need it."""
    try:
        with closing(connect_natively(server.url)):
            pass
    except (OSError, pymonetdb.Error):
        with suppress(ServerError):
            server.stop()
        server.start()
    return server.url


def described(engine, seed, number):
    """A statement, for a finding."""
    sql, parameters = statement(engine, seed, number)
    return {"number": number, "sql": sql, "parameters": repr(parameters)[:2000]}


def run(
    engine,
    place,
    seed,
    start,
    stop,
    *,
    report=None,
    module="tests.fuzz.child",
    describe=described,
    options=(),
):
    """Run the statements ``start`` up to ``stop`` of a seed; a crash is a finding.

    ``place`` tells where; it is asked before each child, which runs ``module`` with these
    ``options`` at the end.
    ``describe`` gives what a finding says of the statement that a child died of.
    """
    outcome = Outcome()

    def found(finding):
        outcome.findings.append(finding)
        if report is not None:
            report(finding)

    at = start
    while at < stop:
        arguments = [module, engine, place(), str(seed), str(at), str(stop)]
        arguments += options
        last, fate = _child(arguments, at, outcome, found)
        if fate is None:
            last = stop - 1
        elif fate:
            found({**describe(engine, seed, last), "what": fate})
        outcome.done += last + 1 - at
        at = last + 1
    return outcome


def _child(arguments, start, outcome, found):
    """One child's life: the number of its last statement, and how it died, if so."""
    last = start
    with (
        # Statements may write files: COPY … TO.
        tempfile.TemporaryDirectory(prefix="tique-fuzz-") as folder,
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            [sys.executable, "-m", *arguments],
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=folder,
            env={**os.environ, "PYTHONFAULTHANDLER": "1", "PYTHONPATH": str(ROOT)},
        ) as child,
    ):
        hung = False
        for line in _lines(child):
            if line is None:
                hung = True
                child.send_signal(signal.SIGABRT)
            elif line.startswith(b"@"):
                last = int(line[1:])
            elif line == b"...":
                pass
            else:
                said = json.loads(line)
                if "counts" in said:
                    outcome.counts.update(said["counts"])
                    outcome.refused.update(said.get("refused", {}))
                    outcome.faults += said.get("faults", [])
                else:
                    found(said)
        code = child.wait()
        if code in (0, ENGINE_DIED):
            return last, None if code == 0 else ""
        errors.seek(0)
        tail = errors.read()[-4000:].decode(errors="replace")
    what = f"nothing for {_PATIENCE:.0f} s" if hung else f"exit {code}"
    return last, f"{what}\n{tail}"


def _lines(child):
    """The child's lines, and None when it says nothing for too long."""
    rest = b""
    while True:
        ready, _, _ = select.select([child.stdout], [], [], _PATIENCE)
        if not ready:
            yield None
            continue
        piece = os.read(child.stdout.fileno(), 1 << 16)
        if not piece:
            return
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
