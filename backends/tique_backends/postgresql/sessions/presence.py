"""How a process shows the others that it lives, and how its statements are stopped.

The engine's own connection holds a session-level advisory lock for the engine's *mark*, a
random number: PostgreSQL drops it with the session, however that ends, and
``pg_locks`` shows it to all sessions.

*Every connection of the engine* holds another lock, of the mark and a number of its own. A
process that finds this one given up ends the sessions with that mark: a process that is
stopped inside an engine transaction would have others wait for its locks.

*Strangers (P11).* Any role may take any advisory lock. So these are signs and nothing more:
no process ever waits for one (each is tried for, under a number that cannot be guessed
before), and a sign counts for the sessions of its own role only. Where processes wait for each other it is
for rows and tables of schema ``tique``, which no role but its owner's may lock.

*A connection that is lost* before the reply to a statement leaves a backend that may
still run it, and commit. A thread that asks for the statement's outcome ends that
backend and waits until it is gone (:meth:`Presence.await_lost`): a role may end its own
backends.

*Ctrl-C* must not end the engine's own connection, or the others would take the whole
process for dead: its requests are not interrupted (:mod:`tique_backends.concurrency.undisturbed`).
"""

from __future__ import annotations

import secrets
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from tique_backends.concurrency.undisturbed import undisturbed
from tique_backends.errors import ConnectionLostError, EngineError, ErrorKind
from tique_backends.postgresql.catalog.paths import path_locked
from tique_backends.postgresql.sessions.connection import Connection
from tique_backends.postgresql.sessions.holders import (
    HOLDERS,
    TAKEN,
    naming,
    naming_takers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tique_backends.postgresql.sessions.connection import Address
    from tique_backends.records import Row, Statistics

LOCKS = 0x71_75_65
"""The first number of tique's advisory locks (the sequencer's has another one)."""

_MARKS = 2**30
"""The first number of a connection's lock is this and its mark."""

_FIRST_MARK = 16
_LARGEST_MARK = 2**30 - 1

LOCK_OF_MARK = f"({_FIRST_MARK} + (mark & {_LARGEST_MARK}))"
"""The number of the lock that shows that a process is there, of its ``mark``."""

HERE = (
    "locktype = 'advisory' AND objsubid = 2 AND database = (SELECT oid "
    "FROM pg_catalog.pg_database WHERE datname = current_database())"
)
"""The locks of two numbers in this database."""

ALIVE = (
    "SELECT objid, usename FROM pg_catalog.pg_locks JOIN pg_catalog.pg_stat_activity "
    f"USING (pid) WHERE {HERE} AND granted AND classid = {LOCKS} "
    "AND usename IS NOT NULL"
)
"""A query for the numbers of the locks that are held, and the roles that hold them."""

_QUESTIONS = 3
_LOST_PATIENCE = 10.0
_PAUSE = 0.01
_MOMENT = 0.1


_Asked = TypeVar("_Asked", "Connection", "Presence")


def _on_own_path(asked: _Asked) -> _Asked:
    # The sequencer's search for a circle, under its mutex, would be compiled each time.
    asked.ask(f"SELECT {path_locked('FALSE')}, set_config('jit', 'off', FALSE)")
    return asked


def sessions(mark: int) -> str:
    """A query for the backends of the sessions that have a mark, and claim it."""
    return (
        "SELECT pid FROM pg_catalog.pg_locks "
        f"WHERE {HERE} AND granted AND classid = {_MARKS + mark}"
    )


class Presence:
    """The connection that lives as long as the engine; any thread may use it."""

    def __init__(self, address: Address, statistics: Statistics) -> None:
        self._address = address
        self._statistics = statistics
        self._lock = threading.Lock()
        self._lost: set[int] = set()
        self.mark = secrets.randbits(30)
        self._setting = "NULL"
        # Before the mark can be seen.
        self._connection = self._marked(
            f"pg_try_advisory_lock({LOCKS}, {_FIRST_MARK + self.mark})"
        )
        self._connect: Callable[[], Connection] = self._marked

    def connect(self) -> Connection:
        """Open a connection of this engine, whose waits that fail name their holders."""
        for is_last in (False, False, True):
            try:
                connection = self._marked()
                break
            except EngineError as error:
                found: list[Row] | None = None
                with suppress(EngineError):
                    found = self.ask(TAKEN)
                # One that begins or ends counts for the limit and is not shown.
                if found or found is None or is_last:
                    raise naming_takers(error, found or ()) from error
                time.sleep(_MOMENT)
        connection.naming = self._naming
        return connection

    def _naming(self, error: EngineError, waiting: int) -> EngineError:
        with suppress(EngineError):
            return naming(error, self.ask(HOLDERS, [waiting]))
        return error

    def _marked(self, sign: str = "NULL") -> Connection:
        mark = f"pg_try_advisory_lock({_MARKS + self.mark}, {secrets.randbits(31)})"
        greeting = f"concat({sign}, {mark}, {self._setting})"
        return Connection(self._address, self._statistics, greeting)

    def prepare(self, setting: str) -> None:
        """Let each session of the engine, also this one, evaluate an expression first."""
        self._setting = setting
        self.ask(f"SELECT {setting}")

    def connect_own(self) -> Connection:
        """Open a connection for tique's own statements, with a search path for them."""
        return _on_own_path(self.connect())

    def own(self) -> None:
        """Let the engine's own connection be one for tique's statements from now on."""
        self._connect = lambda: _on_own_path(self._marked())
        _on_own_path(self)

    def ask(self, sql: str, parameters: Sequence[Any] | None = None) -> list[Row]:
        """Ask the engine's own connection; over a new one if it is lost.

        The old one's locks are gone then: the other processes see that, and end the new
        one too if it comes before they are done. All requests here may be repeated.
        """
        return undisturbed(lambda: self._ask(sql, parameters))

    def _ask(self, sql: str, parameters: Sequence[Any] | None) -> list[Row]:
        with self._lock:
            for _ in range(_QUESTIONS - 1):
                with suppress(ConnectionLostError):
                    return self._asked(sql, parameters)
            return self._asked(sql, parameters)

    def _asked(self, sql: str, parameters: Sequence[Any] | None) -> list[Row]:
        if not self._connection.is_open:
            self._connection = self._connect()
        return self._connection.ask(sql, parameters)

    def lost(self, connection: Connection) -> None:
        """Note that a connection broke while the server may have had a statement."""
        self._lost.add(connection.pid)

    def await_lost(self) -> None:
        """Wait until no statement of a lost connection can commit any more.

        Raises
        ------
        EngineError
            OPERATIONAL if one of them keeps running; it may be asked again.
        """
        deadline = time.monotonic() + _LOST_PATIENCE
        while lost := list(self._lost):
            rows = self.ask(
                "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid = ANY (CAST($1 AS INTEGER[])) AND usename = session_user",
                [lost],
            )
            self._lost.difference_update(set(lost) - {pid for pid, _ in rows})
            if rows and time.monotonic() > deadline:
                raise EngineError(
                    ErrorKind.OPERATIONAL,
                    "PostgreSQL still runs a statement of a connection that was lost",
                )
            if rows:
                time.sleep(_PAUSE)

    def end(self, mark: int, role: str | None = None) -> None:
        """End the sessions of a process that was given up, if this role may do that.

        Only those of the role (None: this one): any role can see a mark, and claim it.
        """
        self.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = "
            "coalesce(CAST($1 AS NAME), session_user) AND pg_has_role(usesysid, 'USAGE') "
            f"AND pid IN ({sessions(mark)})",
            [role],
        )

    def close(self) -> None:
        """Close the connection, which gives its locks back."""
        self._connection.close()
