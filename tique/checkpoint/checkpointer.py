"""The checkpointer: folds stable versions into storage (paper 2.4.1, P7).

Argument
--------
*Only versions ≤ λ move.* λ is read from the sequencer once per round. A
transaction that begins meanwhile registers its snapshot before it learns its sts
and sts ≥ λ, so everything folded is part of its snapshot.

*Readers and committers do not wait.* One fold is one engine transaction over at most a
batch of commits; under the engine's own MVCC a reader's statement sees storage
and cache from before it or from after it, and both give the same snapshot.
Committers append to the cache table meanwhile; a fold deletes only versions that it
moved.

*A crash* leaves the fold done or not done. The index drops versions only
after the engine's COMMIT; in between a reader finds the same rows twice, in
memory and in storage, and takes the first.
An interruption in between is a fold that its
process does not know of: the next one asks the engine first.

``lock`` is held for a round: DDL and detaching wait for it, and for the lease of
another process's round.

*One table stops no other (P4).* If a table cannot be folded, its versions stay where they
are, readable; the others are folded, and the log keeps the entries that the table still
needs. :mod:`tique.checkpoint.obstacles` has why.

The thread also closes the sessions of garbage-collected connections, because a
finalizer may run anywhere and must not take locks.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from tique import _observer, errors
from tique._log import family, fields
from tique.checkpoint.obstacles import Obstacles
from tique.timeline.recovery import bring_back
from tique_backends.errors import ConnectionLostError, EngineError, ErrorKind
from tique_backends.sharing import FencedError, FoldedMeanwhileError, UnstoredRowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tique.checkpoint.uncommitted import UncommittedFold
    from tique.store.catalog import ManagedCatalog
    from tique.store.versions import TableVersions
    from tique.timeline.local import Timeline
    from tique.timeline.recovery import Restored
    from tique_backends.engine import Engine
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

logger = logging.getLogger("tique.checkpoint")

_TICK = 0.25
_BATCH_ROWS = 20_000
_PRUNE_INTERVAL = 60.0
_ATTEMPTS = 3
_PATIENCE = 10.0


class Pruner(Protocol):
    """What the rounds know of the histories of tables."""

    def kept(self, tables: Iterable[Table]) -> float:
        """For how many seconds every commit's record is needed."""

    def prune(self, session: Session, tables: Iterable[Table]) -> int:
        """Delete images of which no version can be asked for any more."""


