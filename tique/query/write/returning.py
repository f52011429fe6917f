"""RETURNING: a select list over the rows that a statement wrote.

Plain columns of buffered rows are picked here. All else is a query: over the rows as
constants, or over the staged rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tique.query.base import Outcome
from tique.query.read.naming import ResultNames
from tique.store.rows import key_of
from tique_backends.records import ResultColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique.query.read.snapshot import SnapshotText
    from tique.query.transaction.transaction import Transaction
    from tique.query.write.changes import Change, Written
    from tique_backends.records import Row
    from tique_rewriter.plans.change_plans import JoinedReturning, Returning
    from tique_rewriter.schema import Table


class ReturningClause:
    """RETURNING, ready to be applied to the rows that a statement wrote."""

    def __init__(self, plan: Returning, table: Table, text: SnapshotText) -> None:
        self._plan = plan
        self._table = table
        self._text = text
        self._names = ResultNames(self._plain)
        self._columns = [
            ResultColumn(name, table.columns[position].type)
            for position, name in plan.plain or ()
        ]

    def items(self, transaction: Transaction, parameters: Sequence[Any]) -> str:
        """The select list, to be filled in before the statement writes anything.

        Subqueries in it see the rows before the statement.
        """
        (items,), _ = self._text.fill(transaction, parameters, self._plan.items)
        return items

    def outcome(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        items: str,
        written: Written,
    ) -> Outcome:
        """The statement's result. All of it is fetched: an error is the statement's."""
        forms = transaction.engine.forms
        if written.changes is None:
            source = forms.staged(self._table, transaction.sequence)
            if self._table.generated:
                source = forms.computed(self._table, source)
        else:
            # A row after the statement, or a deleted row before it.
            rows = [new or old or () for old, new in written.changes]
            if self._plan.plain is not None:
                return self._picked(transaction, rows)
            source = self._rows(transaction, rows)
        sql = f"SELECT {items} FROM {source} AS {self._plan.qualifier}"
        bound = self._plan.bound(parameters)
        result = transaction.session.execute(sql, bound)
        found = result.fetch_all()
        columns = self._names.of(transaction, result.columns, sql, bound)
        return Outcome(len(found), columns, found)

    @property
    def is_plain(self) -> bool:
        """Whether it has nothing but columns as they stand."""
        return self._plan.plain is not None

    def outcomes(
        self, transaction: Transaction, rows: Sequence[Row], size: int
    ) -> list[Outcome]:
        """The results of executions that wrote ``size`` of these rows each.

        Where :attr:`is_plain`.
        """
        every = self._picked(transaction, rows)
        assert every.rows is not None
        return [
            Outcome(size, self._columns, every.rows[start : start + size])
            for start in range(0, len(rows), size)
        ]

    def relation(
        self, transaction: Transaction, items: str, changes: Sequence[Change]
    ) -> str:
        """A parenthesised query for the result, without parameters, of these changes."""
        source = self._rows(transaction, [new or old or () for old, new in changes])
        return f"(SELECT {items} FROM {source} AS {self._plan.qualifier})"

    def _rows(self, transaction: Transaction, rows: Sequence[Row]) -> str:
        """A parenthesised query for these rows."""
        every_column = range(len(self._table.columns))
        values = [[row[i] for row in rows] for i in every_column]
        forms = transaction.engine.forms
        source = forms.constants(self._table, every_column, {}, values)
        return forms.computed(self._table, source) if self._table.generated else source

    def _plain(self, transaction: Transaction) -> str:
        """The select list over the storage tables."""
        items = self._text.plain(transaction, self._plan.items)
        table = transaction.engine.forms.plain(self._table)
        return f"SELECT {items} FROM {table} AS {self._plan.qualifier}"

    def _picked(self, transaction: Transaction, rows: Sequence[Row]) -> Outcome:
        assert self._plan.plain is not None
        positions = [position for position, _ in self._plan.plain]
        types = [column.type for column in self._columns]
        picked = [key_of(positions, row) for row in rows]
        return Outcome(
            len(rows), self._columns, transaction.session.shown(types, picked)
        )


class JoinedReturningClause:
    """RETURNING of MERGE, and of UPDATE … FROM and DELETE … USING that looks at joined relations.

    The query that finds the changed rows computes the result too: which of several joined
    rows changes a row is the engine's choice, which is not made twice. It has the old row
    as ``_o0`` … and the new values as ``_n0`` … by position, and the columns of the joined
    relations; around it each relation gets its own name again, so that the application's
    list means what it says.

    Attributes
    ----------
    carried : list of str
        The items that the query must have besides the rows, among the joined relations.
    """

    def __init__(self, plan: JoinedReturning, table: Table, text: SnapshotText) -> None:
        self._plan = plan
        self._table = table
        self._text = text
        self.carried = [
            f"{name}.{column} AS _j{i}_{j}"
            for i, (name, columns) in enumerate(plan.relations)
            for j, column in enumerate(columns)
        ]

    def bound(self, parameters: Sequence[Any]) -> Sequence[Any]:
        """The parameters of a query that has the list."""
        return parameters[: self._plan.parameters]

    def items(self, transaction: Transaction, parameters: Sequence[Any]) -> str:
        """The select list. Subqueries in it see the rows before the statement."""
        (items,), _ = self._text.fill(transaction, parameters, self._plan.items)
        return items

    def relations(self, transaction: Transaction, changed: Sequence[int]) -> str:
        """What follows the relation ``_u`` of rows in FROM: the relations by name.

        ``changed`` are the positions of columns that have new values.
        """
        quote = transaction.engine.forms.quote
        columns = [
            f"_u._{'n' if i in changed else 'o'}{i} AS {quote(column.name)}"
            for i, column in enumerate(self._table.columns)
        ]
        own = f"(SELECT {', '.join(columns)})"
        if self._table.generated:
            own = transaction.engine.forms.computed(self._table, own)
        named = [(self._plan.qualifier, own)]
        for i, (name, others) in enumerate(self._plan.relations):
            items = [f"_u._j{i}_{j} AS {column}" for j, column in enumerate(others)]
            named.append((name, f"(SELECT {', '.join(items)})"))
        return "".join(f", LATERAL {query} AS {name}" for name, query in named)
