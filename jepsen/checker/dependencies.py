"""The order of transactions that follows from the versions of the keys: ww, wr and rw.

Adya's dependencies between committed transactions, of neighbouring versions only: the others
follow from these. An aborted transaction's append is no version, so that its neighbours
are each other's.

A committed append that no read shows came after every version that is known, and in an
unknown order among its like: a reader of the last known version missed each of them.
With many readers and many such appends those are too many edges. The readers get an
edge to the end of a chain that leads to each of the appends instead; a reader that is
one of the writers gets one to the part of the chain before it and one to the part after
it, as no transaction misses its own write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepsen.checker.graph import NONE, Columns, Edges, Kind
from jepsen.checker.versions import unseen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jepsen.checker.versions import KeyVersions


def dependencies(
    keys: Sequence[KeyVersions], is_committed: Sequence[bool], nodes: int
) -> tuple[Edges, int]:
    """Return the edges and the number of nodes with those that were added.

    Parameters
    ----------
    keys : sequence of KeyVersions
        The known facts about each key.
    is_committed : sequence of bool
        Of each transaction.
    nodes : int
        How many there are so far.
    """
    ww, wr, rw, later = map(Columns, (Kind.WW, Kind.WR, Kind.RW, Kind.LATER))
    for number, known in enumerate(keys):
        writer = [NONE, *(known.writers[element] for element in known.order)]
        # The last committed version up to each, and the writer of the first after it.
        latest = [0] * len(writer)
        following = [NONE] * len(writer)
        last = 0
        for version in range(1, len(writer)):
            if is_committed[writer[version]]:
                for skipped in range(last, version):
                    following[skipped] = writer[version]
                if last:
                    ww.add(writer[last], writer[version], number, last)
                last = version
            latest[version] = last
        late = unseen(known, is_committed)
        if late:
            if last:
                for each in late:
                    ww.add(writer[last], each, number, last)
            chain = _Chain(late, nodes)
            nodes = chain.end
            for source, target in chain.edges():
                later.add(source, target, number, last)
        for reader, value in known.reads:
            version = len(value)
            if version >= len(writer) or (known.odd and value != known.order[:version]):
                continue
            if latest[version]:
                wr.add(writer[latest[version]], reader, number, latest[version])
            if following[version] != NONE:
                rw.add(reader, following[version], number, version)
            elif late:
                for target in chain.missed_by(reader):
                    rw.add(reader, target, number, version)
    return Edges.all(each.edges() for each in (ww, wr, rw, later)), nodes


class _Chain:
    """The way to each of several transactions, or to each but one.

    Two nodes per transaction: one leads to it and to those before it, the other to it and
    to those after it.
    """

    def __init__(self, transactions: Sequence[int], first: int) -> None:
        self._transactions = transactions
        self._place = {each: place for place, each in enumerate(transactions)}
        self._first = first
        self.end = first + 2 * len(transactions)

    def _upto(self, place: int) -> int:
        return self._first + 2 * place

    def _from(self, place: int) -> int:
        return self._first + 2 * place + 1

    def edges(self) -> Iterator[tuple[int, int]]:
        """Yield the chain's own edges."""
        for place, transaction in enumerate(self._transactions):
            yield self._upto(place), transaction
            yield self._from(place), transaction
            if place:
                yield self._upto(place), self._upto(place - 1)
                yield self._from(place - 1), self._from(place)

    def missed_by(self, reader: int) -> Iterator[int]:
        """Yield the nodes that lead to all but the reader itself."""
        last = len(self._transactions) - 1
        place = self._place.get(reader)
        if place is None:
            yield self._upto(last)
            return
        if place:
            yield self._upto(place - 1)
        if place < last:
            yield self._from(place + 1)
