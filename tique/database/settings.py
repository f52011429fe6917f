"""A database's settings."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from tique import errors
from tique.history.retention import Retention
from tique.store.policy import CachePolicy

_FOLD_ROWS = 50_000
"""With fewer, to probe each row against the cache table costs less than to write versions."""

_LONG_SNAPSHOT = 1.0

_SHORTEST_LEASE, _LONGEST_LEASE = 0.5, 300.0


def _default_page_cache() -> int:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(768 << 20, memory // 8)


@dataclass(frozen=True)
class Settings:
    """The settings of a database; the first connection of a process decides.

    Attributes
    ----------
    certifier : str
        ``"memory"`` or ``"query"``.
    concurrency : str
        The protocol of SERIALIZABLE transactions (:mod:`tique.commit.protocols`):
        ``"optimistic"``, ``"locking"`` or ``"ssn"``.
    checkpoint : str
        ``"auto"`` (a background thread) or ``"manual"``.
    checkpoint_rows : int
        Cached rows of a table that start a checkpoint.
    checkpoint_age : float
        Seconds after which cached rows are folded anyhow.
    row_cache : int
        Storage rows per table that are remembered.
    page_cache : int
        Bytes for ranges of storage tables that are kept in memory; by default an
        eighth of the machine's memory, 768 MiB at most.
    uncommitted_fold_rows : int or None
        From so many storage rows on, in the tables with recent versions, a wide query
        reads an uncommitted fold, where the engine is faster that way and nothing was
        committed to them for half a second (:mod:`tique.checkpoint.uncommitted`); 0:
        always; None: never.
    long_snapshot : float or None
        Seconds, one by default, after which the engine itself keeps a snapshot that is
        still open (:mod:`tique.database.long_snapshots`); None: it never does.
    retention : float
        Seconds for which the outcome of a transaction can be asked for.
    lease : float
        Seconds for which a process may be silent until the others that share the
        database give it up; at least 0.5.
    history : str or None
        How far back tables can be read (:class:`tique.history.retention.Retention`), if
        they have no retention of their own; None: they are kept as they are alone.
    """

    certifier: str = "memory"
    concurrency: str = "optimistic"
    checkpoint: str = "auto"
    checkpoint_rows: int = 10_000
    checkpoint_age: float = 3.0
    row_cache: int = 100_000
    page_cache: int = field(default_factory=_default_page_cache)
    uncommitted_fold_rows: int | None = field(default_factory=lambda: _FOLD_ROWS)
    long_snapshot: float | None = field(default_factory=lambda: _LONG_SNAPSHOT)
    retention: float = 3600.0
    lease: float = 6.0
    history: str | None = None

    def __post_init__(self) -> None:
        for name, allowed in (
            ("certifier", ("memory", "query")),
            ("concurrency", ("optimistic", "locking", "ssn")),
            ("checkpoint", ("auto", "manual")),
        ):
            value = getattr(self, name)
            if value not in allowed:
                raise errors.InterfaceError(
                    f"{name}={value!r} is not one of {', '.join(allowed)}"
                )
        for name, value in vars(self).items():
            default = type(self).__dataclass_fields__[name].default
            is_text = isinstance(default, str) or name == "history"
            if not is_text and not isinstance(value, int | float | None):
                raise errors.InterfaceError(f"{name}={value!r} is not a number")
        if not _SHORTEST_LEASE <= self.lease <= _LONGEST_LEASE:
            raise errors.InterfaceError(
                f"lease={self.lease!r} is not between {_SHORTEST_LEASE} and "
                f"{_LONGEST_LEASE} seconds"
            )

        if self.history is not None:
            Retention.parse(self.history)

    def policy(self) -> CachePolicy:
        """What of storage is kept in memory."""
        return CachePolicy(rows=self.row_cache, bytes=self.page_cache)
