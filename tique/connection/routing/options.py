"""The options of routing, of a connection and as settings: how old, and what if older."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tique import errors
from tique.database.url import parse_url
from tique_backends import registry

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from tique.database.url import DatabaseURL

FRESHNESS, ON_STALE = "tique.freshness", "tique.on_stale"
ROUTING = frozenset({FRESHNESS, ON_STALE})
"""The settings of routing."""

OWN, OFF = math.inf, -math.inf
"""Seconds by which no state is too old, and none is young enough: nothing is routed."""
_WORDS = {"own": OWN, "off": OFF}
_WAYS = ("source", "wait", "error")


def freshness_of(value: float | str) -> float:
    """Return a freshness in seconds; ProgrammingError if it is none."""
    folded = str(value).strip().lower()
    try:
        seconds = _WORDS[folded] if folded in _WORDS else float(folded)
    except ValueError:
        seconds = math.nan
    if folded not in _WORDS and not 0 <= seconds < math.inf:
        raise _wrong(f"freshness {value!r} is none: give seconds, 'own' or 'off'")
    return seconds


def shown_freshness(seconds: float) -> str:
    """Return a freshness as SHOW has it."""
    words = [word for word, meaning in _WORDS.items() if meaning == seconds]
    return words[0] if words else f"{seconds:g}"


def way_of(value: str) -> str:
    """Return what is done if the replica is too old; ProgrammingError if it is nothing."""
    if value.lower() not in _WAYS:
        raise _wrong(f"on_stale {value!r} is not one of {', '.join(_WAYS)}")
    return value.lower()


def _wrong(message: str) -> errors.ProgrammingError:
    return errors.ProgrammingError(message, sqlstate="22023")


@dataclass(frozen=True)
class RoutingOptions:
    """Where a connection's queries may run besides its database, and when."""

    replica: DatabaseURL
    freshness: float
    on_stale: str


def routing_options(
    given: Mapping[str, str],
    replica: str | os.PathLike[str] | None,
    freshness: float | str | None,
    on_stale: str | None,
) -> RoutingOptions | None:
    """Return a connection's options, of which the URL has ``given``; InterfaceError if they are wrong."""
    place = replica or given.get("replica")
    fresh = freshness_of(
        given.get("freshness", "off") if freshness is None else freshness
    )
    way = way_of(on_stale or given.get("on_stale", _WAYS[0]))
    if place is None and fresh == OFF:
        return None
    url = None if place is None else parse_url(place)
    if url is None or registry.has_server(url.backend) or url.in_memory:
        raise errors.InterfaceError(
            "freshness is that of a replica, which is a file: replica='duckdb:///path'"
        )
    return RoutingOptions(url, fresh, way)
