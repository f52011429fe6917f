"""Connections are cut at a step of the protocol."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from jepsen.faultpoints import MOMENTS
from jepsen.nemesis.base import Nemesis


class Steps(Nemesis):
    """Has a client's fault points do something; they note when they did."""

    @override
    def strike(self) -> None:
        """Choose a process and a step."""
        member = self.chance.choice(self.scene.crew.members)
        phase = "commit" if self.chance.random() < 0.7 else "body"
        left = self.chance.randint(1, 4)
        member.tell(f"{self.name} {phase} {left} {self.chance.choice(MOMENTS)}")


class Cut(Steps):
    """Before a call to the engine, after its request went out, or after its reply."""

    name: ClassVar[str] = "cut"
    interval: ClassVar[tuple[float, float]] = (0.1, 0.8)
    kills: ClassVar[bool] = True
