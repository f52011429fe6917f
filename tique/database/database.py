"""One open database, shared by all of a process's connections to it.

Connections to the same file share one engine instance, sequencer, committer and
checkpointer (an embedded engine lets one process in). The first connection opens
the database, runs recovery and starts the checkpointer; the last one to close folds all
versions that can be folded and closes it.

*Fork.* Invariant: what a forked process inherits, it neither uses, nor ends, nor waits for. It
begins without databases, connections of its own to count, and locks that threads hold which
it does not have (:func:`_leave`, :mod:`tique.database.process`, and in the sequencer's
library); every call on an inherited connection but ``close`` is refused
(:meth:`tique.connection.execution.Execution.check_usable`), and its finalizers do nothing. A server's
database is opened anew, as by any other process; one in a file belongs to the parent. The
engines' own connections are left alone by :mod:`tique_backends.concurrency.inherited`.

``_registry_lock`` guards the registry and the connection counts; opening and
closing happen under it, so that no caller gets a database that is being closed.
"""

from __future__ import annotations

import atexit

# When it first makes an array pyarrow imports pandas, which imports this: too late if
# the last fold at the interpreter's exit is the first to make one.
import concurrent.futures.thread  # noqa: F401
import itertools
import logging
import os
import threading
from collections import deque
from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

from tique import errors
from tique._log import family, fields
from tique.checkpoint.checkpointer import Checkpointer
from tique.checkpoint.replica import ReplicaCheckpointer
from tique.checkpoint.uncommitted import UncommittedFold
from tique.commit.certification import Certifier, MemoryCertifier, QueryCertifier
from tique.commit.committer import Committer
from tique.commit.figures import CommitCounts
from tique.commit.hot_keys import HotKeys
from tique.commit.locks import Locks
from tique.commit.protocols.locking import Locking
from tique.commit.protocols.optimistic import Optimistic, Surroundings
from tique.commit.protocols.safety_net import SafetyNet
from tique.commit.server_locks import ServerLocks
from tique.commit.shared import AppendingCommitter, SteppedCommitter
from tique.commit.turns import Turns
from tique.database import process
from tique.database.long_snapshots import LongSnapshots
from tique.database.settings import Settings
from tique.database.url import DatabaseURL, parse_url
from tique.history.pruning import Pruning
from tique.history.retention import Retention
from tique.query.define.altering import Alterations
from tique.query.define.ddl import DDL
from tique.query.define.history import set_history
from tique.query.define.schema_changes import SchemaChanges
from tique.store.catalog import ManagedCatalog
from tique.timeline.ids import TransactionIds
from tique.timeline.local import Timeline
from tique.timeline.recovery import TXIDS_PER_EPOCH, prepare
from tique.timeline.replica import ReplicaTimeline
from tique.timeline.shared import SharedTimeline
from tique_backends import registry
from tique_backends.catalog import replicas
from tique_backends.concurrency.queues import taken
from tique_backends.concurrency.undisturbed import undisturbed
from tique_backends.errors import EngineError
from tique_backends.sharing import AppendingSequencer, SteppedSequencer
from tique_rewriter import PARAMSTYLES, Rewriter
from tique_rewriter.scope.catalog import SearchPath
from tique_udfs import open_sequencer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tique.query.define.migration import Migration
    from tique.query.transaction.ddl_transaction import DDLTransaction
    from tique.timeline.replica import ReplicaState
    from tique_backends.engine import Engine
    from tique_backends.session import Session

logger = logging.getLogger("tique.checkpoint")
_recovery = logging.getLogger("tique.recovery")

_registry: dict[str, Database] = {}
_registry_lock = threading.RLock()
_left: set[str] = set()
"""Databases that the process which this one was forked from has open."""
_is_left_half = False
"""Whether another thread of that process was opening or closing one."""
_numbers = itertools.count(1)

_PROTOCOLS = {"optimistic": Optimistic, "locking": Locking, "ssn": SafetyNet}

_LAST_CALL = 1.0
"""Seconds that a connection's last call has when the interpreter ends, and again as
many after it was told to stop."""

