"""The text of a statement, as a str or as what psycopg's applications write it with."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from tique import errors


class Composable(Protocol):
    """A statement that is put together of parts: those of ``psycopg.sql`` are."""

    def as_string(self, context: Any) -> str:
        """Return its text, for no connection in particular if ``context`` is None."""


Query: TypeAlias = str | bytes | Composable
"""What may be executed."""


def text_of(query: Query) -> str:
    """Return the text of a statement.

    Raises
    ------
    ProgrammingError
        It has none: it is of another type, no UTF-8, or a part has no text.
    """
    if isinstance(query, str):
        return str.__str__(query)
    try:
        if isinstance(query, bytes):
            return query.decode()
        as_string = getattr(query, "as_string", None)
        if as_string is not None:
            return str.__str__(as_string(None))
    except Exception as error:
        raise errors.ProgrammingError(
            f"the text of this {type(query).__name__} cannot be had: {error}"
        ) from error
    raise errors.ProgrammingError(
        "a statement is a str, bytes, or a composable of psycopg.sql, not "
        f"{type(query).__name__}"
    )
