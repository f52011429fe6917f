"""A script of statements, run natively and through tique in each of its states."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import duckdb

from tests.differential import world

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.plugins.engine import Engine

MODES = ("recent", "checkpoint", "reopened")
"""Rows are in caches, in storage, or come back from the log before every query."""

_QUERIES = ("SELECT", "WITH", "FROM", "(", "DESCRIBE", "SHOW", "SUMMARIZE", "PRAGMA")


def statements(script: str) -> list[str]:
    """The statements of a script: a paragraph each."""
    return [part.strip() for part in script.split("\n\n") if part.strip()]


def outcomes(connection: Any, script: Iterable[str]) -> list[Any]:
    """The results, or the kinds of errors, of statements that are committed each."""
    return [outcome(connection, sql) for sql in script]


def outcome(connection: Any, sql: str) -> Any:
    """The names and rows of one statement's result, or its error's kind."""
    try:
        cursor = connection.execute(sql)
        if not is_query(sql):
            return "done"
        names = [column[0] for column in cursor.description]
        return names, sorted(map(tuple, cursor.fetchall()), key=repr)
    except Exception as error:
        if isinstance(error, duckdb.DependencyException):
            # PEP 249 has no such class, and DuckDB gives it none.
            return "error", "OperationalError"
        return "error", world.category(error)


def is_query(sql: str) -> bool:
    """Whether a statement's rows count."""
    return sql.upper().startswith(_QUERIES)


def natively(engine: Engine, script: Iterable[str]) -> list[Any]:
    """The outcomes of a script without tique, in a database that is empty then."""
    try:
        return outcomes(engine.native(), script)
    finally:
        engine.begin_again()


def through_tique(engine: Engine, script: Iterable[str], mode: str) -> list[Any]:
    """The outcomes of a script through tique."""
    found = []
    connection = engine.connect(
        autocommit=True, checkpoint="manual", paramstyle="qmark"
    )
    for sql in script:
        if mode == "checkpoint":
            with suppress(Exception):
                connection.checkpoint()
        elif mode == "reopened" and is_query(sql):
            connection.close()
            connection = engine.connect(
                autocommit=True, checkpoint="manual", paramstyle="qmark"
            )
        found.append(outcome(connection, sql))
    return found


def check(engine: Engine, script: str, mode: str) -> None:
    """Hold a script's outcomes through tique against the native ones."""
    lines = statements(script)
    expected = natively(engine, lines)
    found = through_tique(engine, lines, mode)
    differing = [
        f"{sql}\n  natively: {one}\n  through tique: {other}"
        for sql, one, other in zip(lines, expected, found, strict=True)
        if one != other
    ]
    assert not differing, "\n" + "\n".join(differing)
