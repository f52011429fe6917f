"""Unique indexes: keys of a table that come and go (P3, P9).

Argument
--------
*A key of all or of none.* Making or dropping one is an alteration (:mod:`tique.query.define.altering`): every
version is in storage when the engine looks at the rows, and the table gets another
number. A transaction that wrote by the keys before finds at its commit that the number is gone, in
every process, so no commit is certified without a key that the engine enforces later (P4).

*By its number alone.* The engine resolves an index's name, and perhaps not as we do: after the
statement the unique indexes of all other managed tables have to be the same, else the
engine transaction is rolled back.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tique import errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tique.query.transaction.transaction import Transaction
    from tique_backends.engine import Engine
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_Names = frozenset[tuple[str, str, str]]


def is_there(transaction: Transaction, schema: str, name: str) -> bool:
    """Whether the schema has a unique index of exactly that name."""
    found = transaction.engine.unique_indexes(transaction.session)
    return any((row[0], row[2]) == (schema, name) for row in found)


def owner(transaction: Transaction, schema: str | None, name: str) -> Table | None:
    """The managed table with the unique index of that name, whatever its case."""
    catalog = transaction.catalog
    found = [
        (of_name != name, of_schema != catalog.default_schema, of_schema, of_table)
        for of_schema, of_table, of_name in transaction.engine.unique_indexes(
            transaction.session
        )
        if of_name.lower() == name.lower()
        and (schema is None or of_schema.lower() == schema.lower())
        and catalog.named(of_schema, of_table) is not None
    ]
    return catalog.find(*min(found)[2:]) if found else None


@contextmanager
def unchanged(
    engine: Engine, session: Session, tables: Iterable[Table]
) -> Iterator[None]:
    """Expect that a statement leaves the unique indexes of these tables alone.

    Raises
    ------
    NotSupportedError
        It does not.
    """
    names = {(table.schema, table.name) for table in tables}
    before = _of(engine, session, names)
    yield
    changed = before ^ _of(engine, session, names)
    if changed:
        schema, table, index = min(changed)
        raise errors.NotSupportedError(
            f"this would change the unique index {index} of {schema}.{table} beside another "
            "index; name one index, with its schema"
        )


def _of(engine: Engine, session: Session, names: set[tuple[str, str]]) -> _Names:
    found = engine.unique_indexes(session)
    return frozenset(
        (s, table, index) for s, table, index in found if (s, table) in names
    )
