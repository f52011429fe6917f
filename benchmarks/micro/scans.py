"""Analytical queries while recent versions wait in the cache, against native ones."""

from __future__ import annotations

import time
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import duckdb

from benchmarks.environment import (
    describe,
    durable_copy,
    prepare_work_directory,
    scratch_directory,
)
from benchmarks.measures import Spread, spread
from benchmarks.targets import TIQUE_SUFFIX, target_class

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.targets.base import Cursor, Target

TABLES = ("invoice", "receipt")

_REST = 1.0
"""Seconds between the writes and the queries, which are asked in another form beside writers."""

QUERIES = {
    "aggregate": "SELECT COUNT(*), SUM(amount), MAX(amount) FROM invoice",
    "grouped": (
        "SELECT bucket, COUNT(*), SUM(amount) FROM invoice GROUP BY bucket ORDER BY bucket"
    ),
    "filter 0.3 %": (
        "SELECT id, amount FROM invoice WHERE bucket IN (17, 400, 801) ORDER BY id"
    ),
    "join": (
        "SELECT COUNT(*), SUM(invoice.amount + receipt.amount)"
        " FROM invoice JOIN receipt ON receipt.id = invoice.id"
    ),
}
"""`bucket` is spread evenly over 0 to 999."""


@dataclass(frozen=True, slots=True)
class ScanResult:
    """One query with one number of cached rows per table.

    `ratio` is of the medians, tique over native.
    """

    query: str
    cached_rows: int
    tique_ms: Spread
    native_ms: Spread
    ratio: float


@dataclass(frozen=True, slots=True)
class Scans:
    """All queries, and every answer that differed."""

    environment: dict[str, object]
    engine: str
    rows: int
    repetitions: int
    results: list[ScanResult]
    failures: list[str]


def measure_scans(
    directory: Path,
    *,
    engine: str,
    rows: int,
    cached: int,
    repetitions: int,
    progress: Callable[[str], None],
) -> Scans:
    """Time the queries with an empty cache and with a filled one.

    With an empty cache both sides read the same tables where the engine is a server:
    two servers take different times for the same statement.

    Parameters
    ----------
    directory : pathlib.Path
        Where the databases are kept.
    engine : str
        The target without tique.
    rows : int
        Rows of each table.
    cached : int
        Rows of each table that are updated, through tique and natively.
    repetitions : int
        How often each query runs on each side, in turns.
    progress : callable
        Called with each step.
    """
    if not 0 < cached <= rows:
        raise ValueError(f"{cached} cached rows: must be 1 to {rows}, the table's rows")
    prepare_work_directory(directory)
    environment = describe(directory)
    results: list[ScanResult] = []
    failures: list[str] = []
    with scratch_directory(directory) as scratch:
        progress("loading")
        source = scratch / "scans.duckdb"
        _load(source, rows)
        ours = target_class(engine + TIQUE_SUFFIX)(checkpoint="manual")  # type: ignore[call-arg]
        theirs = target_class(engine)()
        (scratch / "tique").mkdir()
        ours.prepare(durable_copy(source, scratch / "tique"))
        theirs.prepare(source)
        our_connection = ours.connect()
        our_cursor = our_connection.cursor()
        for cached_rows in (0, cached):
            native = theirs if cached_rows else _beside(ours, theirs)
            their_connection = native.connect()
            their_cursor = their_connection.cursor()
            if cached_rows:
                for connection, cursor in (
                    (our_connection, our_cursor),
                    (their_connection, their_cursor),
                ):
                    _update(cursor, rows // cached_rows)
                    connection.commit()
                theirs.compact(their_connection)
                time.sleep(_REST)
            for name, query in QUERIES.items():
                progress(f"{name}, {cached_rows} cached rows")
                results.append(
                    _time(
                        name, query, cached_rows, repetitions, our_cursor, their_cursor
                    )
                )
                our_answer = _answer(our_cursor, query)
                their_answer = _answer(their_cursor, query)
                our_connection.commit()
                their_connection.commit()
                if our_answer != their_answer:
                    failures.append(
                        f"{name} with {cached_rows} cached rows: tique answers"
                        f" {our_answer[:3]}, the engine {their_answer[:3]}"
                    )
            their_connection.close()
        our_connection.close()
        ours.close()
        theirs.close()
    return Scans(environment, engine, rows, repetitions, results, failures)


def _beside(ours: Target, theirs: Target) -> Target:
    """The engine by itself over tique's own tables; over others if they are embedded."""
    if not ours.is_server:
        return theirs
    beside = type(theirs)()
    beside.attach(ours.address())
    return beside


def _load(path: Path, rows: int) -> None:
    with duckdb.connect(str(path)) as connection:
        for table in TABLES:
            connection.execute(
                f"CREATE TABLE {table} (id INTEGER PRIMARY KEY,"
                " bucket INTEGER NOT NULL, amount BIGINT NOT NULL)"
            )
            connection.execute(
                f"INSERT INTO {table}"
                " SELECT range, range * 7919 % 1000, range * 104729 % 100003"
                " FROM range(?)",
                [rows],
            )
        connection.execute("CHECKPOINT")


def _update(cursor: Cursor, every: int) -> None:
    for table in TABLES:
        cursor.execute(f"UPDATE {table} SET amount = amount + 1 WHERE id % {every} = 0")


def _answer(cursor: Cursor, query: str) -> list[tuple[Any, ...]]:
    cursor.execute(query)
    return cursor.fetchall()


def _time(
    name: str,
    query: str,
    cached_rows: int,
    repetitions: int,
    our_cursor: Cursor,
    their_cursor: Cursor,
) -> ScanResult:
    times: tuple[list[float], list[float]] = ([], [])
    sides = ((our_cursor, times[0]), (their_cursor, times[1]))
    for repetition in range(-1, repetitions):
        for cursor, found in sides if repetition % 2 else sides[::-1]:
            start = perf_counter()
            _answer(cursor, query)
            if repetition >= 0:
                found.append((perf_counter() - start) * 1000)
    ours, theirs = spread(times[0]), spread(times[1])
    return ScanResult(name, cached_rows, ours, theirs, ours.median / theirs.median)
