"""A table's versions as an engine transaction that is held sees them: only SQL may answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from tique.store.policy import CachePolicy
from tique.store.versions import BulkCommit, TableVersions

if TYPE_CHECKING:
    from tique_backends.session import Session

_NOTHING = CachePolicy(rows=0, bytes=0)


class HeldVersions(TableVersions):
    """What is known of a table's versions when a snapshot is handed to the engine.

    They are in the cache table and in storage, as after commits in bulk, and so is what
    folds have moved since: neither changes in the engine transaction. So what is true now
    stays true, and the index in memory, which moves on, says nothing of them.

    Parameters
    ----------
    versions
        The table's, drained up to ``sts``.
    sts
        The snapshot, which is registered: nothing newer is folded.
    """

    def __init__(self, versions: TableVersions, sts: int) -> None:
        super().__init__(versions.table, _NOTHING)
        self.since, self.folded_until = versions.since, versions.folded_until
        with versions.lock:
            self.is_flat, self._is_appended = versions.is_flat, versions.is_appended
            if versions.oldest is not None and versions.oldest <= sts:
                self.oldest, self.rows = versions.oldest, versions.rows
        self.bulk = (BulkCommit(sts, self.rows, self.rows, sts),)

    @property
    @override
    def is_appended(self) -> bool:
        return self._is_appended

    @override
    def drain(self, session: Session, sts: int | None = None) -> None:
        """Nothing is left to do: they were drained before the engine transaction began."""
