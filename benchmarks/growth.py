"""What the workers of Citus are sent for a transaction and for a query, by their number.

Their ``pg_stat_statements`` count it, while there is one client and Citus' daemons are silent.
"""

from __future__ import annotations

import re
from contextlib import ExitStack, closing
from dataclasses import dataclass
from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.ch.analytics import Side, comparable
from benchmarks.ch.queries import QUERIES
from benchmarks.environment import (
    describe,
    durable_copy,
    loaded_database,
    prepare_work_directory,
    scratch_directory,
)
from benchmarks.targets import baseline_of, target_class
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
# BEGIN comes in one message with the transaction's number.
_SENT = (
    "SELECT coalesce(sum(calls), 0), coalesce(sum(rows), 0) FROM pg_stat_statements "
    "WHERE query !~ 'pg_stat_statements|assign_distributed_transaction_id'"
)
_Counts = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Sent:
    """What all workers together are sent for one thing, in the mean.

    `statements` has BEGIN and COMMIT among them; `rows` were returned by these, copied or
    changed. `note` is about a query's plan, or why it failed.
    """

    target: str
    workers: int
    what: str
    statements: float
    rows: float
    ms: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class Growth:
    """All that was counted, and every answer that differed."""

    environment: dict[str, object]
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
    queries: Sequence[str],
    patience: float,
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
    queries : sequence of str
        Names of queries.
    patience : float
        Seconds after which a query is given up.
    progress : callable
        Called with each step.
    """
    prepare_work_directory(directory)
    progress(f"loading {workload.label}")
    database = loaded_database(workload, directory)
    found: list[Sent] = []
    failures: list[str] = []
    answers: dict[str, list[tuple[str, ...]]] = {}
    for number in workers:
        for name in names:
            where = f"{name}, {number} workers"
            progress(where)
            with scratch_directory(directory) as scratch, ExitStack() as stack:
                copy = durable_copy(database, scratch)
                one = _Counting(name, number, workload, copy, stack)
                found += one.transactions(transactions)
                found += one.queries(queries, patience)
            failures += [
                f"{where}: {query} has another answer"
                for query, rows in one.answers.items()
                if answers.setdefault(query, rows) != rows
            ]
    return Growth(describe(directory), workload.label, transactions, found, failures)


class _Counting:
    """One target with one number of workers."""

    def __init__(
        self,
        name: str,
        workers: int,
        workload: ChWorkload,
        database: Path,
        stack: ExitStack,
    ) -> None:
        self._name, self._workers = name, workers
        self._is_native = baseline_of(name) is None
        options = {} if self._is_native else {"checkpoint": "manual"}
        target: Any = target_class(name)(**options)
        target.workers, target.node_settings = workers, _SETTINGS
        stack.callback(target.close)
        self._side = Side(target, workload)
        self._side.open(database)
        stack.callback(self._side.connection.close)
        coordinator, *others = [
            stack.enter_context(closing(connect_natively(node.url, autocommit=True)))
            for node in target.server.nodes
        ]
        coordinator.execute("CREATE EXTENSION pg_stat_statements")
        self._others = others
        self.answers: dict[str, list[tuple[str, ...]]] = {}

    def transactions(self, number: int) -> Iterator[Sent]:
        """Count so many transactions, by kind; connections are made before."""
        self._side.run(20)
        counts: dict[str, list[_Counts]] = {}
        for _ in range(number):
            kind, run = self._side.next_transaction()
            counts.setdefault(kind, []).append(self._count(run))
        for kind, each in sorted(counts.items()):
            yield self._sent(
                kind, [fmean(column) for column in zip(*each, strict=True)]
            )

    def queries(self, names: Sequence[str], patience: float) -> Iterator[Sent]:
        """Count each query's second run, what the first ones had more, and a fold."""
        side = self._side
        side.cursor.execute(f"SET statement_timeout TO {round(1000 * patience)}")
        side.connection.commit()
        more: list[list[float]] = []
        for name in names:
            try:
                first = self._count(lambda: self._ask(name))  # noqa: B023
                again = self._count(lambda: self._ask(name))  # noqa: B023
                plan = side.answer(f"EXPLAIN {QUERIES[name]}")
            except Exception as error:
                side.connection.rollback()
                yield self._sent(name, [0, 0, 0], str(error).split("\n")[0])
                continue
            more.append([one - other for one, other in zip(first, again, strict=True)])
            yield self._sent(name, again, _described(plan))
        if not self._is_native and more:
            drains = [sum(column) for column in zip(*more, strict=True)]
            yield self._sent("first runs, more", drains)
            connection: Any = side.connection
            yield self._sent("fold of all", self._count(connection.checkpoint))

    def _ask(self, name: str) -> None:
        self.answers[name] = comparable(self._side.answer(QUERIES[name]))

    def _count(self, run: Callable[[], object]) -> _Counts:
        for worker in self._others:
            worker.execute("SELECT pg_stat_statements_reset()")
        start = perf_counter()
        run()
        elapsed = 1000 * (perf_counter() - start)
        found = [worker.execute(_SENT).fetchall()[0] for worker in self._others]
        statements, rows = (float(sum(column)) for column in zip(*found, strict=True))
        return statements, rows, elapsed

    def _sent(self, what: str, counts: Sequence[float], note: str = "") -> Sent:
        statements, rows, elapsed = counts
        return Sent(self._name, self._workers, what, statements, rows, elapsed, note)


def _described(plan: Sequence[tuple[object, ...]]) -> str:
    """How many tasks and subplans the text of Citus' plan has."""
    text = "\n".join(str(row[-1]) for row in plan)
    tasks = sum(map(int, re.findall(r"Task Count: (\d+)", text)))
    subplans = text.count("Distributed Subplan")
    return f"{tasks} tasks, " + (f"{subplans} subplans" if subplans else "pushed down")
