"""Values in a statement's text."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.plans.plan import Literal, Operand, Parameter

if TYPE_CHECKING:
    from tique_rewriter.text.source import Source

_INTEGER = re.compile(r"\d{1,38}")
_DECIMAL = re.compile(r"\d+\.\d*|\.\d+")
_LARGEST = 2**127 - 1
_LONGEST_DECIMAL = 38


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
