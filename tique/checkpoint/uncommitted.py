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

*What a query sees is its snapshot* (P1). For each table there is a *mark*: all versions with
cts ≤ mark are written, and none that is newer than ``newest`` ≤ mark. A snapshot sts ≥
mark first gets the versions between them, of each key the newest; they are in the index,
because a commit is published there before sts covers it. An older snapshot can be read as
long as ``newest`` ≤ sts. If one of the query's tables cannot be brought to the snapshot
(versions in the cache table alone, no key, a newer mark), the caller uses its other form, and
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

*An interruption* (Ctrl-C) may come after any step. ``_query`` and a suspension are each taken back
by identity, so that it does no harm whether they had been set. The transaction is ended unless the
answer was complete. If a query cannot be stopped, its session is given up after a time: what it
has written conflicts with a fold until it ends, and the fold is tried again.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from tique_backends.errors import EngineError, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tique.store.catalog import ManagedCatalog
    from tique_backends.engine import Engine
    from tique_backends.session import Result, Session
    from tique_rewriter.schema import Table

logger = logging.getLogger("tique")

_PATIENCE = 2.0
"""Seconds that a query may go on while a fold waits."""

_INTERRUPT_AGAIN = 0.05
_GIVE_UP = 30.0
"""Seconds until a session is left alone whose query does not end."""

_MOST_RESULTS = 10_000
"""Rows of a result that are held in memory; more are left to the other form."""

_REST = 30.0
"""Seconds for which a table is left alone whose versions could not be written."""


_QUIET = 0.5
"""Seconds without a commit to the tables until their versions are worth writing: beside
writers the statements that bring each commit there cost more than the query gains (1.6
queries a second of CH-benCHmark beside four clients of TPC-C, against 6.8)."""

_MOST_WRITTEN = 500_000
"""Versions written by one engine transaction, which keeps all of them until it ends; twice
as many as its first query needed if those are more."""


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


class LargeResultError(Exception):
    """A result has more rows than an uncommitted fold is held for."""


class UncommittedFold:
    """The one uncommitted fold of a database, if its engine is faster with one.

    Parameters
    ----------
    engine, catalog
        The engine of the database and its managed tables.
    least_rows
        The storage rows from which on it is worth its statements, if no transaction writes
        to the tables; 0: it always is; None: it never is (``uncommitted_fold_rows``).

    Attributes
    ----------
    queries, versions : int
        How many queries it has answered, and how many versions it has written for them.
    """

    def __init__(
        self, engine: Engine, catalog: ManagedCatalog, least_rows: int | None
    ) -> None:
        self.queries = 0
        self.versions = 0
        self._engine = engine
        self._catalog = catalog
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

    def is_worthwhile(self, tables: Sequence[Table], sts: int) -> bool:
        """Whether a query over these tables should be asked here first."""
        if not self._is_enabled or self._suspensions:
            return False
        if any(table.is_temporary for table in tables):
            return False
        recent = [table for table in tables if self._has_versions(table, sts)]
        now = time.monotonic()
        if not recent or any(self._resting.get(t.id, 0) > now for t in recent):
            return False
        if not all(self._is_quiet(table, now) for table in recent):
            return False
        sizes = [self._sizes.get(table.id) for table in recent]
        # A size that is not known is asked for by the query.
        return None in sizes or self._is_large(sizes)

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
        sql: str,
        parameters: Sequence[Any],
    ) -> Result | None:
        """Run a query over storage that is as the snapshot ``sts``.

        Returns
        -------
        Result or None
            Its result, in memory; None: the query must be asked in its other form.

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
            return self._answer(held, tables, sts, sql, parameters)
        except _Unreachable:
            return None
        except LargeResultError:
            raise
        except EngineError as error:
            # The engine has aborted the transaction.
            self._end(query.held)
            if error.kind is ErrorKind.INTERRUPTED and not query.is_unwanted:
                raise
            logger.debug("a query left the uncommitted fold: %s", error)
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
        sql: str,
        parameters: Sequence[Any],
    ) -> Result | None:
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
        result = session.execute(sql, parameters, wide=True)
        if not result.hold(_MOST_RESULTS):
            raise LargeResultError
        self.queries += 1
        return result

    def _opened(self, query: _Query) -> _Held:
        """The engine transaction that is open, or one that begins, for a query."""
        held = query.held = self._held
        if held is not None and held.limit is not None and held.written > held.limit:
            self._end(held)
            held = None
        if held is None:
            if self._session is None or self._session.is_lost:
                self._session = self._engine.session()
            # It is noted before: an interruption may come when it has begun.
            held = query.held = self._held = _Held(self._session)
            held.session.begin()
        return held

    def _bring(self, held: _Held, table: Table, sts: int) -> None:
        """Write the versions that the snapshot has and the table here has not."""
        mark, newest = held.marks.get(table.id, _NOTHING)
        if sts < mark:
            if newest > sts:
                raise _Unreachable
            return
        versions = self._catalog.versions(table)
        if versions.is_empty:
            held.marks[table.id] = _Mark(sts, newest)
            return
        rows = versions.changes_between(mark, sts)
        if rows is None or not self._catalog.buffers(table):
            raise _Unreachable
        if rows:
            newest = sts
            try:
                self._engine.overwrite(held.session, table, rows)
            except EngineError as error:
                if error.kind is not ErrorKind.INTERRUPTED:
                    self._resting[table.id] = time.monotonic() + _REST
                raise
        held.marks[table.id] = _Mark(sts, newest)
        held.written += len(rows)
        self.versions += len(rows)

    def _end(self, held: _Held | None) -> None:
        """End an engine transaction: of a query that is under way, or in a suspension."""
        if held is None:
            return
        if held is not self._held:
            # It has ended, or was given up, and its session with it.
            held.session.rollback()
            return
        self._held = None
        try:
            held.session.rollback()
        except BaseException:
            # It is rolled back when it is closed.
            self._session = None
            with suppress(EngineError):
                held.session.close()
            raise

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
