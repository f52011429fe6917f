"""INSERT.

Rows whose values are exactly of their columns' types do not reach the engine
before the commit; it is asked only whether their keys are free. Other
values are converted by the engine, as on assignment. Many rows, and rows that
the driver cannot hold unchanged, are staged.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique import errors
from tique.query.read.sources import operand_value
from tique.query.write.assigning import Assigned
from tique.query.write.changes import (
    Computed,
    Written,
    few_rows,
    stage_query,
    write_changes,
)
from tique.query.write.conflict import ConflictClause
from tique.query.write.writing import WritingStatement
from tique_backends.records import Row
from tique_rewriter.local.kernel import NotLocal, coercer
from tique_rewriter.plans.plan import Expression, Literal, Operand, Parameter
from tique_rewriter.plans.text import Default, Moment

if TYPE_CHECKING:
    from tique.query.base import Outcome
    from tique.query.transaction.transaction import Transaction
    from tique_rewriter.plans.change_plans import InsertQuery, InsertRows

_CONVERTED_AT_ONCE = 50

RowMaker = Callable[[Sequence[Any]], Row]


class InsertStatement(WritingStatement):
    """The common base of both kinds of INSERT: it handles proposed rows."""

    privileges = ("INSERT",)

    def __init__(self, plan: InsertRows | InsertQuery) -> None:
        super().__init__(plan, plan.returning)
        if plan.conflict is not None and plan.conflict.update is not None:
            self.needs |= {(plan.table, "UPDATE")}
        self._assigned = Assigned(plan.table)
        self._conflict = (
            None
            if plan.conflict is None
            else ConflictClause(
                plan.conflict,
                plan.table,
                self.text,
                returns=plan.returning is not None,
            )
        )

    def _converted(
        self, transaction: Transaction, sql: str, bound: Sequence[Any]
    ) -> list[Row]:
        """The rows of a query for them; raises NotLocal if they must be staged."""
        if transaction.catalog.buffers(self._table):
            rows = transaction.session.rows_to_keep(sql, bound, of=self._table)
            if self._are_exact(rows):
                return rows
        raise NotLocal

    @abstractmethod
    def _proposed(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> list[Row]:
        """The rows to insert; raises NotLocal if they must be staged."""

    @override
    def compute(self, transaction: Transaction, parameters: Sequence[Any]) -> Computed:
        try:
            rows = self._proposed(transaction, parameters)
            if self._conflict is not None:
                return self._conflict.changes(transaction, [(parameters, rows)])
        except NotLocal:
            raise self._not_beside_others() from None
        changes = [(None, row) for row in rows]
        return Computed(changes, range(len(self._table.columns)), len(changes))

    def _insert(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        rows: Sequence[Row],
    ) -> Written:
        """Insert rows whose values are exactly of their columns' types.

        Raises
        ------
        NotLocal
            If ON CONFLICT meets rows that the driver cannot hold.
        """
        if self._conflict is not None:
            return self._conflict.write(transaction, [(parameters, rows)])
        changes = [(None, row) for row in rows]
        every_column = range(len(self._table.columns))
        return write_changes(transaction, self._table, changes, every_column)

    def _stage(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        sql: str,
        bound: Sequence[Any],
    ) -> Written:
        """Insert a query's rows, which stay in the engine."""
        if self._conflict is not None:
            return self._conflict.in_engine.write(transaction, parameters, sql, bound)
        return stage_query(transaction, self._table, sql, bound)


