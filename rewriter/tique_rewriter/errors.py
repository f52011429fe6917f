"""The rewriter's exceptions: always with the place in the application's text.

The driver maps these onto the exceptions of PEP 249. No message contains the
value of a parameter.
"""

from __future__ import annotations

from typing import TypeVar

from typing_extensions import override

AnyError = TypeVar("AnyError", bound="RewriteError")


class RewriteError(Exception):
    """The rewriter does not make a plan of a statement.

    Parameters
    ----------
    message
        The problem, its place, and its remedy.
    position, line, column
        Character offset (from 0) and line and column (from 1) in the
        application's text, None where the whole statement is meant.

    Attributes
    ----------
    text : str or None
        The statement, with ``$n`` for placeholders, if the parser does not understand
        its words: then only the engine knows whether it is SQL.
    """

    def __init__(
        self,
        message: str,
        position: int | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message, position, line, column)
        self.message = message
        self.text: str | None = None
        self.position = position
        self.line = line
        self.column = column

    @override
    def __str__(self) -> str:
        return self.message


class UnsupportedSQL(RewriteError):
    """A construct that the rewriter refuses (``NotSupportedError``)."""


class SyntaxProblem(RewriteError):
    """The text is not a statement that makes sense (``ProgrammingError``)."""


class DuplicateColumn(SyntaxProblem):
    """A column is named twice where it may be once (``ProgrammingError``)."""


class DuplicateAlias(SyntaxProblem):
    """Two tables of one FROM have the same name (``ProgrammingError``)."""


class WrongDefinition(SyntaxProblem):
    """A table that cannot be as it is defined (``ProgrammingError``)."""


class UnknownTable(RewriteError):
    """A name that no managed table has (``ProgrammingError``)."""

    relation: str | None = None
    """The name as it was written, where a query reads it without a schema."""


class UnknownColumn(RewriteError):
    """A name that no column of the table has (``ProgrammingError``)."""


class UnknownKey(RewriteError):
    """No single key of the table fits ON CONFLICT (``ProgrammingError``)."""


class UnknownConstraint(RewriteError):
    """A name that no key of the table has (``ProgrammingError``)."""


class AlwaysGenerated(RewriteError):
    """A value for a column that is GENERATED ALWAYS (``ProgrammingError``)."""


class ParameterError(RewriteError):
    """Parameters that do not fit the placeholders (``ProgrammingError``)."""


class NotAPoint(RewriteError):
    """A value that is neither a version nor a time (``ProgrammingError``)."""


def error_at(
    kind: type[AnyError], what: str, text: str, position: int, advice: str = ""
) -> AnyError:
    """Return an exception with the problem at ``position`` of a text and its remedy."""
    line, column = line_and_column(text, position)
    message = f"{what} at line {line}, column {column}"
    if kind is UnsupportedSQL:
        message += " is not supported"
    if advice:
        message += f"; {advice}"
    return kind(message, position, line, column)


def line_and_column(text: str, position: int) -> tuple[int, int]:
    """Line and column, both from 1, of the character at ``position``."""
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1
