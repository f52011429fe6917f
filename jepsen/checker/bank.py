"""Transfers between accounts: no snapshot has another total, or an overdrawn account.

``transfer`` of ``{"from", "to", "amount"}`` and ``read`` of ``{account: balance}``, of all
accounts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepsen import edn
from jepsen.checker.changes import Change, find_lost
from jepsen.checker.transactions import nothing_to_compare, pairs
from jepsen.checker.verdict import Findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jepsen.checker.verdict import Verdict
    from jepsen.history import Operation


def check(operations: Sequence[Operation]) -> Verdict:
    """Return the verdict on a bank's history."""
    transactions = pairs(operations)
    findings = Findings()
    reads = [
        (each, each.value)
        for each in transactions
        if each.invoke.f == "read" and each.outcome == "ok"
    ]
    for each, balances in reads:
        # The first read says how it must be.
        first_read, first = reads[0]
        odd = balances.keys() ^ first.keys()
        if odd:
            findings.add(
                "unexpected-accounts",
                f"the reads at index {first_read.index} and {each.index} disagree "
                f"whether there are accounts {edn.text(sorted(odd, key=str))}",
            )
        elif sum(balances.values()) != sum(first.values()):
            findings.add(
                "wrong-total",
                f"the read at index {each.index} has a total of "
                f"{sum(balances.values())}: {edn.text(balances)}",
                f"the one at index {first_read.index} has {sum(first.values())}: "
                f"{edn.text(first)}",
            )
    for each, balances in reads:
        if overdrawn := {a: n for a, n in balances.items() if n < 0}:
            findings.add(
                "overdrawn",
                f"the read at index {each.index} has {edn.text(overdrawn)}",
            )
    changes = [
        Change(each, each.invoke.value[account], sign * each.invoke.value["amount"])
        for each in transactions
        if each.invoke.f == "transfer"
        for account, sign in (("from", -1), ("to", 1))
    ]
    find_lost(reads, changes, findings)
    return findings.verdict(nothing_to_compare(transactions, {"read"}, {"transfer"}))
