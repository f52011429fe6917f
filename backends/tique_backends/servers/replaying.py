"""Replay on servers: the logged versions that a cache table lacks, whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_backends.names import cache_name
from tique_backends.rows.gaps import completed, is_partial
from tique_backends.servers.aside import NO_ROW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.records import Row
    from tique_backends.servers.aside import Aside
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

Version = tuple[int, "Row", bool]
"""A cts, the row, and whether it is deleted."""


def fences(session: Session) -> set[int]:
    """The timestamps whose log entries count for nothing."""
    rows = session.execute("SELECT cts FROM tique.fences").fetch_all()
    return {cts for (cts,) in rows}


def excluded_stamps(session: Session, table: Table) -> set[int]:
    """The timestamps that are not to be replayed: in the cache table, or fenced.

    A commit's versions reach a cache table all at once, but not always in cts order.
    """
    present = session.execute(f"SELECT DISTINCT _cts FROM {cache_name(table)}")
    return {cts for (cts,) in present.fetch_all()} | fences(session)


def whole_versions(
    session: Session, table: Table, versions: Sequence[Version], aside: Aside
) -> list[Version]:
    """Fill the gaps of logged versions from storage; set the others aside."""
    if table.is_keyless:
        return list(versions)
    keys = {
        tuple([row[i] for i in table.primary_key])
        for _, row, _ in versions
        if is_partial(row)
    }
    stored = session.read_rows(table, list(keys))
    whole = []
    for cts, row, deleted in versions:
        base = stored.get(tuple(row[i] for i in table.primary_key))
        if base is not None or not is_partial(row):
            whole.append((cts, row if base is None else completed(row, base), deleted))
        else:
            aside.note(cts, table.id, NO_ROW)
    return whole
