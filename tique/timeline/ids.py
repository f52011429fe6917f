"""The transaction ids that this process hands out.

An *epoch* is a million ids, counted durably before any of them is used, so that no id is
used twice whenever a process dies (:mod:`tique.timeline.recovery`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique.timeline.recovery import txids_of

if TYPE_CHECKING:
    from tique_backends.engine import Engine
    from tique_backends.session import Session


class TransactionIds:
    """The epochs of one process.

    Parameters
    ----------
    engine
        The database's engine, which counts epochs.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.epochs: set[int] = set()
        """All epochs of this process."""
        self.current = range(0)
        """The ids that are handed out now."""

    def count_epoch(self, session: Session) -> int:
        """Count an epoch durably, to hand out its ids from now on; return its number.

        Raises
        ------
        OperationalError
            All epochs are used up.
        """
        epoch = self._engine.next_epoch(session)
        ids = txids_of(epoch)
        self.epochs.add(epoch)
        self.current = ids
        return epoch
