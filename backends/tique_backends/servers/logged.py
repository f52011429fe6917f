"""Commits as an engine's log holds them in JSON, where Python reads it.

A commit is ``{table id: [[deleted, value, …], …]}``. A value is JSON's own or its text,
hexadecimal for bytes; ``{}`` stands for a column that was not read and not changed:
storage has it. A bulk write adds ``{table id: rows}``, the number of rows that are in
the cache tables only; DDL ``{}, true``. Behind these, or ``{}, false``, is ``{table id:
[position, …]}``, the columns that were set where nothing else was done, or ``[]`` where all rows
are new.

Entries come from other clients (P11): an entry that is not of this form, or versions
that are not of their table's, are set aside (:mod:`tique_backends.servers.aside`).
"""

from __future__ import annotations

import operator
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from uuid import UUID

from tique_backends.records import MISSING, CommitRecord

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Container,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from tique_backends.records import Row
    from tique_backends.servers.aside import Aside
    from tique_rewriter.schema import Table


_GAP: dict[str, Any] = {}
"""The log's value for a column that was not read and not changed."""


class LoggedCommit(NamedTuple):
    """A commit as it was written, versions and bulk rows by the table's id as text."""

    cts: int
    txid: int
    writes: dict[str, list[list[Any]]]
    bulk: dict[str, int] = {}  # noqa: RUF012
    defines: bool = False
    columns_set: dict[str, list[int]] = {}  # noqa: RUF012


def content(commit: CommitRecord) -> tuple[Any, ...]:
    """Return a commit's content in the log, after its numbers."""
    columns = {str(table): [*found] for table, found in commit.columns_set.items()}
    return (
        {
            str(table): [(int(deleted), *row) for row, deleted in rows]
            for table, rows in commit.writes.items()
        },
        *([dict(commit.bulk)] if commit.bulk or commit.defines or columns else []),
        *([commit.defines] if commit.defines or columns else []),
        *([columns] if columns else []),
    )


def encoded_value(value: Any) -> Any:
    """Return the text for a value that is none of JSON's own."""
    if value is MISSING:
        return _GAP
    return value.hex() if isinstance(value, bytes) else str(value)


def logged_commit(cts: int, txid: int, parts: Any, aside: Aside) -> LoggedCommit:
    """Make a commit of its JSON; set it aside if it is no commit."""
    if _is_content(parts):
        return LoggedCommit(cts, txid, *parts)
    aside.note(cts, None, "it is not what tique logs")
    return LoggedCommit(cts, txid, {})


def _is_content(parts: Any) -> bool:
    return (
        type(parts) is list
        and 1 <= len(parts) <= _PARTS
        and all(
            type(part) is dict
            and all(number.isascii() and number.isdigit() for number in part)
            for part in (*parts[:2], *parts[3:])
        )
        and (len(parts) == 1 or all(type(rows) is int for rows in parts[1].values()))
        and all(type(defines) is bool for defines in parts[2:3])
        and all(
            type(columns) is list and all(type(each) is int for each in columns)
            for part in parts[3:]
            for columns in part.values()
        )
    )


def versions_of(
    table: Table,
    commits: Iterable[LoggedCommit],
    aside: Aside,
    excluded: Container[int],
) -> Iterator[tuple[int, Row, bool]]:
    """A table's versions in those commits that are not excluded.

    Columns that the log lacks are ``MISSING``.
    """
    for commit in commits:
        if commit.cts not in excluded:
            for row, deleted in _versions(table, commit, aside):
                yield commit.cts, row, deleted


def records_of(
    tables: Mapping[int, Table], commits: Iterable[LoggedCommit], aside: Aside
) -> list[CommitRecord]:
    """Return the commits with their rows; versions of unknown tables are left out."""
    known = {str(number): table for number, table in tables.items()}
    return [
        CommitRecord(
            commit.cts,
            commit.txid,
            {
                int(number): _versions(known[number], commit, aside)
                for number in commit.writes
                if number in known
            },
            {int(number): rows for number, rows in commit.bulk.items()},
            commit.defines,
            {
                int(number): columns
                for number, columns in commit.columns_set.items()
                if number in known
            },
        )
        for commit in commits
    ]


