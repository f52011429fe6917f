"""Sessions of the server that have row locks are ended, as those of a client that is given up."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from jepsen.nemesis.base import Nemesis

if TYPE_CHECKING:
    from jepsen.systems import System


class Sessions(Nemesis):
    """The end of all sessions that have row locks, whose owners go on."""

    name: ClassVar[str] = "sessions"
    interval: ClassVar[tuple[float, float]] = (0.01, 0.1)

    @classmethod
    @override
    def obstacle(cls, system: System) -> str | None:
        """Refuse systems that keep no row locks in sessions of a server."""
        if not system.has_lock_sessions:
            return "the system has no sessions that keep row locks"
        return None

    @override
    def strike(self) -> None:
        """End them."""
        with self.fault("") as note:
            note.detail = f"{self.scene.system.end_lock_sessions()} sessions"
