"""ALTER TYPE … RENAME of a type that several tables have columns of.

Argument
--------
Rows in memory and in the log have values by their text, and statements the type by its name.
So all tables with such columns are made anew in the engine transaction that renames it, as by
ALTER SCHEMA (:mod:`tique.query.schemas`): their versions are folded first, and each gets
another number, so that no statement and no snapshot takes one for what it was before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tique.query.transaction import Transaction
    from tique_rewriter.schema import Table


def rename_type(
    transaction: Transaction,
    text: str,
    tables: Sequence[Table],
    expect: Callable[[], None],
) -> None:
    """Run a statement that renames a type, or a value of it, that these tables have.

    ``expect`` raises if other tables have columns of the type by now.

    Raises
    ------
    OperationalError
        An open transaction uses one of the tables, or needs its recent versions (SQLSTATE
        55006); or one of them was changed without tique (55000).
    """
    changes, engine = transaction.ddl.changes, transaction.engine
    catalog, session = transaction.catalog, transaction.session
    changes.expect_possible(transaction)
    with changes.alone():
        for table in tables:
            # One that was changed without tique is refused.
            catalog.find(table.schema, table.name)
        changes.refuse_users(tables, transaction)
        for table in tables:
            changes.settle(table, transaction)
        since: dict[int, float] = {}

        def change() -> None:
            expect()
            since.clear()
            oldest = [changes.absorb(table, transaction) for table in tables]
            for table in tables:
                engine.unmanage(session, table)
            session.execute(text).close()
            known = {(t.schema, t.name): t for t in catalog if t.fault is None}
            for table, sts in zip(tables, oldest, strict=True):
                described = engine.describe(session, table.schema, table.name)
                engine.check_definition(session, described)
                made = engine.manage(session, described)
                since[made.id] = sts
                known[table.schema, table.name] = replace(
                    made, foreign_keys=table.foreign_keys
                )
            anew = {(table.schema, table.name) for table in tables}
            for place, table in known.items():
                if table.foreign_keys and (
                    place in anew or any(k.parent in anew for k in table.foreign_keys)
                ):
                    engine.keep_foreign_keys(session, table, known)

        changes.transact(session, change, since)
