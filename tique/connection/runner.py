"""What plans a connection's statements, or keeps their results, asks of what runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tique.database.database import Database
    from tique.query.base import Outcome, Statement
    from tique.query.define.migration import Migration
    from tique.query.define.temporary import Temporaries
    from tique.query.transaction.ddl_transaction import DDLTransaction
    from tique_backends.session import Session


class Runner(Protocol):
    """An :class:`~tique.connection.execution.Execution`, as these know it."""

    database: Database
    temporaries: Temporaries
    transaction: DDLTransaction | None
    migration: Migration | None

    @property
    def txid(self) -> int | None:
        """The open transaction's id."""

    @property
    def commits_each(self) -> bool:
        """Whether every statement is a transaction of its own."""

    def begin(self) -> DDLTransaction:
        """Begin a transaction."""

    def live_session(self) -> Session:
        """The session, or another one with the same settings if it is of no use."""

    def run_in_transaction(
        self,
        statement: Statement,
        bound: Sequence[Any],
        run: Callable[[DDLTransaction, Sequence[Any]], Outcome],
    ) -> Outcome:
        """Run a statement in the open transaction, or in one of its own."""
