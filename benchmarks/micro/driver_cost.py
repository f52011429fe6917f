"""tique's own cost of a cached statement: everything except the engine's time."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from time import perf_counter
from typing import TYPE_CHECKING

import duckdb

import tique
from benchmarks.compare import latency_ms
from benchmarks.environment import (
    describe,
    prepare_work_directory,
    scratch_directory,
)
from benchmarks.targets.duckdb_tique import database_url

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = 100_000
CACHED = 1000
STATEMENTS_PER_TRANSACTION = 100
_QUERY = "SELECT balance FROM account WHERE id = %s"


@dataclass(frozen=True, slots=True)
class StatementTimes:
    """Percentiles in microseconds of execute() and fetchone() of a point SELECT.

    `driver_us` is `whole_us` less the time that tique waited for the engine, statement
    by statement. `engine_share` is the share of statements that reached the engine at
    all: where it is 0 tique answered from rows it held, and `driver_us` is the cost of
    that and not of a statement that the engine executes.
    """

    situation: str
    engine_share: float
    whole_us: dict[str, float]
    engine_us: dict[str, float]
    driver_us: dict[str, float]


@dataclass(frozen=True, slots=True)
class DriverCost:
    """Point SELECTs through tique and, for comparison, without it."""

    environment: dict[str, object]
    statements: int
    tique: list[StatementTimes]
    native_us: dict[str, float]


def measure_driver_cost(
    directory: Path, statements: int, progress: Callable[[str], None]
) -> DriverCost:
    """Run point SELECTs with an empty cache, with a filled one, and on keys seen before.

    No key occurs twice in the first two, so that rows which tique keeps from an earlier
    statement cannot stand in for the engine.

    Parameters
    ----------
    directory : pathlib.Path
        Where the database is kept.
    statements : int
        Number of SELECTs per measurement, at most half of `ROWS`.
    progress : callable
        Called with each step.
    """
    prepare_work_directory(directory)
    environment = describe(directory)
    random = Random(1)  # noqa: S311
    keys = random.sample(range(ROWS), 2 * statements)
    first_keys, other_keys = keys[:statements], keys[statements:]
    with scratch_directory(directory) as scratch:
        path = scratch / "account.duckdb"
        with duckdb.connect(str(path)) as database:
            database.execute(
                "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL)"
            )
            database.execute(
                "INSERT INTO account SELECT range, 0 FROM range(?)", [ROWS]
            )
            progress("native")
            native = _time_native(database, first_keys)
        url = database_url(path)
        tique.adopt(url)
        found = []
        with tique.connect(url, checkpoint="manual") as connection:
            progress("tique, empty cache")
            found.append(_time_tique(connection, first_keys, "empty cache"))
            with connection.cursor() as cursor:
                cursor.execute(
                    "UPDATE account SET balance = balance + 1 WHERE MOD(id, %s) = 0",
                    (ROWS // CACHED,),
                )
            connection.commit()
            for situation in (f"{CACHED} cached rows", "the same keys again"):
                progress(f"tique, {situation}")
                found.append(_time_tique(connection, other_keys, situation))
    return DriverCost(environment, statements, found, native)


def _time_native(
    database: duckdb.DuckDBPyConnection, keys: list[int]
) -> dict[str, float]:
    query = _QUERY.replace("%s", "?")
    times = []
    for position, key in enumerate(keys):
        if position % STATEMENTS_PER_TRANSACTION == 0:
            database.execute("BEGIN" if position == 0 else "COMMIT; BEGIN")
        start = perf_counter()
        database.execute(query, (key,)).fetchone()
        times.append(perf_counter() - start)
    database.execute("COMMIT")
    return _microseconds(times)


def _time_tique(
    connection: tique.Connection, keys: list[int], situation: str
) -> StatementTimes:
    """Time statements within transactions that end outside of the timed stretches."""
    whole, engine = [], []
    with connection.cursor() as cursor:
        for position, key in enumerate(keys):
            if position % STATEMENTS_PER_TRANSACTION == 0:
                connection.commit()
            engine_before = connection.info.engine_seconds
            start = perf_counter()
            cursor.execute(_QUERY, (key,))
            cursor.fetchone()
            whole.append(perf_counter() - start)
            engine.append(connection.info.engine_seconds - engine_before)
    connection.commit()
    driver = [total - inside for total, inside in zip(whole, engine, strict=True)]
    return StatementTimes(
        situation,
        sum(inside > 0 for inside in engine) / len(engine),
        _microseconds(whole),
        _microseconds(engine),
        _microseconds(driver),
    )


def _microseconds(seconds: list[float]) -> dict[str, float]:
    return {name: value * 1000 for name, value in latency_ms(seconds).items()}
