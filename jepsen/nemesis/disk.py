"""A disk that takes its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from jepsen.nemesis.base import Nemesis

if TYPE_CHECKING:
    from jepsen.systems import System


class Disk(Nemesis):
    """``fdatasync`` that takes longer in the process that writes the database's log."""

    name: ClassVar[str] = "disk"
    interval: ClassVar[tuple[float, float]] = (1.0, 5.0)

    @classmethod
    @override
    def obstacle(cls, system: System) -> str | None:
        """Refuse a server that is not the run's own: its disk is not either."""
        if system.is_own or system.is_embedded:
            return None
        return "the server is not the run's own: give the URL's scheme alone"

    @override
    def strike(self) -> None:
        """Slow it down for a moment."""
        assert self.scene.disk is not None
        milliseconds = self.chance.choice([2, 10, 50, 200])
        with self.fault(f"{milliseconds} ms"):
            self.scene.disk.set(milliseconds * 1_000_000)
            self.pause(0.2, 1.5)
            self.scene.disk.set(0)
