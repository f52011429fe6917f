"""From a URL's scheme to a backend.

Other packages add backends by entry points of the group ``tique.backends``: the name is
the URL's scheme, the object a module as :class:`Backend` describes it. tique's own come
first, and nothing is looked for when one of them is wanted.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol, cast

from tique_backends.concurrency.undisturbed import undisturbed
from tique_backends.errors import EngineError, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tique_backends.engine import Engine
    from tique_backends.location import Location, Server

_MODULES = {
    "duckdb": "tique_backends.duckdb",
    "monetdb": "tique_backends.monetdb.backend",
    "postgresql": "tique_backends.postgresql.backend",
}

_SERVERS = frozenset({"monetdb", "postgresql"})
"""Backends whose databases are a server's: their URLs name the server."""

GROUP = "tique.backends"
"""The entry points by which other packages add backends."""


class Backend(Protocol):
    """The functions that a backend's package offers.

    Attributes
    ----------
    has_server : bool
        Whether its URLs name a server, rather than a file. (tique's own backends are
        known without being loaded.)
    """

    locate: Callable[[str, Mapping[str, str], Server | None], Location]
    open_engine: Callable[[Location], Engine]


@lru_cache(maxsize=1)
def _others() -> Mapping[str, str]:
    """The modules of other packages' backends, by name."""
    return {each.name: each.value for each in entry_points(group=GROUP)}


def names() -> tuple[str, ...]:
    """The known backends' names."""
    return tuple({**_others(), **_MODULES})


def is_known(name: str) -> bool:
    """Whether there is a backend of that name."""
    return name in _MODULES or name in _others()


def has_server(name: str) -> bool:
    """Whether a URL of that backend names a server, rather than a file.

    Raises
    ------
    EngineError
        As :func:`find`, of a backend that is not tique's own.
    """
    if name in _MODULES:
        return name in _SERVERS
    return bool(getattr(find(name), "has_server", False))


def find(name: str) -> Backend:
    """Return the backend for a URL scheme.

    Raises
    ------
    EngineError
        UNSUPPORTED if there is none, or its engine is not installed.
    """
    module = _MODULES.get(name) or _others().get(name)
    if module is None:
        known = ", ".join(names())
        raise EngineError(
            ErrorKind.UNSUPPORTED, f"no backend {name!r}; there is: {known}"
        )
    try:
        # An import that Ctrl-C cuts short leaves half a package, for good.
        return cast("Backend", undisturbed(lambda: import_module(module)))
    except ModuleNotFoundError as error:
        advice = f": pip install 'tique[{name}]'" if name in _MODULES else ""
        raise EngineError(
            ErrorKind.UNSUPPORTED,
            f"backend {name!r} needs the package {error.name!r}{advice}",
        ) from error
