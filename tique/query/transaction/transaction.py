"""A transaction as the statements that read and write rows know it.

With its DDL, its temporary tables and its savepoints it is a
:class:`~tique.query.transaction.ddl_transaction.DDLTransaction`.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import override

from tique import errors
from tique.query.read.keyed_rows import KeyedRows
from tique.query.transaction.constraint_modes import ConstraintModes
from tique.query.transaction.held import Held, HeldStorage, Stored
from tique.query.transaction.isolation import IsolationLevel
from tique.query.transaction.notifications import Notifications
from tique.store.kept_keys import too_old
from tique.writes.predicates import Predicate
from tique.writes.references import References
from tique.writes.seen import Seen
from tique.writes.table import TableWrites, Write
from tique_backends.errors import ConnectionLostError, EngineError
from tique_backends.records import MISSING
from tique_rewriter.plans.plan import Comparison, Literal
from tique_rewriter.plans.text import Moment
from tique_rewriter.scope.moments import timed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from types import TracebackType
    from typing import Any

    from tique.checkpoint.uncommitted import UncommittedFold
    from tique.commit.certification import Certifier
    from tique.commit.lock_keys import LockKey
    from tique.commit.locks import Locks
    from tique.commit.protocols.optimistic import Optimistic
    from tique.commit.turns import Contender
    from tique.history.moments import Point
    from tique.query.read.forms import Choice
    from tique.store.catalog import ManagedCatalog
    from tique.store.rows import Key
    from tique.store.versions import TableVersions
    from tique.timeline.local import Timeline
    from tique_backends.engine import Engine
    from tique_backends.records import Row
    from tique_backends.session import Session
    from tique_rewriter.schema import Table


_READ_COMMITTED = IsolationLevel.READ_COMMITTED
"""Asked three times by each statement; Python 3.11 takes 60 ns to find an Enum's member."""
_SERIALIZABLE = IsolationLevel.SERIALIZABLE


class Unchecked(NamedTuple):
    """A statement's writes whose FOREIGN KEY constraints are to be checked.

    ``changes`` are rows before and after, None if they are staged only. ``columns`` are
    the positions that the statement set, ``updated`` those that it set in rows that were
    there: inserted rows take no key away. ``deletes`` says that it deletes rows,
    ``sequence`` is the number of its writes.
    """

    table: Table
    changes: Sequence[tuple[Row | None, Row | None]] | None
    columns: Collection[int]
    updated: Collection[int]
    deletes: bool
    sequence: int


class _StatementScope:
    """The context of :meth:`Transaction.statement`; a generator would cost twice."""

    __slots__ = ("_before", "_transaction")

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def __enter__(self) -> None:
        transaction = self._transaction
        transaction.refresh()
        transaction._unseen.clear()
        self._before = transaction.sequence
        transaction.sequence += 2

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        transaction = self._transaction
        if kind is not None:
            transaction.note_failure()
        try:
            if kind is not None and transaction.goes_on():
                # (With DDL nothing goes on, and a ROLLBACK TO undoes this one, too.)
                # Staged rows went with a connection that is lost: a later use of them
                # fails. The error to raise is the statement's own.
                with suppress(ConnectionLostError):
                    transaction.undo(self._before)
            if kind is not None:
                transaction.sequence = self._before
        except EngineError:
            # A second interruption: numbers of rows that are left are used again.
            transaction.has_failed = True
            raise
        finally:
            transaction.unchecked.clear()
            transaction.visible_sequence = transaction.sequence