class InsertRowsStatement(InsertStatement):
    """INSERT … VALUES."""

    def __init__(self, plan: InsertRows) -> None:
        super().__init__(plan)
        self._rows = [self._by_column(plan.columns, row) for row in plan.rows]
        self._makers = [self._maker(row) for row in self._rows]
        self._simple = len(self._rows) == 1 and all(map(_is_simple, self._rows[0]))

    def _by_column(
        self, positions: Sequence[int], row: Sequence[Expression | None]
    ) -> list[Expression | None]:
        """The row's expressions for all columns; None is NULL."""
        given = dict(zip(positions, row, strict=True))
        result: list[Expression | None] = []
        for position, column in enumerate(self._table.columns):
            expression = given.get(position)
            if expression is None and column.default is not None:
                expression = Expression((Default(column.default),))
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

    @override
    def _write(self, transaction: Transaction, parameters: Sequence[Any]) -> Written:
        try:
            rows = self._made_here(transaction, parameters)
            return self._insert(transaction, parameters, rows)
        except NotLocal:
            query = self._query(parameters, transaction)
            try:
                rows = self._converted(transaction, *query)
                return self._insert(transaction, parameters, rows)
            except NotLocal:
                return self._stage_converted(transaction, parameters, *query)

    @override
    def _proposed(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> list[Row]:
        try:
            return self._made_here(transaction, parameters)
        except NotLocal:
            return self._converted(transaction, *self._query(parameters, transaction))

    @override
    def _write_many(
        self, transaction: Transaction, parameter_rows: Sequence[Sequence[Any]]
    ) -> int:
        made, odd = self._made(transaction, parameter_rows)
        if self._conflict is None:
            rows = [row for some in made.values() for row in some]
            staged = []
            for query in self._queries([parameter_rows[n] for n in odd], transaction):
                try:
                    rows += self._converted(transaction, *query)
                except NotLocal:
                    staged.append(query)
            # Keys are looked up once for all rows, not for each query.
            count = self._insert(transaction, (), rows).rowcount
            for query in staged:
                count += self._stage_converted(transaction, (), *query).rowcount
            return count
        # Conflicts depend on the order of rows.
        try:
            self._add_converted(transaction, parameter_rows, made, odd)
            proposals = [(given, made[n]) for n, given in enumerate(parameter_rows)]
            return self._conflict.write(transaction, proposals).rowcount
        except NotLocal:
            return super()._write_many(transaction, parameter_rows)

    @override
    def _outcomes(
        self, transaction: Transaction, parameter_rows: Sequence[Sequence[Any]]
    ) -> list[Outcome]:
        """Write for every row of parameters, as one batch if no result needs more."""
        returning = self._returning
        if self._conflict is None and returning is not None and returning.is_plain:
            try:
                made, odd = self._made(transaction, parameter_rows)
                self._add_converted(transaction, parameter_rows, made, odd)
            except NotLocal:
                return super()._outcomes(transaction, parameter_rows)
            rows = [row for n in range(len(parameter_rows)) for row in made[n]]
            self._insert(transaction, (), rows)
            return returning.outcomes(transaction, rows, len(self._makers))
        return super()._outcomes(transaction, parameter_rows)

    def _made(
        self, transaction: Transaction, parameter_rows: Sequence[Sequence[Any]]
    ) -> tuple[dict[int, list[Row]], list[int]]:
        """The rows that need no engine by number of parameters; the other numbers."""
        made: dict[int, list[Row]] = {}
        odd: list[int] = []
        for number, parameters in enumerate(parameter_rows):
            try:
                made[number] = self._made_here(transaction, parameters)
            except NotLocal:
                odd.append(number)
        return made, odd

    def _add_converted(
        self,
        transaction: Transaction,
        parameter_rows: Sequence[Sequence[Any]],
        made: dict[int, list[Row]],
        odd: Sequence[int],
    ) -> None:
        """Add the rows of ``odd`` parameters; raises NotLocal if one must be staged."""
        queries = self._queries([parameter_rows[n] for n in odd], transaction)
        converted = iter(
            [row for query in queries for row in self._converted(transaction, *query)]
        )
        for number in odd:
            made[number] = list(islice(converted, len(self._makers)))

    def _made_here(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> list[Row]:
        """The rows, if no engine is needed for any of them; raises NotLocal."""
        rows = []
        for maker in self._makers:
            if maker is None or not transaction.catalog.buffers(self._table):
                raise NotLocal
            rows.append(maker(parameters))
        return rows

    def _query(
        self, parameters: Sequence[Any], transaction: Transaction
    ) -> tuple[str, Sequence[Any]]:
        """A query for the rows, converted to the columns' types."""
        cast = transaction.engine.forms.cast
        texts, bound = self.text.fill(
            transaction,
            parameters,
            *[e.text if e else ("NULL",) for row in self._rows for e in row],
        )
        width = len(self._table.columns)
        if not self._assigned.is_known(transaction, parameters):
            query = _values(
                [texts[start : start + width] for start in range(0, len(texts), width)]
            )
            self._assigned.check(transaction, parameters, range(width), query, bound)
        types = self._table.types * len(self._rows)
        items = [cast(f"({t})", k) for t, k in zip(texts, types, strict=True)]
        converted = [
            items[start : start + width] for start in range(0, len(items), width)
        ]
        return _values(converted), bound

    def _queries(
        self, parameter_rows: Sequence[Sequence[Any]], transaction: Transaction
    ) -> Iterator[tuple[str, Sequence[Any]]]:
        """Queries for many rows, as few as possible."""
        if not self._simple:
            for parameters in parameter_rows:
                yield self._query(parameters, transaction)
            return
        for parameters in parameter_rows:
            if not self._assigned.is_known(transaction, parameters):
                self._query(parameters, transaction)
        cast = transaction.engine.forms.cast
        for start in range(0, len(parameter_rows), _CONVERTED_AT_ONCE):
            rows, bound = [], []
            for parameters in parameter_rows[start : start + _CONVERTED_AT_ONCE]:
                items = []
                for expression, column in zip(
                    self._rows[0], self._table.columns, strict=True
                ):
                    if expression is None:
                        items.append(cast("NULL", column.type))
                        continue
                    kernel = expression.kernel
                    if isinstance(kernel, Parameter | Literal):
                        bound.append(operand_value(kernel, parameters))
                        text = f"${len(bound)}"
                    else:
                        (filled,), _ = self.text.fill(transaction, (), expression.text)
                        text = f"({filled})"
                    items.append(cast(text, column.type))
                rows.append(items)
            yield _values(rows), bound

    def _stage_converted(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        sql: str,
        bound: Sequence[Any],
    ) -> Written:
        """Insert the rows of one of the queries, which stay in the engine."""
        query = f"SELECT * FROM ({sql}) AS _q"
        return self._stage(transaction, parameters, query, bound)


def _values(rows: Iterable[Sequence[str]]) -> str:
    """The relation of rows of expressions."""
    listed = [f"({', '.join(row)})" for row in rows]
    return f"VALUES {', '.join(listed)}"


def _is_simple(expression: Expression | None) -> bool:
    """Whether it is a parameter or a literal, or its text needs no parameters."""
    return (
        expression is None
        or isinstance(expression.kernel, Parameter | Literal)
        or all(
            isinstance(piece, Default | Moment)
            or (isinstance(piece, str) and "$" not in piece)
            for piece in expression.text
        )
    )


class InsertQueryStatement(InsertStatement):
    """INSERT … SELECT."""

    def __init__(self, plan: InsertQuery) -> None:
        super().__init__(plan)
        self._columns = plan.columns
        self._query = plan.query
        self._is_by_name = plan.is_by_name

    @override
    def _proposed(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> list[Row]:
        return self._converted(transaction, *self.query(transaction, parameters))

    @override
    def _write(self, transaction: Transaction, parameters: Sequence[Any]) -> Written:
        """Insert the query's rows: through the buffer if they are few."""
        transaction.writes_to(self._table)
        sql, bound = self.query(transaction, parameters)
        if transaction.catalog.buffers(self._table):
            rows = self._few(transaction, sql, bound)
            if rows is not None and self._are_exact(rows):
                with suppress(NotLocal):
                    return self._insert(transaction, parameters, rows)
        return self._stage(transaction, parameters, sql, bound)

    def _few(
        self, transaction: Transaction, sql: str, bound: Sequence[Any]
    ) -> list[Row] | None:
        """The query's rows; None if there are too many to buffer."""
        if self._conflict is not None:
            return transaction.session.rows_to_keep(sql, bound, of=self._table)
        return few_rows(transaction, self._table, sql, bound, wide=self.text.is_wide)

    def query(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> tuple[str, Sequence[Any]]:
        """The query for whole rows, defaults added, types converted."""
        forms = transaction.engine.forms
        (sql,), bound = self.text.fill(transaction, parameters, self._query)
        columns: Sequence[int]
        if self._is_by_name:
            columns = self._named(transaction, sql, bound)
        else:
            columns = self._columns
            width = transaction.session.width(sql, bound)
            if width != len(columns):
                raise errors.ProgrammingError(
                    f"INSERT INTO {self._table.qualified_name} has {len(columns)} "
                    f"columns but its query returns {width}"
                )
        self._assigned.check(transaction, parameters, columns, sql, bound)
        names = {position: f"_{i}" for i, position in enumerate(columns)}
        items = [
            forms.cast(
                names.get(position) or f"({transaction.default(column.default)})",
                column.type,
            )
            for position, column in enumerate(self._table.columns)
        ]
        aliases = ", ".join(names.values())
        return f"SELECT {', '.join(items)} FROM ({sql}) AS _q({aliases})", bound

    def _named(
        self, transaction: Transaction, sql: str, bound: Sequence[Any]
    ) -> list[int]:
        """The columns that the query's results are named after.

        Raises
        ------
        ProgrammingError
            If there is no such column, or one is named twice.
        """
        result = transaction.session.execute(
            f"SELECT * FROM ({sql}) AS _q LIMIT 0", bound
        )
        result.close()
        table = self._table
        columns: list[int] = []
        for column in result.columns:
            position = table.positions.get(column.name.lower())
            if position is None or position in columns:
                problem = "is no column of it" if position is None else "is given twice"
                raise errors.ProgrammingError(
                    f'INSERT INTO {table.qualified_name} BY NAME: "{column.name}" '
                    f"{problem}"
                )
            columns.append(position)
        return columns
