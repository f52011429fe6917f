"""Statements that fail because another process has changed a table's definition.

A process follows others' schema changes when a transaction begins. A statement that was
planned before may reach the engine afterwards, and name a column that is gone: that is
no mistake of the application's, and the transaction can be run again (P9).

Argument
--------
*No rows of another table (P1).* The statement may also find another table in the place of
the one that it was planned for: one that was made again, renamed to the name, or altered.
Its rows are not in the transaction's snapshot. So the name of a cache table has the
table's number in it, which no other table ever gets, and every piece of SQL that reads
storage for a snapshot names the cache table as well, whether it reads that or not
(:meth:`~tique_backends.forms.Forms.stored`). A schema change that frees a table's name, or
changes its columns, drops the cache table of the old number in the same engine
transaction. So a statement finds both of a table, or fails.

*Within one statement* the engine must look up both names in one state of its catalog.
MonetDB's statement is a transaction with a snapshot of the catalog; a prepared one looks
both up when it is executed. PostgreSQL looks up the storage table first, and locks it. If
that is the old one, the schema change waits, as it needs the table alone. If it is a new
one, the change that freed the name was committed before, and the lock has brought the news
of it: the cache table of the old number is not found. A statement that PostgreSQL has
prepared depends on the cache table: it is parsed again when that was dropped.

*What is in memory* is kept by number: rows that were read and cached before are those of
the table that is gone, and the new one begins without any. Rows that are written are logged
by number; their commit comes after the barrier of the schema change and is certified by the
new catalog, where there is no such table.

*If the process dies* that changes the schema, the engine has all of its change or nothing.
"""

from __future__ import annotations

from contextlib import closing, suppress
from typing import TYPE_CHECKING

from tique import errors
from tique_backends.errors import ConflictError, EngineError, ErrorKind
from tique_backends.names import cache_label

if TYPE_CHECKING:
    from tique.query.base import Statement
    from tique.store.catalog import ManagedCatalog
    from tique_backends.engine import Engine

_KINDS = (
    ErrorKind.PROGRAMMING,
    ErrorKind.UNSUPPORTED,
    ErrorKind.DATA,
    ErrorKind.INTERNAL,
)


def redefined(
    error: EngineError,
    engine: Engine,
    statement: Statement,
    lasting: ManagedCatalog | None,
) -> errors.Error | None:
    """The error to raise for an engine's, if one of the tables has changed, or is gone.

    Parameters
    ----------
    error
        The engine's error.
    engine
        The database's engine.
    statement
        The statement that failed.
    lasting
        The definitions that others see, if its transaction has some of its own.
    """
    tables = {table for table, _ in statement.needs}
    if lasting is not None:
        known = lasting.by_id()
        tables = {table for table in tables if table.id in known}
    is_possible = error.kind in _KINDS or isinstance(error, ConflictError)
    if engine.shared is None:
        # Another thread, which copies a table of a replica anew.
        is_possible &= any(cache_label(table.id) in str(error) for table in tables)
    if not tables or not is_possible:
        return None
    # One question, over a connection that is there: most of these errors are the
    # application's own, and may come often.
    with suppress(EngineError):
        now = _managed(engine)
        for table in tables:
            change = engine.changed_past(table)
            if change is not None:
                return errors.ProgrammingError(change, sqlstate="55000")
            # An altered table has another number.
            if now.get((table.schema, table.name), table.id) != table.id:
                return errors.SerializationError(
                    f"the definition of {table.qualified_name} was changed meanwhile; "
                    "run the transaction again",
                    table=table.qualified_name,
                )
            if cache_label(table.id) in str(error):
                return errors.ProgrammingError(
                    f"table {table.qualified_name} was dropped meanwhile",
                    sqlstate="42P01",
                )
    return None


def _managed(engine: Engine) -> dict[tuple[str, str], int]:
    """The numbers of the tables that are managed now, by schema and name."""
    if engine.shared is not None:
        return {(schema, name): n for schema, name, n in engine.shared.managed()}
    with closing(engine.session()) as session:
        return {(t.schema, t.name): t.id for t in engine.managed_tables(session)}