class Checkpointer:
    """Runs rounds when a threshold is passed, or when asked.

    Parameters
    ----------
    engine
        The database's engine.
    catalog
        Its managed tables.
    timeline
        Tells λ, and lets one process fold at a time.
    uncommitted
        Ends before storage is written.
    rows
        The number of cached rows of a table that starts a round.
    age
        The time, in seconds, after which cached rows start a round anyhow. The engine may
        have both multiplied (:attr:`Engine.fold_patience`).
    automatic
        Whether a background thread watches the thresholds.
    retention
        The time, in seconds, for which commit records are kept.
    past
        Prunes the histories of tables.
    housekeeping
        Called by the background thread at every tick.
    """

    def __init__(
        self,
        engine: Engine,
        catalog: ManagedCatalog,
        timeline: Timeline,
        uncommitted: UncommittedFold,
        *,
        rows: int,
        age: float,
        automatic: bool,
        retention: float,
        past: Pruner,
        housekeeping: Callable[[], None] = lambda: None,
    ) -> None:
        self.lock = threading.Lock()
        self.rounds = 0
        self.folded = 0
        self.last_round: float | None = None
        self.last_error: str | None = None
        self.obstacles = Obstacles()
        self._engine = engine
        self._catalog = catalog
        self._timeline = timeline
        self._uncommitted = uncommitted
        self._housekeeping = housekeeping
        self._rows = rows
        self._age = age
        self._automatic = automatic
        self._retention = retention
        self._past = past
        self._wake = threading.Event()
        self._stopping = False
        self._session: Session | None = None
        self._thread: threading.Thread | None = None
        self._due_since = self._pruned = time.monotonic()

    def note_recovery(self, restored: Restored) -> None:
        """Take over the outcome of recovery."""
        self.folded += restored.moved
        for failure in restored.failures:
            self.obstacles.note(failure.table, failure.error)

    def start(self) -> None:
        """Start the background thread."""
        self._thread = threading.Thread(
            target=self._run, name="tique-checkpointer", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop the background thread and wait for it."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def close(self) -> None:
        """Close the checkpointer's session."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def notice(self) -> None:
        """Wake the thread if some table has too many cached rows."""
        if self._automatic and not self._wake.is_set() and self._is_over():
            self._wake.set()

    def _is_over(self) -> bool:
        stable = None
        enough = self._rows * self._engine.fold_patience
        for versions in self._catalog.all_versions():
            if versions.rows >= enough and not self.obstacles.is_resting(
                versions.table
            ):
                if stable is None:
                    stable = self._timeline.stable()
                if versions.oldest is not None and versions.oldest <= stable:
                    return True
        return False

    def _run(self) -> None:
        while not self._stopping:
            self._wake.wait(_TICK)
            self._wake.clear()
            try:
                self._housekeeping()
                if self._stopping or not self._automatic or self._timeline.is_lost:
                    continue
                age = self._age * self._engine.fold_patience
                late = time.monotonic() - self._due_since >= age
                if late or self._is_over():
                    # A connection that is abandoned in the midst of DDL holds the lock
                    # until the housekeeping closes it.
                    self.checkpoint(patience=_TICK)
            except Exception as error:
                # The versions stay where they are; the next round tries again.
                self.last_error = f"{type(error).__name__}: {error}"
                # The frames and not the exception, whose message may have values (P11).
                frames = "".join(traceback.format_tb(error.__traceback__))
                logger.error(
                    "checkpoint failed (%s), will be tried again; the status has the "
                    "message\n%s",
                    family(error),
                    frames,
                    extra=fields("checkpoint_failed", error=family(error)),
                )

    def checkpoint(self, *, thorough: bool = False, patience: float = -1) -> int:
        """Fold stable versions, unless another process does; return their number.

        If ``patience`` (in seconds) is not negative, it waits no longer for another
        checkpoint of this process, or for a transaction with DDL.

        Tables that could not be folded a moment ago are left out unless ``thorough``;
        an error that keeps a table from being folded is noted and not raised.
        """

        def attempt() -> int:
            if not self.lock.acquire(timeout=patience):
                return 0
            try:
                with self._timeline.checkpointing() as is_mine:
                    if is_mine:
                        return self._round(thorough=thorough)
                    self._due_since = time.monotonic()
                    return 0
            finally:
                self.lock.release()

        return _attempted(attempt)

    def checkpoint_now(self, timeout: float = _PATIENCE) -> int:
        """Fold all versions that are stable now; return their number.

        The engine's own checkpoint runs too, even if its log is short. Versions that
        other processes fold meanwhile need not be folded, and are not counted.

        Raises
        ------
        OperationalError
            Another checkpoint has not ended in time (SQLSTATE 55P03).
        EngineError
            A table could not be folded; the others were.
        """
        self._timeline.advance()
        stable = self._timeline.stable()

        def is_folded() -> bool:
            return not any(
                versions.oldest is not None and versions.oldest <= stable
                for versions in self._catalog.all_versions()
            )

        def attempt() -> int:
            with self._alone(timeout, unless=is_folded) as is_mine:
                return self._round(thorough=True, is_asked=True) if is_mine else 0

        moved = _attempted(attempt)
        for versions in self._catalog.all_versions():
            error = self.obstacles.error(versions.table)
            if error is not None:
                raise _named(versions.table, error) from error
        return moved

    @contextmanager
    def paused(self, timeout: float) -> Iterator[None]:
        """Keep all threads and processes from folding (for DDL and detaching)."""
        with self._alone(timeout, unless=lambda: False), self._uncommitted.suspended():
            yield

    def fold_all_stable(self) -> None:
        """Fold all stable versions that can be, while the rounds are :meth:`paused`."""
        self._timeline.advance()
        stable = self._timeline.stable()
        for versions in self._catalog.all_versions():
            if not self.obstacles.is_resting(versions.table):
                self._fold_or_note(versions, stable, is_told=False)

    def fold_stable(self, versions: TableVersions) -> None:
        """Fold a table's stable versions while the rounds are :meth:`paused`.

        Raises
        ------
        EngineError
            They could not be folded.
        """
        self._fold(versions, self._timeline.stable())

    @contextmanager
    def _alone(self, timeout: float, unless: Callable[[], bool]) -> Iterator[bool]:
        """Keep others from folding; yield False if ``unless`` holds before that."""
        deadline = time.monotonic() + timeout
        if self.lock.acquire(timeout=timeout):
            try:
                while time.monotonic() < deadline:
                    with self._timeline.checkpointing() as is_mine:
                        if is_mine or unless():
                            yield is_mine
                            return
            finally:
                self.lock.release()
        raise errors.OperationalError(
            f"a checkpoint, or a transaction with DDL, has been running for {timeout:g} s; "
            "try again",
            sqlstate="55P03",
        )

    def _round(self, *, thorough: bool = False, is_asked: bool = False) -> int:
        began = time.perf_counter()
        stable = self._timeline.stable()
        moved = self._fold_tables(stable, thorough=thorough, is_asked=is_asked)
        tables = self._catalog.all_versions()
        if not self._catalog.long_writers:
            for versions in tables:
                versions.forget_keys()
        session = self._usable_session()
        engine = self._engine
        is_late = time.monotonic() - self._pruned >= _PRUNE_INTERVAL
        if moved or thorough or is_late:
            # A table that cannot be folded is brought back from the log, which keeps
            # its commits.
            until = min((each.prunable(stable) for each in tables), default=stable)
            every = [versions.table for versions in tables]
            retention = max(self._retention, self._past.kept(every))
            engine.prune_log(session, until, retention)
            if thorough or is_late:
                self._past.prune(session, every)
                self._pruned = time.monotonic()
        try:
            if moved or thorough or is_late:
                with self._uncommitted.suspended():
                    engine.compact(session, force=is_asked)
        except EngineError as error:
            # Other engine transactions may be in the way; the log only grows.
            logger.debug(
                "the engine's own checkpoint was put off (%s)",
                family(error),
                extra=fields("engine_checkpoint_put_off", error=family(error)),
            )
        self.rounds += 1
        self.folded += moved
        self.last_round = time.time()
        failed = [(v.table, self.obstacles.reason(v.table)) for v in tables]
        reasons = [f"{table.qualified_name}: {why}" for table, why in failed if why]
        self.last_error = "; ".join(reasons) or None
        self._due_since = time.monotonic()
        logger.debug(
            "a checkpoint folded %d versions",
            moved,
            extra=fields(
                "checkpoint",
                versions=moved,
                seconds=time.perf_counter() - began,
                failed_tables=len(reasons),
            ),
        )
        observer = _observer.observer
        if observer is not None:
            observer.folded(self._engine.capabilities.dialect, moved, began)
        return moved

    def _fold_tables(self, stable: int, *, thorough: bool, is_asked: bool) -> int:
        """Fold the stable versions of all tables; return their number."""
        return sum(
            self._fold_or_note(versions, stable, is_told=is_asked)
            for versions in self._catalog.all_versions()
            if thorough or not self.obstacles.is_resting(versions.table)
        )

    def _usable_session(self) -> Session:
        if self._session is None or self._session.is_lost:
            self._session = self._engine.session()
        return self._session

    def _fold_or_note(
        self, versions: TableVersions, stable: int, *, is_told: bool
    ) -> int:
        """Fold a table's stable versions; if that fails, note why."""
        session = self._usable_session()
        try:
            moved = self._fold(versions, stable)
        except (FoldedMeanwhileError, FencedError, errors.Error):
            raise
        except Exception as error:
            self.obstacles.note(versions.table, error, is_told=is_told)
            # Its state is not known: the next table gets a new one.
            self._session = None
            with suppress(EngineError):
                session.close()
            return 0
        self.obstacles.clear(versions.table)
        return moved

    def _fold(self, versions: TableVersions, stable: int) -> int:
        """Fold a table's stable versions, from memory if the index has all of them."""
        table = versions.table
        engine = self._engine
        session = self._usable_session()
        if versions.is_behind:
            bring_back(engine, session, table)
            versions.restore(engine.cached_commits(session, table))
        before = versions.rows
        if versions.oldest is None or versions.oldest > stable:
            return 0
        with self._uncommitted.suspended():
            if versions.is_fold_open and engine.shared is None:
                self._settle(versions)
            self._fold_batches(versions, stable)
        return max(0, before - versions.rows)

    def _settle(self, versions: TableVersions) -> None:
        """Note a fold that was interrupted when the engine had committed it.

        Nothing that it moved is moved, or leaves an image, again.
        """
        table, session = versions.table, self._usable_session()
        done = self._engine.folded_until(session, table)
        if done > versions.folded_until:
            with versions.no_draining():
                # What was drained since has come too late.
                self._engine.store(session, table, {}, done)
                versions.folded(done, self._catalog.oldest_writer())

    def _is_known(self, table: Table) -> bool:
        """Whether a fold of a table may be made of what memory has."""
        return (
            (table.history is None or self._engine.capabilities.keeps_known_images)
            and not table.is_keyless
            and self._engine.folds_rows(table)
            and self._catalog.buffers(table)
        )

    def _fold_batches(self, versions: TableVersions, stable: int) -> None:
        session = self._usable_session()
        from_memory = self._is_known(versions.table)
        while versions.oldest is not None and versions.oldest <= stable:
            until = versions.batch_end(stable, _BATCH_ROWS)
            if from_memory and versions.is_complete:
                with versions.no_draining():
                    try:
                        self._move(versions, until)
                    except UnstoredRowError:
                        # The fold by SQL sets it aside.
                        versions.forget_storage()
                        from_memory = False
                        continue
                    except BaseException:
                        versions.forget_storage()
                        raise
                    versions.folded(until, self._catalog.oldest_writer())
            else:
                versions.drain(session)
                self._move(versions, until, from_memory=False)
                # A reader's drain that is under way must be known to be.
                with versions.no_draining():
                    versions.folded(until, self._catalog.oldest_writer())

    def _move(
        self, versions: TableVersions, until: int, *, from_memory: bool = True
    ) -> None:
        """Move a table's versions up to a cts to storage, if they are there that memory has.

        Otherwise the cache table has all of them.
        """
        table, engine, session = versions.table, self._engine, self._usable_session()
        since = versions.folded_until if engine.shared is not None else None
        versions.is_fold_open = True
        if not from_memory:
            appended, columns = versions.is_appended, versions.columns_set
            engine.fold(
                *(session, table, until),
                since=since,
                appended=appended,
                columns_set=columns,
            )
            return
        rows, new = versions.changes(until)
        images = None
        if table.history is not None:
            images = versions.images(session, until, new)
        engine.store(session, table, rows, until, new, since=since, images=images)


def _named(table: Table, error: Exception) -> EngineError:
    """The same error, with the table's name."""
    message = f"table {table.qualified_name} cannot be folded: {error}"
    if isinstance(error, ConnectionLostError):
        return ConnectionLostError(error.kind, message, error.sqlstate)
    if isinstance(error, EngineError):
        return EngineError(error.kind, message, error.sqlstate)
    return EngineError(ErrorKind.INTERNAL, message)


def _attempted(attempt: Callable[[], int]) -> int:
    for _ in range(_ATTEMPTS - 1):
        # The server may still have run a statement that a killed process had sent.
        with suppress(FoldedMeanwhileError):
            return attempt()
    return attempt()
