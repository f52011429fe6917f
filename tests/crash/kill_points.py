"""Kills a scenario before each call to the engine in turn, and looks at the state.

    python -m tests.crash.kill_points ENGINE PLACE SCENARIO KILLS FIRST STRIDE

The place is DuckDB's folder or the URL of a server, which lives through all kills.
Prints a JSON array per point, from the first on, every stride-th. A fresh database, or a
copy of a closed one, and a fork are used for each, so that a hundred kills take seconds.
After ``KILLS`` kills in a row (the later ones hit recovery) the database is opened for
good and judged.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import closing
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import duckdb

import tique
from tests.crash.faults import KillAt, watched_connect, watched_run
from tests.crash.scenarios import SCENARIOS, SETUP, Rows
from tests.plugins.engine import DuckDB, MonetDB, PlainPostgreSQL, PostgreSQL
from tique.checkpoint import checkpointer
from tique_backends.catalog.histories import COMMITS
from tique_backends.forms import together
from tique_backends.names import column_list
from tique_udfs.duckdb import Prepared

LONGEST = 4000
PATIENCE = 20.0
ENGINES = {
    "duckdb": lambda place: DuckDB(Path(place)),
    "monetdb": lambda place: MonetDB(SimpleNamespace(url=place)),
    "postgresql": lambda place: PostgreSQL(SimpleNamespace(socket_url=place)),
    "postgresql-plain": lambda place: PlainPostgreSQL(
        SimpleNamespace(socket_url=place)
    ),
}


class Run:
    """A scenario being run on one database; every finished step is reported."""

    def __init__(self, engine, report=lambda *_: None, **options):
        self.engine = engine
        self.url = engine.url
        self.report = report
        self.options = {"checkpoint": "manual", "retention": 0.0, **options}
        self.connection = None

    def open(self):
        if self.connection is None:
            self.connection = tique.connect(self.url, **self.options)
        return self.connection

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def step(self, step):
        if step == "checkpoint":
            self.open().checkpoint()
        elif step == "reopen":
            self.close()
            self.open()
        elif step == "read":
            self.open().execute("SELECT count(*) FROM account, bag").fetchall()
            self.open().commit()
        elif step in ("adopt", "detach"):
            self.close()
            getattr(tique, step)(self.url)
        elif step == "remember":
            self.close()
            tique.set_history(self.url, "1 hour")
        else:
            for statement in step:
                if isinstance(statement, Rows):
                    statement.bring(self.open(), self.engine)
                else:
                    self.open().execute(statement)
            txid = self.open().txid
            # Without BEGIN a schema change takes effect outside the transaction, which
            # stays empty.
            if str(step[0]).startswith(("ALTER", "CREATE", "DROP")):
                txid = None
            self.report(None, txid)
            self.open().commit()
            return txid
        return None

    def all(self, steps):
        for number, step in enumerate(steps, 1):
            self.report(number, self.step(step))
        self.close()


def state(connection, tables):
    """The rows of all tables, in any order."""
    return {
        name: sorted(map(repr, connection.execute(f"SELECT * FROM {name}").fetchall()))
        for (name,) in connection.execute(tables).fetchall()
    }


def golden(steps):
    """The state after each step, according to DuckDB alone."""
    connection = duckdb.connect(":memory:")
    for step in SETUP:
        connection.execute(step[0])
    states = [state(connection, DuckDB.tables)]
    for step in steps:
        if isinstance(step, tuple):
            for statement in step:
                is_text = isinstance(statement, str)
                # One transaction after the other does the same, and DuckDB 1.5 cannot
                # alter a table that it has just changed.
                if statement != "BEGIN":
                    connection.execute(statement if is_text else statement.native)
        states.append(state(connection, DuckDB.tables))
    connection.close()
    return states


def forked(body, *arguments):
    """Run ``body`` in a child; whether it came to its end, and its output."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)

        def report(*values):
            os.write(writer, (json.dumps(values) + "\n").encode())

        code = 1
        try:
            body(report, *arguments)
            code = 0
        except BaseException as error:
            report("error", f"{type(error).__name__}: {error}"[:2000])
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as lines:
        values = [json.loads(line) for line in lines]
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), values


def kill_at(engine, point):
    """Kill this process at its nth call of the engine that may write."""
    watch = KillAt(point)
    engine.driver.connect = watched_connect(engine.driver, watch)
    Prepared.run = watched_run(watch)


def act(report, engine, steps, point):
    kill_at(engine, point)
    checkpointer._BATCH_ROWS = 3
    checkpointer._PRUNE_INTERVAL = 0.0
    Run(engine, report).all(steps)


def reopen(_report, engine, point):
    kill_at(engine, point)
    Run(engine).open()


def fold(connection):
    """Fold everything, which a killed process may hold up until it is given up."""
    versions = connection._database.catalog.all_versions()
    deadline = time.monotonic() + PATIENCE
    while connection.checkpoint() or not all(one.is_empty for one in versions):
        if time.monotonic() > deadline:
            raise AssertionError("versions are not folded")
        time.sleep(0.02)


