"""Inserts of the same unique key by several clients: one owner, the same in all reads.

``insert`` of ``[key, owner]`` and ``read`` of ``[[key, owner], …]``, of all rows. An owner is
unique.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from jepsen import edn
from jepsen.checker.rows import find_lost
from jepsen.checker.transactions import nothing_to_compare, pairs
from jepsen.checker.verdict import Findings
from jepsen.history import MalformedHistory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jepsen.checker.rows import Row
    from jepsen.checker.transactions import Transaction
    from jepsen.checker.verdict import Verdict
    from jepsen.history import Operation


def check(operations: Sequence[Operation]) -> Verdict:
    """Return the verdict on a history of inserts.

    Raises
    ------
    MalformedHistory
        If a read shows a row that no operation inserts.
    """
    transactions = pairs(operations)
    findings = Findings()
    inserts = [each for each in transactions if each.invoke.f == "insert"]
    by_row = {tuple(each.invoke.value): each for each in inserts}
    if len(by_row) < len(inserts):
        raise MalformedHistory("an owner inserts the same key twice")
    owners: dict[Any, tuple[Any, Transaction]] = {}
    for each in inserts:
        if each.outcome == "ok":
            key, owner = each.invoke.value
            _agree(owners, "duplicate-key", key, owner, each, findings)
    reads = [
        (each, _check_read(each, owners, by_row, findings))
        for each in transactions
        if each.invoke.f == "read" and each.outcome == "ok"
    ]
    find_lost(by_row, reads, findings)
    return findings.verdict(nothing_to_compare(transactions, {"read"}, {"insert"}))


def _agree(
    owners: dict[Any, tuple[Any, Transaction]],
    name: str,
    key: Any,
    owner: Any,
    each: Transaction,
    findings: Findings,
) -> None:
    """Note the owner of a key, and a second owner as an anomaly."""
    other, where = owners.setdefault(key, (owner, each))
    if other != owner:
        findings.add(
            name,
            f"key {edn.text(key)} belongs to {edn.text(other)} by index {where.index} "
            f"and to {edn.text(owner)} by index {each.index}",
        )


def _check_read(
    read: Transaction,
    owners: dict[Any, tuple[Any, Transaction]],
    by_row: dict[Row, Transaction],
    findings: Findings,
) -> set[Row]:
    """Note the anomalies of a read by itself, and return its rows."""
    rows = [tuple(row) for row in read.value]
    for key, times in Counter(key for key, _ in rows).items():
        if times > 1:
            findings.add(
                "duplicate-key",
                f"the read at index {read.index} found key {edn.text(key)} "
                f"{times} times",
            )
    for row in rows:
        if row not in by_row:
            raise MalformedHistory(f"operation {read.index}: {row!r} was not inserted")
        insert = by_row[row]
        if insert.outcome == "fail":
            findings.add(
                "G1a",
                f"the read at index {read.index} found {edn.text(row)}, whose insert "
                f"failed at index {insert.index}",
            )
        else:
            key, owner = row
            _agree(owners, "contradictory-rows", key, owner, read, findings)
    return set(rows)
