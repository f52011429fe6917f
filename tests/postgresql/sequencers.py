"""PostgreSQL's sequencer in its forms, as tests call it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
import pytest
from psycopg import conninfo

from tique_udfs.postgresql import plain_script

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.targets.cluster import Cluster

LONG = 3_600_000
OWNER = "sequencer_owner"
GONE, UNRECOVERED, REFUSED = "TQ001", "TQ002", "TQ003"


class Caller:
    """A connection that calls the sequencer's functions by their names."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)

    def execute(self, sql: Any, *arguments: Any) -> Any:
        return self.connection.execute(sql, arguments or None)

    def row(self, name: str, *arguments: Any) -> Any:
        places = ", ".join(
            "%s" if isinstance(value, bytes) else "%s::bigint" for value in arguments
        )
        sql = f'SELECT * FROM tique."{name}"({places})'
        return self.execute(sql, *arguments).fetchone()

    def stable(self) -> int:
        found: int = self.row("lambda")[0]
        return found

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *arguments: self.row(name, *arguments)[0]


class Form(NamedTuple):
    """A form of the sequencer, in a database of its own."""

    name: str
    cluster: Cluster

    @property
    def database(self) -> str:
        return f"sequencer_{self.name}"

    def url(self, user: str | None = None) -> str:
        """How the server's own role connects, or another one."""
        changes = {"dbname": self.database, "user": user}
        return conninfo.make_conninfo(
            self.cluster.url, **{k: v for k, v in changes.items() if v is not None}
        )

    def install(self) -> None:
        """Make its functions anew, in a schema of an ordinary role."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS tique CASCADE")
            connection.execute(f"CREATE SCHEMA tique AUTHORIZATION {OWNER}")
        INSTALLERS[self.name](self)


def _install_plain(form: Form) -> None:
    with psycopg.connect(form.url(OWNER)) as connection:
        connection.execute(plain_script())


def _install_extension(form: Form) -> None:
    with psycopg.connect(form.url()) as connection:
        connection.execute("CREATE EXTENSION tique WITH SCHEMA tique")
        connection.execute(f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tique TO {OWNER}")


INSTALLERS: dict[str, Callable[[Form], None]] = {
    "plain": _install_plain,
    "extension": _install_extension,
}


class Service:
    """A form that is recovered; connections and clients of one test.

    Timestamps go on from ``base``, in which the tests before may have a part.
    """

    def __init__(self, form: Form) -> None:
        self.form = form
        self.callers: list[Caller] = []
        self.clients: list[int] = []
        self.main = self.connect()
        if not self.main.ready():
            self.main.recover(1000)
        self.base = self.main.cts()

    def connect(self, user: str = OWNER) -> Caller:
        self.callers.append(Caller(self.form.url(user)))
        return self.callers[-1]

    def join(self, milliseconds: int = LONG) -> int:
        self.clients.append(self.main.join_client(milliseconds))
        return self.clients[-1]

    def commit(self, client: int, *keys: int, after: int | None = None) -> int:
        return certify(self.main, client, *keys, after=after)

    def close(self) -> None:
        for caller in self.callers:
            caller.connection.close()
        with suppress(psycopg.Error):
            tidy = Caller(self.form.url(OWNER))
            for client in self.clients:
                with suppress(psycopg.Error):
                    tidy.leave_client(client)
            while cts := tidy.doubtful():
                tidy.fence(cts)
            tidy.connection.close()


def packed(*keys: int) -> bytes:
    return b"".join(key.to_bytes(16, "big") for key in keys)


def certify(caller: Caller, client: int, *keys: int, after: int | None = None) -> int:
    if after is None:
        after = caller.sts()
    return caller.certify(client, after, packed(*keys))


def refused(sqlstate: str, call: Callable[..., Any], *arguments: Any) -> psycopg.Error:
    with pytest.raises(psycopg.Error, match=r"^tique\.") as caught:
        call(*arguments)
    assert caught.value.sqlstate == sqlstate
    return caught.value
