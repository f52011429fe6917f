"""The unique index that the target of ON CONFLICT means: PostgreSQL's *arbiter*.

PostgreSQL infers it from the target's columns, expressions and condition. Here it is the
index whose parts are those of the target, and whose condition is the target's, as text: but
for brackets, the order of the parts, and casts of texts to TEXT, which PostgreSQL writes
into the text of an index and which change no value. So an index is found that PostgreSQL
infers, too, and one that only follows from the target's condition is not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.placeholders import OWN_STYLE, number_placeholders
from tique_rewriter.source import Source

if TYPE_CHECKING:
    from tique_rewriter.schema import ComputedKey, Table

_TEXT = re.compile(r"(?:TEXT|VARCHAR)\b", re.IGNORECASE)


def find_arbiter(
    source: Source, table: Table, clause: exp.Expr
) -> tuple[int, ...] | ComputedKey | None:
    """Return the key of a table that a clause's target means; None if none is.

    One of columns alone goes before others, and one without a condition before those with
    one: it has every row in the way that these have.
    """
    parts = {_plain(node, table) for node in clause.args.get("conflict_keys") or ()}
    where = clause.args.get("index_predicate")
    for key in (table.primary_key, *table.unique):
        names = {_plain(_column(table.columns[i].name), table) for i in key}
        if key and names == parts:
            return key
    condition = None if where is None else _plain(where.this, table)
    for computed in sorted(table.computed_keys, key=lambda k: k.condition is not None):
        if {
            _plain(_parsed(source, text), table) for text in computed.parts
        } == parts and (
            computed.condition is None
            or _plain(_parsed(source, computed.condition), table) == condition
        ):
            return computed
    return None


def _parsed(source: Source, text: str) -> exp.Expr:
    lexicon = source.rules.lexicon
    lexed = number_placeholders(f"SELECT {text}", OWN_STYLE, lexicon=lexicon)
    parsed: exp.Expr = Source(lexed, source.rules).parse().expressions[0]
    return parsed


def _column(name: str) -> exp.Expr:
    return exp.Column(this=exp.Identifier(this=name, quoted=True))


def _plain(node: exp.Expr, table: Table) -> str:
    """The text of an expression, the same for all ways to write it that are known."""
    root = exp.Tuple(expressions=[node.copy()])
    for part in list(root.find_all(exp.Paren, exp.Ordered)):
        if not part.args.get("desc"):
            part.replace(part.this)
    for cast in reversed(list(root.find_all(exp.Cast))):
        if _TEXT.fullmatch(cast.to.sql()) and _is_text(cast.this, table):
            cast.replace(cast.this)
    for name in root.find_all(exp.Identifier):
        name.set("quoted", True)
    return root.sql(dialect="postgres")


def _is_text(node: exp.Expr, table: Table) -> bool:
    if isinstance(node, exp.Literal):
        return bool(node.is_string)
    if not isinstance(node, exp.Column) or node.table:
        return False
    position = table.positions.get(node.name.lower())
    return position is not None and bool(_TEXT.match(table.columns[position].type))
