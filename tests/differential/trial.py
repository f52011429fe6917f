"""Runs an episode through tique and on a bare engine, and compares.

The bare engine commits every statement by itself, since DuckDB's transactions and
MonetDB's end with their first error, and DuckDB's know no savepoints. Going back is
done by doing again: all statements that are to last are run on an empty database.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psycopg
import pymonetdb

import tique
from tests.differential import kinds, world
from tests.differential.statements import Episode
from tests.plugins.engine import NativeMonetDB
from tests.plugins.monetdb import empty as empty_monetdb
from tests.plugins.postgresql import empty as empty_postgresql
from tests.plugins.postgresql import in_database
from tique.query import changes
from tique.query.statements import change, insert
from tique_backends.postgresql.connection import tolerate

_NUMBERED = re.compile(r"^%\d+$")
_PLACE = re.compile(r" at line \d+, column \d+|\bt\d+\b")
MOST_ROWS = 3000
"""Larger results are not asked for through tique."""
SILENT = ("silent",)
"""MonetDB gives neither a result nor an error to some queries (its README)."""


class NativeCrash(Exception):
    """The bare engine died of a statement."""


class _Bare:
    """A bare engine's database; ``log`` has what made it."""

    placeholder = "%s"

    def __init__(self, place):
        self.place = place
        self.connection = None
        self.log = []
        self.committed = 0
        self.savepoint = None
        self.open()

    def open(self):
        """Have an empty database."""
        raise NotImplementedError

    def close(self):
        with suppress(Exception):
            self.connection.close()

    def reset(self):
        self.log, self.committed, self.savepoint = [], 0, None
        self.open()

    def run(self, step):
        sql, parameters = step.sql, step.parameters
        if parameters is not None:
            sql = sql.replace("%s", self.placeholder)
        return self.connection.execute(sql, parameters)

    def outcome(self, step):
        try:
            cursor = self.run(step)
            found = self.result(step, cursor)
        except Exception as error:
            if self.is_dead(error):
                raise NativeCrash(step.sql) from error
            return "error", world.category(error), str(error)
        if step.kind != "query":
            self.log.append(step)
        if step.kind == "ddl":
            self.committed = len(self.log)
        return found

    def is_dead(self, error):
        return False

    def result(self, step, cursor):
        if cursor.description is None:
            return "count", cursor.rowcount
        return _rows(step, cursor)

    def undo(self):
        """Take back the last statement."""
        self._rebuild(len(self.log) - 1)
        self.committed = min(self.committed, len(self.log))

    def event(self, kind):
        if kind in ("commit", "reopen"):
            self.committed, self.savepoint = len(self.log), None
        elif kind == "savepoint":
            self.savepoint = len(self.log)
        elif kind == "rollback":
            self._rebuild(self.committed)
            self.savepoint = None
        elif kind == "rollback to" and self.savepoint is not None:
            self._rebuild(self.savepoint)

    def _rebuild(self, length):
        if length == len(self.log):
            return
        self.log = self.log[:length]
        self.open()
        for step in self.log:
            self.run(step)

    def content(self, tables, *, as_text=False):
        return _content(self.connection.execute, tables, self.text, as_text=as_text)

    text = "VARCHAR"


class _BareDuckDB(_Bare):
    placeholder = "?"
    schemas = 0

    def open(self):
        if self.connection is None:
            self.connection = duckdb.connect(config={"threads": 1})
        # Faster than to connect again.
        self.connection.execute(f"CREATE SCHEMA b{self.schemas + 1}")
        self.connection.execute(f"USE b{self.schemas + 1}")
        self.connection.execute(f"DROP SCHEMA IF EXISTS b{self.schemas} CASCADE")
        self.schemas += 1

    def result(self, step, cursor):
        if step.kind == "query" or "RETURNING" in step.sql:
            return _rows(step, cursor)
        found = cursor.fetchall() if cursor.description else []
        return "count", found[0][0] if found and step.kind == "change" else -1


class _BarePostgreSQL(_Bare):
    text = "TEXT"

    def open(self):
        if self.connection is None:
            server = psycopg.connect(self.place, autocommit=True)
            with suppress(psycopg.Error):
                server.execute("CREATE DATABASE bare")
            server.close()
            url = in_database(self.place, "bare")
            self.connection = psycopg.connect(url, autocommit=True)
            self.connection.prepare_threshold = None
            tolerate(self.connection)
        self.connection.execute("DROP SCHEMA IF EXISTS public CASCADE")
        self.connection.execute("CREATE SCHEMA public")
        for sql in kinds.SETUP["postgresql"]:
            self.connection.execute(sql)

    def run(self, step):
        if not step.moves:
            return super().run(step)
        # By default it checks keys row by row, in the order in which it meets them;
        # a key that is referenced, or that ON CONFLICT names, cannot be deferrable.
        try:
            return super().run(step)
        except psycopg.errors.UniqueViolation:
            return self._checked_at_the_end(step)

    def _checked_at_the_end(self, step):
        found = self.connection.execute(
            "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE conrelid = to_regclass(%s) AND contype IN ('p', 'u')",
            (step.moves,),
        ).fetchall()
        referenced = self.connection.execute(
            "SELECT count(*) FROM pg_constraint WHERE confrelid = to_regclass(%s)",
            (step.moves,),
        ).fetchone()
        with self.connection.transaction():
            if referenced != (0,):
                return super().run(step)
            for name, definition in found:
                self.connection.execute(
                    f"ALTER TABLE {step.moves} DROP CONSTRAINT {name}"
                )
                self.connection.execute(
                    f"ALTER TABLE {step.moves} ADD CONSTRAINT {name} {definition} DEFERRABLE"
                )
            cursor = super().run(step)
            result = cursor.fetchall() if cursor.description else None
            for name, definition in found:
                self.connection.execute(
                    f"ALTER TABLE {step.moves} DROP CONSTRAINT {name}"
                )
                self.connection.execute(
                    f"ALTER TABLE {step.moves} ADD CONSTRAINT {name} {definition}"
                )
        return _Fetched(cursor, result)


