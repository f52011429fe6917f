"""A MonetDB server, the run's own or an existing one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pymonetdb.sql import connections
from typing_extensions import override

from jepsen.systems.base import System, Unusable, sever, surroundings
from tique_backends.monetdb.server import MonetDBServer

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping
    from pathlib import Path

    from jepsen.faultpoints import FaultPoints


class MonetDB(System):
    """A server of one process, which a kill ends."""

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__(url, folder)
        self._server: MonetDBServer | None = None
        if url == "monetdb:":
            self._server = MonetDBServer(
                folder / "server", socket=folder.absolute() / "s"
            )
        self._environment: Mapping[str, str] = {}

    @property
    @override
    def is_own(self) -> bool:
        """Whether it is the run's own."""
        return self._server is not None

    @override
    def start(self, environment: Mapping[str, str]) -> None:
        """Start the server."""
        self._environment = environment
        if self._server is not None:
            with surroundings(environment):
                self.url = self._server.start()

    @override
    def crash(self, chance: random.Random) -> str:
        """SIGKILL its process."""
        if self._server is None:
            raise Unusable("the server is not the run's own")
        self._server.kill()
        self.start(self._environment)
        return "server"

    @override
    def stop(self) -> None:
        """Stop the server."""
        if self._server is not None:
            self._server.stop()

    @classmethod
    @override
    def instrument(cls, points: FaultPoints) -> None:
        """Change pymonetdb's class, for this process."""
        wires: Any = connections.Connection
        genuine = wires.execute

        def execute(connection: Any, query: str) -> Any:
            with points.passing(lambda moment: _cut(connection, moment)):
                return genuine(connection, query)

        wires.execute = execute


def _cut(connection: Any, moment: str) -> None:
    wire = connection.mapi and connection.mapi.sock
    if wire is not None:
        sever(wire, moment)


SYSTEM = MonetDB
