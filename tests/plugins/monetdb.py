"""A MonetDB server of the test run's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tique_backends.monetdb.server import MonetDBServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pymonetdb


def connect_natively(url: str, **changes: Any) -> pymonetdb.Connection:
    """Connect to a server by its URL, without tique; autocommitting."""
    import pymonetdb

    parts = urlsplit(url)
    arguments = {
        "database": parts.path.removeprefix("/"),
        "hostname": parts.hostname,
        "port": parts.port or 50000,
        "unix_socket": parse_qs(parts.query).get("sock", [None])[0],
        "username": parts.username,
        "password": parts.password,
        "autocommit": True,
    }
    return pymonetdb.connect(**(arguments | changes))


@pytest.fixture(scope="session")
def monetdb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MonetDBServer]:
    """One server for the whole run."""
    with MonetDBServer(tmp_path_factory.mktemp("monetdb") / "server") as server:
        yield server
