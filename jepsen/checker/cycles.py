"""Cycles in the graph, and the name of each.

Four graphs, each with more edges than the one before: ww (a cycle is G0), ww and wr (G1c),
these and rw in the time of snapshot isolation (G-single, G-nonadjacent), and all of them
(G2). Each without an order of its own, with the clients' and with the clock's.

In the time of snapshot isolation a transaction is two nodes, its snapshot and its commit,
with an edge from the first to the second, and an edge of the graph joins the moments that it
orders. A cycle there is a cycle of transactions without two adjacent rw: a rw arrives
at a commit, and the next leaves a snapshot, which was before. So the strongly connected
components of this graph of twice the size are exactly the violations.

Components tell whether there is a cycle; one short cycle of each is sought to show it. A
component is left out where one of the graphs whose edges it has all of has a cycle within it:
that one is told, it is proscribed wherever this one is, and the rest has no cycle but of
its own name.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from jepsen.checker.graph import Edges, Graph, Integers, Kind, Level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# Which edges leave a commit, and which arrive at one: the others, at a snapshot.
_FROM_COMMIT = (
    Kind.WW,
    Kind.WR,
    Kind.PROCESS,
    Kind.REALTIME,
    Kind.OVERWRITTEN,
    Kind.LATER,
)
_TO_COMMIT = (Kind.RW, Kind.LATER)

# These are in every graph, from their level on.
_ORDERS = (Kind.PROCESS, Kind.REALTIME)
_READS = (Kind.RW, Kind.OVERWRITTEN)
_ALL = (Kind.WW, Kind.WR, *_READS, Kind.LATER)

# A way through auxiliary nodes is one step, however many there are. A rw is long where few of
# them make the better example, and so is what is known by one.
_STEP, _AUXILIARY, _ANTIDEPENDENCY = 1.0, 1e-9, 1e3

# So many components of a graph are searched for a cycle, the others counted.
_SOUGHT = 32

# How much a search may do: as many beginnings are tried as fit into so many edges.
_EFFORT = 2_000_000


class _Search(NamedTuple):
    """One graph: the edges in it, and whether it is in snapshot isolation's time."""

    kinds: tuple[Kind, ...]
    split: bool


_SEARCHES = (
    _Search((Kind.WW,), split=False),
    _Search((Kind.WW, Kind.WR), split=False),
    _Search(_ALL, split=True),
    _Search(_ALL, split=False),
)
_SUFFIXES = {Level.DATA: "", Level.PROCESS: "-process", Level.REALTIME: "-realtime"}


class Step(NamedTuple):
    """An edge between two transactions, or a way through auxiliary nodes."""

    source: int
    target: int
    kind: Kind
    key: int
    version: int


@dataclass(frozen=True, slots=True)
class Cycle:
    """A cycle by its name.

    Attributes
    ----------
    name : str
        Elle's.
    steps : tuple of Step
        Each begins where the one before it ends, the first where the last ends.
    """

    name: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search: cycles to show, and how many more there are by name."""

    cycles: tuple[Cycle, ...]
    more: dict[str, int]


def cycles(graph: Graph) -> Found:
    """Return a short cycle of each component, for the first of each name."""
    shown: list[Cycle] = []
    more: dict[str, int] = {}
    # A node of each component with a cycle that was told, by the level it was found at.
    told: list[list[int]] = [[] for _ in _SUFFIXES]
    graph = _cyclic_part(graph)
    for search in _SEARCHES if len(graph.edges.source) else ():
        for level, suffix in _SUFFIXES.items():
            view = _View(graph, search, level)
            lower = [node for nodes in told[: level + 1] for node in nodes]
            components = view.components(lower)
            told[level] += components
            for component in components[:_SOUGHT]:
                steps = view.cycle(component)
                shown.append(Cycle(f"{_name(steps)}{suffix}", steps))
            if len(components) > _SOUGHT:
                more[f"{_GENERAL[search]}{suffix}"] = len(components) - _SOUGHT
    return Found(tuple(shown), more)


# The names under which unexplained cycles are counted: a G-single is a G-nonadjacent.
_GENERAL = dict(
    zip(_SEARCHES, ("G0", "G1c", "G-nonadjacent-item", "G2-item"), strict=True)
)


def _name(steps: tuple[Step, ...]) -> str:
    kinds = [step.kind for step in steps]
    match sum(kind in _READS for kind in kinds):
        case 0:
            return "G1c" if Kind.WR in kinds else "G0"
        case 1:
            return "G-single-item"
        case _:
            return "G2-item" if _has_adjacent(steps) else "G-nonadjacent-item"


def _has_adjacent(steps: Sequence[Step]) -> bool:
    """Return whether one rw follows another, the first after the last."""
    return len(steps) > 1 and any(
        here.kind == there.kind == Kind.RW
        for here, there in zip(steps, [*steps[1:], steps[0]], strict=True)
    )


def _cyclic_part(graph: Graph) -> Graph:
    """Return the graph without the edges that are on no cycle of any kind."""
    edges = graph.edges
    label = _strong(graph.nodes, edges.source, edges.target)
    return Graph(
        graph.transactions,
        graph.nodes,
        edges.where(label[edges.source] == label[edges.target]),
    )


def _strong(nodes: int, source: Integers, target: Integers) -> Integers:
    """Return the number of each node's strongly connected component."""
    matrix = csr_array((np.ones(len(source)), (source, target)), shape=(nodes, nodes))
    _, label = connected_components(matrix, directed=True, connection="strong")
    return np.asarray(label, np.int64)


