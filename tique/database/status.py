"""The current state of a database, for operators: ``Connection.status()``."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING

from tique._translation import translating
from tique.database.metrics import exposition
from tique_backends.engine import FORMAT_VERSION
from tique_backends.errors import EngineError

if TYPE_CHECKING:
    from tique.commit.figures import CommitFigures
    from tique.commit.hot_keys import HotKey
    from tique.database.database import Database
    from tique.store.policy import CacheInfo
    from tique.timeline.replica import ReplicationStatus


@dataclass(frozen=True)
class TableStatus:
    """A table under tique's management.

    Attributes
    ----------
    name : str
        ``schema.table``.
    cached_rows : int
        Recent versions that no checkpoint has folded into storage yet.
    tombstones : int
        How many of them are deletions; after a bulk write at most so many.
    obstacle : str or None
        Why the table could not be folded the last time that this process tried; None
        if it could.
    """

    name: str
    cached_rows: int
    tombstones: int
    obstacle: str | None


@dataclass(frozen=True)
class UnmanagedTable:
    """A table that tique does not manage.

    Attributes
    ----------
    name : str
        ``schema.table``.
    obstacle : str or None
        Why it cannot be adopted; None if it can.
    """

    name: str
    obstacle: str | None


@dataclass(frozen=True)
class TransactionStatus:
    """A transaction that is open now.

    Attributes
    ----------
    txid : int
        Its id.
    sts : int
        The timestamp it reads at.
    age : float
        Seconds since it took its snapshot.
    connection : int or None
        The number of its connection (``Connection.info.number``); None if the
        transaction ended while the status was taken.
    thread : str or None
        The name of the thread that began it; None likewise.
    is_held : bool
        Whether the engine keeps its snapshot, so that folds do not wait for it.
    obstacle : str or None
        Why the engine does not, though the snapshot is long; None if it need not.
    """

    txid: int
    sts: int
    age: float
    connection: int | None
    thread: str | None
    is_held: bool = False
    obstacle: str | None = None


@dataclass(frozen=True)
class SetAsideStatus:
    """A part of a commit that cannot be applied, and is ignored.

    Attributes
    ----------
    cts : int
        The commit's timestamp.
    table : str or None
        The table of the versions: ``schema.table``, or the number of a table that is
        gone; None: all of the commit.
    reason : str
        The reason why they cannot be applied.
    """

    cts: int
    table: str | None
    reason: str


@dataclass(frozen=True)
class CheckpointStatus:
    """The checkpointer's work since the database was opened.

    Attributes
    ----------
    mode : str
        ``"auto"`` or ``"manual"``.
    rounds : int
        Finished rounds.
    folded_rows : int
        Versions that left the cache tables.
    last : datetime or None
        When the last round ended (UTC); None before the first one.
    last_error : str or None
        Why the last attempt failed, or which tables it could not fold; None after a
        round that did not fail and folded all.
    lag : int
        How many timestamps storage is behind: those from the oldest version that is not
        folded up to sts; 0 if all is folded.
    """

    mode: str
    rounds: int
    folded_rows: int
    last: datetime | None
    last_error: str | None
    lag: int


@dataclass(frozen=True)
class Status:
    """One open database.

    Attributes
    ----------
    database : str
        The database's file.
    format_version : int
        The version of tique's schema in it.
    sequencer : str
        ``"server"`` if processes share one there, with its form in brackets where
        the engine has several; ``"c"`` or ``"python"``: this process's own.
    processes : int
        How many processes use the database.
    certifier : str
        ``"memory"`` or ``"query"``.
    sts : int
        The timestamp that a transaction reads at if it begins now.
    cts : int
        The last commit timestamp that was handed out.
    stable : int
        λ: versions committed up to here may be folded into storage.
    transactions : tuple of TransactionStatus
        This process's open transactions, the oldest snapshot first.
    tables : tuple of TableStatus
        The managed tables, by name.
    unmanaged : tuple of UnmanagedTable
        The other tables, by name.
    set_aside : tuple of SetAsideStatus
        Log entries of other processes that cannot be applied, by timestamp.
    checkpoint : CheckpointStatus
        The checkpointer's work.
    caches : tuple of CacheInfo
        This process's caches of the storage tables, with their sizes, hits, misses and
        evictions: the same as ``Connection.info.caches``.
    hot_keys : tuple of HotKey
        Keys on which this process's transactions met others, the hottest first.
    commits : CommitFigures
        This process's commits, and how long the phases of its group commits took.
    replica : ReplicationStatus or None
        What the database is a replica of, and how far it has followed that; None if it is
        none.
    """

    database: str
    format_version: int
    sequencer: str
    processes: int
    certifier: str
    sts: int
    cts: int
    stable: int
    transactions: tuple[TransactionStatus, ...]
    tables: tuple[TableStatus, ...]
    unmanaged: tuple[UnmanagedTable, ...]
    set_aside: tuple[SetAsideStatus, ...]
    checkpoint: CheckpointStatus
    caches: tuple[CacheInfo, ...]
    hot_keys: tuple[HotKey, ...]
    commits: CommitFigures
    replica: ReplicationStatus | None = None

    def prometheus(self) -> str:
        """The same as Prometheus reads it, for an application's own ``/metrics``."""
        return exposition(self)


