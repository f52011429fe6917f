"""What a connection tells: figures of an open database, and its FOREIGN KEYs.

tique keeps these, so no engine's catalog shows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tique.store.catalog import ManagedCatalog
    from tique.store.policy import CacheInfo


class TransactionStatus(IntEnum):
    """The state of a connection's transaction; names and numbers are libpq's."""

    IDLE = 0
    INTRANS = 2
    INERROR = 3
    UNKNOWN = 4


class Pipeline:
    """What :meth:`tique.Connection.pipeline` gives."""

    def sync(self) -> None:
        """Do nothing: every call has its outcome."""


@dataclass(frozen=True)
class ConnectionInfo:
    """Figures for operators, of the whole database.

    Attributes
    ----------
    sequencer : str
        ``"c"`` or ``"python"``.
    certifier : str
        ``"memory"`` or ``"query"``.
    engine_statements : int
        Statements that the engine was asked to run since it was opened.
    engine_seconds : float
        Wall-clock seconds spent waiting for the engine, summed over threads.
    caches : tuple of CacheInfo
        The caches of the storage tables' single rows and ranges: number of
        entries, bytes, hits, misses and evictions.
    transaction_status : TransactionStatus
        The state of this connection's transaction: ``INERROR`` after a statement that
        was cut short.
    number : int
        This connection's among all of the process's connections to the database, as
        :meth:`tique.Connection.status` names it.
    """

    sequencer: str
    certifier: str
    engine_statements: int
    engine_seconds: float
    caches: tuple[CacheInfo, ...]
    transaction_status: TransactionStatus
    number: int


@dataclass(frozen=True)
class ForeignKey:
    """A FOREIGN KEY constraint.

    Attributes
    ----------
    schema, table : str
        The table that has it.
    name : str
        Its name.
    columns : tuple of str
        Its columns.
    referred_schema, referred_table : str
        The table that it references.
    referred_columns : tuple of str
        The columns there, in the order of ``columns``.
    on_delete, on_update : str
        ``"NO ACTION"``, ``"RESTRICT"``, ``"CASCADE"``, ``"SET NULL"`` or
        ``"SET DEFAULT"``.
    is_deferred : bool
        Whether it is ``DEFERRABLE INITIALLY DEFERRED``.
    """

    schema: str
    table: str
    name: str
    columns: tuple[str, ...]
    referred_schema: str
    referred_table: str
    referred_columns: tuple[str, ...]
    on_delete: str
    on_update: str
    is_deferred: bool


def foreign_keys(catalog: ManagedCatalog) -> list[ForeignKey]:
    """All of a catalog, in the order of names."""
    found = [
        ForeignKey(
            table.schema,
            table.name,
            key.name,
            tuple(table.columns[i].name for i in key.columns),
            *key.parent,
            tuple(catalog.parent(key).columns[i].name for i in key.key),
            key.on_delete.value,
            key.on_update.value,
            key.is_deferred,
        )
        for table in catalog
        for key in table.foreign_keys
    ]
    return sorted(found, key=lambda key: (key.schema, key.table, key.name))
