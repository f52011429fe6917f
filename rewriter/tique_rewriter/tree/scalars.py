"""Scalar expressions in SET, VALUES and RETURNING."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.errors import AlwaysGenerated
from tique_rewriter.tree.shape import function_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tique_rewriter.schema import Column
    from tique_rewriter.text.source import Source, Word

_REFUSED = (exp.AggFunc, exp.Window, exp.Explode, exp.Unnest, exp.Columns)


_VALUES = frozenset(
    [
        *("default", "user", "session_user", "system_user", "current_user"),
        *("current_role", "current_catalog", "current_schema", "localtime"),
        *("localtimestamp", "current_time", "current_date", "current_timestamp"),
    ]
)


def stands_for_value(column: exp.Column) -> bool:
    """Whether it is a word that stands for a value, which the parser took for a column."""
    return not column.this.args.get("quoted") and column.name.lower() in _VALUES


def split(words: list[Word], separator: str = ",") -> list[list[Word]]:
    """Cut a list of words at the separators of the level of its first word."""
    if not words:
        return []
    level = words[0].depth - (words[0].keyword in ("(", "[", "{"))
    pieces: list[list[Word]] = [[]]
    for word in words:
        if word.keyword == separator and word.depth == level:
            pieces.append([])
        else:
            pieces[-1].append(word)
    return pieces


def check_scalar(source: Source, node: exp.Expr, start: int, where: str) -> None:
    """Refuse an expression that is not one value computed from one row."""
    for inner in outside_subqueries(node):
        if isinstance(inner, _REFUSED):
            raise source.unsupported(f"{_name(inner)} in {where}", start)
        sets = source.rules.set_functions
        if sets is not None and sets.fullmatch(function_name(inner)):
            raise source.unsupported(f"{function_name(inner)}() in {where}", start)
        if isinstance(inner, exp.Star):
            raise source.unsupported(f"* in {where}", start)


def check_given(source: Source, column: Column, start: int) -> None:
    """Complain of a value for a column that is always generated.

    Raises
    ------
    AlwaysGenerated
        It is.
    """
    if column.is_always:
        raise source.error(
            AlwaysGenerated,
            f'a value for the column "{column.name}", which is GENERATED ALWAYS',
            start,
            "write DEFAULT, or INSERT … OVERRIDING SYSTEM VALUE",
        )


def check_default(source: Source, column: Column, start: int) -> None:
    """Complain of DEFAULT for a column that has none, where the engine does."""
    if column.default is None and not source.rules.default_is_null:
        raise source.syntax(f'the column "{column.name}" has no DEFAULT', start)


def _name(node: exp.Expr) -> str:
    if isinstance(node, exp.Window):
        return "a window function"
    if isinstance(node, exp.Explode | exp.Unnest):
        return "UNNEST()"
    return f"{node.sql_name()}()" if isinstance(node, exp.Func) else node.key.upper()


def outside_subqueries(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the nodes of an expression that are in none of its subqueries."""
    yield node
    if isinstance(node, exp.Query):
        return
    for child in node.iter_expressions():
        yield from outside_subqueries(child)
