"""An uncommitted fold: wide queries read storage in an engine transaction of its own.

A wide query over a table with recent versions would probe each storage row against the
cache table. In an engine transaction that is never committed, the recent versions are
written into storage instead, as a fold would; there, the tables that bear the
application's names *are* the snapshot, and the engine runs the application's text by its
native plan. Later queries only bring the newer versions there.

Argument
--------
*It begins as storage is.* The engine transaction sees storage at its beginning, and its own
writes. Nothing else writes storage while it is open: folds, DDL and the engine's own
checkpoint happen in :meth:`UncommittedFold.suspended`, which ends it first, and no other
begins before they are over. So every version that storage had not at the beginning is in
the index of recent versions for as long as it is open (the index drops a version only in
a fold), even if the engine has some of them: to write one again changes nothing.

*Versions that the index has not*, of bulk commits and recovery, are in the cache table. So before
the engine transaction begins, such tables are drained up to the snapshot: there it sees all
versions until then (``drained``), and they are written from there by the engine itself. It does not see
later ones; for a bulk commit among them it ends, and another one begins.

*Other processes* of a server fold and change schemas under the checkpointer's lease. It is
taken before the engine transaction begins, and kept until it has ended
(:meth:`~tique.timeline.local.Timeline.keep_folds_off`). The lease may run out if this process
is stopped. So when the result is in memory it must have lasted without a break since before the
beginning; else the result is dropped, whatever it was, and the engine transaction ended.
And if the lease is lost in a way that this process has not learnt of: how far the index has
dropped each table's versions is noted before the beginning, and compared after the versions to write
are read from it. If it is the same, the index has had all versions that storage had not.
They may have dropped a table just before the beginning and made another of its name, which the first
query that reads it finds out.

*Locks.* The engine transaction holds locks on the rows that it has written (PostgreSQL), or makes
others that write them fail (MonetDB). These are folds and DDL alone, and under the lease there
are none. If it has run out: on PostgreSQL a fold waits for a statement at most, or ten seconds
(``idle_in_transaction_session_timeout``), and the engine transaction waits no longer than a tenth of
a second for a lock, so it is the one that leaves a deadlock; on MonetDB the fold fails and is tried
again, until the process is killed or goes on: MonetDB ends no session that waits for its client. Drains append to cache tables, which it does not touch.

*Others get their turn* (P7). On a server it ends when it has rested for a while, because
the engine keeps what all others delete for as long as it is open; beside other processes it
ends after a few seconds in any case, even if a query is under way, and rests for as long as they need
to take the lease.

*What a query sees is its snapshot* (P1). For each table there is a *mark*: all versions with
cts ≤ mark are written, and none that is newer than ``newest`` ≤ mark. A snapshot sts ≥
mark first gets the versions between them, of each key the newest; they are in the index,
because a commit is published there before sts covers it. An older snapshot can be read as
long as ``newest`` ≤ sts. If one of the query's tables cannot be brought to the snapshot
(versions of a table without a key, a newer mark), the caller uses its other form, and
so it does with own writes, and with text that depends on more than rows.

*Nothing is lost, nothing is shown to others.* The transaction is never committed: when the
process dies, or any statement in it fails, its writes are gone, and storage, cache table and
log are as they were (P4). Other engine transactions never see them (P10).

*One query at a time.* ``_query`` is set for a query from its versions to its last row; another
thread does not wait, but uses the other form. All rows are read meanwhile, and results of many
rows are given up: an application that reads slowly holds nothing up. A query begins, under
``_changed``, if there is no other and no suspension; a suspension is noted under it, and
waits for the query that is under way. After a while that is interrupted (P7), and run again in its
other form: the application has seen nothing of it.

*Memory.* The engine keeps what the transaction has overwritten, and beside an old snapshot no fold
ends it. So it begins anew when it has written far more than the versions that there are.

*Disk.* PostgreSQL keeps what was undone until the table is vacuumed. Autovacuum does that when a fifth of
a table's rows are dead; and once the versions of one minute are as many, or have been written once,
the table is left to the other form for the rest of the minute. Those of bulk commits are not written if they are more, not even once.

*An interruption* (Ctrl-C) may come after any step. ``_query`` and a suspension are each taken back
by identity, so that it does no harm whether they had been set. The transaction is ended unless the
answer was complete. If a query cannot be stopped, its session is given up after a time: what it
has written conflicts with a fold until it ends, and the fold is tried again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tique._log import family, fields
from tique_backends.errors import EngineError, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tique.store.catalog import ManagedCatalog
    from tique.timeline.local import Timeline
    from tique_backends.engine import Engine
    from tique_backends.session import Result, Session
    from tique_rewriter.schema import Table

logger = logging.getLogger("tique.checkpoint")

_Outcome = TypeVar("_Outcome")

_PATIENCE = 2.0
"""Seconds that a query may go on while a fold waits."""

_INTERRUPT_AGAIN = 0.05
_GIVE_UP = 30.0
"""Seconds until a session is left alone whose query does not end."""

_MOST_RESULTS = 10_000
"""Rows of a result that are held in memory; more are left to the other form."""

_LARGE = 100
"""So many queries with too many rows are remembered by their texts."""

_REST = 30.0
"""Seconds for which a table is left alone whose versions could not be written."""


_QUIET = 0.5
"""Seconds without a commit to the tables until their versions are worth writing: beside
writers the statements that bring each commit there cost more than the query gains (1.6
queries a second of CH-benCHmark beside four clients of TPC-C, against 6.8)."""

_IDLE, _IDLE_BESIDE_OTHERS = 8.0, 1.0
"""Seconds without a query after which one on a server ends; beside other processes."""

_TURN, _PAUSE = 5.0, 1.0
"""Seconds that one lasts beside other processes, and that none begins afterwards."""

_MOST_WRITTEN = 500_000
"""Versions written by one engine transaction, which keeps all of them until it ends; twice
as many as its first query needed if those are more."""


_VACUUMED, _MOST_UNDONE = 60.0, 0.2
"""Seconds within which undone versions of this part of a table's rows are written: so often
PostgreSQL looks for tables to vacuum, and so many dead rows a table must have for that."""


class _Mark(NamedTuple):
    """Versions with cts ≤ ``mark`` are written; ``newest`` is the newest of them."""

    mark: int
    newest: int


_NOTHING = _Mark(0, 0)


class _Held:
    """An engine transaction that is open, and what it has written.

    It belongs to the query that is under way, even if that is given up: another one
    begins with another.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.has_begun = False
        self.drained: dict[int, int] = {}
        """Up to which cts it sees all versions of a table in the cache table."""
        self.began_at = self.used_at = time.monotonic()
        self.folds_off = 0
        """The time for which other processes do not fold, if it has begun."""
        self.folded: dict[int, int] = {}
        """How far each table's versions had been dropped from the index before it began."""
        self.marks: dict[int, _Mark] = {}
        self.written = 0
        """Versions that it has written."""
        self.limit: int | None = None
        """How many may be written until another one begins; None: not known yet."""


