"""The policy of the store's caches: all sizes and thresholds, in one place.

Each number was chosen when its part was written, by TPC-C on DuckDB and on PostgreSQL
(``benchmarks/history/``). They are coarse: none has been tuned since.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CachePolicy:
    """Capacities, admission and thresholds of the store; no part of it ever changes.

    Attributes
    ----------
    rows : int
        Storage rows per table that are kept as single rows (option ``row_cache``).
    bytes : int
        Bytes for ranges of all tables (option ``page_cache``).
    page_keys : int
        Keys per page: the engine reads so many rows hardly slower than one.
    misses : int
        How often a range must be missed until it is read, which takes the engine a few
        times as long as one row does.
    candidates : int
        Places whose misses are counted: a place missed longer ago is not missed again.
    slack : int
        A ``slack``-th of the capacity is evicted at once: a dictionary keeps slots for
        removed entries, so that each search for its first entry passes all slots before
        that.
    narrow : int
        A table with at most so many columns is always read whole: a second statement
        costs more than its columns.
    group_rows : int
        A group of more rows is not kept as tuples: Python takes as long as the engine
        to answer from so many. No range is kept that has twice as many.
    block_rows : int
        A group of more rows is not kept at all.
    stretch : int
        So many small groups are read at once.
    few_rows, tail_rows : int
        A tail is not kept if it begins with more rows, and begins anew when it has more;
        without the latter there are no tails.
    answered_rows, answered_groups, lookups : int
        More rows of a group, more groups in a range, or more rows of a joined table
        are left to the engine.
    constant_values : int
        A statement gets up to so many values of a group as constants, in place of
        storage.
    """

    rows: int = 100_000
    bytes: int = 768 << 20
    page_keys: int = 1024
    misses: int = 2
    candidates: int = 4096
    slack: int = 16
    narrow: int = 6
    group_rows: int = 4096
    block_rows: int = 20_000
    stretch: int = 32
    few_rows: int = 100
    tail_rows: int = 1000
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
    """The size and use of one cache since the database was opened.

    Threads count without a lock: under load a few events in a million are missed.

    Attributes
    ----------
    name : str
        ``"rows"`` or ``"ranges"``.
    entries : int
        Rows or ranges in memory.
    bytes : int
        Their size; 0 for rows, which are counted.
    capacity : int
        Bytes at the most; for rows, their number per table.
    hits, misses, evictions : int
        How often an entry was found, was not found, and was evicted.
    """

    name: str
    entries: int
    bytes: int
    capacity: int
    hits: int
    misses: int
    evictions: int
