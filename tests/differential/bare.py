"""Bare engines, which give the right answers; what they did can be taken back.

PostgreSQL does that by itself. DuckDB's transactions and MonetDB's end with their first
error, and DuckDB's know no savepoints: there every statement is committed, and going back
is to do again, on an empty schema, all statements that are to last. Where these have become
many, copies of the tables take the place of those that are committed.
"""

from __future__ import annotations

import re
from contextlib import suppress

import duckdb
import psycopg
import pymonetdb

from tests.differential import kinds, world
from tests.plugins.engine import NativeMonetDB
from tests.plugins.monetdb import empty as empty_monetdb
from tests.plugins.postgresql import in_database
from tique_backends.postgresql.sessions.connection import tolerate

_NUMBERED = re.compile(r"^%\d+$")
MOST_ROWS = 3000
"""Larger results are not asked for through tique."""
SILENT = ("silent",)
"""MonetDB gives neither a result nor an error to some queries (its README)."""
_MANY = 40
"""Statements after which tables are copied, so that these need not be done again."""


class NativeCrash(Exception):
    """The bare engine died of a statement."""


class NativeChange(Exception):
    """The bare engine refuses, on the same rows, what it did before."""


class Bare:
    """A bare engine's database; ``engine`` is its name."""

    engine: str
    placeholder = "%s"
    text = "VARCHAR"

    def __init__(self, place):
        self.place = place
        self.connection = None

    def begin_again(self):
        """Have an empty database."""
        raise NotImplementedError

    def undo(self):
        """Take back the last statement."""
        raise NotImplementedError

    def again(self, step, *, was_done):
        """Run the last statement once more, on new tables with the same rows if it can be."""
        raise NotImplementedError

    def event(self, kind):
        """A commit, a rollback, a savepoint …; others have no effect."""
        raise NotImplementedError

    def close(self):
        with suppress(Exception):
            self.connection.close()

    def run(self, step):
        sql, parameters = step.sql, step.parameters
        if parameters is not None:
            sql = sql.replace("%s", self.placeholder)
        return self.connection.execute(sql, parameters)

    def outcome(self, step):
        """Run a statement: rows, a count of rows, or an error."""
        try:
            cursor = self.run(step)
            return self.result(step, cursor)
        except Exception as error:
            if self.is_dead(error):
                raise NativeCrash(step.sql) from error
            return "error", world.category(error), str(error)

    def is_dead(self, error):
        return False

    def result(self, step, cursor):
        if cursor.description is None:
            return "count", cursor.rowcount
        return answer(step, cursor)

    def breaks_keys(self, table):
        """Whether rows of a table have one key."""
        return any(
            self.connection.execute(
                f"SELECT count(*) FROM {table.name} WHERE "
                f"{' AND '.join(f'{name} IS NOT NULL' for name in key)} "
                f"GROUP BY {', '.join(key)} HAVING count(*) > 1"
            ).fetchall()
            for key in (table.key, *table.unique)
            if key
        )

    def content(self, tables, *, as_text=False):
        return content(self.connection.execute, tables, self.text, as_text=as_text)


class _Repeating(Bare):
    """Takes back by doing again.

    There are copies of the tables that ``definitions`` make; ``log`` came afterwards.
    """

    def __init__(self, place):
        super().__init__(place)
        self.schemas = 0
        self.connect()
        self._forget()

    def connect(self):
        raise NotImplementedError

    def enter(self, schema):
        """Let this be the schema of names without one."""
        raise NotImplementedError

    def _forget(self):
        self.definitions = []
        self.log, self.committed, self.savepoint = [], 0, None

    def begin_again(self):
        self._forget()
        self._empty()

    def _empty(self):
        self._make_schema(f"b{self.schemas + 1}")
        self.enter(f"b{self.schemas + 1}")
        self.connection.execute(f"DROP SCHEMA IF EXISTS b{self.schemas} CASCADE")
        self.schemas += 1

    def _make_schema(self, name):
        self.connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
        self.connection.execute(f"CREATE SCHEMA {name}")

    def outcome(self, step):
        found = super().outcome(step)
        if step.kind != "query" and found[0] != "error":
            self.log.append(step)
        return found

    def undo(self):
        self._go_back(len(self.log) - 1)

    def event(self, kind):
        if kind in ("commit", "reopen"):
            if len(self.log) > _MANY:
                self._copy()
            self.committed, self.savepoint = len(self.log), None
        elif kind == "savepoint":
            self.savepoint = len(self.log)
        elif kind == "rollback":
            self._go_back(self.committed)
            self.savepoint = None
        elif kind == "rollback to" and self.savepoint is not None:
            self._go_back(self.savepoint)

    def again(self, step, *, was_done):
        if was_done and step.kind != "query":
            self.undo()
        made = [*self.definitions, *_definitions(self.log)]
        # MonetDB takes what an index begins with for unique.
        made = [each for each in made if not each.sql.startswith("CREATE INDEX")]
        self._make_schema("again")
        self.enter("again")
        for definition in made:
            self.run(definition)
        self._fill(_tables(made), f"b{self.schemas}")
        found = super().outcome(step)
        self.enter(f"b{self.schemas}")
        return found

    def _copy(self):
        self.definitions += _definitions(self.log)
        self.log = []
        self._make_schema("copies")
        for name in _tables(self.definitions):
            self.connection.execute(
                f"CREATE TABLE copies.{name} AS SELECT * FROM {name}"
            )

    def _fill(self, names, schema):
        for name in names:
            self.connection.execute(f"INSERT INTO {name} SELECT * FROM {schema}.{name}")

    def _go_back(self, length):
        if length == len(self.log):
            return
        self.log = self.log[:length]
        self._empty()
        for step in self.definitions:
            self.run(step)
        self._fill(_tables(self.definitions), "copies")
        for step in self.log:
            try:
                self.run(step)
            except Exception as error:
                raise NativeChange(step.sql) from error


