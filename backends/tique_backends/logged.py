"""Commits as an engine's log holds them in JSON, where Python reads it.

A commit is ``{table id: [[deleted, value, …], …]}``. A value is JSON's own or its text,
hexadecimal for bytes; ``{}`` stands for a column that was not read and not changed:
storage has it. A bulk write adds ``{table id: rows}``, the number of rows that are in
the cache tables only; a change of definitions ``{}, true``.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from tique_backends.base import MISSING, CommitRecord

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Container,
        Iterable,
        Iterator,
        Mapping,
    )

    from tique_backends.base import Row
    from tique_rewriter.schema import Table


_GAP: dict[str, Any] = {}
"""What the log has for a column that was not read and not changed."""


class LoggedCommit(NamedTuple):
    """A commit as it was written, versions and bulk rows by the table's id as text."""

    cts: int
    txid: int
    writes: dict[str, list[list[Any]]]
    bulk: dict[str, int] = {}  # noqa: RUF012
    defines: bool = False


def content(commit: CommitRecord) -> tuple[Any, ...]:
    """What the log says of a commit behind its numbers."""
    return (
        {
            str(table): [(int(deleted), *row) for row, deleted in rows]
            for table, rows in commit.writes.items()
        },
        *([dict(commit.bulk)] if commit.bulk or commit.defines else []),
        *([True] if commit.defines else []),
    )


def encoded_value(value: Any) -> Any:
    """What stands for a value that is none of JSON's own."""
    if value is MISSING:
        return _GAP
    return value.hex() if isinstance(value, bytes) else str(value)


def versions_of(
    table: Table, commits: Iterable[LoggedCommit], fences: Container[int] = ()
) -> Iterator[tuple[int, Row, bool]]:
    """A table's versions in those commits that are not fenced.

    Columns that the log lacks are ``MISSING``.
    """
    read = _row_reader(table.types)
    for commit in commits:
        if commit.cts not in fences:
            for deleted, *values in commit.writes.get(str(table.id), ()):
                yield commit.cts, read(values), bool(deleted)


def records_of(
    tables: Mapping[int, Table], commits: Iterable[LoggedCommit]
) -> list[CommitRecord]:
    """The commits with their rows; what is of no known table is left out."""
    readers = {
        str(number): _row_reader(table.types) for number, table in tables.items()
    }
    return [
        CommitRecord(
            commit.cts,
            commit.txid,
            {
                int(number): [
                    (readers[number](values), bool(deleted))
                    for deleted, *values in versions
                ]
                for number, versions in commit.writes.items()
                if number in readers
            },
            {int(number): rows for number, rows in commit.bulk.items()},
            commit.defines,
        )
        for commit in commits
    ]


@lru_cache(maxsize=1024)
def _row_reader(types: tuple[str, ...]) -> Callable[[list[Any]], Row]:
    """Make a row of a list of values, which it may change, for columns of these types."""
    converted = [
        (position, _READERS[name])
        for position, type_name in enumerate(types)
        if (name := type_name.partition("(")[0].partition(" ")[0]) in _READERS
    ]

    def read(values: list[Any]) -> Row:
        for position, convert in converted:
            value = values[position]
            if value is not None and value != _GAP:
                values[position] = convert(value)
        if _GAP in values:
            return tuple([MISSING if value == _GAP else value for value in values])
        return tuple(values)

    return read


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
"""From what the log has to what the row had, by the column's type."""