def status(database: Database, *, asks_engine: bool = True) -> Status:
    """Return the state of an open database, without stopping any other work.

    Parameters
    ----------
    database
        The database.
    asks_engine
        Whether unmanaged tables and entries that were set aside are told; the engine has
        to be asked for them. (The shared sequencer is asked for its position anyhow.)

    Raises
    ------
    OperationalError
        If the engine cannot be asked for its tables.
    """
    with translating():
        position = database.timeline.position()
    return Status(
        database=database.name,
        # A database of any other format is not opened.
        format_version=FORMAT_VERSION,
        sequencer=_sequencer(database),
        processes=position.clients,
        certifier=database.certifier.name,
        sts=position.sts,
        cts=position.cts,
        stable=position.stable,
        transactions=_transactions(database),
        tables=_managed(database),
        unmanaged=_unmanaged(database) if asks_engine else (),
        set_aside=_set_aside(database) if asks_engine else (),
        checkpoint=_checkpoint(database, position.sts),
        caches=database.catalog.caches(),
        hot_keys=database.hot_keys.hottest(),
        commits=database.commits.figures(),
        replica=None if database.replica is None else database.replica.status(),
    )


def _sequencer(database: Database) -> str:
    shared = database.engine.shared
    if shared is None:
        return database.sequencer.kind
    return "server" if shared.form is None else f"server ({shared.form})"


def _transactions(database: Database) -> tuple[TransactionStatus, ...]:
    now, ours = time.monotonic(), database.transactions
    active = [(each.txid, each.sts, each.age) for each in database.sequencer.active()]
    known = {txid for txid, *_ in active}
    active += [
        (txid, each.sts, now - each.began)
        for txid, each in list(ours.items())
        if each.is_held and txid not in known
    ]
    found = []
    for txid, sts, age in sorted(active, key=itemgetter(1, 0)):
        transaction = ours.get(txid)
        if transaction is None:
            found.append(TransactionStatus(txid, sts, age, None, None))
            continue
        number, thread = transaction.holder or (None, None)
        found.append(
            TransactionStatus(
                txid,
                sts,
                age,
                number,
                thread,
                transaction.is_held,
                transaction.obstacle,
            )
        )
    return tuple(found)


def _managed(database: Database) -> tuple[TableStatus, ...]:
    obstacles = database.checkpointer.obstacles
    found = [
        TableStatus(
            versions.table.qualified_name,
            versions.rows,
            versions.tombstones,
            obstacles.reason(versions.table),
        )
        for versions in database.catalog.all_versions()
    ]
    return tuple(sorted(found, key=lambda table: table.name))


def _unmanaged(database: Database) -> tuple[UnmanagedTable, ...]:
    engine = database.engine
    found = []
    with translating(), closing(engine.session()) as session:
        for schema, name in engine.user_tables(session):
            if database.catalog.named(schema, name) is None:
                obstacle = None
                try:
                    table = engine.describe(session, schema, name)
                    engine.check_definition(session, table)
                except EngineError as error:
                    obstacle = str(error)
                found.append(UnmanagedTable(f"{schema}.{name}", obstacle))
    return tuple(sorted(found, key=lambda table: table.name))


def _set_aside(database: Database) -> tuple[SetAsideStatus, ...]:
    if database.engine.shared is None:
        return ()
    names = {
        number: table.qualified_name
        for number, table in database.catalog.by_id().items()
    }
    with translating():
        found = database.engine.shared.set_aside()
    return tuple(
        SetAsideStatus(
            part.cts,
            None
            if part.table_id is None
            else names.get(part.table_id, f"{part.table_id}"),
            part.reason,
        )
        for part in found
    )


def _checkpoint(database: Database, sts: int) -> CheckpointStatus:
    checkpointer = database.checkpointer
    ended = checkpointer.last_round
    oldest = [versions.oldest for versions in database.catalog.all_versions()]
    first = min((cts for cts in oldest if cts is not None), default=sts + 1)
    return CheckpointStatus(
        mode=database.settings.checkpoint,
        rounds=checkpointer.rounds,
        folded_rows=checkpointer.folded,
        last=None if ended is None else datetime.fromtimestamp(ended, UTC),
        last_error=checkpointer.last_error,
        lag=max(0, sts + 1 - first),
    )
