"""Fields of log records, beside their messages.

A field's name begins with ``tique_``; ``tique_event`` says what happened. Neither messages
nor fields have a value of a row, a key or a parameter (P11). An engine's message may quote
one, so an error is logged as its family, and the status has its text.
"""

from __future__ import annotations

from tique_backends.errors import EngineError


def fields(event: str, **values: str | float | None) -> dict[str, object]:
    """The ``extra`` of a log record.

    Parameters
    ----------
    event
        What happened, in a few words joined by underscores.
    **values
        Further fields, without the prefix.
    """
    named = {f"tique_{name}": value for name, value in values.items()}
    return {"tique_event": event, **named}


def family(error: BaseException) -> str:
    """The family of an error: what can be logged of it."""
    if isinstance(error, EngineError):
        return error.kind.value
    return type(error).__name__
