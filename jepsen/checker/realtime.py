"""Precedence of transactions by the clock and by the client.

One transaction precedes another in real time if it ended before the other began. Those
are almost all pairs, so they go through a chain of barriers: a transaction that ended
leads to the next barrier, each barrier to the one after it, and the last barrier before
a beginning to the transaction that begins there. There is a barrier only where a
transaction begins after another has ended.

A transaction in doubt has no end: it may take effect at any time later. A client's next
transaction is not after it either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jepsen.checker.graph import Edges, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jepsen.checker.transactions import Transaction


def realtime(
    transactions: Sequence[Transaction], is_committed: Sequence[bool], nodes: int
) -> tuple[Edges, int]:
    """Return the edges of the clock and the number of nodes with the barriers."""
    known = [number for number, each in enumerate(is_committed) if each]
    numbers = np.array(known, np.int64)
    begun = np.array([transactions[number].begun for number in known], np.int64)
    by_end = sorted(
        (transactions[number].ended, number)
        for number in known
        if transactions[number].outcome == "ok"
    )
    ended = np.array([end for end, _ in by_end], np.int64)
    acknowledged = np.array([number for _, number in by_end], np.int64)
    before = np.searchsorted(ended, begun)  # how many ended before it began
    barriers = np.unique(before[before > 0])
    entered = np.searchsorted(barriers, np.arange(len(ended)), side="right")
    has_barrier = entered < len(barriers)
    begins_after = before > 0
    chain = nodes + np.arange(len(barriers))
    parts = (
        (acknowledged[has_barrier], nodes + entered[has_barrier]),
        (chain[:-1], chain[1:]),
        (
            nodes + np.searchsorted(barriers, before[begins_after]),
            numbers[begins_after],
        ),
    )
    edges = Edges.all(
        Edges.of(Kind.REALTIME, source, target) for source, target in parts
    )
    return edges, nodes + len(barriers)


def processes(
    transactions: Sequence[Transaction], is_committed: Sequence[bool]
) -> Edges:
    """Return the edges from each client's transaction to its next one."""
    previous: dict[int, int] = {}
    source: list[int] = []
    target: list[int] = []
    for number, transaction in enumerate(transactions):
        if not is_committed[number]:
            continue
        process = transaction.invoke.process
        if process in previous:
            source.append(previous[process])
            target.append(number)
        if transaction.outcome == "ok":
            previous[process] = number
    return Edges.of(Kind.PROCESS, source, target)
