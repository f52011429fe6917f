"""Reads by a predicate: they select exactly the rows that are there.

``insert`` and ``update`` of ``{"id", "value"}``, ``delete`` of ``{"id"}``, and ``read`` of
``{"above": x, "rows": [[id, value], …], "all": [[id, value], …]}``: a selection of the rows whose
value is above x, and in the same transaction one of all rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jepsen import edn
from jepsen.checker.transactions import nothing_to_compare, pairs
from jepsen.checker.verdict import Findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jepsen.checker.transactions import Transaction
    from jepsen.checker.verdict import Verdict
    from jepsen.history import Operation

_Row = tuple[Any, ...]


def check(operations: Sequence[Operation]) -> Verdict:
    """Return the verdict on a history of predicates."""
    transactions = pairs(operations)
    findings = Findings()
    failed: dict[_Row, Transaction] = {}
    written: set[_Row] = set()
    for each in transactions:
        if each.invoke.f in ("insert", "update"):
            row = (each.invoke.value["id"], each.invoke.value["value"])
            if each.outcome == "fail":
                failed.setdefault(row, each)
            else:
                written.add(row)
    for each in transactions:
        if each.invoke.f == "read" and each.outcome == "ok":
            rows = [tuple(row) for row in each.value["all"]]
            _check_selection(each, rows, findings)
            for row in rows:
                if row not in failed:
                    written.add(row)
                elif row not in written and each.ended < failed[row].begun:
                    # It was there before the write that failed.
                    written.add(row)
                elif row not in written:
                    findings.add(
                        "G1a",
                        f"the read at index {each.index} found {edn.text(row)}, which "
                        f"was written at index {failed[row].invoke.index} only, and that "
                        "failed",
                    )
    return findings.verdict(
        nothing_to_compare(transactions, {"read"}, {"insert", "update", "delete"})
    )


def _check_selection(read: Transaction, rows: list[_Row], findings: Findings) -> None:
    ids = [row[0] for row in rows]
    if len(set(ids)) < len(ids):
        findings.add(
            "duplicate-key",
            f"the read at index {read.index} found more than one row of an id: "
            f"{edn.text(sorted(rows, key=str))}",
        )
    above = read.value["above"]
    expected = {row for row in rows if row[1] > above}
    selected = {tuple(row) for row in read.value["rows"]}
    if selected != expected:
        findings.add(
            "phantom",
            f"the read at index {read.index} selected the rows above {above} and all "
            "rows in one transaction",
            f"only the first has {edn.text(sorted(selected - expected, key=str))}, "
            f"only the second {edn.text(sorted(expected - selected, key=str))}",
        )
