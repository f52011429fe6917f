"""Which columns of a table a statement can be looking at.

A superset is enough: snapshot forms leave the other columns out, which makes
them cheaper to plan and lets the driver work with rows that it knows in part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique_rewriter.references import Read

_BY_POSITION_OR_PATTERN = (exp.Columns, exp.PositionalColumn)


def used_columns(
    parts: Iterable[exp.Expr], reads: Sequence[Read]
) -> list[frozenset[int] | None]:
    """Positions of the columns that may be used, per read; None for all of them.

    Parameters
    ----------
    parts
        The trees that the statement consists of.
    reads
        The places that read managed tables.
    """
    names: set[str] = set()
    rows: set[str] = set()
    for part in parts:
        for node in part.walk():
            if isinstance(node, _BY_POSITION_OR_PATTERN) or _is_star(node):
                return [None] * len(reads)
            if isinstance(node, exp.Join) and node.args.get("method"):
                return [None] * len(reads)
            if isinstance(node, exp.DataType) and node.args.get("values"):
                # ``list[1]`` of a column that is called like a type.
                return [None] * len(reads)
            if _names_a_join(node):
                return [None] * len(reads)
            if isinstance(node, exp.Identifier):
                names.add(node.name.lower())
            if isinstance(node, exp.Column) and not node.table:
                rows.add(node.name.lower())
    return [_used_of(read, names, rows) for read in reads]


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count)


def _names_a_join(node: exp.Expr) -> bool:
    """Whether it is ``(a JOIN b …) AS j``: its row is ``j``, and it may list columns."""
    return (
        isinstance(node, exp.Subquery)
        and bool(node.args.get("alias"))
        and not isinstance(node.this, exp.Query)
    )


def _used_of(read: Read, names: set[str], rows: set[str]) -> frozenset[int] | None:
    alias = read.node.args.get("alias")
    renames = isinstance(alias, exp.TableAlias) and alias.args.get("columns")
    # ``SELECT t FROM t`` means the whole row.
    if renames or read.name in rows:
        return None
    if any(column.name.lower() in names for column in read.table.generated):
        return None
    return frozenset(
        i for i, column in enumerate(read.table.columns) if column.name.lower() in names
    )
