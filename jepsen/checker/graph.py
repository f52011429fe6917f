"""The graph of precedence between transactions.

A node is a transaction, or an auxiliary one that stands between many and many, so that a
graph is as large as its history and no larger. An edge says that its source came before its
target, and why.

In time a transaction is two moments, at which it takes its snapshot and at which it commits.
An edge is between two of the four, and under snapshot isolation it is their order:

* ``ww``: the target overwrote the source's write. Of two transactions that overlap at
  most one may write a key, so that the source's commit came before the target's
  snapshot.
* ``wr``: the target read the source's write: the same.
* ``process``, ``realtime``: the source ended before the target began: the same.
* ``rw``: the target overwrote a version that the source read: the source's snapshot
  came before the target's commit.
* ``later``: from an auxiliary node, which is no transaction, to a commit.
* ``inside``: from a transaction's snapshot to its own commit; the graph has none, it is added
  where the moments are told apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Integers: TypeAlias = NDArray[np.int64]


class Kind(IntEnum):
    """Why an edge is there; where there are several reasons, the smallest is told."""

    WW = 0
    WR = 1
    PROCESS = 2
    REALTIME = 3
    RW = 4
    LATER = 5
    INSIDE = 6


# No version: no read shows the append, or the edge is not about a key.
NONE = -1


@dataclass(frozen=True, slots=True)
class Edges:
    """Columns of edges.

    Attributes
    ----------
    source, target : array of int
        Nodes.
    kind : array of int
        A `Kind`.
    key : array of int
        The number of the key that it is about.
    version : array of int
        The version that the target saw or overwrote, or that the source read: the
        number of its elements.
    """

    source: Integers
    target: Integers
    kind: Integers
    key: Integers
    version: Integers

    @classmethod
    def of(
        cls,
        kind: Kind,
        source: Sequence[int] | Integers,
        target: Sequence[int] | Integers,
        key: Sequence[int] | Integers | None = None,
        version: Sequence[int] | Integers | None = None,
    ) -> Edges:
        """Return edges of one kind."""
        size = len(source)
        return cls(
            np.asarray(source, np.int64),
            np.asarray(target, np.int64),
            np.full(size, kind, np.int64),
            np.full(size, NONE) if key is None else np.asarray(key, np.int64),
            np.full(size, NONE) if version is None else np.asarray(version, np.int64),
        )

    @classmethod
    def all(cls, parts: Iterable[Edges]) -> Edges:
        """Return several as one."""
        each = list(parts)
        return cls(
            np.concatenate([part.source for part in each]),
            np.concatenate([part.target for part in each]),
            np.concatenate([part.kind for part in each]),
            np.concatenate([part.key for part in each]),
            np.concatenate([part.version for part in each]),
        )

    def where(self, chosen: NDArray[np.bool_] | Integers) -> Edges:
        """Return some of them."""
        return Edges(
            self.source[chosen],
            self.target[chosen],
            self.kind[chosen],
            self.key[chosen],
            self.version[chosen],
        )


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph; the first nodes are transactions, the others are auxiliary."""

    transactions: int
    nodes: int
    edges: Edges
