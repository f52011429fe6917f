"""INSERT.

Rows whose values are exactly of their columns' types never meet the engine
before the commit, but for the question whether their keys are free. Other
values are converted by the engine, as on assignment. Many rows, and rows of
types that do not survive the way through Python, are staged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from tique import errors
from tique._constraints import (
    check_buffered,
    check_new_keys,
    check_not_null,
    check_staged_keys,
    check_unique,
    not_null_columns,
)
from tique._rows import key_of
from tique._snapshot import operand_value
from tique._statements.base import Outcome, Statement
from tique_backends.base import Row, Versions
from tique_rewriter.kernel import NotLocal, coercer
from tique_rewriter.plan import (
    Expression,
    InsertQuery,
    InsertRows,
    Literal,
    Operand,
    Parameter,
)
from tique_rewriter.values import kind_of

if TYPE_CHECKING:
    from tique._transaction import Transaction
    from tique_rewriter.schema import Table

BUFFERED_ROWS = 2000
"""A statement that writes more rows stages them."""

_CONVERTED_AT_ONCE = 50

_CLAMPED = frozenset({date.min, date.max, datetime.min, datetime.max})
"""What Python makes of timestamps that it cannot hold (infinity): not exact."""

RowMaker = Callable[[Sequence[Any]], Row]


def _family(table: Table, position: int) -> str:
    kind = kind_of(table.columns[position].type)
    return kind.family if kind else ""


def dated_columns(table: Table) -> list[int]:
    """The columns whose values must be looked at before a row is buffered."""
    return [
        i
        for i in range(len(table.columns))
        if _family(table, i) in ("date", "timestamp")
    ]


def exactness(table: Table) -> Callable[[Row], bool]:
    """A function that says whether a row from the engine can be buffered.

    Timestamps that Python cannot hold come as the nearest one or as text, and a
    NaN in a key is equal to itself in the engine but not here.
    """
    keys = {i for columns in (table.primary_key, *table.unique) for i in columns}
    dated = dated_columns(table)
    doubles = [i for i in keys if _family(table, i) == "double"]
    if not dated and not doubles:
        return lambda row: True

    def is_exact(row: Row) -> bool:
        return all(
            not isinstance(row[i], str) and row[i] not in _CLAMPED for i in dated
        ) and all(row[i] == row[i] for i in doubles)

    return is_exact


def insert_rows(transaction: Transaction, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows whose values are exactly of their columns' types."""
    writes = transaction.writes_to(table)
    every_column = range(len(table.columns))
    if writes.is_staged or len(rows) > BUFFERED_ROWS:
        writes.switch_to_stage(transaction.session)
        count = len(rows)
        transaction.session.stage(
            Versions(table, rows, [transaction.sequence] * count, [False] * count)
        )
        finish_staged(transaction, table, count, every_column, new_keys=True)
        return
    required = not_null_columns(table)
    for row in rows:
        check_not_null(table, required, row)
    if table.is_bag:
        for row in rows:
            writes.add(transaction.version_of(row))
    else:
        keys = [key_of(table.primary_key, row) for row in rows]
        check_new_keys(transaction, table, keys, ())
        for key, row in zip(keys, rows, strict=True):
            writes.put(key, transaction.version_of(row))
    check_buffered(transaction, writes, every_column)


def finish_staged(
    transaction: Transaction,
    table: Table,
    count: int,
    changed: Iterable[int],
    *,
    new_keys: bool,
) -> None:
    """Account for staged rows and check their keys."""
    transaction.writes_to(table).note_staged(count, transaction.sts)
    if new_keys:
        check_staged_keys(transaction, table)
    check_unique(transaction, table, set(changed))


