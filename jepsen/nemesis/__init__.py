"""The kinds of faults, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepsen.nemesis.base import Nemesis, Scene
from jepsen.nemesis.checkpoint import Checkpoint
from jepsen.nemesis.clock import Clock
from jepsen.nemesis.cut import Cut
from jepsen.nemesis.ddl import DDL
from jepsen.nemesis.disk import Disk
from jepsen.nemesis.kill import Kill
from jepsen.nemesis.pause import Pause
from jepsen.nemesis.server import Server
from jepsen.systems.base import Unusable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jepsen.systems import System

__all__ = ["NEMESES", "Nemesis", "Scene", "chosen"]

NEMESES: dict[str, type[Nemesis]] = {
    nemesis.name: nemesis
    for nemesis in (Kill, Pause, Server, Cut, Disk, Checkpoint, Clock, DDL)
}


def chosen(names: Sequence[str], system: System) -> list[str]:
    """The nemeses of a run; ``all`` are those that the system allows.

    Raises
    ------
    Unusable
        If one that was named cannot be used on the system.
    """
    if "all" in names:
        return [name for name, kind in NEMESES.items() if not kind.obstacle(system)]
    for name in names:
        if obstacle := NEMESES[name].obstacle(system):
            raise Unusable(f"nemesis {name}: {obstacle}")
    return list(names)
