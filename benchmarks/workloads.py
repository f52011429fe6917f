"""Workloads by name; CH-benCHmark, the hybrid one and others join here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.tpcc.workload import ReferentialTpccWorkload, TpccWorkload

if TYPE_CHECKING:
    from benchmarks.tpcc.rules import Scale
    from benchmarks.workload import Workload

_CLASSES = {each.name: each for each in (TpccWorkload, ReferentialTpccWorkload)}

NAMES = tuple(_CLASSES)
"""The workloads that can be named on the command line."""


def make_workload(name: str, scale: Scale, seed: int, *, roam: bool) -> Workload:
    """Return a workload of a given size.

    Raises
    ------
    ValueError
        If there is no workload of that name.
    """
    if name not in _CLASSES:
        raise ValueError(f"no workload {name!r}; there are {', '.join(NAMES)}")
    return _CLASSES[name](scale, seed, roam=roam)
