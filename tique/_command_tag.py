"""Command tags: what a statement was, and how many rows it was about.

They are PostgreSQL's, which psycopg shows as ``cursor.statusmessage``
(https://www.postgresql.org/docs/current/protocol-message-formats.html, CommandComplete);
the other engines have none, and get the same. A tag is made when it is asked for: it
costs a statement nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN = re.compile(
    r"""--[^\n\r]* | /\* (?: [^*] | \*(?!/) )* \*/
    | [eE]' (?: [^'\\] | \\. | '' )* ' | ' (?: [^'] | '' )* '
    | "(?: [^"] | "" )*" | \$(?P<tag>\w*)\$ .*? \$(?P=tag)\$
    | (?P<word>[^\W\d][\w$]*) | (?P<open>\() | (?P<close>\)) | .""",
    re.VERBOSE | re.DOTALL,
)
_MAIN = {"SELECT", "VALUES", "TABLE", "FROM", "INSERT", "UPDATE", "DELETE", "MERGE"}
"""What a statement after WITH, or in brackets, may be."""

_QUERIES = {"SELECT", "VALUES", "TABLE", "FROM", "PIVOT", "UNPIVOT"}
_COUNTED = {"UPDATE", "DELETE", "MERGE", "COPY", "FETCH", "MOVE"}
_OBJECTS = {"CREATE", "DROP", "ALTER"}
_ADJECTIVES = {
    *("OR", "REPLACE", "TEMP", "TEMPORARY", "GLOBAL", "LOCAL", "UNLOGGED", "UNIQUE"),
    *("RECURSIVE", "PERSISTENT", "TRUSTED", "PROCEDURAL"),
}
_TWO_WORDS = {"MATERIALIZED": "MATERIALIZED VIEW", "FOREIGN": "FOREIGN TABLE"}
_FIXED = {
    "END": "COMMIT",
    "ABORT": "ROLLBACK",
    "START": "START TRANSACTION",
    "TRUNCATE": "TRUNCATE TABLE",
    "DECLARE": "DECLARE CURSOR",
    "REFRESH": "REFRESH MATERIALIZED VIEW",
    "LOCK": "LOCK TABLE",
}


def command_tag(sql: str, rowcount: int) -> str:
    """The tag of a statement that has run.

    Parameters
    ----------
    sql
        The application's text.
    rowcount
        The number of its rows; -1 if that is not known: the tag is without one.
    """
    words = _words(sql)
    first = next(words, "")
    if first == "WITH":
        first = next((word for word in words if word in _MAIN), first)
    count = f" {rowcount}" if rowcount >= 0 else ""
    if first in _QUERIES:
        return f"SELECT{count}"
    if first == "INSERT":
        return f"INSERT 0{count}" if count else "INSERT"
    if first in _COUNTED:
        return first + count
    if first in _OBJECTS:
        return _of_object(first, words, count)
    rest = next(words, "")
    if first == "CLOSE":
        return "CLOSE CURSOR ALL" if rest == "ALL" else "CLOSE CURSOR"
    if first == "SET" and rest == "CONSTRAINTS":
        return "SET CONSTRAINTS"
    if first in ("DISCARD", "DEALLOCATE") and rest == "ALL":
        return f"{first} ALL"
    return _FIXED.get(first, first)


def _of_object(verb: str, words: Iterator[str], count: str) -> str:
    kind = next((word for word in words if word not in _ADJECTIVES), "")
    kind = _TWO_WORDS.get(kind, kind)
    after = list(words)
    if verb == "CREATE" and "AS" in after and kind in ("TABLE", "MATERIALIZED VIEW"):
        # (That of a generated column is in brackets.)
        if after[-3:] != ["WITH", "NO", "DATA"]:
            return f"SELECT{count}"
        kind = "TABLE AS" if kind == "TABLE" else kind
    return f"{verb} {kind}".rstrip()


def _words(sql: str) -> Iterator[str]:
    """The words outside of brackets, strings, quoted names and comments, in capitals."""
    depth = 0
    is_first = True
    for token in _TOKEN.finditer(sql):
        if token["open"]:
            depth += 1
        elif token["close"]:
            depth -= 1
        elif token["word"] and (depth == 0 or is_first):
            # (A query may be in brackets.)
            is_first = False
            yield token["word"].upper()
