"""The search for an order of all transactions that explains what they read.

In such an order each read shows the last write before it. So when a transaction is placed
next, everything that it is known to come after has to be placed, and each version that it
overwrites must have no reader left but itself. These two suffice: a reader comes after its
version's writer, and no write has overwritten that version, as the reader was left.

*What can do no harm is done at once.* A transaction that writes only what it has read (or
nothing, or what no transaction left writes) can be moved to the front of any order that
goes on from here: what it reads stays as it is until it is placed, so that no transaction writes
there before it, and none before it reads what it writes. Only blind writes are choices.

*The rest is tried*, what ended first before what ended later. Which transactions are left
decides everything that can come: a version with readers left is the current one, and any
other may be overwritten. So a set of transactions that led nowhere is not tried again, and
the search ends. With the clock's order few transactions can be next at a time, and the search
takes as long as the history is; without it, it may take too long and is given up.

A transaction in doubt of which nothing is seen is left out: from an order with it, it can
be taken away.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np

from jepsen.checker.registers.versions import UNKNOWN
from jepsen.checker.registers.wording import impasse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jepsen.checker.graph import Graph, Level
    from jepsen.checker.registers.versions import Register
    from jepsen.checker.transactions import Transaction

EFFORT = 500
"""For each transaction so many are looked at, in all."""

_Version = tuple[int, Any]
"""A register's number and a value."""


class Search:
    """One search.

    Parameters
    ----------
    transactions, found : sequence
        The history.
    is_committed : sequence of bool
        Of each transaction; the others have no place.
    graph : Graph
        What is known to come before what.
    level : Level
        Which edges count.
    """

    def __init__(
        self,
        transactions: Sequence[Transaction],
        found: Sequence[Register],
        is_committed: Sequence[bool],
        graph: Graph,
        level: Level,
    ) -> None:
        self._transactions, self._found = transactions, found
        self._all = self._left = sum(is_committed)
        edges = graph.edges.where(graph.edges.level <= level)
        self._after: list[list[int]] = [[] for _ in range(graph.nodes)]
        self._waits = np.bincount(edges.target, minlength=graph.nodes).tolist()
        for source, target in zip(
            edges.source.tolist(), edges.target.tolist(), strict=True
        ):
            self._after[source].append(target)
        self._reads: list[list[_Version]] = [[] for _ in range(graph.nodes)]
        self._writes: list[list[_Version]] = [[] for _ in range(graph.nodes)]
        self._readers: dict[_Version, int] = {}
        self._blind: list[list[int]] = [[] for _ in range(graph.nodes)]
        self._writers = [0] * len(found)
        self._current: list[Any] = [None] * len(found)
        for key, register in enumerate(found):
            for number, read, written in register.accesses:
                if not is_committed[number]:
                    continue
                if read is not UNKNOWN:
                    self._reads[number].append((key, read))
                    self._count((key, read), 1)
                if written is not UNKNOWN:
                    self._writes[number].append((key, written))
                    if read is UNKNOWN:
                        self._blind[number].append(key)
                    self._writers[key] += 1
        self._ready = {
            node
            for node in range(graph.nodes)
            if not self._waits[node]
            and (node >= len(transactions) or is_committed[node])
        }
        chance = random.Random(0)  # noqa: S311 - a number for each, to name sets by
        self._marks = [chance.getrandbits(64) for _ in range(graph.nodes)]
        self._is_placed = bytearray(graph.nodes)
        self._trail: list[tuple[int, list[_Version]]] = []
        self._mark = 0
        self._looks = 0
        self._fewest = self._all + 1
        self.impasse: tuple[str, ...] = ()
        """Why there is no order, once the search has found that there is none."""

    def run(self) -> bool | None:
        """Return whether there is an order; None if that was too long to find out."""
        tried: set[int] = set()
        choices: list[tuple[int, list[int]]] = []
        while True:
            self._place_harmless()
            if not self._left:
                return True
            if self._looks > EFFORT * self._all:
                return None
            others: list[int] = []
            if self._mark not in tried:
                tried.add(self._mark)
                others = sorted(filter(self._is_free, self._ready), key=self._end)
                if not others:
                    self._note_impasse()
            while not others:
                if not choices:
                    return False
                depth, others = choices.pop()
                self._take_back(depth)
            choices.append((len(self._trail), others[1:]))
            self._place(others[0])

    def _end(self, node: int) -> int:
        return self._transactions[node].ended

    def _is_free(self, node: int) -> bool:
        """Return whether what it overwrites has no reader left but itself."""
        self._looks += 1
        return not any(self._hindrance(node, key) for key, _ in self._writes[node])

    def _hindrance(self, node: int, key: int) -> int:
        """Return how many others have yet to read what it overwrites."""
        version = key, self._current[key]
        return self._readers.get(version, 0) - (version in self._reads[node])

    def _is_harmless(self, node: int) -> bool:
        self._looks += 1
        return all(self._writers[key] == 1 for key in self._blind[node])

    def _place_harmless(self) -> None:
        waiting = list(self._ready)
        while waiting:
            for node in waiting:
                if self._is_harmless(node) and self._is_free(node):
                    self._place(node)
            placed, waiting = waiting, []
            if any(node not in self._ready for node in placed):
                waiting = list(self._ready)

    def _place(self, node: int) -> None:
        replaced = [(key, self._current[key]) for key, _ in self._writes[node]]
        self._trail.append((node, replaced))
        self._ready.remove(node)
        self._is_placed[node] = True
        self._mark ^= self._marks[node]
        self._left -= node < len(self._transactions)
        for version in self._reads[node]:
            self._count(version, -1)
        for key, value in self._writes[node]:
            self._current[key] = value
            self._writers[key] -= 1
        for after in self._after[node]:
            self._waits[after] -= 1
            if not self._waits[after]:
                self._ready.add(after)

    def _take_back(self, depth: int) -> None:
        """Take back all that was placed since there were so many."""
        while len(self._trail) > depth:
            node, replaced = self._trail.pop()
            for after in self._after[node]:
                if not self._waits[after]:
                    self._ready.remove(after)
                self._waits[after] += 1
            for key, value in replaced:
                self._current[key] = value
                self._writers[key] += 1
            for version in self._reads[node]:
                self._count(version, 1)
            self._left += node < len(self._transactions)
            self._mark ^= self._marks[node]
            self._is_placed[node] = False
            self._ready.add(node)

    def _count(self, version: _Version, more: int) -> None:
        self._readers[version] = self._readers.get(version, 0) + more

    def _note_impasse(self) -> None:
        """Keep why nothing can come next, if fewer were left than ever before."""
        if self._left >= self._fewest:
            return
        self._fewest = self._left
        stuck = []
        for node in sorted(self._ready, key=self._end):
            for key, _ in self._writes[node]:
                if self._hindrance(node, key):
                    value = self._current[key]
                    reader = next(
                        each.transaction
                        for each in self._found[key].accesses
                        if each.read == value
                        and each.transaction != node
                        and not self._is_placed[each.transaction]
                    )
                    stuck.append((node, key, value, reader))
        placed = self._all - self._left
        self.impasse = impasse(stuck, placed, self._transactions, self._found)
