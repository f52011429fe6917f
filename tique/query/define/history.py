"""Setting, changing and dropping the retentions of tables.

Argument
--------
*A history begins with a number.* A table gets one as by an ALTER TABLE that changes nothing
(:mod:`tique.query.define.altering`): all its versions are folded, then it is made anew under
another number. So storage is the table's state at the version that the history begins with, and no
process goes on to fold it without writing images: none knows the new number without its
history (:mod:`tique_backends.catalog.histories`).

*Another retention* changes one row, and what is there stays. Versions that the retention before
did not cover are out of reach: the history begins later then.

*Without one* the number stays. A process that has not followed that yet fails to fold the table until it has.

If the process dies, the engine has all of it or nothing.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from tique import errors
from tique.history.retention import Retention
from tique_backends.catalog import histories
from tique_rewriter.schema import History

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique.query.define.schema_changes import SchemaChanges
    from tique_backends.session import Session
    from tique_rewriter.schema import Table


def set_history(
    changes: SchemaChanges,
    retention: Retention,
    names: Sequence[str] | None = None,
    *,
    missing: bool = False,
) -> list[str]:
    """Give tables a retention.

    Parameters
    ----------
    changes
        The schema changes of the database.
    retention
        The retention.
    names
        ``table`` or ``schema.table``; None: all tables.
    missing
        Only those that have none.

    Returns
    -------
    list of str
        The qualified names of the tables whose retention is another one than before.

    Raises
    ------
    ProgrammingError
        There is no such table.
    OperationalError
        An open transaction uses a table, or needs its recent versions (SQLSTATE 55006).
    """

    def is_another(table: Table) -> bool:
        kept = table.history
        return kept is None or not (missing or kept.retention == retention.text)

    if not any(map(is_another, _named(changes, names))):
        return []
    with changes.alone(), closing(changes.engine.session()) as session:
        tables = [table for table in _named(changes, names) if is_another(table)]
        new = [table for table in tables if table.history is None]
        changes.refuse_users(new, None)
        for table in new:
            changes.settle(table, None)
        since: dict[int, float] = {}

        def change() -> None:
            since.clear()
            for table in tables:
                if table.history is None:
                    made = _make_anew(changes, session, table, retention)
                    since[made.id] = changes.catalog.versions(table).since
                else:
                    history = _changed(changes, session, table.history, retention)
                    histories.keep(session, replace(table, history=history))

        changes.transact(session, change, since)
    return [table.qualified_name for table in tables]


def drop_history(
    changes: SchemaChanges, names: Sequence[str] | None = None
) -> list[str]:
    """Drop the histories of tables; return the qualified names of those that had one.

    Parameters and errors are those of :func:`set_history`.
    """
    with changes.alone(), closing(changes.engine.session()) as session:
        tables = [table for table in _named(changes, names) if table.history]

        def change() -> None:
            for table in tables:
                histories.forget(session, table)

        if tables:
            changes.transact(session, change)
    return [table.qualified_name for table in tables]


def _named(changes: SchemaChanges, names: Sequence[str] | None) -> list[Table]:
    if names is None:
        return [table for table in changes.catalog if _can_have_one(table)]
    tables = []
    for name in names:
        schema, _, bare = name.rpartition(".")
        table = changes.catalog.find(schema or None, bare)
        if table is None or not _can_have_one(table):
            raise errors.ProgrammingError(
                f"{name} is no table under tique's management", sqlstate="42P01"
            )
        tables.append(table)
    return tables


def _can_have_one(table: Table) -> bool:
    return table.fault is None and not table.is_materialized


def _make_anew(
    changes: SchemaChanges, session: Session, table: Table, retention: Retention
) -> Table:
    """Give a table, all of whose versions are in storage, another number and a history."""
    engine = changes.engine
    engine.unmanage(session, table)
    described = engine.describe(session, table.schema, table.name)
    history = History(changes.timeline.position().sts, retention.text)
    made = engine.manage(session, replace(described, history=history))
    made = replace(made, foreign_keys=table.foreign_keys)
    if table.foreign_keys:
        known = {(other.schema, other.name): other for other in changes.catalog}
        known[table.schema, table.name] = made
        engine.keep_foreign_keys(session, made, known)
    return made


def _changed(
    changes: SchemaChanges, session: Session, before: History, retention: Retention
) -> History:
    """The history with another retention, of which not all may be there."""
    since, covered = before.since, Retention.parse(before.retention).covers(retention)
    if covered is not None:
        oldest = histories.newest(session) - covered * 10**6
        since = max(since, histories.version_at(session, oldest))
    return History(since, retention.text)
