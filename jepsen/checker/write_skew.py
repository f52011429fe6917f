"""Withdrawals that are allowed by the sum of two accounts: write skew, if any, is told.

``withdraw`` of ``{"pair", "account", "amount"}`` from the account 0 or 1 of a pair whose sum
covers it, and ``read`` of ``{pair: [a, b]}``. Two withdrawals at a time, one from each
account, may leave less than nothing: snapshot isolation permits it, serializability does not.
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
    """Return the verdict on a history of withdrawals."""
    transactions = pairs(operations)
    findings = Findings()
    reads = []
    skewed = set()
    for each in transactions:
        if each.invoke.f != "read" or each.outcome != "ok":
            continue
        accounts = {
            (pair, account): balance
            for pair, balances in each.value.items()
            for account, balance in enumerate(balances)
        }
        reads.append((each, accounts))
        for pair, balances in each.value.items():
            if sum(balances) < 0 and pair not in skewed:
                skewed.add(pair)
                findings.add(
                    "write-skew",
                    f"the read at index {each.index} found pair {edn.text(pair)} with "
                    f"{edn.text(balances)}: together less than nothing",
                )
    changes = [
        Change(each, (value["pair"], value["account"]), -value["amount"])
        for each in transactions
        if each.invoke.f == "withdraw"
        for value in (each.invoke.value,)
    ]
    find_lost(reads, changes, findings)
    return findings.verdict(nothing_to_compare(transactions, {"read"}, {"withdraw"}))
