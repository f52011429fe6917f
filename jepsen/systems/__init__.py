"""The systems under test, by their URL's scheme."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from jepsen.systems.base import System, Unusable

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["System", "Unusable", "kind_of", "prepare"]

_MODULES = {
    "citus": "jepsen.systems.citus",
    "duckdb": "jepsen.systems.duckdb",
    "monetdb": "jepsen.systems.monetdb",
    "postgresql": "jepsen.systems.postgresql",
}


def kind_of(url: str) -> type[System]:
    """The class of a URL's system.

    Raises
    ------
    Unusable
        If there is none.
    """
    scheme = url.partition(":")[0]
    if scheme not in _MODULES:
        raise Unusable(
            f"no system has URLs that begin with {scheme!r}; there are: "
            + ", ".join(f"{name}:" for name in _MODULES)
        )
    kind: type[System] = import_module(_MODULES[scheme]).SYSTEM
    return kind


def prepare(url: str, folder: Path) -> System:
    """The system of a URL, not yet started."""
    return kind_of(url)(url, folder)
