"""Client processes that are killed; others are started in their places."""

from __future__ import annotations

import signal
from typing import ClassVar

from typing_extensions import override

from jepsen.nemesis.base import Nemesis


class Kill(Nemesis):
    """SIGKILL."""

    name: ClassVar[str] = "kill"
    interval: ClassVar[tuple[float, float]] = (2.0, 8.0)
    kills: ClassVar[bool] = True

    @override
    def strike(self) -> None:
        """Kill one of them."""
        number = self.chance.randrange(len(self.scene.crew.members))
        with self.fault(f"process {number}"):
            self.scene.crew.members[number].signal(signal.SIGKILL)
