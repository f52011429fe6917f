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

Freshness = float | str
"""Seconds, :data:`OWN`, or :data:`OFF`: nothing is routed."""

OWN, OFF = "own", "off"
_WAYS = ("source", "wait", "error")


def freshness_of(value: float | str) -> Freshness:
    """Return a freshness; ProgrammingError if it is none."""
    folded = str(value).strip().lower()
    if folded in (OWN, OFF):
        return folded
    try:
        seconds = float(folded)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise _wrong(f"freshness {value!r} is none: give seconds, 'own' or 'off'")
    return seconds


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
    freshness: Freshness
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
        given.get("freshness", OFF) if freshness is None else freshness
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
