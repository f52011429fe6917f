"""The time that a connection may spend in a state (P12): PostgreSQL's four time-outs.

*Invariant.* A connection runs a call, which has its lock; or it rests, in a transaction or
outside. A state with a limit has a thread that waits beside it and ends with it, so one that
is late acts on no other state.

*A call* (``statement_timeout``, ``transaction_timeout``): when the time is over, the engine's
statement that runs for the application is stopped, or the next one does not begin, once; and
every wait for a row lock fails. So the application's statement fails, and what undoes it, or a
commit that has begun, is not stopped (:attr:`tique_backends.session.Session.expires`).

*A rest* (``idle_in_transaction_session_timeout``, ``idle_session_timeout``; and the transaction's
time may be over then, too): the connection is closed, which rolls back and gives locks back.
Every later call fails with the error that the server would have ended its session with. The server's own
sessions are not under these limits: they are idle while the application's transaction is not.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from tique import errors
from tique_backends.settings import (
    IDLE_IN_TRANSACTION,
    IDLE_SESSION,
    STATEMENT_TIMEOUT,
    TRANSACTION_TIMEOUT,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tique.connection.execution import Execution

_AGAIN = 0.05
_CANCELLED = "57014"
_ENDING = "terminating connection due to"
_OVERDUE = {
    STATEMENT_TIMEOUT: ("canceling statement due to statement timeout", _CANCELLED),
    TRANSACTION_TIMEOUT: (f"{_ENDING} transaction timeout", "25P04"),
    IDLE_IN_TRANSACTION: (f"{_ENDING} idle-in-transaction timeout", "25P03"),
    IDLE_SESSION: (f"{_ENDING} idle-session timeout", "57P05"),
}


def overdue(name: str) -> errors.DatabaseError:
    """The server's error, in psycopg's class, when the time of this setting is over."""
    message, sqlstate = _OVERDUE[name]
    is_state = sqlstate.startswith("25")
    kind = errors.InternalError if is_state else errors.OperationalError
    return kind(message, sqlstate=sqlstate)


class Deadlines:
    """The limits of one connection."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self.limits: dict[str, float] = {}
        self._began = time.monotonic()
        """When the call began that began the transaction."""
        self._is_over = threading.Event()
        """Set when the last rest has ended."""

    def limit(self, name: str, seconds: float | None) -> None:
        """Let a state take so many seconds; None: as many as it takes."""
        self.limits.pop(name, None)
        if seconds is not None:
            self.limits[name] = seconds
            execution = self._execution
            if name != STATEMENT_TIMEOUT and not isinstance(execution.lock, _Lock):
                execution.lock = _Lock(execution.lock, self)

    def shown(self) -> dict[str, float]:
        """The limits that the server does not know of, in seconds."""
        usual = dict.fromkeys((IDLE_IN_TRANSACTION, IDLE_SESSION), 0.0)
        return {
            name: seconds
            for name, seconds in {**usual, **self.limits}.items()
            if name != STATEMENT_TIMEOUT
        }

    def _soonest(self, **since: float) -> tuple[float, str] | None:
        """The moment when one of these limits is over, counted from a moment each."""
        ends = [
            (moment + self.limits[name], name)
            for name, moment in since.items()
            if name in self.limits
        ]
        return min(ends, default=None)

    @property
    def _of_transaction(self) -> dict[str, float]:
        return {TRANSACTION_TIMEOUT: self._execution.controls.begun or self._began}

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Let the statement in this block take its time.

        Raises
        ------
        OperationalError
            It took longer (SQLSTATE 57014).
        InternalError
            Its transaction did (25P04).
        """
        found = self._soonest(
            **{STATEMENT_TIMEOUT: time.monotonic()}, **self._of_transaction
        )
        if found is None:
            yield
            return
        expires, name = found
        execution, done = self._execution, threading.Event()
        session = execution.session
        session.expires = expires

        def watch() -> None:
            if done.wait(expires - time.monotonic()):
                return
            session.expire(expires)
            while True:
                execution.cancel_waits()
                if done.wait(_AGAIN):
                    return

        threading.Thread(target=watch, daemon=True, name="tique-deadline").start()
        try:
            yield
        except (errors.SerializationError, errors.OperationalError) as error:
            is_lost = isinstance(error, errors.SerializationError)
            if time.monotonic() < expires or not (
                is_lost or error.sqlstate == _CANCELLED
            ):
                raise
            if name == TRANSACTION_TIMEOUT:
                execution.terminate(name)
            raise overdue(name) from (None if is_lost else error)
        finally:
            done.set()
            session.expires = None

    def wake(self) -> None:
        """Note that a call begins."""
        self._is_over.set()
        if not self._execution.in_transaction:
            self._began = time.monotonic()

    def rest(self, lock: Any) -> None:
        """Note that no call has the lock from now on."""
        execution, now = self._execution, time.monotonic()
        if execution.closed:
            return
        limits = {IDLE_SESSION: now}
        if execution.in_transaction:
            limits = {IDLE_IN_TRANSACTION: now, **self._of_transaction}
        found = self._soonest(**limits)
        if found is None:
            return
        moment, name = found
        self._is_over = is_over = threading.Event()

        def watch() -> None:
            is_used = is_over.wait(max(moment - time.monotonic(), 0))
            if is_used or not lock.acquire(blocking=False):
                return
            try:
                if not is_over.is_set():
                    execution.terminate(name)
            finally:
                lock.release()

        # None can be started when the interpreter ends.
        with suppress(RuntimeError):
            threading.Thread(target=watch, daemon=True, name="tique-rest").start()


class _Lock:
    """A connection's lock that tells its limits when a call begins and ends."""

    def __init__(self, lock: Any, deadlines: Deadlines) -> None:
        self._lock = lock
        self._deadlines = deadlines
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if not self._lock.acquire(blocking, timeout):
            return False
        self._depth += 1
        if self._depth == 1:
            self._deadlines.wake()
        return True

    def release(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._deadlines.rest(self._lock)
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
