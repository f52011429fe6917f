"""The interface between the driver and an engine: small abstract base classes.

An :class:`Engine` is one open database, a :class:`Session` one connection to
it. The driver's protocol (snapshot, certification, commit, checkpoint,
recovery) is written against these; everything that differs between engines is
a method here or a flag in :class:`Capabilities`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from tique_backends.names import cache_name

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Hashable,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    import pyarrow

    from tique_backends.foreign_keys import Declared
    from tique_backends.forms import Forms
    from tique_backends.settings import SettingRules
    from tique_backends.sharing import SharedSequencer
    from tique_rewriter.plan import Beside
    from tique_rewriter.schema import Table
    from tique_udfs import Sequencer

Row = tuple[Any, ...]

CopyPart = bytes | str | Row
"""A piece of the text of COPY, or a row's values."""

FORMAT_VERSION = 2
"""The version of the stored form, on any engine; later versions are not opened."""

FORMAT_OF_LARGE_EPOCHS = 1
"""The version before, which is upgraded to this one when a database is opened."""

_Outcome = TypeVar("_Outcome")

MISSING: Final = ...
"""Stands in a row for a column that was not read.

An instance of a class would make Python's garbage collector follow every such row.
"""


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of an engine, as far as the driver must know them.

    Attributes
    ----------
    dialect : str
        The SQL dialect's name in the rewriter.
    page_keys : int
        The number of neighbouring rows that cost not much more to read than one.
    overlay_values : int
        The number of values that, written into a query, cost less than a join with the
        cache table.
    sorts_by_bytes : bool
        Whether text is sorted by its bytes.
    widest_sum : int
        Bits of the widest integers whose SUM is an integer.
    number_prefix : str
        The prefix of results' names that the engine numbers; empty if it numbers none.
    picks_joined_row : bool
        Whether a row that UPDATE … FROM joins with several others takes the values of any
        of them; else that is an error.
    picks_merged_row : bool
        Whether a row that MERGE matches with several others is changed by one of them;
        else that is an error.
    changes_in_turn : bool
        Whether a change in a WITH list sees what those before it in the list wrote;
        else all parts of the statement see the rows before it.
    alters_foreign_keys : bool
        Whether FOREIGN KEY constraints can be dropped from a table and added to it.
    """

    dialect: str
    page_keys: int
    overlay_values: int
    sorts_by_bytes: bool = True
    widest_sum: int = 64
    number_prefix: str = ""
    picks_joined_row: bool = True
    picks_merged_row: bool = False
    changes_in_turn: bool = False
    alters_foreign_keys: bool = False


@dataclass(frozen=True)
class Versions:
    """Versions of one table's rows to append to its cache table.

    ``rows[i]`` became visible at ``stamps[i]`` (a cts, or a statement's sequence
    number in a staging table) and is a tombstone where ``deleted[i]``.
    """

    table: Table
    rows: Sequence[Row]
    stamps: Sequence[int]
    deleted: Sequence[bool]


class CommitRecord(NamedTuple):
    """The record that makes ``txid`` committed at ``cts``, with its versions.

    ``writes`` has, per table id, rows and whether each is a tombstone; ``bulk`` the
    number of rows that are in the cache table only. If it ``defines``, it was DDL:
    processes that catch up read the catalog again.
    """

    cts: int
    txid: int
    writes: Mapping[int, Sequence[tuple[Row, bool]]]
    bulk: Mapping[int, int] = MappingProxyType({})
    defines: bool = False


@dataclass
class Statistics:
    """The load on the engine since it was opened.

    ``seconds`` is the wall-clock time spent inside the engine, summed over the
    threads that waited for it.
    """

    statements: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class ResultColumn:
    """A column of a query's result: its name and the engine's type name."""

    name: str
    type: str


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

    @abstractmethod
    def close(self) -> None:
        """Give up the rows that were not fetched."""


class Session(ABC):
    """One connection to the engine, used by one thread at a time."""

    @property
    def is_lost(self) -> bool:
        """Whether its connection broke: another session is needed."""
        return False

    @abstractmethod
    def execute(
        self, sql: str, parameters: Sequence[Any] = (), *, wide: bool = False
    ) -> Result:
        """Run one statement; ``$n`` in it is ``parameters[n - 1]``.

        ``wide`` says that it may look at much of a large table.

        Raises
        ------
        EngineError
            The engine refused the statement; if autocommitted, it left no trace.
        """

    def execute_some(
        self, query: str, parameters: Sequence[Any], most: int, *, wide: bool = False
    ) -> Result:
        """As :meth:`rows_to_keep`; rows after the first ``most`` need not be computed.

        ``query`` is a SELECT with neither ORDER BY nor LIMIT of its own.
        """
        return self.execute(query, parameters, wide=wide)

    def rows_to_keep(self, query: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a query, in the form in which they are written again."""
        return self.execute(query, parameters).fetch_all()

    def shown(self, type_names: Sequence[str], rows: list[Row]) -> list[Row]:
        """Rows that were kept, whose columns are of these types, as results have them."""
        return rows

    def shown_results(
        self, columns: Sequence[ResultColumn], rows: list[Row]
    ) -> list[Row]:
        """Rows of a query for values to keep, with these columns, as results have them."""
        return rows

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

    @abstractmethod
    def begin(self) -> None:
        """Start an engine transaction (used inside the protocol only)."""

    @abstractmethod
    def commit(self) -> None:
        """Commit it durably."""

    @abstractmethod
    def rollback(self) -> None:
        """Roll it back; without one, do nothing."""

    @abstractmethod
    def transact(self, body: Callable[[], _Outcome]) -> _Outcome:
        """Run ``body`` in an engine transaction and commit it durably.

        The whole of it is run again when another engine transaction was in the way.
        If it raises, all is rolled back; if COMMIT does, it may have happened.
        """

    @abstractmethod
    def read_row(
        self, table: Table, key: Row, columns: Sequence[int] | None = None
    ) -> Row | None:
        """Return the storage row with that primary key, if there is one.

        Columns other than ``columns`` (all by default) are ``MISSING`` in it.
        """

    @abstractmethod
    def read_rows(
        self, table: Table, keys: Sequence[Row], columns: Sequence[int] | None = None
    ) -> dict[Row, Row]:
        """Return the storage rows with those primary keys, by key: one statement.

        Columns other than ``columns`` (all by default, and the key) are
        ``MISSING`` in them.
        """

    @abstractmethod
    def read_range(
        self,
        table: Table,
        prefix: Row,
        first: int,
        last: int,
        columns: Sequence[int],
        limit: int | None = None,
    ) -> pyarrow.Table:
        """Return a stretch of storage rows, in any order, at most ``limit``.

        The key's first columns are equal to ``prefix``; the one after them lies between
        ``first`` and ``last``, both included.
        """

    @abstractmethod
    def append(self, versions: Versions) -> None:
        """Append versions to a table's cache table, atomically."""

    @abstractmethod
    def newest_version(self, table: Table) -> int:
        """Return the greatest cts in a table's cache table; 0 if it is empty."""

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
    def arrow_relation(self, data: pyarrow.Table) -> Iterator[str | None]:
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


