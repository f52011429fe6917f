"""Statements that fail because another process has changed a table's definition.

A process follows others' schema changes when a transaction begins. A statement that was
planned before may reach the engine afterwards, and name a column that is gone: that is
no mistake of the application's, and the transaction can be run again (P9).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tique import errors
from tique_backends.errors import ConflictError, EngineError, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Collection

    from tique_backends.engine import Engine
    from tique_rewriter.schema import Table

_KINDS = (ErrorKind.PROGRAMMING, ErrorKind.UNSUPPORTED, ErrorKind.DATA)


def redefined(
    error: EngineError, engine: Engine, tables: Collection[Table]
) -> errors.SerializationError | None:
    """The error to raise for an engine's, if one of the tables has changed by now.

    Parameters
    ----------
    error
        The engine's error.
    engine
        The database's engine.
    tables
        The tables that the statement was planned with.
    """
    shared = engine.shared
    is_possible = error.kind in _KINDS or isinstance(error, ConflictError)
    if shared is None or not tables or not is_possible:
        return None
    # One question, over a connection that is there: most of these errors are the
    # application's own, and may come often.
    with suppress(EngineError):
        now = {(schema, name): number for schema, name, number in shared.managed()}
        for table in tables:
            # An altered table has another number.
            if now.get((table.schema, table.name), table.id) != table.id:
                return errors.SerializationError(
                    f"the definition of {table.qualified_name} was changed meanwhile; "
                    "run the transaction again",
                    table=table.qualified_name,
                )
    return None
