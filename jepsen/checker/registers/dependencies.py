"""The order of transactions that follows from the orders of the registers' versions.

Adya's dependencies, for each known order of two versions: the writers of both (ww, or
``overwritten`` where a read told the order), and the readers of the one with the writer of
the other (rw). The versions need not be neighbours: what lies between them came after the one
and before the other, and the dependency holds all the more.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from jepsen.checker.graph import NONE, Columns, Edges, Kind
from jepsen.checker.registers.versions import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jepsen.checker.registers.versions import Register


def dependencies(found: Sequence[Register], is_committed: Sequence[bool]) -> Edges:
    """Return the edges between committed transactions."""
    ww, overwritten, wr, rw = map(
        Columns, (Kind.WW, Kind.OVERWRITTEN, Kind.WR, Kind.RW)
    )
    for key, register in enumerate(found):
        readers: defaultdict[Any, list[int]] = defaultdict(list)
        for reader, read, _ in register.accesses:
            if read is UNKNOWN:
                continue
            readers[read].append(reader)
            writer = register.writer(read, is_committed)
            if writer is not None:
                wr.add(writer, reader, key, NONE)
        for place, order in enumerate(register.orders):
            target = register.writers[order.after]
            if order.before is not None:
                source = register.writers[order.before]
                kind = overwritten if order.is_read else ww
                kind.add(source, target, key, place, order.level)
            for reader in readers[order.before]:
                rw.add(reader, target, key, place, order.level)
    return Edges.all(each.edges() for each in (ww, overwritten, wr, rw))
