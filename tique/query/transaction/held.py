"""A transaction whose snapshot the engine keeps.

λ is the oldest snapshot that tique keeps by itself, and nothing newer is folded. So a snapshot
that stays for long is *handed over*: an engine transaction is begun on the connection's own
session and stays open, and every statement joins it. Storage and cache tables are in it what they were when
it began, whatever is folded, pruned or checkpointed afterwards. Nothing is copied.

Argument
--------
*Its rows are those of the snapshot (P1).* While the engine transaction begins, the snapshot is
still registered (λ ≤ sts), and every version with cts ≤ sts was drained before. So whichever
moment the engine takes for its own snapshot, storage has no version newer than sts there, and
storage and cache tables have all of the older ones. A statement reads the cache table up to sts, as
ever. The engine's snapshot may be fixed by the first statement that reads: so one is read
before the transaction leaves λ. What is known of a table's versions then stays true
(:class:`~tique.store.held.HeldVersions`); memory, which goes on with λ, is not asked.

*Its own writes* are on top, in buffers and staging tables of the same session, as ever. Temporary
tables are the engine's and part of its transaction: it ends by COMMIT, so that staged rows are there when
the transaction's own commit, in engine transactions of its own, reads them. Nothing else is
written in it, and what is to be seen of later commits is read by another session, which is
opened when it is needed (:attr:`~tique_backends.session.Session.aside`).

*A statement that fails* leaves no trace, and the snapshot stays, where the engine has
savepoints: its session sets one before each statement. Elsewhere the engine ends its
transaction with the error, and the snapshot is gone with it: the transaction refuses
everything but ROLLBACK (25P02), and COMMIT if it has written.

*DDL* needs a snapshot of now. At READ COMMITTED it has one, as every statement. Otherwise it is refused
(40001), also if the transaction has only read: what it has read must stay as it was (P1), and
one that has read nothing is not handed over.

*An engine whose schema may not change beside it* (MonetDB): DDL has the engine's lock ``defining`` from
before it looks for snapshots that are held until its end, and a snapshot is counted among these under
the lock, before its engine transaction begins. So one of the two sees the other, waits a moment, and is
refused (55006).

*If the process dies*, or is stopped, its connection and with it the engine transaction is the
engine's to end. No other transaction waits for it: λ has passed it.

*What storage has* (P1): a transaction may have the state in storage as its snapshot, where all tables are
folded together (a replica, :class:`HeldStorage`). Then nothing is drained, the engine's snapshot is taken
whatever it is, and the version that it has is read in it. It is no newer than the snapshot that was registered.

READ COMMITTED has a snapshot for each statement: a transaction is held for one of them only,
and stays registered meanwhile.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from typing_extensions import override

from tique import errors
from tique.store.held import HeldVersions
from tique_backends.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique.history.moments import Point
    from tique.query.transaction.transaction import Transaction
    from tique.store.versions import TableVersions
    from tique_backends.engine import Engine
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

Stored: TypeAlias = "Callable[[Session], int]"

PATIENCE = 2.0
"""Seconds that a snapshot and DDL wait for one another, where only one of them can be."""

_FIXING = 'SELECT id, folded FROM tique."tables"'
"""Read first, so that the engine transaction has its snapshot."""


class Held:
    """The engine transaction that keeps a transaction's snapshot.

    Parameters
    ----------
    transaction
        The transaction, whose snapshot is registered.

    Attributes
    ----------
    folded : dict
        Up to which timestamp each table is folded there, by the table's id.
    readable : set
        Tables, by id, and points of the past as of which these can be read there.
    """

    def __init__(self, transaction: Transaction) -> None:
        engine = transaction.engine
        self._session = session = transaction.session
        self._keepers = engine.held
        self._nests = engine.capabilities.nests_transactions
        self._versions: dict[int, HeldVersions] = {}
        self._is_lost = self._has_ended = False
        self.folded: dict[int, int] = {}
        self.readable: set[tuple[int, Point]] = set()
        try:
            self._prepare(transaction)
            self._expect_no_ddl(engine)
            session.hold_snapshot(engine.session)
            self._fix(transaction)
        except BaseException:
            # An engine transaction may have begun, and failed.
            self._keepers.discard(self)
            with suppress(EngineError):
                session.end_hold()
            raise

    def _prepare(self, transaction: Transaction) -> None:
        """Have all in the engine that the snapshot has."""
        session, sts = self._session, transaction.sts
        for versions in transaction.catalog.all_versions():
            if versions.is_behind:
                continue
            versions.drain(session, sts)
            self._versions[versions.table.id] = HeldVersions(versions, sts)
        transaction.timeline.record_commits(session)

    def _fix(self, transaction: Transaction) -> None:
        """Have the engine fix its snapshot."""
        self.folded = dict(self._session.execute(_FIXING).fetch_all())

    def _expect_no_ddl(self, engine: Engine) -> None:
        """Be seen by DDL that comes later, where that is not under way."""
        if not engine.defining.acquire(timeout=PATIENCE):
            raise errors.OperationalError(
                "a transaction of this process runs DDL, and the engine refuses that "
                "beside a snapshot; try again when it has ended",
                sqlstate="55006",
            )
        try:
            self._keepers.add(self)
        finally:
            engine.defining.release()

    def versions(self, table: Table, newest: TableVersions) -> TableVersions:
        """The versions of a table as the engine transaction sees them; ``newest`` now.

        Raises
        ------
        SerializationError
            The table was made or changed since it began.
        """
        if table.is_temporary:
            return newest
        try:
            return self._versions[table.id]
        except KeyError:
            raise errors.SerializationError(
                f"table {table.qualified_name} was made, or changed, after the snapshot of "
                "this transaction was handed to the engine; run that again",
                table=table.qualified_name,
            ) from None

    def is_kept(self) -> bool:
        """Whether the engine transaction goes on, as far as the engine says."""
        if not self._is_lost and (
            self._session.is_lost or not (self._nests or self._session.holds())
        ):
            self._is_lost = True
        return not self._is_lost

    def expect_kept(self) -> None:
        """Refuse to go on without the snapshot.

        Raises
        ------
        OperationalError
            The engine has ended its transaction (SQLSTATE 25P02).
        """
        if not self.is_kept():
            raise errors.OperationalError(
                "a statement of this transaction has failed, and the engine has ended the "
                "engine transaction that kept its snapshot: roll back all of it",
                sqlstate="25P02",
            )

    def end(self) -> None:
        """End the engine transaction; idempotent.

        Raises
        ------
        EngineError
            It could not be committed: what was staged in it may be gone.
        """
        if self._has_ended:
            return
        try:
            if self.is_kept():
                self._session.let_go()
        finally:
            # Also after a COMMIT that failed.
            with suppress(EngineError):
                self._session.end_hold()
            self._has_ended = True
            self._keepers.discard(self)


class HeldStorage(Held):
    """The same of what is in storage, which only reads, in as few statements as can be.

    Parameters
    ----------
    transaction
        The transaction, whose snapshot becomes that.
    stored
        Returns its version, in the engine transaction.
    """

    def __init__(self, transaction: Transaction, stored: Stored) -> None:
        self._stored = stored
        super().__init__(transaction)

    @override
    def _prepare(self, transaction: Transaction) -> None:
        """Nothing: storage is what it is."""

    @override
    def _fix(self, transaction: Transaction) -> None:
        transaction.sts = self._stored(self._session)

    @override
    def versions(self, table: Table, newest: TableVersions) -> TableVersions:
        known = self._versions
        if table.id not in known:
            # It has none, whatever there is by now.
            known[table.id] = HeldVersions(newest, 0)
        return known[table.id]

    @override
    def is_kept(self) -> bool:
        # Nothing was staged: what comes after a statement that failed fails by itself.
        return not self._session.is_lost
