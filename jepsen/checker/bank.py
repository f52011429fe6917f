"""Transfers between accounts: no snapshot has another total, or an overdrawn account.

``transfer`` of ``{"from", "to", "amount"}`` and ``read`` of ``{account: balance}``, of all
accounts; ``watch`` and ``late-transfer`` with ``reads``, of one snapshot over some time, and what it
reads ``after`` its transfer (`jepsen.workloads.old_snapshot`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jepsen import edn
from jepsen.checker.changes import Change, find_lost
from jepsen.checker.transactions import nothing_to_compare, pairs
from jepsen.checker.verdict import Findings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jepsen.checker.transactions import Transaction
    from jepsen.checker.verdict import Verdict
    from jepsen.history import Operation

_WATCHING = ("watch", "late-transfer")


def check(operations: Sequence[Operation]) -> Verdict:
    """Return the verdict on a bank's history."""
    transactions = pairs(operations)
    findings = Findings()
    reads = [
        (each, balances)
        for each in transactions
        if each.outcome == "ok"
        for balances in _snapshots(each)
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
    for each in transactions:
        if each.invoke.f in _WATCHING and each.outcome == "ok":
            _watch(each, each.value["reads"], findings)
            _see_own(each, each.value, findings)
    changes = [
        Change(each, each.invoke.value[account], sign * each.invoke.value["amount"])
        for each in transactions
        if each.invoke.f in ("transfer", "late-transfer")
        for account, sign in (("from", -1), ("to", 1))
    ]
    find_lost(reads, changes, findings)
    return findings.verdict(
        nothing_to_compare(transactions, {"read", "watch"}, {"transfer"})
    )


def _snapshots(transaction: Transaction) -> list[Mapping[Any, Any]]:
    """All accounts as a transaction read them."""
    if transaction.invoke.f == "read":
        return [transaction.value]
    return transaction.value["reads"][:1] if transaction.invoke.f in _WATCHING else []


def _watch(
    transaction: Transaction, reads: Sequence[Mapping[Any, Any]], findings: Findings
) -> None:
    """Note a transaction whose reads differ (moved-snapshot), or miss the total."""
    for number, read in enumerate(reads):
        if read != reads[0]:
            findings.add(
                "moved-snapshot",
                f"the transaction at index {transaction.index} first read "
                f"{edn.text(reads[0])}",
                f"and {edn.text(read)} as its read {number + 1}",
            )
            return


def _see_own(
    transaction: Transaction, value: Mapping[str, Any], findings: Findings
) -> None:
    """Note a transfer that its own transaction does not see (internal)."""
    if "after" not in value:
        return
    expected = dict(value["reads"][0])
    expected[value["from"]] -= value["amount"]
    expected[value["to"]] += value["amount"]
    if value["after"] != expected:
        findings.add(
            "internal",
            f"the transaction at index {transaction.index} moved {value['amount']} from "
            f"{value['from']} to {value['to']} of {edn.text(value['reads'][0])}",
            f"and read {edn.text(value['after'])}",
        )
