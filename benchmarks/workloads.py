"""Workloads by name; CH-benCHmark, the hybrid one and others join here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.tpcc.workload import ReferentialTpccWorkload, TpccWorkload

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.tpcc.rules import Scale
    from benchmarks.workload import Workload


def _tpcc(scale: Scale, seed: int, roam: bool) -> Workload:
    return TpccWorkload(scale, seed, roam=roam)


def _referential(scale: Scale, seed: int, roam: bool) -> Workload:
    return ReferentialTpccWorkload(scale, seed, roam=roam)


_MAKERS: dict[str, Callable[[Scale, int, bool], Workload]] = {
    TpccWorkload.name: _tpcc,
    ReferentialTpccWorkload.name: _referential,
}

NAMES = tuple(_MAKERS)
"""The workloads that can be named on the command line."""


def make_workload(name: str, scale: Scale, seed: int, *, roam: bool) -> Workload:
    """Return a workload of a given size.

    Raises
    ------
    ValueError
        If there is no workload of that name.
    """
    if name not in _MAKERS:
        raise ValueError(f"no workload {name!r}; there are {', '.join(NAMES)}")
    return _MAKERS[name](scale, seed, roam)
