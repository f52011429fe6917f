"""What it takes to fold changed rows of TPC-C's stock into storage."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import tique
from benchmarks.environment import (
    describe,
    durable_copy,
    loaded_database,
    prepare_work_directory,
    scratch_directory,
)
from benchmarks.measures import Spread, spread
from benchmarks.targets.duckdb_tique import database_url

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.tpcc.workload import TpccWorkload

WAYS = ("by key", "in one statement", "whole rows")
"""As TPC-C does it; by one UPDATE; by an upsert, which names all columns."""

_UPDATES_PER_COMMIT = 10
_READ = (
    "SELECT s_quantity, s_ytd, s_order_cnt FROM stock WHERE s_w_id = %s AND s_i_id = %s"
)
_UPDATE = (
    "UPDATE stock SET s_quantity = %s, s_ytd = %s, s_order_cnt = %s"
    " WHERE s_w_id = %s AND s_i_id = %s"
)
_CHANGED = "s_quantity = s_quantity % 91 + 10, s_ytd = s_ytd + 5, s_order_cnt = s_order_cnt + 1"


@dataclass(frozen=True, slots=True)
class FoldTimes:
    """Folds of so many keys that were changed in one of `WAYS`, in milliseconds.

    `cpu_ms` is of all threads: it tells more where others use the machine.
    """

    way: str
    keys: int
    fold_ms: Spread
    cpu_ms: Spread


@dataclass(frozen=True, slots=True)
class Folds:
    """All folds, and what was wrong afterwards."""

    environment: dict[str, object]
    rows: int
    rounds: int
    times: list[FoldTimes]
    failures: list[str]


def measure_folds(
    workload: TpccWorkload,
    directory: Path,
    *,
    keys: Sequence[int],
    rounds: int,
    history: str | None,
    progress: Callable[[str], None],
) -> Folds:
    """Time folds, each after an engine's checkpoint and of other keys.

    Parameters
    ----------
    workload : TpccWorkload
        Whose stock it is.
    directory : pathlib.Path
        Where the database is kept.
    keys : sequence of int
        How many keys are changed before a fold.
    rounds : int
        How often each fold is timed, in turns.
    history : str, optional
        The retention of the table's history, if it has one.
    progress : callable
        Called with each step.
    """
    items = workload.scale.items
    rows = workload.scale.warehouses * items
    if not 0 < max(keys) <= rows:
        raise ValueError(f"{max(keys)} keys: must be 1 to {rows}, the table's rows")
    prepare_work_directory(directory)
    environment = describe(directory)
    source = loaded_database(workload, directory)
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    changed = 0
    with scratch_directory(directory) as scratch:
        url = database_url(durable_copy(source, scratch))
        tique.adopt(url, tables=["stock"])
        with tique.connect(url, checkpoint="manual", history=history) as connection:
            for number in range(rounds):
                for count in keys:
                    for way in WAYS:
                        progress(f"round {number + 1}: {count} keys {way}")
                        chosen = Random(f"{number} {count} {way}").sample(  # noqa: S311
                            range(rows), count
                        )
                        pairs = [(k // items + 1, k % items + 1) for k in chosen]
                        _change(connection, way, pairs)
                        changed += count
                        found.setdefault((way, count), []).append(_fold(connection))
                        connection.checkpoint()
            ((sold,),) = connection.execute(
                "SELECT sum(s_order_cnt) FROM stock"
            ).fetchall()
    failures = (
        [] if sold == changed else [f"{changed} updates, of which {sold} are there"]
    )
    times = [
        FoldTimes(way, count, *map(spread, zip(*folds, strict=True)))
        for (way, count), folds in found.items()
    ]
    return Folds(environment, rows, rounds, times, failures)


def _change(
    connection: tique.Connection, way: str, keys: Sequence[tuple[int, int]]
) -> None:
    if way == "by key":
        for number, key in enumerate(keys):
            row = connection.execute(_READ, key).fetchone()
            assert row is not None
            stock, sold, orders = row
            values = (stock % 91 + 10, sold + 5, orders + 1)
            connection.execute(_UPDATE, (*values, *key))
            if number % _UPDATES_PER_COMMIT == 0:
                connection.commit()
    else:
        named = ", ".join(f"({warehouse}, {item})" for warehouse, item in keys)
        which = f"(s_w_id, s_i_id) IN (SELECT * FROM (VALUES {named}) AS k(w, i))"
        if way == "in one statement":
            connection.execute(f"UPDATE stock SET {_CHANGED} WHERE {which}")
        else:
            connection.execute(
                f"INSERT INTO stock SELECT * FROM stock WHERE {which} "
                "ON CONFLICT (s_w_id, s_i_id) DO UPDATE SET "
                f"{_CHANGED.replace('= s_', '= stock.s_')}"
            )
    connection.commit()


def _fold(connection: tique.Connection) -> tuple[float, float]:
    """The times of the fold alone: no log is pruned, nor is the engine's file written."""
    checkpointer = connection._database.checkpointer
    with checkpointer.paused(timeout=10):
        start, spent = perf_counter(), process_time()
        checkpointer.fold_all_stable()
        return (perf_counter() - start) * 1000, (process_time() - spent) * 1000