class _Fetched:
    def __init__(self, cursor, rows):
        self.description = None if rows is None else cursor.description
        self.rowcount = cursor.rowcount
        self._rows = rows

    def fetchmany(self, count):
        return self._rows[:count]


class _BareMonetDB(_Bare):
    text = "CLOB"

    def open(self):
        self.close()
        empty_monetdb(self.place)
        self.connection = NativeMonetDB(self.place)

    def is_dead(self, error):
        text = str(error)
        return not isinstance(error, pymonetdb.Error) or "closed connection" in text

    def result(self, step, cursor):
        if step.kind == "query" and cursor.description is None:
            return SILENT
        return super().result(step, cursor)


_BARE = {"duckdb": _BareDuckDB, "postgresql": _BarePostgreSQL, "monetdb": _BareMonetDB}


def _rows(step, cursor):
    rows = cursor.fetchmany(MOST_ROWS + 1)
    names = [column[0].replace("\\", "").strip('"') for column in cursor.description]
    # MonetDB numbers results without a name, parameters among them.
    names = [_NUMBERED.sub("%", name) for name in names]
    return "rows", names, world.compared(rows, ordered=step.ordered), len(rows)


def _content(execute, tables, text, *, as_text=False):
    found = {}
    for table in tables:
        what = "*"
        if as_text:
            what = ", ".join(f"CAST({name} AS {text})" for name in table.names)
        rows = execute(f"SELECT {what} FROM {table.name}").fetchall()
        found[table.name] = sorted(repr(_exact(row)) for row in rows)
    return found


def _exact(value):
    """A value to its last digit; equal moments of one instant are alike."""
    if isinstance(value, (list, tuple)):
        return tuple(_exact(v) for v in value)
    return value


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
            self.bares[oracle] = _BARE[oracle](self.places[f"bare {oracle}"])
        self.bares[oracle].reset()
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

    def episode(self, seed, number, tell=lambda: None):
        """Run an episode: its steps, and a finding or None."""
        episode = Episode(self.engine, seed, number)
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
        for module in (changes, insert, change):
            module.BUFFERED_ROWS = episode.buffered
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
        finally:
            for module in (changes, insert, change):
                module.BUFFERED_ROWS = 2000

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
        self.count(expected[0])
        if expected[0] == "error":
            if found[0] != "error":
                return False, self._finding("accepts", step, found, expected)
            # A category may stand for several.
            if not expected[1] == found[1]:  # noqa: SIM201
                return False, self._finding("other error", step, found, expected)
            return False, None
        if found[0] == "error":
            return False, self._finding("fails", step, found, expected)
        if step.kind == "ddl":
            if step.before is not None:
                self.tables.pop(step.before.name)
            if step.after is not None:
                self.tables[step.after.name] = step.after
            return True, None
        if found != expected and not self._may_differ(step, found, expected):
            return True, self._finding("differs", step, found, expected)
        return True, None

    def _may_differ(self, step, found, expected):
        # DuckDB counts a row once for each row that it is joined with, or once.
        joined = " FROM " in step.sql and step.sql.startswith("UPDATE")
        return self.engine == "duckdb" and found[0] == expected[0] == "count" and joined

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def _finding(self, what, step, found, expected):
        return Finding(what, step.sql, _shown(found), _shown(expected))

    def _through_tique(self, step):
        try:
            cursor = self.connection.execute(step.sql, step.parameters)
            if cursor.description is None:
                count = cursor.rowcount if step.kind == "change" else -1
                return "count", count
            return _rows(step, cursor)
        except tique.NotSupportedError as error:
            reason = _PLACE.sub("", str(error).split("\n")[0])
            return "refused", reason[:160]
        except tique.Error as error:
            return "error", world.category(error), f"{type(error).__name__}: {error}"

    def _compare(self, when):
        tables = list(self.tables.values())
        try:
            found = _content(self.connection.execute, tables, self.bare.text)
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
        if self.engine != self.bare_engine:
            return None
        tables = list(self.tables.values())
        found = self._stored(tables)
        for name, rows in self.bare.content(tables, as_text=True).items():
            if found[name] != rows:
                return Finding("storage differs", "end", *_changed(found[name], rows))
        return None

    @property
    def bare_engine(self):
        return next(name for name, kind in _BARE.items() if isinstance(self.bare, kind))

    def _stored(self, tables):
        if self.engine == "duckdb":
            native = duckdb.connect(self.url.removeprefix("duckdb:///"))
        elif self.engine == "postgresql":
            native = psycopg.connect(self.url, autocommit=True)
            tolerate(native)
        else:
            native = NativeMonetDB(self.url)
        try:
            return _content(native.execute, tables, self.bare.text, as_text=True)
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


def minimised(trial, episode, steps, finding, tell=lambda: None, *, most=100):
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
