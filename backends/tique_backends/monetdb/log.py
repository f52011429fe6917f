"""The commit log: one row per group of commits, in JSON.

A commit is one row of ``tique.log``, because a statement and a flush are what costs;
the cache tables are filled from memory later and, after a crash, from here. MonetDB's
own JSON functions cannot take an array apart into rows: entries are read in Python.

An entry is a list of ``[cts, txid, {table id: [[deleted, value, …], …]}]``. A value
is JSON's own or its text, hexadecimal for bytes; ``{}`` stands for a column that was
not read and not changed: storage has it. A bulk write adds ``{table id: rows}``, the
number of rows that are in the cache tables only; a change of definitions ``{}, true``.
"""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from tique_backends.base import MISSING, CommitRecord
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.monetdb.literals import assigned

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

    from tique_backends.base import Row
    from tique_rewriter.schema import Table


def _encoded(value: Any) -> Any:
    if value is MISSING:
        return {}
    return value.hex() if isinstance(value, bytes) else str(value)


_encode = json.JSONEncoder(
    separators=(",", ":"), default=_encoded, check_circular=False, allow_nan=False
).encode


_SUSPICIOUS = ("\\u0000", "\\ud", str(UUID(int=0)))
"""What an entry has if it has NUL characters, lone surrogates or a UUID of zeros."""


def encode_commits(commits: Sequence[CommitRecord]) -> str:
    """Encode a group of commits as one log entry, in ASCII.

    Raises
    ------
    EngineError
        DATA for values that MonetDB could not store when the entry is read: a commit
        must fail before it is durable or not at all.
    """
    try:
        entry = _encode(
            [
                (
                    commit.cts,
                    commit.txid,
                    {
                        str(table): [(int(deleted), *row) for row, deleted in rows]
                        for table, rows in commit.writes.items()
                    },
                    *([dict(commit.bulk)] if commit.bulk or commit.defines else []),
                    *([True] if commit.defines else []),
                )
                for commit in commits
            ]
        )
    except ValueError as error:
        raise EngineError(
            ErrorKind.DATA, "MonetDB has no infinities and no NaN"
        ) from error
    if any(sign in entry for sign in _SUSPICIOUS):
        for commit in commits:
            for rows in commit.writes.values():
                for row, _ in rows:
                    for value in row:
                        if value is not MISSING:
                            assigned(value)
    return entry


class LoggedCommit(NamedTuple):
    """A commit as it was written, versions and bulk rows by the table's id as text."""

    cts: int
    txid: int
    writes: dict[str, list[list[Any]]]
    bulk: dict[str, int] = {}  # noqa: RUF012
    defines: bool = False


def decode_commits(entry: str) -> list[LoggedCommit]:
    """A log entry's commits."""
    return [LoggedCommit(*commit) for commit in json.loads(entry)]


def logged_versions(
    table: Table, entries: Sequence[str], after: int, fences: Container[int] = ()
) -> Iterator[tuple[int, Row, bool]]:
    """A table's logged versions with a cts greater than ``after``, in cts order.

    Columns that the log lacks are ``MISSING``.
    """
    read = _row_reader(table)
    for commit in _in_order(entries, after):
        if commit.cts not in fences:
            for deleted, *values in commit.writes.get(str(table.id), ()):
                yield commit.cts, read(values), bool(deleted)


def logged_commits(
    tables: Mapping[int, Table], entries: Sequence[str], after: int
) -> list[CommitRecord]:
    """The commits with a cts greater than ``after``, in cts order."""
    readers = {str(number): _row_reader(table) for number, table in tables.items()}
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
        for commit in _in_order(entries, after)
    ]


def _in_order(entries: Sequence[str], after: int) -> list[LoggedCommit]:
    # A reader or a fold may have come between two commits of one entry, and another
    # process's commit between their timestamps.
    found = [
        commit
        for entry in entries
        for commit in decode_commits(entry)
        if commit.cts > after
    ]
    return sorted(found, key=attrgetter("cts"))


def _row_reader(table: Table) -> Callable[[Sequence[Any]], Row]:
    readers = [_reader(column.type) for column in table.columns]
    return lambda values: tuple([r(v) for r, v in zip(readers, values, strict=True)])


def _reader(type_name: str) -> Callable[[Any], Any]:
    convert = _READERS.get(type_name.partition("(")[0].partition(" ")[0])

    def read(value: Any) -> Any:
        if isinstance(value, dict):
            return MISSING
        return value if value is None or convert is None else convert(value)

    return read


_READERS: dict[str, Callable[[Any], Any]] = {
    "DECIMAL": Decimal,
    "REAL": float,
    "DOUBLE": float,
    "DATE": date.fromisoformat,
    "TIMESTAMP": datetime.fromisoformat,
    "BLOB": bytes.fromhex,
    "UUID": UUID,
}
"""From what the log has to what the row had, by the column's type."""
