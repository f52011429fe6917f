"""Rows that an index of storage could not take are refused when they are staged (P4).

A row that is acknowledged and that an index refuses when it is folded would stop every
checkpoint. So the table that rows reach first gets the same indexes, and a CHECK where an
index's inner rows hold the values of two.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tique_backends.errors import EngineError, ErrorKind, speaking_of
from tique_backends.names import storage_name
from tique_backends.postgresql.bounds import INDEXES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tique_backends.records import Row
    from tique_rewriter.schema import Table

_TOO_LARGE = "54000"
_GUARD = re.compile(r'"(_i\d+)"')


class IndexGuards:
    """The indexes that one session's tables for versions have as storage does.

    Parameters
    ----------
    ask, run : callable
        Execute a statement in the session, with and without rows as its result.
    """

    def __init__(
        self, ask: Callable[[str, list[str]], list[Row]], run: Callable[[str], object]
    ) -> None:
        self._ask = ask
        self._run = run
        self.names: dict[str, str] = {}
        """The names of storage's indexes, by those of a guard."""

    def add(self, table: Table, target: str) -> None:
        """Let a table for versions refuse rows that storage's indexes cannot take."""
        with self.named(table, target):
            for there, name, shape, condition in self._guarding(table):
                self.names[there] = name
                if condition is None:
                    self._run(f"CREATE INDEX IF NOT EXISTS {there} ON {target} {shape}")
                else:
                    self._run(
                        f"ALTER TABLE {target} DROP CONSTRAINT IF EXISTS {there}, "
                        f"ADD CONSTRAINT {there} CHECK ({condition})"
                    )

    def remove(self, table: Table, target: str) -> None:
        """Undo that."""
        schema = target.partition(".")[0]
        for there, _, _, condition in self._guarding(table):
            if condition is None:
                self._run(f"DROP INDEX {schema}.{there}")
            else:
                self._run(f"ALTER TABLE {target} DROP CONSTRAINT {there}")

    def _guarding(self, table: Table) -> list[Row]:
        return self._ask(INDEXES, [storage_name(table)])

    @contextmanager
    def named(self, table: Table, place: str) -> Iterator[None]:
        """Let errors of a staging table speak of the table and its own indexes."""
        try:
            with speaking_of(table, place):
                yield
        except EngineError as error:
            found = _GUARD.search(str(error))
            if found is None or found[1] not in self.names:
                raise
            name = self.names[found[1]]
            message = str(error).replace(found[0], f'"{name}"')
            if error.kind is ErrorKind.CHECK:
                message = (
                    f'a row is too large for index "{name}", whose inner rows hold the '
                    "values of two: tique takes 2700 bytes there"
                )
            raise EngineError(ErrorKind.OPERATIONAL, message, _TOO_LARGE) from error
