"""The commit log: one row per group of commits, in JSON.

A commit is one row of ``tique.log``, because a statement and a flush are what costs;
the cache tables are filled from memory later and, after a crash, from here. MonetDB's
own JSON functions cannot take an array apart into rows: entries are read in Python.

An entry is a list of ``[cts, txid, {table id: [[deleted, value, …], …]}]``. A value
is JSON's own or its text, hexadecimal for bytes; ``{}`` stands for a column that was
not read and not changed: storage has it.
"""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tique_backends.base import MISSING, CommitRecord
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.monetdb.literals import assigned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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


def decode_commits(entry: str) -> list[tuple[int, int, dict[str, list[list[Any]]]]]:
    """A log entry's commits: cts, txid, and versions by table id."""
    commits: list[tuple[int, int, dict[str, list[list[Any]]]]] = json.loads(entry)
    return commits


def logged_versions(
    table: Table, entries: Sequence[str], after: int
) -> Iterator[tuple[int, Row, bool]]:
    """A table's logged versions with a cts greater than ``after``, in cts order.

    Columns that the log lacks are ``MISSING``.
    """
    readers = [_reader(column.type) for column in table.columns]
    for entry in entries:
        for cts, _, writes in decode_commits(entry):
            # A reader or a fold may have come between two commits of one entry.
            if cts <= after:
                continue
            for deleted, *values in writes.get(str(table.id), ()):
                row = tuple([read(v) for read, v in zip(readers, values, strict=True)])
                yield cts, row, bool(deleted)


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
