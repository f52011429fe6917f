"""The commit log: one row per commit, its content in JSON (:mod:`tique_backends.servers.logged`).

A commit is one row of ``tique.log``, because its costs are a statement and a flush;
the cache tables are filled from memory later and, after a crash, from here.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import TYPE_CHECKING, Any

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.servers.logged import content, encoded_value, logged_commit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tique_backends.records import CommitRecord, Row
    from tique_backends.servers.aside import Aside
    from tique_backends.servers.logged import LoggedCommit

NOW = "CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS BIGINT)"
"""When a commit was logged, in microseconds: the server's clock is one for all clients."""

_encode = json.JSONEncoder(
    separators=(",", ":"), default=encoded_value, check_circular=False
).encode


def encode_content(commit: CommitRecord) -> str:
    """Encode a commit as its log entry, in ASCII.

    Raises
    ------
    EngineError
        DATA for text that PostgreSQL could not store when the entry is read: a commit
        must fail before it is durable or not at all.
    """
    entry = _encode(content(commit))
    if "NaN" in entry or "Infinity" in entry:
        # JSON has no such numbers, though Python writes them.
        entry = _encode(content(_spelled(commit)))
    if "\\u0000" in entry or "\\ud" in entry:
        for rows in commit.writes.values():
            for row, _ in rows:
                for value in row:
                    if isinstance(value, str):
                        _check_text(value)
    return entry


def _spelled(commit: CommitRecord) -> CommitRecord:
    """The commit with text for numbers that are not finite."""
    writes = {
        table: [(tuple(map(_finite, row)), deleted) for row, deleted in rows]
        for table, rows in commit.writes.items()
    }
    return commit._replace(writes=writes)


def _finite(value: Any) -> Any:
    return str(value) if type(value) is float and not isfinite(value) else value


def _check_text(text: str) -> None:
    if "\0" in text:
        raise EngineError(ErrorKind.DATA, "PostgreSQL's text has no NUL characters")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise EngineError(
            ErrorKind.DATA, f"not valid Unicode: {error.reason}"
        ) from error


def decoded(rows: Iterable[Row], aside: Aside) -> list[LoggedCommit]:
    """The commits of rows ``(cts, txid, content)``."""
    return [logged_commit(cts, txid, _parsed(text), aside) for cts, txid, text in rows]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
