"""One schema change at a time, alone.

With autocommit a schema change takes effect at once and is durable when the statement
returns; for one inside a transaction see :mod:`tique.query.define.migration`. While it runs, no checkpoint and no commit does: it holds the
checkpointer's lock, then the committer's; where other processes use the database too,
the checkpointer's lease after the former and a barrier in the order of commits after
the latter. It is refused if another open transaction of this process has used the
table; a transaction of another process finds the table gone. Each schema change is one
engine transaction: a crash leaves all of it or nothing.

*All or nothing, whenever it is cut short (P5, P12).* The engine's catalog has the whole change or none of it,
and memory has what the catalog has, before another transaction begins or commits:

* before COMMIT is sent nothing is durable but the folds of :meth:`SchemaChanges.settle`, which change no
  definition, and a number that no table uses. The engine rolls back, by itself if the connection
  is lost; memory was not changed;
* from then on until COMMIT's reply the change may be there. After any error a new session reads the
  catalog, when no statement of a lost connection can commit any more. Then the outcome is asked for: the log
  has the barrier's entry, or not; DuckDB, in this process, has said so. A change that is there is
  acknowledged though its COMMIT was stopped too late; if the engine cannot be asked the error is ``OutcomeUnknown``;
* after it the change is durable. The session reads the catalog; if that fails, a new one does;
* if neither can, the committer keeps the task (:meth:`~tique.commit.committer.Committer.reread`): the next
  transaction that begins, the next commit and the next schema change do it first, and fail if they cannot.
  Nothing is planned, certified or published by definitions that the engine no longer has.

A signal handler's exception cuts none of it short: the main thread has another one run the statement, stops it
as ``cancel()`` does, and waits for its end (:mod:`tique_backends.concurrency.undisturbed`). So Ctrl-C is an engine's
error in one of its statements, like the others. The barrier is finished by another
attempt if the first one fails.

*Between processes (P6, P9).* When the barrier stands, every commit that was let through
before it is finished and followed here, and none is let through until the schema change
is finished. The log entry of the engine transaction has the barrier's timestamp. A
transaction that begins afterwards follows it and reads the catalog first; a commit that
was certified before is refused and certified again, by the new catalog. If the process
dies another one finishes the timestamp. If it was stopped for too long, the server refuses its
COMMIT.
"""

from __future__ import annotations

import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from tique import errors
from tique.query.transaction.held import PATIENCE
from tique_backends.errors import EngineError
from tique_rewriter.schema import History

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from tique.checkpoint.checkpointer import Checkpointer
    from tique.commit.committer import Committer
    from tique.query.transaction.transaction import Transaction
    from tique.store.catalog import ManagedCatalog
    from tique.timeline.local import Timeline
    from tique_backends.engine import Engine
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_Outcome = TypeVar("_Outcome")

LOCK_TIMEOUT = 10.0

_PATIENCE = 2.0
"""Seconds to wait for the snapshots that a table's recent versions are kept for."""


