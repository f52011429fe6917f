"""The server is killed, or one of its processes, and serves again."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from jepsen.nemesis.base import Nemesis

if TYPE_CHECKING:
    from jepsen.systems import System


class Server(Nemesis):
    """SIGKILL of the server, and recovery."""

    name: ClassVar[str] = "server"
    interval: ClassVar[tuple[float, float]] = (4.0, 9.0)

    @classmethod
    @override
    def obstacle(cls, system: System) -> str | None:
        """Refuse a server that is not the run's own: it is not killed."""
        if system.is_embedded:
            return "an embedded database has no server: use the nemesis kill"
        if not system.is_own:
            return "the server is not the run's own: give the URL's scheme alone"
        return None

    @override
    def strike(self) -> None:
        """Kill it and wait until it serves."""
        with self.fault("") as note:
            note.detail = self.scene.system.crash(self.chance)