class _View:
    """One of the graphs, as nodes and weighted edges.

    Where it is split, the first half of the nodes are snapshots, the other half commits.
    From a snapshot one gets to commits only, so that a cycle has a commit on it.
    """

    def __init__(self, graph: Graph, search: _Search, level: Level) -> None:
        known = graph.edges.level <= level
        kinds = search.kinds + _ORDERS
        edges = graph.edges.where(known & np.isin(graph.edges.kind, kinds))
        self._transactions = graph.transactions
        self._size = graph.nodes
        self._split = search.split
        source, target = edges.source, edges.target
        weight = np.where(source < graph.transactions, _STEP, _AUXILIARY)
        if search.split:
            is_long = np.isin(edges.kind, _READS)
            source = source + self._size * np.isin(edges.kind, _FROM_COMMIT)
            target = target + self._size * np.isin(edges.kind, _TO_COMMIT)
            weight = np.where(is_long, _ANTIDEPENDENCY, weight)
            both = np.unique(np.concatenate([edges.source, edges.target]))
            edges = Edges.all([edges, Edges.of(Kind.INSIDE, both, both)])
            source = np.concatenate([source, both])
            target = np.concatenate([target, both + self._size])
            weight = np.concatenate([weight, np.full(len(both), _AUXILIARY)])
        self._edges, self._weight = edges, weight
        self._source, self._target = source, target
        self._label = _strong(self._size * (1 + search.split), source, target)

    def components(self, told: list[int]) -> list[int]:
        """Return a node of each component with a cycle, but of those that were told.

        A node is told of by the name that it has where nothing is split, and is its commit.
        """
        known = np.array(told, np.int64) + self._size * self._split
        skip = set(self._label[known].tolist())
        members = np.bincount(self._label)
        cyclic = np.flatnonzero(members[self._label] > 1)[::-1]
        labels, place = np.unique(self._label[cyclic], return_index=True)
        return [
            node % self._size
            for label, node in zip(labels.tolist(), cyclic[place].tolist(), strict=True)
            if label not in skip
        ]

    def cycle(self, component: int) -> tuple[Step, ...]:
        """Return a short cycle through the component that a node is in."""
        label = self._label[component + self._size * self._split]
        nodes = np.flatnonzero(self._label == label)
        within = np.flatnonzero(
            (self._label[self._source] == label) & (self._label[self._target] == label)
        )
        source = np.searchsorted(nodes, self._source[within])
        target = np.searchsorted(nodes, self._target[within])
        weight = self._weight[within]
        # One edge per pair of nodes: the shortest, and of these the first kind.
        pair = source * len(nodes) + target
        order = np.lexsort((self._edges.kind[within], weight, pair))
        pair, first = np.unique(pair[order], return_index=True)
        chosen = order[first]
        source, target, weight = source[chosen], target[chosen], weight[chosen]
        matrix = csr_array((weight, (source, target)), shape=(len(nodes), len(nodes)))
        walk = self._shortest(matrix, source, target, weight)
        hops = np.searchsorted(
            pair, [here * len(nodes) + there for here, there in pairwise(walk)]
        )
        return _without_detour(self._steps(within[chosen[hops]]))

    def _shortest(
        self,
        matrix: csr_array,
        source: Integers,
        target: Integers,
        weight: NDArray[np.float64],
    ) -> list[int]:
        """Return the nodes of a short cycle, its first one again at its end.

        It is the shortest of those through some of the edges: through each of them if the
        component is small.
        """
        tried = np.flatnonzero(weight == weight.max())
        effort = max(4, _EFFORT // len(weight))
        if len(tried) > effort:
            tried = tried[np.linspace(0, len(tried) - 1, effort).astype(np.int64)]
        best, shortest = [], np.inf
        for edge in tried.tolist():
            begin, end = int(target[edge]), int(source[edge])
            distance, predecessor = dijkstra(
                matrix,
                indices=begin,
                return_predecessors=True,
                limit=shortest - weight[edge],
            )
            length = distance[end] + weight[edge]
            if length < shortest:
                shortest = length
                best = [begin, end]
                while best[1] != begin:
                    best.insert(1, int(predecessor[best[1]]))
                best[0] = end
        return best

    def _steps(self, hops: Integers) -> list[Step]:
        """Return a walk over edges as steps from transaction to transaction."""
        edges = self._edges.where(hops)
        steps: list[Step] = []
        for source, target, kind, key, version in zip(
            edges.source.tolist(),
            edges.target.tolist(),
            edges.kind.tolist(),
            edges.key.tolist(),
            edges.version.tolist(),
            strict=True,
        ):
            if kind == Kind.INSIDE:
                continue
            if source < self._transactions:
                steps.append(Step(source, target, Kind(kind), key, version))
            else:
                steps[-1] = steps[-1]._replace(target=target)
        return steps


def _without_detour(steps: list[Step]) -> tuple[Step, ...]:
    """Return the steps without those between two visits to a transaction.

    A walk over split nodes may come by a snapshot and later by the commit. One of the two
    parts that it falls into is a cycle of its own.
    """
    visited: dict[int, int] = {}
    for place, step in enumerate(steps):
        if step.source in visited:
            here = visited[step.source]
            part, rest = steps[here:place], steps[:here] + steps[place:]
            return _without_detour(rest if _has_adjacent(part) else part)
        visited[step.source] = place
    return tuple(steps)