@dataclass(eq=False)
class SchemaChanges:
    """What all changes of the schema of one database have in common.

    Parameters
    ----------
    engine
        The database's engine.
    catalog
        Its managed tables.
    timeline, committer, checkpointer
        The parts that are paused meanwhile.
    transactions
        The open transactions of this process, by txid.
    retention
        That of the history of new tables; None: they have none.
    """

    engine: Engine
    catalog: ManagedCatalog
    timeline: Timeline
    committer: Committer
    checkpointer: Checkpointer
    transactions: Mapping[int, Transaction]
    retention: str | None = None

    def expect_possible(self, transaction: Transaction) -> None:
        """Refuse DDL in a transaction that has uncommitted writes, or is read-only.

        Raises
        ------
        OperationalError
            It is read-only.
        NotSupportedError
            It has uncommitted writes (SQLSTATE 25001).
        """
        expect_writable(transaction)
        if transaction.has_writes:
            raise errors.NotSupportedError(
                "DDL cannot run after uncommitted writes in a transaction that no BEGIN "
                "has opened: it takes effect at once there, and a rollback would not undo "
                "it; commit or roll back first. A migration runs with autocommit, after "
                "BEGIN, or on a connection with transactional_ddl=True",
                sqlstate="25001",
            )

    def run_text(self, transaction: Transaction, text: str) -> None:
        """Run a statement of DDL that changes no table's definition."""
        self.expect_possible(transaction)
        transaction.session.execute(text).close()

    @contextmanager
    def alone(
        self, settled: Collection[Table] = (), mine: Transaction | None = None
    ) -> Iterator[None]:
        """Keep all threads and processes from committing, folding, and running DDL.

        Commits wait neither for a checkpoint, which may take long, nor for what keeps these
        tables from being :meth:`settled <settle>`.
        """
        self.timeline.expect_owner()
        with self.checkpointer.paused(LOCK_TIMEOUT), self.none_held():
            self.expect_current(settled)
            self.refuse_users(settled, mine)
            for table in settled:
                self.settle(table, mine, self.timeline.position().sts)
                if mine is not None:
                    self.engine.await_lockers(mine.session, table)
            with self.committer.paused(LOCK_TIMEOUT), self.timeline.alone():
                yield

    @contextmanager
    def none_held(self) -> Iterator[None]:
        """Have the engine keep no snapshot meanwhile, if it cannot have both.

        Raises
        ------
        OperationalError
            A transaction of this process reads the past (SQLSTATE 55006).
        """
        engine = self.engine
        if engine.capabilities.defines_beside_snapshots:
            yield
            return
        deadline = time.monotonic() + PATIENCE
        with engine.defining:
            while engine.held:
                if time.monotonic() > deadline:
                    raise errors.OperationalError(
                        "a transaction of this process reads the past, or a feed: the "
                        "engine refuses DDL beside that; end it first",
                        sqlstate="55006",
                    )
                time.sleep(PATIENCE / 100)
            yield

    def transact(
        self,
        session: Session,
        body: Callable[[], _Outcome],
        since: Mapping[int, float] = MappingProxyType({}),
    ) -> _Outcome:
        """Change the schema, and read the catalog again, whatever became of COMMIT.

        ``since`` has, when ``body`` is over, the ids of tables that it made with rows,
        and the oldest snapshots that may see these.

        Raises
        ------
        OutcomeUnknown
            The engine failed inside COMMIT, and cannot be asked whether it has happened.
        """
        reached: list[_Outcome] = []

        def work() -> _Outcome:
            reached.clear()
            reached.append(self._done(session, body))
            return reached[0]

        try:
            outcome = self.timeline.define(session, work)
        except BaseException as error:
            if reached:
                self._find_out(since, error)
                return reached[0]
            raise
        try:
            self.catalog.reload(session, since)
        except BaseException as error:
            self._reread(since)
            if not isinstance(error, EngineError):
                raise
        return outcome

    def _find_out(self, since: Mapping[int, float], error: BaseException) -> None:
        """Raise ``error`` unless the COMMIT that raised it has happened."""
        has_happened = None
        if self._reread(since):
            with suppress(EngineError):
                has_happened = self.timeline.has_defined()
        if not isinstance(error, EngineError) or has_happened is False:
            raise error
        if has_happened is None:
            raise errors.OutcomeUnknown(
                "the engine failed inside the COMMIT of a schema change, which may have "
                "happened or not, and cannot be asked for its outcome; look at the "
                f"definitions when the database can be reached again ({error})"
            ) from error

    def _reread(self, since: Mapping[int, float]) -> bool:
        """Read the catalog by another session; False: before anything else happens."""

        def read() -> None:
            with closing(self.engine.session()) as witness:
                self.catalog.reload(witness, since)

        return self.committer.reread(read)

    def _done(self, session: Session, body: Callable[[], _Outcome]) -> _Outcome:
        """Run ``body``, and let materialized views go that the engine has dropped with it."""
        outcome = body()
        views = [table for table in self.catalog if table.is_materialized]
        if views:
            for view in self.engine.without_storage(session, views):
                self.engine.unmanage(session, view)
        return outcome

    def change(
        self,
        transaction: Transaction,
        body: Callable[[], _Outcome],
        used: Callable[[], Collection[Table]] = tuple,
    ) -> _Outcome:
        """Change the schema by ``body`` unless another transaction uses these tables."""
        self.expect_possible(transaction)
        with self.alone():
            self.refuse_users(used(), transaction)
            return self.transact(transaction.session, body)

    def expect_current(self, tables: Collection[Table]) -> None:
        """Refuse tables that were changed, or dropped, after the statement was planned.

        Alone: no other schema change runs.

        Raises
        ------
        SerializationError
            One was.
        """
        for table in tables:
            # Also one that was changed without tique may be dropped.
            if self.catalog.named(table.schema, table.name) != table:
                raise errors.SerializationError(
                    f"the definition of {table.qualified_name} was changed meanwhile; "
                    "run the statement again",
                    table=table.qualified_name,
                )

    def refuse_users(self, tables: Collection[Table], mine: Transaction | None) -> None:
        """Refuse tables that another open transaction of this process has used.

        Raises
        ------
        OperationalError
            There is one (SQLSTATE 55006).
        """
        ids = {table.id for table in tables}
        for other in list(self.transactions.values()):
            used = ids & other.touched
            if other is not mine and used:
                names = ", ".join(t.qualified_name for t in tables if t.id in used)
                raise errors.OperationalError(
                    f"cannot change {names}: an open transaction uses it; end that "
                    "transaction and try again",
                    sqlstate="55006",
                )

    def gather(self, table: Table, mine: Transaction) -> int:
        """Have all committed versions of a table in its cache table; return their sts.

        Alone: no version is committed meanwhile.
        """
        self.catalog.versions(table).drain(mine.session)
        return self.timeline.position().sts

    def history(self, before: Table | None = None) -> History | None:
        """The history that begins with a new table, or one that takes another's place.

        Alone: the next commit is the first that it has not yet.
        """
        kept = None if before is None else self.catalog.by_id()[before.id].history
        retention = self.retention if kept is None else kept.retention
        if retention is None:
            return None
        return History(self.timeline.position().sts, retention)

    def absorb(self, table: Table, mine: Transaction) -> float:
        """Move the transaction's own writes to a table to storage.

        In the engine transaction that changes the table's definition. Returns the oldest
        snapshot that may see the rows there (P1); 0: all of them.
        """
        return self.catalog.versions(table).since

    def settle(
        self, table: Table, mine: Transaction | None, until: float = inf
    ) -> None:
        """Fold all versions of a table, alone: storage is what every snapshot sees.

        Snapshots that do not see all of the versions are waited for, those of other
        processes too. None is taken meanwhile that is older than the last commit.
        Before that the versions with cts ≤ ``until`` are folded while commits go on.

        Raises
        ------
        SerializationError
            The transaction's own snapshot does not see them.
        OperationalError
            Another one does not, and does not end (SQLSTATE 55006).
        """
        versions = self.catalog.versions(table)
        deadline = time.monotonic() + _PATIENCE
        while not versions.is_empty:
            self.timeline.advance()
            self.checkpointer.fold_stable(versions)
            oldest = versions.oldest
            if oldest is None or oldest > until:
                return
            if mine is not None and oldest > mine.sts and not mine.renew():
                raise errors.SerializationError(
                    f"{table.qualified_name} was written to after this transaction "
                    "began; run it again to change the table",
                    table=table.qualified_name,
                )
            if time.monotonic() > deadline:
                raise errors.OperationalError(
                    f"cannot change {table.qualified_name}: an open snapshot needs its "
                    "recent versions; end the transactions that were open before the "
                    "last write to the table, and try again",
                    sqlstate="55006",
                )
            time.sleep(_PATIENCE / 100)


def expect_writable(transaction: Transaction) -> None:
    """Refuse DDL in a read-only transaction.

    Raises
    ------
    OperationalError
        It is read-only (SQLSTATE 25006).
    """
    if transaction.read_only:
        raise errors.OperationalError(
            "cannot run DDL in a read-only transaction", sqlstate="25006"
        )
