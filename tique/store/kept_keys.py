"""Keys of folded versions, for a transaction that writes and whose snapshot the engine keeps.

First committer wins, so its commit asks which keys were committed after its snapshot (P3). λ has passed
that, and a fold drops the versions from memory: their keys and timestamps, without their rows,
are kept here. They are for the oldest of such snapshots, and at most so many: the
oldest go first.

Invariant: of every commit later than ``since`` that was folded, the keys are here. So a snapshot
from ``since`` on is judged right, and an older one is refused. A reader looks at the
versions, then here, then at ``since``: a fold changes them in the opposite order.

The lock of the table's versions is held to change it.
"""

from __future__ import annotations

from itertools import islice, takewhile
from typing import TYPE_CHECKING

from tique import errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique.store.rows import Key
    from tique_rewriter.schema import Table

MOST_KEYS = 500_000
"""Of one table and one of its keys: each takes about 200 bytes."""


class KeptKeys:
    """The newest folded commits by key, for the primary key and each UNIQUE one."""

    def __init__(self, table: Table) -> None:
        self.since = 0
        self._commits: tuple[dict[Key, int], ...] = tuple(
            {} for _ in (table.primary_key, *table.unique)
        )
        self.rows = self._commits[0]
        """The cts of the newest folded version of each row that is later than ``since``."""

    def last_unique_commit(self, constraint: int, values: Key) -> int:
        """The cts of the newest folded version with values of a UNIQUE key; or 0."""
        return self._commits[constraint + 1].get(values, 0)

    def lose(self, until: int) -> None:
        """Drop the keys of commits up to a timestamp, or note that there are none."""
        self.since = max(self.since, until)
        for known in self._commits:
            for key, _ in list(takewhile(lambda e: e[1] <= until, known.items())):
                del known[key]

    def keep(self, commits: Sequence[Iterable[tuple[Key, int]]]) -> None:
        """Add the keys of commits that are being folded, oldest first."""
        for known, added in zip(self._commits, commits, strict=True):
            for key, cts in added:
                # Put last, as the oldest are dropped.
                known.pop(key, None)
                known[key] = cts
        for known in self._commits:
            excess = len(known) - MOST_KEYS
            if excess > 0:
                # More than has to go, so that it is done seldom.
                last = excess + MOST_KEYS // 16 - 1
                self.lose(next(islice(known.values(), last, None), 0))


def too_old(table: Table) -> errors.SerializationError:
    """The error when it is not known what was committed since a transaction's snapshot."""
    return errors.SerializationError(
        f"the snapshot of this transaction is too old to write to {table.qualified_name}: the "
        "rows that others have changed since are not known any more; run it again",
        table=table.qualified_name,
    )
