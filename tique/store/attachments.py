"""The other databases that are attached to a database's engine, to be read.

They are the engine's, for all connections, and no part of a transaction: ATTACH and DETACH
are there at once. Statements are planned anew then.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tique import errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.engine import Engine
    from tique_rewriter.schema import Attached


class Attachments:
    """The databases, by name. Readers take no lock."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._found: dict[str, Attached] = {}
        self.version = 0
        """A number that changes with each of them that comes or goes."""

    def find(self, name: str) -> Attached | None:
        """Return the one of that name, whatever its case."""
        return self._found.get(name.lower()) if self._found else None

    def attach(
        self, path: str, name: str, options: Sequence[str], *, is_enough: bool
    ) -> None:
        """Attach a file, to be read; one that is there may be enough."""
        with self._lock:
            if is_enough and self.find(name) is not None:
                return
            attached = self._engine.attach_database(path, name, options)
            self._found = {**self._found, name.lower(): attached}
            self.version += 1

    def detach(self, name: str, *, may_lack: bool) -> None:
        """Detach a database.

        Raises
        ------
        ProgrammingError
            None is attached by that name.
        """
        with self._lock:
            attached = self.find(name)
            if attached is None:
                if may_lack:
                    return
                raise errors.ProgrammingError(
                    f'no database is attached by the name "{name}"', sqlstate="3D000"
                )
            self._engine.detach_database(attached.name)
            self._found = {
                key: other
                for key, other in self._found.items()
                if other is not attached
            }
            self.version += 1
