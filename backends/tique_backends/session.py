"""The interface of one connection to an engine, and of the results that it gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tique_backends.concurrency.retrying import persist
from tique_backends.errors import EngineError
from tique_backends.names import cache_name
from tique_backends.rows.gaps import widened

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Hashable,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    import pyarrow

    from tique_backends.records import (
        CommitRecord,
        CopyPart,
        Notice,
        ResultColumn,
        Row,
        Versions,
    )
    from tique_backends.rows.ranges import RangeRows
    from tique_rewriter.schema import Table


_Outcome = TypeVar("_Outcome")

COMMIT = "COMMIT"


class Result(ABC):
    """The rows of one query, read once from front to back.

    A session refers to it weakly. When its connection is needed for another statement,
    rows that can still be fetched are read into memory first; those of a result that
    was closed or garbage-collected are not.
    """

    columns: Sequence[ResultColumn]
    row_count: int = -1
    """The number of rows; -1 while it is not known."""

    @abstractmethod
    def fetch(self, size: int) -> list[Row]:
        """Return up to ``size`` further rows; an empty list at the end."""

    @abstractmethod
    def fetch_all(self) -> list[Row]:
        """Return all further rows."""

    @abstractmethod
    def arrow(self) -> pyarrow.Table:
        """Return all further rows as an Arrow table."""

    def hold(self, most: int) -> bool:
        """Read all rows into memory, or give them up.

        That is if there are more than ``most``, or :meth:`arrow` would make others of them.

        Returns
        -------
        bool
            Whether they are in memory.
        """
        raise NotImplementedError

    @abstractmethod
    def close(self) -> None:
        """Give up the rows that were not fetched."""


class Session(ABC):
    """One connection to the engine, used by one thread at a time."""

    is_as_opened = True
    """Whether it has the settings that every new session has."""

    expires: float | None = None
    """When the application's statement has taken its time (:func:`time.monotonic`); None:
    never, or it was told so already."""

    _opens_aside: Callable[[], Session] | None = None
    """Opens another session, while an engine transaction is held."""
    _aside: Session | None = None

    @property
    def is_lost(self) -> bool:
        """Whether its connection broke: another session is needed."""
        return False

    def create_temporary(self, place: str, layout: str) -> None:
        """Create a temporary table that stays until the session ends.

        Parameters
        ----------
        place
            Its name after that of its schema, quoted.
        layout
            What stands between the parentheses.
        """
        self.execute(
            f"CREATE TEMPORARY TABLE {place.partition('.')[2]} ({layout}) "
            "ON COMMIT PRESERVE ROWS"
        ).close()

    def drop_temporary(self, place: str) -> None:
        """Drop such a table; idempotent."""
        self.execute(f"DROP TABLE IF EXISTS {place}").close()

    @abstractmethod
    def execute(
        self,
        sql: str,
        parameters: Sequence[Any] = (),
        *,
        wide: bool = False,
        keeping: bool = False,
    ) -> Result:
        """Run one statement; ``$n`` in it is ``parameters[n - 1]``.

        ``wide`` says that it may look at much of a large table, ``keeping`` that its rows
        are wanted in the form in which they are written again.

        Raises
        ------
        EngineError
            The engine refused the statement; if autocommitted, it left no trace.
        """

    def change(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run a statement that changes rows; return their number."""
        return int(self.execute(sql, parameters).fetch_all()[0][0])

    def notify(self, messages: Sequence[tuple[str, str]]) -> None:
        """Send messages, each a channel and a payload, to listeners."""
        raise NotImplementedError

    def hear(self, handler: Callable[[Notice], None]) -> None:  # noqa: B027
        """Call a handler with each notice of the application's statements here.

        Engines without notices never do.
        """

    def execute_some(
        self,
        query: str,
        parameters: Sequence[Any],
        most: int,
        *,
        wide: bool = False,
        of: Table | None = None,
    ) -> Result:
        """As :meth:`rows_to_keep`; rows after the first ``most`` need not be computed.

        ``query`` is a SELECT with neither ORDER BY nor LIMIT of its own.
        """
        return self.execute(query, parameters, wide=wide, keeping=True)

    def rows_to_keep(
        self, query: str, parameters: Sequence[Any] = (), *, of: Table | None = None
    ) -> list[Row]:
        """Return the rows of a query, in the form in which they are written again.

        ``of`` is the table whose rows they are or become, None if they are keys.
        """
        return self.execute(query, parameters, keeping=True).fetch_all()

    def shown(self, type_names: Sequence[str], rows: list[Row]) -> list[Row]:
        """Rows that were kept, whose columns are of these types, as results have them."""
        return rows

    def shown_results(
        self, columns: Sequence[ResultColumn], rows: list[Row]
    ) -> list[Row]:
        """Rows of a query for values to keep, with these columns, as results have them."""
        return self.shown([column.type for column in columns], rows)

    def maintain(self, text: str) -> None:
        """Run a statement that has no result and changes no row."""
        self.execute(text).close()

    def end_abandoned(self) -> None:
        """Give up the rows of the last result, if it is closed or garbage-collected.

        Until then the engine may hold a snapshot and locks for it.
        """
        return

    @abstractmethod
    def explain(
        self, query: str, parameters: Sequence[Any] = (), options: Sequence[str] = ()
    ) -> list[tuple[str, str]]:
        """Return the engine's plans for a query: their names and texts.

        ``options`` are those of EXPLAIN in brackets, where the engine has that.
        """

    def expire(self, moment: float) -> None:
        """Stop the engine's statement if :attr:`expires` is this; from any thread."""
        raise NotImplementedError

    def starting(self) -> Mapping[str, str]:
        """The settings of transactions and statements that the session began with.

        Raises
        ------
        EngineError
            UNSUPPORTED, if it began with one that cannot be obeyed.
        """
        return {}

    def assign(self, name: str, value: str | None) -> None:
        """Change one of the settings that :attr:`Engine.settings` lets change.

        ``None`` gives it the value with which sessions begin.
        """
        raise NotImplementedError

    def show(self, name: str | None) -> Result:
        """Return a setting's value as the engine's SHOW does; None for all of them."""
        raise NotImplementedError

    def types_to_prepare(
        self, statement: str, declared: Sequence[str]
    ) -> Sequence[str]:
        """Return the types of a statement's ``$1 … $n``, of which some are declared.

        Only where the engine gives PREPARE types; an empty list elsewhere.

        Raises
        ------
        EngineError
            If the engine does not take the statement.
        """
        return ()

    def typed(self, types: Sequence[str], expressions: Sequence[str]) -> Sequence[Any]:
        """Return the values of expressions without placeholders, to be parameters.

        ``types`` are those of :meth:`types_to_prepare`: they are of these types then.
        """
        return self.rows_to_keep(f"SELECT {', '.join(expressions)}")[0]

    def discard(self, what: str) -> None:
        """Run DISCARD of PLANS, SEQUENCES or TEMP, where the engine has that."""
        raise NotImplementedError

    def parameter_types(self, parameters: Sequence[Any]) -> Sequence[Hashable]:
        """Return markers for the types that the engine takes parameters to be of."""
        return tuple(map(type, parameters))

    def check_assigned(
        self,
        table: Table,
        columns: Sequence[int],
        query: str,
        parameters: Sequence[Any] = (),
    ) -> None:
        """Refuse a query whose values the engine would not assign to these columns.

        Only where it would cast them all the same (:meth:`Forms.cast`).
        """
        return

    def understands(self, sql: str) -> bool | None:
        """Whether a text is a statement to the engine, which does not run it.

        None if the engine cannot be asked. ``$n`` may be in it.

        Raises
        ------
        EngineError
            Another error that the engine finds in it.
        """
        return None

    def names_of(self, expressions: Sequence[str]) -> Sequence[str]:
        """Return the names of results without an alias that are these expressions.

        For an engine that calls them by their text. A WINDOW clause may follow.

        Raises
        ------
        EngineError
            UNSUPPORTED if it understands one and cannot write it down.
        """
        return expressions

    def result_names(self, query: str, parameters: Sequence[Any] = ()) -> list[str]:
        """Return the names of a query's results without running it.

        For an engine that numbers them (:attr:`Capabilities.number_prefix`).
        """
        raise NotImplementedError

    @abstractmethod
    def width(self, query: str, parameters: Sequence[Any] = ()) -> int:
        """Return the number of a query's columns without running it."""

    @contextmanager
    def unhurried(self) -> Iterator[None]:
        """Run statements of tique's own: the application's timeouts do not stop them."""
        yield

    @contextmanager
    def planned_apart(self) -> Iterator[None]:
        """Run statements of tique's own, not planned by the application's settings."""
        yield

    @abstractmethod
    def begin(self) -> None:
        """Start an engine transaction (used inside the protocol only)."""

    def begin_uncommitted_fold(self) -> None:
        """Start one whose statements share a snapshot, and which is never committed.

        It does not wait for other transactions' locks for long.
        """
        self.begin()

    @property
    def is_held(self) -> bool:
        """Whether statements join an engine transaction until :meth:`end_hold`."""
        return self._opens_aside is not None

    @property
    def aside(self) -> Session:
        """A session whose statements do not join the engine transaction that is held.

        It is opened when it is first needed, and closed at the end; otherwise this one.
        """
        if self._opens_aside is None:
            return self
        if self._aside is None:
            self._aside = self._opens_aside()
        return self._aside

    def hold(self, opens_aside: Callable[[], Session]) -> None:
        """Start an engine transaction that statements join until :meth:`end_hold`."""
        self.begin()
        self._opens_aside = opens_aside

    def hold_snapshot(self, opens_aside: Callable[[], Session]) -> None:
        """The same with one snapshot for all of them, which the first that reads fixes.

        The application's settings count in it. A statement that fails leaves no trace, if
        the engine has savepoints (:attr:`Capabilities.nests_transactions`); else the engine
        transaction is over with it (:meth:`holds`).
        """
        self.hold(opens_aside)

    def holds(self) -> bool:
        """Whether the engine transaction that is held takes further statements."""
        try:
            self.execute("SELECT 1").close()
        except EngineError:
            return False
        return True

    def let_go(self) -> None:
        """Let no further statement join, and commit: what temporary tables have stays."""
        self._opens_aside = None
        self.commit()

    def read_ahead(self, most: int) -> bool:
        """Have the rows of the result that is being read in memory, if they are so few.

        Returns
        -------
        bool
            Whether another statement needs to read no more than that before it.
        """
        return True

    def forget_plans(self) -> None:
        """Plan statements anew: a definition was changed in a transaction that is held."""
        return

    def end_hold(self) -> None:
        """Let no further statement join; roll back unless it was committed."""
        self._opens_aside = None
        aside, self._aside = self._aside, None
        if aside is not None:
            with suppress(EngineError):
                aside.close()
        self.rollback()

    @abstractmethod
    def commit(self, ending: str = COMMIT) -> None:
        """Commit it durably; unless a statement before COMMIT in ``ending`` fails."""

    @abstractmethod
    def rollback(self) -> None:
        """Roll it back; without one, do nothing."""

    def transact(self, body: Callable[[], _Outcome], ending: str = COMMIT) -> _Outcome:
        """Run ``body`` in an engine transaction and commit it durably.

        The whole of it is run again when another engine transaction was in the way.
        If it raises, all is rolled back; if COMMIT does, it may have happened. While a
        transaction is held, ``body`` joins it, and is run once.
        """
        return self._transact(self.begin, body, partial(self.commit, ending))

    def _transact(
        self,
        begin: Callable[[], None],
        body: Callable[[], _Outcome],
        commit: Callable[[], None],
    ) -> _Outcome:
        """The same, begun and committed in another way."""
        if self.is_held:
            return body()

        def attempt() -> _Outcome:
            try:
                begin()
                outcome = body()
                commit()
            except BaseException:
                with suppress(EngineError):
                    self.rollback()
                raise
            return outcome

        return persist(attempt)

    @abstractmethod
    def read_row(
        self, table: Table, key: Row, columns: Sequence[int] | None = None
    ) -> Row | None:
        """Return the storage row with that primary key, if there is one.

        Columns other than ``columns`` (all by default) are ``MISSING`` in it.
        """

    def read_rows(
        self, table: Table, keys: Sequence[Row], columns: Sequence[int] | None = None
    ) -> dict[Row, Row]:
        """Return the storage rows with those primary keys, by key: one statement.

        Columns other than ``columns`` (all by default, and the key) are
        ``MISSING`` in them.
        """
        if not keys:
            return {}
        read = tuple(range(len(table.columns)))
        if columns is not None:
            read = tuple(sorted({*columns, *table.primary_key}))
        rows = self._stored_rows(table, keys, read)
        found = [widened(table, read, row) for row in rows]
        return {tuple([row[i] for i in table.primary_key]): row for row in found}

    @abstractmethod
    def _stored_rows(
        self, table: Table, keys: Sequence[Row], read: Sequence[int]
    ) -> Sequence[Row]:
        """The columns ``read`` of the storage rows with one of some primary keys."""

    @abstractmethod
    def read_range(
        self,
        table: Table,
        prefix: Row,
        first: int,
        last: int,
        columns: Sequence[int],
        limit: int | None = None,
    ) -> RangeRows:
        """Return a stretch of storage rows, in any order, at most ``limit``.

        The key's first columns are equal to ``prefix``; the one after them lies between
        ``first`` and ``last``, both included.
        """

    @abstractmethod
    def append(self, versions: Versions) -> None:
        """Append versions to a table's cache table, atomically."""

    def newest_version(self, table: Table) -> int:
        """Return the greatest cts that is in a table's cache table, or folded; or 0."""
        ((newest,),) = self.execute(
            f"SELECT max(_cts) FROM (SELECT _cts FROM {cache_name(table)} UNION ALL "
            f'SELECT folded FROM tique."tables" WHERE id = {table.id}) AS _v'
        ).fetch_all()
        return int(newest or 0)

    @abstractmethod
    def append_staged(self, table: Table, cts: int) -> int:
        """Append this session's staged rows to the cache table, stamped ``cts``.

        Only the newest staged row per key counts. Returns the number of rows.
        """

    @abstractmethod
    def log(self, commits: Sequence[CommitRecord]) -> None:
        """Append a group's commit records to the log: one statement, atomic.

        Outside an engine transaction it is durable on return.
        """

    @abstractmethod
    def create_stage(self, table: Table) -> None:
        """Create this session's empty staging table for ``table``."""

    def guard_stage(self, table: Table) -> None:
        """Let the staging table refuse rows that storage cannot take (P4); idempotent.

        Where the table has bounds (:attr:`Table.bounds`); else it does in any case.
        """
        return

    @abstractmethod
    def stage(self, versions: Versions) -> None:
        """Append rows to the staging table, stamped with sequence numbers."""

    @abstractmethod
    def stage_query(self, table: Table, query: str, parameters: Sequence[Any]) -> int:
        """Append a query's rows (columns, ``_sequence``, ``_deleted``); their number."""

    @abstractmethod
    def unstage(self, table: Table, after: int) -> None:
        """Delete staged rows whose sequence number is greater than ``after``."""

    @abstractmethod
    def drop_stage(self, table: Table) -> None:
        """Drop the staging table if it exists."""

    def create_incoming(self, table: Table) -> str:
        """Create an empty temporary table for rows of COPY; return its qualified name.

        It has the columns of ``table`` with their types, defaults and NOT NULL. One that
        is left from before is replaced. Only where the engine has COPY.
        """
        raise NotImplementedError

    def drop_incoming(self) -> None:
        """Drop it if it exists."""
        raise NotImplementedError

    def copy_in(
        self, sql: str, parts: Iterable[CopyPart], types: Sequence[int | str]
    ) -> None:
        """Run a COPY whose rows the client has: pieces of text, or rows of values.

        Parameters
        ----------
        sql
            The statement.
        parts
            Its data.
        types
            The types of a row's values, as the engine's driver takes them; empty if
            it is to find them out.
        """
        raise NotImplementedError

    def copy_out(
        self, sql: str, types: Sequence[int | str] | None
    ) -> tuple[list[CopyPart], int]:
        """Run a COPY to the client; return its data, and the number of rows.

        The data are pieces of text, or rows of values if ``types`` is not None.
        """
        raise NotImplementedError

    @contextmanager
    def arrow_relation(
        self, data: pyarrow.Table, name: str = "tique_appended"
    ) -> Iterator[str | None]:
        """Give an Arrow table a name in this session's SQL for a while.

        None if the engine's queries cannot read one.
        """
        yield None

    @abstractmethod
    def interrupt(self) -> None:
        """Make a statement that another thread runs here fail soon."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection; idempotent."""
