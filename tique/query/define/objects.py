"""What the engine runs as it stands.

These are CREATE, ALTER and DROP of objects that are no tables, COMMENT ON, GRANT, REVOKE,
and statements that keep storage tidy.

*CREATE and REFRESH MATERIALIZED VIEW.*
The engine's own materialized view is a managed table without a key, to which no version is
ever written. It is filled by the engine, from storage, in a transaction with DDL, which is
opened for the statement if need be (:mod:`tique.query.define.migration`). Each refresh gives
it another number (P1): a statement finds the rows of the number that its snapshot
knows, or fails (:mod:`tique.query.define.redefinition`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique import errors
from tique.query.base import Outcome, Statement
from tique.query.define.definition import alter_by
from tique.query.define.renaming import rename_type, shape_of
from tique_rewriter.kinds.define.materialized import tables_of
from tique_rewriter.kinds.define.views import check_view

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tique.query.transaction.ddl_transaction import DDLTransaction
    from tique_rewriter.kinds.define.objects import KeepOwner
    from tique_rewriter.plans.ddl_plans import (
        CreateMaterialized,
        DefineMacro,
        DefineObjects,
        DefineViews,
        Grant,
        RefreshMaterialized,
        Tidy,
    )
    from tique_rewriter.schema import Table


def define_objects(plan: DefineObjects, transaction: DDLTransaction) -> None:
    """Have the engine run a definition as it stands.

    The tables in schemas that it drops are released first. All others must be what they
    were: what else an engine drops or changes with an object is refused.
    """
    if plan.changed_type is not None:
        _rename(plan, plan.changed_type, transaction)
    else:
        _define(plan, transaction)


def _rename(plan: DefineObjects, name: str, transaction: DDLTransaction) -> None:
    """Rename a type or a value of it.

    Rows in memory and in the log have values by their text, and statements the type by
    its name: the tables with such columns are made anew, as by ALTER TABLE.
    """
    tables = _tables_of(transaction, name)

    def expect() -> None:
        if _tables_of(transaction, name) != tables:
            raise errors.SerializationError(
                f"other columns are of the type {name} by now; run the statement again"
            )

    if not tables:
        _define(plan, transaction, expect)
        return
    with transaction.statement():
        if len(tables) == 1:
            alter_by(transaction, tables[0], plan.text, expect)
        else:
            rename_type(transaction, plan.text, tables, expect)


def _define(
    plan: DefineObjects,
    transaction: DDLTransaction,
    expect: Callable[[], None] = lambda: None,
) -> None:
    ddl, session = transaction.ddl, transaction.session
    engine, catalog = transaction.engine, transaction.catalog
    schemas = {name.lower() for name in plan.dropped_schemas}

    def dropped() -> list[Table]:
        return [table for table in catalog if table.schema.lower() in schemas]

    def define() -> None:
        expect()
        gone = dropped()
        ddl.release(session, gone)
        kept = [t for t in catalog if t not in gone and not t.fault] if gone else []
        session.execute(plan.text)
        views = [table for table in kept if table.is_materialized]
        lost = engine.without_storage(session, views) if views else []
        for table in kept:
            if table in lost:
                continue
            now = engine.describe(session, table.schema, table.name)
            if shape_of(now) != shape_of(table):
                raise errors.NotSupportedError(
                    f"this would change {table.qualified_name} too; change that "
                    "first, by itself",
                    sqlstate="2BP01",
                )

    ddl.changes.change(transaction, define, dropped)


def _tables_of(transaction: DDLTransaction, name: str) -> list[Table]:
    """The tables whose recent versions have values of a type.

    Raises
    ------
    NotSupportedError
        One of them is not managed, as temporary tables are.
    """
    catalog = transaction.catalog
    tables: list[Table] = []
    for place in transaction.engine.tables_of_type(transaction.session, name):
        table = catalog.named(*place)
        if table is None:
            raise errors.NotSupportedError(
                f"to rename {name} or a value of it is not supported while a table "
                f"that is not managed has columns of it ({'.'.join(place)}); drop "
                "that, or make a new type and change the columns to it one by one",
                sqlstate="0A000",
            )
        tables.append(table)
    return tables


def define_macro(plan: DefineMacro, transaction: DDLTransaction) -> None:
    """Create a macro, once the engine has said that it may be there."""
    transaction.engine.check_macro(transaction.session, plan.name, plan.expression)
    define_objects(plan, transaction)


def define_views(plan: DefineViews, transaction: DDLTransaction) -> None:
    """CREATE VIEW or DROP VIEW, which the engine runs as it stands.

    A view is the engine's own, over the storage tables: its listings have it, and after
    detaching it is what it was. Statements read its query in its place.
    """
    catalog = transaction.catalog

    def used() -> list[Table]:
        found = (catalog.view(*name) for name in plan.names)
        return [view.table for view in found if view is not None]

    def define() -> None:
        transaction.session.execute(plan.text)
        if plan.creates:
            _check(plan, transaction)

    transaction.ddl.changes.change(transaction, define, used)


def _check(plan: DefineViews, transaction: DDLTransaction) -> None:
    """Refuse a view whose query, as the engine has written it, cannot be read."""
    engine = transaction.engine
    views = engine.views(transaction.session)
    catalog = transaction.catalog.with_views(views)
    for name in plan.names:
        view = catalog.view(*name)
        if view is not None and view != transaction.catalog.view(*name):
            check_view(catalog, engine.capabilities.dialect, view)


def grant(plan: Grant, transaction: DDLTransaction) -> None:
    """GRANT and REVOKE: change the privileges; tables are what they were."""
    transaction.ddl.changes.run_text(transaction, plan.text)


def keep_owner(plan: KeepOwner, transaction: DDLTransaction) -> None:
    """ALTER … OWNER TO: nothing, if the session's role is named and is the owner."""
    found = transaction.session.execute(plan.question, plan.given).fetch_all()
    name = f"{plan.kind.lower()} {'.'.join(filter(None, plan.given[:2]))}"
    if not found and not plan.if_exists:
        is_relation = plan.kind.endswith(("TABLE", "VIEW", "SEQUENCE"))
        raise errors.ProgrammingError(
            f"{name} does not exist", sqlstate="42P01" if is_relation else "42704"
        )
    for owner, own_role in found:
        role = plan.role or own_role
        if not owner == own_role == role:
            raise errors.NotSupportedError(
                f"OWNER TO {role} is not supported: the owner of {name} is {owner}, and "
                f"the session's role {own_role}; use the server's own client",
                sqlstate="0A000",
            )


