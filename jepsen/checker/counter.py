"""Counters: no count without its increments, no increment without its count.

``add`` of ``{"key", "amount"}`` and ``read`` of ``{key: n}``. A counter begins at 0.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from jepsen import edn
from jepsen.checker.transactions import nothing_to_compare, pairs
from jepsen.checker.verdict import Findings

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from jepsen.checker.transactions import Transaction
    from jepsen.checker.verdict import Verdict
    from jepsen.history import Operation


class _Sums:
    """The sum of the amounts whose place in the history is before another."""

    def __init__(self, amounts: list[tuple[int, Any]]) -> None:
        amounts.sort()
        self._places = [place for place, _ in amounts]
        self._sums = list(accumulate((amount for _, amount in amounts), initial=0))

    def before(self, place: int) -> Any:
        """Return it."""
        return self._sums[bisect_left(self._places, place)]


class _Bounds:
    """The bounds of a counter.

    A counter is at least the sum of the additions that were acknowledged before the
    read began, and at most the sum of those that began before it ended. Of the rest,
    negative additions count for the lower bound and positive ones for the upper.
    """

    def __init__(self, adds: list[tuple[Transaction, Any]], end: int) -> None:
        self._end = end
        done = [(each.ended, n) for each, n in adds if each.outcome == "ok"]
        begun = [(each.begun, n) for each, n in adds if each.outcome != "fail"]
        self._done = [self._of(done, sign) for sign in (-1, 1)]
        self._begun = [self._of(begun, sign) for sign in (-1, 1)]

    @staticmethod
    def _of(amounts: list[tuple[int, Any]], sign: int) -> _Sums:
        return _Sums([(place, n) for place, n in amounts if n * sign > 0])

    def at(self, read: Transaction) -> tuple[Any, Any]:
        """Return the bounds for a read."""
        less, more = (sums.before(read.begun) for sums in self._done)
        most_less, most_more = (sums.before(read.ended) for sums in self._begun)
        return more + most_less, less + most_more

    def ever(self) -> tuple[Any, Any]:
        """Return the bounds in any order."""
        less, more = (sums.before(self._end) for sums in self._begun)
        return less, more


def check(operations: Sequence[Operation]) -> Verdict:
    """Return the verdict on a history of counters."""
    transactions = pairs(operations)
    findings = Findings()
    adds: defaultdict[Hashable, list[tuple[Transaction, Any]]] = defaultdict(list)
    for each in transactions:
        if each.invoke.f == "add":
            value = each.invoke.value
            adds[value["key"]].append((each, value["amount"]))
    end = len(operations)
    bounds = {key: _Bounds(each, end) for key, each in adds.items()}
    never = _Bounds([], end)
    for each in transactions:
        if each.invoke.f != "read" or each.outcome != "ok":
            continue
        for key, count in each.value.items():
            known = bounds.get(key, never)
            for name, (least, most) in (
                ("impossible-count", known.ever()),
                ("count-out-of-bounds", known.at(each)),
            ):
                if not least <= count <= most:
                    findings.add(
                        name,
                        f"the read at index {each.index} found counter "
                        f"{edn.text(key)} at {count}; it can be from {least} to {most}",
                    )
                    break
    return findings.verdict(nothing_to_compare(transactions, {"read"}, {"add"}))
