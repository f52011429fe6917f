"""Anomalies of registers that need no cycle: one read, or one key, shows them by itself."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from jepsen import edn
from jepsen.checker.registers.versions import UNKNOWN
from jepsen.checker.registers.wording import transaction

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from jepsen.checker.registers.versions import Register
    from jepsen.checker.transactions import Transaction
    from jepsen.checker.verdict import Findings


def find(
    transactions: Sequence[Transaction],
    found: Sequence[Register],
    findings: Findings,
) -> None:
    """Note all of them."""
    for each in transactions:
        if each.outcome == "ok":
            _find_within(each, findings)
    for register in found:
        _find_dirty(register, transactions, findings)
        _find_lost_updates(register, transactions, findings)


def _find_within(each: Transaction, findings: Findings) -> None:
    """Find anomalies in the order of a transaction's own micro-operations.

    ``internal``: it does not see its own earlier reads or writes. ``future-read``: it sees
    its own later writes.
    """
    expected: dict[Hashable, Any] = {}
    read: set[tuple[Hashable, Any]] = set()
    for f, key, value in each.value:
        if f == "r":
            read.add((key, value))
            if expected.get(key, value) != value:
                findings.add(
                    "internal",
                    f"T1 = {transaction(each)}",
                    f"by its earlier operations key {edn.text(key)} is "
                    f"{edn.text(expected[key])}; T1 read {edn.text(value)}",
                )
        elif (key, value) in read:
            findings.add(
                "future-read",
                f"T1 = {transaction(each)}",
                f"T1 read {edn.text(value)} of key {edn.text(key)} before it wrote it",
            )
        expected[key] = value


def _find_dirty(
    register: Register, transactions: Sequence[Transaction], findings: Findings
) -> None:
    """Find reads of failed writes (G1a), and of what the writer replaced itself (G1b)."""
    for reader, value in register.reads:
        if value is None or register.writers[value] == reader:
            continue
        writer = transactions[register.writers[value]]
        failed = writer.outcome == "fail"
        if failed or value in register.passing:
            findings.add(
                "G1a" if failed else "G1b",
                f"T1 = {transaction(transactions[reader])}",
                f"T2 = {transaction(writer)}",
                f"T1 read {edn.text(value)} of key {edn.text(register.key)}, which T2 "
                + ("wrote, and T2 failed" if failed else "wrote and then replaced"),
            )


def _find_lost_updates(
    register: Register, transactions: Sequence[Transaction], findings: Findings
) -> None:
    """Find acknowledged transactions that read one version and write on top of it."""
    updates: defaultdict[Any, list[Transaction]] = defaultdict(list)
    for access in register.accesses:
        if UNKNOWN not in (access.read, access.written):
            updates[access.read].append(transactions[access.transaction])
    for value, writers in updates.items():
        if len(writers) > 1:
            findings.add(
                "lost-update",
                *(
                    f"T{n} = {transaction(each)}"
                    for n, each in enumerate(writers[:4], 1)
                ),
                f"each of {len(writers)} read key {edn.text(register.key)} as "
                f"{edn.text(value)} and wrote it, and each was acknowledged",
            )
