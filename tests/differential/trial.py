"""Runs an episode through tique and on a bare engine, and compares."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psycopg

import tique
from tests.differential import kinds, world
from tests.differential.bare import (
    BARE,
    MOST_ROWS,
    SILENT,
    NativeChange,
    answer,
    content,
)
from tests.differential.statements import STEPS, Episode
from tests.plugins.engine import NativeMonetDB
from tests.plugins.monetdb import empty as empty_monetdb
from tests.plugins.postgresql import empty as empty_postgresql
from tests.staging import BUFFERED_ROWS, stage_above
from tique_backends.monetdb.sessions.connection import NO_RESULT
from tique_backends.postgresql.sessions.connection import tolerate

_PLACE = re.compile(r" at line \d+, column \d+|\bt\d+\b")


NO_ANSWER = ("no answer",)
"""MonetDB's silence, through tique."""
OWN_FAULT = "a fault of the engine's own"
"""The bare engine answers otherwise where the same rows are in new tables, or breaks a key."""


@dataclass
class Finding:
    """A difference: what kind, at which step, what each side said."""

    what: str
    step: str
    found: str
    expected: str

    @property
    def kind(self):
        return self.what


class Trial:
    """One pair of databases, for many episodes."""

    def __init__(self, engine, places):
        self.engine = engine
        self.places = places
        self.bares = {}
        self.connections = []
        self.number = 0
        self.counts = {}
        self.refused = {}

    # -- databases

    def _bare(self, oracle):
        if oracle not in self.bares:
            self.bares[oracle] = BARE[oracle](self.places[f"bare {oracle}"])
        self.bares[oracle].begin_again()
        return self.bares[oracle]

    def _connect(self):
        self.connections = [
            tique.connect(self.url, checkpoint="manual", certifier=self.certifier)
            for _ in range(2)
        ]

    def _close(self):
        for connection in self.connections:
            connection.close()
        self.connections = []

    def _fresh(self, episode):
        self._close()
        self.certifier = episode.certifier
        place = self.places[self.engine]
        if self.engine == "duckdb":
            for file in Path(place).glob("*"):
                file.unlink()
            self.url = f"duckdb:///{place}/generated.duckdb"
            self._connect()
            return
        self.url = place
        with suppress(tique.Error):
            self._connect()
            connection = self.connections[0]
            for table in list(connection._database.catalog):
                connection.execute(
                    f'DROP TABLE "{table.schema}"."{table.name}" CASCADE'
                )
            connection.commit()
            if self.number:
                return
        self._close()
        (empty_postgresql if self.engine == "postgresql" else empty_monetdb)(place)
        if self.engine == "postgresql":
            with psycopg.connect(place, autocommit=True) as native:
                for sql in kinds.SETUP["postgresql"]:
                    native.execute(sql)
        self._connect()

    def close(self):
        with suppress(tique.Error):
            self._close()
        for bare in self.bares.values():
            bare.close()

    # -- running

    def episode(self, seed, number, tell=lambda: None, *, length=STEPS):
        """Run an episode: its steps, and a finding or None."""
        episode = Episode(self.engine, seed, number, length)
        done = []
        finding = self._run(episode, self._generated(episode, done), done, tell)
        return episode, done, finding

    def _generated(self, episode, done):
        steps = episode.steps()
        accepted = None
        while True:
            try:
                step = steps.send(accepted)
            except StopIteration:
                return
            accepted = yield step
            if accepted and step.kind == "ddl" and step.after and not step.before:
                episode.note(step)

    def again(self, episode, steps, tell=lambda: None):
        """Run a list of steps; the finding or None."""
        return self._run(episode, _listed(steps), [], tell)

    def _run(self, episode, steps, done, tell):
        self._fresh(episode)
        self.number += 1
        self.bare = self._bare(episode.oracle)
        self.tables = {}
        self.current = 0
        self.has_savepoint = False
        stage_above(episode.buffered)
        accepted = None
        try:
            while True:
                try:
                    step = steps.send(accepted)
                except StopIteration:
                    break
                done.append(step)
                tell()
                accepted, finding = self._step(step)
                if finding is not None:
                    return finding
            return self._last()
        except NativeChange as change:
            return Finding(OWN_FAULT, str(change), "", str(change.__cause__))
        finally:
            stage_above(BUFFERED_ROWS)

    @property
    def connection(self):
        return self.connections[self.current]

    def _step(self, step):
        if step.is_statement:
            return self._statement(step)
        try:
            self._event(step.kind)
        except tique.Error as error:
            return False, Finding("event fails", step.kind, repr(error), "")
        if step.kind == "check":
            return True, self._compare(step.kind)
        return True, None

    def _event(self, kind):
        connection = self.connection
        if kind == "commit":
            connection.commit()
            self.has_savepoint = False
        elif kind == "rollback":
            connection.rollback()
            self.has_savepoint = False
        elif kind == "savepoint":
            connection.execute("SAVEPOINT s")
            self.has_savepoint = True
        elif kind == "rollback to":
            if self.has_savepoint:
                connection.execute("ROLLBACK TO SAVEPOINT s")
        elif kind == "checkpoint":
            connection.checkpoint()
        elif kind == "other":
            # Steps without the commit before it are a minimised list's.
            connection.commit()
            self.has_savepoint = False
            self.current = 1 - self.current
            self.bare.event("commit")
        elif kind == "reopen":
            connection.commit()
            self.has_savepoint = False
            self._close()
            self._connect()
        self.bare.event(kind)

    def _statement(self, step):
        if step.kind == "ddl":
            # It takes effect at once: it is no part of a transaction.
            self._event("commit")
        expected = self.bare.outcome(step)
        if expected == SILENT or (expected[0] == "rows" and expected[3] > MOST_ROWS):
            self.count("no answer" if expected == SILENT else "large")
            return False, None
        found = self._through_tique(step)
        if found[0] == "refused":
            self.count("refused")
            if expected[0] != "error":
                self.refused.setdefault(found[1], step.sql)
                self.count("refused, accepted natively")
                if step.kind != "query":
                    self.bare.undo()
            return False, None
        if found == NO_ANSWER:
            self.count("no answer")
            return False, None
        self.count(expected[0])
        what = self._judged(step, found, expected)
        if what is not None:
            was_done = expected[0] != "error"
            if what == "fails" and any(map(self.bare.breaks_keys, self._named(step))):
                what = OWN_FAULT
            else:
                again = self.bare.again(step, was_done=was_done)
                if self._judged(step, found, again) is None:
                    what = OWN_FAULT
            return False, Finding(what, step.sql, _shown(found), _shown(expected))
        if expected[0] == "error":
            return False, None
        if step.kind == "ddl":
            if step.before is not None:
                self.tables.pop(step.before.name)
            if step.after is not None:
                self.tables[step.after.name] = step.after
            self.bare.event("commit")
        return True, None

    def _named(self, step):
        """The tables whose names are in a statement."""
        words = set(step.sql.split())
        return [table for table in self.tables.values() if table.name in words]

    def _judged(self, step, found, expected):
        """The kind of the difference, or None."""
        if expected[0] == "error":
            if found[0] != "error":
                return "accepts"
            # A category may stand for several.
            return None if expected[1] == found[1] else "other error"
        if found[0] == "error":
            return "fails"
        if step.kind == "ddl" or found == expected:
            return None
        return None if self._may_differ(step, found, expected) else "differs"

    def _may_differ(self, step, found, expected):
        # DuckDB counts a row once for each row that it is joined with, or once.
        joined = " FROM " in step.sql and step.sql.startswith("UPDATE")
        return self.engine == "duckdb" and found[0] == expected[0] == "count" and joined

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def _through_tique(self, step):
        try:
            cursor = self.connection.execute(step.sql, step.parameters)
            if cursor.description is None:
                count = cursor.rowcount if step.kind == "change" else -1
                return "count", count
            return answer(step, cursor)
        except tique.NotSupportedError as error:
            reason = _PLACE.sub("", str(error).split("\n")[0])
            return "refused", reason[:160]
        except tique.Error as error:
            if step.kind == "query" and str(error) == NO_RESULT:
                return NO_ANSWER
            return "error", world.category(error), f"{type(error).__name__}: {error}"

    def _compare(self, when):
        tables = list(self.tables.values())
        try:
            found = content(self.connection.execute, tables, self.bare.text)
        except tique.Error as error:
            return Finding("check fails", when, repr(error), "")
        expected = self.bare.content(tables)
        for name, rows in expected.items():
            if found[name] != rows:
                return Finding("content differs", when, *_changed(found[name], rows))
        return None

    def _last(self):
        """Compare at the end: recent, stored, and natively, to the last digit."""
        finding = self._compare("end")
        if finding is None:
            self.connection.commit()
            for connection in self.connections:
                connection.commit()
            self.connection.checkpoint()
            finding = self._compare("after the checkpoint")
        if finding is not None:
            return finding
        self.connection.commit()
        self._close()
        if self.engine != self.bare.engine:
            return None
        tables = list(self.tables.values())
        found = self._stored(tables)
        for name, rows in self.bare.content(tables, as_text=True).items():
            if found[name] != rows:
                return Finding("storage differs", "end", *_changed(found[name], rows))
        return None

    def _stored(self, tables):
        if self.engine == "duckdb":
            native = duckdb.connect(self.url.removeprefix("duckdb:///"))
        elif self.engine == "postgresql":
            native = psycopg.connect(self.url, autocommit=True)
            tolerate(native)
        else:
            native = NativeMonetDB(self.url)
        try:
            return content(native.execute, tables, self.bare.text, as_text=True)
        finally:
            native.close()


def _listed(steps):
    for step in steps:  # noqa: UP028 (a list takes nothing that is sent)
        yield step


def _shown(outcome):
    return repr(outcome)[:1500]


def _changed(found, expected):
    """The rows that only one of them has."""
    return (
        repr([row for row in found if row not in expected])[:1500],
        repr([row for row in expected if row not in found])[:1500],
    )


def minimised(trial, episode, steps, finding, tell=lambda: None, *, most=200):
    """The fewest steps that still give a finding of the kind, as far as tries go."""
    tries = 0

    def fails(candidate):
        nonlocal tries
        tries += 1
        # A column may be looked for that a step which was left out would have added.
        with suppress(Exception):
            again = trial.again(episode, candidate, tell)
            return again is not None and again.what == finding.what
        return False

    if not fails(steps):
        return steps, False
    size = len(steps) // 2
    while size >= 1 and tries < most:
        at = 0
        while at < len(steps) and tries < most:
            candidate = steps[:at] + steps[at + size :]
            if candidate and fails(candidate):
                steps = candidate
            else:
                at += size
        size //= 2
    return steps, True
