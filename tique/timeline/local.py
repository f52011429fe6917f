"""A process's position in the order of commits, where its transactions begin.

In a database that this process has to itself its own sequencer alone orders commits;
for one that it shares with other processes see :mod:`tique.timeline.shared`.
"""

from __future__ import annotations

import threading
import time
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeVar

from tique.timeline.recovery import Restored, recover
from tique_backends.concurrency.retrying import persist
from tique_backends.sharing import Position

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from tique.store.catalog import ManagedCatalog
    from tique.store.rows import Key
    from tique.timeline.ids import TransactionIds
    from tique_backends.engine import Engine
    from tique_backends.session import Session
    from tique_rewriter.schema import Table
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
    """Whether other processes commit and run DDL too; begin() follows them then."""
    is_read_only: ClassVar[bool] = False
    """Whether every transaction only reads, because no commit is this process's."""

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
        """Recover, load the catalog, and return the outcome of recovery."""
        self._ids.count_epoch(session)
        first = self._ids.current.start
        return recover(self._engine, self._catalog, self._sequencer, session, first)

    def catch_up(self) -> None:
        """Follow the commits of other processes."""

    @property
    def moment(self) -> int:
        """The engine's time when :meth:`catch_up` was last done: microseconds since 1970."""
        return time.time_ns() // 1000

    @property
    def can_skip_snapshot(self) -> bool:
        """Whether a transaction may begin blindly (:mod:`tique.query.write.blind`), and gain by it."""
        return False

    def begin(self, *, blindly: bool = False) -> tuple[int, int]:
        """Begin a transaction: its txid and its sts.

        One that begins ``blindly`` may not see what other processes have committed.
        """
        begun = self._sequencer.begin()
        while begun[0] not in self._ids.current:
            # Another thread may have renewed the ids already.
            self._sequencer.end(begun[0])
            self._renew_txids(begun[0])
            begun = self._sequencer.begin()
        return begun

    def end(self, txid: int) -> None:
        """Take a transaction from the set of active snapshots."""
        self._sequencer.end(txid)

    def _renew_txids(self, txid: int) -> None:
        """Count another epoch if this id is behind those that the process has.

        A process that dies here leaves an epoch of which no id is used.
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

    def record_commits(self, session: Session) -> None:
        """Have the engine know of every commit that a snapshot may see.

        The session is in no engine transaction.
        """

    def refresh(self, txid: int, *, keeps: bool = False) -> int:
        """Take a new snapshot for a transaction: its sts.

        With ``keeps`` the one before stays registered: λ passes neither.
        """
        if keeps:
            return self._sequencer.sts()
        return self._sequencer.refresh(txid)

    @property
    def is_lost(self) -> bool:
        """Whether this process was given up; its connections are of no use then."""
        return False

    def check(self, tables: Iterable[Table] = ()) -> None:
        """Refuse a statement's result if it may not be of the snapshot any more.

        ``tables`` are those that it has used.

        Raises
        ------
        OperationalError
            The process was given up for dead meanwhile.
        SerializationError
            A table of a replica was copied anew.
        """

    def position(self) -> Position:
        """The sequencer's λ, sts and cts, and the number of its clients."""
        sequencer = self._sequencer
        # Read in this order λ ≤ sts ≤ cts holds in the result: none of them decreases.
        stable = sequencer.stable()
        sts = sequencer.sts()
        return Position(sts, sequencer.cts(), stable, 1)

    def stable(self) -> int:
        """λ, or less: versions committed up to here may be folded."""
        return self._sequencer.stable()

    def note_folds(self) -> None:
        """Forget versions that another process has folded; no fold runs meanwhile."""

    def advance(self) -> None:
        """Let λ pass the versions that no snapshot of this process needs any more."""

    @contextmanager
    def checkpointing(self) -> Iterator[bool]:
        """Keep other processes from folding; yield whether that succeeded."""
        yield True

    def is_undisturbed(self, folds: object) -> bool:
        """Whether other processes have folded nothing since :meth:`folds` gave that.

        Asked by a thread in :meth:`checkpointing`, which goes on then.
        """
        return True

    def folds(self) -> object:
        """How far other processes have folded each table."""
        return None

    def keep_folds_off(self) -> int:
        """Keep other processes from folding, and from DDL, until :meth:`let_fold`.

        Returns
        -------
        int
            The number of the time for which that is so, without a break; 0: they do so now.
        """
        return 1

    def are_folds_off(self, number: int) -> bool:
        """Whether that time goes on, so that none of them has begun."""
        return True

    def let_fold(self) -> None:
        """Let other processes fold again."""

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from committing, for DDL."""
        yield

    def expect_owner(self) -> None:
        """Refuse DDL that this process's role may not run."""

    def define(self, session: Session, body: Callable[[], _Outcome]) -> _Outcome:
        """Run DDL in an engine transaction, alone."""
        return session.transact(body)

    def has_defined(self) -> bool:
        """Whether DDL whose COMMIT raised an error is there; the thread is still alone."""
        # The engine is in this process: it has said whether it was done.
        return False

    def part(self, session: Session, cts: int, tables: Collection[Table]) -> None:
        """Commit what a bulk commit wrote, and begin again, where its log has to wait."""

    def commit(self, session: Session) -> None:
        """Commit an engine transaction with versions in it."""
        session.commit()

    def expect_alone(self, session: Session) -> None:
        """Refuse, in an engine transaction, if other processes use the database."""

    def is_current(self) -> bool:
        """Whether this process's knowledge of the database still holds."""
        return True

    def wait(self, cts: int) -> None:
        """Wait until the outcome of another process's timestamp is settled."""

    def has_ahead(self, rows: Collection[tuple[int, Key]]) -> bool:
        """Whether this process has committed one of these rows and not followed that yet."""
        return False

    @property
    def has_company(self) -> bool:
        """Whether other processes use the database, as of a while ago."""
        return False

    def await_begun(self, begun: int | None = None) -> None:
        """Follow all commits of other processes that have begun, and wait for their end.

        ``begun`` is the last timestamp that counts as begun, if that is known.
        """

    def epochs(self) -> tuple[set[int], int]:
        """Epochs of other processes that may have open transactions; the last epoch."""
        return set(), max(self._ids.epochs)

    def close(self) -> None:
        """Leave the shared sequencer, if there is one."""
