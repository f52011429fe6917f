"""The backend's functions for the registry: from a URL to an open engine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg
import psycopg.pq

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.location import Location, Server
from tique_backends.postgresql.catalog.installing import FORMS
from tique_backends.postgresql.citus.engine import (
    CitusEngine,
    CitusGuestEngine,
    is_distributed,
)
from tique_backends.postgresql.engine import PostgreSQLEngine
from tique_backends.postgresql.guests import GuestEngine, is_guest
from tique_backends.postgresql.sessions.connection import Address
from tique_backends.postgresql.sessions.presence import Presence
from tique_backends.records import Statistics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tique_backends.engine import Engine

__all__ = ["PostgreSQLEngine", "locate", "open_engine"]

_OWN = "sequencer"

# Of the owner of schema tique, and of another role.
_SINGLE = (PostgreSQLEngine, GuestEngine)
_DISTRIBUTED = (CitusEngine, CitusGuestEngine)


@dataclass(frozen=True, kw_only=True)
class PostgreSQLLocation(Location):
    """A database of a server."""

    address: Address
    sequencer: str | None


def locate(
    path: str, options: Mapping[str, str], server: Server | None = None
) -> Location:
    """Parse a URL to the server's database that it names.

    Parameters
    ----------
    path
        The database's name.
    options
        ``sequencer``: ``extension`` or ``plain``; all others are libpq's.
    server
        The server's place and the role; libpq's own defaults for missing parts.

    Raises
    ------
    EngineError
        PROGRAMMING if the database's name is missing or an option is unknown.
    """
    if not path or "/" in path or path == ":memory:":
        raise EngineError(
            ErrorKind.PROGRAMMING,
            "a PostgreSQL URL names a database: "
            "postgresql://user:password@host:port/name",
        )
    sequencer = options.get(_OWN)
    if sequencer not in (None, *FORMS):
        raise EngineError(
            ErrorKind.PROGRAMMING,
            f"sequencer={sequencer} is not one of {', '.join(FORMS)}",
        )
    server = server or Server()
    account = {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
    }
    if "replication" in options:
        raise EngineError(
            ErrorKind.PROGRAMMING, "PostgreSQL's option replication is not supported"
        )
    parameters = {
        **({} if "service" in options else _surroundings()),
        "dbname": path,
        **{name: str(value) for name, value in account.items() if value is not None},
        **{name: value for name, value in options.items() if name != _OWN},
    }
    try:
        psycopg.conninfo.make_conninfo(**parameters)
    except psycopg.Error as error:
        raise EngineError(
            ErrorKind.PROGRAMMING, f"PostgreSQL's options are libpq's: {error}"
        ) from error
    shown = sorted(
        (name, value)
        for name, value in parameters.items()
        if not name.endswith("password")
    )
    identity = "postgresql://" + "&".join(f"{name}={value}" for name, value in shown)
    return PostgreSQLLocation(
        path,
        identity,
        dict(options),
        address=Address(parameters),
        sequencer=sequencer,
    )


def _surroundings() -> dict[str, str]:
    """The parameters that ``PG*`` variables set now: all sessions have these (P12)."""
    found = {
        option.keyword.decode(): option.val.decode()
        for option in psycopg.pq.Conninfo.get_defaults()
        if option.val and option.envvar and option.envvar.decode() in os.environ
    }
    # What a service says comes before other variables.
    return {"service": found["service"]} if "service" in found else found


def open_engine(location: Location) -> Engine:
    """Connect to the database.

    Raises
    ------
    EngineError
        OPERATIONAL if no server answers, UNSUPPORTED behind a connection pooler,
        PROGRAMMING if the role was not granted anything.
    """
    assert isinstance(location, PostgreSQLLocation)
    statistics = Statistics()
    presence = Presence(location.address, statistics)
    try:
        engines = _DISTRIBUTED if is_distributed(presence) else _SINGLE
        engine = engines[is_guest(presence)]
        return engine(presence, statistics, location.sequencer)
    except BaseException:
        presence.close()
        raise
