"""SET lists: of UPDATE and of ON CONFLICT DO UPDATE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.operands import kernel
from tique_rewriter.plan import Expression, Literal
from tique_rewriter.references import unknown_column
from tique_rewriter.scalars import check_default, check_scalar, split

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tique_rewriter.operands import ColumnPosition
    from tique_rewriter.plan import Text
    from tique_rewriter.schema import Column, Table
    from tique_rewriter.source import Source, Word


def plan_assignments(
    source: Source,
    table: Table,
    words: list[Word],
    nodes: Sequence[exp.Expr],
    position_of: ColumnPosition,
    cut: Callable[[int, int], Text],
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
    """
    if not words:
        raise source.syntax("SET without a column", source.find("SET"))
    pieces = split(words)
    if len(pieces) != len(nodes):
        raise source.unsupported("this form of SET", words[0].start)
    found: dict[int, Expression] = {}
    for piece, node in zip(pieces, nodes, strict=True):
        if not isinstance(node, exp.EQ) or piece[1].keyword != "=":
            raise source.unsupported(
                "this form of SET", piece[0].start, "write SET column = value, …"
            )
        name = source.identifier(piece[0])
        position = table.positions.get(name.lower())
        if position is None:
            raise unknown_column(source, table, name, piece[0].start)
        if position in found:
            raise source.syntax(f'the column "{name}" is set twice', piece[0].start)
        value = piece[2:]
        if len(value) == 1 and value[0].keyword == "DEFAULT":
            check_default(source, table.columns[position], value[0].start)
            found[position] = _default(table.columns[position])
            continue
        check_scalar(source, node.expression, value[0].start, "SET")
        found[position] = Expression(
            cut(value[0].start, value[-1].end),
            kernel(source, node.expression, position_of),
        )
    return tuple(found.items())


def _default(column: Column) -> Expression:
    if column.default is None:
        return Expression(("NULL",), Literal(None))
    return Expression((f"({column.default})",))
