"""Where a process stands in the order of commits: what its transactions begin with.

A database that this process has to itself is ordered by its own sequencer alone; for
one that it shares with other processes see :mod:`tique.timeline.shared`.
"""

from __future__ import annotations

import threading
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeVar

from tique.timeline.recovery import Restored, recover
from tique_backends.retrying import persist
from tique_backends.sharing import Position

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tique.store.catalog import ManagedCatalog
    from tique.timeline.ids import TransactionIds
    from tique_backends.base import Engine, Session
    from tique_udfs import Sequencer

_Outcome = TypeVar("_Outcome")


class Timeline:
    """The order of commits in a database that belongs to this process.

    Parameters
    ----------
    engine
        The database's engine.
    catalog
        Its managed tables.
    sequencer
        This process's own.
    ids
        This process's transaction ids.
    """

    is_shared: ClassVar[bool] = False
    """Whether others commit and define too: to begin is to learn of it."""

    def __init__(
        self,
        engine: Engine,
        catalog: ManagedCatalog,
        sequencer: Sequencer,
        ids: TransactionIds,
    ) -> None:
        self._engine = engine
        self._catalog = catalog
        self._sequencer = sequencer
        self._ids = ids
        self._renewing = threading.Lock()

    def open(self, session: Session) -> Restored:
        """Recover, and load the catalog; what recovery has folded, and could not."""
        self._ids.count_epoch(session)
        first = self._ids.current.start
        return recover(self._engine, self._catalog, self._sequencer, session, first)

    def catch_up(self) -> None:
        """Learn what other processes have committed."""

    def begin(self) -> tuple[int, int]:
        """Begin a transaction: its txid and its sts."""
        begun = self._sequencer.begin()
        while begun[0] not in self._ids.current:
            # Perhaps another thread has found them used up before.
            self._sequencer.end(begun[0])
            self._renew_txids(begun[0])
            begun = self._sequencer.begin()
        return begun

    def end(self, txid: int) -> None:
        """Take a transaction from the set of active snapshots."""
        self._sequencer.end(txid)

    def _renew_txids(self, txid: int) -> None:
        """Count another epoch if this id is behind those that the process has.

        Whoever dies here leaves an epoch of which nothing is used.
        """
        with self._renewing:
            if txid < self._ids.current.stop:
                return
            with closing(self._engine.session()) as session:
                persist(partial(self._count_epoch, session))
            self._sequencer.skip_txids(self._ids.current.start)

    def _count_epoch(self, session: Session) -> None:
        """Count an epoch for this process, durably."""
        self._ids.count_epoch(session)

    def refresh(self, txid: int) -> int:
        """Take a new snapshot for a transaction: its sts."""
        return self._sequencer.refresh(txid)

    @property
    def is_lost(self) -> bool:
        """Whether this process was given up; nothing can be done then."""
        return False

    def check(self) -> None:
        """Refuse what was read if it may not be the snapshot any more.

        Raises
        ------
        OperationalError
            The process was given up for dead meanwhile.
        """

    def position(self) -> Position:
        """Where the sequencer stands."""
        sequencer = self._sequencer
        # In this order λ ≤ sts ≤ cts holds in what is shown: none of them decreases.
        stable = sequencer.stable()
        sts = sequencer.sts()
        return Position(sts, sequencer.cts(), stable, 1)

    def stable(self) -> int:
        """λ, or less: what was committed up to here may be folded."""
        return self._sequencer.stable()

    def note_folds(self) -> None:
        """Forget versions that another process has folded; no fold runs meanwhile."""

    def advance(self) -> None:
        """Let λ pass what no snapshot of this process needs any more."""

    @contextmanager
    def checkpointing(self) -> Iterator[bool]:
        """Let no other process fold; whether that is so."""
        yield True

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let no other process commit, for a change of definitions."""
        yield

    def expect_owner(self) -> None:
        """Refuse a change of definitions that this process may not make."""

    def define(self, session: Session, body: Callable[[], _Outcome]) -> _Outcome:
        """Change definitions in an engine transaction, alone."""
        return session.transact(body)

    def commit(self, session: Session) -> None:
        """Commit an engine transaction with versions in it."""
        session.commit()

    def expect_alone(self, session: Session) -> None:
        """Refuse, in an engine transaction, if other processes use the database."""

    def is_current(self) -> bool:
        """Whether what this process knows of the database still holds."""
        return True

    def wait(self, cts: int) -> None:
        """Wait until what became of another process's timestamp is settled."""

    def epochs(self) -> tuple[set[int], int]:
        """The epochs of other processes that may have transactions open; the last."""
        return set(), max(self._ids.epochs)

    def close(self) -> None:
        """Leave."""