class Engine(ABC):
    """One open database."""

    capabilities: Capabilities
    forms: Forms
    settings: SettingRules
    search_path: Sequence[str] | None = None
    """The schemas in which a table is looked for that names none; None: the default."""
    statistics: Statistics
    shared: SharedSequencer | None = None
    """The sequencer of a database that several processes use; None for one process."""

    def forms_beside(self, parts: frozenset[Beside]) -> Forms:
        """The forms for a table in a statement that has such parts."""
        return self.forms

    @abstractmethod
    def session(self, *, logs_only: bool = False) -> Session:
        """Open a connection; one on which only :meth:`Session.log` is called, or any."""

    @abstractmethod
    def round_trips(self, type_name: str) -> bool:
        """Whether values of that type survive the way through Python unchanged."""

    def keeps(self, type_name: str) -> bool:
        """Whether values of that type can be kept by code that does not look at them.

        See :meth:`Session.rows_to_keep`.
        """
        return False

    @abstractmethod
    def columnar(self, type_name: str) -> bool:
        """Whether a value of that type is the same from an Arrow column as in a row."""

    @abstractmethod
    def arrow(
        self, rows: Sequence[Row], columns: Sequence[ResultColumn]
    ) -> pyarrow.Table:
        """Return rows that the driver had itself as an Arrow table."""

    @abstractmethod
    def is_managed(self) -> bool:
        """Whether the database holds tique's schema."""

    @abstractmethod
    def format_version(self) -> int:
        """The version of tique's schema in the database."""

    @abstractmethod
    def install(self, session: Session) -> None:
        """Create tique's schema."""

    def upgrade(self, session: Session) -> None:
        """Bring tables and functions of an earlier release, in this format, up to date.

        Called before recovery by a process that has the database to itself, and safe
        to be interrupted and repeated.
        """
        return

    @abstractmethod
    def renew_format(self, session: Session, factor: int) -> None:
        """Upgrade a database of the format before, in one engine transaction.

        Parameters
        ----------
        session
            The session to use.
        factor
            The number of epochs in this format that make one of the format before.

        Raises
        ------
        EngineError
            IN_USE if other processes use the database, LOCKED if this role may not.
        """

    @abstractmethod
    def uninstall(self, session: Session) -> None:
        """Drop tique's schema with everything in it."""

    @abstractmethod
    def attach_sequencer(self, sequencer: Sequencer) -> bool:
        """Make the sequencer callable from SQL; False where that is impossible."""

    @abstractmethod
    def managed_tables(self, session: Session) -> list[Table]:
        """The tables under tique's management, read from the engine's catalog.

        Of one that was changed past tique so that it cannot be described, ``fault``
        says why.
        """

    @abstractmethod
    def describe(self, session: Session, schema: str, name: str) -> Table:
        """Read a table's schema from the engine's catalog.

        Raises
        ------
        EngineError
            UNSUPPORTED where tique cannot keep the table's promises (generated
            columns), PROGRAMMING where there is no such table.
        """

    def declared_foreign_keys(
        self, session: Session, table: Table
    ) -> Sequence[Declared]:
        """The FOREIGN KEY constraints that the engine has on a table.

        Raises
        ------
        EngineError
            UNSUPPORTED where tique cannot keep one of them.
        """
        return ()

    def referencing_tables(self, session: Session, table: Table) -> Sequence[Row]:
        """Schema and name of each table with such a constraint that references it."""
        return ()

    def check_definition(self, session: Session, table: Table) -> None:
        """Refuse a table before it is managed if storage might take a row back.

        Acknowledged rows are checked again when they are folded, by constraints and
        indexes of the storage table: these may depend on nothing but the row (P4).
        Managed tables are not checked again; they may be of an earlier release. Only
        where the engine has such constraints.

        Raises
        ------
        EngineError
            UNSUPPORTED, naming the constraint or index and what it depends on.
        """
        return

    def check_versions(self, session: Session, table: Table) -> None:
        """Refuse a new index that storage could not bring recent versions to (P4).

        The cache table has all of them. Only where an index limits what a row may be.

        Raises
        ------
        EngineError
            The engine's own error if the versions were in storage.
        """
        return

    @abstractmethod
    def user_tables(self, session: Session) -> list[tuple[str, str]]:
        """(schema, name) of every base table that is not tique's own."""

    @abstractmethod
    def manage(self, session: Session, table: Table) -> Table:
        """Create the cache table and register the table; return it with its id."""

    @abstractmethod
    def unmanage(self, session: Session, table: Table) -> None:
        """Drop the cache table and the table's registration."""

    @abstractmethod
    def keep_foreign_keys(
        self,
        session: Session,
        table: Table,
        tables: Mapping[tuple[str, str], Table],
    ) -> None:
        """Keep a managed table's FOREIGN KEY constraints, in place of those before.

        In an engine transaction; ``tables`` are those referenced, by schema and name.
        """

    @abstractmethod
    def last_commit(self, session: Session) -> int:
        """The greatest cts that was ever committed; 0 in a new database."""

    @abstractmethod
    def next_epoch(self, session: Session) -> int:
        """Count this opening of the database, durably; the new count.

        The epoch is the upper part of every txid, so that none is used twice.
        """

    @abstractmethod
    def find_commit(self, session: Session, txid: int) -> int | None:
        """The cts of a committed transaction whose record is still kept."""

    @abstractmethod
    def remove_orphans(self, session: Session, table: Table) -> int:
        """Delete versions without a commit record; their number."""

    @abstractmethod
    def store(
        self,
        session: Session,
        table: Table,
        rows: Mapping[Row, Row | None],
        until: int,
        new: Collection[Row] = (),
        *,
        since: int | None = None,
    ) -> None:
        """Fold as :meth:`fold` does, from rows that the driver knows.

        ``rows`` has, for every key with a version with cts ≤ ``until``, the newest
        one's row (in which unchanged columns may be ``MISSING``), None if that is a
        tombstone. Versions up to ``until`` leave the cache table. Storage certainly has
        no rows with the keys ``new``.
        """

    @abstractmethod
    def fold(
        self,
        session: Session,
        table: Table,
        until: int,
        *,
        since: int | None = None,
    ) -> int:
        """Move versions with cts ≤ ``until`` to storage in one engine transaction.

        Parameters
        ----------
        session, table, until
            The session to use, the table, and the last cts to move.
        since
            In a shared database: up to where the caller knows it to be folded.

        Returns
        -------
        int
            The number of versions that left the cache table.

        Raises
        ------
        FoldedMeanwhileError
            Another process has folded the table since then.
        """

    @abstractmethod
    def replay(self, session: Session, table: Table) -> int:
        """Append the logged versions that the cache table lacks; return their number.

        Versions reach the cache table in cts order, so it lacks those that are newer
        than its newest version and than the last fold.
        """

    @abstractmethod
    def prune_log(self, session: Session, until: int, retention: float) -> None:
        """Drop log entries with cts ≤ ``until``: all their versions were folded.

        The outcomes of their transactions are kept for ``retention`` seconds.
        """

    def forgotten_until(self, session: Session) -> int:
        """The greatest txid whose commit record was pruned; 0 if none was."""
        rows = session.execute("SELECT forgotten FROM tique.format").fetch_all()
        return int(rows[0][0])

    def cached_commits(self, session: Session, table: Table) -> list[tuple[int, int]]:
        """The commits that the cache table has rows of: cts and number, in cts order."""
        rows = session.execute(
            f"SELECT _cts, count(*) FROM {cache_name(table)} GROUP BY _cts ORDER BY _cts"
        ).fetch_all()
        return [(int(cts), int(count)) for cts, count in rows]

    @abstractmethod
    def compact(self, session: Session, *, force: bool = False) -> bool:
        """Run the engine's own checkpoint if its log has grown; whether it ran."""

    @abstractmethod
    def close(self) -> None:
        """Close the database; idempotent."""


@dataclass(frozen=True)
class Server:
    """The part of a URL that has a server's place and the role that logs in.

    Parts that the URL leaves out are None. The password stays out of ``repr``.
    """

    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Location:
    """The place of a database, as a backend reads it from a URL.

    ``identity`` is equal for two URLs of the same database; None means that
    every connect gets a database of its own (in memory).
    """

    path: str
    identity: str | None
    options: Mapping[str, str] = field(default_factory=dict)
