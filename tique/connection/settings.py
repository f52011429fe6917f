"""The settings that a connection has changed by SET, for as long as it has.

An engine's session outlives none of its connection's transactions, and may be replaced
by another; a transaction of the connection's is not one of the engine's. So the values
are kept here, and what the engine would do of itself is done here: SET LOCAL ends with the
transaction, and where settings are transactional a rollback takes them back.

Invariant: between statements the session has, for each name in ``_current``, the value
there. If that cannot be made so (the connection broke, or the engine refused), then
``is_unsure`` says so, and the connection takes another session, to which all values are
given anew. One thread at a time: the connection's lock is held.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tique_backends.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class _Value:
    """A setting's value now, and after the transaction; None as at the beginning."""

    now: str | None
    later: str | None


_UNCHANGED = _Value(None, None)


class Settings:
    """The changed settings of one connection.

    Parameters
    ----------
    assign
        Gives the session a value; None stands for that at the beginning.
    is_transactional
        Whether a rollback takes a change back.
    """

    def __init__(
        self, assign: Callable[[str, str | None], None], *, is_transactional: bool
    ) -> None:
        self._assign = assign
        self._is_transactional = is_transactional
        self._current: dict[str, _Value] = {}
        self._undo: list[tuple[int, str, _Value]] = []
        """The transaction's changes: its sequence number, the name, the value before."""
        self.is_unsure = False
        """Whether the session may have other values."""

    @property
    def has_changes(self) -> bool:
        """Whether the transaction has changed one."""
        return bool(self._undo)

    def names(self) -> list[str]:
        """The settings that have another value than at the beginning."""
        return [name for name, value in self._current.items() if value != _UNCHANGED]

    def change(
        self, name: str, value: str | None, sequence: int, *, is_local: bool
    ) -> None:
        """Give a setting a value, for the session or until the transaction ends.

        ``sequence`` is the number of the statement in its transaction.

        Raises
        ------
        EngineError
            If the engine does not take the value: nothing has changed.
        """
        before = self._current.get(name, _UNCHANGED)
        self._assign(name, value)
        self._current[name] = _Value(value, before.later if is_local else value)
        if self._is_transactional:
            self._undo.append((sequence, name, before))

    def rollback_to(self, sequence: int) -> None:
        """Take back the changes of statements after ``sequence``."""
        before: dict[str, _Value] = {}
        while self._undo and self._undo[-1][0] > sequence:
            _, name, value = self._undo.pop()
            before[name] = value
        for name, value in before.items():
            self._restore(name, value)

    def end(self, *, committed: bool) -> None:
        """Note that the transaction ended; values that were for it alone are gone."""
        if not committed:
            self.rollback_to(-1)
            return
        changed = dict.fromkeys(name for _, name, _ in self._undo)
        self._undo.clear()
        for name in changed:
            later = self._current[name].later
            self._restore(name, _Value(later, later))

    def note(self, name: str, value: str) -> None:
        """Note that a setting has another value in other ways than by SET."""
        self._current[name] = _Value(value, value)

    def give_all(self) -> None:
        """Give all values to a new session.

        Raises
        ------
        EngineError
            If it does not take one.
        """
        for name in self.names():
            self._assign(name, self._current[name].now)
        self.is_unsure = False

    def _restore(self, name: str, value: _Value) -> None:
        before = self._current[name]
        self._current[name] = value
        if before.now != value.now and not self.is_unsure:
            try:
                self._assign(name, value.now)
            except EngineError:
                # The transaction's outcome stands.
                self.is_unsure = True
            except BaseException:
                self.is_unsure = True
                raise
