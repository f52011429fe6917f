"""Renaming what tables have in common: a schema, or a type of their columns.

Argument
--------
*Each table is made anew as by ALTER TABLE* (:mod:`tique.query.define.altering`): no open transaction of
this process uses it, its versions are folded first, and in one engine transaction it gets
another number, so that no statement and no snapshot takes one for what it was before
(:mod:`tique.query.define.redefinition`). FOREIGN KEY constraints are kept by names: those in these
tables, and in tables that reference them, are written anew there.

*ALTER TYPE … RENAME.* Rows in memory and in the log have values by their text, and statements
the type by its name. So all tables with columns of the type are made anew.

*ALTER SCHEMA … RENAME TO.* All tables in it get another name at once. All other tables stay
what they were. Their columns may have types of the schema, which would be called otherwise:
that is refused. So is a schema in which names are looked for, since that is settled when a
database is opened.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from tique import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tique.query.transaction.ddl_transaction import DDLTransaction
    from tique_rewriter.plans.ddl_plans import RenameSchema
    from tique_rewriter.schema import Table


def shape_of(table: Table) -> tuple[object, ...]:
    """The parts of a table that do not go with the tables that it references."""
    keys = table.primary_key, table.unique, table.computed_keys
    return table.columns, keys, table.checks, table.generated


def rename_type(
    transaction: DDLTransaction,
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
    changes = transaction.ddl.changes
    changes.expect_possible(transaction)
    with changes.alone(tables, transaction):
        _make_anew(transaction, text, tables, expect=expect)


def rename_schema(plan: RenameSchema, transaction: DDLTransaction) -> None:
    """ALTER SCHEMA … RENAME TO: rename a schema with the tables in it.

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
    with transaction.statement():
        changes.expect_possible(transaction)
        name, _ = plan.names
        with changes.alone():
            if name in (engine.search_path or ()):
                raise errors.NotSupportedError(
                    f"to rename {name} is not supported while names are looked for in it "
                    "(search_path); connect with another path"
                )
            tables = [table for table in catalog if table.schema == name]
            others = [t for t in catalog if t.schema != name and t.fault is None]

            def expect_same() -> None:
                for table in others:
                    now = engine.describe(session, table.schema, table.name)
                    if shape_of(now) != shape_of(table):
                        raise errors.NotSupportedError(
                            f"to rename {name} is not supported: {table.qualified_name} has "
                            "columns of its types",
                            sqlstate="2BP01",
                        )

            renamed = dict([plan.names])
            _make_anew(transaction, plan.text, tables, renamed, after=expect_same)


def _make_anew(
    transaction: DDLTransaction,
    text: str,
    tables: Sequence[Table],
    renamed: Mapping[str, str] = MappingProxyType({}),
    *,
    expect: Callable[[], None] | None = None,
    after: Callable[[], None] | None = None,
) -> None:
    """Run a statement that gives tables another definition, while no other DDL runs.

    Parameters
    ----------
    transaction, text, tables
        The transaction, the statement and the tables.
    renamed
        The schemas whose names it changes, and the new ones.
    expect, after
        Checks in the engine transaction, around all else.
    """
    changes, engine = transaction.ddl.changes, transaction.engine
    catalog, session = transaction.catalog, transaction.session
    for table in tables:
        # One that was changed without tique is refused.
        catalog.find(table.schema, table.name)
    changes.refuse_users(tables, transaction)
    for table in tables:
        changes.settle(table, transaction)
    since: dict[int, float] = {}

    def place(schema: str, name: str) -> tuple[str, str]:
        return renamed.get(schema, schema), name

    def change() -> None:
        if expect is not None:
            expect()
        since.clear()
        oldest = [changes.absorb(table, transaction) for table in tables]
        for table in tables:
            engine.unmanage(session, table)
        session.execute(text).close()
        known = {
            place(table.schema, table.name): replace(
                table,
                foreign_keys=tuple(
                    [replace(k, parent=place(*k.parent)) for k in table.foreign_keys]
                ),
            )
            for table in catalog
            if table.fault is None
        }
        anew = [place(table.schema, table.name) for table in tables]
        for before, name, sts in zip(tables, anew, oldest, strict=True):
            described = engine.describe(session, *name)
            engine.check_definition(session, described)
            history = changes.history(before)
            made = engine.manage(session, replace(described, history=history))
            since[made.id] = sts
            known[name] = replace(made, foreign_keys=known[name].foreign_keys)
        for name, table in known.items():
            keys = table.foreign_keys
            if keys and (name in anew or any(key.parent in anew for key in keys)):
                engine.keep_foreign_keys(session, table, known)
        if after is not None:
            after()

    changes.transact(session, change, since)
