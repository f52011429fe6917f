"""Snapshots that have become long are handed over to the engine, so that λ passes them.

The checkpointer's thread looks at the process's open transactions a few times a second. One whose
snapshot is older than ``long_snapshot``, and that keeps λ back because something was committed since,
is *held* from then on (:mod:`tique.query.transaction.held`), or is told to be.

Argument
--------
*A statement under way* has the connection's lock, for which the thread does not wait: it marks the
transaction, and the connection's own thread hands it over before its next statement. So a
statement is planned and run on one side of the handover. One that runs for minutes keeps λ
back until it ends. What takes long is done before the lock is taken: a session is opened, and
versions are drained; both are of no harm if the transaction ends meanwhile.

*An idle transaction* is handed over by the thread, under the lock, while its application is
elsewhere. Its next statement finds it held.

*A result that is read slowly* is the session's last statement, which BEGIN would end. Its rows are read
into memory if they are few; else the snapshot stays short until they were read or given up. A
cursor WITH HOLD or SCROLL has its rows in memory; a named cursor's are in a session of their own, which
goes on reading; others are results as any.

*Savepoints* are numbers of statements and stay what they are. *Temporary tables* are the session's, and stay
its own.

*A transaction that has seen nothing yet*, as one that has only run DDL, takes a newer snapshot.

*READ COMMITTED* takes a new snapshot for each statement: an idle transaction that has not
written gets it now, and is not held. One that has written keeps λ at the first snapshot of its
writes, as its commit is certified from there on.

*Transactions with DDL* have their session in an engine transaction already, and folds are off
until they end: they stay. *A statement in autocommit* ends with its transaction.

*DDL by others* is refused for tables that the transaction has used, as before. Of a table that was
changed since, the transaction is told at its next use of it; on servers the engine's own locks make
DDL of another process wait, and fail, for a table that the engine transaction has read.

*An engine whose schema may not change meanwhile* (MonetDB) is handed none. There only reads of the past
are held, and DDL of this process is refused beside them.

*No free connection, a cancelled statement*: the snapshot stays short, the
status says why, and it is tried again some seconds later.

*A process that is stopped or dies* before the handover is what it ever was: its lease ends, and λ
goes on. After it only the engine's own cleaning waits for it, until the server notices. One that was
given up for dead (fenced) hands nothing over: its transactions are refused.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from tique import errors
from tique_backends.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tique.query.transaction.ddl_transaction import DDLTransaction
    from tique.store.catalog import ManagedCatalog
    from tique.timeline.local import Timeline
    from tique_backends.engine import Engine
    from tique_backends.session import Session
    from tique_udfs import Sequencer

_MOST_READ = 10_000
"""So many rows of a result are read ahead at the most."""
_REST = 5.0
"""Seconds until it is tried again."""


class LongSnapshots:
    """Hands a process's long snapshots over.

    Parameters
    ----------
    engine, catalog, timeline, sequencer
        Parts of the database.
    transactions
        The open transactions, by txid.
    age
        The seconds after which a snapshot is long; None: none ever is.
    """

    def __init__(
        self,
        engine: Engine,
        catalog: ManagedCatalog,
        timeline: Timeline,
        sequencer: Sequencer,
        transactions: Mapping[int, DDLTransaction],
        age: float | None,
    ) -> None:
        self._engine = engine
        self._catalog = catalog
        self._timeline = timeline
        self._sequencer = sequencer
        self._transactions = transactions
        beside = engine.capabilities.defines_beside_snapshots
        self._age = age if beside else None

    def tend(self) -> None:
        """Hand over what has become long, without waiting for a statement."""
        if self._age is None or self._timeline.is_lost:
            return
        latest = time.monotonic() - self._age
        for transaction in list(self._transactions.values()):
            if transaction.began <= latest and self._is_in_the_way(transaction):
                self._tend(transaction)

    def _is_in_the_way(self, transaction: DDLTransaction) -> bool:
        """Whether λ waits for its snapshot, and the engine can keep it."""
        return (
            not transaction.is_held
            and transaction.sts < self._sequencer.sts()
            and (transaction.has_one_snapshot or not transaction.has_writes)
            and not transaction.is_single
            and transaction.planned_at is None
            and transaction.migration is None
            and not transaction.has_failed
        )

    def _tend(self, transaction: DDLTransaction) -> None:
        lock = transaction.lock
        if time.monotonic() < transaction.rests_until:
            return
        if not lock.acquire(blocking=False):
            transaction.is_long = True
            return
        lock.release()
        aside: Session | None = None
        try:
            if transaction.has_one_snapshot:
                aside = self._engine.session()
                for versions in self._catalog.all_versions():
                    versions.drain(aside, transaction.sts)
        except (EngineError, errors.Error) as error:
            _note(transaction, str(error))
        else:
            if lock.acquire(blocking=False):
                try:
                    self.hand_over(transaction, aside)
                finally:
                    lock.release()
        if aside is not None and (
            transaction.held is None or transaction.held.aside is not aside
        ):
            with suppress(EngineError):
                aside.close()

    def hand_over(
        self, transaction: DDLTransaction, aside: Session | None = None
    ) -> None:
        """Hand a transaction's snapshot over, if it is in the way; or note why not.

        The connection's lock is held. ``aside`` is a session for the transaction.
        """
        transaction.is_long = False
        is_open = self._transactions.get(transaction.txid) is transaction
        if not is_open or not self._is_in_the_way(transaction):
            return
        try:
            if not transaction.has_one_snapshot:
                transaction.refresh()
            elif transaction.renew():
                # Nothing was seen of it.
                return
            elif transaction.session.read_ahead(_MOST_READ):
                transaction.hold(aside)
            else:
                _note(transaction, "a large result of it is being read")
        except (EngineError, errors.Error) as error:
            _note(transaction, str(error))


def _note(transaction: DDLTransaction, obstacle: str) -> None:
    transaction.obstacle = obstacle
    transaction.rests_until = time.monotonic() + _REST
