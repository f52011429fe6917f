"""The temporary tables and views of one connection.

Argument
--------
*Alone.* A temporary table is the connection's: no other one reads or writes it. So its
writes are no part of the write set that is certified and logged, nothing of it has a
timestamp, and its storage is a temporary table of the connection's engine session, which
the engine drops with that.

*As managed tables.* Statements find it in the session's :class:`Catalog`, read it through
the same forms and buffer or stage their writes like those of any other (P8): own writes
are seen, a statement that fails and ROLLBACK TO leave no trace. No text that reaches the
engine has its name: storage is called otherwise (P10).

*The end of a transaction.* When the managed tables' writes have been committed, and not
before, the others move to storage, in one engine transaction for each table; if the
transaction is rolled back, or loses, they are forgotten. If the process dies in between,
the session and all of its temporary tables die with it. If only the engine fails then,
the commit stands, and the tables are lost as with the session: every later statement that
names one is an error, so that no statement sees half of a commit.

*Definitions.* CREATE and DROP change the names that the connection knows, at once; a
rollback brings the names before back. The engine's tables are dropped when the
transaction has ended, so none that a savepoint could bring back is gone.

*Views.* A temporary view is its query, as any view is for a statement; so the engine needs none.
It writes the query once, of a view that is rolled back: a star is what it was then, and
names mean what they meant. That query reads managed tables and other views, and no temporary
ones, which the engine does not know.

*In a transaction that has run DDL* the engine's table is made in the engine transaction that
is held (:mod:`tique.query.define.migration`), and goes with it if that is rolled back. A table by which its definition is
read is dropped there again.

*Plans.* A connection with temporary tables or views has a rewriter of its own: no plan of another
connection knows them, and none of its own outlives a change of them
(:attr:`Catalog.version`). Views are planned without them.
"""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tique import errors
from tique_backends.catalog import temporary
from tique_backends.errors import EngineError
from tique_backends.names import quote
from tique_rewriter import Rewriter
from tique_rewriter.dialects import rules_of
from tique_rewriter.kinds.define.temporary import OnCommit
from tique_rewriter.kinds.define.views import catalog_of, check_view

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from tique.query.transaction.ddl_transaction import DDLTransaction
    from tique.store.catalog import ManagedCatalog
    from tique.writes.table import TableWrites
    from tique_backends.engine import Engine
    from tique_backends.session import Session
    from tique_rewriter.kinds.define.temporary import CreateTemporary
    from tique_rewriter.plans.ddl_plans import CreateTemporaryView
    from tique_rewriter.schema import Table, View
    from tique_rewriter.scope.catalog import SearchPath

_FIRST = 1 << 40
_numbers = itertools.count(_FIRST)
"""Ids that no managed table has."""


class Temporary(NamedTuple):
    """A temporary table, and what becomes of it at the end of a transaction."""

    table: Table
    on_commit: OnCommit


