"""From a URL's scheme to a backend."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.undisturbed import undisturbed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tique_backends.base import Engine, Location, Server

_MODULES = {
    "duckdb": "tique_backends.duckdb",
    "monetdb": "tique_backends.monetdb.backend",
    "postgresql": "tique_backends.postgresql.backend",
}

_SERVERS = frozenset({"monetdb", "postgresql"})
"""Backends whose databases are a server's: their URLs name the server."""


class Backend(Protocol):
    """The functions that a backend's package offers."""

    locate: Callable[[str, Mapping[str, str], Server | None], Location]
    open_engine: Callable[[Location], Engine]


def names() -> tuple[str, ...]:
    """The known backends' names."""
    return tuple(_MODULES)


def has_server(name: str) -> bool:
    """Whether a URL of that backend names a server, rather than a file."""
    return name in _SERVERS


def find(name: str) -> Backend:
    """Return the backend for a URL scheme.

    Raises
    ------
    EngineError
        UNSUPPORTED if there is none, or its engine is not installed.
    """
    try:
        module = _MODULES[name]
    except KeyError:
        known = ", ".join(_MODULES)
        raise EngineError(
            ErrorKind.UNSUPPORTED, f"no backend {name!r}; there is: {known}"
        ) from None
    try:
        # An import that Ctrl-C cuts short leaves half a package, for good.
        return cast("Backend", undisturbed(lambda: import_module(module)))
    except ModuleNotFoundError as error:
        raise EngineError(
            ErrorKind.UNSUPPORTED,
            f"backend {name!r} needs the package {error.name!r}: "
            f"pip install 'tique[{name}]'",
        ) from error
