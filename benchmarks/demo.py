"""`make demo`: TPC-C and analytical queries side by side, all of it through tique."""

from __future__ import annotations

import threading
import traceback
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import cycle
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rich.table import Table

from benchmarks.ch.queries import COLUMNS, QUERIES, SCANS
from benchmarks.compare import latency_ms, summarise
from benchmarks.environment import prepare_work_directory, scratch_directory
from benchmarks.report import (
    kinds_table,
    print_failures,
    progress,
    throughput_table,
)
from benchmarks.runner import measure
from benchmarks.targets.base import in_style
from benchmarks.tpcc import schema
from benchmarks.tpcc.generate import generate
from benchmarks.tpcc.workload import TpccWorkload

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from benchmarks.targets.base import Connection, ParameterStyle, Target
    from benchmarks.tpcc.rules import Scale

LOAD_BATCH = 20_000
"""Rows of one executemany and commit."""

_WARMUP = 1.0


def run_demo(
    target: Target,
    scale: Scale,
    directory: Path,
    console: Console,
    *,
    clients: int,
    seconds: float,
    seed: int,
) -> bool:
    """Load TPC-C through a target, run it beside Q1 and Q6, and print the results.

    Returns
    -------
    bool
        Whether no client failed and all consistency conditions hold.
    """
    prepare_work_directory(directory)
    workload = TpccWorkload(scale, seed)
    with scratch_directory(directory) as scratch:
        target.prepare(scratch / "demo.duckdb")
        try:
            with progress() as tell:
                start = perf_counter()
                tell("loading TPC-C")
                rows = load_through(target, scale, seed)
                loading = perf_counter() - start
                tell(f"running TPC-C with {clients} clients beside Q1 and Q6")
                with Analyst(target) as analyst:
                    found = measure(
                        target,
                        workload,
                        clients=clients,
                        seconds=seconds,
                        warmup=_WARMUP,
                    )
        finally:
            target.close()
    failures = found.failures + analyst.failures
    summary = summarise([found], workload.kinds)
    console.print(
        f"loaded {rows:,} rows of TPC-C ({scale.warehouses} warehouse) through"
        f" {target.name} in {loading:.1f} s"
    )
    console.print(throughput_table([summary], []))
    console.print(kinds_table([summary]))
    analyst.print(console)
    print_failures(failures, console)
    return not failures


def load_through(target: Target, scale: Scale, seed: int) -> int:
    """Create and fill the tables through a target's cursor; return the rows loaded."""
    connection = target.connect()
    cursor = connection.cursor()
    for table in schema.KEYS:
        cursor.execute(schema.create_table(table))
    connection.commit()
    loaded = 0
    for table, rows in generate(scale, seed):
        insert = _insert(table, rows.column_names, target.parameter_style)
        for batch in rows.to_batches(max_chunksize=LOAD_BATCH):
            values = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            cursor.executemany(insert, list(values))
            connection.commit()
        loaded += rows.num_rows
    connection.close()
    return loaded


def _insert(table: str, columns: list[str], style: ParameterStyle) -> str:
    values = ", ".join(["%s"] * len(columns))
    names = ", ".join(columns)
    return in_style(f"INSERT INTO {table} ({names}) VALUES ({values})", style)


@dataclass(slots=True)
class _Answer:
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


class Analyst:
    """A thread that asks Q1 and Q6 in turns for as long as its block lasts."""

    def __init__(self, target: Target) -> None:
        self._connection: Connection = target.connect()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="analyst", daemon=True)
        self._answers = {name: _Answer() for name in SCANS}
        self.failures: list[str] = []

    def __enter__(self) -> Analyst:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._connection.close()

    def print(self, console: Console) -> None:
        """Print how long the queries took and their last answers."""
        for name, answer in self._answers.items():
            times = latency_ms(answer.seconds)
            console.print(
                f"CH-benCHmark {name}: asked {len(answer.seconds)} times beside"
                f" the transactions, p50 {times['p50']:.1f} ms,"
                f" p99 {times['p99']:.1f} ms; last answer:"
            )
            table = Table()
            for heading in COLUMNS[name]:
                table.add_column(heading, justify="right")
            for row in answer.rows:
                table.add_row(*map(_shown, row))
            console.print(table)

    def _run(self) -> None:
        try:
            cursor = self._connection.cursor()
            for name in cycle(SCANS):
                if self._stopping.is_set():
                    break
                answer = self._answers[name]
                start = perf_counter()
                cursor.execute(QUERIES[name])
                answer.rows = cursor.fetchall()
                answer.seconds.append(perf_counter() - start)
                self._connection.commit()
        except Exception:
            self.failures.append(f"analyst failed: {traceback.format_exc()}")


def _shown(value: object) -> str:
    return f"{value:,.2f}" if isinstance(value, float | Decimal) else f"{value:,}"
