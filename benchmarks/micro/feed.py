"""The feed of a table's changes: replayed at once, and followed beside writers."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

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

WRITERS = 4
KEYS = 20_000
"""Of each writer."""
_QUIET = 1.0
"""Seconds without a commit after which the writers have certainly ended."""


@dataclass(slots=True)
class FeedTimes:
    """Commits replayed and followed; `lag_ms` is from a commit to its delivery."""

    environment: dict[str, object]
    commits: int
    written_per_second: float
    replayed_per_second: float
    beside_written_per_second: float
    beside_delivered_per_second: float
    lag_ms: dict[str, float]
    failures: list[str] = field(default_factory=list)


def measure_feed(
    directory: Path, commits: int, seconds: float, progress: Callable[[str], None]
) -> FeedTimes:
    """Write commits, replay them into an empty table, and follow writers for a while.

    Parameters
    ----------
    directory : pathlib.Path
        Where the database is kept.
    commits : int
        Number of commits to replay, about.
    seconds : float
        For how long the writers are followed.
    progress : callable
        Called with each step.
    """
    prepare_work_directory(directory)
    with scratch_directory(directory) as scratch:
        url = database_url(scratch / "feed.duckdb")
        with tique.connect(url, history="1 day", autocommit=True) as connection:
            connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
            connection.execute("CREATE TABLE copy (id INTEGER PRIMARY KEY, v INTEGER)")
            progress("write")
            begin, start = connection.version, time.perf_counter()
            _write(url, commits // WRITERS, threading.Event(), wait=True)
            written = time.perf_counter() - start
            made = connection.version - begin
            progress("replay")
            start, rows = time.perf_counter(), {}
            for change in connection.changes("t", since=begin):
                (key, *_) = change.old or change.new or ()
                rows[key] = change.new
            replayed = time.perf_counter() - start
            connection.cursor().executemany(
                "INSERT INTO copy VALUES (%s, %s)",
                [row for row in rows.values() if row],
            )
            differ = "SELECT * FROM t EXCEPT SELECT * FROM copy"
            back = "SELECT * FROM copy EXCEPT SELECT * FROM t"
            failures = [
                f"rows differ: {query}"
                for query in (differ, back)
                if connection.execute(query).fetchall()
            ]
            progress("follow")
            ended = threading.Event()
            since, start = connection.version, time.perf_counter()
            threads = _write(url, None, ended, wait=False)
            delivered, at, lags = set(), (0, 0), []
            for change in connection.changes(
                "t", since=since, follow=True, timeout=_QUIET
            ):
                delivered.add(change.version)
                lags.append(time.time() - change.time.timestamp())
                if not ended.is_set() and time.perf_counter() - start > seconds:
                    ended.set()
                    at = connection.version - since, len(delivered)
            for thread in threads:
                thread.join()
            if len(delivered) != connection.version - since:
                failures.append(f"{len(delivered)} commits were delivered")
    return FeedTimes(
        describe(directory),
        made,
        made / written,
        made / replayed,
        at[0] / seconds,
        at[1] / seconds,
        latency_ms(lags),
        failures,
    )


def _write(
    url: str, commits: int | None, ended: threading.Event, *, wait: bool
) -> list[threading.Thread]:
    """Have rows of each writer's own inserted, updated and deleted, a commit each."""

    def write(number: int) -> None:
        random = Random(number)  # noqa: S311
        present: set[int] = set()
        done = 0
        with closing(tique.connect(url, autocommit=True)) as connection:
            if commits is None:
                ours = f"id % {WRITERS} = {number}"
                found = connection.execute(f"SELECT id FROM t WHERE {ours}")
                present.update(key for (key,) in found.fetchall())
            while done != commits and not ended.is_set():
                key = random.randrange(KEYS) * WRITERS + number
                if key not in present:
                    connection.execute("INSERT INTO t VALUES (%s, 0)", (key,))
                    present.add(key)
                elif random.random() < 1 / 3:
                    connection.execute("DELETE FROM t WHERE id = %s", (key,))
                    present.remove(key)
                else:
                    connection.execute("UPDATE t SET v = v + 1 WHERE id = %s", (key,))
                done += 1

    threads = [
        threading.Thread(target=write, args=(number,)) for number in range(WRITERS)
    ]
    for thread in threads:
        thread.start()
    if wait:
        for thread in threads:
            thread.join()
    return threads
