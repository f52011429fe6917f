"""Messages of NOTIFY: listeners get them when the transaction has committed.

Argument
--------
*After publication, and never before.* They are sent when the commit is durable and every
transaction that begins sees it: a listener that looks for the rows finds them. A NOTIFY
that is rolled back, by itself or to a savepoint, sends nothing. A process that dies in between
sends nothing either, and the commit stands: as with the engine's own, a listener that was
not there must look for itself.

*Nothing is refused then.* What the engine might say of a channel or a payload is said at
the statement.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from tique import errors
from tique._log import fields
from tique_backends.errors import EngineError

if TYPE_CHECKING:
    from tique_backends.session import Session

logger = logging.getLogger("tique.commit")

_LONGEST_CHANNEL, _LONGEST_PAYLOAD = 63, 7999
"""Bytes that PostgreSQL takes."""


class Notifications:
    """The messages of one transaction, in their order, each once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], int] = {}

    def add(self, sequence: int, message: tuple[str, str]) -> None:
        """Note a message of the statement with this number."""
        self._found.setdefault(message, sequence)

    def rollback_to(self, sequence: int) -> None:
        """Forget the messages of statements after ``sequence``."""
        self._found = {m: s for m, s in self._found.items() if s <= sequence}

    def send(self, session: Session) -> None:
        """Send them, after the commit, which stands if that fails."""
        found, self._found = self._found, {}
        if not found:
            return
        try:
            session.notify(list(found))
        except EngineError as error:
            # The messages may be anything, so the log has none of them (P11).
            logger.warning(
                "%d messages of a transaction that has committed were not sent "
                "(SQLSTATE %s)",
                len(found),
                error.sqlstate,
                extra=fields(
                    "messages_not_sent", messages=len(found), sqlstate=error.sqlstate
                ),
            )


def checked(channel: Any, payload: Any) -> tuple[str, str]:
    """The message of these values.

    Raises
    ------
    NotSupportedError
        They are no texts.
    DataError
        PostgreSQL takes no such channel or payload (SQLSTATE 22023).
    """
    texts = []
    for value in ("" if given is None else given for given in (channel, payload)):
        if not isinstance(value, str):
            raise errors.NotSupportedError("pg_notify() takes two texts")
        texts.append(value)
    name, text = texts
    problem = ""
    try:
        sizes = len(name.encode()), len(text.encode())
    except UnicodeEncodeError:
        sizes, problem = (1, 0), "half of a surrogate pair in a message"
    if not name:
        problem = "channel name cannot be empty"
    elif sizes[0] > _LONGEST_CHANNEL:
        problem = "channel name too long"
    elif sizes[1] > _LONGEST_PAYLOAD:
        problem = "payload string too long"
    elif "\0" in name + text:
        problem = "a NUL character in a message"
    if problem:
        raise errors.DataError(problem, sqlstate="22023")
    return name, text
