"""A few transactions as a text: the lines of ``programs.txt``.

A program has a name, in a line that begins with ``==``, and steps, one a line:

    1: SELECT sum(v) FROM item => 30    a transaction's statement, and its rows; the
                                        transaction begins with the first one
    1: DELETE FROM item => 2 rows       the number of rows that it has changed
    1: INSERT … => error 23505          it fails, and the transaction goes on
    1: commit                           or rollback
    1: refused                          its commit is refused: what it saw has changed
    0: SELECT …                         a transaction of its own, in autocommit
    0: checkpoint                       versions are folded into storage

Rows are written with a blank between values and a comma between rows, ``none`` is no row.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import tique

if TYPE_CHECKING:
    from collections.abc import Callable

TABLES = {
    "item": (
        "(id INTEGER PRIMARY KEY, class INTEGER, v INTEGER, w INTEGER, "
        "code INTEGER UNIQUE)",
        "(1, 1, 10, 0, 101), (3, 2, 100, 0, 103)",
        "(2, 1, 20, 0, 102), (4, 2, 200, 0, 104)",
    ),
    "loose": ("(class INTEGER, v INTEGER)", "(1, 10), (2, 100)", "(1, 20), (2, 200)"),
    "doctor": (
        "(name VARCHAR(10) PRIMARY KEY, shift INTEGER, on_call INTEGER)",
        "('alice', 1, 1), ('carol', 2, 1)",
        "('bob', 1, 1), ('dave', 2, 0)",
    ),
    "account": (
        "(owner VARCHAR(10), kind VARCHAR(10), balance INTEGER, "
        "PRIMARY KEY (owner, kind))",
        "('kevin', 'saving', 500), ('alan', 'checking', 0)",
        "('kevin', 'checking', 500), ('alan', 'saving', 0)",
    ),
    "control": ("(id INTEGER PRIMARY KEY, batch INTEGER)", "(1, 1)", None),
    "receipt": (
        "(id INTEGER PRIMARY KEY, batch INTEGER, amount INTEGER)",
        "(1, 1, 10)",
        "(2, 1, 20)",
    ),
    "dot": (
        "(id INTEGER PRIMARY KEY, color VARCHAR(10))",
        "(1, 'red'), (2, 'yellow'), (3, 'blue')",
        "(4, 'red'), (5, 'yellow'), (6, 'blue')",
    ),
    "parent": ("(id INTEGER PRIMARY KEY, v INTEGER)", "(1, 5)", "(2, 5)"),
    "child": (
        "(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parent (id), v INTEGER)",
        "(1, 1, 0)",
        None,
    ),
    "orphan": (
        "(id INTEGER PRIMARY KEY, parent INTEGER, v INTEGER)",
        "(1, 1, 0)",
        None,
    ),
    "reservation": (
        "(id INTEGER PRIMARY KEY, room INTEGER, starts INTEGER, ends INTEGER)",
        "(1, 101, 1000, 1100)",
        "(2, 101, 1400, 1500), (3, 102, 1000, 1500)",
    ),
    "job": (
        "(id INTEGER PRIMARY KEY, state INTEGER, result INTEGER)",
        "(1, 1, NULL), (2, 0, NULL)",
        "(3, 0, NULL), (4, 0, NULL)",
    ),
}
"""Each table's columns, and the rows that are in storage and in recent versions."""

_STEP = re.compile(r"(\d): (.*?)(?: => (.*))?")


class Step(NamedTuple):
    """What one transaction does."""

    number: int
    statement: str
    result: str | None
    line: str


class Program(NamedTuple):
    """What several transactions do."""

    name: str
    steps: list[Step]

    @property
    def tables(self) -> list[str]:
        """The tables that it names, and that those have references to."""
        words = {word for step in self.steps for word in _words(step.statement)}
        words |= {
            word for name in words & {*TABLES} for word in _words(TABLES[name][0])
        }
        return [name for name in TABLES if name in words]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def programs() -> list[Program]:
    """The programs of the file."""
    found: list[Program] = []
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        if line.startswith("== "):
            found.append(Program(line[3:], []))
        elif line and not line.startswith("#"):
            step = _STEP.fullmatch(line)
            assert step, line
            number, statement, result = step.groups()
            found[-1].steps.append(Step(int(number), statement, result, line))
    return found


def create(connection: tique.Connection) -> None:
    """Create all tables, empty."""
    for name, (columns, *_) in TABLES.items():
        connection.execute(f"CREATE TABLE {name} {columns}")
    connection.commit()


def fill(connection: tique.Connection, tables: list[str]) -> None:
    """Begin anew: some rows are in storage, and some are recent versions."""
    for name, (columns, *_) in reversed(TABLES.items()):
        if {name, *_words(columns)} & {*tables}:
            connection.execute(f"DELETE FROM {name}")
    for name in tables:
        connection.execute(f"INSERT INTO {name} VALUES {TABLES[name][1]}")
    connection.commit()
    connection.checkpoint()
    for name in tables:
        if rows := TABLES[name][2]:
            connection.execute(f"INSERT INTO {name} VALUES {rows}")
    connection.commit()


def play(program: Program, connect: Callable[[int], tique.Connection]) -> None:
    """Play a program, with a connection per transaction."""
    connections: dict[int, tique.Connection] = {}
    for step in program.steps:
        if step.number not in connections:
            connections[step.number] = connect(step.number)
        try:
            _play(step, connections[step.number])
        except (AssertionError, tique.Error, pytest.fail.Exception) as failure:
            failure.add_note(f"at {step.line!r} of {program.name!r}")
            raise


def _play(step: Step, connection: tique.Connection) -> None:
    if step.statement == "refused":
        with pytest.raises(tique.SerializationError) as caught:
            connection.commit()
        assert caught.value.sqlstate == "40001"
    elif step.statement in ("commit", "rollback", "checkpoint"):
        getattr(connection, step.statement)()
    elif step.result is None:
        connection.execute(step.statement)
    elif step.result.startswith("error "):
        with pytest.raises(tique.Error) as caught:
            connection.execute(step.statement)
        assert caught.value.sqlstate == step.result.removeprefix("error ")
    elif found := re.fullmatch(r"(\d+) rows?", step.result):
        assert connection.execute(step.statement).rowcount == int(found[1])
    else:
        rows = connection.execute(step.statement).fetchall()
        told = ", ".join(" ".join(map(str, row)) for row in rows) or "none"
        assert told == step.result
