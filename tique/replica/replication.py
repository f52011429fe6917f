"""The replication of one source into one replica: the handle and its thread.

The thread asks the source what was committed, publishes that as one epoch
(:mod:`tique.timeline.replica`), and asks again when the epoch's time is over. Folds are those of
the replica's checkpointer (:mod:`tique.checkpoint.replica`), in its thread: the position
is durable with the rows, and the source is told of it afterwards, so that it never gives up a part of
its log that the replica needs.

Argument
--------
*A change of definitions* is seen in the log. Then a state of the source is held that is newer, all
commits up to it are read, the replica's tables are compared with the source's of that state, new ones are
copied, and the commits are published: everything is shown at once (:meth:`Replication._redefined`). What
is beyond that state comes with the next epoch. Another change may be among it: then all of it is done again.
At the start, and after the source was lost, it is taken for granted that there was one. The first copy is
the same, of a replica that has nothing, and so is a copy of all tables anew.

*If the process dies* the replica is what its last fold or copy left, and the next replication goes on
there. *If the source is lost* (a restart, a network) it is opened again, from what is published on; reads
go on meanwhile, and the status says why. *If the log was given up* (``keep``) all tables are copied
anew, and the status says so. Any other error ends the thread: ``failed``, with the error.

*Idle*: the source is asked, and nothing is done to the replica.
"""

from __future__ import annotations

import atexit
import math
import threading
import time
import uuid
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Self

from tique import errors
from tique._translation import translating
from tique.checkpoint.replica import ReplicaCheckpointer, UnheldError
from tique.database.database import acquire, release
from tique.database.url import parse_url, shown_url
from tique.history.retention import Retention
from tique.replica.copying import PATIENCE, Choice, bring
from tique.replica.source import Epoch, LogLostError, Source
from tique.timeline.replica import ReplicaTimeline
from tique_backends import registry
from tique_backends.catalog import replicas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from tique.database.database import Database
    from tique.database.url import DatabaseURL
    from tique.replica.columns import Copied
    from tique.replica.copying import Progress
    from tique.timeline.following import Published
    from tique.timeline.replica import ReplicationStatus

