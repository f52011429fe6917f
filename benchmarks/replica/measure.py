"""The four parts of ``python -m benchmarks replica``."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import geometric_mean
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

import duckdb

import tique
from benchmarks.ch.analytics import comparable
from benchmarks.ch.hybrid import PacedWorkload
from benchmarks.ch.queries import QUERIES
from benchmarks.ch.workload import ChWorkload
from benchmarks.crews import ProcessCrew
from benchmarks.environment import (
    describe,
    durable_copy,
    loaded_database,
    prepare_work_directory,
    scratch_directory,
)
from benchmarks.measures import Spread, percentile, spread
from benchmarks.replica.process import (
    MANAGED,
    NATIVE,
    PATIENCE,
    Replicator,
    heart,
)
from benchmarks.runner import measure
from benchmarks.targets.duckdb_tique import database_url
from benchmarks.targets.postgresql_server import connect_natively
from benchmarks.targets.postgresql_tique import TiquePostgreSQLTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from benchmarks.tpcc.rules import Scale

_CLIENTS = 4
"""Writers, in as many processes."""
_LOAD = 0.5
"""Their pace, as a share of what they reach alone."""
_EPOCH = 0.015
_FRESHNESS = 5.0
"""Seconds: as old as what was folded last, beside writers."""
_WRITERS, _COPY = 0, 1
"""Cores, where each side has one of its own."""
_HEART = "CREATE TABLE {} (id INTEGER PRIMARY KEY, beat INTEGER)"
_BARE, _STANDBY = "no replica", "hot standby"

Row: TypeAlias = tuple[str | float | Spread, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The parameters.

    ``is_split``: in the part ``writers`` the server and its writers have one core, and what copies
    and asks has another.
    """

    parts: tuple[str, ...]
    epochs: tuple[float, ...]
    seconds: float
    warmup: float
    rounds: int
    repetitions: int
    is_split: bool


@dataclass(frozen=True, slots=True)
class Part:
    """A table of figures."""

    title: str
    headings: tuple[str, ...]
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class Figures:
    """All parts that were asked for, and every failure."""

    environment: dict[str, object]
    workload: str
    plan: Plan
    parts: list[Part]
    failures: list[str]


