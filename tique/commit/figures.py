"""Figures of one database's commits in this process: counts, and seconds by phase.

The leader of a group commit is the only thread that notes phases, commits and merges: it
holds the leader's lock, and reads the clock once between two phases; so are validations. Conflicts and retries
are noted by any thread, under ``_lock``. Readers take no lock: every figure only grows, and
one that is read a moment too early is right a moment later.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate

BOUNDS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
)  # fmt: skip
"""Upper bounds of the classes of a phase's seconds; the last class has none."""


@dataclass(frozen=True)
class PhaseFigures:
    """The seconds that group commits spent in one phase.

    Attributes
    ----------
    name : str
        ``"certify"``: looking for conflicts, and taking timestamps; ``"append"``:
        writing the log, with its flush to the disk; ``"publish"``: making the versions
        known. On PostgreSQL the server certifies in the step that appends.
    count : int
        Group commits that finished it.
    seconds : float
        Their sum.
    buckets : tuple of (float, int)
        An upper bound in seconds, and how many of them took no longer.
    """

    name: str
    count: int
    seconds: float
    buckets: tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class ValidationFigures:
    """The SERIALIZABLE commits of this process since it opened the database.

    Attributes
    ----------
    count : int
        Transactions of which it was asked whether what they saw is so still; again where
        commits of other processes came between.
    refused : tuple of (str, int)
        Those of which it was not, by what had changed: ``"row"``, one that was read by its
        key; ``"predicate"``, the rows of some conditions; ``"table"``, any row of one of which
        no condition is known; ``"definition"``.
    whole_tables : tuple of (str, int)
        How often a table was read as a whole, or with conditions that cannot be evaluated
        on single rows, by its name: another index or statement may save transactions there.
    spared : int
        Those of which it was not, and that ``concurrency="ssn"`` has let pass all the same.
    readers_refused : int
        Transactions without writes that ``concurrency="ssn"`` has refused: no other does.
    """

    count: int
    refused: tuple[tuple[str, int], ...]
    whole_tables: tuple[tuple[str, int], ...]
    spared: int
    readers_refused: int


@dataclass(frozen=True)
class CommitFigures:
    """The commits of this process since it opened the database.

    Attributes
    ----------
    committed : int
        Transactions that were committed with writes.
    conflicts : int
        Commits that failed because another transaction had committed first.
    retries : int
        Transactions that a connection began next after such a failure.
    merges : int
        Updates that were computed again on another transaction's row.
    phases : tuple of PhaseFigures
        Group commits, by phase: one of these serves many transactions.
    validations : ValidationFigures
        Those at SERIALIZABLE.
    """

    committed: int
    conflicts: int
    retries: int
    merges: int
    phases: tuple[PhaseFigures, ...]
    validations: ValidationFigures


class Phase:
    """Counts the seconds of one phase; only the leader notes them."""

    __slots__ = ("_classes", "_seconds", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._classes = [0] * (len(BOUNDS) + 1)
        self._seconds = 0.0

    def note(self, seconds: float) -> None:
        """Count a group commit that took so long in this phase."""
        self._classes[bisect_left(BOUNDS, seconds)] += 1
        self._seconds += seconds

    def figures(self) -> PhaseFigures:
        """The phase's figures so far."""
        seconds = self._seconds
        *cumulated, count = accumulate(self._classes)
        buckets = tuple(zip(BOUNDS, cumulated, strict=True))
        return PhaseFigures(self.name, count, seconds, buckets)


class CommitCounts:
    """Counts one database's commits in this process."""

    def __init__(self) -> None:
        self.certify = Phase("certify")
        self.append = Phase("append")
        self.publish = Phase("publish")
        self.committed = 0
        self.merges = 0
        self.validations = 0
        self.refused: Counter[str] = Counter()
        self.whole_tables: Counter[str] = Counter()
        self.spared = 0
        self.readers_refused = 0
        self._conflicts = self._retries = 0
        self._lock = threading.Lock()

    def note_conflict(self) -> None:
        """Count a commit that failed because another transaction had committed first."""
        with self._lock:
            self._conflicts += 1

    def note_retry(self) -> None:
        """Count a transaction that follows such a failure."""
        with self._lock:
            self._retries += 1

    def figures(self) -> CommitFigures:
        """All figures so far."""
        phases = (self.certify, self.append, self.publish)
        return CommitFigures(
            self.committed,
            self._conflicts,
            self._retries,
            self.merges,
            tuple(phase.figures() for phase in phases),
            ValidationFigures(
                self.validations,
                tuple(self.refused.items()),
                tuple(self.whole_tables.items()),
                self.spared,
                self.readers_refused,
            ),
        )