_NOTE_INTERVAL = 0.2
"""Seconds between two notes of a durable position in the source, at the least."""
_ALIVE_INTERVAL = 10.0
"""Seconds after which it is noted that the replica lives, at the most."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
"""Seconds until a source that was lost is opened again."""
_ATTEMPTS = 5
_LASTING = (errors.NotSupportedError, errors.InternalError, errors.InterfaceError)


class Replication:
    """A replication that runs until it is stopped; a context manager.

    :func:`tique.replicate` makes it.
    """

    def __init__(
        self, database: Database, choice: Choice, source: str, epoch: float, keep: float
    ) -> None:
        timeline, checkpointer = database.timeline, database.checkpointer
        assert isinstance(timeline, ReplicaTimeline)
        assert isinstance(checkpointer, ReplicaCheckpointer)
        self._database, self._checkpointer = database, checkpointer
        self._timeline, self._state = timeline, timeline.state
        self._choice, self._url = choice, source
        self._epoch, self._keep = epoch, keep
        self._source: Source | None = None
        self._tables: dict[int, Copied] = {}
        self._last = self._state.applied
        self._noted, self._noted_at = 0, -_ALIVE_INTERVAL
        self._stopping = threading.Event()
        self._ending = threading.Lock()
        self._has_left = False
        self._thread = threading.Thread(
            target=self._run, name="tique-replication", daemon=True
        )
        self._state.claim()

    def start(self) -> None:
        """Copy what has to be copied, then follow in a thread."""
        try:
            for left in reversed(range(_ATTEMPTS)):
                try:
                    self._begin()
                    break
                except errors.SerializationError:
                    # A table was dropped before it was copied.
                    if not left:
                        raise
                    self._lose()
        except BaseException:
            if self._source is not None and not self._state.applied:
                with suppress(errors.Error):
                    self._source.drop()
            self._leave("stopped")
            raise
        atexit.register(self.stop)
        self._thread.start()

    def stop(self) -> None:
        """Fold, note that in the source, and close both databases; idempotent."""
        self._stopping.set()
        self._thread.join()
        with self._ending:
            if self._has_left:
                return
            atexit.unregister(self.stop)
            state = self._state
            try:
                if not state.is_torn:
                    self.fold()
                if self._source is not None:
                    self._source.note_durable(state.durable)
            except errors.Error as error:
                state.error = str(error)
            self._leave("stopped" if state.is_followed else state.phase)

    def status(self) -> ReplicationStatus:
        """How it stands."""
        return self._state.status()

    def wait(self, cts: int, timeout: float) -> bool:
        """Wait so many seconds until a version of the source is published; whether it is."""
        return self._state.wait(cts, None, timeout)

    def fold(self) -> int:
        """Make durable what is published; return the position, which an old snapshot holds up."""
        with translating():
            self._checkpointer.checkpoint_now()
        return self._state.durable

    def __enter__(self) -> Self:
        """Enter a block at whose end the replication is stopped."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self.stop()

    def _leave(self, phase: str) -> None:
        """Close both databases."""
        self._has_left = True
        self._lose()
        self._state.let_go(phase)
        release(self._database)

    # The thread

    def _run(self) -> None:
        pause, state = _FIRST_PAUSE, self._state
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                with translating():
                    if self._source is None:
                        self._begin()
                    else:
                        self._follow(self._source)
                state.error, pause = None, _FIRST_PAUSE
                self._stopping.wait(max(0.0, began + self._epoch - time.monotonic()))
            except Exception as error:
                state.error = f"{type(error).__name__}: {error}"
                # Others may be of the moment: the source is lost, or was just changed.
                lasts = isinstance(error, _LASTING) or not isinstance(
                    error, errors.Error
                )
                self._lose()
                if state.is_torn or lasts:
                    state.let_go("failed")
                    return
                self._stopping.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _lose(self) -> None:
        """Close the source, which may not be there any more."""
        source, self._source = self._source, None
        if source is not None:
            self._last = source.last
            source.close()

    def _begin(self) -> None:
        """Open the source, and go on behind what is published."""
        state = self._state
        self._source = source = Source(self._url, state.slot, keep=self._keep)
        has_all = state.applied > 0
        if has_all:
            try:
                source.resume(state.applied, self._last)
            except LogLostError as error:
                state.notes.append(f"all tables were copied anew: {error}")
                has_all = False
        if not has_all:
            self._publish(self._redefined(source, None))
        # The first epoch defines, whatever was changed meanwhile.
        self._follow(source)

    def _follow(self, source: Source) -> None:
        with self._state.timed("ask"):
            epoch = source.poll()
        self._state.newest = epoch.sts
        if epoch.defines:
            epoch = self._redefined(source, epoch)
        self._publish(epoch)
        self._checkpointer.notice()
        self._note_durable(source)

    def _note_durable(self, source: Source) -> None:
        """Tell the source what is durable, now and then, and that the replica lives."""
        durable, now = self._state.durable, time.monotonic()
        has_moved = durable > self._noted
        wait = _NOTE_INTERVAL if has_moved else min(_ALIVE_INTERVAL, self._keep / 4)
        if now - self._noted_at >= wait:
            source.note_durable(durable)
            self._noted, self._noted_at = durable, now

    def _redefined(self, source: Source, epoch: Epoch | None) -> Epoch:
        """Give the replica the source's tables of a newer state; the epoch that ends with it.

        Without an epoch all tables are copied.
        """
        state, asked = self._state, time.monotonic()
        with source.snapshot() as snapshot:
            sts, is_anew = snapshot.sts, epoch is None
            if epoch is None:
                source.resume(sts)
                epoch = Epoch(sts, asked, (), defines=True)
            commits = [*epoch.commits, *source.poll(until=sts).commits]
            state.phase = "copying"
            try:
                with state.timed("copy"):
                    choice = self._choice
                    self._tables = bring(self._database, choice, snapshot, anew=is_anew)
            finally:
                state.phase = "following"
        return epoch._replace(sts=sts, commits=commits)

    def _publish(self, epoch: Epoch) -> None:
        with self._state.timed("publish"):
            held = [self._held(commit) for commit in epoch.commits]
            self._timeline.publish(held, epoch.sts, epoch.asked)

    def _held(self, commit: Published) -> Published:
        """A commit by the replica's numbers and values; what it cannot hold stops its table."""
        found, columns = {}, {}
        for number, writes in commit.writes.items():
            copied = self._tables.get(number)
            if copied is None or commit.cts <= copied.since:
                continue
            try:
                found[copied.number] = copied.writes(writes)
                if number in commit.columns_set:
                    columns[copied.number] = commit.columns_set[number]
            except UnheldError as error:
                del self._tables[number]
                with self._checkpointer.paused(PATIENCE):
                    self._checkpointer.stop_table(copied.number, str(error))
        return commit._replace(writes=found, columns_set=columns)


