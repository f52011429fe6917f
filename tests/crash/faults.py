"""A real engine whose calls a test can watch, kill the process at, or make fail."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager

import duckdb
import psycopg

from tique_udfs.duckdb import Prepared

REACH_THE_ENGINE = frozenset({"execute", "insert_into"})
READS = (
    *("execute SELECT", "execute \nSELECT", "execute <"),
    *("execute EXPLAIN", "execute DESCRIBE"),
)
SEQUENCER = ("execute SELECT tique.", "execute SELECT stamps")
"""Functions that change the processes' shared state are called by SELECT."""


HERE = threading.local()
"""``target`` is the driver's connection or cursor whose call this thread makes."""

WRAPPED = duckdb.DuckDBPyConnection | duckdb.DuckDBPyRelation | psycopg.RawCursor


class Watched:
    """A driver's connection (or relation) that tells ``watch`` of every call."""

    def __init__(self, target, watch):
        self._target = target
        self._watch = watch

    def __getattr__(self, name):
        value = getattr(self._target, name)
        if not callable(value):
            return value

        if name == "copy":
            return self._copying

        def call(*arguments, **options):
            if name not in REACH_THE_ENGINE:
                return self._wrapped(value(*arguments, **options))
            text = f"{name} {arguments[0]}" if arguments else name
            HERE.target = self._target
            self._watch("before", text)
            result = self._wrapped(value(*arguments, **options))
            HERE.target = self._target
            self._watch("after", text)
            return result

        return call

    @contextmanager
    def _copying(self, text):
        """psycopg's COPY, which is over when its context is."""
        HERE.target = self._target
        self._watch("before", text)
        with self._target.copy(text) as copy:
            yield copy
        HERE.target = self._target
        self._watch("after", text)

    def _wrapped(self, result):
        if isinstance(result, WRAPPED):
            return Watched(result, self._watch)
        return result


def watched_connect(driver, watch):
    """A replacement of the ``connect`` of an engine's driver."""
    real = driver.connect

    def connect(*arguments, **options):
        return Watched(real(*arguments, **options), watch)

    return connect


def watched_run(watch):
    """A replacement of :meth:`Prepared.run`, by which DuckDB's log is appended to."""
    real = Prepared.run

    def run(prepared, *arguments):
        HERE.target = prepared
        watch("before", f"execute {prepared.sql}")
        is_done = real(prepared, *arguments)
        watch("after", f"execute {prepared.sql}")
        return is_done

    return run


class KillAt:
    """Kill the process before the nth call that may write, like a power cut."""

    def __init__(self, number):
        self.left = number

    def __call__(self, when, text):
        is_read = text.startswith(READS) and not text.startswith(SEQUENCER)
        if when == "before" and not is_read:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class Faults:
    """Raises errors at calls whose text matches, as often as it was told to."""

    def __init__(self):
        self.planned = []
        self.seen = []

    def plan(self, when, text, error, times=1):
        """Raise ``error`` at the next calls whose text contains ``text``."""
        self.planned.append([when, text, error, times])

    def clear(self):
        self.planned.clear()

    def __call__(self, when, text):
        self.seen.append((when, text))
        for entry in self.planned:
            planned_when, part, error, times = entry
            if when == planned_when and part in text and times:
                entry[3] = times - 1
                if callable(error) and not isinstance(error, type):
                    error()
                    return
                raise error