class InsertRowsStatement(Statement):
    """INSERT … VALUES."""

    def __init__(self, plan: InsertRows) -> None:
        super().__init__(plan)
        self._table = plan.table
        self._is_exact = exactness(plan.table)
        self._rows = [self._by_column(plan.columns, row) for row in plan.rows]
        self._makers = [self._maker(row) for row in self._rows]
        self._simple = len(self._rows) == 1 and all(
            expression is None or isinstance(expression.kernel, Parameter | Literal)
            for expression in self._rows[0]
        )

    def _by_column(
        self, positions: Sequence[int], row: Sequence[Expression | None]
    ) -> list[Expression | None]:
        """The row's expressions for all columns; None is NULL."""
        given = dict(zip(positions, row, strict=True))
        result: list[Expression | None] = []
        for position, column in enumerate(self._table.columns):
            expression = given.get(position)
            if expression is None and column.default is not None:
                expression = Expression((column.default,))
            result.append(expression)
        return result

    def _maker(self, row: Sequence[Expression | None]) -> RowMaker | None:
        """A function from parameters to the row, if no engine is needed for it."""
        parts: list[tuple[Operand, Callable[[Any], Any]]] = []
        for expression, column in zip(row, self._table.columns, strict=True):
            kernel = Literal(None) if expression is None else expression.kernel
            if not isinstance(kernel, Parameter | Literal):
                return None
            parts.append((kernel, coercer(column.type)))
        return lambda parameters: tuple(
            [coerce(operand_value(operand, parameters)) for operand, coerce in parts]
        )

    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Insert the rows."""
        with transaction.statement():
            try:
                rows = [self._make(transaction, m, parameters) for m in self._makers]
            except NotLocal:
                self._insert_converted(
                    transaction, *self._query(parameters, transaction)
                )
            else:
                insert_rows(transaction, self._table, rows)
        return Outcome(len(self._makers))

    def run_many(
        self, transaction: Transaction, parameter_rows: Iterable[Sequence[Any]]
    ) -> Outcome:
        """Insert all rows as one statement."""
        rows: list[Row] = []
        odd: list[Sequence[Any]] = []
        for parameters in parameter_rows:
            try:
                made = [self._make(transaction, m, parameters) for m in self._makers]
            except NotLocal:
                odd.append(parameters)
            else:
                rows += made
        with transaction.statement():
            if rows:
                insert_rows(transaction, self._table, rows)
            for sql, bound in self._queries(odd, transaction):
                self._insert_converted(transaction, sql, bound)
        return Outcome(len(rows) + len(odd) * len(self._makers))

    def _make(
        self,
        transaction: Transaction,
        maker: RowMaker | None,
        parameters: Sequence[Any],
    ) -> Row:
        if maker is None or not transaction.database.catalog.buffers(self._table):
            raise NotLocal
        return maker(parameters)

    def _query(
        self, parameters: Sequence[Any], transaction: Transaction
    ) -> tuple[str, Sequence[Any]]:
        """A query for the rows, converted to the columns' types."""
        cast = transaction.database.engine.forms.cast
        texts, bound = self.text.fill(
            transaction,
            parameters,
            *[e.text if e else ("NULL",) for row in self._rows for e in row],
        )
        types = [column.type for column in self._table.columns] * len(self._rows)
        items = [cast(f"({t})", k) for t, k in zip(texts, types, strict=True)]
        width = len(self._table.columns)
        selects = [
            f"SELECT {', '.join(items[start : start + width])}"
            for start in range(0, len(items), width)
        ]
        return " UNION ALL ".join(selects), bound

    def _queries(
        self, parameter_rows: Sequence[Sequence[Any]], transaction: Transaction
    ) -> Iterator[tuple[str, Sequence[Any]]]:
        """Queries for many rows, as few as there can be."""
        if not self._simple:
            for parameters in parameter_rows:
                yield self._query(parameters, transaction)
            return
        cast = transaction.database.engine.forms.cast
        for start in range(0, len(parameter_rows), _CONVERTED_AT_ONCE):
            selects, bound = [], []
            for parameters in parameter_rows[start : start + _CONVERTED_AT_ONCE]:
                items = []
                for expression, column in zip(
                    self._rows[0], self._table.columns, strict=True
                ):
                    if expression is None:
                        items.append(cast("NULL", column.type))
                        continue
                    kernel = expression.kernel
                    assert isinstance(kernel, Parameter | Literal)
                    bound.append(operand_value(kernel, parameters))
                    items.append(cast(f"${len(bound)}", column.type))
                selects.append(f"SELECT {', '.join(items)}")
            yield " UNION ALL ".join(selects), bound

    def _insert_converted(
        self, transaction: Transaction, sql: str, bound: Sequence[Any]
    ) -> None:
        if transaction.database.catalog.buffers(self._table):
            rows = transaction.session.execute(sql, bound).fetch_all()
            if all(map(self._is_exact, rows)):
                insert_rows(transaction, self._table, rows)
                return
        stage_query(transaction, self._table, f"SELECT * FROM ({sql}) AS _q", bound)


def stage_query(
    transaction: Transaction, table: Table, query: str, bound: Sequence[Any]
) -> int:
    """Insert a query's rows (all columns, in order) without moving them."""
    writes = transaction.writes_to(table)
    writes.switch_to_stage(transaction.session)
    sql = transaction.database.engine.forms.stage_query(
        ["*"], f" FROM ({query}) AS _q", transaction.sequence, deleted=False
    )
    count = transaction.session.stage_query(table, sql, bound)
    finish_staged(transaction, table, count, range(len(table.columns)), new_keys=True)
    return count


class InsertQueryStatement(Statement):
    """INSERT … SELECT."""

    def __init__(self, plan: InsertQuery) -> None:
        super().__init__(plan)
        self._table = plan.table
        self._columns = plan.columns
        self._query = plan.query
        self._is_exact = exactness(plan.table)

    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Insert the query's rows: through the buffer if they are few."""
        table = self._table
        session = transaction.session
        with transaction.statement():
            transaction.writes_to(table)
            sql, bound = self.query(transaction, parameters)
            if transaction.database.catalog.buffers(table):
                most = BUFFERED_ROWS + 1
                result = session.execute_some(sql, bound, most, wide=self.text.is_wide)
                rows = result.fetch(most)
                result.close()
                if len(rows) <= BUFFERED_ROWS and all(map(self._is_exact, rows)):
                    insert_rows(transaction, table, rows)
                    return Outcome(len(rows))
            return Outcome(stage_query(transaction, table, sql, bound))

    def query(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> tuple[str, Sequence[Any]]:
        """The query for whole rows, defaults added, types converted."""
        forms = transaction.database.engine.forms
        (sql,), bound = self.text.fill(transaction, parameters, self._query)
        width = transaction.session.width(sql, bound)
        if width != len(self._columns):
            raise errors.ProgrammingError(
                f"INSERT INTO {self._table.qualified_name} has {len(self._columns)} "
                f"columns but its query returns {width}"
            )
        names = {position: f"_{i}" for i, position in enumerate(self._columns)}
        items = [
            forms.cast(
                names.get(position, f"({column.default or 'NULL'})"), column.type
            )
            for position, column in enumerate(self._table.columns)
        ]
        aliases = ", ".join(names.values())
        return f"SELECT {', '.join(items)} FROM ({sql}) AS _q({aliases})", bound
