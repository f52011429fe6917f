"""How a process shows the others that it lives, and how its statements are stopped.

The engine's own connection holds a session-level advisory lock for the engine's *mark*, a
random number: PostgreSQL drops it with the session, however that ends, and
``pg_locks`` shows it to all sessions. Other locks of the same connection show which
process recovers and which one folds. One more is a transaction's own, while the server
commits a transaction that may be fenced (:mod:`.sequencer`).

*Every connection of the engine* holds another lock for the mark, shared. A process that
finds this one given up ends the sessions with that lock: a process that is stopped
inside an engine transaction would have others wait for its locks.

*A connection that is lost* before the reply to a statement leaves a backend that may
still run it, and commit. A thread that asks for the statement's outcome ends that
backend and waits until it is gone (:meth:`Presence.await_lost`): a role may end its own
backends.

*Ctrl-C* must not end the engine's own connection, or the others would take the whole
process for dead: its requests are not interrupted (:mod:`tique_backends.undisturbed`).
"""

from __future__ import annotations

import secrets
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from tique_backends.errors import ConnectionLostError, EngineError, ErrorKind
from tique_backends.postgresql.connection import Connection
from tique_backends.undisturbed import undisturbed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tique_backends.postgresql.connection import Address
    from tique_backends.records import Row, Statistics

LOCKS = 0x71_75_65
"""The first number of tique's advisory locks (the sequencer's has another one)."""

_MARKS = LOCKS + 0x1_00_00_00
"""The first number of the locks for marks."""

RECOVERY, FOLDING, INSTALLATION, COMMITTING, LOCKED_ROWS = 1, 2, 3, 4, 5
_FIRST_MARK = 16
_LARGEST_MARK = 2**30 - 1

LOCK_OF_MARK = f"({_FIRST_MARK} + (mark & {_LARGEST_MARK}))"
"""The number of the lock that shows that a process is there, of its ``mark``."""

_HERE = (
    "locktype = 'advisory' AND objsubid = 2 AND database = (SELECT oid "
    "FROM pg_catalog.pg_database WHERE datname = current_database())"
)
"""The locks of two numbers in this database."""

ALIVE = (
    f"SELECT objid FROM pg_catalog.pg_locks WHERE {_HERE} AND granted "
    f"AND classid = {LOCKS}"
)
"""A query for the numbers of the locks that are held."""

_QUESTIONS = 3
_LOST_PATIENCE = 10.0
_PAUSE = 0.01


def sessions(mark: int) -> str:
    """A query for the backends of the sessions that have a mark."""
    return (
        f"SELECT pid FROM pg_catalog.pg_locks WHERE {_HERE} "
        f"AND classid = {_MARKS} AND objid = {mark}"
    )


class Presence:
    """The connection that lives as long as the engine; any thread may use it."""

    def __init__(self, address: Address, statistics: Statistics) -> None:
        self._address = address
        self._statistics = statistics
        self._lock = threading.Lock()
        self._lost: set[int] = set()
        self._held: set[int] = set()
        self.mark = secrets.randbits(30)
        self._connection = self.connect()

    def connect(self) -> Connection:
        """Open a connection of this engine."""
        return Connection(
            self._address,
            self._statistics,
            f"pg_advisory_lock_shared({_MARKS}, {self.mark})",
        )

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
            self._held.clear()
            self._connection = self.connect()
        return self._connection.ask(sql, parameters)

    def hold(self, number: int) -> bool:
        """Take a lock that is kept until the connection ends; False if it is taken."""

        def take() -> bool:
            ((taken,),) = self.ask(f"SELECT pg_try_advisory_lock({LOCKS}, {number})")
            if taken:
                self._held.add(number)
            return bool(taken)

        return number in self._held or undisturbed(take)

    def show(self) -> None:
        """Show that the process is there, if it does not yet."""
        self.hold(_FIRST_MARK + self.mark)

    def shown(self) -> None:
        """Note that a function of its own shows it."""
        self.held(_FIRST_MARK + self.mark)

    def held(self, number: int) -> None:
        """Note a lock that this connection has taken in a function of its own."""
        self._held.add(number)

    def drop(self, number: int) -> None:
        """Give a lock back."""

        def give() -> None:
            self._held.discard(number)
            self.ask(f"SELECT pg_advisory_unlock({LOCKS}, {number})")

        if number in self._held:
            undisturbed(give)

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
