"""The backend's functions for the registry: from a URL to an open engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.location import Location, Server
from tique_backends.monetdb.engine import MonetDBEngine
from tique_backends.monetdb.sessions.connection import DEFAULT_PORT, Address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tique_backends.engine import Engine

__all__ = ["MonetDBEngine", "locate", "open_engine"]

_HOST = "localhost"
_USER = _PASSWORD = "monetdb"  # noqa: S105
"""The account that MonetDB itself gives every new database."""


@dataclass(frozen=True, kw_only=True)
class MonetDBLocation(Location):
    """A database of a server."""

    address: Address


def locate(
    path: str, options: Mapping[str, str], server: Server | None = None
) -> Location:
    """Parse a URL to the server's database that it names.

    Parameters
    ----------
    path
        The database's name.
    options
        ``sock``: the path of a Unix socket.
    server
        The server's place and the account; MonetDB's own defaults for missing parts.

    Raises
    ------
    EngineError
        PROGRAMMING if the database's name is missing or an option is unknown.
    """
    if not path or "/" in path or path == ":memory:":
        raise EngineError(
            ErrorKind.PROGRAMMING,
            "a MonetDB URL names a database: monetdb://user:password@host:port/name",
        )
    unknown = sorted(set(options) - {"sock"})
    if unknown:
        raise EngineError(
            ErrorKind.PROGRAMMING,
            f"MonetDB has no option {unknown[0]!r}; there is: sock",
        )
    server = server or Server()
    address = Address(
        host=server.host or _HOST,
        port=server.port or DEFAULT_PORT,
        socket=options.get("sock"),
        database=path,
        user=_USER if server.user is None else server.user,
        password=_PASSWORD if server.password is None else server.password,
    )
    place = address.socket or f"{address.host}:{address.port}"
    identity = f"monetdb://{place}/{path}"
    return MonetDBLocation(path, identity, dict(options), address=address)


def open_engine(location: Location) -> Engine:
    """Connect to the database and become its owner.

    Raises
    ------
    EngineError
        LOCKED if another process has it open, OPERATIONAL if no server answers.
    """
    assert isinstance(location, MonetDBLocation)
    return MonetDBEngine(location.address)
