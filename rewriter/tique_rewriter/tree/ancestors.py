"""Ancestors in a syntax tree, found without walking over the same nodes again and again.

A chain of a thousand operators or UNIONs is a thousand levels deep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot import expressions as exp


class Ancestors:
    """The nodes of one tree that are of some kind, from any node upwards.

    Each node is walked over once for all questions. The tree must not change meanwhile.

    Parameters
    ----------
    is_wanted
        Whether a node is of the kind.
    """

    def __init__(self, is_wanted: Callable[[exp.Expr], bool]) -> None:
        self._is_wanted = is_wanted
        self._known: dict[int, exp.Expr | None] = {}

    def nearest(self, node: exp.Expr | None) -> exp.Expr | None:
        """Return the first such node, from ``node`` itself on."""
        passed: list[int] = []
        found: exp.Expr | None = None
        while node is not None:
            if id(node) in self._known:
                found = self._known[id(node)]
                break
            passed.append(id(node))
            if self._is_wanted(node):
                found = node
                break
            node = node.parent
        self._known.update(dict.fromkeys(passed, found))
        return found
