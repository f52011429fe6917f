"""Windows that not every engine can run over a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

if TYPE_CHECKING:
    from tique_rewriter.text.source import Source

_SUBQUERIES = (exp.Any, exp.All, exp.Exists)


def is_whole(window: exp.Window) -> bool:
    """Whether a window, or a definition in a WINDOW clause, is of all rows, unordered.

    A window that only names a definition is as that definition says, which is found by
    itself.
    """
    args = window.args
    return not (args.get("partition_by") or args.get("order") or args.get("alias"))


def has_computed_order(window: exp.Window) -> bool:
    """Whether a window, or a definition, is ordered by anything but columns."""
    order = window.args.get("order")
    return order is not None and not all(
        isinstance(item.this.unnest(), exp.Column) for item in order.expressions
    )


def check_windows(source: Source, tree: exp.Expr) -> None:
    """Refuse functions that crash the engine over a snapshot.

    The dialect's ``crashing_windows`` are functions over all rows, unordered, beside a
    semi join, into which an engine also turns IN and EXISTS.

    Raises
    ------
    UnsupportedSQL
        Naming the function.
    """
    crashing = source.rules.crashing_windows
    if not crashing or not any(map(is_whole, tree.find_all(exp.Window))):
        return
    for word in source.words:
        name = source.raw(word).strip('"').lower()
        if name not in crashing or not _has_semi_join(tree):
            continue
        raise source.unsupported(
            f"{name}() over all rows beside a semi join or a subquery in a condition",
            word.start,
            f"{source.rules.engine} crashes; its window may be (PARTITION BY 1)",
        )


def _has_semi_join(tree: exp.Expr) -> bool:
    if any(join.kind in ("SEMI", "ANTI") for join in tree.find_all(exp.Join)):
        return True
    return any(
        not isinstance(node, exp.In) or node.args.get("query") is not None
        for node in tree.find_all(exp.In, *_SUBQUERIES)
    )