_PATHS = 256
"""Search paths whose plans are kept."""


class User(Protocol):
    """A connection, as its database knows it."""

    def seize(self, patience: float) -> None:
        """Let the call under way end, and no other begin."""

    def inherit(self) -> None:
        """Wait for no call of a thread of the process that this one was forked from."""


users: WeakSet[User] = WeakSet()
"""The connections of this process."""


class Database:
    """An open database and everything that its connections share."""

    def __init__(
        self, name: str, url: DatabaseURL, engine: Engine, settings: Settings
    ) -> None:
        self.name = name
        self.url = url
        self.engine = engine
        self.settings = settings
        self.connections = 0
        self.is_closed = False
        self.replica: ReplicaState | None = None
        """How far it is, if it is a replica."""
        self.is_new = False
        """Whether this process put tique's schema into it."""
        self.transactions: dict[int, DDLTransaction] = {}
        self.abandoned: deque[tuple[Session, Migration | None]] = deque()
        self._left: deque[Session] = deque()
        self.catalog = ManagedCatalog(engine, settings.policy())
        protocol = _PROTOCOLS[settings.concurrency]
        if engine.shared is not None and protocol.obstacle is not None:
            raise errors.NotSupportedError(
                f"concurrency={settings.concurrency!r} is not supported on a server, whose "
                f"databases several processes use: {protocol.obstacle}"
            )
        try:
            self.sequencer = open_sequencer(f"{name}#{next(_numbers)}")
        except ValueError as error:
            raise errors.InterfaceError(str(error)) from error
        query = QueryCertifier(self.catalog, engine.forms)
        self.certifier: Certifier = (
            query
            if settings.certifier == "query"
            else MemoryCertifier(self.catalog, query)
        )
        self.timeline = self._timeline()
        self.uncommitted = UncommittedFold(
            engine, self.catalog, self.timeline, settings.uncommitted_fold_rows
        )
        kind = Checkpointer if self.replica is None else ReplicaCheckpointer
        self.checkpointer = kind(
            engine,
            self.catalog,
            self.timeline,
            self.uncommitted,
            rows=settings.checkpoint_rows,
            age=settings.checkpoint_age,
            automatic=settings.checkpoint == "auto",
            retention=settings.retention,
            past=Pruning(engine),
            housekeeping=self._keep_house,
        )
        self.long_snapshots = LongSnapshots(
            engine,
            self.catalog,
            self.timeline,
            self.sequencer,
            self.transactions,
            settings.long_snapshot,
        )
        self.turns = Turns(lambda: self.timeline.has_company)
        self.locks = Locks(self._server_locks())
        self.hot_keys = HotKeys()
        self.commits = CommitCounts()
        self.protocol = protocol(
            Surroundings(
                self.catalog,
                engine.forms,
                self.sequencer,
                self.timeline,
                self.locks,
                self.transactions,
                self.commits,
                in_memory=self.certifier is not query,
            )
        )
        self._connection_numbers = itertools.count(1)
        self.committer = _committer_for(engine)(
            engine,
            self.catalog,
            self.sequencer,
            self.timeline,
            self.certifier,
            self.protocol,
            self.transactions,
            self.checkpointer.notice,
            self.hot_keys,
            self.commits,
        )
        changes = SchemaChanges(
            engine,
            self.catalog,
            self.timeline,
            self.committer,
            self.checkpointer,
            self.transactions,
            settings.history,
        )
        self.changes = changes
        self.ddl = DDL(changes)
        self.alterations = Alterations(changes)
        self.rewriters = {
            paramstyle: Rewriter(self.catalog, engine.capabilities.dialect, paramstyle)
            for paramstyle in PARAMSTYLES
        }
        """By parameter style; each has a plan cache that all connections share."""
        self._rewriters_along: dict[tuple[str, SearchPath], Rewriter] = {}

    def rewriter(
        self, catalog: ManagedCatalog, paramstyle: str, path: SearchPath | None
    ) -> Rewriter:
        """The rewriter of all connections that find the same tables by the same names."""
        is_shared = catalog is self.catalog
        if is_shared and path in (None, SearchPath(catalog.search_path)):
            return self.rewriters[paramstyle]
        dialect = self.engine.capabilities.dialect
        made = Rewriter(catalog, dialect, paramstyle, search_path=path)
        if not is_shared or path is None:
            return made
        known = self._rewriters_along
        if len(known) >= _PATHS:
            known.clear()
        return known.setdefault((paramstyle, path), made)

    def _timeline(self) -> Timeline:
        engine, settings = self.engine, self.settings
        parts = (engine, self.catalog, self.sequencer, TransactionIds(engine))
        if engine.shared is None:
            record = None
            if not registry.has_server(self.url.backend):
                with closing(engine.session()) as session:
                    record = replicas.read(session)
            if record is None:
                return Timeline(*parts)
            replica = ReplicaTimeline(*parts, record)
            self.replica = replica.state
            return replica
        timeline = SharedTimeline(*parts, lease=settings.lease)
        timeline.upkeep = self._keep_up
        timeline.on_loss = self._let_go
        return timeline

    def _server_locks(self) -> ServerLocks | None:
        shared = self.engine.shared
        if shared is None:
            return None

        def positions(table_id: int) -> tuple[int, ...]:
            return self.catalog.by_id()[table_id].primary_key

        return ServerLocks(
            shared.row_locks,
            positions,
            lambda: self.timeline.has_company,
            shared.others,
        )

    def start(self) -> None:
        """Recover, then serve."""
        with closing(self.engine.session()) as session:
            self.is_new = prepare(self.engine, session)
            restored = self.timeline.open(session)
        self.checkpointer.note_recovery(restored)
        if restored.moved or restored.failures:
            _recovery.info(
                "recovery of %s folded %d versions, and could not fold %d tables",
                self.name,
                restored.moved,
                len(restored.failures),
                extra=fields(
                    "recovered",
                    database=self.name,
                    versions=restored.moved,
                    failed_tables=len(restored.failures),
                ),
            )
        self.engine.attach_sequencer(self.sequencer)
        if self.settings.history is not None:
            set_history(
                self.changes, Retention.parse(self.settings.history), missing=True
            )
        self.checkpointer.start()

    def _keep_house(self) -> None:
        """Called by the checkpointer's thread at every tick."""
        self.release_abandoned()
        self.uncommitted.tend()
        self.long_snapshots.tend()

    def _keep_up(self) -> None:
        """Called at every heartbeat of a process that shares the database."""
        if self.committer.is_left:
            # The timestamps that an interrupted leader left would stop all processes
            # until this one commits again (P6).
            threading.Thread(target=self._settle_left, daemon=True).start()
        self.locks.release_abandoned()
        if self.locks.server is not None:
            self.locks.server.lapse()
        lock = self.checkpointer.lock
        if lock.acquire(blocking=False):
            try:
                self.timeline.note_folds()
            finally:
                lock.release()

    def _let_go(self) -> None:
        """Give up what other processes wait for, once they have given up this one."""
        if self.locks.server is not None:
            self.locks.server.close()

    def _settle_left(self) -> None:
        with suppress(EngineError, errors.Error):
            self.committer.settle_left()

    def make_ready(self) -> None:
        """Make it ready for a transaction that begins.

        Raises
        ------
        OperationalError
            The database was detached.
        """
        if self.ddl.is_detached:
            raise errors.OperationalError("the database was detached from tique")
        if self.committer.is_outdated:
            self.committer.settle()

    def number(self) -> int:
        """The number of a connection that is being made: 1 for the first."""
        return next(self._connection_numbers)

    def outcome(self, txid: int) -> str:
        """The outcome of a transaction (P4).

        Returns
        -------
        str
            ``"committed"``, ``"aborted"``; ``"active"``: it is open, or belongs to
            another process that lives and has not committed it; ``"unknown"``: it ran
            longer ago than commit records are kept, or was never begun.
        """
        if self.committer.is_in_doubt:
            # A transaction that begins after this answer sees a commit that it reports.
            self.committer.settle()
        with closing(self.engine.session()) as session:
            # Active transactions are asked for first: a commit after that is found.
            # (One whose snapshot the engine keeps is no longer the sequencer's.)
            active = txid in self.transactions or any(
                entry.txid == txid for entry in self.sequencer.active()
            )
            others, last_epoch = self.timeline.epochs()
            cts = self.engine.find_commit(session, txid)
            if cts is not None:
                # The timestamp of a process that died may yet be fenced.
                self.timeline.wait(cts)
                cts = self.engine.find_commit(session, txid)
            if cts is not None:
                return "committed"
            if active or txid // TXIDS_PER_EPOCH in others:
                return "active"
            forgotten = self.engine.forgotten_until(session)
        is_ours = forgotten < txid < (last_epoch + 1) * TXIDS_PER_EPOCH
        return "aborted" if is_ours else "unknown"

    def abandon(self, session: Session, migration: Migration | None = None) -> None:
        """Take over what a garbage-collected connection had; take no lock."""
        self.abandoned.append((session, migration))

    def leave(self, session: Session) -> None:
        """Take over a session of a garbage-collected result; take no lock."""
        self._left.append(session)

    def release_abandoned(self) -> None:
        """Close abandoned sessions and count their connections out."""
        for session in taken(self._left):
            with suppress(EngineError):
                session.close()
        for session, migration in taken(self.abandoned):
            if migration is not None:
                migration.close()
            with suppress(EngineError):
                session.end_hold()
            with suppress(EngineError):
                session.close()
            release(self)

    def close(self) -> None:
        """Fold all versions that can be folded and close the engine."""
        self.is_closed = True
        self.checkpointer.stop()
        with ExitStack() as stack:
            for session in taken(self._left):
                stack.callback(session.close)
            stack.callback(self.sequencer.close)
            stack.callback(self.engine.close)
            stack.callback(self.timeline.close)
            stack.callback(self.committer.close)
            stack.callback(self.checkpointer.close)
            stack.callback(self.uncommitted.close)
            if self.settings.checkpoint == "auto" and not self.ddl.is_detached:
                try:
                    if self.timeline.is_current():
                        # A thread that is in the midst of DDL may not let go of it.
                        self.checkpointer.checkpoint(patience=_LAST_CALL)
                except EngineError as error:
                    # Nothing is lost: the next opening folds it.
                    logger.warning(
                        "the last checkpoint of %s failed (%s); the next opening will "
                        "fold what it left",
                        self.name,
                        family(error),
                        extra=fields(
                            "last_checkpoint_failed",
                            database=self.name,
                            error=family(error),
                            sqlstate=error.sqlstate,
                        ),
                    )


