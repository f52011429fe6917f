"""Queues: every element comes out once.

``enqueue`` of an element, ``dequeue`` of an element or of nothing (null), and ``drain`` of all
elements that are left. Elements are unique.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from jepsen import edn
from jepsen.checker.transactions import pairs
from jepsen.checker.verdict import Findings
from jepsen.history import MalformedHistory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jepsen.checker.transactions import Transaction
    from jepsen.checker.verdict import Verdict
    from jepsen.history import Operation


def check(operations: Sequence[Operation]) -> Verdict:
    """Return the verdict on a queue's history.

    Raises
    ------
    MalformedHistory
        If an element is enqueued twice or comes out without having been enqueued.
    """
    transactions = pairs(operations)
    findings = Findings()
    enqueued: dict[Any, Transaction] = {}
    taken: defaultdict[Any, list[Transaction]] = defaultdict(list)
    for each in transactions:
        if each.invoke.f == "enqueue":
            element = each.invoke.value
            if element in enqueued:
                raise MalformedHistory(
                    f"operation {each.invoke.index}: {element!r} was enqueued before"
                )
            enqueued[element] = each
        elif each.outcome == "ok":
            for element in _taken(each):
                taken[element].append(each)
    for element, takers in taken.items():
        if element not in enqueued:
            raise MalformedHistory(
                f"operation {takers[0].index}: {element!r} was never enqueued"
            )
        places = [each.index for each in takers]
        if enqueued[element].outcome == "fail":
            findings.add(
                "G1a",
                f"{edn.text(element)} came out at index {places[0]}; its enqueue "
                f"failed at index {enqueued[element].index}",
            )
        if len(places) > 1:
            findings.add(
                "duplicate-dequeue",
                f"{edn.text(element)} came out more than once: at index "
                f"{edn.text(places)}",
            )
    unknown = _find_lost(transactions, enqueued, set(taken), findings)
    return findings.verdict(unknown)


def _taken(each: Transaction) -> list[Any]:
    if each.invoke.f == "drain":
        return list(each.value)
    return [] if each.value is None else [each.value]


def _find_lost(
    transactions: Sequence[Transaction],
    enqueued: dict[Any, Transaction],
    taken: set[Any],
    findings: Findings,
) -> str | None:
    """Find acknowledged elements that never came out; return why that is unknown.

    Once everything else is over a drain takes the remaining elements. A dequeue in
    doubt may have taken one without telling a client, a drain in doubt any number.
    """
    drains = [
        each
        for each in transactions
        if each.invoke.f == "drain" and each.outcome != "fail"
    ]
    if any(each.outcome == "info" for each in drains):
        return "a drain is in doubt"
    if not drains:
        return "nothing drained the queue"
    last = drains[-1]
    if any(
        each.ended > last.begun
        for each in transactions
        if each is not last and each.outcome == "ok"
    ):
        return "no drain came after everything else"
    lost = [
        element
        for element, each in enqueued.items()
        if each.outcome == "ok" and element not in taken
    ]
    in_doubt = sum(
        each.invoke.f == "dequeue" and each.outcome == "info" for each in transactions
    )
    if len(lost) > in_doubt:
        findings.add(
            "lost-element",
            f"{len(lost)} elements were enqueued and never came out, and "
            f"{in_doubt} dequeues are in doubt: {edn.text(lost[:8])}",
        )
    return None if taken else "nothing came out of the queue"
