"""What a transaction with DDL goes back to by ROLLBACK TO a savepoint.

Argument
--------
Writes are undone by the numbers of their statements, as ever. DDL has changed the engine's
own tables, so the engine has to undo it, and all that Python knows of the transaction has to
become what it was at the same moment: the catalog, and which of the writes are buffered,
staged, or moved to storage. So this is kept (:class:`State`) at two kinds of moments.

*When the engine transaction begins*, for savepoints that were set before: it is rolled back
as a whole, and the transaction is one without DDL again. This is possible on every engine,
also after a statement of it has failed. Staging tables are the engine's and are rolled
back with the rest: they have again what they had when it began, which includes all that a
savepoint before that needs. MonetDB's rollback may empty temporary tables, so rows that were staged
by then have this refused there (``undoes_temporary_tables``).

*When a savepoint is set in it*, where the engine has savepoints of its own
(``nests_transactions``): one is set there, too. After a statement that failed the engine
transaction is then kept until ROLLBACK, or ROLLBACK TO, as PostgreSQL keeps it. Its locks,
and the pause of the checkpoints, last as long.

On an engine without savepoints a savepoint after the first DDL is good for writes only:
there is no ROLLBACK TO it after more DDL, or after a statement that failed.

A state is copied again whenever it is gone back to, as its savepoint stays.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tique.query.transaction.transaction import Transaction
    from tique.store.catalog import ManagedCatalog
    from tique.store.rows import Key
    from tique.writes.table import TableWrites
    from tique_rewriter.schema import Table


@dataclass(frozen=True)
class State:
    """A transaction with DDL at one moment.

    Attributes
    ----------
    catalog
        Its definitions; None if they are all those of the database.
    writes, deferred
        Its writes by table, and the references to check at commit.
    held, absorbing, filled
        See :class:`~tique.query.define.migration.Migration`.
    defined_at
        The number of the last statement of DDL.
    """

    catalog: ManagedCatalog | None
    writes: Mapping[int, TableWrites]
    deferred: Mapping[tuple[int, str], dict[Key, None] | None]
    held: Mapping[int, Table]
    absorbing: frozenset[int]
    filled: frozenset[int]
    defined_at: int

    def restore(self, transaction: Transaction) -> None:
        """Give the transaction its writes back; the engine has its own again."""
        transaction.writes.clear()
        transaction.writes.update(copied(self.writes))
        transaction.deferred.clear()
        transaction.deferred.update(_deferred(self.deferred))
        transaction.defined_at = self.defined_at


@dataclass(frozen=True)
class Mark:
    """A savepoint in the engine transaction; without a state it is not the engine's."""

    number: int
    state: State | None

    @property
    def name(self) -> str:
        """The name that the engine knows it by."""
        return f"tique_{self.number}"


def copied(writes: Mapping[int, TableWrites]) -> dict[int, TableWrites]:
    """Copies of writes, which later statements leave alone."""
    return {number: each.copy() for number, each in writes.items()}


def kept(
    transaction: Transaction,
    catalog: ManagedCatalog | None,
    held: Mapping[int, Table],
    absorbing: set[int],
    filled: set[int],
) -> State:
    """The state of a transaction now."""
    return State(
        None if catalog is None else copy(catalog),
        copied(transaction.writes),
        _deferred(transaction.deferred),
        dict(held),
        frozenset(absorbing),
        frozenset(filled),
        transaction.defined_at,
    )


def _deferred(
    deferred: Mapping[tuple[int, str], dict[Key, None] | None],
) -> dict[tuple[int, str], dict[Key, None] | None]:
    return {name: v if v is None else dict(v) for name, v in deferred.items()}
