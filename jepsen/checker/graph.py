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
* ``overwritten``: a transaction that came after the source read the target's write and not the
  source's: had the target written first, the reader would have missed the source (``rw``) that
  came before it. So the target overwrote the source's write after all, and the order of
  moments is that of ``ww``. Only registers need it, whose reads do not tell the order.
* ``later``: from an auxiliary node, which is no transaction, to a commit.
* ``inside``: from a transaction's snapshot to its own commit; the graph has none, it is added
  where the moments are told apart.

An edge is of a level: that of what was read and written, of the order of clients as well, or of
the clock as well. A model that does not promise the order of clients or of the clock takes no
notice of the edges that are known by it.
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
    OVERWRITTEN = 5
    LATER = 6
    INSIDE = 7


class Level(IntEnum):
    """What an edge is known by."""

    DATA = 0
    PROCESS = 1
    REALTIME = 2


_OWN_LEVEL = {Kind.PROCESS: Level.PROCESS, Kind.REALTIME: Level.REALTIME}

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
        number of its elements. Of a register, the number of the order of two values.
    level : array of int
        A `Level`.
    """

    source: Integers
    target: Integers
    kind: Integers
    key: Integers
    version: Integers
    level: Integers

    @classmethod
    def of(
        cls,
        kind: Kind,
        source: Sequence[int] | Integers,
        target: Sequence[int] | Integers,
        key: Sequence[int] | Integers | None = None,
        version: Sequence[int] | Integers | None = None,
        level: Sequence[int] | Integers | None = None,
    ) -> Edges:
        """Return edges of one kind; their level is the kind's own if none is said."""
        size = len(source)
        own = _OWN_LEVEL.get(kind, Level.DATA)
        return cls(
            np.asarray(source, np.int64),
            np.asarray(target, np.int64),
            np.full(size, kind, np.int64),
            np.full(size, NONE) if key is None else np.asarray(key, np.int64),
            np.full(size, NONE) if version is None else np.asarray(version, np.int64),
            np.full(size, own) if level is None else np.asarray(level, np.int64),
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
            np.concatenate([part.level for part in each]),
        )

    def where(self, chosen: NDArray[np.bool_] | Integers) -> Edges:
        """Return some of them."""
        return Edges(
            self.source[chosen],
            self.target[chosen],
            self.kind[chosen],
            self.key[chosen],
            self.version[chosen],
            self.level[chosen],
        )


class Columns:
    """Edges of one kind, collected one by one."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._columns: tuple[list[int], ...] = ([], [], [], [], [])

    def add(
        self,
        source: int,
        target: int,
        key: int,
        version: int,
        level: Level = Level.DATA,
    ) -> None:
        """Add an edge, unless it is from a transaction to itself."""
        if source != target:
            edge = (source, target, key, version, level)
            for column, value in zip(self._columns, edge, strict=True):
                column.append(value)

    def edges(self) -> Edges:
        """Return them."""
        return Edges.of(self._kind, *self._columns)


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph; the first nodes are transactions, the others are auxiliary."""

    transactions: int
    nodes: int
    edges: Edges
