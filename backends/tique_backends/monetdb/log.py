"""The commit log: one row per group of commits, in JSON.

A group of commits is one row of ``tique.log``, because its costs are a statement and a
flush; the cache tables are filled from memory later and, after a crash, from here.
MonetDB's own JSON functions cannot split an array into rows: entries are read in
Python.

An entry is a list of ``[cts, txid, …]``, followed by :mod:`tique_backends.servers.logged`'s
form.
"""

from __future__ import annotations

import json
from operator import attrgetter
from typing import TYPE_CHECKING
from uuid import UUID

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.monetdb.values.literals import assigned, quoted
from tique_backends.records import MISSING
from tique_backends.servers.logged import (
    LoggedCommit,
    content,
    encoded_value,
    records_of,
    versions_of,
)
from tique_backends.servers.replaying import fences

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from tique_backends.records import CommitRecord, Row
    from tique_backends.servers.aside import Aside
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

NOW = "epoch_ms(now()) * 1000"
"""When a commit was logged, in microseconds: the server's clock is one for all clients."""

_encode = json.JSONEncoder(
    separators=(",", ":"), default=encoded_value, check_circular=False, allow_nan=False
).encode


_SUSPICIOUS = ("\\u0000", "\\ud", str(UUID(int=0)))
"""Marks of an entry with NUL characters, lone surrogates or a UUID of zeros."""


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
            [(commit.cts, commit.txid, *content(commit)) for commit in commits]
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


def decode_commits(entry: str) -> list[LoggedCommit]:
    """A log entry's commits."""
    return [LoggedCommit(*commit) for commit in json.loads(entry)]


def unfenced(session: Session, rows: Sequence[Row]) -> list[tuple[LoggedCommit, Row]]:
    """The commits that are there, of rows that begin with a log entry; each with its row."""
    void = fences(session)
    return [
        (c, row) for row in rows for c in decode_commits(row[0]) if c.cts not in void
    ]


def drop_fenced(session: Session) -> None:
    """Drop what the log has of fenced commits, and the fences, in an engine transaction."""
    void = fences(session)
    entries = session.execute("SELECT cts, commits FROM tique.log").fetch_all()
    for cts, entry in entries if void else ():
        commits = json.loads(entry)
        kept = [commit for commit in commits if commit[0] not in void]
        if len(kept) < len(commits):
            text = quoted(_encode(kept))
            session.change(f"UPDATE tique.log SET commits = {text} WHERE cts = {cts}")
    session.change("DELETE FROM tique.fences")


def logged_versions(
    table: Table,
    entries: Sequence[str],
    after: int,
    aside: Aside,
    excluded: Container[int],
) -> Iterator[tuple[int, Row, bool]]:
    """A table's logged versions with a cts greater than ``after``, in cts order, but some.

    Columns that the log lacks are ``MISSING``.
    """
    return versions_of(table, _in_order(entries, after), aside, excluded)


def logged_commits(
    tables: Mapping[int, Table],
    entries: Sequence[str],
    known: Container[int],
    aside: Aside,
) -> list[CommitRecord]:
    """The commits that are not known, by cts, in cts order."""
    commits = [commit for commit in _in_order(entries, 0) if commit.cts not in known]
    return records_of(tables, commits, aside)


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
