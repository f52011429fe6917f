"""The commit log: one row per group of commits, in JSON.

An append to one table is one engine statement, and the statement is the cost (0.4 to
1 ms, however small). So a group of commits is one row of ``tique.log``; the cache
tables are filled from memory later, many commits at once, before a query reads them,
and after a crash from the log.

An entry is a list of ``[cts, txid, {table id: [[deleted, value, …], …]}]``. A value
is JSON's own or its text, which the engine casts to the column's type; ``{}`` stands
for a column that was not read and not changed: storage has it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tique_backends.duckdb.values.literals import converted, plain_text
from tique_backends.names import cache_name, quote, storage_name
from tique_backends.records import MISSING, CommitRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_rewriter.schema import Table

APPEND = "INSERT INTO tique.log VALUES ($1, $2, $3)"
"""The append of an entry: its last cts, the time in microseconds, and the commits."""

COMMITS = """
SELECT CAST(c[1] AS BIGINT) AS cts, CAST(c[2] AS BIGINT) AS txid, c[3] AS writes,
  committed_at
FROM (SELECT unnest(from_json(commits, '[["JSON"]]')) AS c, committed_at
      FROM tique.log WHERE cts > {after} AND cts <= {until})"""
"""A query for the log's commits between two timestamps."""


def _encoded(value: Any) -> Any:
    if value is MISSING:
        return {}
    return value.hex() if isinstance(value, bytes) else plain_text(value)


# Not-a-number and infinity have no JSON form; DOUBLE is read back from text.
_encode = json.JSONEncoder(
    separators=(",", ":"), default=_encoded, check_circular=False
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
        text = f"(_w ->> '$[{position + 1}]')"
        if column.type == "BLOB":
            text = f"unhex({text})"
        value = converted(text, column.type)
        if position not in table.primary_key and not table.is_keyless:
            value = (
                f"CASE WHEN json_type(_w, '$[{position + 1}]') = 'OBJECT' "
                f"THEN _s.{quote(column.name)} ELSE {value} END"
            )
        values.append(value)
    commits = COMMITS.format(after=after, until=2**62)
    versions = (
        "(SELECT cts AS _cts, unnest(json_extract(writes, "
        f"'$.\"{table.id}\"[*]')) AS _w FROM ({commits}))"
    )
    if not table.is_keyless:
        same = " AND ".join(
            f"_s.{quote(table.columns[i].name)} = {values[i]}"
            for i in table.primary_key
        )
        versions += f" LEFT JOIN {storage_name(table)} AS _s ON {same}"
    return (
        f"INSERT INTO {cache_name(table)} SELECT {', '.join(values)}, _cts, "
        # A reader or a fold may have come between two commits of one log entry.
        f"(_w ->> '$[0]') = '1' FROM {versions} WHERE _cts > {after}"
    )
