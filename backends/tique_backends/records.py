"""Values that pass between the driver and an engine: rows, versions, commits, counts."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import (
        Collection,
        Mapping,
        Sequence,
    )

    from tique_rewriter.schema import Table


Row = tuple[Any, ...]


CopyPart = bytes | str | Row
"""A piece of the text of COPY, or a row's values."""


MISSING: Final = ...
"""Stands in a row for a column that was not read.

An instance of a class would make Python's garbage collector follow every such row.
"""


@dataclass(frozen=True)
class Versions:
    """Versions of one table's rows to append to its cache table.

    ``rows[i]`` became visible at ``stamps[i]`` (a cts, or a statement's sequence
    number in a staging table) and is a tombstone where ``deleted[i]``.
    """

    table: Table
    rows: Sequence[Row]
    stamps: Sequence[int]
    deleted: Sequence[bool]


@dataclass(frozen=True)
class Images:
    """The before-images that a fold leaves in a table's history, as the driver knows them.

    Attributes
    ----------
    stored, new : dict of Row to int
        Where what storage has under a key ends. It certainly has no rows with the keys
        ``new``.
    passed : Versions
        The versions that never come to storage.
    until : Sequence of int
        Where each of these ends.
    """

    stored: Mapping[Row, int]
    new: Mapping[Row, int]
    passed: Versions
    until: Sequence[int]


class CommitRecord(NamedTuple):
    """The record that makes ``txid`` committed at ``cts``, with its versions.

    ``writes`` has, per table id, rows and whether each is a tombstone; ``bulk`` the
    number of rows that are in the cache table only. If it ``defines``, it was DDL:
    processes that catch up read the catalog again, and ``bulk`` has the numbers of the
    tables that are new or changed. ``columns_set`` has, of a table in whose rows all writes set
    columns, these, and none of one to which all writes added rows.
    """

    cts: int
    txid: int
    writes: Mapping[int, Sequence[tuple[Row, bool]]]
    bulk: Mapping[int, int] = MappingProxyType({})
    defines: bool = False
    columns_set: Mapping[int, Collection[int]] = MappingProxyType({})


@dataclass
class Statistics:
    """The load on the engine since it was opened.

    ``seconds`` is the wall-clock time spent inside the engine, summed over the
    threads that waited for it.
    """

    statements: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class ResultColumn:
    """A column of a query's result: its name and the engine's type name."""

    name: str
    type: str


@dataclass(frozen=True)
class Notice:
    """A message of the engine's that is no error, with the fields of psycopg's.

    Attributes
    ----------
    severity : str
        As the engine shows it: ``NOTICE``, ``WARNING``, ``INFO`` …, perhaps in another
        language.
    severity_nonlocalized : str
        The same in English.
    sqlstate : str
        ``00000`` unless the function that raised it said otherwise.
    message_primary : str
        The message.
    message_detail, message_hint : str or None
        More of it.
    """

    severity: str
    severity_nonlocalized: str
    sqlstate: str
    message_primary: str
    message_detail: str | None = None
    message_hint: str | None = None
