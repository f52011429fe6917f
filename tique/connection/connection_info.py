"""Figures of an open database, as a connection tells them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
