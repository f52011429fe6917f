"""The folds of a replica: all tables, and the position, in one engine transaction.

Argument
--------
*Position and rows are one (P4, P5).* A fold brings every version with cts ≤ λ to storage, of all
tables, and writes that position, in an engine transaction that is held until both are there. So
the file is the source's state at the position for a program that knows nothing of tique, and a
process that is killed at any instruction leaves it so. (But for copies of tables that are
newer: ``ready_at`` of :mod:`tique.timeline.replica`.)

*Memory after COMMIT.* No table is drained from before the fold reads its versions until memory has
dropped them. If the process is interrupted between COMMIT and that, or the engine's answer
is lost, the next fold asks the engine for its position first and drops what is there.

*One table stops no other (P4).* If storage cannot take a row, that table is dropped from the replica
with a note that says why, and the others are folded. Any other error leaves all as it was.

*Idle*: if nothing was published since the last fold nothing at all is done.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique import errors
from tique.checkpoint.checkpointer import Checkpointer
from tique_backends.catalog import replicas
from tique_backends.concurrency.retrying import persist
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.sharing import UnstoredRowError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tique.store.versions import TableVersions
    from tique.timeline.replica import ReplicaTimeline
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_LONGEST_AGE = 1.0
"""Seconds after which the source may forget what was published, at the most."""

_REFUSALS = frozenset(
    {
        *(ErrorKind.DATA, ErrorKind.UNIQUE, ErrorKind.NOT_NULL, ErrorKind.CHECK),
        *(ErrorKind.INTEGRITY, ErrorKind.UNSUPPORTED),
    }
)


class RefusedError(Exception):
    """Storage cannot take a row of a table."""

    def __init__(self, table: Table, error: Exception) -> None:
        super().__init__(f"storage cannot take a row ({error})")
        self.table = table


@contextmanager
def blaming(table: Table) -> Iterator[None]:
    """Raise RefusedError for errors that are about a row."""
    try:
        yield
    except errors.DataError as error:
        # The source has no form for it.
        raise RefusedError(table, error) from error
    except EngineError as error:
        if error.kind in _REFUSALS or isinstance(error, UnstoredRowError):
            raise RefusedError(table, error) from error
        raise


class ReplicaCheckpointer(Checkpointer):
    """Folds all tables of a replica at once, and soon; else as any."""

    _timeline: ReplicaTimeline

    def __init__(self, *parts: Any, age: float, **others: Any) -> None:
        super().__init__(*parts, age=min(age, _LONGEST_AGE), **others)
        self._is_open = False
        """Whether a fold has begun of which it is not known how it ended."""

    @override
    def checkpoint(self, *, thorough: bool = False, patience: float = -1) -> int:
        state = self._timeline.state
        if state.applied <= state.durable and not self._is_open:
            self._due_since = time.monotonic()
            return 0
        return super().checkpoint(thorough=thorough, patience=patience)

    def stop_table(self, table: Table, why: str) -> None:
        """Drop a table of the replica, with a note; rounds are kept off by the caller."""
        state = self._timeline.state

        def drop() -> None:
            numbers = {here: there for there, here in replicas.sources(session).items()}
            stop = replicas.Stop(numbers[table.id], why)
            replicas.remove(self._engine, session, table)
            stopped.update({**state.stopped, table.qualified_name: stop})
            replicas.note_stops(session, stopped)

        stopped: dict[str, replicas.Stop] = {}
        with closing(self._engine.session()) as session:
            session.transact(drop)
            state.stopped = stopped
            self._catalog.reload(session)

    @override
    def _fold_tables(self, stable: int, *, thorough: bool, is_asked: bool) -> int:
        began = time.perf_counter()
        state = self._timeline.state
        with self._uncommitted.suspended():
            if self._is_open:
                self._settle_position()
            while stable > state.durable:
                try:
                    moved = persist(lambda: self._attempt(stable))
                except RefusedError as refused:
                    self.stop_table(refused.table, str(refused))
                else:
                    state.durable = stable
                    state.seconds["fold"] += time.perf_counter() - began
                    return moved
        return 0

    def _settle_position(self) -> None:
        """Note a fold that was cut short when the engine had committed it."""
        session = self._usable_session()
        record = replicas.read(session)
        assert record is not None
        for versions in self._catalog.all_versions():
            if versions.folded_until < record.position:
                with versions.no_draining():
                    # What was drained since has come too late.
                    self._engine.store(session, versions.table, {}, record.position)
                    versions.folded(record.position)
        self._timeline.state.durable = record.position
        self._is_open = False

    def _attempt(self, stable: int) -> int:
        session = self._usable_session()
        tables = [
            versions
            for versions in self._catalog.all_versions()
            if versions.oldest is not None and versions.oldest <= stable
        ]
        before = sum(versions.rows for versions in tables)
        for versions in tables:
            if not self._is_known(versions.table):
                with blaming(versions.table):
                    versions.drain(session)
        with ExitStack() as stack:
            for versions in tables:
                stack.enter_context(versions.no_draining())
            self._is_open = True
            try:
                self._store(session, tables, stable)
            except BaseException:
                for versions in tables:
                    versions.forget_storage()
                # Its state is not known.
                self._session = None
                with suppress(EngineError):
                    session.end_hold()
                    session.close()
                raise
            for versions in tables:
                versions.folded(stable)
            self._is_open = False
        return max(0, before - sum(versions.rows for versions in tables))

    def _store(
        self, session: Session, tables: Sequence[TableVersions], until: int
    ) -> None:
        """Bring all versions up to a cts to storage, with the position: all or nothing."""
        session.hold(self._engine.session)
        for versions in tables:
            with blaming(versions.table):
                self._move(session, versions, until)
        with self._timeline.recording(session):
            replicas.note(session, position=until)
            session.let_go()

    def _move(self, session: Session, versions: TableVersions, until: int) -> None:
        table, engine = versions.table, self._engine
        if self._is_known(table):
            rows, new = versions.changes(until)
            images = None
            if table.history is not None:
                images = versions.images(session, until, new)
            engine.store(session, table, rows, until, new, images=images)
        else:
            appended, columns = versions.is_appended, versions.columns_set
            engine.fold(session, table, until, appended=appended, columns_set=columns)