def _committer_for(engine: Engine) -> type[Committer]:
    if engine.shared is None:
        return Committer
    if isinstance(engine.shared, AppendingSequencer):
        return AppendingCommitter
    assert isinstance(engine.shared, SteppedSequencer)
    return SteppedCommitter


def opened() -> list[Database]:
    """The databases that this process has open; they may be closed at any time."""
    # A copy, which takes no lock: to open and close takes as long as it takes.
    return list(_registry.values())


def acquire(
    url: str | os.PathLike[str] | DatabaseURL, options: Mapping[str, object]
) -> Database:
    """Return the open database of that URL, opening it if need be.

    Parameters
    ----------
    url
        The database's URL.
    options
        Fields of :class:`Settings`.

    Raises
    ------
    InterfaceError
        If the URL or an option is not valid, or the database is open already
        with other settings.
    DatabaseLocked
        If another process has it open.
    """
    process.park_if_exiting()
    parsed = url if isinstance(url, DatabaseURL) else parse_url(url)
    try:
        settings = Settings(**options)  # type: ignore[arg-type]
    except TypeError as error:
        known = ", ".join(Settings.__dataclass_fields__)
        raise errors.InterfaceError(
            f"unknown option ({error}); there is: {known}"
        ) from None
    return _acquire_whole(lambda: _acquire(parsed, settings, is_default=not options))


