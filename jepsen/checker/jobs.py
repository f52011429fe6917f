"""Job queues: every job is taken once, and a slot has one owner at a time.

``submit`` of a job, ``take`` of a job or of nothing (null), and ``collect`` of all that are
left, are what a queue's operations are (:mod:`jepsen.checker.queue`). ``hold`` of
``{"slot", "skips", "since", "until"}``: the client had the slot at all times between the two, in
nanoseconds of a clock that all clients have in common; it skipped locked ones, or wanted a
certain one. ``slot`` is null if it got none. ``seen`` is what it read in the slot, each time. ``touch`` of
a slot changes that.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jepsen import edn
from jepsen.checker import queue
from jepsen.checker.transactions import pairs
from jepsen.checker.verdict import Findings, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jepsen.checker.transactions import Transaction
    from jepsen.history import Operation

SLOTS = 16
"""So many there are, from the start to the end."""

_QUEUE = {"submit": "enqueue", "take": "dequeue", "collect": "drain"}
_GRACE = 20_000_000_000
"""Nanoseconds after an error in which a client's locks may still be there."""
_MOST = 100
"""So many times that a client got none are looked at."""


def check(operations: Sequence[Operation]) -> Verdict:
    """Return the verdict on a history of jobs and slots."""
    holding = [each for each in operations if each.f == "hold"]
    holds = pairs(holding) if holding else []
    taking = [
        replace(each, f=_QUEUE[each.f]) for each in operations if each.f in _QUEUE
    ]
    findings = Findings()
    _find_two_owners(holds, findings)
    _find_skipped(holds, findings)
    _find_changed(holds, findings)
    found, taken = findings.verdict(), queue.check(taking)
    return Verdict(
        found.anomalies + taken.anomalies,
        {**taken.counts, **found.counts},
        taken.unknown,
    )


def _find_two_owners(holds: Sequence[Transaction], findings: Findings) -> None:
    by_slot: defaultdict[Any, list[tuple[int, int, Transaction]]] = defaultdict(list)
    for each in holds:
        if each.outcome == "ok" and each.value["slot"] is not None:
            value = each.value
            by_slot[value["slot"]].append((value["since"], value["until"], each))
    for slot, held in by_slot.items():
        held.sort(key=lambda one: one[:2])
        latest, owner = -1, held[0][2]
        for since, until, each in held:
            if since < latest:
                findings.add(
                    "two-owners",
                    f"slot {edn.text(slot)} was held at index {each.index} while it was "
                    f"held at index {owner.index}, for {latest - since} ns more",
                )
            if until > latest:
                latest, owner = until, each


def _find_changed(holds: Sequence[Transaction], findings: Findings) -> None:
    """Find slots that others changed while they were held."""
    for each in holds:
        seen = list(each.value["seen"]) if each.outcome == "ok" else []
        if len(set(seen)) > 1:
            findings.add(
                "locked-row-changed",
                f"slot {edn.text(each.value['slot'])} was held at index {each.index}, "
                f"where it had {edn.text(seen[0])} and then {edn.text(seen[-1])}",
            )


def _find_skipped(holds: Sequence[Transaction], findings: Findings) -> None:
    """Find clients that skipped a slot although too few others can have had any."""
    empty = [
        each
        for each in holds
        if each.outcome == "ok" and each.value["skips"] and each.value["slot"] is None
    ]
    for each in empty[:_MOST]:
        others = sum(_may_hold(other, each) for other in holds if other is not each)
        if others < SLOTS:
            findings.add(
                "free-row-skipped",
                f"at index {each.index} no slot was free, though at most {others} other "
                f"clients can have had one, and there are {SLOTS}",
            )


def _may_hold(other: Transaction, each: Transaction) -> bool:
    if other.begun > each.ended:
        return False
    if other.ended > each.begun:
        return True
    end = other.complete
    assert end is not None
    return (
        end.type != "ok"
        and not (end.error or "").startswith("Refused")
        and end.time > each.invoke.time - _GRACE
    )
