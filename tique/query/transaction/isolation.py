"""Isolation levels. It loads at once: applications name one before they connect."""

from __future__ import annotations

from enum import Enum

from tique import errors


class IsolationLevel(Enum):
    """The supported isolation levels; any other is refused, not weakened."""

    READ_COMMITTED = "READ COMMITTED"
    SNAPSHOT = "SNAPSHOT"
    SERIALIZABLE = "SERIALIZABLE"

    @property
    def shown(self) -> str:
        """PostgreSQL's name of it, as SHOW has it."""
        return (
            "repeatable read" if self is IsolationLevel.SNAPSHOT else self.value.lower()
        )

    @classmethod
    def parse(cls, name: str | IsolationLevel) -> IsolationLevel:
        """Return the level of that name; REPEATABLE READ is a synonym of SNAPSHOT.

        Raises
        ------
        NotSupportedError
            For anything unknown.
        """
        if isinstance(name, cls):
            return name
        folded = str(name).upper().replace("_", " ").strip()
        if folded in ("REPEATABLE READ", "SNAPSHOT ISOLATION"):
            folded = cls.SNAPSHOT.value
        try:
            return cls(folded)
        except ValueError:
            known = ", ".join(level.value for level in cls)
            raise errors.NotSupportedError(
                f"isolation level {folded!r} is not supported; choose one of: {known}"
            ) from None
