"""Database URLs: ``backend:///path?option=value``, ``backend://…@host:port/name``."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import unquote

from tique.errors import InterfaceError, NotSupportedError
from tique_backends import registry
from tique_backends.location import Server

if TYPE_CHECKING:
    from collections.abc import Mapping

MEMORY = ":memory:"
_ROUTING = ("replica", "freshness", "on_stale")
_SHOWN = ("host", "port", "sock", "sequencer")

_SHAPES = (
    "a database URL looks like duckdb:///relative/path, duckdb:////absolute/path, "
    "duckdb:///:memory: or monetdb://user:password@host:port/name, options follow as "
    "in ?threads=4"
)
_LAST_PORT = 65535
_PLACE = re.compile(
    r"(?:(?P<name>[^\[\]:@]*)|\[(?P<address>[^\[\]@]+)\])(?::(?P<port>[0-9]{1,5}))?"
)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*", re.IGNORECASE)


@dataclass(frozen=True)
class DatabaseURL:
    """The place of a database and the options to open it.

    Attributes
    ----------
    backend : str
        The engine's name, in lower case.
    path : str
        The database's file as the URL has it, decoded; ``:memory:`` for none.
    options : Mapping[str, str]
        The options after ``?``, decoded. Their values stay out of ``repr``: one of
        them may be a password.
    server : Server or None
        The server's place and the user who logs in, for a backend that has one.
    isolation_level : str or None
        The option of that name, which is the connection's and not the engine's.
    routing : Mapping[str, str]
        The connection's options ``replica``, ``freshness`` and ``on_stale``, if given.
    """

    backend: str
    path: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    server: Server | None = field(default=None, repr=False)
    isolation_level: str | None = field(default=None, repr=False)
    routing: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    @property
    def in_memory(self) -> bool:
        """Whether the database has no file and ends with its last connection."""
        return self.path == MEMORY


def parse_url(url: str | os.PathLike[str]) -> DatabaseURL:
    """Take a database URL apart.

    Parameters
    ----------
    url
        ``duckdb:///relative/path``, ``duckdb:////absolute/path``, ``duckdb://`` or
        ``duckdb:///:memory:``, or ``monetdb://user:password@host:port/name``;
        ``%XX`` stands for a byte of UTF-8.

    Raises
    ------
    InterfaceError
        If ``url`` is a bare path, names an unknown backend or a server, or cannot
        be decoded. The message never repeats a part that may hold a password.
    """
    if not isinstance(url, str | os.PathLike):
        raise InterfaceError(f"not a database URL: {type(url).__name__}; {_SHAPES}")
    scheme, separator, rest = os.fspath(url).partition("://")
    if not separator or not _SCHEME.fullmatch(scheme):
        raise InterfaceError(f"not a database URL, the backend is missing; {_SHAPES}")
    backend = scheme.lower()
    if not registry.is_known(backend):
        raise InterfaceError(_unknown(backend))
    location, _, query = rest.partition("?")
    if "#" in rest:
        raise InterfaceError(f"'#' in a {backend} URL must be written %23")
    authority, _, path = location.partition("/")
    given = _options(query)
    level = given.pop("isolation_level", None)
    routing = {name: given.pop(name) for name in _ROUTING if name in given}
    options = MappingProxyType(given)
    if registry.has_server(backend):
        name = _decode(path, "path")
        if not name:
            raise InterfaceError(
                f"a {backend} URL names a database: "
                f"{backend}://user:password@host:port/name"
            )
        return DatabaseURL(backend, name, options, _server(authority), level, routing)
    if authority:
        raise InterfaceError(
            f"{backend} opens a file and has no server: after {backend}: come three "
            f"slashes for a relative path, four for an absolute one; {_SHAPES}"
        )
    place = _decode(path, "path") or MEMORY
    return DatabaseURL(backend, place, options, None, level, routing)


def shown_url(url: DatabaseURL) -> str:
    """A source's URL as a replica keeps it: without password, and what else is secret."""
    server = url.server
    if server is None:
        raise NotSupportedError(
            f"a {url.backend} database cannot be replicated: it belongs to one process, "
            "whose commits no other can follow"
        )
    user = f"{server.user}@" if server.user else ""
    port = f":{server.port}" if server.port else ""
    shown = "&".join(f"{n}={url.options[n]}" for n in _SHOWN if n in url.options)
    place = f"{user}{server.host or ''}{port}/{url.path}{'?' * bool(shown)}{shown}"
    return f"{url.backend}://{place}"


def _server(authority: str) -> Server:
    """Take ``user:password@host:port`` apart; all of it may be missing."""
    account, _, place = authority.rpartition("@")
    user, colon, password = account.partition(":")
    found = _PLACE.fullmatch(place)
    if found is None:
        raise InterfaceError(
            "after the '@' of a database URL comes host:port; in the user's name and "
            "the password, '@', ':' and '/' must be written %40, %3A and %2F"
        )
    port = int(found["port"]) if found["port"] else None
    if port is not None and not 0 < port <= _LAST_PORT:
        raise InterfaceError(f"a port is between 1 and {_LAST_PORT}")
    return Server(
        host=_decode(found["name"] or found["address"] or "", "host") or None,
        port=port,
        user=_decode(user, "user's name") or None,
        password=_decode(password, "password") if colon else None,
    )


def _unknown(backend: str) -> str:
    dialect, plus, engine = backend.rpartition("+")
    if plus and registry.is_known(engine):
        return (
            f"{dialect}+{engine}:// is a form for SQLAlchemy's create_engine; "
            f"tique.connect takes {engine}:///path"
        )
    known = ", ".join(registry.names())
    return f"unknown backend {backend!r}, known are: {known}; {_SHAPES}"


def _options(query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for option in filter(None, query.split("&")):
        encoded_name, equals, encoded_value = option.partition("=")
        name = _decode(encoded_name, "name of an option")
        if not name or not equals:
            raise InterfaceError("an option in a database URL is written name=value")
        if name in options:
            raise InterfaceError(f"the database URL sets option {name!r} twice")
        options[name] = _decode(encoded_value, f"value of option {name!r}")
    return options


def _decode(text: str, what: str) -> str:
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise InterfaceError(
            f"stray '%' in the {what} of a database URL; write it as %25"
        )
    try:
        decoded = unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise InterfaceError(
            f"the {what} of a database URL is not UTF-8 after decoding"
        ) from None
    if "\0" in decoded:
        raise InterfaceError(f"NUL in the {what} of a database URL")
    return decoded