class Measurement:
    """One run of the parts of a plan, each with servers of its own."""

    def __init__(
        self,
        scale: Scale,
        seed: int,
        plan: Plan,
        directory: Path,
        progress: Callable[[str], None],
    ) -> None:
        prepare_work_directory(directory)
        self._plan, self._progress = plan, progress
        self._paced = partial(PacedWorkload, scale, seed)
        self._workload = ChWorkload(scale, seed)
        progress(f"loading {self._workload.label}")
        self._database = loaded_database(self._workload, directory)
        self._failures: list[str] = []
        self._ended = 0.0

    def run(self) -> Figures:
        """Measure all parts."""
        parts: dict[str, Callable[[], Part]] = {
            "queries": partial(self._queries, beside=False),
            "beside": partial(self._queries, beside=True),
            "rate": self._rate,
            "writers": self._writers,
        }
        found = [parts[name]() for name in self._plan.parts]
        environment = describe(self._database.parent)
        label = self._workload.label
        return Figures(environment, label, self._plan, found, self._failures)

    @contextmanager
    def _source(self) -> Iterator[tuple[TiquePostgreSQLTarget, Path, str]]:
        """A server, a file with the same rows, and the URL of a replica to come."""
        with scratch_directory(self._database.parent) as scratch:
            target = TiquePostgreSQLTarget()
            try:
                file = durable_copy(self._database, scratch)
                target.prepare(file)
                for connection, table in (
                    (tique.connect(target.address(), autocommit=True), MANAGED),
                    (connect_natively(target.server.url, autocommit=True), NATIVE),
                ):
                    with closing(connection):
                        connection.execute(_HEART.format(table))
                        connection.execute(f"INSERT INTO {table} VALUES (1, 0)")
                yield target, file, database_url(scratch / "replica.duckdb")
            finally:
                target.close()

    def _throughput(
        self, target: TiquePostgreSQLTarget, interval: float = 0.0
    ) -> float:
        """Transactions per second, by default as many as there can be."""
        found = measure(
            target,
            self._paced(interval) if interval else self._workload,
            clients=_CLIENTS,
            seconds=self._plan.seconds,
            warmup=self._plan.warmup,
            processes=_CLIENTS,
            afterwards=self._note_end,
        )
        target.leave()
        self._failures += found.failures
        return found.throughput

    def _note_end(self, _: object) -> None:
        self._ended = perf_counter()

    def _within(self, steps: Sequence[tuple[float, float]]) -> list[float]:
        """What steps returned that began while the last writers were measured."""
        began = self._ended - self._plan.seconds
        return [found for at, found in steps if began <= at <= self._ended]

    # Queries

    def _queries(self, *, beside: bool) -> Part:
        with self._source() as (target, file, url), ExitStack() as stack:
            self._progress("what the writers reach" if beside else "copying")
            alone = self._throughput(target) if beside else 0.0
            replication = stack.enter_context(
                tique.replicate(target.address(), url, epoch=_EPOCH)
            )
            with tique.connect(target.address()) as connection:
                if not replication.wait(connection.version, PATIENCE):
                    raise TimeoutError(f"it does not catch up: {replication.status()}")
            sides: dict[str, Any] = {"replica": tique.connect(url, autocommit=True)}
            # Routed queries need the schema to have its own name.
            sides["replica"].execute("SET search_path = 'public'")
            if beside:
                sides[f"replica, {_FRESHNESS:g} s"] = tique.connect(
                    target.address(),
                    replica=url,
                    freshness=_FRESHNESS,
                    autocommit=True,
                )
            sides["DuckDB"] = duckdb.connect(str(file), read_only=True)
            if beside:
                workload = self._paced(_CLIENTS / (_LOAD * alone))
                crew = ProcessCrew(target, workload, _CLIENTS, _CLIENTS)
                crew.start()
                crew.open_window()
            else:
                native = connect_natively(target.server.url, autocommit=True)
                sides["PostgreSQL"] = native
            for connection in sides.values():
                stack.callback(connection.close)
            # Beside writers both kinds of replica with DuckDB, else the replica with both.
            compared = [(0, 2), (1, 2)] if beside else [(0, 1), (0, 2)]
            found = {query: self._time(query, sides, beside) for query in QUERIES}
            if beside:
                crew.wait(0)
                crew.stop()
                self._failures += [each.error for each in crew.tallies if each.error]
            stopped = replication.status().stopped
            self._failures += [f"{name}: {why}" for name, why in stopped.items()]
        ratios = {
            query: [times[a].median / times[b].median for a, b in compared]
            for query, times in found.items()
        }
        rows: list[Row] = [(q, *times, *ratios[q]) for q, times in found.items()]
        means = map(geometric_mean, zip(*ratios.values(), strict=True))
        rows.append(("geometric mean", *("" for _ in sides), *means))
        how = f"beside {_CLIENTS} writers at {_LOAD:g} of their most"
        names = list(sides)
        headings = ("query", *names, *(f"{names[a]}/{names[b]}" for a, b in compared))
        return Part(f"ms, {how if beside else 'nothing writes'}", headings, rows)

    def _time(self, query: str, sides: dict[str, Any], beside: bool) -> list[Spread]:
        """The milliseconds of a query on all sides, in turns, after one unmeasured."""
        self._progress(query)
        sql = QUERIES[query]
        first = [comparable(each.execute(sql).fetchall()) for each in sides.values()]
        if not beside and first[0] != first[1]:
            self._failures.append(f"{query}: the replica answers otherwise than DuckDB")
        times: dict[str, list[float]] = {side: [] for side in sides}
        for repetition in range(self._plan.repetitions):
            for side in list(sides)[:: 1 if repetition % 2 else -1]:
                start = perf_counter()
                sides[side].execute(sql).fetchall()
                times[side].append(1000 * (perf_counter() - start))
        return [spread(each) for each in times.values()]

    # Rate

    def _rate(self) -> Part:
        """Commits that are there when the replicator begins, by epoch length."""
        epochs = self._plan.epochs
        found: dict[float, list[tuple[float, float, float]]] = {e: [] for e in epochs}
        for number in range(self._plan.rounds):
            with self._source() as (target, _, url):
                address = target.address()
                with Replicator(address, url, _EPOCH, None, asks=False) as replicator:
                    before = replicator.applied
                for epoch in epochs[:: 1 if number % 2 == 0 else -1]:
                    self._progress(f"round {number + 1}, {_ms(epoch)}")
                    start = perf_counter()
                    self._throughput(target)
                    taken = perf_counter() - start
                    with Replicator(
                        address, url, epoch, None, asks=False
                    ) as replicator:
                        commits, before = (
                            replicator.applied - before,
                            replicator.applied,
                        )
                    rates = (commits, commits / replicator.seconds, commits / taken)
                    found[epoch].append(rates)
                    self._failures += replicator.failures
        rows: list[Row] = []
        for epoch, rounds in found.items():
            commits_, applied, made = map(spread, zip(*rounds, strict=True))
            ratio = applied.median / made.median
            rows.append((_ms(epoch), commits_, applied, made, ratio))
        return Part(
            f"a backlog of commits, {_CLIENTS} writers as fast as they can",
            ("epoch", "commits", "applied/s, with opening", "committed/s", "ratio"),
            rows,
        )

    # Writers

    def _writers(self) -> Part:
        replicas = {
            f"epochs of {_ms(each)}": (each, False) for each in self._plan.epochs
        }
        replicas[f"epochs of {_ms(_EPOCH)}, an analyst"] = (_EPOCH, True)
        names = [_BARE, *replicas, _STANDBY]
        found: dict[str, list[_Phase]] = {name: [] for name in ("alone", *names)}
        for number in range(self._plan.rounds):
            with self._on(_WRITERS), self._source() as (target, _, url):
                self._progress(f"round {number + 1}, alone")
                alone = self._throughput(target)
                found["alone"].append(_Phase(alone))
                work = partial(self._throughput, target, _CLIENTS / (_LOAD * alone))
                for name in names[:: 1 if number % 2 == 0 else -1]:
                    self._progress(f"round {number + 1}, {name}")
                    if name in replicas:
                        phase = self._beside_replica(target, url, *replicas[name], work)
                    elif name == _STANDBY:
                        phase = self._beside_standby(target, work)
                    else:
                        phase = _Phase(work())
                    found[name].append(phase)
        share = ", on one core, copies on another" if self._plan.is_split else ""
        return Part(
            f"{_CLIENTS} writers at {_LOAD:g} of what they reach alone{share}",
            (
                *("phase", "transactions/s", "of no replica"),
                *("lag ms, p50", "p99", "beats", "query ms"),
            ),
            [_row(name, phases, found[_BARE]) for name, phases in found.items()],
        )

    def _beside_replica(
        self,
        target: TiquePostgreSQLTarget,
        url: str,
        epoch: float,
        asks: bool,
        work: Callable[[], float],
    ) -> _Phase:
        core = _COPY if self._plan.is_split else None
        with Replicator(target.address(), url, epoch, core, asks) as replicator:
            throughput = work()
        self._failures += replicator.failures
        within = map(self._within, (replicator.lags, replicator.asked))
        return _Phase(throughput, *within)

    def _beside_standby(
        self, target: TiquePostgreSQLTarget, work: Callable[[], float]
    ) -> _Phase:
        with ExitStack() as stack:
            with self._on(_COPY):
                standby = stack.enter_context(target.server.standby())
            writer, reader = (
                stack.enter_context(closing(connect_natively(url, autocommit=True)))
                for url in (target.server.url, standby)
            )
            beats = heart(writer, reader, NATIVE)
            beats.start()
            throughput = work()
            lags = self._within(beats.stop())
        self._failures += [beats.failure] if beats.failure else []
        return _Phase(throughput, lags)

    @contextmanager
    def _on(self, core: int) -> Iterator[None]:
        """Have a core for this thread and what it starts, if the plan says so."""
        before = os.sched_getaffinity(0)
        if self._plan.is_split:
            os.sched_setaffinity(0, {core})
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)


@dataclass(frozen=True, slots=True)
class _Phase:
    throughput: float
    lags: Sequence[float] = ()
    asked: Sequence[float] = ()


def _row(name: str, phases: Sequence[_Phase], bare: Sequence[_Phase]) -> Row:
    lags = [sorted(1000 * lag for lag in phase.lags) for phase in phases]
    asked = [1000 * seconds for phase in phases for seconds in phase.asked]
    shares = (a.throughput / b.throughput for a, b in zip(phases, bare, strict=True))
    return (
        name,
        spread(phase.throughput for phase in phases),
        spread(shares),
        spread(percentile(each, 0.5) for each in lags) if all(lags) else "",
        spread(percentile(each, 0.99) for each in lags) if all(lags) else "",
        sum(map(len, lags)) or "",
        spread(asked) if asked else "",
    )


def _ms(epoch: float) -> str:
    return f"{1000 * epoch:g} ms"
