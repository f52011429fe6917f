"""What the workers of Citus are sent for a transaction and for a query, by their number.

Their ``pg_stat_statements`` count it, while there is one client and Citus' daemons are silent.
"""

from __future__ import annotations

import re
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.ch.analytics import Side, comparable
from benchmarks.ch.queries import QUERIES
from benchmarks.environment import (
    durable_copy,
    loaded_database,
    prepare_work_directory,
    scratch_directory,
)
from benchmarks.targets import baseline_of, target_class
from benchmarks.targets.citus_server import LoadedCitus
from benchmarks.targets.postgresql_server import connect_natively

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from benchmarks.ch.workload import ChWorkload

_SETTINGS = {
    "shared_preload_libraries": "citus,pg_stat_statements",
    "citus.recover_2pc_interval": "-1",
    "citus.distributed_deadlock_detection_factor": "-1",
}
_PATIENCE = "60s"
# BEGIN comes in one message with the transaction's number.
_SENT = (
    "SELECT coalesce(sum(calls), 0), coalesce(sum(rows), 0) FROM pg_stat_statements "
    "WHERE query !~ 'pg_stat_statements|assign_distributed_transaction_id'"
)
_Counts = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Sent:
    """What all workers together are sent for one thing, in the mean.

    `counts` are the statements, BEGIN and COMMIT among them; the rows that these returned, copied
    or changed; and milliseconds. `note` is about a query's plan, or why it failed.
    """

    target: str
    workers: int
    what: str
    counts: _Counts
    note: str


@dataclass(frozen=True, slots=True)
class Growth:
    """All that was counted, and every answer that differed."""

    workload: str
    transactions: int
    found: list[Sent]
    failures: list[str]


def measure_growth(
    workload: ChWorkload,
    directory: Path,
    *,
    names: Sequence[str],
    workers: Sequence[int],
    transactions: int,
    progress: Callable[[str], None],
) -> Growth:
    """Run the same on each target with each number of workers.

    Parameters
    ----------
    workload : ChWorkload
        The database.
    directory : pathlib.Path
        Where databases are kept.
    names : sequence of str
        Targets on Citus.
    workers : sequence of int
        Numbers of workers.
    transactions : int
        How many are counted; then come the queries, with their versions.
    progress : callable
        Called with each step.
    """
    prepare_work_directory(directory)
    progress(f"loading {workload.label}")
    database = loaded_database(workload, directory)
    found: list[Sent] = []
    failures: list[str] = []
    answers: dict[str, list[tuple[str, ...]]] = {}
    for name, number in ((name, number) for number in workers for name in names):
        progress(f"{name}, {number} workers")
        options = {} if baseline_of(name) is None else {"checkpoint": "manual"}
        target: Any = target_class(name)(**options)
        target.load = partial(LoadedCitus, workers=number, settings=_SETTINGS)
        with scratch_directory(directory) as scratch, ExitStack() as stack:
            stack.callback(target.close)
            counting = _Counting(
                target, workload, durable_copy(database, scratch), stack
            )
            things = [*counting.transactions(transactions), *counting.queries()]
        found += [Sent(name, number, *thing) for thing in things]
        failures += [
            f"{name}, {number} workers: {query} has another answer"
            for query, rows in counting.answers.items()
            if answers.setdefault(query, rows) != rows
        ]
    return Growth(workload.label, transactions, found, failures)


class _Counting:
    """One target with one number of workers."""

    def __init__(
        self, target: Any, workload: ChWorkload, database: Path, stack: ExitStack
    ) -> None:
        self.answers: dict[str, list[tuple[str, ...]]] = {}
        self._side = Side(target, workload)
        self._side.open(database)
        stack.callback(self._side.connection.close)
        coordinator, *self._workers = [
            stack.enter_context(closing(connect_natively(node.url, autocommit=True)))
            for node in target.server.nodes
        ]
        coordinator.execute("CREATE EXTENSION pg_stat_statements")

    def transactions(self, number: int) -> Iterator[tuple[str, _Counts, str]]:
        """Count so many, by kind; others have made the connections before."""
        self._side.run(20)
        counts: dict[str, list[_Counts]] = {}
        for _ in range(number):
            kind, run = self._side.next_transaction()
            counts.setdefault(kind, []).append(self._count(run))
        for kind, each in sorted(counts.items()):
            statements, rows, elapsed = map(fmean, zip(*each, strict=True))
            yield kind, (statements, rows, elapsed), ""

    def queries(self) -> Iterator[tuple[str, _Counts, str]]:
        """Count each query's second run, and a fold: the first run may be with a drain."""
        side = self._side
        side.cursor.execute(f"SET statement_timeout TO '{_PATIENCE}'")
        side.connection.commit()
        for name, sql in QUERIES.items():
            try:
                self.answers[name] = comparable(side.answer(sql))
                counts = self._count(lambda: side.answer(sql))  # noqa: B023
                plan = _described(side.answer(f"EXPLAIN {sql}"))
            except Exception as error:
                side.connection.rollback()
                yield name, (0, 0, 0), str(error).split("\n")[0]
            else:
                yield name, counts, plan
        fold = getattr(side.connection, "checkpoint", None)
        if fold is not None:
            yield "fold", self._count(fold), ""

    def _count(self, run: Callable[[], object]) -> _Counts:
        for worker in self._workers:
            worker.execute("SELECT pg_stat_statements_reset()")
        start = perf_counter()
        run()
        elapsed = 1000 * (perf_counter() - start)
        found = [worker.execute(_SENT).fetchall()[0] for worker in self._workers]
        statements, rows = (float(sum(column)) for column in zip(*found, strict=True))
        return statements, rows, elapsed


def _described(plan: Sequence[tuple[object, ...]]) -> str:
    """How many tasks and subplans the text of Citus' plan has."""
    text = "\n".join(str(row[-1]) for row in plan)
    tasks = sum(map(int, re.findall(r"Task Count: (\d+)", text)))
    subplans = text.count("Distributed Subplan")
    return f"{tasks} tasks, " + (f"{subplans} subplans" if subplans else "pushed down")
