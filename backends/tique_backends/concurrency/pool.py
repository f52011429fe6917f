"""A sequencer's connections: each of a process's threads takes one for a request.

A connection belongs to one thread from :meth:`Pool.connected` until that ends, and
to none while it is idle, so nothing is locked. As the deque's operations are atomic, a
process that dies or is interrupted at any line leaves a connection at most unused.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from tique_backends.concurrency.queues import taken
from tique_backends.errors import ConnectionLostError, EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LOOKS = 50
_PAUSE = 0.02

_Answer = TypeVar("_Answer")


class PooledConnection(Protocol):
    """A connection that may be lost while it is idle."""

    @property
    def is_open(self) -> bool:
        """Whether the connection was neither closed nor lost."""

    def close(self) -> None:
        """Close the connection; idempotent."""


ConnectionT = TypeVar("ConnectionT", bound=PooledConnection)


class Pool(Generic[ConnectionT]):
    """Connections to one server.

    Parameters
    ----------
    connect
        Opens one.
    """

    def __init__(self, connect: Callable[[], ConnectionT]) -> None:
        self._connect = connect
        self._idle: deque[ConnectionT] = deque()
        self._is_closed = False

    @contextmanager
    def connected(self) -> Iterator[ConnectionT]:
        """Give the caller a connection of its own."""
        connection = self.take()
        try:
            yield connection
        finally:
            self.give_back(connection)

    def take(self) -> ConnectionT:
        """Give the caller a connection until :meth:`give_back`, or until it is closed.

        Where the server has none left another thread's is waited for, for a second: what
        ends a commit must not fail because a heartbeat has the connection that began it.
        """
        with suppress(IndexError):
            return self._idle.pop()
        try:
            return self._connect()
        except EngineError:
            for _ in range(_LOOKS):
                time.sleep(_PAUSE)
                with suppress(IndexError):
                    return self._idle.pop()
            raise

    def give_back(self, connection: ConnectionT) -> None:
        """Let others have a connection again."""
        if self._is_closed or not connection.is_open:
            connection.close()
        else:
            self._idle.append(connection)

    def ask(
        self, question: Callable[[ConnectionT], _Answer], *, repeat: bool = True
    ) -> _Answer:
        """Ask; once more over a new connection if the first is lost and ``repeat``.

        Raises
        ------
        ConnectionLostError
            If it is not known whether the server has answered.
        """
        try:
            with self.connected() as connection:
                return question(connection)
        except ConnectionLostError:
            if not repeat:
                raise
        # The other idle connections are lost too, as a rule.
        self._close_idle()
        with self.connected() as connection:
            return question(connection)

    def close(self) -> None:
        """Close idle connections now, and those in use after their request."""
        self._is_closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        for connection in taken(self._idle):
            connection.close()
