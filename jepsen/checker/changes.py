"""Whether balances changed by the acknowledged changes, and by nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from jepsen import edn

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from jepsen.checker.transactions import Transaction
    from jepsen.checker.verdict import Findings


class Change(NamedTuple):
    """A transaction's change to an account."""

    transaction: Transaction
    account: Hashable
    amount: Any


def find_lost(
    reads: Sequence[tuple[Transaction, Mapping[Any, Any]]],
    changes: Sequence[Change],
    findings: Findings,
) -> None:
    """Note accounts whose balance is not the sum of the changes (lost-change).

    Between a read of the account that ended before its first change began, and one that
    began after its last change had ended. An account without such reads is left out,
    and one that a change in doubt may have touched.
    """
    by_account: dict[Any, list[Change]] = {}
    for change in changes:
        by_account.setdefault(change.account, []).append(change)
    seen: dict[Any, list[tuple[Transaction, Any]]] = {}
    for read, balances in reads:
        for account, balance in balances.items():
            if account in by_account:
                seen.setdefault(account, []).append((read, balance))
    for account, shown in seen.items():
        _compare(account, shown, by_account[account], findings)


def _compare(
    account: Hashable,
    shown: Sequence[tuple[Transaction, Any]],
    changes: Sequence[Change],
    findings: Findings,
) -> None:
    outcomes = {change.transaction.outcome for change in changes}
    if "info" in outcomes:
        return
    first_begun = min(change.transaction.begun for change in changes)
    last_ended = max(change.transaction.ended for change in changes)
    before = [balance for read, balance in shown if read.ended < first_begun]
    after = [entry for entry in shown if entry[0].begun > last_ended]
    if not before or not after:
        return
    made = [each.amount for each in changes if each.transaction.outcome == "ok"]
    opening, expected = before[0], before[0] + sum(made)
    closing_read, closing = after[-1]
    if closing != expected:
        findings.add(
            "lost-change",
            f"account {edn.text(account)} began with {opening} and should hold "
            f"{expected} by the acknowledged changes; the read at index "
            f"{closing_read.index}, after all of them, found {closing}",
        )
