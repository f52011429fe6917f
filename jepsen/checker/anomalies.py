"""Anomalies that need no cycle: one read, or one key, shows them by itself."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from jepsen import edn
from jepsen.checker.explanation import elements, transaction

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from jepsen.checker.transactions import Transaction
    from jepsen.checker.verdict import Findings
    from jepsen.checker.versions import Elements, KeyVersions


def find(
    transactions: Sequence[Transaction],
    keys: Sequence[KeyVersions],
    is_committed: Sequence[bool],
    findings: Findings,
) -> None:
    """Note all of them."""
    _find_within(transactions, findings)
    for known in keys:
        _find_odd(known, transactions, findings)
        _find_aborted(known, transactions, is_committed, findings)
        _find_intermediate(known, transactions, findings)
        _find_lost(known, transactions, findings)


def _find_within(transactions: Sequence[Transaction], findings: Findings) -> None:
    """Find anomalies in the order of a transaction's own micro-operations.

    ``internal``: it does not see its own earlier reads or appends. ``future-read``: it
    sees its own later appends. ``lost-update``: two transactions read the same version
    of a key and append to it, and both are acknowledged.
    """
    updates: defaultdict[tuple[Hashable, Elements], list[Transaction]] = defaultdict(
        list
    )
    for each in transactions:
        if each.outcome != "ok" or len({key for _, key, _ in each.value}) == len(
            each.value
        ):
            continue
        # By key: whether the whole list is known or its end only, and that part.
        expected: dict[Hashable, tuple[bool, Elements]] = {}
        first_read: dict[Hashable, Elements] = {}
        updated: set[Hashable] = set()
        for f, key, argument in each.value:
            whole, items = expected.get(key, (False, ()))
            if f == "append":
                if key in first_read:
                    updated.add(key)
                    if argument in items[: len(first_read[key])] or (
                        argument in first_read[key]
                    ):
                        findings.add("future-read", *_future(each, key, argument))
                expected[key] = (whole, (*items, argument))
                continue
            value = argument or ()
            end = value if whole else value[max(0, len(value) - len(items)) :]
            if key in expected and end != items:
                findings.add("internal", *_internal(each, key, value, whole, items))
            if key not in expected:
                first_read[key] = value
            expected[key] = (True, value)
        for key in updated:
            updates[key, first_read[key]].append(each)
    for (key, value), writers in updates.items():
        if len(writers) > 1:
            findings.add("lost-update", *_lost_update(key, value, writers))


def _future(each: Transaction, key: Hashable, element: Any) -> tuple[str, ...]:
    return (
        f"T1 = {transaction(each)}",
        f"T1 read {edn.text(element)} of key {edn.text(key)} before it appended it",
    )


def _internal(
    each: Transaction, key: Hashable, value: Elements, whole: bool, items: Elements
) -> tuple[str, ...]:
    what = elements(items) if whole else f"a list that ends with {elements(items)}"
    return (
        f"T1 = {transaction(each)}",
        f"by its earlier operations key {edn.text(key)} is {what}; T1 read "
        f"{elements(value)}",
    )


def _lost_update(
    key: Hashable, value: Elements, writers: list[Transaction]
) -> tuple[str, ...]:
    return (
        *(f"T{n} = {transaction(each)}" for n, each in enumerate(writers[:4], 1)),
        f"each of {len(writers)} read key {edn.text(key)} as {elements(value)} and "
        "appended to it, and each was acknowledged",
    )


def _find_odd(
    known: KeyVersions, transactions: Sequence[Transaction], findings: Findings
) -> None:
    """Find reads that hold an element twice, and reads of two different histories."""
    for reader, value in known.odd:
        each = transactions[reader]
        if len(set(value)) < len(value):
            twice = next(one for n, one in enumerate(value) if one in value[:n])
            findings.add(
                "duplicate-elements",
                f"T1 = {transaction(each)}",
                f"T1 read {edn.text(twice)} more than once in key "
                f"{edn.text(known.key)}",
            )
        else:
            findings.add(
                "incompatible-order",
                f"T1 = {transaction(each)}",
                f"T1 read key {edn.text(known.key)} as {elements(value)}; the longest "
                f"read of it is {elements(known.order)}, which does not begin so",
            )


def _find_aborted(
    known: KeyVersions,
    transactions: Sequence[Transaction],
    is_committed: Sequence[bool],
    findings: Findings,
) -> None:
    """Find reads of failed appends (G1a), and commits on top of them (dirty-update)."""
    failed = {
        element
        for element in known.seen
        if transactions[known.writers[element]].outcome == "fail"
    }
    if not failed:
        return
    for reader, value in known.reads:
        element = next((one for one in value if one in failed), None)
        if element is not None:
            findings.add(
                "G1a",
                f"T1 = {transaction(transactions[reader])}",
                f"T2 = {transaction(transactions[known.writers[element]])}",
                f"T1 read {edn.text(element)} of key {edn.text(known.key)}, which T2 "
                "appended, and T2 failed",
            )
    for before, after in zip(known.order, known.order[1:], strict=False):
        if before in failed and is_committed[known.writers[after]]:
            findings.add(
                "dirty-update",
                f"T1 = {transaction(transactions[known.writers[before]])}",
                f"T2 = {transaction(transactions[known.writers[after]])}",
                f"T2 appended {edn.text(after)} to key {edn.text(known.key)} after T1 "
                f"had appended {edn.text(before)}, and T1 failed",
            )


def _find_intermediate(
    known: KeyVersions, transactions: Sequence[Transaction], findings: Findings
) -> None:
    """Find reads that end amid another transaction's appends (G1b)."""
    final = {writer: element for element, writer in known.writers.items()}
    if len(final) == len(known.writers):
        return
    for reader, value in known.reads:
        if not value:
            continue
        writer = known.writers[value[-1]]
        if writer != reader and final[writer] != value[-1]:
            findings.add(
                "G1b",
                f"T1 = {transaction(transactions[reader])}",
                f"T2 = {transaction(transactions[writer])}",
                f"T1 read key {edn.text(known.key)} up to {edn.text(value[-1])}, after "
                f"which T2 appended {edn.text(final[writer])}",
            )


def _find_lost(
    known: KeyVersions, transactions: Sequence[Transaction], findings: Findings
) -> None:
    """Find acknowledged appends that are gone at the end (lost-append).

    The end is the last read to begin, with the reads that overlap it: an append that
    was acknowledged before it began must be in it or, if the read was merely stale, in
    one of the others.
    """
    if not known.reads:
        return
    last, value = max(known.reads, key=lambda read: transactions[read[0]].begun)
    begun = transactions[last].begun
    lost = [
        (element, writer)
        for element, writer in known.writers.items()
        if transactions[writer].ended < begun
        and transactions[writer].outcome == "ok"
        and element not in value
    ]
    if not lost:
        return
    late = {
        element
        for reader, read in known.reads
        if transactions[reader].ended > begun
        for element in read
    }
    for element, writer in lost:
        if element not in late:
            findings.add(
                "lost-append",
                f"T1 = {transaction(transactions[writer])}",
                f"T2 = {transaction(transactions[last])}",
                f"T1's append of {edn.text(element)} to key {edn.text(known.key)} was "
                f"acknowledged at index {transactions[writer].index}; T2, the last to "
                f"read the key, was invoked at index "
                f"{transactions[last].invoke.index} and does not see it",
            )
