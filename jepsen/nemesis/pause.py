"""Client processes that are stopped for a while, some for longer than their lease."""

from __future__ import annotations

import signal
from typing import ClassVar

from typing_extensions import override

from jepsen.nemesis.base import Nemesis


class Pause(Nemesis):
    """SIGSTOP and SIGCONT."""

    name: ClassVar[str] = "pause"
    interval: ClassVar[tuple[float, float]] = (0.5, 3.0)

    @override
    def strike(self) -> None:
        """Stop one of them."""
        number = self.chance.randrange(len(self.scene.crew.members))
        member = self.scene.crew.members[number]
        with self.fault(f"process {number}"):
            member.signal(signal.SIGSTOP)
            if self.chance.random() < 0.5:
                self.pause(0.01, 0.3)
            else:
                self.pause(0.3, 3.0)
            member.signal(signal.SIGCONT)
