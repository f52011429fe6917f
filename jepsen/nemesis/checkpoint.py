"""Checkpoints that begin at a step of a transaction or of its commit."""

from __future__ import annotations

from typing import ClassVar

from jepsen.nemesis.cut import Steps


class Checkpoint(Steps):
    """While a transaction is between two calls to the engine."""

    name: ClassVar[str] = "checkpoint"
    interval: ClassVar[tuple[float, float]] = (0.05, 0.5)
