"""The interface of one open database of an engine, and the flags that it differs by.

The driver's protocol (snapshot, certification, commit, checkpoint, recovery) is written
against :class:`Engine` and :class:`~tique_backends.session.Session`; everything that
differs between engines is a method there or a flag in :class:`Capabilities`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Protocol
from weakref import WeakSet

from typing_extensions import TypeVar

from tique_backends.catalog import foreign_keys, histories
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.names import (
    cache_name,
    history_label,
    history_name,
    quote,
    storage_name,
)

if TYPE_CHECKING:
    from collections.abc import (
        Collection,
        Mapping,
        Sequence,
        Set,
    )

    import pyarrow

    from tique_backends.forms import Forms
    from tique_backends.records import (
        Images,
        ResultColumn,
        Row,
        Statistics,
    )
    from tique_backends.session import Session
    from tique_backends.settings import SettingRules
    from tique_backends.sharing import SharedSequencer
    from tique_rewriter.plans.plan import SiblingConstruct
    from tique_rewriter.schema import Attached, Function, HiddenCall, Table, View
    from tique_udfs import Sequencer


FORMAT_VERSION = 5
"""The version of the stored form, on any engine; later versions are not opened."""


FORMAT_OF_OWNERS_CODE = 3
FORMAT_WITHOUT_HISTORY = 4
"""The versions before, which are upgraded to this one when a database is opened.

In the former PostgreSQL's functions let code of other roles run as the owner (P11), in the
latter tables have no history. Those before are of no release.
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
    reads_variables : bool
        Whether a Python variable may stand for a table that a query reads.
    picks_joined_row : bool
        Whether a row that UPDATE … FROM joins with several others takes the values of any
        of them; else that is an error.
    picks_merged_row : bool
        Whether a row that MERGE matches with several others is changed by one of them;
        else that is an error.
    checks_proposed_rows : bool
        Whether NOT NULL and CHECK have to hold of each row that INSERT … ON CONFLICT
        proposes; else of the rows that it writes.
    changes_in_turn : bool
        Whether a change in a WITH list sees what those before it in the list wrote;
        else all parts of the statement see the rows before it.
    alters_foreign_keys : bool
        Whether FOREIGN KEY constraints can be dropped from a table and added to it.
    alters_changed_tables : bool
        Whether an engine transaction that has changed or deleted rows of a table can alter
        it afterwards.
    reads_uncommitted_folds : bool
        Whether wide queries are faster in an engine transaction that has written the recent
        versions into storage (:meth:`Engine.overwrite`) than over storage and cache table.
    undoes_temporary_tables : bool
        Whether temporary tables can be made after an engine transaction that made one was
        rolled back.
    keeps_undone_rows : bool
        Whether a table keeps what was written to it and rolled back, until it is vacuumed.
    computes_deleted_rows : bool
        Whether a condition may be computed, and fail, for rows that are deleted in storage.
    keeps_insertion_order : bool
        Whether rows that nothing sorts come as they were inserted.
    refuses_joins : bool
        Whether the engine may refuse to join a table's form, and take one behind a fence.
    keeps_known_images : bool
        Whether a fold of rows that the driver knows can write images that it knows, too.
    nests_transactions : bool
        Whether an engine transaction has savepoints, to which it can go back after a
        statement that failed, too.
    defines_beside_snapshots : bool
        Whether the schema may change while an engine transaction stays open.
    has_replica_subset : bool
        Whether some of its SQL is known to mean the same on a replica.
    """

    dialect: str
    page_keys: int
    overlay_values: int
    sorts_by_bytes: bool = True
    widest_sum: int = 64
    number_prefix: str = ""
    picks_joined_row: bool = True
    reads_variables: bool = False
    picks_merged_row: bool = False
    checks_proposed_rows: bool = False
    changes_in_turn: bool = False
    alters_foreign_keys: bool = False
    alters_changed_tables: bool = True
    reads_uncommitted_folds: bool = False
    undoes_temporary_tables: bool = True
    keeps_undone_rows: bool = False
    computes_deleted_rows: bool = False
    keeps_insertion_order: bool = False
    refuses_joins: bool = False
    keeps_known_images: bool = False
    nests_transactions: bool = False
    defines_beside_snapshots: bool = True
    has_replica_subset: bool = False


class Introspection(Protocol):
    """How an engine's package reads its catalog (its module ``introspection``)."""

    LAYOUTS: str
    """A query for the columns of tique's tables: table and column name, in order."""
    USER_TABLES: str
    """A query for schema and name of every base table that is not tique's own."""

    def describe(self, session: Session, schema: str, name: str) -> Table:
        """Read one table's schema."""


