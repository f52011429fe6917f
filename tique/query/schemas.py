"""ALTER SCHEMA … RENAME TO: all tables in a schema get another name at once.

Argument
--------
*Each table is renamed as by ALTER TABLE* (:mod:`tique.query.altering`): no open transaction of
this process uses it, its versions are folded first, and in one engine transaction it gets
another number, so that no statement and no snapshot takes a table of the old name for it
(:mod:`tique.query.redefinition`). FOREIGN KEY constraints are kept by names: those in these
tables, and in tables that reference them, are written anew there.

*All other tables stay what they were.* Their columns may have types of the schema, which would
be called otherwise: that is refused. So is a schema in which names are looked for, since
that is settled when a database is opened.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tique import errors

if TYPE_CHECKING:
    from tique.query.transaction import Transaction
    from tique_rewriter.ddl_plans import RenameSchema
    from tique_rewriter.schema import Table


def shape_of(table: Table) -> tuple[object, ...]:
    """The parts of a table that do not go with the tables that it references."""
    keys = table.primary_key, table.unique, table.computed_keys
    return table.columns, keys, table.checks, table.generated


def rename_schema(transaction: Transaction, plan: RenameSchema) -> None:
    """Rename a schema with the tables in it.

    Raises
    ------
    NotSupportedError
        Names are looked for in it, or another table has columns of its types.
    OperationalError
        An open transaction uses one of its tables, or needs its recent versions (SQLSTATE
        55006); or one of them was changed without tique (55000).
    """
    changes, engine = transaction.ddl.changes, transaction.engine
    catalog, session = transaction.catalog, transaction.session
    changes.expect_possible(transaction)
    before, after = plan.names
    with changes.alone():
        if before in (engine.search_path or ()):
            raise errors.NotSupportedError(
                f"to rename {before} is not supported while names are looked for in it "
                "(search_path); connect with another path"
            )
        tables = [table for table in catalog if table.schema == before]
        others = [t for t in catalog if t.schema != before and t.fault is None]
        for table in tables:
            # One that was changed without tique is refused.
            catalog.find(table.schema, table.name)
        changes.refuse_users(tables, transaction)
        for table in tables:
            changes.settle(table, transaction)
        since: dict[int, float] = {}

        def renamed(table: Table) -> Table:
            keys = [
                replace(key, parent=(after, key.parent[1]))
                if key.parent[0] == before
                else key
                for key in table.foreign_keys
            ]
            return replace(table, foreign_keys=tuple(keys))

        def change() -> None:
            since.clear()
            oldest = [changes.absorb(table, transaction) for table in tables]
            for table in tables:
                engine.unmanage(session, table)
            session.execute(plan.text)
            known = {(table.schema, table.name): renamed(table) for table in others}
            for table, sts in zip(tables, oldest, strict=True):
                described = engine.describe(session, after, table.name)
                engine.check_definition(session, described)
                made = engine.manage(session, described)
                since[made.id] = sts
                keys = renamed(table).foreign_keys
                known[after, table.name] = replace(made, foreign_keys=keys)
            for table in known.values():
                if any(key.parent[0] == after for key in table.foreign_keys) or (
                    table.schema == after and table.foreign_keys
                ):
                    engine.keep_foreign_keys(session, table, known)
            for table in others:
                now = engine.describe(session, table.schema, table.name)
                if shape_of(now) != shape_of(table):
                    raise errors.NotSupportedError(
                        f"to rename {before} is not supported: {table.qualified_name} has "
                        "columns of its types",
                        sqlstate="2BP01",
                    )

        changes.transact(session, change, since)
