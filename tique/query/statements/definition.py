"""CREATE, ALTER and DROP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique.query.statements.base import Outcome, Statement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique.query.transaction import Transaction
    from tique_rewriter.alter import AlterNothing, AlterTable
    from tique_rewriter.ddl_plans import CreateIndex, CreateTable, DropIndex, DropTable


class CreateTableStatement(Statement):
    """CREATE TABLE."""

    def __init__(self, plan: CreateTable) -> None:
        super().__init__(plan)
        self._create = plan

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Create the table; it takes effect at once."""
        transaction.ddl.create_table(
            transaction,
            self._create.table,
            self._create.text,
            if_not_exists=self._create.if_not_exists,
        )
        return Outcome()


class DropTableStatement(Statement):
    """DROP TABLE."""

    def __init__(self, plan: DropTable) -> None:
        super().__init__(plan)
        self._tables = plan.tables
        self._cascade = plan.cascade

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Drop the tables; it takes effect at once."""
        if self._tables:
            transaction.ddl.drop_tables(
                transaction, self._tables, cascade=self._cascade
            )
        return Outcome()


class CreateIndexStatement(Statement):
    """CREATE INDEX: an index of the storage table."""

    def __init__(self, plan: CreateIndex) -> None:
        super().__init__(plan)
        self._create = plan

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Create the index; it takes effect at once."""
        transaction.ddl.define(transaction, self._create.table, self._create.text)
        return Outcome()


class DropIndexStatement(Statement):
    """DROP INDEX."""

    def __init__(self, plan: DropIndex) -> None:
        super().__init__(plan)
        self._text = plan.text

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Drop the index; it takes effect at once."""
        transaction.ddl.define(transaction, None, self._text)
        return Outcome()


class AlterTableStatement(Statement):
    """ALTER TABLE."""

    def __init__(self, plan: AlterTable) -> None:
        super().__init__(plan)
        self._alter = plan

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Alter the table; it takes effect at once."""
        plan = self._alter
        if plan.changes or plan.after.foreign_keys != plan.before.foreign_keys:
            with transaction.statement():
                transaction.alterations.alter(transaction, plan)
        return Outcome()


class AlterNothingStatement(Statement):
    """ALTER TABLE IF EXISTS of a table that is not there."""

    def __init__(self, plan: AlterNothing) -> None:
        super().__init__(plan)

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Do nothing."""
        return Outcome()
