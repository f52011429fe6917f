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
is lost, the next fold asks the engine first how far each table is folded, and drops what is there;
it writes the position, which is not lower, again.

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
    from collections.abc import Iterator

    from tique.timeline.replica import ReplicaTimeline
    from tique_rewriter.schema import Table

_LONGEST_AGE = 1.0
"""Seconds after which the source may forget what was published, at the most."""

_REFUSALS = frozenset(
    {
        *(ErrorKind.DATA, ErrorKind.UNIQUE, ErrorKind.NOT_NULL, ErrorKind.CHECK),
        *(ErrorKind.INTEGRITY, ErrorKind.UNSUPPORTED),
    }
)


class UnheldError(Exception):
    """A replica cannot hold a table, here or as the source has it; the message says why."""

    def __init__(self, table: Table, why: str) -> None:
        super().__init__(why)
        self.table = table


@contextmanager
def blaming(table: Table) -> Iterator[None]:
    """Raise UnheldError for errors that are about a row."""
    try:
        yield
    except (errors.DataError, EngineError) as error:
        # (A DataError: the source has no form for it.)
        if isinstance(error, EngineError) and not (
            error.kind in _REFUSALS or isinstance(error, UnstoredRowError)
        ):
            raise
        raise UnheldError(table, f"storage cannot take a row ({error})") from error


class ReplicaCheckpointer(Checkpointer):
    """Folds all tables of a replica at once, and soon; else as any."""

    _timeline: ReplicaTimeline

    def __init__(self, *parts: Any, age: float, **others: Any) -> None:
        super().__init__(*parts, age=min(age, _LONGEST_AGE), **others)

    @override
    def checkpoint(self, *, thorough: bool = False, patience: float = -1) -> int:
        state = self._timeline.state
        if state.applied <= state.durable:
            self._due_since = time.monotonic()
            return 0
        return super().checkpoint(thorough=thorough, patience=patience)

    def stop_table(self, number: int, why: str) -> None:
        """Drop a table of the replica, unless it is gone, with a note; no other round runs."""
        state, catalog = self._timeline.state, self._catalog
        table = catalog.by_id().get(number)
        if table is None:
            return

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
            catalog.reload(session)

    @override
    def _fold_tables(self, stable: int, *, thorough: bool, is_asked: bool) -> int:
        state = self._timeline.state
        with self._uncommitted.suspended(), state.timed("fold"):
            while stable > state.durable:
                try:
                    return persist(lambda: self._fold_all(stable))
                except UnheldError as refused:
                    self.stop_table(refused.table.id, str(refused))
        return 0

    def _fold_all(self, until: int) -> int:
        """Bring all versions up to a cts to storage, with the position: all or nothing."""
        session = self._usable_session()
        for versions in self._catalog.all_versions():
            if versions.is_fold_open:
                self._settle(versions)
        tables = [
            versions
            for versions in self._catalog.all_versions()
            if versions.oldest is not None and versions.oldest <= until
        ]
        before = sum(versions.rows for versions in tables)
        for versions in tables:
            if not self._is_known(versions.table):
                with blaming(versions.table):
                    versions.drain(session)
        with ExitStack() as stack:
            for versions in tables:
                stack.enter_context(versions.no_draining())
            try:
                session.hold(self._engine.session)
                for versions in tables:
                    with blaming(versions.table):
                        is_known = self._is_known(versions.table)
                        self._move(versions, until, from_memory=is_known)
                with self._timeline.recording:
                    self._timeline.record_commits(session)
                    replicas.note(session, position=until)
                    session.let_go()
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
                versions.folded(until)
        self._timeline.state.durable = until
        return max(0, before - sum(versions.rows for versions in tables))
