"""Shifts of doctors: that nobody is on call, or everybody, is write skew.

``turn`` of ``{"shift", "doctor", "on_call": those who were}``, and ``look`` of
``{shift: [doctor, …]}``, those on call. Every such list is a snapshot's. A doctor who is among them
leaves, if another stays; one who is not comes, if another is away. So only two at once can break
the rule: snapshot isolation permits it, serializability does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jepsen import edn
from jepsen.checker.changes import Change, find_lost
from jepsen.checker.transactions import nothing_to_compare, pairs
from jepsen.checker.verdict import Findings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jepsen.checker.transactions import Transaction
    from jepsen.checker.verdict import Verdict
    from jepsen.history import Operation

_DOCTORS = 4


def check(operations: Sequence[Operation]) -> Verdict:
    """Return the verdict on a history of shifts."""
    transactions = pairs(operations)
    findings = Findings()
    reads = []
    for each in transactions:
        if each.outcome != "ok":
            continue
        for shift, doctors in _seen(each):
            members = range(shift * _DOCTORS, (shift + 1) * _DOCTORS)
            reads.append((each, {one: int(one in doctors) for one in members}))
            if len(doctors) in (0, _DOCTORS):
                who = "nobody" if not doctors else "everybody"
                findings.add(
                    "write-skew",
                    f"the {each.invoke.f} at index {each.index} found {who} of shift "
                    f"{edn.text(shift)} on call",
                )
    changes = [
        Change(each, each.value["doctor"], _amount(each))
        for each in transactions
        if each.invoke.f == "turn"
    ]
    find_lost(reads, changes, findings)
    return findings.verdict(nothing_to_compare(transactions, {"look"}, {"turn"}))


def _amount(each: Transaction) -> int | None:
    """Return what an acknowledged turn did to whether its doctor is on call."""
    if each.outcome != "ok":
        return None
    return -1 if each.value["doctor"] in each.value["on_call"] else 1


def _seen(each: Transaction) -> Iterator[tuple[Any, Any]]:
    if each.invoke.f == "look":
        yield from each.value.items()
    else:
        yield each.value["shift"], each.value["on_call"]
