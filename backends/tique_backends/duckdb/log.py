"""The commit log: one row per group of commits, in JSON.

An append to one table is one engine statement, and a statement is what costs
(0.6 to 1 ms, however small). So a commit is one row of ``tique.log``; the cache
tables are filled from memory later, many commits at once, before somebody reads
them, and after a crash from the log.

An entry is a list of ``[cts, txid, {table id: [[deleted, value, …], …]}]``. A value
is JSON's own or its text, which the engine casts to the column's type.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tique_backends.base import CommitRecord
from tique_backends.duckdb.forms import cache_name, quote
from tique_rewriter.schema import Table

COMMITS = """
SELECT CAST(c[1] AS BIGINT) AS cts, CAST(c[2] AS BIGINT) AS txid, c[3] AS writes,
  committed_at
FROM (SELECT unnest(from_json(commits, '[["JSON"]]')) AS c, committed_at
      FROM tique.log WHERE cts > {after} AND cts <= {until})"""
"""A query for the log's commits between two timestamps."""


def _as_text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


# Not-a-number and infinity have no JSON form; DOUBLE is read back from text.
_encode = json.JSONEncoder(
    separators=(",", ":"), default=_as_text, check_circular=False
).encode


def encode_commits(commits: Sequence[CommitRecord]) -> str:
    """Encode a group of commits as one log entry, in ASCII."""
    return _encode(
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


def replay_statement(table: Table, after: int) -> str:
    """A statement that appends a table's logged versions newer than ``after``."""
    values = []
    for position, column in enumerate(table.columns):
        text = f"(w ->> '$[{position + 1}]')"
        if column.type == "BLOB":
            text = f"unhex({text})"
        values.append(f"CAST({text} AS {column.type}) AS {quote(column.name)}")
    commits = COMMITS.format(after=after, until=2**62)
    return (
        f"INSERT INTO {cache_name(table)} SELECT {', '.join(values)}, cts, "
        f"(w ->> '$[0]') = '1' FROM (SELECT cts, "
        f"unnest(json_extract(writes, '$.\"{table.id}\"[*]')) AS w FROM ({commits}))"
    )