SessionT = TypeVar("SessionT", bound="Session", default=Any)
"""The class of an engine's sessions: its methods are given those that it has opened."""


class Engine(ABC, Generic[SessionT]):
    """One open database."""

    _introspection: Introspection
    """How tables' schemas are read from the engine's catalog."""
    _committed: str
    """A query for cts and txid of every commit whose record is still kept."""
    _recorded: str
    """A query for cts, txid and time of every such commit after ``{since}``."""
    capabilities: Capabilities
    forms: Forms
    settings: SettingRules
    search_path: Sequence[str] | None = None
    """The schemas in which a table is looked for that names none; None: the default."""
    follows_path: bool = False
    """Whether schemas that come later are found along the path of a new connection."""
    database: str = ""
    """The name that the engine takes before a schema's; empty if it takes none."""
    statistics: Statistics
    shared: SharedSequencer | None = None
    """The sequencer of a database that several processes use; None for one process."""
    keeping_foreign_keys: Sequence[str] = (foreign_keys.CREATION,)
    """The statements that create the relation of FOREIGN KEY constraints."""
    newest_commit = (
        "SELECT greatest((SELECT coalesce(max(cts), 0) FROM tique.log), "
        "(SELECT coalesce(max(cts), 0) FROM tique.outcomes), "
        '(SELECT coalesce(max(folded), 0) FROM tique."tables"))'
    )
    """A query for the greatest cts that was ever committed, or that tables are folded up to.

    Storage seems to have commits up to there: the last timestamps may have been aborted.
    """

    def __init__(self) -> None:
        self.held: WeakSet[object] = WeakSet()
        """What keeps an engine transaction of this process open, and so its snapshot."""
        self.defining = Lock()
        """DDL has it where no snapshot may be held meanwhile."""

    @property
    def in_place(self) -> bool:
        """Whether folds change rows in their places.

        For a snapshot that is held an engine may keep in memory what was in each of them.
        """
        return not self.held

    @property
    def fold_patience(self) -> int:
        """How many times as many versions as else, and as old ones, a fold waits for."""
        return 1

    def forms_beside(
        self, parts: frozenset[SiblingConstruct], company: Sequence[Table] = ()
    ) -> Forms:
        """The forms for a table in a statement that has such parts.

        The statement reads its ``company``, the table itself too.
        """
        return self.forms

    def overlays(self, table: Table, bound: Collection[int]) -> bool:
        """Whether the overlay is a form for a table with these columns bound."""
        return True

    @abstractmethod
    def session(self, *, logs_only: bool = False) -> Session:
        """Open a connection; one on which only :meth:`Session.log` is called, or any."""

    def resolve_path(
        self, session: SessionT
    ) -> tuple[Sequence[str], Set[tuple[str, str]]]:
        """The schemas in which a session, whose search path was changed, looks for names.

        The first is that in which what names no schema is made. Beside them: the relations
        in them whose names several have.
        """
        raise NotImplementedError

    @abstractmethod
    def round_trips(self, type_name: str) -> bool:
        """Whether values of that type survive the way through Python unchanged."""

    def keeps(self, type_name: str) -> bool:
        """Whether values of that type can be kept by code that does not look at them.

        See :meth:`Session.rows_to_keep`.
        """
        return False

    def compares(self, type_name: str) -> bool:
        """Whether values of that type that are kept are equal if they are to the engine.

        Then they may be of a key.
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
    def install(self, session: SessionT) -> None:
        """Create tique's schema."""

    def upgrade(self, session: SessionT) -> None:
        """Bring tables and functions of an earlier release, in this format, up to date.

        Called before recovery by a process that has the database to itself, and safe
        to be interrupted and repeated.
        """
        return

    @abstractmethod
    def renew_format(self, session: SessionT) -> None:
        """Upgrade a database of a format before, in one engine transaction.

        Parameters
        ----------
        session
            The session to use.

        Raises
        ------
        EngineError
            IN_USE if other processes use the database, LOCKED if this role may not.
        """

    def uninstall(self, session: SessionT) -> None:
        """Drop tique's schema with everything in it."""
        session.execute("DROP SCHEMA tique CASCADE")

    @abstractmethod
    def attach_sequencer(self, sequencer: Sequencer) -> bool:
        """Make the sequencer callable from SQL; False where that is impossible."""

    @abstractmethod
    def managed_tables(self, session: SessionT) -> list[Table]:
        """The tables under tique's management, read from the engine's catalog.

        Of one that was changed past tique so that it cannot be described, ``fault``
        says why.
        """

    def changed_past(self, table: Table) -> str | None:
        """What was done to a managed table past tique that makes its statements fail."""
        return None

    def describe(self, session: SessionT, schema: str, name: str) -> Table:
        """Read a table's schema from the engine's catalog.

        Raises
        ------
        EngineError
            UNSUPPORTED where tique cannot keep the table's promises (generated
            columns), PROGRAMMING where there is no such table.
        """
        return self._introspection.describe(session, schema, name)

    def declared_foreign_keys(
        self, session: SessionT, table: Table
    ) -> Sequence[foreign_keys.Declared]:
        """The FOREIGN KEY constraints that the engine has on a table.

        Raises
        ------
        EngineError
            UNSUPPORTED where tique cannot keep one of them.
        """
        return ()

    def referencing_tables(self, session: SessionT, table: Table) -> Sequence[Row]:
        """Schema and name of each table with such a constraint that references it."""
        return ()

    def check_definition(self, session: SessionT, table: Table) -> None:
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

    def unique_indexes(self, session: SessionT) -> Sequence[Row]:
        """Schema, table and name of each unique index that belongs to no constraint.

        On all of the application's tables. None if the engine's keep no duplicates out.
        """
        return ()

    def check_versions(self, session: SessionT, table: Table) -> None:
        """Refuse a new index that storage could not bring recent versions to (P4).

        The cache table has all of them. Only where an index limits what a row may be.

        Raises
        ------
        EngineError
            The engine's own error if the versions were in storage.
        """
        return

    def functions(self, session: SessionT) -> list[Function]:
        """Functions that are not its own; a statement may not call any of them."""
        return []

    def hidden_calls(self, session: SessionT) -> list[HiddenCall]:
        """What calls one of these, or one of its own that may write, without its name."""
        return []

    def check_macro(self, session: SessionT, name: str, expression: str) -> None:
        """Refuse a macro that would be called in the engine's own place, or is impure.

        Only asked of engines whose dialect has macros.

        Raises
        ------
        EngineError
            UNSUPPORTED, with the reason.
        """
        raise NotImplementedError

    def attach_database(self, path: str, name: str, options: Sequence[str]) -> Attached:
        """Attach another database, to be read. Only asked where the dialect has ATTACH.

        The ``options`` are SQL.

        Raises
        ------
        EngineError
            UNSUPPORTED, if its content could be read outside of the snapshot.
        """
        raise NotImplementedError

    def detach_database(self, name: str) -> None:
        """Detach a database that was attached."""
        raise NotImplementedError

    def views(self, session: SessionT) -> list[View]:
        """The application's views, read from the engine's catalog."""
        return []

    def materialized_views(self, session: SessionT) -> list[View]:
        """The application's materialized views, each as the view that it would be."""
        return []

    def without_storage(
        self, session: SessionT, tables: Sequence[Table]
    ) -> list[Table]:
        """Those of some managed materialized views that the engine has dropped."""
        return []

    def user_tables(self, session: SessionT) -> list[tuple[str, str]]:
        """(schema, name) of every base table that is not tique's own."""
        rows = session.execute(self._introspection.USER_TABLES).fetch_all()
        return [(schema, name) for schema, name in rows]

    def owned_sequences(self, session: SessionT, table: Table) -> Sequence[str]:
        """The sequences that belong to columns of a table, as SQL names them."""
        raise NotImplementedError

    def tables_of_type(self, session: SessionT, name: str) -> Sequence[Row]:
        """Schema and name of each table that has a column of a type of that name.

        The type may be part of the column's, and in any schema. tique's own tables are not among them, temporary tables are.
        """
        raise EngineError(ErrorKind.UNSUPPORTED, f"to rename {name} is not supported")

    def manage(
        self, session: SessionT, table: Table, *, before: Table | None = None
    ) -> Table:
        """Create the cache table and register the table; return it with its id.

        If the table has a history, that begins here, or goes on from the one of the table
        ``before``, which was let go without it.
        """
        managed = self._manage(session, table)
        if table.history is None:
            return managed
        managed = replace(managed, history=table.history)
        if before is None:
            self._create_history(session, managed)
        else:
            self._take_history(session, managed, before)
        histories.keep(session, managed)
        return managed

    @abstractmethod
    def _manage(self, session: SessionT, table: Table) -> Table:
        """The same without the history."""

    @abstractmethod
    def _create_history(self, session: SessionT, table: Table) -> None:
        """Create the history table (:mod:`tique_backends.catalog.histories`)."""

    def _take_history(self, session: SessionT, table: Table, before: Table) -> None:
        """Make the history table of a table that is gone this one's."""
        new = quote(history_label(table.id))
        session.execute(f"ALTER TABLE {history_name(before)} RENAME TO {new}")

    def unmanage(
        self, session: SessionT, table: Table, *, keeps_history: bool = False
    ) -> None:
        """Drop the cache table, the history and the table's registration.

        The history table stays if it is kept for :meth:`manage`.
        """
        session.execute(f"DROP TABLE {cache_name(table)}")
        histories.forget(session, table, drops=not keeps_history)
        session.execute(f'DELETE FROM tique."tables" WHERE id = {table.id}')
        foreign_keys.forget(session, table)

    def keep_foreign_keys(
        self,
        session: SessionT,
        table: Table,
        tables: Mapping[tuple[str, str], Table],
    ) -> None:
        """Keep a managed table's FOREIGN KEY constraints, in place of those before.

        In an engine transaction; ``tables`` are those referenced, by schema and name.
        """
        foreign_keys.keep(
            session,
            self._introspection.LAYOUTS,
            table,
            tables,
            self.keeping_foreign_keys,
        )

    def last_commit(self, session: SessionT) -> int:
        """The greatest cts that was ever committed; 0 in a new database."""
        return int(session.execute(self.newest_commit).fetch_all()[0][0])

    def next_epoch(self, session: SessionT) -> int:
        """Count this opening of the database, durably; the new count.

        The epoch is the upper part of every txid, so that none is used twice.
        """
        return self._count_alone(session, "epoch")

    def _numbered(self, session: SessionT, table: Table) -> Table:
        """Return a table with a number that no other has, or had.

        Log entries and cache tables are named by it.
        """
        count = self._count_alone if session.is_held else self._count
        return replace(table, id=count(session.aside, "last_table"))

    def _count_alone(self, session: Session, counter: str) -> int:
        """Count one of the schema's counters up, outside any transaction; the new count."""
        return self._count(session, counter)

    def _count(self, session: Session, counter: str) -> int:
        """Count it up in one statement, or in the engine transaction that is open."""
        ((count,),) = session.execute(
            f"UPDATE tique.format SET {counter} = {counter} + 1 RETURNING {counter}"
        ).fetch_all()
        return int(count)

    def find_commit(self, session: SessionT, txid: int) -> int | None:
        """The cts of a committed transaction whose record is still kept."""
        rows = session.execute(
            f"SELECT cts FROM ({self._committed}) AS _c WHERE txid = $1", [txid]
        ).fetch_all()
        return int(rows[0][0]) if rows else None

    def remove_orphans(self, session: SessionT, table: Table) -> int:
        """Delete versions without a commit record; their number."""
        # Outcomes are deleted only up to timestamps that have been folded.
        return session.change(
            f"DELETE FROM {cache_name(table)} WHERE _cts NOT IN "
            f"(SELECT cts FROM ({self._committed}) AS _c)"
        )

    def folds_rows(self, table: Table) -> bool:
        """Whether :meth:`store` takes rows of the table."""
        return True

    @abstractmethod
    def store(
        self,
        session: SessionT,
        table: Table,
        rows: Mapping[Row, Row | None],
        until: int,
        new: Collection[Row] = (),
        *,
        since: int | None = None,
        images: Images | None = None,
    ) -> None:
        """Fold as :meth:`fold` does, from rows that the driver knows.

        A table with a history comes with ``images``, and only to an engine that keeps them.
        ``rows`` has, for every key with a version with cts ≤ ``until``, the newest
        one's row (in which unchanged columns may be ``MISSING``), None if that is a
        tombstone. Versions up to ``until`` leave the cache table. Storage certainly has
        no rows with the keys ``new``.
        """

    def await_lockers(self, session: SessionT, table: Table) -> None:
        """Wait, not for long, for clients that keep the storage table from being altered."""
        return

    def folded_until(self, session: SessionT, table: Table) -> int:
        """The cts up to which all versions of a table are in storage."""
        ((folded,),) = session.execute(
            f'SELECT folded FROM tique."tables" WHERE id = {table.id}'
        ).fetch_all()
        return int(folded)

    def overwrite(
        self, session: SessionT, table: Table, rows: Mapping[Row, Row | None]
    ) -> None:
        """Write rows into storage, whatever it has under their keys; None: no row.

        Columns that are ``MISSING`` keep their values. It happens in the session's engine
        transaction. Only asked of engines that read uncommitted folds.
        """
        raise NotImplementedError

    def overwrite_cached(
        self, session: SessionT, table: Table, after: int, until: int
    ) -> int:
        """The same with the versions in the cache table with ``after`` < cts ≤ ``until``.

        Returns how many rows were written, nearly. The table has a key.
        """
        raise NotImplementedError

    def storage_rows(self, session: SessionT, table: Table) -> int:
        """How many rows the storage table has, nearly. Asked with :meth:`overwrite`."""
        result = session.execute(f"SELECT count(*) FROM {storage_name(table)}")
        return int(result.fetch_all()[0][0])

    def depend_on_rows(
        self, calls: frozenset[str], parameters: Sequence[object]
    ) -> bool:
        """Whether what these names stand for depends on rows and parameters alone.

        ``calls`` are those of :attr:`tique_rewriter.plans.plan.Select.calls`.
        """
        return False

    @abstractmethod
    def fold(
        self,
        session: SessionT,
        table: Table,
        until: int,
        *,
        since: int | None = None,
        appended: bool = False,
        columns_set: Collection[int] | None = None,
    ) -> int:
        """Move versions with cts ≤ ``until`` to storage in one engine transaction.

        Parameters
        ----------
        session, table, until
            The session to use, the table, and the last cts to move.
        since
            In a shared database: up to where the caller knows it to be folded.
        appended
            A promise, as of :meth:`Forms.scan`.
        columns_set
            A promise: all versions are rows, and storage has a row for each of them that
            differs in these columns at the most. None: there is no such promise.

        Returns
        -------
        int
            The number of versions that left the cache table.

        Raises
        ------
        FoldedMeanwhileError
            Another process has folded the table since then.
        """

    def _keep_images(
        self,
        session: SessionT,
        table: Table,
        after: int,
        until: int,
        *,
        appended: bool = False,
    ) -> None:
        """Write what such a fold replaces to the history, if there is one.

        In the engine transaction of the fold, and before it.
        """
        if table.history is not None:
            images = self.forms.before_images(table, after, until, appended=appended)
            session.change(f"INSERT INTO {history_name(table)} {images}")

    @abstractmethod
    def replay(self, session: SessionT, table: Table) -> int:
        """Append the logged versions that the cache table lacks; return their number.

        Versions reach the cache table in cts order, so it lacks those that are newer
        than its newest version and than the last fold.
        """

    @abstractmethod
    def prune_log(self, session: SessionT, until: int, retention: float) -> None:
        """Drop log entries with cts ≤ ``until``: all their versions were folded.

        The outcomes of their transactions are kept for ``retention`` seconds.
        """

    def clock(self, session: SessionT) -> int:
        """The time by which commits are logged, in microseconds."""
        return int(time.time() * 1e6)

    @abstractmethod
    def history_bytes(self, session: SessionT, table: Table) -> int:
        """The space that a table's history takes, as far as the engine tells."""

    def prune_history(
        self, session: SessionT, table: Table, until: int, points: Sequence[int]
    ) -> int:
        """Delete images of which no version can be asked for (:func:`histories.prune`)."""
        images = self.forms.images(table)
        return session.transact(
            lambda: histories.prune(session, table, until, points, images)
        )

    def prune_moments(self, session: SessionT, oldest: int) -> None:
        """Forget the commits that stand for no hour that anybody can ask for."""
        session.transact(lambda: histories.prune_moments(session, oldest))

    def forgotten_until(self, session: SessionT) -> int:
        """The greatest txid whose commit record was pruned; 0 if none was."""
        rows = session.execute("SELECT forgotten FROM tique.format").fetch_all()
        return int(rows[0][0])

    def commits(
        self, session: SessionT, since: int, until: int, most: int
    ) -> list[tuple[int, int, int]]:
        """The commits with ``since`` < cts ≤ ``until``, the first ``most`` of them.

        Each is its cts, its txid, and the time at which it was logged, in microseconds
        since 1970. Those whose records were pruned are not among them.
        """
        rows = session.execute(
            f"SELECT cts, txid, committed_at FROM ({self._recorded.format(since=since)}) "
            f"AS _c WHERE cts > {since} AND cts <= {until} ORDER BY cts LIMIT {most}"
        ).fetch_all()
        return [(int(cts), int(txid), int(at)) for cts, txid, at in rows]

    def cached_commits(self, session: SessionT, table: Table) -> list[tuple[int, int]]:
        """The commits that the cache table has rows of: cts and number, in cts order."""
        rows = session.execute(
            f"SELECT _cts, count(*) FROM {cache_name(table)} GROUP BY _cts ORDER BY _cts"
        ).fetch_all()
        return [(int(cts), int(count)) for cts, count in rows]

    @abstractmethod
    def compact(self, session: SessionT, *, force: bool = False) -> bool:
        """Run the engine's own checkpoint if its log has grown; whether it ran."""

    @abstractmethod
    def close(self) -> None:
        """Close the database; idempotent."""