def _versions(
    table: Table, commit: LoggedCommit, aside: Aside
) -> list[tuple[Row, bool]]:
    """Return a commit's versions of a table: all or, if one is unreadable, none."""
    logged = commit.writes.get(str(table.id), [])
    read = _version_reader(table.types, table.primary_key)
    try:
        if type(logged) is not list:
            raise TypeError
        for column in commit.columns_set.get(str(table.id), ()):
            if not 0 <= column < len(table.columns):
                raise ValueError
        return list(map(read, logged))
    except (ArithmeticError, TypeError, ValueError):
        aside.note(commit.cts, table.id, "these are no versions of the table's form")
        return []


@lru_cache(maxsize=1024)
def _version_reader(
    types: tuple[str, ...], key: tuple[int, ...]
) -> Callable[[list[Any]], tuple[Row, bool]]:
    """Make a function from a logged version, which it may change, to row and tombstone.

    It raises ArithmeticError, TypeError or ValueError for a malformed version. JSON's
    types are looked at once for each combination of them.
    """
    names = list(map(_form, types))
    converted = [
        (position, _READERS[name])
        for position, name in enumerate(names, 1)
        if name in _READERS
    ]
    accepted = [_ACCEPTED.get(name, _SCALARS) for name in names]
    allowed = [
        kinds if i in key else kinds | ({type(None), dict} if key else {type(None)})
        for i, kinds in enumerate(accepted)
    ]
    known: dict[tuple[type, ...], _Steps] = {}

    def steps(kinds: tuple[type, ...]) -> _Steps:
        if (
            len(kinds) != len(allowed) + 1
            or kinds[0] is not int
            or not all(map(operator.contains, allowed, kinds[1:]))
        ):
            raise TypeError
        found = (
            [each for each in converted if kinds[each[0]] not in _UNCONVERTED],
            [position for position, kind in enumerate(kinds) if kind is dict],
        )
        if len(known) < _MOST_KINDS:
            known[kinds] = found
        return found

    def read(version: list[Any]) -> tuple[Row, bool]:
        if type(version) is not list:
            raise TypeError
        kinds = tuple(map(type, version))
        conversions, gaps = known.get(kinds) or steps(kinds)
        deleted = version[0]
        if deleted not in (0, 1):
            raise ValueError
        for position, convert in conversions:
            version[position] = convert(version[position])
        for position in gaps:
            if version[position]:
                raise ValueError
            version[position] = MISSING
        return tuple(version[1:]), bool(deleted)

    return read


def _form(type_name: str) -> str:
    """A type's name among those of readers.

    MonetDB's moments with a precision or a time zone are text.
    """
    name = type_name.partition("(")[0].partition(" ")[0]
    return type_name if name == "TIMESTAMP" else name


_Steps: TypeAlias = "tuple[Sequence[tuple[int, Callable[[Any], Any]]], Sequence[int]]"
"""Conversions by position, and the positions of gaps."""

_UNCONVERTED = frozenset({type(None), dict})
_PARTS = 4
_MOST_KINDS = 4096

_READERS: dict[str, Callable[[Any], Any]] = {
    "DECIMAL": Decimal,
    "NUMERIC": Decimal,
    "pg_catalog.numeric": Decimal,
    "DOUBLE": float,
    "DATE": date.fromisoformat,
    "TIMESTAMP": datetime.fromisoformat,
    "BLOB": bytes.fromhex,
    "BYTEA": bytes.fromhex,
    "UUID": UUID,
}
"""Conversions from the log's value to the row's, by the column's type."""

_SCALARS = frozenset({bool, int, float, str})
_ACCEPTED = {
    **dict.fromkeys(("SMALLINT", "INTEGER", "BIGINT"), frozenset({int})),
    **dict.fromkeys(
        ("DATE", "TIMESTAMP", "BLOB", "BYTEA", "UUID", "TEXT", "VARCHAR"),
        frozenset({str}),
    ),
    "BOOLEAN": frozenset({bool}),
    "DOUBLE": frozenset({int, float, str}),
}
"""The types of JSON's values that a column may have, by its type."""
