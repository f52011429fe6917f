"""Wall clocks of client processes that jump, ahead or back, each on its own."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from jepsen.nemesis.base import Nemesis


class Clock(Nemesis):
    """CLOCK_REALTIME is off by up to a day, and right again later."""

    name: ClassVar[str] = "clock"
    interval: ClassVar[tuple[float, float]] = (0.3, 2.0)

    @override
    def strike(self) -> None:
        """Let one jump."""
        number = self.chance.randrange(len(self.scene.clocks))
        size = 10 ** self.chance.uniform(-2, 5)
        seconds = self.chance.choice([-size, size])
        with self.fault(f"process {number}: {seconds:+.2f} s"):
            self.scene.clocks[number].set(int(seconds * 1e9))
            self.pause(0.1, 2.0)
            self.scene.clocks[number].set(0)
