"""Targets by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.targets.base import Target

TIQUE_SUFFIX = "+tique"

_MODULES = {
    "citus": "benchmarks.targets.citus_native",
    "citus+tique": "benchmarks.targets.citus_tique",
    "duckdb": "benchmarks.targets.duckdb_native",
    "duckdb+tique": "benchmarks.targets.duckdb_tique",
    "monetdb": "benchmarks.targets.monetdb_native",
    "monetdb+tique": "benchmarks.targets.monetdb_tique",
    "postgresql": "benchmarks.targets.postgresql_native",
    "postgresql+tique": "benchmarks.targets.postgresql_tique",
    "postgresql+tique-plain": "benchmarks.targets.postgresql_tique_plain",
}

NAMES = tuple(_MODULES)
"""The targets that can be named on the command line."""


def target_class(name: str) -> type[Target]:
    """Return the class of a target; its driver is imported only now.

    Raises
    ------
    ValueError
        If there is no target of that name.
    """
    if name not in _MODULES:
        raise ValueError(f"no target {name!r}; there are {', '.join(NAMES)}")
    found: type[Target] = import_module(_MODULES[name]).TARGET
    return found


def baseline_of(name: str) -> str | None:
    """Return the target that a target is set against, or None for a baseline."""
    engine, suffix, _form = name.partition(TIQUE_SUFFIX)
    return engine if suffix else None
