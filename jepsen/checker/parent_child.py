"""Parents and children: no child without its parent.

``insert-parent`` and ``delete-parent`` of a parent, ``insert-child`` of ``[child, parent]``, and
``read`` of ``{"parents": […], "children": [[child, parent], …]}``, of all rows. A child is
unique. A parent with children is not deleted, except by ``delete-family``, which deletes
the children too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepsen import edn
from jepsen.checker.rows import find_lost
from jepsen.checker.transactions import nothing_to_compare, pairs
from jepsen.checker.verdict import Findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jepsen.checker.rows import Row
    from jepsen.checker.transactions import Transaction
    from jepsen.checker.verdict import Verdict
    from jepsen.history import Operation

_WRITES = {"insert-parent", "delete-parent", "delete-family", "insert-child"}


def check(operations: Sequence[Operation]) -> Verdict:
    """Return the verdict on a history of parents and children."""
    transactions = pairs(operations)
    findings = Findings()
    children = {
        tuple(each.invoke.value): each
        for each in transactions
        if each.invoke.f == "insert-child"
    }
    reads = [
        (each, _check_read(each, children, findings))
        for each in transactions
        if each.invoke.f == "read" and each.outcome == "ok"
    ]
    deletions: dict[object, list[Transaction]] = {}
    for each in transactions:
        if each.invoke.f == "delete-family" and each.outcome != "fail":
            deletions.setdefault(each.invoke.value, []).append(each)
    lasting = {row: each for row, each in children.items() if row[1] not in deletions}
    find_lost(lasting, reads, findings)
    for read, found in reads:
        for row in found:
            for deletion in deletions.get(row[1], ()):
                _check_deleted(read, row, children.get(row), deletion, findings)
    return findings.verdict(nothing_to_compare(transactions, {"read"}, _WRITES))


def _check_read(
    read: Transaction,
    inserts: dict[Row, Transaction],
    findings: Findings,
) -> set[Row]:
    """Note the anomalies of a read by itself, and return its children."""
    parents = set(read.value["parents"])
    children = {tuple(row) for row in read.value["children"]}
    for row in children:
        if row[1] not in parents:
            findings.add(
                "orphan",
                f"the read at index {read.index} found child {edn.text(row[0])} and "
                f"not its parent {edn.text(row[1])}",
            )
        if row in inserts and inserts[row].outcome == "fail":
            findings.add(
                "G1a",
                f"the read at index {read.index} found child {edn.text(row)}, whose "
                f"insert failed at index {inserts[row].index}",
            )
    return children


def _check_deleted(
    read: Transaction,
    row: Row,
    insert: Transaction | None,
    deletion: Transaction,
    findings: Findings,
) -> None:
    """Note a child that a read found after its family was deleted."""
    if (
        insert is not None
        and insert.ended < deletion.begun
        and deletion.outcome == "ok"
        and deletion.ended < read.begun
    ):
        findings.add(
            "lost-change",
            f"the read at index {read.index} found child {edn.text(row)}, whose "
            f"family was deleted at index {deletion.index}",
        )
