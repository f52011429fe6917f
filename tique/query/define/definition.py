"""CREATE, ALTER and DROP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique import errors
from tique.query.base import Outcome, Statement
from tique.query.define.new_tables import NewTable
from tique.query.define.unique_indexes import is_there, owner
from tique.query.read.select import SelectStatement
from tique_rewriter.kinds.define.alter import AlterTable
from tique_rewriter.schema import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tique.query.transaction.ddl_transaction import DDLTransaction
    from tique_rewriter.kinds.define.alter import AlterNothing
    from tique_rewriter.kinds.define.create_as import CreateTableAs
    from tique_rewriter.kinds.define.temporary import CreateTemporary
    from tique_rewriter.plans.ddl_plans import (
        CreateIndex,
        CreateTable,
        CreateTemporaryView,
        DropIndex,
        DropTable,
        DropTemporaryViews,
    )
    from tique_rewriter.plans.plan import Plan


def create_table(plan: CreateTable, transaction: DDLTransaction) -> None:
    """CREATE TABLE."""
    transaction.ddl.create_table(
        transaction,
        NewTable(plan.table, plan.text),
        if_not_exists=plan.if_not_exists,
        replaces=plan.replaces,
    )


class DefinitionStatement(Statement):
    """A statement that one function carries out: ``define``, given the plan."""

    def __init__(
        self,
        plan: Plan,
        define: Callable[[Any, DDLTransaction], None],
        *,
        defines: bool,
        is_held: bool,
    ) -> None:
        super().__init__(plan)
        self._define = define
        self.defines = defines
        self.is_held = is_held

    @property
    @override
    def kind(self) -> str:
        """The name of its plan."""
        return type(self.plan).__name__

    @override
    def run(self, transaction: DDLTransaction, parameters: Sequence[Any]) -> Outcome:
        """Carry it out."""
        self._define(self.plan, transaction)
        return Outcome()


class CreateTableAsStatement(Statement):
    """CREATE TABLE … AS, with the rows that its query has in the snapshot."""

    defines = True

    plan: CreateTableAs

    def __init__(self, plan: CreateTableAs) -> None:
        super().__init__(plan)
        self._select = SelectStatement(plan.select)

    @override
    def run(self, transaction: DDLTransaction, parameters: Sequence[Any]) -> Outcome:
        """Create the table with its rows."""
        plan, head = self.plan, self.plan.head
        table = Table(head.schema, head.name, ())
        place = transaction.engine.forms.plain(table)
        with transaction.statement():
            query, bound = self._select.query(transaction, parameters)
            made = NewTable(
                table,
                f"CREATE {'OR REPLACE ' * head.replaces}TABLE {place} {plan.columns} "
                f"AS {query}",
                (query, bound),
                is_empty=not plan.has_rows,
            )
            count = transaction.ddl.create_table(
                transaction,
                made,
                if_not_exists=head.if_not_exists,
                replaces=head.replaces,
            )
        return Outcome(count)


class CreateTemporaryStatement(Statement):
    """CREATE TEMPORARY TABLE, with a list of columns or a query."""

    plan: CreateTemporary

    def __init__(self, plan: CreateTemporary) -> None:
        super().__init__(plan)
        self._select = None if plan.select is None else SelectStatement(plan.select)

    @override
    def run(self, transaction: DDLTransaction, parameters: Sequence[Any]) -> Outcome:
        """Create the table for this connection; a rollback takes it back."""
        with transaction.statement():
            query = None
            if self._select is not None:
                query = self._select.query(transaction, parameters)
            count = transaction.temporaries.create(transaction, self.plan, query)
        return Outcome(count)


def create_temporary_view(
    plan: CreateTemporaryView, transaction: DDLTransaction
) -> None:
    """CREATE TEMPORARY VIEW, for this connection; a rollback takes it back."""
    with transaction.statement():
        transaction.temporaries.create_view(transaction, plan)


def drop_temporary_views(plan: DropTemporaryViews, transaction: DDLTransaction) -> None:
    """DROP VIEW of temporary views; a rollback brings them back."""
    with transaction.statement():
        transaction.temporaries.drop_views(transaction, plan.names)


def drop_table(plan: DropTable, transaction: DDLTransaction) -> None:
    """DROP TABLE."""
    own = [table for table in plan.tables if table.is_temporary]
    managed = [table for table in plan.tables if not table.is_temporary]
    if managed:
        transaction.ddl.drop_tables(
            transaction, managed, kind=plan.kind, cascade=plan.cascade
        )
    if own:
        with transaction.statement():
            transaction.temporaries.drop(transaction, own)


def create_index(plan: CreateIndex, transaction: DDLTransaction) -> None:
    """CREATE INDEX: an index of the storage table."""
    table = plan.table
    is_plain = not plan.is_computed and not plan.is_unique
    # The index may be too small for a row that this transaction has buffered: then
    # it is an alteration, which moves such rows to storage before (P4).
    if is_plain and not transaction.writes.get(table.id):
        transaction.ddl.define(transaction, table, plan.text)
        return
    # A row that another transaction has buffered may be one for which the index's
    # expression fails, or a duplicate: that transaction finds that the table has
    # another number (P4).
    with transaction.statement():
        if plan.unless is None or not is_there(transaction, table.schema, plan.unless):
            alter_by(transaction, table, plan.text, adds=plan.name)


def alter_by(
    transaction: DDLTransaction,
    table: Table,
    statement: str,
    expect: Callable[[], None] = lambda: None,
    adds: str | None = None,
) -> None:
    """Run a statement about a table's index or type as an alteration of the table.

    ``expect`` raises, when no other schema change runs, if this may not be done.
    """
    plan = AlterTable(
        parameters=0,
        references=(),
        before=table,
        after=table,
        changes="",
        origins=tuple(range(len(table.columns))),
        retyped=frozenset(),
        new_keys=frozenset(),
        cascade=False,
        statement=statement,
        adds=adds,
    )
    transaction.alterations.alter(transaction, plan, expect)


def drop_index(plan: DropIndex, transaction: DDLTransaction) -> None:
    """DROP INDEX."""
    with transaction.statement():
        owners = [owner(transaction, *name) for name in plan.names]
        table = next((table for table in owners if table is not None), None)
        if table is None:
            transaction.ddl.define(transaction, None, plan.text)
        elif len(owners) > 1:
            raise errors.NotSupportedError(
                f"a unique index of {table.qualified_name} is dropped by itself; "
                "write a statement for each index"
            )
        else:
            alter_by(transaction, table, plan.text)


def alter_table(plan: AlterTable, transaction: DDLTransaction) -> None:
    """ALTER TABLE."""
    if plan.changes or plan.after.foreign_keys != plan.before.foreign_keys:
        with transaction.statement():
            transaction.alterations.alter(transaction, plan)


def alter_nothing(plan: AlterNothing, transaction: DDLTransaction) -> None:
    """ALTER TABLE IF EXISTS of a table that is not there: do nothing."""
