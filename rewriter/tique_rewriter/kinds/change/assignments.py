"""SET lists: of UPDATE and of ON CONFLICT DO UPDATE.

*SET a[2] = …:* the whole array, with another value in one place.
The engine has no expression for that. So the array is made of its elements: those that lie
between the old ones and the new one are NULL, and the bounds are those that the engine's
own assignment gives. The number is written out, so that it is one number for all of them.

*SET j['a'] = …:* the JSON object with another member. ``jsonb_set()`` makes it, of NULL as of
``{}``, and of an array it complains as the assignment does, unless the name is a number.

*SET (a, b) = (SELECT …):* the subquery once for each column, and one of its results.
So it is computed as often as there are columns. Each time the same row has to come: what
chooses one of several rows, or another value each time, is refused. The engine complains
of a second row.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.kinds.define.generated import check_not_generated
from tique_rewriter.local.local_expressions import kernel
from tique_rewriter.plans.plan import Expression, Literal
from tique_rewriter.plans.text import Default
from tique_rewriter.scope.moments import given_time
from tique_rewriter.scope.references import unknown_column
from tique_rewriter.text.names import quote
from tique_rewriter.tree.scalars import check_default, check_given, check_scalar, split
from tique_rewriter.tree.shape import function_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tique_rewriter.errors import UnsupportedSQL
    from tique_rewriter.local.local_expressions import ColumnPosition
    from tique_rewriter.plans.text import Text
    from tique_rewriter.schema import Column, Table
    from tique_rewriter.text.source import Source, Word


def plan_assignments(
    source: Source,
    table: Table,
    words: list[Word],
    nodes: Sequence[exp.Expr],
    position_of: ColumnPosition,
    cut: Callable[[int, int], Text],
    qualifier: str | None = None,
) -> tuple[tuple[int, Expression], ...]:
    """Return position and value of every column that a SET list assigns.

    Parameters
    ----------
    source, table
        The statement and the table that it changes.
    words, nodes
        The words after SET, and the parser's tree of each assignment.
    position_of
        The position in the changed row of a column that a value names.
    cut
        The plan's text for a stretch of the statement's.
    qualifier
        The name of the changed row in it; without it no element of an array is set.
    """
    if not words:
        raise source.syntax("SET without a column", source.find("SET"))
    pieces = split(words)
    if len(pieces) != len(nodes):
        raise source.unsupported("this form of SET", words[0].start)
    found: dict[int, Expression] = {}
    for name_words, value, node, nth in _pairs(source, pieces, nodes):
        name = source.identifier(name_words[0])
        start = name_words[0].start
        position = table.positions.get(name.lower())
        is_default = [word.keyword for word in value] == ["DEFAULT"]
        if table.computed(name) is not None:
            if is_default and source.rules.generated_takes_default and len(pieces) > 1:
                continue
            check_not_generated(source, table, name, start)
        if position is None:
            raise unknown_column(source, table, name, start)
        if position in found:
            raise source.syntax(f'the column "{name}" is set twice', start)
        if is_default and isinstance(nth, int | str):
            raise source.unsupported("DEFAULT for an element", value[0].start)
        if is_default:
            check_default(source, table.columns[position], value[0].start)
            found[position] = plan_default(table.columns[position])
            continue
        check_given(source, table.columns[position], start)
        check_scalar(source, node, value[0].start, "SET")
        text = cut(value[0].start, value[-1].end)
        if isinstance(nth, int | str):
            column = table.columns[position]
            check_subscript(source, column, nth, start)
            if qualifier is None:
                raise _refusal(source, start)
            found[position] = Expression(with_part(column, qualifier, nth, text))
            continue
        if nth is not None:
            found[position] = Expression(column_of_row(nth, text))
            continue
        text = given_time(source, value, table.columns[position], text)
        found[position] = Expression(text, kernel(source, node, position_of))
    return tuple(found.items())


def _pairs(
    source: Source, pieces: list[list[Word]], nodes: Sequence[exp.Expr]
) -> Iterator[
    tuple[list[Word], list[Word], exp.Expr, tuple[int, int] | int | str | None]
]:
    """Yield the words of each column and of its value, and the value's tree.

    If the value is a subquery for several columns, its position among them and their
    number come last; if it is for an element of an array, its number, if it is for a
    member of an object, its name as a literal.
    """
    for piece, node in zip(pieces, nodes, strict=True):
        form = _refusal(source, piece[0].start)
        if not isinstance(node, exp.EQ):
            raise form
        if piece[0].keyword != "(":
            part = subscript(source, piece[1:])
            if part is not None:
                number_or_name, length = part
                if len(piece) <= 1 + length:
                    raise form
                yield piece[:1], piece[1 + length :], node.expression, number_or_name
                continue
            if len(piece) < 3 or piece[1].keyword != "=":
                raise form
            yield piece[:1], piece[2:], node.expression, None
            continue
        end = source.closing(piece)
        if [word.keyword for word in piece[end + 1 : end + 2]] != ["="]:
            raise form
        values = piece[end + 2 :]
        if is_subquery(node.expression) and "query" in source.rules.row_assignments:
            named = split(piece[1:end])
            if any(len(name) != 1 for name in named):
                raise form
            check_row_query(source, node.expression, len(named), values[0].start)
            for number, name in enumerate(named):
                yield name, values, node.expression, (number, len(named))
            continue
        is_row = [word.keyword for word in values[:1]] == ["ROW"]
        is_value = not is_row and len(split(values[1:-1])) == 1
        if ("value" if is_value else "row") not in source.rules.row_assignments:
            raise form
        if [word.keyword for word in values[:2]] == ["ROW", "("]:
            values = values[1:]
        if (
            not values
            or values[0].keyword != "("
            or source.closing(values) != (len(values) - 1)
        ):
            raise form
        named, given = split(piece[1:end]), split(values[1:-1])
        trees = _values(node.expression)
        if any(len(name) != 1 for name in named) or len(trees) != len(given):
            raise form
        if len(named) != len(given):
            raise source.syntax(
                f"{len(given)} values for {len(named)} columns", values[0].start
            )
        for name, value, tree in zip(named, given, trees, strict=True):
            yield name, value, tree, None


def _refusal(source: Source, start: int) -> UnsupportedSQL:
    return source.unsupported("this form of SET", start, "write SET column = value, …")


def _values(node: exp.Expr) -> list[exp.Expr]:
    """Return the values in a row that is written out."""
    if isinstance(node, exp.Paren):
        return [node.this]
    if isinstance(node, exp.Tuple) or (
        isinstance(node, exp.Anonymous) and node.name.upper() == "ROW"
    ):
        return node.expressions
    return []


def plan_default(column: Column) -> Expression:
    """Return the value that stands for a column's DEFAULT."""
    if column.default is None:
        return Expression(("NULL",), Literal(None))
    return Expression(("(", Default(column.default), ")"))


