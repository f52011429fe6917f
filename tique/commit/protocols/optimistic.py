"""The optimistic protocol, and the interface of all: validation at the commit, nothing before it.

Validation has the argument (:mod:`tique.commit.validation`). Transactions of other levels
are no protocol's: none of its methods is called for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from tique.writes.tickets import Committing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tique.commit.figures import CommitCounts
    from tique.commit.locks import Locks
    from tique.commit.validation import Change, Validation
    from tique.store.catalog import ManagedCatalog
    from tique.store.rows import Key
    from tique.timeline.local import Timeline
    from tique.writes.tickets import Ticket
    from tique_backends.forms import Forms
    from tique_backends.session import Session
    from tique_rewriter.schema import Table
    from tique_udfs import Sequencer


class Serializable(Committing, Protocol):
    """A transaction as a protocol sees it."""

    lock_timeout: float | None
    sequence: int

    @property
    def read_only(self) -> bool:
        """Whether it is declared to write nothing."""

    @property
    def is_single(self) -> bool:
        """Whether it is a statement in autocommit."""

    @property
    def is_held(self) -> bool:
        """Whether the engine keeps its snapshot."""

    def see_as_of(self, sts: int) -> None:
        """Read from a newer snapshot from now on; the one before stays registered."""


@dataclass(frozen=True)
class Surroundings:
    """What a protocol has to do with: parts of one database."""

    catalog: ManagedCatalog
    forms: Forms
    sequencer: Sequencer
    timeline: Timeline
    locks: Locks
    transactions: Mapping[int, Committing]
    """Those that are open."""
    counts: CommitCounts
    in_memory: bool
    """Whether memory is asked where it has all versions."""


class Optimistic:
    """What a transaction saw is compared with the newest state when it is committed.

    Parameters
    ----------
    database
        Parts of the database.
    """

    locks: ClassVar[bool] = False
    """Whether statements lock the rows that they write, and are run again if others did."""
    obstacle: ClassVar[str | None] = None
    """Why other processes must not use the database; None: they may."""

    def __init__(self, database: Surroundings) -> None:
        self._database = database

    def read(self, transaction: Serializable, table: Table, key: Key) -> None:
        """Prepare for a row to be read by its key; the snapshot may be a newer one after it."""

    def advance(self, transaction: Serializable) -> None:
        """Take a newer snapshot for a statement that others overtook, and that is run again.

        Raises
        ------
        SerializationError
            What was seen is no longer so.
        """

    def validate(
        self, ticket: Ticket, validation: Validation, session: Session
    ) -> Change | None:
        """What keeps a ticket from being committed; the leader asks, in cts order.

        Raises
        ------
        BehindBatchError
            That cannot be known before the batch is committed.
        """
        return validation.change(ticket.transaction, session)

    def committed(self, tickets: Sequence[Ticket]) -> None:
        """Note commits that are published; the leader does, and may do so again."""

    def ended(self, transaction: Committing) -> None:
        """Note the commit of a transaction that has written nothing.

        Raises
        ------
        SerializationError
            It is in no order with the others.
        """
