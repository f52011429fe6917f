"""DDL that begins at a step of a transaction or of its commit."""

from __future__ import annotations

from typing import ClassVar

from jepsen.nemesis.cut import Steps


class DDL(Steps):
    """One of the workload's definitions, while a transaction is between two calls."""

    name: ClassVar[str] = "ddl"
    interval: ClassVar[tuple[float, float]] = (0.3, 2.0)
