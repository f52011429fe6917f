"""Rows in bulk: COPY between the application and the engine, and tables in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tique import errors
from tique.connection.transfer.append import columns_by_name, fitted
from tique.query.write.copying import (
    AppendStatement,
    CopyInStatement,
    CopyOutStatement,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow

    from tique.connection.execution import Execution
    from tique.query.base import Outcome
    from tique.query.transaction.ddl_transaction import DDLTransaction
    from tique_rewriter.schema import Table


class BulkStatements:
    """What cursors of one connection ask for beside the text of statements."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution

    def copies_in(self, query: str) -> bool:
        """Whether a COPY takes rows; else it gives some."""
        with self._execution.guarded():
            is_in = isinstance(self._copy_statement(query), CopyInStatement)
            self._execution.drop_statement()
            return is_in

    def copy(
        self, query: str, run: Callable[[Any, DDLTransaction], Outcome]
    ) -> Outcome:
        """Execute a COPY between the application and the engine."""
        with self._execution.guarded():
            statement = self._copy_statement(query)
            return self._execution.run_in_transaction(
                statement, (), lambda transaction, _: run(statement, transaction)
            )

    def append(self, name: str, schema: str | None, data: pyarrow.Table) -> Outcome:
        """Insert the rows of an Arrow table.

        Raises
        ------
        ProgrammingError
            If there is no such table (42P01), or it lacks one of the columns.
        """
        execution = self._execution
        with execution.guarded():
            if execution.database.timeline.is_shared and not execution.in_transaction:
                # As for any statement that is planned.
                execution.begin()
            table = self.find(schema, name)
            columns = columns_by_name(table, data.column_names)
            data = fitted(data, [table.columns[i].type for i in columns])
            statement = AppendStatement(table, columns)
            return execution.run_in_transaction(statement, (data,), statement.run)

    def find(self, schema: str | None, name: str) -> Table:
        """The table of that name.

        Raises
        ------
        ProgrammingError
            If there is none (42P01).
        """
        temporary = self._execution.temporaries.find(schema, name)
        table = temporary or self._execution.planner.catalog.find(schema, name)
        if table is None:
            shown = name if schema is None else f"{schema}.{name}"
            raise errors.ProgrammingError(
                f'unknown table "{shown}"; existing tables are taken in with `tique adopt`',
                sqlstate="42P01",
            )
        return table

    def _copy_statement(self, query: str) -> CopyInStatement | CopyOutStatement:
        execution = self._execution
        planner = execution.planner
        statement = planner.statement(planner.plan(query, False))
        if (
            not isinstance(statement, CopyInStatement | CopyOutStatement)
            or not statement.is_stream
        ):
            raise errors.ProgrammingError(
                "cursor.copy() takes COPY … FROM STDIN or TO STDOUT; use execute() for "
                "this statement"
            )
        return statement
