"""DuckDB's names for results without an alias: the expression's text, in its own form.

DuckDB parses the expression and prints it again: ``max( a )+1`` is called
``(max(a) + 1)``. Its JSON form of a statement makes the same round trip, with no table
looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_backends.errors import EngineError, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Sequence

_SELECT = "SELECT "


def naming(expressions: Sequence[str]) -> str:
    """Return a query for :func:`name_in`, with a row for each expression, in order."""
    texts = ", ".join(
        f"({number}, '{_quoted(_SELECT + expression)}')"
        for number, expression in enumerate(expressions)
    )
    return (
        "SELECT CASE WHEN json_extract_string(tree, '$.error') = 'true' THEN NULL "
        "ELSE json_deserialize_sql(tree) END, json_extract_string(tree, '$.error_type') "
        "FROM (SELECT number, json_serialize_sql(text) AS tree "
        f"FROM (VALUES {texts}) AS _t(number, text)) AS _n ORDER BY number"
    )


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def name_in(expression: str, statement: str | None, error: str | None) -> str:
    """Return the name, given DuckDB's form of a SELECT of the expression, or its error.

    An expression that DuckDB does not understand it will refuse, whatever its name.

    Raises
    ------
    EngineError
        UNSUPPORTED for expressions that have no JSON form.
    """
    if statement is not None and statement.startswith(_SELECT):
        return statement.removeprefix(_SELECT)
    if error == "parser":
        return expression
    raise EngineError(
        ErrorKind.UNSUPPORTED,
        "DuckDB does not tell the name of a result with a subquery: give it an alias",
    )
