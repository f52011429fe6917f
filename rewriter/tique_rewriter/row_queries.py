"""SET (a, b) = (SELECT …): the subquery once for each column, and one of its results.

So it is computed as often as there are columns. Each time the same row has to come: what
chooses one of several rows, or another value each time, is refused. The engine complains
of a second row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.shape import function_name

if TYPE_CHECKING:
    from tique_rewriter.source import Source
    from tique_rewriter.text import Text

_NAME = "_row"
_CHANGING = frozenset(
    (
        *("random", "rand", "random_normal", "gen_random_uuid", "uuidv4", "uuidv7"),
        *("nextval", "setval", "clock_timestamp", "timeofday", "array_sample"),
        *("array_shuffle", "uuid"),
    )
)
"""Functions with another result each time, as the parser knows them."""


def is_subquery(node: exp.Expr) -> bool:
    """Whether a value is a query in brackets."""
    return isinstance(node, exp.Subquery) and isinstance(node.unnest(), exp.Query)


def check_row_query(source: Source, node: exp.Expr, columns: int, start: int) -> None:
    """Refuse a subquery that might have another row, or another number of results.

    Raises
    ------
    UnsupportedSQL
        Naming the construct.
    SyntaxProblem
        It has another number of results.
    """
    if columns > 1:
        for inner in node.walk():
            if function_name(inner) in _CHANGING:
                raise _refusal(source, "a function that varies", start)
            if isinstance(inner, exp.Limit | exp.Fetch | exp.Offset):
                raise _refusal(source, "LIMIT", start)
            if isinstance(inner, exp.Distinct) and inner.args.get("on"):
                raise _refusal(source, "DISTINCT ON", start)
    first = node.unnest()
    while isinstance(first, exp.SetOperation):
        first = first.this.unnest()
    results = first.selects if isinstance(first, exp.Select) else []
    if not results or any(result.is_star for result in results):
        raise source.unsupported(
            "a subquery for several columns that does not list its results",
            start,
            "name them",
        )
    if len(results) != columns:
        raise source.syntax(f"{len(results)} values for {columns} columns", start)


def column_of_row(place: tuple[int, int], query: Text) -> Text:
    """Return the subquery for one of several columns; ``query`` is in brackets."""
    nth, columns = place
    names = ", ".join(f"_v{number}" for number in range(columns))
    result = f"{_NAME}._v{nth}"
    return ("(SELECT ", result, " FROM ", *query, f" AS {_NAME} ({names}))")


def _refusal(source: Source, what: str, start: int) -> Exception:
    return source.unsupported(
        f"{what} in a subquery for several columns",
        start,
        "it is computed for each of them; use a subquery for each",
    )
