"""SELECT; DESCRIBE and SUMMARIZE of a query, and SET VARIABLE to one's value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from tique.checkpoint.uncommitted import LargeResultError, held_result
from tique.commit.turns import Habit
from tique.query.base import Outcome, Statement
from tique.query.read.answers import Answer, group_answer
from tique.query.read.key_queries import Reader
from tique.query.read.naming import ResultNames
from tique.query.read.sources import KeyReader
from tique.query.transaction.contested import wait_for_turn
from tique.store.rows import tuple_of
from tique_backends.records import ResultColumn
from tique_rewriter.local.kernel import NotLocal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tique.query.transaction.transaction import Transaction
    from tique.store.rows import Key
    from tique_backends.records import Row
    from tique_backends.session import Result, Session
    from tique_rewriter.kinds.session.describe import Described, SetVariable
    from tique_rewriter.plans.plan import Select


_Found = TypeVar("_Found")

_NO_ANSWER = (
    "another query was under way there, or it could not be brought to the snapshot (a table "
    "without a key, a newer snapshot's rows, versions that storage refuses)"
)


class SelectStatement(Statement):
    """A query: its holes are filled with snapshot forms, and the engine runs it."""

    writes = False
    kept_types: Sequence[str] = ()
    """The types of the results of which :meth:`rows_here` has rows; none of aggregates."""

    def __init__(self, plan: Select) -> None:
        super().__init__(plan)
        self._query = plan.text
        self._join = plan.join
        self._names = ResultNames(lambda t: self.text.plain(t, plan.text))
        self._calls = plan.calls
        self._is_large = False
        """Whether it had more results than an uncommitted fold is held for."""

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Run the snapshot query."""
        transaction.refresh()
        return self.ask(transaction, parameters)

    def run_apart(
        self,
        open_session: Callable[[], Session],
        transaction: Transaction,
        parameters: Sequence[Any],
    ) -> Outcome:
        """Run the snapshot query in another session than the transaction's.

        None is opened if its rows are in memory, from the uncommitted fold.
        """
        transaction.refresh()
        return self.ask(transaction, parameters, open_session)

    def rows_here(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> tuple[Sequence[ResultColumn], list[Row]] | None:
        """The result, its rows as they are kept; None: the engine has to be asked."""
        return None

    def ask(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        open_session: Callable[[], Session] | None = None,
    ) -> Outcome:
        """Run the query in the snapshot that the transaction has."""
        result = self._from_uncommitted_fold(transaction, parameters)
        if result is None:
            session = None if open_session is None else open_session()
            result = self.ask_engine(transaction, parameters, session)
        return Outcome(result.row_count, result.columns, result=result)

    def ask_engine(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        session: Session | None = None,
        most: int | None = None,
    ) -> Result:
        """Run the snapshot query, in the transaction's session by default."""
        sql, bound = self.query(transaction, parameters)
        limited = sql if most is None else f"{sql} LIMIT {most}"
        session = session or transaction.session
        result = session.execute(limited, bound, wide=self.text.is_wide)
        return self._named(transaction, result, sql, bound)

    def _named(
        self, transaction: Transaction, result: Result, sql: str, bound: Sequence[Any]
    ) -> Result:
        result.columns = self._names.of(transaction, result.columns, sql, bound)
        return result

    def _from_uncommitted_fold(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> Result | None:
        """The result, if the query may be asked there and gets an answer."""
        if self._obstacle(transaction, parameters) is not None:
            return None
        sql, bound = self._in_storage(transaction, parameters)
        result = self._there(transaction, lambda there: held_result(there, sql, bound))
        return result and self._named(transaction, result, sql, bound)

    def _obstacle(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> str | None:
        """Why it may not be asked in the uncommitted fold; None: it may."""
        calls, tables = self._calls, self.text.tables
        if calls is None:
            return "the query reads more than tables that tique manages"
        if self._is_large:
            return "the query had more rows, or other types, than are held in memory"
        if not self.text.is_wide:
            return "a column of the key is bound in every table"
        if not transaction.reads_committed_rows(tables):
            return "the transaction has changed a table or a setting, or has run DDL"
        obstacle = transaction.uncommitted.obstacle(tables, transaction.sts)
        if obstacle is None and not transaction.engine.depend_on_rows(
            calls, parameters
        ):
            return "the query calls what does not depend on rows alone"
        return obstacle

    def _in_storage(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> tuple[str, Sequence[Any]]:
        """Its text and parameters where storage is as its snapshot."""
        (sql,), bound = self.text.fill(
            transaction, parameters, self._query, in_storage=True
        )
        return sql, bound

    def _there(
        self, transaction: Transaction, run: Callable[[Session], _Found | None]
    ) -> _Found | None:
        """What ``run`` finds in the uncommitted fold; None: it gets no answer there."""
        try:
            return transaction.uncommitted.ask(
                self.text.tables,
                transaction.sts,
                transaction.txid,
                run,
                transaction.session,
            )
        except LargeResultError:
            self._is_large = True
            transaction.uncommitted.large.append(self._words())
            return None

    def _words(self) -> str:
        """Its text without what is filled in: EXPLAIN of it has a plan of its own."""
        return "".join([p for p in self._query if isinstance(p, str)]).strip()

    def explained(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        options: Sequence[str],
    ) -> tuple[str, list[tuple[str, str]], str | None]:
        """The rewritten query, the engine's plans for it, and why no uncommitted fold serves it.

        The last is None if one does.
        """
        self._is_large = self._words() in transaction.uncommitted.large
        obstacle = self._obstacle(transaction, parameters)
        if obstacle is None:
            sql, bound = self._in_storage(transaction, parameters)
            plans = self._there(
                transaction, lambda there: there.explain(sql, bound, options)
            )
            if plans is not None:
                return sql, plans, None
            obstacle = self._obstacle(transaction, parameters) or _NO_ANSWER
            if transaction.choices is not None:
                transaction.choices.clear()
        sql, bound = self.query(transaction, parameters)
        return sql, transaction.session.explain(sql, bound, options), obstacle

    def query(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> tuple[str, Sequence[Any]]:
        """The snapshot query and its parameters."""
        if self._join is not None:
            return self.text.join(transaction, parameters, self._join, self._query)
        (sql,), bound = self.text.fill(transaction, parameters, self._query)
        return sql, bound


class PointSelectStatement(SelectStatement):
    """A query for plain columns of one row by primary key.

    The driver answers it from rows in memory, and asks the engine only for a row that
    it does not have. The whole row is read, so that an UPDATE of it needs no statement.
    """

    def __init__(self, plan: Select) -> None:
        super().__init__(plan)
        point = plan.point
        assert point is not None
        self._table = table = point.table
        self._keys = KeyReader(table, table.primary_key, point.key)
        self._columns = [
            ResultColumn(name, table.columns[position].type)
            for name, position in zip(point.names, point.columns, strict=True)
        ]
        self.kept_types = tuple([column.type for column in self._columns])
        self._is_whole_row = point.columns == tuple(range(len(table.columns)))
        self._needed = point.columns
        self._project = tuple_of(point.columns)
        self._looked_at = frozenset(point.columns)
        self._habit = Habit()

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Look the row up; let the engine compare a key of another type."""
        if transaction.past is not None:
            return super().run(transaction, parameters)
        try:
            key = self._keys.read(parameters)
        except NotLocal:
            return super().run(transaction, parameters)
        place = self._table.primary_key, key
        wait_for_turn(transaction, self._table, place, self._looked_at, self._habit)
        if transaction.is_validated:
            transaction.protocol.read(transaction, self._table, key)
        transaction.refresh()
        rows = transaction.session.shown(self.kept_types, self._rows(transaction, key))
        return Outcome(len(rows), self._columns, rows)

    @override
    def rows_here(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> tuple[Sequence[ResultColumn], list[Row]] | None:
        if transaction.past is not None:
            return None
        try:
            key = self._keys.read(parameters)
        except NotLocal:
            return None
        return self._columns, self._rows(transaction, key)

    def _rows(self, transaction: Transaction, key: Key) -> list[Row]:
        row = transaction.row(self._table, key, self._needed)
        transaction.see_row(self._table, key, row, self._looked_at)
        if row is None:
            return []
        return [row if self._is_whole_row else self._project(row)]


class GroupSelectStatement(SelectStatement):
    """A query for the rows with one prefix of the key, or for aggregates of them.

    The driver answers it where it has the rows and the query means the same in
    every engine. The engine says, once, the names and types of the result's columns.
    """

    def __init__(self, plan: Select) -> None:
        super().__init__(plan)
        assert plan.group is not None
        self._group = plan.group
        self._reader = Reader(plan.group, self.text.sources)
        self.kept_types = self._reader.kept_types(plan.group)
        self._first = self._reader.first_rows(plan.group, plan.parameters)
        self._columns: Sequence[ResultColumn] | None = None
        self._answer: Answer | None = None
        self._chooses = plan.group.limit == 1 or any(
            output.function in ("MIN", "MAX") for output in plan.group.outputs
        )
        """Whether it may be the choice of a row that is to be changed."""
        self._habit = Habit()

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Answer from memory if possible, else ask the engine."""
        if self._chooses:
            self._reader.wait_for_turn(transaction, parameters, self._habit)
        transaction.refresh()
        here = self.rows_here(transaction, parameters)
        if here is not None:
            columns, rows = here
            if self.kept_types:
                rows = transaction.session.shown(self.kept_types, rows)
            return Outcome(len(rows), columns, rows)
        return self.ask(transaction, parameters)

    @override
    def _named(
        self, transaction: Transaction, result: Result, sql: str, bound: Sequence[Any]
    ) -> Result:
        result = super()._named(transaction, result, sql, bound)
        if self._columns is None:
            if self._reader.is_possible:
                engine = transaction.engine.capabilities
                self._answer = group_answer(self._reader, self._group, engine)
            self._columns = result.columns
        return result

    @override
    def rows_here(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> tuple[Sequence[ResultColumn], list[Row]] | None:
        if (
            self._answer is None
            or self._columns is None
            or transaction.past is not None
        ):
            return None
        first = self._first
        rows = self._reader.rows(transaction, parameters, is_seen=first is not None)
        if rows is None:
            return None
        try:
            answer = self._answer(rows)
        except NotLocal:
            return None
        if first is not None:
            first.see(transaction, parameters, answer)
        return self._columns, answer


class DescribedStatement(SelectStatement):
    """The engine summarizes the snapshot query, or describes its results.

    A description has no rows in it, and names the keys and defaults of columns: so it
    is that of the query over the storage tables, which have them.
    """

    def __init__(self, plan: Described) -> None:
        super().__init__(plan.statement)
        self._verb = plan.verb
        self._calls = None
        self._reads_rows = plan.reads_rows

    @override
    def query(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> tuple[str, Sequence[Any]]:
        if self._reads_rows:
            sql, bound = super().query(transaction, parameters)
        else:
            sql, bound = self.text.plain(transaction, self._query), parameters
        return f"{self._verb} {sql}", bound


class SetVariableStatement(SelectStatement):
    """The engine keeps the value of the snapshot query for its session."""

    def __init__(self, plan: SetVariable) -> None:
        super().__init__(plan.statement)
        self._name = plan.name
        self._calls = None

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Set it; the session keeps it whatever becomes of the transaction."""
        transaction.refresh()
        sql, bound = self.query(transaction, parameters)
        name = transaction.engine.forms.quote(self._name)
        transaction.session.execute(f"SET VARIABLE {name} = ({sql})", bound).close()
        return Outcome()


def selecting(plan: Select) -> SelectStatement:
    """The statement that executes the plan of a query."""
    if plan.point is not None:
        return PointSelectStatement(plan)
    if plan.group is not None:
        return GroupSelectStatement(plan)
    return SelectStatement(plan)
