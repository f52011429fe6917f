"""A transaction with all that it may hold: DDL, temporary tables, and savepoints before them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from typing_extensions import override

from tique import errors
from tique.query.transaction.transaction import Transaction

if TYPE_CHECKING:
    from tique.checkpoint.uncommitted import UncommittedFold
    from tique.commit.certification import Certifier
    from tique.commit.locks import Locks
    from tique.commit.protocols.optimistic import Optimistic
    from tique.commit.turns import Contender
    from tique.query.define.altering import Alterations
    from tique.query.define.ddl import DDL
    from tique.query.define.migration import Migration
    from tique.query.define.migration_savepoints import Mark
    from tique.query.define.temporary import Temporaries
    from tique.query.transaction.isolation import IsolationLevel
    from tique.store.catalog import ManagedCatalog
    from tique.timeline.local import Timeline
    from tique_backends.engine import Engine
    from tique_backends.session import Session


class Savepoint(NamedTuple):
    """A savepoint: its name, and the number of the last statement before it.

    ``mark`` is that of the engine transaction in which it was set, if there was one.
    """

    name: str
    sequence: int
    mark: Mark | None


class DDLTransaction(Transaction):
    """A transaction that can run every statement.

    Parameters
    ----------
    ddl, alterations
        Run its DDL.
    temporaries
        The connection's temporary tables.

    The others are those of :class:`~tique.query.transaction.transaction.Transaction`.
    """

    lock: Any
    """The connection's: a statement under way has it."""
    migration: Migration | None = None
    """Its DDL, if it has run any and is more than a statement."""

    def __init__(
        self,
        engine: Engine,
        catalog: ManagedCatalog,
        timeline: Timeline,
        ddl: DDL,
        alterations: Alterations,
        temporaries: Temporaries,
        session: Session,
        isolation: IsolationLevel,
        *,
        locks: Locks,
        certifier: Certifier,
        protocol: Optimistic,
        uncommitted: UncommittedFold,
        read_only: bool,
        merges: bool,
        contender: Contender,
        planned_at: int | None,
        begun: float | None,
    ) -> None:
        self.ddl = ddl
        self.alterations = alterations
        self.temporaries = temporaries
        self.savepoints: list[Savepoint] = []
        super().__init__(
            engine,
            catalog,
            timeline,
            session,
            isolation,
            locks=locks,
            certifier=certifier,
            protocol=protocol,
            uncommitted=uncommitted,
            read_only=read_only,
            merges=merges,
            contender=contender,
            planned_at=planned_at,
            begun=begun,
        )

    @property
    @override
    def has_run_ddl(self) -> bool:
        return self.migration is not None

    def savepoint(self, name: str) -> None:
        """Set a savepoint; an earlier one of the same name is hidden, as in SQL."""
        self.expect_sound()
        mark = None if self.migration is None else self.migration.mark()
        self.savepoints.append(Savepoint(name, self.sequence, mark))

    def rollback_to(self, name: str) -> int:
        """Undo the statements after the savepoint, which stays; its sequence number."""
        if self.held is not None:
            self.held.expect_kept()
        position = self._find_savepoint(name)
        savepoint = self.savepoints[position]
        sequence = savepoint.sequence
        if self.migration is not None:
            self.migration.rollback_to(savepoint)
        self.undo(sequence)
        self.has_failed = False
        del self.savepoints[position + 1 :]
        return sequence

    def release(self, name: str) -> None:
        """Drop the savepoint and those after it; their statements stay."""
        self.expect_sound()
        position = self._find_savepoint(name)
        if self.migration is not None:
            self.migration.release(self.savepoints[position])
        del self.savepoints[position:]

    def _find_savepoint(self, name: str) -> int:
        for position in range(len(self.savepoints) - 1, -1, -1):
            if self.savepoints[position].name == name:
                return position
        raise errors.ProgrammingError(f"there is no savepoint {name}", sqlstate="3B001")

    @override
    def take_back(self, sequence: int) -> None:
        try:
            self.temporaries.undo(sequence)
        finally:
            super().take_back(sequence)