def _acquire_whole(acquiring: Callable[[], Database]) -> Database:
    """Acquire a database, or count nothing: an engine is never left half open.

    A signal handler that raises in the midst of DuckDB's opening leaves an entry in its
    cache of instances for which the next opening waits for ever.
    """
    guard = threading.Lock()
    acquired: list[Database] = []
    is_given_up = False

    def work() -> None:
        database = acquiring()
        with guard:
            if not is_given_up:
                acquired.append(database)
                return
        release(database)

    try:
        undisturbed(work)
        return acquired[0]
    except BaseException:
        with guard:
            is_given_up = True
        if acquired:
            release(acquired[0])
        raise


def _acquire(parsed: DatabaseURL, settings: Settings, *, is_default: bool) -> Database:
    backend = registry.find(parsed.backend)
    location = backend.locate(parsed.path, parsed.options, parsed.server)
    is_left = location.identity in _left or _is_left_half
    if is_left and not registry.has_server(parsed.backend):
        raise errors.InterfaceError(
            f"{parsed.path} was open in the process that this one was forked from, and "
            "a file belongs to one process: make the first connection after the fork, "
            "in one process alone, or start workers by spawn",
            sqlstate="08003",
        )
    with _registry_lock:
        found = _registry.get(location.identity) if location.identity else None
        if found is not None and not found.timeline.is_current():
            # Its last connection closes it.
            del _registry[found.name]
            found = None
        if found is None:
            name = location.identity or f":memory:{next(_numbers)}"
            found = _open(name, parsed, backend.open_engine(location), settings)
            _registry[name] = found
        elif not is_default and found.settings != settings:
            raise errors.InterfaceError(
                f"{parsed.path} is open in this process with {found.settings}; "
                "all connections to a database share its settings"
            )
        found.connections += 1
        return found


