"""Reads of the past: a version shows the same whenever and however it is read.

``move`` as a bank's ``transfer``; ``note``, of the present, ``recall``, as of a version, and
``replay``, by the changes since another version, each of ``{"version", "accounts"}``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jepsen import edn
from jepsen.checker.transactions import nothing_to_compare, pairs
from jepsen.checker.verdict import Findings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jepsen.checker.transactions import Transaction
    from jepsen.checker.verdict import Verdict
    from jepsen.history import Operation

_PRESENT, _PAST = "note", {"recall", "replay"}


def check(operations: Sequence[Operation]) -> Verdict:
    """Return the verdict on a history of reads of the past."""
    transactions = pairs(operations)
    findings = Findings()
    known: dict[int, tuple[Transaction, Mapping[Any, Any]]] = {}
    shown = [
        each
        for each in transactions
        if each.invoke.f in {_PRESENT, *_PAST} and each.outcome == "ok"
    ]
    total: int | None = None
    # A read of it as the present says how a version is.
    for each in sorted(shown, key=lambda each: each.invoke.f != _PRESENT):
        version, accounts = each.value["version"], each.value["accounts"]
        first, expected = known.setdefault(version, (each, accounts))
        if accounts != expected:
            findings.add(
                "changed-past",
                f"the {each.invoke.f} at index {each.index} has of version {version} "
                f"{edn.text(accounts)}",
                f"the {first.invoke.f} at index {first.index} has {edn.text(expected)}",
            )
        total = sum(accounts.values()) if total is None else total
        if sum(accounts.values()) != total:
            findings.add(
                "wrong-total",
                f"the {each.invoke.f} at index {each.index} has a total of "
                f"{sum(accounts.values())}: {edn.text(accounts)}; another one has {total}",
            )
    check_order([each for each in shown if each.invoke.f == _PRESENT], findings)
    return findings.verdict(nothing_to_compare(transactions, _PAST, {"move"}))


def check_order(notes: Sequence[Transaction], findings: Findings) -> None:
    """Note a version that is older than one that was shown before it was asked for."""
    newest: Transaction | None = None
    ended = sorted(notes, key=lambda each: each.ended)
    position = 0
    for each in sorted(notes, key=lambda each: each.begun):
        while position < len(ended) and ended[position].ended < each.begun:
            if (
                newest is None
                or ended[position].value["version"] > newest.value["version"]
            ):
                newest = ended[position]
            position += 1
        if newest is not None and each.value["version"] < newest.value["version"]:
            findings.add(
                "stale-read",
                f"the {each.invoke.f} at index {each.index} has version "
                f"{each.value['version']}",
                f"the one at index {newest.index}, which was over before, has "
                f"{newest.value['version']}",
            )
