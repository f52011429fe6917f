"""What is kept in memory of rows, and when: all sizes and thresholds, in one place.

The numbers were chosen when the part that they are of was written, by TPC-C on DuckDB and
on PostgreSQL (``benchmarks/RESULTS.md``). They are coarse: none has been tuned since.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CachePolicy:
    """Capacities, admission and thresholds of the store; no part of it ever changes.

    Attributes
    ----------
    rows : int
        Storage rows per table that are kept as Python tuples (option ``row_cache``).
    bytes : int
        Bytes for pages of all tables (option ``page_cache``).
    group_share, view_share : float
        How much there is for groups and for views, in parts of ``bytes``.
    page_misses, group_misses, view_misses : int
        How often a part must be missed until all of it is read, which takes the engine
        a few times as long as one row does.
    candidates : int
        Places whose misses are counted: what was missed longer ago does not come again.
    slack : int
        Eviction makes room for a ``slack``-th of the capacity at once: a dictionary keeps
        places for what was taken out, so that each look for its first entry goes past
        all that were there before.
    narrow : int
        A table with at most so many columns is always read whole: a second statement
        costs more than its columns.
    group_rows : int
        A group of more rows is not kept as rows: an answer from so many takes Python as
        long as the engine.
    block_rows : int
        A group of more rows is not kept at all.
    few_rows : int
        So many rows are kept as rows in any case.
    stretch : int
        So many small groups are read at once.
    marks : int
        High-water marks per table, and candidates for them.
    view_keys : int
        A group with more recent keys than these has a view.
    answered_rows, answered_groups, lookups : int
        More rows of a group, more groups in a range, more rows of a joined table than
        these are the engine's to read.
    constant_values : int
        A statement gets up to so many values of a group as constants, in place of
        storage.
    """

    rows: int = 100_000
    bytes: int = 512 << 20
    group_share: float = 1 / 4
    view_share: float = 1 / 8
    page_misses: int = 2
    group_misses: int = 3
    view_misses: int = 1
    candidates: int = 4096
    slack: int = 16
    narrow: int = 6
    group_rows: int = 4096
    block_rows: int = 20_000
    few_rows: int = 100
    stretch: int = 32
    marks: int = 10_000
    view_keys: int = 100
    answered_rows: int = 2000
    answered_groups: int = 64
    lookups: int = 1000
    constant_values: int = 2000

    def most_rows(self, *, as_rows: bool) -> int:
        """How many rows of a group are read at the most.

        ``as_rows``: all of them are wanted, and not some by a value.
        """
        return self.group_rows if as_rows else self.block_rows


@dataclass(frozen=True)
class CacheInfo:
    """What one kind of part took and saved since the database was opened.

    Threads count without a lock: under load a few events in a million are missed.

    Attributes
    ----------
    name : str
        ``"rows"``, ``"pages"``, ``"groups"`` or ``"views"``.
    entries : int
        Parts in memory.
    bytes : int
        What they take; of rows, which are counted, 0.
    capacity : int
        Bytes at the most; of rows, how many per table.
    hits, misses, evictions : int
        How often one was found, was not, and made room for others.
    """

    name: str
    entries: int
    bytes: int
    capacity: int
    hits: int
    misses: int
    evictions: int