class TidyStatement(Statement):
    """ANALYZE, VACUUM, REINDEX and the like; no transaction sees them."""

    writes = False
    plan: Tidy

    @override
    def run(self, transaction: DDLTransaction, parameters: Sequence[Any]) -> Outcome:
        """Have storage tidied.

        Raises
        ------
        ProgrammingError
            The transaction has done something already, and the engine has this in none.
        """
        if self.plan.is_alone and (transaction.touched or transaction.has_writes):
            verb = self.plan.text.split(maxsplit=1)[0].upper()
            raise errors.ProgrammingError(
                f"{verb} cannot run inside a transaction", sqlstate="25001"
            )
        transaction.session.execute(self.plan.text).close()
        return Outcome()


def create_materialized(plan: CreateMaterialized, transaction: DDLTransaction) -> None:
    """CREATE MATERIALIZED VIEW: create the view, without rows; then fill it."""
    catalog = transaction.catalog
    schema, name = plan.name
    if catalog.named(schema, name) or catalog.view(schema, name):
        if plan.if_not_exists:
            return
        raise errors.ProgrammingError(
            f"table or view {schema}.{name} exists already", sqlstate="42P07"
        )

    def define() -> Table:
        engine, session = transaction.engine, transaction.session
        session.execute(f"{plan.text} WITH NO DATA").close()
        if plan.has_rows:
            made = engine.describe(session, schema, name)
            expect_in_storage(transaction, made)
            place = engine.forms.plain(made)
            session.execute(f"REFRESH MATERIALIZED VIEW {place}").close()
        return engine.describe(session, schema, name)

    fill(transaction, define)


def refresh_materialized(
    plan: RefreshMaterialized, transaction: DDLTransaction
) -> None:
    """REFRESH MATERIALIZED VIEW: have the engine compute its rows anew."""
    catalog = transaction.catalog
    # Its number may be another one by now.
    view = catalog.find(plan.view.schema, plan.view.name)
    if view is None or not view.is_materialized:
        raise errors.ProgrammingError(
            f"{plan.view.qualified_name} was dropped meanwhile", sqlstate="42P01"
        )

    def define() -> Table:
        engine, session = transaction.engine, transaction.session
        if plan.has_rows:
            expect_in_storage(transaction, view)
        engine.unmanage(session, view)
        session.execute(plan.text).close()
        return engine.describe(session, view.schema, view.name)

    fill(transaction, define)


def fill(transaction: DDLTransaction, define: Callable[[], Table]) -> None:
    """Run what gives a materialized view other rows, and manage it under another number."""
    changes, session = transaction.ddl.changes, transaction.session
    changes.expect_possible(transaction)
    since: dict[int, float] = {}

    def change() -> None:
        made = transaction.engine.manage(session, define())
        since[made.id] = transaction.sts

    changes.transact(session, change, since)


def expect_in_storage(transaction: DDLTransaction, view: Table) -> None:
    """Refuse to fill a view from tables that storage has not as the transaction sees them."""
    engine, migration = transaction.engine, transaction.migration
    assert migration is not None
    for each in engine.materialized_views(transaction.session):
        if (each.table.schema, each.table.name) == (view.schema, view.name):
            for table in tables_of(
                transaction.catalog, engine.capabilities.dialect, each
            ):
                migration.expect_in_storage(table)
