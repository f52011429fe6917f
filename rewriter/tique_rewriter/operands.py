"""Values and simple expressions of a statement's text."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.plan import (
    Arithmetic,
    ColumnValue,
    Kernel,
    Literal,
    Operand,
    Parameter,
)

if TYPE_CHECKING:
    from tique_rewriter.source import Source

ColumnPosition = Callable[[exp.Column], int | None]

_INTEGER = re.compile(r"\d{1,38}")
_DECIMAL = re.compile(r"\d+\.\d*|\.\d+")
_LARGEST = 2**127 - 1
_LONGEST_DECIMAL = 38
_DEEPEST = 100
"""Operations inside each other: evaluating one takes two frames of Python's stack."""


def operand(source: Source, node: exp.Expr) -> Operand | None:
    """Return a placeholder, or a literal whose value is the same in every engine."""
    if isinstance(node, exp.Paren):
        return operand(source, node.this)
    if isinstance(node, exp.Placeholder):
        known = node.name.isdigit() and int(node.name) <= len(source.lexed.arguments)
        return Parameter(int(node.name)) if known else None
    if isinstance(node, exp.Parameter):
        return _numbered(source, node)
    if isinstance(node, exp.Boolean):
        return Literal(bool(node.this))
    if isinstance(node, exp.Neg):
        positive = operand(source, node.this)
        if isinstance(positive, Literal) and type(positive.value) in (int, Decimal):
            return Literal(-positive.value)
        return None
    return _literal(source, node) if isinstance(node, exp.Literal) else None


def _numbered(source: Source, node: exp.Parameter) -> Parameter | None:
    """Return the placeholder where a parser takes ``$1`` for a sign and a number."""
    start = node.this.meta.get("start")
    if start is None or start - 1 not in source.lexed.starts:
        return None
    return Parameter(int(node.name))


def _literal(source: Source, node: exp.Literal) -> Literal | None:
    start, end = node.meta.get("start"), node.meta.get("end")
    if start is None or end is None:
        return None
    raw = source.text[start : end + 1]
    if node.is_string:
        if not (raw.startswith("'") and raw.endswith("'")):
            return None
        if "\\" in raw and source.rules.lexicon.escapes:
            return None
        return Literal(raw[1:-1].replace("''", "'"))
    if _INTEGER.fullmatch(raw):
        return Literal(int(raw)) if int(raw) <= _LARGEST else None
    if _DECIMAL.fullmatch(raw) and len(raw) <= _LONGEST_DECIMAL:
        return Literal(Decimal(raw))
    return None


def kernel(
    source: Source,
    node: exp.Expr,
    position_of: ColumnPosition | None = None,
    depth: int = 0,
) -> Kernel | None:
    """Return the expression in the small language that the driver evaluates, if it fits."""
    if depth > _DEEPEST:
        return None
    if isinstance(node, exp.Paren):
        return kernel(source, node.this, position_of, depth)
    if isinstance(node, exp.Null):
        return Literal(None)
    if isinstance(node, exp.Column) and position_of is not None:
        position = position_of(node)
        return None if position is None else ColumnValue(position)
    if type(node) in (exp.Add, exp.Sub) and position_of is not None:
        left = kernel(source, node.this, position_of, depth + 1)
        right = kernel(source, node.expression, position_of, depth + 1)
        if left is None or right is None:
            return None
        return Arithmetic("+" if type(node) is exp.Add else "-", left, right)
    return operand(source, node)