class Temporaries:
    """The temporary tables of one connection.

    Parameters
    ----------
    engine
        The database's engine.
    catalog
        Its managed tables.
    paramstyle
        The connection's.
    """

    def __init__(
        self, engine: Engine, catalog: ManagedCatalog, paramstyle: str = "pyformat"
    ) -> None:
        self._engine = engine
        self._catalog = catalog
        self._search_path: SearchPath | None = None
        """The connection's, if it has one of its own."""
        self._paramstyle = paramstyle
        self._rules = rules_of(engine.capabilities.dialect)
        self._own: Rewriter | None = None
        self._found: dict[str, Temporary] = {}
        self._lost: dict[str, tuple[Table, str]] = {}
        """Tables that are gone, though the application has not dropped them, and why."""
        self._views: dict[str, View] = {}
        self._history: list[tuple[int, dict[str, Temporary], dict[str, View]]] = []
        """Both before a statement of the transaction, by its sequence number."""
        self._there: dict[int, Table] = {}
        """All tables that the engine has, by id."""
        self.version = 0

    @property
    def rewriter(self) -> Rewriter | None:
        """Plans the connection's statements, if it has temporary tables or views."""
        if not self._found and not self._lost and not self._views:
            return None
        if self._own is None:
            self._own = Rewriter(
                self._catalog,
                self._rules.name,
                self._paramstyle,
                search_path=self._search_path,
                temporaries=self,
            )
        return self._own

    def plan_by(self, catalog: ManagedCatalog, search_path: SearchPath | None) -> None:
        """Plan statements by another catalog of managed tables from now on.

        ``search_path`` is the connection's, if it has one of its own.
        """
        self._catalog = catalog
        self._search_path = search_path
        self._own = None

    @property
    def schema(self) -> str:
        """The schema of temporary tables."""
        return self._rules.temporary_schema

    def __bool__(self) -> bool:
        """Whether there is anything to do when the session's transaction ends."""
        return bool(self._there or self._views or self._history)

    def find(self, schema: str | None, name: str) -> Table | None:
        """Return the temporary table of that name, whatever its case.

        Raises
        ------
        OperationalError
            It was lost.
        """
        table = self.named(schema, name)
        if table is not None and name.lower() not in self._found:
            raise errors.OperationalError(self._lost[name.lower()][1], sqlstate="55000")
        return table

    def named(self, schema: str | None, name: str) -> Table | None:
        """The same, whether or not it was lost."""
        if schema is not None and schema.lower() != self.schema:
            return None
        name = name.lower()
        if name in self._views:
            return None
        if name in self._found:
            return self._found[name].table
        return self._lost[name][0] if name in self._lost else None

    def view(self, schema: str | None, name: str) -> View | None:
        """Return the temporary view of that name, whatever its case."""
        if not self._views or (schema or self.schema).lower() != self.schema:
            return None
        return self._views.get(name.lower())

    # Definitions

    def create(
        self,
        transaction: DDLTransaction,
        plan: CreateTemporary,
        query: tuple[str, Sequence[Any]] | None,
    ) -> int:
        """Create a table, with the rows of a query and its parameters.

        Returns
        -------
        int
            The number of a query's rows; -1 if it gets none.

        Raises
        ------
        ProgrammingError
            There is a temporary table of that name (SQLSTATE 42P07).
        NotSupportedError
            It has a column with a sequence of its own, or a managed table has the name.
        """
        name = plan.name.lower()
        if name in self._found and plan.if_not_exists:
            return -1
        if name in self._found and not plan.replaces:
            raise _is_there("table", plan.name)
        if name in self._views:
            raise _is_there("view", plan.name)
        self._expect_possible(transaction, "TABLE", plan.name)
        # It is made like a managed one for a moment, without a barrier.
        transaction.ddl.changes.timeline.expect_owner()
        session = transaction.session
        table = self._described(transaction.session.aside, plan, query)
        self._there[table.id] = table
        count = temporary.create(session, table, query if plan.has_rows else None)
        self._catalog.add_temporary(table)
        made = {**self._found, name: Temporary(table, plan.on_commit)}
        self._change(transaction, made, self._views)
        self._lost.pop(name, None)
        return count

    def _expect_possible(
        self, transaction: DDLTransaction, kind: str, name: str
    ) -> None:
        # It may have been created since the statement was planned.
        lasting = catalog_of(self._catalog, self._rules.name, self._search_path)
        if lasting.named(None, name) or lasting.view(None, name):
            raise errors.NotSupportedError(
                f"a temporary {kind.lower()} {name} is not supported: there is a table or "
                "view of that name; give it another one"
            )
        undoes = self._engine.capabilities.undoes_temporary_tables
        if transaction.migration is not None and (kind == "VIEW" or not undoes):
            raise errors.NotSupportedError(
                f"CREATE TEMPORARY {kind} is not supported in a transaction that has run "
                "other DDL: create it before"
            )

    def create_view(
        self, transaction: DDLTransaction, plan: CreateTemporaryView
    ) -> None:
        """Create a view.

        Raises
        ------
        ProgrammingError
            There is a temporary table or view of that name (SQLSTATE 42P07).
        NotSupportedError
            A managed table or another view has the name.
        RewriteError
            No statement may have its query, as the engine has written it.
        """
        name = plan.name.lower()
        passes = plan.replaces or plan.if_not_exists
        if name in self._found or (name in self._views and not passes):
            raise _is_there("table" if name in self._found else "view", plan.name)
        self._expect_possible(transaction, "VIEW", plan.name)
        transaction.ddl.changes.timeline.expect_owner()
        # Even of one that is there: the engine may not have IF NOT EXISTS.
        written = self._written(transaction.session.aside, plan)
        if name in self._views and not plan.replaces:
            return
        number = -next(_numbers)
        table = replace(written.table, name=plan.name, id=number, is_temporary=True)
        made = {**self._views, name: replace(written, table=table)}
        self._change(transaction, self._found, made)

    def _written(self, session: Session, plan: CreateTemporaryView) -> View:
        """Return a view as the engine reads it, by one that is rolled back."""
        schema = self._catalog.default_schema
        name = f"tique_temporary_{next(_numbers)}"
        place = f"{quote(schema)}.{quote(name)}"
        session.begin()
        try:
            unless = "IF NOT EXISTS " if plan.if_not_exists else ""
            session.execute(f"CREATE VIEW {unless}{place} {plan.layout}").close()
            views = self._engine.views(session)
        finally:
            session.rollback()
        (found,) = [view for view in views if view.table.name == name]
        check_view(self._catalog.with_views(views), self._rules.name, found)
        return found

    def drop_views(self, transaction: DDLTransaction, names: Iterable[str]) -> None:
        """Drop views."""
        gone = {name.lower() for name in names}
        left = {name: view for name, view in self._views.items() if name not in gone}
        self._change(transaction, self._found, left)

    def _described(
        self,
        session: Session,
        plan: CreateTemporary,
        query: tuple[str, Sequence[Any]] | None,
    ) -> Table:
        """Return a definition as the engine reads it, by a table that does not stay."""
        number = next(_numbers)
        schema, name = self._catalog.default_schema, f"tique_temporary_{number}"
        place = f"{quote(schema)}.{quote(name)}"
        text: str = plan.layout
        bound: Sequence[Any] = ()
        if query is not None:
            text, bound = f"{plan.columns} AS {query[0]} WITH NO DATA", query[1]
        is_held = session.is_held
        if not is_held:
            session.begin()
        try:
            session.execute(f"CREATE TABLE {place} {text}", bound)
            described = self._engine.describe(session, schema, name)
            self._engine.check_definition(session, described)
            if is_held:
                session.execute(f"DROP TABLE {place}")
        finally:
            if not is_held:
                session.rollback()
        if described.generated:
            raise errors.NotSupportedError(
                f"the temporary table {plan.name} has a generated column, "
                f"{described.generated[0].name}; that is not supported: compute it in queries"
            )
        for column in described.columns:
            default = (column.default or "").lower()
            if "nextval" in default or "next value" in default or column.is_always:
                raise errors.NotSupportedError(
                    f"the column {column.name} of the temporary table {plan.name} has a "
                    "sequence; that is not supported: give its values in INSERT"
                )
        return replace(
            described,
            schema=self.schema,
            name=plan.name,
            id=number,
            bounds=(),
            is_temporary=True,
        )

    def drop(self, transaction: DDLTransaction, tables: Iterable[Table]) -> None:
        """Drop tables; the engine's go when the transaction has ended."""
        gone = {table.id for table in tables}
        left = {n: each for n, each in self._found.items() if each.table.id not in gone}
        self._lost = {
            n: lost for n, lost in self._lost.items() if lost[0].id not in gone
        }
        self._change(transaction, left, self._views)

    def _change(
        self,
        transaction: DDLTransaction,
        tables: dict[str, Temporary],
        views: dict[str, View],
    ) -> None:
        self._history.append((transaction.sequence, self._found, self._views))
        self._found, self._views = tables, views
        self.version += 1

    def undo(self, sequence: int) -> None:
        """Bring back what was before the statements after ``sequence``."""
        while self._history and self._history[-1][0] > sequence:
            _, self._found, self._views = self._history.pop()
            self.version += 1

    # The end of a transaction

    def withdraw(self, transaction: DDLTransaction) -> dict[int, TableWrites]:
        """Take the writes to temporary tables out of those that are committed."""
        own = {n: w for n, w in transaction.writes.items() if w.table.is_temporary}
        for number in own:
            del transaction.writes[number]
        return own

    def keep(self, transaction: DDLTransaction, own: dict[int, TableWrites]) -> None:
        """Move writes to storage: the others were committed."""
        before = self._history[0][1] if self._history else self._found
        known = {each.table.id for each in before.values()}
        left: dict[str, Temporary] = {}
        try:
            for name, each in self._found.items():
                if each.on_commit is OnCommit.DROP:
                    continue
                left[name] = each
                number = each.table.id
                self._end_of(
                    transaction, each, own.get(number), is_new=number not in known
                )
        except BaseException as error:
            self.lose(f"its last changes could not be kept ({error})")
            if not isinstance(error, EngineError | errors.Error):
                raise
            return
        if len(left) != len(self._found):
            self._found = left
            self.version += 1

    def _end_of(
        self,
        transaction: DDLTransaction,
        each: Temporary,
        writes: TableWrites | None,
        *,
        is_new: bool,
    ) -> None:
        stays = is_new and self._rules.first_rows_stay
        if each.on_commit is OnCommit.PRESERVE or stays:
            if not writes:
                return
            self._move(transaction, writes)
        elif is_new or writes:
            # Only then storage can have rows.
            temporary.empty(transaction.session, each.table)
        self._catalog.add_temporary(each.table)

    def _move(self, transaction: DDLTransaction, writes: TableWrites) -> None:
        writes.spill(transaction.session)
        temporary.keep(
            transaction.session,
            self._engine.forms,
            writes.table,
            transaction.sequence,
            tombstones=not writes.only_inserts,
        )

    def end(self, session: Session, *, committed: bool) -> None:
        """Note that the transaction is over, and drop what it has left behind."""
        if not committed:
            self.undo(-1)
        self._history.clear()
        current = {each.table.id for each in self._found.values()}
        for number, table in list(self._there.items()):
            if number in current:
                continue
            # Nothing names it any more, even if the engine keeps it.
            with suppress(EngineError):
                temporary.drop(session, table)
            del self._there[number]
            self._catalog.remove_temporary(number)

    def lose(self, reason: str) -> None:
        """Note that the tables are gone, and why."""
        for name, each in self._found.items():
            message = f"the temporary table {each.table.name} is gone: {reason}"
            self._lost[name] = each.table, message
        self._history.clear()
        self._found = {}
        self.version += 1

    def forget(self) -> None:
        """Note that the application dropped them all, or closes the connection."""
        self._found = {}
        self._lost = {}
        self._views = {}
        self._history.clear()
        self.version += 1
        self.forget_engine()

    def forget_engine(self) -> None:
        """Note that the engine has none of them any more."""
        for number in self._there:
            self._catalog.remove_temporary(number)
        self._there = {}


def _is_there(kind: str, name: str) -> errors.ProgrammingError:
    return errors.ProgrammingError(
        f"there is a temporary {kind} {name} already", sqlstate="42P07"
    )