def _open(name: str, url: DatabaseURL, engine: Engine, settings: Settings) -> Database:
    """Recover and start; if that fails, release the engine's file."""
    try:
        database = Database(name, url, engine, settings)
        try:
            database.start()
        except BaseException:
            database.checkpointer.stop()
            database.timeline.close()
            database.sequencer.close()
            raise
    except BaseException:
        engine.close()
        raise
    return database


def keep(database: Database) -> None:
    """Count a further connection in, of an open database."""
    with _registry_lock:
        database.connections += 1


def join(url: DatabaseURL) -> Database | None:
    """Count a connection in to the database of that URL, if this process has it open."""
    location = registry.find(url.backend).locate(url.path, url.options, url.server)
    with _registry_lock:
        found = _registry.get(location.identity) if location.identity else None
        if found is not None:
            found.connections += 1
        return found


def release(database: Database) -> None:
    """Count a connection out; the last one closes the database."""
    undisturbed(partial(_release, database))


def _release(database: Database) -> None:
    with _registry_lock:
        database.connections -= 1
        if database.connections == 0 and not database.is_closed:
            if _registry.get(database.name) is database:
                del _registry[database.name]
            database.close()


@atexit.register
def _close_all() -> None:
    """Close open databases when the interpreter ends.

    Daemon threads go on meanwhile, and may be in the middle of a commit. Each
    connection's lock is taken for good, which lets its call end and no other begin; a
    call that takes longer is interrupted. If it gets an error from that, its thread is
    parked (:func:`tique.database.process.park_if_exiting`).
    """
    process.is_exiting = True
    # Not under the lock: a checkpointer that this waits for may want it.
    with _registry_lock:
        databases = list(_registry.values())
        _registry.clear()
    for user in list(users):
        user.seize(_LAST_CALL)
    for database in databases:
        with suppress(EngineError):
            database.close()


def _leave() -> None:
    """Begin without databases in a process that was forked."""
    global _registry_lock, _is_left_half
    _is_left_half |= not _registry_lock.acquire(blocking=False)
    _registry_lock = threading.RLock()
    _left.update(_registry)
    _registry.clear()
    for user in users:
        user.inherit()
    users.clear()


os.register_at_fork(after_in_child=_leave)
