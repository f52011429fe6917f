"""Runs statements through tique, in a process that may die of them.

Before each it prints its number, after each failure the failure: a line of JSON each.
The last line counts outcomes.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import duckdb
import psycopg
import pymonetdb

import tique
from tests.differential import world
from tests.fuzz.mutations import statement
from tests.plugins import engine as engines
from tests.plugins.monetdb import connect_natively
from tests.plugins.monetdb import empty as empty_monetdb
from tests.plugins.postgresql import empty as empty_postgresql
from tests.rewriter import monetdb_tables, postgresql_tables, tables

SECONDS = 2.0
_ATTEMPTS = 3
_OWN = (
    "UPDATE account SET balance = balance + 1 WHERE id > 2",
    "DELETE FROM stock WHERE item = 2",
    "INSERT INTO event VALUES (3, 'own')",
)
_SETUPS = {
    "duckdb": tables.SETUP,
    "postgresql": postgresql_tables.SETUP,
    "monetdb": ";".join(monetdb_tables.SETUP),
}
_KINDS = {
    "duckdb": engines.DuckDB,
    "postgresql": engines.PostgreSQL,
    "monetdb": engines.MonetDB,
}
_LASTING = ("CREATE", "DROP", "ALTER", "TRUNCATE", "COMMIT", "END")


class World:
    """Small tables of which some rows are stored, some recent."""

    def __init__(self, engine, place):
        self.engine = engine
        self.place = place
        self.connection = None
        self.renew()

    def renew(self):
        if self.connection is not None:
            with suppress(tique.Error):
                self.connection.close()
        url = _emptied(self.engine, self.place)
        self.connection = tique.connect(url, checkpoint="manual")
        kind = _KINDS[self.engine]
        inserts = []
        for sql in _SETUPS[self.engine].split(";"):
            if sql.strip().startswith("INSERT"):
                inserts.append(sql)
            elif sql.strip() and "CREATE SCHEMA" not in sql:
                self.execute(sql)
        shown = _Shown(kind)
        world.create(shown, self)
        for number, sql in enumerate(inserts):
            self.execute(sql)
            if number == len(inserts) // 2:
                self._fill(shown, range(2))
                self.connection.commit()
                self.connection.checkpoint()
        self._fill(shown, range(2, 4))
        self.execute("DELETE FROM account WHERE id = 1")
        self.execute("UPDATE stock SET quantity = 8 WHERE item = 1")
        self.connection.commit()

    def _fill(self, shown, numbers):
        for table, rows in world.rows_on(shown).items():
            for row in (rows[i] for i in numbers):
                marks = ", ".join(["%s"] * len(row))
                self.execute(f"INSERT INTO {table} VALUES ({marks})", row)

    def execute(self, sql, parameters=None):
        """Run a statement that is none of those under test."""
        # A world may take minutes where others use the machine.
        os.write(1, b"...\n")
        self.connection.execute(sql, parameters)

    def own(self):
        """The transaction writes before it is asked."""
        try:
            for sql in _OWN:
                self.execute(sql)
        except tique.Error:
            # An earlier statement was a commit.
            self.renew()


class _Shown:
    """The part of a test's engine that ``world.create`` needs."""

    def __init__(self, kind):
        self.name = kind.name
        self.lacks = kind.lacks
        self.check = lambda condition: f"CHECK ({condition})" if kind.has_checks else ""


def _emptied(engine, place):
    """Empty the database, but for a schema; its URL."""
    if engine == "duckdb":
        for file in Path(place).parent.glob(f"{Path(place).name}*"):
            file.unlink()
        with closing(duckdb.connect(place)) as connection:
            connection.execute("CREATE SCHEMA other")
        return f"duckdb:///{place}"
    empty = empty_monetdb if engine == "monetdb" else empty_postgresql
    empty(place)
    if engine == "monetdb":
        with closing(connect_natively(place)) as connection:
            connection.cursor().execute("CREATE SCHEMA other")
    else:
        with closing(psycopg.connect(place, autocommit=True)) as connection:
            connection.execute("CREATE SCHEMA other")
    return place


def attempt(connection, sql, parameters):
    """Run a statement: the kind of its outcome, and a finding or None."""
    try:
        cursor = connection.execute(sql, parameters)
        if cursor.description is not None:
            cursor.fetchmany(1000)
        cursor.close()
    except tique.InternalError as error:
        return "InternalError", "".join(traceback.format_exception(error))
    except tique.Error as error:
        unread = getattr(error, "sqlstate", None) == "42601"
        return "syntax" if unread else type(error).__name__, None
    except Exception as error:
        return "other exception", "".join(traceback.format_exception(error))
    return "done", None


def is_silent_natively(engine, place, sql, parameters):
    """Whether MonetDB itself gives no result, and so is to blame for an InternalError."""
    if engine != "monetdb" or parameters:
        return False
    with closing(connect_natively(place, autocommit=False)) as connection:
        cursor = connection.cursor()
        try:
            cursor.execute(sql if parameters is None else sql.replace("%%", "%"))
        except pymonetdb.Error:
            return False
        # It has a number of rows that were touched for a change.
        return cursor.description is None and cursor.rowcount == -1


def main(engine, place, seed, start, stop):
    counts = Counter()
    world_ = World(engine, place)
    # The embedded engine's threads are this process's.
    clock = time.process_time if engine == "duckdb" else time.monotonic
    for number in range(start, stop):
        sql, parameters = statement(engine, seed, number)
        os.write(1, b"@%d\n" % number)
        if number % 4 == 0:
            world_.own()
        begin = clock()
        kind, finding = attempt(world_.connection, sql, parameters)
        seconds = [clock() - begin]
        if kind == "InternalError" and is_silent_natively(
            engine, place, sql, parameters
        ):
            kind, finding = "silent natively", None
        counts[kind] += 1
        # The time of another process's work depends on the machine's load.
        load = 1 if engine == "duckdb" else os.getloadavg()[0] / (os.cpu_count() or 1)
        most = SECONDS * max(1, load)
        while seconds[-1] > most and finding is None:
            # On a busy machine once is never.
            with suppress(tique.Error):
                world_.connection.rollback()
            begin = clock()
            attempt(world_.connection, sql, parameters)
            seconds.append(clock() - begin)
            if len(seconds) == _ATTEMPTS and min(seconds) > most:
                finding = f"took {min(seconds):.1f} s at least"
            elif len(seconds) == _ATTEMPTS:
                break
        if finding is not None:
            line = json.dumps(
                {
                    "number": number,
                    "sql": sql,
                    "parameters": repr(parameters)[:2000],
                    "what": finding,
                }
            )
            os.write(1, line.encode() + b"\n")
        lasting = sql.lstrip().upper().startswith(_LASTING)
        if (lasting and kind == "done") or not _goes_on(world_.connection, kind):
            counts["renewed"] += 1
            world_.renew()
    os.write(1, json.dumps({"counts": counts}).encode() + b"\n")
    world_.connection.close()


def _goes_on(connection, kind):
    """Go back to the state before; whether the database can still be asked."""
    try:
        connection.rollback()
        if kind in ("done", "syntax", "ProgrammingError", "NotSupportedError"):
            return True
        connection.execute("SELECT count(*) FROM account").fetchall()
        connection.rollback()
    except tique.Error:
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