_ARRAY = re.compile(r"(.+)\[\]")
_CUT = re.compile(r"(?:character|bit)\b.*\(", re.IGNORECASE)
"""Types whose casts cut values that an assignment refuses."""
_MOST = 2**31 - 1
_NUMBER = re.compile(r"\s*[+-]?\d+.*", re.DOTALL)
"""What a member's name could be read as: the number of an element."""


def subscript(source: Source, words: list[Word]) -> tuple[int | str, int] | None:
    """Return what is in ``[n] =`` or ``['name'] =``, and of how many words it is.

    None if the words begin with anything else.
    """
    if "element" not in source.rules.row_assignments:
        return None
    keywords = [word.keyword for word in words[:5]]
    is_negative = keywords[1:2] == ["-"]
    end = 2 + is_negative
    if keywords[:1] != ["["] or keywords[end : end + 2] != ["]", "="]:
        return None
    literal = source.raw(words[end - 1])
    if literal[0] == "'" and not is_negative and not _NUMBER.fullmatch(literal[1:-1]):
        return literal, end + 2
    digits = keywords[end - 1]
    if not digits.isascii() or not digits.isdigit() or int(digits) > _MOST:
        return None
    return (-int(digits) if is_negative else int(digits)), end + 2


def check_subscript(
    source: Source, column: Column, part: int | str, start: int
) -> None:
    """Refuse an element of a column that is no array, or of values that a cast would cut.

    And a member of a column that is not ``jsonb``.

    Raises
    ------
    UnsupportedSQL
        It is one of these.
    """
    if isinstance(part, str):
        is_right = column.type == "jsonb"
    else:
        is_right = bool(_ARRAY.fullmatch(column.type)) and not _CUT.match(column.type)
    if not is_right:
        raise source.unsupported(
            f"an element of a column of type {column.type}",
            start,
            "assign the whole value",
        )


def with_part(column: Column, qualifier: str, part: int | str, value: Text) -> Text:
    """Return the array or object of a column with ``value`` as one of its parts."""
    if isinstance(part, int):
        return with_element(column, qualifier, part, value)
    old = f"coalesce({qualifier}.{quote(column.name)}, '{{}}')"
    null = "CAST('null' AS jsonb)"
    return (f"jsonb_set({old}, ARRAY[{part}], coalesce((", *value, f"), {null}))")


def with_element(column: Column, qualifier: str, number: int, value: Text) -> Text:
    """Return the array of a column with ``value`` in the place of one element."""
    old, type_ = f"{qualifier}.{quote(column.name)}", column.type
    low = f"least(coalesce(array_lower({old}, 1), {number}), {number})"
    high = f"greatest(coalesce(array_upper({old}, 1), {number}), {number})"
    # Of an array with more dimensions the element would be a part, which is an error.
    refused = f"CAST('an array of dimensions: ' || array_ndims({old}) AS {type_})"
    every = f"CAST(_e._all AS {type_})"
    placed = f"'[' || _e._low || ':' || _e._high || ']=' || CAST({every} AS TEXT)"
    return (
        f"(SELECT CASE WHEN array_ndims({old}) > 1 THEN {refused} ",
        f"WHEN _e._low = 1 THEN {every} ELSE CAST({placed} AS {type_}) END FROM (",
        f"SELECT {low} AS _low, {high} AS _high, (SELECT array_agg(",
        f"CASE WHEN _n._number = {number} THEN (",
        *value,
        f") ELSE {old}[_n._number] END ORDER BY _n._number) FROM ",
        f"generate_series({low}, {high}) AS _n(_number)) AS _all) AS _e)",
    )


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
                raise _refused_row(source, "a function that varies", start)
            if isinstance(inner, exp.Limit | exp.Fetch | exp.Offset):
                raise _refused_row(source, "LIMIT", start)
            if isinstance(inner, exp.Distinct) and inner.args.get("on"):
                raise _refused_row(source, "DISTINCT ON", start)
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


def _refused_row(source: Source, what: str, start: int) -> Exception:
    return source.unsupported(
        f"{what} in a subquery for several columns",
        start,
        "it is computed for each of them; use a subquery for each",
    )