class _Query:
    """A query that is under way, and whether it was interrupted for a suspension."""

    __slots__ = ("held", "is_unwanted", "txid")

    def __init__(self, txid: int) -> None:
        self.txid = txid
        self.held: _Held | None = None
        self.is_unwanted = False


class _Unreachable(Exception):
    """A table cannot be brought to the snapshot."""


class _BegunTooEarly(Exception):
    """Another engine transaction could bring a table to the snapshot."""


class LargeResultError(Exception):
    """A query has more rows, or takes longer, than an uncommitted fold is held for."""


def held_result(session: Session, sql: str, parameters: Sequence[Any]) -> Result | None:
    """The result of a query, in memory; None: it has too many rows for that."""
    result = session.execute(sql, parameters, wide=True)
    return result if result.hold(_MOST_RESULTS) else None


class UncommittedFold:
    """The one uncommitted fold of a database, if its engine is faster with one.

    Parameters
    ----------
    engine, catalog, timeline
        The engine of the database, its managed tables, and its place among other processes.
    least_rows
        The storage rows from which on it is worth its statements, if no transaction writes
        to the tables; 0: it always is; None: it never is (``uncommitted_fold_rows``).

    Attributes
    ----------
    queries, versions : int
        How many queries it has answered, and how many versions it has written for them.
    """

    def __init__(
        self,
        engine: Engine,
        catalog: ManagedCatalog,
        timeline: Timeline,
        least_rows: int | None,
    ) -> None:
        self.queries = 0
        self.versions = 0
        self._engine = engine
        self._catalog = catalog
        self._timeline = timeline
        self._least_rows = least_rows or 0
        self._quiet = _QUIET if least_rows else 0.0
        self._is_enabled = (
            least_rows is not None and engine.capabilities.reads_uncommitted_folds
        )
        self._changed = threading.Condition()
        self._ending = threading.Lock()
        self._suspensions: set[object] = set()
        self._query: _Query | None = None
        """The query that is under way."""
        self._session: Session | None = None
        self._held: _Held | None = None
        self._sizes: dict[int, int] = {}
        self._resting: dict[int, float] = {}
        self.large: deque[str] = deque(maxlen=_LARGE)
        """The texts of queries that had too many rows, for EXPLAIN."""
        self._spent: dict[int, tuple[float, int]] = {}
        """When counting began for each table, and how many versions were written since."""
        self._paused_until = 0.0

    def obstacle(self, tables: Sequence[Table], sts: int) -> str | None:
        """Why a query over these tables should not be asked here first; None: it should."""
        if not self._is_enabled:
            return "it is switched off, or the engine is not faster with it"
        if self._suspensions:
            return "storage is being written"
        if any(table.is_temporary for table in tables):
            return "a table is temporary"
        recent = [table for table in tables if self._has_versions(table, sts)]
        if len(tables) == 1 and recent and self._is_in_order(tables[0]):
            return "the table was only appended to, and its rows come in that order"
        now = time.monotonic()
        if now < self._paused_until:
            return "other processes fold or change schemas for a moment"
        if not recent:
            return "no table has recent versions"
        if any(self._resting.get(t.id, 0) > now for t in recent):
            return "storage has refused versions of a table, or has enough undone ones"
        if not all(self._is_quiet(table, now) for table in recent):
            return f"a table was written to in the last {self._quiet} s"
        sizes = [self._sizes.get(table.id) for table in recent]
        # A size that is not known is asked for by the query.
        if None in sizes or self._is_large(sizes):
            return None
        return self._too_small()

    def _is_in_order(self, table: Table) -> bool:
        """Whether a scan keeps the order of its rows, which a fold of single rows loses."""
        keeps_order = self._engine.capabilities.keeps_insertion_order
        return keeps_order and self._catalog.versions(table).is_appended

    def _too_small(self) -> str:
        return f"the tables that have recent versions store fewer than {self._least_rows:,} rows"

    def _is_quiet(self, table: Table, now: float) -> bool:
        """Whether no commit to the table has come for a while."""
        return now - self._catalog.versions(table).published_at >= self._quiet

    def _is_large(self, sizes: Sequence[int | None]) -> bool:
        known = sum([size for size in sizes if size is not None])
        return known >= self._least_rows

    def _has_versions(self, table: Table, sts: int) -> bool:
        oldest = self._catalog.versions(table).oldest
        return oldest is not None and oldest <= sts

    def ask(
        self,
        tables: Sequence[Table],
        sts: int,
        txid: int,
        run: Callable[[Session], _Outcome | None],
        asking: Session,
    ) -> _Outcome | None:
        """Run something over storage that is as the snapshot ``sts``.

        Parameters
        ----------
        tables, sts, txid
            The tables that it reads, its snapshot and its transaction.
        run
            Called with the session to run it in (:func:`held_result`); None: it has too many rows.
        asking
            The session of its transaction.

        Returns
        -------
        object
            What ``run`` returns; None: the query must be asked in its other form.

        Raises
        ------
        EngineError
            The query of this transaction was interrupted (:meth:`interrupt`).
        LargeResultError
            It must be asked in its other form, each time.
        """
        query = _Query(txid)
        try:
            with self._changed:
                if self._suspensions or self._query is not None:
                    return None
                self._query = query
                held = self._opened(query)
            answer = (tables, sts, run, asking)
            try:
                return self._answer(held, *answer)
            except _BegunTooEarly:
                self._end(held)
                with self._changed:
                    held = self._opened(query)
                return self._answer(held, *answer)
        except (_Unreachable, _BegunTooEarly):
            return None
        except LargeResultError:
            raise
        except EngineError as error:
            # The engine has aborted the transaction.
            self._end(query.held)
            if error.kind is ErrorKind.INTERRUPTED and not query.is_unwanted:
                raise
            if query.is_unwanted and self._timeline.is_shared:
                # Next time it would be interrupted again.
                raise LargeResultError from error
            logger.debug(
                "a query left the uncommitted fold (%s)",
                family(error),
                extra=fields("uncommitted_fold_left", error=family(error)),
            )
            return None
        except BaseException:
            self._end(query.held)
            raise
        finally:
            with self._changed:
                if self._query is query:
                    self._query = None
                    self._changed.notify_all()

    def _answer(
        self,
        held: _Held,
        tables: Sequence[Table],
        sts: int,
        run: Callable[[Session], _Outcome | None],
        asking: Session,
    ) -> _Outcome | None:
        self._begin(held, asking, sts)
        session = held.session
        distinct = list({table.id: table for table in tables}.values())
        recent = [table for table in distinct if self._has_versions(table, sts)]
        for table in recent:
            if table.id not in self._sizes:
                self._sizes[table.id] = self._engine.storage_rows(session, table)
        if not self._is_large([self._sizes[table.id] for table in recent]):
            return None
        for table in distinct:
            self._bring(held, table, sts)
        if held.limit is None:
            held.limit = max(_MOST_WRITTEN, 2 * held.written)
        outcome = run(session)
        held.used_at = time.monotonic()
        if not self._timeline.are_folds_off(held.folds_off):
            self._end(held)
            return None
        if outcome is None:
            raise LargeResultError
        self.queries += 1
        return outcome

    def _opened(self, query: _Query) -> _Held:
        """The engine transaction that is open, or one that begins, for a query."""
        held = query.held = self._held
        if held is not None and held.limit is not None and held.written > held.limit:
            self._end(held)
            held = None
        if held is None:
            if self._session is None or self._session.is_lost:
                self._session = self._engine.session()
            held = query.held = self._held = _Held(self._session)
        return held

    def _begin(self, held: _Held, asking: Session, sts: int) -> None:
        """Begin the engine transaction, or see that no other process has folded since.

        All versions of bulk commits and recovery are in cache tables before.
        """
        number = self._timeline.keep_folds_off()
        if number and not held.has_begun:
            held.folds_off = number
            for versions in self._catalog.all_versions():
                held.folded[versions.table.id] = versions.folded_until
                if not versions.is_complete and not versions.is_behind:
                    versions.drain(asking, sts)
                    held.drained[versions.table.id] = sts
            # It is noted before: an interruption may come when it has begun.
            held.has_begun = True
            held.session.begin_uncommitted_fold()
        elif not number or number != held.folds_off:
            self._end(held)
            raise _Unreachable

    def _bring(self, held: _Held, table: Table, sts: int) -> None:
        """Write the versions that the snapshot has and the table here has not."""
        if table.id not in held.marks:
            self._expect_there(held, table)
        mark, newest = held.marks.get(table.id, _NOTHING)
        if sts < mark:
            if newest > sts:
                raise _Unreachable
            return
        versions = self._catalog.versions(table)
        rows: dict[Any, Any] | None
        if versions.is_empty:
            rows = {}
        else:
            if table.is_keyless:
                raise _Unreachable
            rows = versions.changes_between(mark, sts)
            drained = min(held.drained.get(table.id, 0), sts)
            if rows is None and mark < drained:
                self._spend(table, versions.rows, may_exceed=False)
                written = self._written(
                    table,
                    lambda: self._engine.overwrite_cached(
                        held.session, table, mark, drained
                    ),
                )
                self._note(held, table, _Mark(drained, drained), written)
                mark = newest = drained
                rows = versions.changes_between(mark, sts)
            if rows is None:
                raise _BegunTooEarly
            if rows and not self._catalog.buffers(table):
                raise _Unreachable
        if versions.folded_until != held.folded.get(table.id):
            # Another process has folded since, and the index has dropped what it folded.
            self._end(held)
            raise _Unreachable
        if rows:
            self._spend(table, len(rows))
            newest = sts
            changed = rows
            self._written(
                table, lambda: self._engine.overwrite(held.session, table, changed)
            )
        self._note(held, table, _Mark(sts, newest), len(rows))

    def _written(self, table: Table, write: Callable[[], _Outcome]) -> _Outcome:
        """The outcome of writing to storage; a table that refuses it is left alone."""
        try:
            return write()
        except EngineError as error:
            if error.kind is not ErrorKind.INTERRUPTED:
                self._resting[table.id] = time.monotonic() + _REST
            raise

    def _note(self, held: _Held, table: Table, mark: _Mark, written: int) -> None:
        held.marks[table.id] = mark
        held.written += written
        self.versions += written

    def _spend(self, table: Table, written: int, *, may_exceed: bool = True) -> None:
        """Count versions that the engine keeps, undone, until it vacuums the table.

        ``may_exceed`` if the first ones may be more than it should keep.
        """
        if not self._engine.capabilities.keeps_undone_rows:
            return
        now = time.monotonic()
        since, spent = self._spent.get(table.id, (now, 0))
        if now - since >= _VACUUMED:
            since, spent = now, 0
        is_bounded = spent or not may_exceed
        if is_bounded and spent + written > self._sizes.get(table.id, 0) * _MOST_UNDONE:
            self._resting[table.id] = since + _VACUUMED
            raise _Unreachable
        self._spent[table.id] = since, spent + written

    def _expect_there(self, held: _Held, table: Table) -> None:
        """Fail if the table was dropped by another process before the beginning."""
        if self._timeline.is_shared:
            stored = self._engine.forms.stored(table)
            held.session.execute(f"SELECT 1 FROM {stored} AS _t WHERE FALSE").close()

    def _end(self, held: _Held | None) -> None:
        """End an engine transaction: of a query that is under way, or in a suspension."""
        if held is None:
            return
        if held is not self._held:
            # It has ended, or was given up, and its session with it.
            held.session.rollback()
            if held.session is not self._session:
                held.session.close()
            return
        self._held = None
        try:
            held.session.rollback()
        except BaseException as error:
            # It is rolled back when it is closed, or lost.
            self._session = None
            with suppress(EngineError):
                held.session.close()
            if isinstance(error, EngineError):
                return
            raise
        finally:
            self._timeline.let_fold()
        if not self._engine.capabilities.undoes_temporary_tables:
            # Its rows may have gone through one.
            self._session = None
            held.session.close()

    def tend(self) -> None:
        """End it if it is not used, or other processes have waited for it."""
        held, now = self._held, time.monotonic()
        if held is None or not held.has_begun or not self._timeline.is_shared:
            return
        idle = now - held.used_at if self._query is None else 0.0
        is_old = now - held.began_at >= _TURN
        if idle < _IDLE:
            if not is_old and idle < _IDLE_BESIDE_OTHERS:
                return
            if self._timeline.position().clients <= 1:
                return
            self._paused_until = now + _PAUSE
        with self.suspended():
            pass

    def interrupt(self, txid: int) -> None:
        """Make a transaction's query fail, if it is under way here; from any thread."""
        with self._changed:
            if self._query is not None and self._query.txid == txid:
                self._interrupt()

    def _interrupt(self) -> None:
        if self._session is not None:
            self._session.interrupt()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """End it, and let none begin while storage is written; reentrant."""
        if not self._is_enabled:
            yield
            return
        suspension = object()
        try:
            with self._changed:
                self._suspensions.add(suspension)
                self._wait()
            with self._ending:
                self._end(self._held)
                self._timeline.let_fold()
                self._sizes.clear()
            yield
        finally:
            self._suspensions.discard(suspension)

    def _wait(self) -> None:
        """Wait for the query that is under way, and interrupt it if it takes long."""
        began = time.monotonic()
        while self._query is not None:
            self._changed.wait(_INTERRUPT_AGAIN)
            waited = time.monotonic() - began
            if self._query is not None and waited > _PATIENCE:
                self._query.is_unwanted = True
                self._interrupt()
                if waited > _GIVE_UP:
                    self._query = self._session = self._held = None

    def close(self) -> None:
        """End it for good."""
        with self.suspended():
            self._is_enabled = False
            session, self._session = self._session, None
        if session is not None:
            session.close()