def replicate(
    source: str,
    target: str,
    *,
    tables: Sequence[str] | None = None,
    schemas: Mapping[str, str] | None = None,
    epoch: float = 0.015,
    keep: float = 86400.0,
    history: str | None = None,
    progress: Progress | None = None,
) -> Replication:
    """Replicate a database into a DuckDB file, from now on or from where it stopped.

    It returns when the tables are there; a thread follows the source's commits then.
    Connections of this process to the file read them.

    Parameters
    ----------
    source, target
        The URLs: ``postgresql://…`` or ``monetdb://…``, and ``duckdb:///replica.duckdb``. A file
        that is there must be a replica of this source, or have no tables.
    tables
        ``schema.table`` or ``table``, in the source; None: all that tique manages, and
        those that are created later. What is not named any more is dropped.
    schemas
        New names of schemas, by the source's.
    epoch, keep
        Seconds between two questions to the source, and for which it keeps its log for a
        replica that is silent.
    history
        The retention of copied tables (:func:`tique.set_history`); None: none.
    progress
        Called with a table's name, its rows that are copied, and about how many there are.

    Raises
    ------
    NotSupportedError
        No such source or target, or a table has columns that a replica cannot have.
    InterfaceError
        ``epoch`` or ``keep`` is no time.
    OperationalError
        The target is no replica of this source and not empty (SQLSTATE 55000), or is
        followed already (55006).
    ProgrammingError
        A table is not there (42P01).
    """
    for name, seconds in (("epoch", epoch), ("keep", keep)):
        if not 0 < seconds < math.inf:
            raise errors.InterfaceError(f"{name}={seconds!r} is no time in seconds")
    with translating():
        if history is not None:
            Retention.parse(history)
        choice = Choice(tables, dict(schemas or {}), history, progress)
        database = _opened(parse_url(target), shown_url(parse_url(source)))
        try:
            found = Replication(database, choice, source, epoch, keep)
        except BaseException:
            release(database)
            raise
        found.start()
        return found


def _opened(target: DatabaseURL, source: str) -> Database:
    """Open a replica of the source; make one of an empty file."""
    if registry.has_server(target.backend) or target.in_memory:
        raise errors.NotSupportedError(
            "a replica is a DuckDB file, such as duckdb:///replica.duckdb"
        )
    database = acquire(target, {})
    if database.replica is None:
        try:
            _make(database, source)
        finally:
            release(database)
        database = acquire(target, {})
    replica = database.replica
    if replica is None or replica.source != source:
        release(database)
        known = "no replica" if replica is None else f"a replica of {replica.source}"
        raise errors.OperationalError(
            f"{target.path} is {known}, and stays so: choose another file",
            sqlstate="55000",
        )
    return database


def _make(database: Database, source: str) -> None:
    """Make an empty database that no connection uses a replica."""
    engine, path = database.engine, database.url.path
    if database.connections > 1:
        raise errors.OperationalError(
            f"{path} is open in this process: close its connections", sqlstate="55006"
        )
    with closing(engine.session()) as session:
        if engine.user_tables(session) or engine.views(session):
            if database.is_new:
                # A refusal leaves no trace.
                database.ddl.detach()
            raise errors.OperationalError(
                f"{path} has tables, which no replica drops: choose another file",
                sqlstate="55000",
            )
        slot = f"replica-{uuid.uuid4().hex[:12]}"
        session.transact(lambda: replicas.create(session, source, slot))
