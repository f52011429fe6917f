"""Notices: what the engine says beside the results of an application's statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_backends.records import Notice

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique_backends.session import Session

__all__ = ["Notice", "Notices"]


class Notices:
    """The handlers of one connection, called in the order in which they were added.

    A session is listened to from the first handler on: without one nothing is done.
    """

    def __init__(self) -> None:
        self._handlers: list[Callable[[Notice], None]] = []
        self._session: Session | None = None

    def add(self, handler: Callable[[Notice], None], session: Session) -> None:
        """Add a handler for what is said in a session, or in those that follow it."""
        self._handlers = [*self._handlers, handler]
        self.follow(session)

    def remove(self, handler: Callable[[Notice], None]) -> None:
        """Remove a handler.

        Raises
        ------
        ValueError
            If it was not added.
        """
        handlers = list(self._handlers)
        handlers.remove(handler)
        self._handlers = handlers

    def follow(self, session: Session) -> None:
        """Listen to the connection's session, if there is anything to listen for."""
        if self._handlers and session is not self._session:
            self._session = session
            session.hear(self._hand_over)

    def _hand_over(self, notice: Notice) -> None:
        for handler in self._handlers:
            handler(notice)