def expect_past(connection, states, acknowledged):
    """P5: tables with a history have had the states of finished steps, in order."""
    database = connection._database
    for table in database.catalog:
        if table.history is None or table.name == "wide":
            continue
        with closing(database.engine.session()) as session:
            database.catalog.versions(table).drain(session)
            commits = session.execute(
                f"SELECT cts FROM ({COMMITS}) AS _c WHERE cts > {table.history.since} "
                "ORDER BY 1"
            ).fetch_all()
            found = []
            for cts in (table.history.since, *(cts for (cts,) in commits)):
                parts = database.engine.forms.scan(table, cts, staged=None, past=True)
                rows = session.execute(
                    f"SELECT {column_list(table)} FROM {together(parts)} AS _r"
                ).fetch_all()
                found.append(sorted(repr(tuple(row)) for row in rows))
        # A table that is called otherwise was so before.
        names = {"several": "many"}
        wanted = [s.get(table.name, s.get(names.get(table.name))) for s in states]
        found, least, most = (
            [rows for rows, _ in groupby(sequence)]
            for sequence in (
                found,
                wanted[: acknowledged + 1],
                wanted[: acknowledged + 2],
            )
        )
        if found not in (least, most):
            raise AssertionError(f"{table.name} had not the states: {found}"[:1500])


def judge(report, engine, states, acknowledged, txids, asked, remembered):
    """Open for good: state, numbers, caches, service; from a step on, the past."""
    started = time.monotonic()
    run = Run(engine)
    connection = run.open()
    database = connection._database
    # A transaction that begins after this answer sees the commit that it reports.
    outcome = None if asked is None else connection.outcome(asked)
    found = {
        table.name: sorted(
            map(repr, connection.execute(f"SELECT * FROM {table.name}").fetchall())
        )
        for table in database.catalog
    }
    allowed = states[acknowledged : acknowledged + 2]
    if outcome in ("committed", "aborted") and found:
        is_said = allowed[outcome == "committed"]
        assert found == is_said, f"transaction {asked} is said to be {outcome}"
    if found not in allowed and found != {}:
        raise AssertionError(f"neither before nor after the step: {found}"[:1500])
    if found and acknowledged >= remembered:
        expect_past(connection, states[remembered:], acknowledged - remembered)
    if connection.txid is not None and connection.txid <= max(txids, default=0):
        raise AssertionError("a txid was used twice")
    is_recovered = database.engine.shared is None
    versions = database.catalog.all_versions()
    if is_recovered and not all(one.is_empty for one in versions):
        raise AssertionError("recovery left versions in memory")
    for table in database.catalog:
        if is_recovered and database.engine.cached_commits(
            connection._execution.session, table
        ):
            raise AssertionError(f"recovery left versions of {table.name}")
    for txid in txids:
        if (outcome := connection.outcome(txid)) == "aborted":
            raise AssertionError(f"acknowledged transaction {txid} is {outcome}")
    # Of processes that share a sequencer the killed one may have had a timestamp.
    last = database.timeline.position().cts
    connection.commit()
    if found:
        before = connection.execute("SELECT count(*) FROM account").fetchone()[0]
        connection.execute("INSERT INTO account VALUES (-1, 0)")
        connection.commit()
        connection.execute("DELETE FROM account WHERE id = -1")
        if database.sequencer.sts() != last + 1:
            raise AssertionError("a cts was lost or used twice")
        connection.commit()
        after = connection.execute("SELECT count(*) FROM account").fetchone()[0]
        if before != after:
            raise AssertionError("no service after recovery")
        connection.commit()
        fold(connection)
    run.close()
    plain = state(engine.native(), engine.tables)
    if plain not in allowed:
        raise AssertionError(f"the database holds neither state: {plain}"[:1500])
    engine.close()
    report("seconds", time.monotonic() - started)


def prepare(report, engine):
    run = Run(engine, report)
    run.all([*SETUP, "checkpoint"])
    timeline = run.open()._database.timeline
    deadline = time.monotonic() + PATIENCE
    # Killed right after it joined, a process is there until its lease ends.
    while timeline.position().clients > 1:
        if time.monotonic() > deadline:
            raise AssertionError("a killed process is still there")
        time.sleep(0.1)
    run.close()


def main(engine_name, place, name, kills, first, stride):
    steps = SCENARIOS[name]
    states = golden(steps)
    engine = ENGINES[engine_name](place)
    files = {}
    for point in range(first, LONGEST, stride):
        engine.begin_again()
        for path, content in files.items():
            path.write_bytes(content)
        if not files:
            code, values = forked(prepare, engine)
            assert code == 0, values
            files = engine.files()
        code, values = forked(act, engine, steps, point)
        failure = None
        if code not in (0, -9):
            failure = f"the scenario itself failed: {values[-1]}"
        done = [value for value in values if value[0] not in ("error", None)]
        acknowledged = done[-1][0] if done else 0
        txids = [value[1] for value in done if value[1] is not None]
        asked = values[-1][1] if values and values[-1][0] is None else None
        for again in range(kills - 1):
            forked(reopen, engine, 1 + (point * 7 + again * 5) % 40)
        if failure is None:
            is_remembered = "remember" in steps
            remembered = steps.index("remember") + 1 if is_remembered else LONGEST
            known = (states, acknowledged, txids, asked, remembered)
            judged, verdict = forked(judge, engine, *known)
            if judged != 0:
                failure = f"after reopening: {verdict[-1] if verdict else judged}"
        print(json.dumps([point, acknowledged, code, failure]), flush=True)
        if code != -9:
            return


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:]))
