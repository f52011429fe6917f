"""COPY, and rows that are appended from Arrow tables.

COPY into a table goes into a temporary table with its columns, by the engine's own
COPY: it reads the data, converts them and adds defaults. From there the rows are
inserted as by INSERT … SELECT, with all checks, in the same statement of the transaction.
If the process dies before, the temporary table goes with its connection.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique import errors
from tique.query.base import Outcome, Statement
from tique.query.write.insert import InsertQueryStatement, InsertRowsStatement
from tique_backends.errors import EngineError, speaking_of
from tique_rewriter.plans.change_plans import InsertQuery, InsertRows
from tique_rewriter.plans.plan import Expression, Parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow

    from tique.query.transaction.transaction import Transaction
    from tique_backends.records import CopyPart
    from tique_rewriter.plans.change_plans import CopyIn, CopyOut
    from tique_rewriter.schema import Table


def _no_stream(place: str) -> errors.ProgrammingError:
    return errors.ProgrammingError(
        f"COPY with {place} has rows of the client's: use cursor.copy()"
    )


def _insertion(
    table: Table, columns: Sequence[int], query: str
) -> InsertQueryStatement:
    """The statement that inserts a query's rows."""
    return InsertQueryStatement(InsertQuery(0, (), table, tuple(columns), (query,)))


class CopyInStatement(Statement):
    """COPY … FROM a file or a stream."""

    def __init__(self, plan: CopyIn) -> None:
        super().__init__(plan)
        self._table = plan.table
        self._columns = plan.columns
        self._tail = plan.tail
        self.is_stream = plan.is_stream
        self.needs |= {(plan.table, name) for name in ("SELECT", "INSERT")}

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Copy a file's rows into the table."""
        if self.is_stream:
            raise _no_stream("STDIN")
        return self._load(
            transaction, lambda sql: transaction.session.execute(sql).close()
        )

    def load(
        self,
        transaction: Transaction,
        parts: Iterable[CopyPart],
        types: Sequence[int | str],
    ) -> Outcome:
        """Copy the client's rows into the table.

        Parameters
        ----------
        transaction
            The transaction.
        parts, types
            As for :meth:`Session.copy_in`.
        """
        return self._load(
            transaction, lambda sql: transaction.session.copy_in(sql, parts, types)
        )

    def _load(self, transaction: Transaction, copy: Callable[[str], None]) -> Outcome:
        session, table = transaction.session, self._table
        quote = transaction.engine.forms.quote
        with transaction.statement():
            transaction.writes_to(table)
            names = ", ".join(quote(table.columns[i].name) for i in self._columns)
            target = session.create_incoming(table)
            try:
                with speaking_of(table, target):
                    copy(f"COPY {target} ({names}) {self._tail}")
                every = ", ".join(
                    quote(column.name)
                    if default == (column.default or "NULL") or i in self._columns
                    else f"({default})"
                    for i, column in enumerate(table.columns)
                    for default in [transaction.default(column.default)]
                )
                insertion = _insertion(
                    table, range(len(table.columns)), f"SELECT {every} FROM {target}"
                )
                outcome = insertion.run_within(transaction, ())
            finally:
                # The statement's own error is the one to raise.
                with suppress(EngineError):
                    session.drop_incoming()
            return outcome


class CopyOutStatement(Statement):
    """COPY … TO a file or a stream."""

    writes = False

    def __init__(self, plan: CopyOut) -> None:
        super().__init__(plan)
        self._copy = plan.text
        self.is_stream = plan.is_stream

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Copy the query's rows into a file."""
        if self.is_stream:
            raise _no_stream("STDOUT")
        result = transaction.session.execute(self._sql(transaction))
        rows = result.fetch_all()
        if [column.name for column in result.columns] == ["Count"]:
            return Outcome(int(rows[0][0]))
        return Outcome(len(rows), result.columns, rows)

    def unload(
        self, transaction: Transaction, types: Sequence[int | str] | None
    ) -> tuple[list[CopyPart], int]:
        """The query's rows; as for :meth:`Session.copy_out`."""
        return transaction.session.copy_out(self._sql(transaction), types)

    def _sql(self, transaction: Transaction) -> str:
        transaction.refresh()
        (sql,), _ = self.text.fill(transaction, (), self._copy)
        return sql


class AppendStatement(Statement):
    """Rows of an Arrow table, inserted into columns by name."""

    def __init__(self, table: Table, columns: Sequence[int]) -> None:
        values = tuple(
            Expression((f"${number}",), Parameter(number))
            for number in range(1, len(columns) + 1)
        )
        plan = InsertRows(len(columns), (), table, tuple(columns), (values,))
        super().__init__(plan)
        self._table = table
        self._columns = columns
        self._rows = InsertRowsStatement(plan)
        self.needs = self._rows.needs

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Insert the rows of an Arrow table, the only parameter.

        Its columns are those that the statement was made for, in their order.
        """
        data: pyarrow.Table = parameters[0]
        if not data.num_rows:
            return Outcome(0)
        with transaction.session.arrow_relation(data) as relation:
            if relation is None:
                columns = [column.to_pylist() for column in data.columns]
                return self._rows.run_many(transaction, zip(*columns, strict=True))
            quote = transaction.engine.forms.quote
            names = ", ".join(quote(name) for name in data.column_names)
            query = f"SELECT {names} FROM {relation}"
            with transaction.statement():
                insertion = _insertion(self._table, self._columns, query)
                return insertion.run_within(transaction, ())
