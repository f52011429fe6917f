"""Errors that keep tables from being folded, for the status and for later retries.

A table that cannot be folded stops no other table (P4). Its versions stay in its cache
table and in the log, where every transaction reads them. It is tried again after a
while, after twice as long the next time, and whenever a client asks for a checkpoint.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, NamedTuple

from tique._log import family, fields

if TYPE_CHECKING:
    from tique_rewriter.schema import Table

logger = logging.getLogger("tique.checkpoint")

_SHORTEST_REST = 3.0
_LONGEST_REST = 60.0


class _Obstacle(NamedTuple):
    error: Exception
    rest: float
    until: float


class Obstacles:
    """The tables that could not be folded the last time, by id.

    Only the holder of the checkpointer's lock, and recovery, change them; any thread
    reads.
    """

    def __init__(self) -> None:
        self._by_table: dict[int, _Obstacle] = {}

    def note(self, table: Table, error: Exception, *, is_told: bool = False) -> None:
        """Note that a table could not be folded; log it unless the caller is told."""
        known = self._by_table.get(table.id)
        rest = _SHORTEST_REST if known is None else min(_LONGEST_REST, 2 * known.rest)
        self._by_table[table.id] = _Obstacle(error, rest, time.monotonic() + rest)
        if not is_told and (known is None or str(known.error) != str(error)):
            # The message may have values in it (P11): only the status shows it.
            kind = family(error)
            logger.warning(
                "%s cannot be folded (%s), see the status; its versions stay where "
                "they are and will be tried again",
                table.qualified_name,
                kind,
                extra=fields("fold_failed", table=table.qualified_name, error=kind),
            )

    def clear(self, table: Table) -> None:
        """Note that a table was folded, or had nothing to fold."""
        if self._by_table.pop(table.id, None) is not None:
            logger.info(
                "%s can be folded again",
                table.qualified_name,
                extra=fields("fold_possible", table=table.qualified_name),
            )

    def is_resting(self, table: Table) -> bool:
        """Whether it is too early to try the table again."""
        known = self._by_table.get(table.id)
        return known is not None and time.monotonic() < known.until

    def error(self, table: Table) -> Exception | None:
        """Why the table could not be folded; None if it could."""
        known = self._by_table.get(table.id)
        return None if known is None else known.error

    def reason(self, table: Table) -> str | None:
        """The error as a text."""
        error = self.error(table)
        return None if error is None else f"{type(error).__name__}: {error}"