class Transaction(KeyedRows):
    """One transaction of one connection; used by one thread at a time.

    Parameters
    ----------
    engine
        The engine of the database that it runs on.
    catalog
        The database's managed tables.
    timeline
        The order of commits, in which it begins.
    session
        The connection's engine session, which holds the staging tables.
    isolation
        The isolation level.
    locks, certifier, protocol
        The database's row locks, what finds a newer commit of a key, and what keeps
        SERIALIZABLE transactions apart.
    read_only
        Whether writes are refused.
    merges
        Whether its updates that lost may be computed again.
    uncommitted
        Where wide queries find the snapshot in storage.
    contender
        Its connection, where several want the same rows; None: it waits for no turn.
    planned_at
        The version of the definitions by which its only statement was planned, if it begins
        blindly (:mod:`tique.query.write.blind`).
    begun
        When the application said BEGIN, by this process's monotonic clock; None: with its
        first statement.

    Notes
    -----
    Its *moment* (P12) is what the engine's clock showed when its snapshot was asked for,
    less the time for which the application had waited since BEGIN. So it is what BEGIN
    would have found had it been sent then: not earlier than anything that was seen
    before, and not later than anything that the transaction can see of the engine's clock. It
    stays through savepoints and later snapshots.
    """

    defined_at = 0
    """The sequence number after the last statement of DDL."""
    choices: list[Choice] | None = None
    """The forms of the tables that a statement reads, if it is explained."""
    holder: tuple[int, str] | None = None
    """The number of its connection, and the name of the thread that began it."""
    needs_fence = False
    """Whether the engine may find rows that the snapshot lacks for its last statement."""
    is_fenced = False
    """Whether its statement is fenced (:mod:`tique.query.read.fences`)."""
    is_single = False
    """Whether it is a statement in autocommit, which is run again if it loses."""
    past: Point | None = None
    """The point of the past that its statements read, if it is AS OF one."""
    held: Held | None = None
    """The engine transaction that keeps its snapshot, if there is one."""
    is_long = False
    """Whether its snapshot is to be handed to the engine before the next statement."""
    obstacle: str | None = None
    """Why that was not possible."""
    rests_until = 0.0
    """When it is tried again (:func:`time.monotonic`)."""
    has_failed = False
    """Whether a statement was cut short: it is not known what it has left behind."""

    def __init__(
        self,
        engine: Engine,
        catalog: ManagedCatalog,
        timeline: Timeline,
        session: Session,
        isolation: IsolationLevel = IsolationLevel.SNAPSHOT,
        *,
        locks: Locks,
        certifier: Certifier,
        protocol: Optimistic,
        uncommitted: UncommittedFold,
        read_only: bool = False,
        merges: bool = True,
        contender: Contender | None = None,
        planned_at: int | None = None,
        begun: float | None = None,
    ) -> None:
        super().__init__()
        self.engine = engine
        self.catalog = catalog
        self.timeline = timeline
        self.session = session
        self.isolation = isolation
        self.is_validated = isolation is _SERIALIZABLE
        """Whether what it has seen must be so still when it is committed."""
        is_locking = self.is_validated and protocol.locks
        self.locks_rows = isolation is _READ_COMMITTED or is_locking
        """Whether its statements lock the rows that they write."""
        self.read_only = read_only or timeline.is_read_only
        self.writes: dict[int, TableWrites] = {}
        self.references = References()
        self.unchecked: list[Unchecked] = []
        """Writes of the current statement to tables with FOREIGN KEY constraints."""
        self.deferred: dict[tuple[int, str], dict[Key, None] | None] = {}
        """References to check at commit, by child and constraint; None: all of them."""
        self.modes = ConstraintModes()
        self.notifications = Notifications()
        self.relations: dict[str, str] = {}
        """Members of the current statement's WITH list by name: relations as in FROM."""
        self.touched: set[int] = set()
        # Each statement has two numbers: its tombstones for changed keys have the
        # odd one, its rows the even one, so that "newest wins" holds within it.
        self.sequence = 0
        self.visible_sequence = 0
        """The last sequence number that a statement's own reads may see."""
        self.merges = merges and not is_locking
        self.locks = locks
        self.certifier = certifier
        self.protocol = protocol
        self.uncommitted = uncommitted
        self.lock_timeout: float | None = None
        """Seconds that a wait for a row lock may take; None: as long as it takes."""
        self.has_locked = False
        """Whether it has decided something by rows that it has locked."""
        self.contender = contender
        self.seen = Seen()
        self._unseen: list[tuple[Table, Key, Row | None, frozenset[int]]] = []
        """Rows of the current statement that are certified if it succeeds."""
        self.met: set[LockKey] = set()
        """Rows that have the keys of rows that the current statement was to insert."""
        self.looked_at: set[LockKey] = set()
        """Its own merged rows that the current statement has looked at."""
        self._is_first_statement = True
        self.planned_at = planned_at
        self.began = time.monotonic()
        waited = 0.0 if begun is None else self.began - begun
        self.txid, self.sts = timeline.begin(blindly=planned_at is not None)
        self._moment: int | None = None
        if planned_at is None:
            self._moment = timeline.moment - int(waited * 1e6)

    @property
    def moment(self) -> str:
        """The time of its begin, as the engine's text."""
        if self._moment is None:
            # A blind one has asked for nothing so far.
            self.timeline.catch_up()
            self._moment = self.timeline.moment
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self._moment)
        return f"CAST('{at.isoformat(sep=' ')}' AS TIMESTAMPTZ)"

    def default(self, text: str | None) -> str:
        """The text of a column's DEFAULT, with the transaction's moment in it."""
        return "".join(
            [
                p.form.format(self.moment) if isinstance(p, Moment) else str(p)
                for p in timed(text or "NULL", self.engine.capabilities.dialect)
            ]
        )

    @property
    def server_locks(self) -> Collection[int]:
        """The numbers of the row locks that it has alone in the server."""
        server = self.locks.server
        return () if server is None else server.own(self.txid)

    @property
    def locker(self) -> int:
        """The owner of its row locks in the server; 0: it has none."""
        server = self.locks.server
        return 0 if server is None else server.locker(self.txid)

    @property
    def has_writes(self) -> bool:
        """Whether there is anything to commit, but to temporary tables."""
        return any(bool(w) and not w.table.is_temporary for w in self.writes.values())

    @property
    def is_held(self) -> bool:
        """Whether the engine keeps its snapshot (:mod:`tique.query.transaction.held`)."""
        return self.held is not None

    def hold(self, stored: Stored | None = None) -> None:
        """Have the engine keep its snapshot, so that λ may pass it; idempotent.

        With ``stored``, which returns its version, the snapshot becomes what storage has.

        Raises
        ------
        EngineError
            The engine transaction could not be begun: the snapshot is kept as before.
        """
        if self.held is None:
            self.held = Held(self) if stored is None else HeldStorage(self, stored)
            self.obstacle = None
            if self.has_one_snapshot:
                # Folds keep what a commit is certified by, before they may pass it.
                if not self.read_only:
                    self.catalog.long_writers[self.txid] = self.sts
                self.timeline.end(self.txid)

    def let_go(self) -> None:
        """End the engine transaction that keeps its snapshot, if there is one.

        Raises
        ------
        EngineError
            It could not be committed.
        """
        held = self.held
        if held is not None:
            held.end()
            self.held = None

    def end(self) -> None:
        """Leave the set of active snapshots, give locks back, drop staged rows; idempotent."""
        self.timeline.end(self.txid)
        with suppress(EngineError):
            # The outcome stands, whatever becomes of it.
            self.let_go()
        self.catalog.long_writers.pop(self.txid, None)
        self.locks.release(self.txid)
        for writes in self.writes.values():
            # The outcome stands, even if a temporary table cannot be dropped.
            with suppress(EngineError):
                writes.discard(self.session)
        self.writes.clear()

    # Statements and savepoints

    @property
    @override
    def has_one_snapshot(self) -> bool:
        """Whether all of its statements have the same snapshot."""
        return self.isolation is not _READ_COMMITTED

    @property
    @abstractmethod
    def has_run_ddl(self) -> bool:
        """Whether it has run DDL, and is more than a statement."""

    @property
    def takes_turns(self) -> bool:
        """Whether its next attempt, once it has lost, has a turn; or it waits in a queue."""
        return self.has_one_snapshot or self.is_single

    def goes_on(self) -> bool:
        """Whether a statement that fails can be taken back by itself."""
        return not self.has_run_ddl and (self.held is None or self.held.is_kept())

    def statement(self) -> _StatementScope:
        """Run one statement in this context: all of it or, if it raises, nothing (P8)."""
        return _StatementScope(self)

    def refresh(self) -> None:
        """Take a new snapshot for this statement, where the level asks for it."""
        if self.isolation is _READ_COMMITTED:
            if not self._is_first_statement and not self.has_run_ddl:
                self.let_go()
                # Certification needs the versions that are newer than the snapshots of
                # its writes: λ must not pass these (P3).
                keeps = self.has_writes
                self.sts = self.timeline.refresh(self.txid, keeps=keeps)
                self._forget_rows()
            self._is_first_statement = False

    def seen_before(self) -> Seen:
        """What the application has seen before a statement that begins (:meth:`advance`)."""
        return self.seen.copy() if self.is_validated else self.seen

    def advance(self, seen: Seen) -> None:
        """Take a newer snapshot for a statement that others overtook, and that is run again.

        The application has seen nothing of this run.

        Raises
        ------
        SerializationError
            What it had seen before is not so there.
        """
        if self.has_one_snapshot:
            self.seen = seen.copy()
            self._unseen.clear()
            self.protocol.advance(self)
        else:
            self.refresh()

    def renew(self) -> bool:
        """Take a new snapshot if nothing was read or written; whether that is so."""
        if self.touched or self.has_writes or self.is_held:
            return False
        self.sts = self.timeline.refresh(self.txid)
        return True

    def begin_anew(self) -> None:
        """Undo all that it did on an older snapshot, and take that of now."""
        self.undo(0)
        self.planned_at = None
        self.seen = Seen()
        self.touched.clear()
        self._forget_rows()
        self.sts = self.timeline.refresh(self.txid)

    @property
    def has_merging_rows_only(self) -> bool:
        """Whether it writes rows that merge, and has seen nothing besides these."""
        written = [writes for writes in self.writes.values() if writes]
        return (
            bool(written)
            and all(writes.merges for writes in written)
            and not self.seen
            and not self.references
            and not self.deferred
        )

    def see_as_of(self, sts: int) -> None:
        """Read from a newer snapshot from now on; the one before stays registered."""
        self.sts = sts
        self._forget_rows()

    def expect_sound(self) -> None:
        """Refuse to go on after a statement that was cut short.

        Raises
        ------
        OperationalError
            One was, or the engine has given its snapshot up (SQLSTATE 25P02).
        """
        if self.held is not None:
            self.held.expect_kept()
        if self.has_failed:
            raise errors.OperationalError(
                "a statement of this transaction was cancelled, and it is not known "
                "whether it took effect: roll back, at least to a savepoint",
                sqlstate="25P02",
            )

    def undo(self, sequence: int) -> None:
        """Undo the writes of statements after ``sequence``, and give their locks back."""
        try:
            self.take_back(sequence)
        finally:
            self.locks.release(self.txid, after=sequence)

    def take_back(self, sequence: int) -> None:
        """Undo the writes of statements after ``sequence``, to all tables."""
        if self.is_validated:
            self._see_taken_back(sequence)
        with ExitStack() as stack:
            for writes in self.writes.values():
                stack.callback(writes.rollback_to, sequence, self.session)
            self.references.rollback_to(sequence)
            self.modes.rollback_to(sequence)
            self.notifications.rollback_to(sequence)

    # Reading

    def see_row(
        self, table: Table, key: Key, row: Row | None, columns: Collection[int] = ()
    ) -> None:
        """Note that the application learns of a row, or that it is not there."""
        if table.is_temporary or (
            row is not None and self.seen.has(table, key, row, columns)
        ):
            return
        writes = self.writes.get(table.id)
        if writes is not None and key in writes.rows:
            self._see_own(table, key, writes.rows[key])
        elif self.has_one_snapshot:
            self.seen.row(table, key, row, columns)

    def see_rows(
        self,
        predicate: Predicate,
        parameters: Sequence[Any],
        columns: frozenset[int] | None,
    ) -> None:
        """Note that the application learns of all rows of a predicate.

        ``columns`` are those that it learns of, and those of the conditions; None: all.
        """
        table = predicate.table
        if table.is_temporary:
            # No other transaction changes it.
            return
        if self.has_one_snapshot:
            self.seen.rows_of(predicate, parameters, columns)
        self._see_merged(table)

    def see_table(self, table: Table) -> None:
        """Note that the application may learn anything of a table."""
        if table.is_temporary:
            return
        if self.has_one_snapshot:
            self.seen.table(table)
        self._see_merged(table)

    def _see_merged(self, table: Table) -> None:
        """Note own rows that show what they were computed from."""
        writes = self.writes.get(table.id)
        if writes is not None and writes.may_merge:
            for key, write in writes.rows.items():
                if write.merge is not None:
                    self._see_own(table, key, write)

    def _see_own(self, table: Table, key: Key, write: Write) -> None:
        if write.merge is not None or self.has_one_snapshot:
            self.seen.own_row(table, key)
            self.looked_at.add((table.id, key))

    def _see_taken_back(self, sequence: int) -> None:
        """Note what writes of statements after ``sequence`` have shown the application.

        While they were there, their own certification would have said that they are in the way.
        """
        for writes in self.writes.values():
            table = writes.table
            if table.is_temporary:
                continue
            if writes.is_staged or writes.copies:
                self.seen.table(table)
            for key, row in writes.versions_after(sequence):
                self.seen.own_row(table, key)
                if table.computed_keys:
                    self.seen.table(table)
                for positions in table.unique:
                    if not {None, MISSING}.intersection(row[i] for i in positions):
                        self._see_no_other(table, positions, row)

    def _see_no_other(self, table: Table, positions: tuple[int, ...], row: Row) -> None:
        """Note that no row of the snapshot had these values of a row that was written."""
        same = [Comparison(i, "=", Literal(row[i])) for i in positions]
        columns = frozenset({*positions, *table.primary_key})
        self.seen.rows_of(Predicate(table, same), (), columns)

    def reads_committed_rows(self, tables: Iterable[Table]) -> bool:
        """Whether it sees of tables what any session sees in its snapshot."""
        session = self.session
        return (
            session.is_as_opened
            and not session.is_held
            and not self.has_run_ddl
            and not any(self.writes.get(table.id) for table in tables)
        )

    @override
    def versions(self, table: Table) -> TableVersions:
        """The recent versions of a table, noted as used by this transaction.

        Raises
        ------
        SerializationError
            The table was made after the transaction began, with rows; or made or changed
            by another process.
        """
        self.touched.add(table.id)
        versions = self.catalog.versions(table)
        if versions.since > self.sts:
            raise errors.SerializationError(
                f"table {table.qualified_name} was made, or changed, after this "
                "transaction began; run that again",
                table=table.qualified_name,
            )
        return versions if self.held is None else self.held.versions(table, versions)

    def row_to_change(
        self, table: Table, key: Key, needed: Sequence[int] | None
    ) -> Row | None:
        """As :meth:`row`, of a row that the statement writes, or says that it was seen.

        If it is written, its certification says whether it was changed; if the statement
        fails, the application has seen it.
        """
        found = self.row(table, key, needed)
        if self.is_validated:
            columns = range(len(table.columns)) if needed is None else needed
            self._unseen.append((table, key, found, frozenset(columns)))
        return found

    def note_failure(self) -> None:
        """Note what a statement has shown by its failure."""
        for noted in self._unseen:
            self.see_row(*noted)
        self._unseen.clear()

    @contextmanager
    def unnoted(self) -> Iterator[None]:
        """Run a query of which the application does not learn what it has not found."""
        seen, self.seen = self.seen, Seen()
        try:
            yield
        except BaseException:
            # Any row may be the reason.
            for table in self.seen.definitions.values():
                seen.table(table)
            raise
        finally:
            self.seen = seen

    @override
    def prepare_scan(
        self, table: Table, *, is_seen: bool = False
    ) -> TableWrites | None:
        """Bring into the engine the versions that a query over the table must see.

        ``is_seen`` says that the caller notes what the application learns of them.
        Returns the transaction's own writes, if it has any to overlay.
        """
        if not is_seen:
            self.see_table(table)
        self.versions(table).drain(self.session, self.sts)
        writes = self.writes.get(table.id)
        if not writes:
            return None
        writes.spill(self.session)
        return writes

    # Writing

    def writes_to(self, table: Table) -> TableWrites:
        """The transaction's writes to a table, to add to them.

        Raises
        ------
        OperationalError
            In a read-only transaction (SQLSTATE 25006).
        """
        if self.read_only and not table.is_temporary:
            raise errors.OperationalError(
                f"cannot write to {table.qualified_name} in a read-only transaction",
                sqlstate="25006",
            )
        self.touched.add(table.id)
        if (
            self.held is not None
            and not (table.is_temporary or table.is_keyless)
            and self.catalog.versions(table).judges_since > self.sts
        ):
            raise too_old(table)
        writes = self.writes.get(table.id)
        if writes is None:
            writes = self.writes[table.id] = TableWrites(table)
        return writes

    def note_unchecked(
        self,
        table: Table,
        changes: Sequence[tuple[Row | None, Row | None]] | None,
        columns: Collection[int],
        *,
        updated: Collection[int] | None = None,
        deletes: bool = False,
    ) -> None:
        """Note writes of the current statement, if constraints depend on them.

        For the parameters see :class:`Unchecked`; without ``updated`` it is ``columns``.
        """
        if table.foreign_keys or table.referenced:
            if updated is None:
                updated = columns
            noted = Unchecked(table, changes, columns, updated, deletes, self.sequence)
            self.unchecked.append(noted)

    def version_of(self, row: Row, *, deleted: bool = False) -> Write:
        """A version that the current statement writes."""
        return Write(row, deleted, self.sequence, self.sts)
