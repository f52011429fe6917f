"""Runs the shapes of a seed through tique and natively, in a process that may die.

``python -m tests.fuzz.shapes_child FILE "one row" SEED START STOP``: storage has
``nothing``, ``one row`` or ``all but one`` of each table.
"""

from __future__ import annotations

import json
import os
import sys

import duckdb

import tique
from tests.differential.world import compared
from tests.fuzz.shapes import Shapes

ROWS = {
    "t": [(1, 0, 3), (2, 1, 1), (3, 1, None), (4, 2, 3), (5, 0, 2), (6, None, 0)],
    "u": [(2, 0, 1), (4, 1, 4), (6, 2, 2), (7, None, 7)],
    "b": [(1, 1, 1), (1, 1, 1), (3, 2, None), (None, 0, 2)],
}
STORED = {"nothing": 0, "one row": 1, "all but one": -1}
RUNS = 10


def create(execute):
    for table in ROWS:
        key = "" if table == "b" else " PRIMARY KEY"
        execute(f"CREATE TABLE {table} (id INTEGER{key}, g INTEGER, v INTEGER)")


def insert(execute, mark, rows):
    for table, row in rows:
        execute(f"INSERT INTO {table} VALUES ({mark}, {mark}, {mark})", row)


def main(path, stored, seed, start, stop):
    native = duckdb.connect()
    create(native.execute)
    whole = [(table, row) for table, rows in ROWS.items() for row in rows]
    insert(native.execute, "?", whole)
    connection = tique.connect(f"duckdb:///{path}", checkpoint="manual")
    create(connection.execute)
    kept = STORED[stored]
    halves = [(t, row) for t, rows in ROWS.items() for row in rows[:kept]]
    insert(connection.execute, "%s", halves)
    connection.commit()
    connection.checkpoint()
    rest = [
        (t, row) for t, rows in ROWS.items() for row in (rows[kept:] if kept else rows)
    ]
    insert(connection.execute, "%s", rest)
    connection.commit()
    for number in range(start, stop):
        sql = Shapes(f"{seed}:{number}").query()
        os.write(1, b"@%d\n" % number)
        expected = answer(native, sql)
        for _ in range(RUNS):
            found = answer(connection, sql.replace("%", "%%"))
            if found not in (expected, "refused"):
                line = {
                    "number": number,
                    "sql": sql,
                    "found": found,
                    "expected": expected,
                }
                os.write(1, json.dumps(line).encode() + b"\n")
                break
            if isinstance(found, str):
                break


def answer(connection, sql):
    """The rows, or that there was an error, of any kind."""
    parameters = () if isinstance(connection, tique.Connection) else None
    try:
        return compared(connection.execute(sql, parameters).fetchall())
    except tique.NotSupportedError:
        return "refused"
    except (tique.Error, duckdb.Error):
        return "error"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