def _definitions(steps):
    return [step for step in steps if step.kind == "ddl"]


def _tables(definitions):
    """The names of the tables that there are after these."""
    names = []
    for step in definitions:
        if step.before is not None:
            names.remove(step.before.name)
        if step.after is not None:
            names.append(step.after.name)
    return names


class BareDuckDB(_Repeating):
    """DuckDB in memory."""

    engine = "duckdb"
    placeholder = "?"

    def connect(self):
        self.connection = duckdb.connect(config={"threads": 1})

    def enter(self, schema):
        self.connection.execute(f"USE {schema}")

    def result(self, step, cursor):
        if step.kind == "query" or "RETURNING" in step.sql:
            return answer(step, cursor)
        found = cursor.fetchall() if cursor.description else []
        return "count", found[0][0] if found and step.kind == "change" else -1


class BareMonetDB(_Repeating):
    """A MonetDB server's database."""

    engine = "monetdb"
    text = "CLOB"

    def connect(self):
        empty_monetdb(self.place)
        self.connection = NativeMonetDB(self.place)

    def enter(self, schema):
        self.connection.execute(f"SET SCHEMA {schema}")

    def is_dead(self, error):
        text = str(error)
        return not isinstance(error, pymonetdb.Error) or "closed connection" in text

    def result(self, step, cursor):
        if step.kind == "query" and cursor.description is None:
            return SILENT
        return super().result(step, cursor)


class BarePostgreSQL(Bare):
    """A PostgreSQL server's database, in transactions with savepoints."""

    engine = "postgresql"
    text = "TEXT"

    def __init__(self, place):
        super().__init__(place)
        with psycopg.connect(place, autocommit=True) as server, suppress(psycopg.Error):
            server.execute("CREATE DATABASE bare")
        url = in_database(place, "bare")
        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.prepare_threshold = None
        tolerate(self.connection)
        self._ended()

    def _ended(self):
        self.is_open = self.can_undo = self.has_savepoint = False

    def begin_again(self):
        self.event("rollback")
        self.connection.execute("DROP SCHEMA IF EXISTS public CASCADE")
        self.connection.execute("CREATE SCHEMA public")
        for sql in kinds.SETUP["postgresql"]:
            self.connection.execute(sql)

    def _open(self):
        """Begin a transaction, or forget how to take back the last statement."""
        if not self.is_open:
            self.connection.execute("BEGIN")
        elif self.can_undo:
            self.connection.execute("RELEASE SAVEPOINT statement")
        self.is_open, self.can_undo = True, False

    def outcome(self, step):
        self._open()
        self.connection.execute("SAVEPOINT statement")
        self.can_undo = True
        found = super().outcome(step)
        if found[0] == "error":
            self.undo()
        return found

    def undo(self):
        self.connection.execute("ROLLBACK TO SAVEPOINT statement")

    def again(self, step, *, was_done):
        if was_done:
            self.undo()
        return self.outcome(step)

    def event(self, kind):
        if kind in ("commit", "reopen", "rollback"):
            if self.is_open:
                self.connection.execute("ROLLBACK" if kind == "rollback" else "COMMIT")
            self._ended()
        elif kind == "savepoint":
            self._open()
            self.connection.execute("SAVEPOINT s")
            self.has_savepoint = True
        elif kind == "rollback to" and self.has_savepoint:
            self._open()
            self.connection.execute("ROLLBACK TO SAVEPOINT s")

    def run(self, step):
        # By default it checks keys row by row, in the order in which it meets them;
        # a key that is referenced, or that ON CONFLICT names, cannot be deferrable.
        try:
            return super().run(step)
        except psycopg.errors.UniqueViolation:
            if not step.moves:
                raise
            self.undo()
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
        if referenced != (0,):
            return super().run(step)
        for name, definition in found:
            self._set_constraint(step.moves, name, f"{definition} DEFERRABLE")
        cursor = super().run(step)
        result = cursor.fetchall() if cursor.description else None
        for name, definition in found:
            self._set_constraint(step.moves, name, definition)
        return _Fetched(cursor, result)

    def _set_constraint(self, table, name, definition):
        self.connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        self.connection.execute(
            f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}"
        )


class _Fetched:
    def __init__(self, cursor, rows):
        self.description = None if rows is None else cursor.description
        self.rowcount = cursor.rowcount
        self._rows = rows

    def fetchmany(self, count):
        return self._rows[:count]


BARE = {kind.engine: kind for kind in (BareDuckDB, BareMonetDB, BarePostgreSQL)}


def answer(step, cursor):
    """A result: its names, its rows in a form to compare, and how many there are."""
    found = cursor.fetchmany(MOST_ROWS + 1)
    names = [column[0].replace("\\", "").strip('"') for column in cursor.description]
    # MonetDB numbers results without a name, parameters among them.
    names = [_NUMBERED.sub("%", name) for name in names]
    return "rows", names, world.compared(found, ordered=step.ordered), len(found)


def content(execute, tables, text, *, as_text=False):
    """The rows of tables, by name, to the last digit."""
    found = {}
    for table in tables:
        what = "*"
        if as_text:
            what = ", ".join(f"CAST({name} AS {text})" for name in table.names)
        made = execute(f"SELECT {what} FROM {table.name}").fetchall()
        found[table.name] = sorted(repr(_exact(row)) for row in made)
    return found


def _exact(value):
    """A value to its last digit; equal moments of one instant are alike."""
    if isinstance(value, (list, tuple)):
        return tuple(_exact(v) for v in value)
    return value
