"""Long forks: all reads see independent writes in the same order.

``write`` of a key, once, and ``read`` of ``{key: 0 or 1}`` over its group. Of two reads of a
group one must have seen all writes that the other saw.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from jepsen import edn
from jepsen.checker.transactions import nothing_to_compare, pairs
from jepsen.checker.verdict import Findings
from jepsen.history import MalformedHistory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jepsen.checker.transactions import Transaction
    from jepsen.checker.verdict import Verdict
    from jepsen.history import Operation


def check(operations: Sequence[Operation]) -> Verdict:
    """Return the verdict on a history of groups.

    Raises
    ------
    MalformedHistory
        If a key is written twice, or a read shows a key that no operation writes.
    """
    transactions = pairs(operations)
    findings = Findings()
    writes: dict[Any, Transaction] = {}
    groups: defaultdict[frozenset[Any], list[tuple[frozenset[Any], Transaction]]]
    groups = defaultdict(list)
    for each in transactions:
        if each.invoke.f == "write":
            if each.invoke.value in writes:
                raise MalformedHistory(
                    f"operation {each.invoke.index}: key {each.invoke.value!r} was "
                    "written before"
                )
            writes[each.invoke.value] = each
    for each in transactions:
        if each.invoke.f == "read" and each.outcome == "ok":
            seen = frozenset(key for key, value in each.value.items() if value)
            groups[frozenset(each.value)].append((seen, each))
            _check_read(each, seen, writes, findings)
    for reads in groups.values():
        # In this order each read must have seen all writes that the one before it saw.
        reads.sort(key=lambda read: len(read[0]))
        for (less, first), (more, second) in pairwise(reads):
            if not less <= more:
                findings.add(
                    "long-fork",
                    f"the read at index {first.index} saw {_keys(less - more)} and "
                    f"not {_keys(more - less)}",
                    f"the read at index {second.index} saw {_keys(more - less)} and "
                    f"not {_keys(less - more)}",
                )
    return findings.verdict(nothing_to_compare(transactions, {"read"}, {"write"}))


def _keys(keys: frozenset[Any]) -> str:
    return edn.text(sorted(keys, key=str))


def _check_read(
    read: Transaction,
    seen: frozenset[Any],
    writes: dict[Any, Transaction],
    findings: Findings,
) -> None:
    for key in read.value:
        write = writes.get(key)
        if write is None:
            if key in seen:
                raise MalformedHistory(
                    f"operation {read.index}: key {key!r} was never written"
                )
        elif key in seen and write.outcome == "fail":
            findings.add(
                "G1a",
                f"the read at index {read.index} saw key {edn.text(key)}, whose write "
                f"failed at index {write.index}",
            )
        elif key not in seen and write.outcome == "ok" and write.ended < read.begun:
            findings.add(
                "stale-read",
                f"the write of key {edn.text(key)} was acknowledged at index "
                f"{write.index}; the read at index {read.index} began later and does "
                "not see it",
            )
