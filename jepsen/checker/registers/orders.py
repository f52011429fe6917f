"""Which version of a register came before which, as far as that is certain.

Four facts tell, each because the contrary is an anomaly that every model at its level forbids:

* a register begins without a value;
* who reads one version and then writes another put the second after the first. Otherwise
  the writer of the first overwrote what it was read by (G1c). Elle's ``wfr-keys?``;
* who comes after another transaction, by its client's order, met what that one met last or
  a later version. ``sequential-keys?``; known at the level of clients;
* the same by the clock. ``linearizable-keys?``; known at the level of the clock.

In the last two the contrary is G0 or G1c if the later transaction writes; if it reads, only
a missed write (G-single): such an order is marked, and bears on no search without rw.

A transaction is compared with those just before it: with the others the order follows.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from jepsen.checker.graph import Level
from jepsen.checker.registers.versions import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jepsen.checker.registers.versions import Access, Register
    from jepsen.checker.transactions import Transaction


class Order(NamedTuple):
    """One version of a register before another.

    Attributes
    ----------
    before, after : Any
        The versions; None is the first one.
    level : Level
        What the order is known by.
    is_read : bool
        Whether it is known because the later one was read.
    earlier, later : int
        The transactions that show it, which may be the same.
    """

    before: Any
    after: Any
    level: Level
    is_read: bool
    earlier: int
    later: int


def find_orders(
    register: Register,
    transactions: Sequence[Transaction],
    is_committed: Sequence[bool],
) -> list[Order]:
    """Return the known orders, each pair once per level and manner."""
    accesses = [each for each in register.accesses if is_committed[each.transaction]]
    found: dict[tuple[Any, ...], Order] = {}
    within = _within(accesses)
    by_client = _after_another(_same_client(accesses, transactions), Level.PROCESS)
    by_clock = _after_another(_ended_before(accesses, transactions), Level.REALTIME)
    for order in chain(within, by_client, by_clock):
        before, after = order.before, order.after
        is_version = register.writer(after, is_committed) is not None and (
            before is None or register.writer(before, is_committed) is not None
        )
        if before != after and is_version:
            found.setdefault((before, after, order.level, order.is_read), order)
    return [*found.values(), *_first(accesses, list(found.values()))]


def _within(accesses: Sequence[Access]) -> Iterator[Order]:
    for each in accesses:
        if each.read is not UNKNOWN and each.written is not UNKNOWN:
            number = each.transaction
            yield Order(each.read, each.written, Level.DATA, False, number, number)


def _after_another(
    neighbours: Iterator[tuple[Access, Access]], level: Level
) -> Iterator[Order]:
    for one, other in neighbours:
        is_read = other.read is not UNKNOWN
        earlier, later = one.transaction, other.transaction
        yield Order(one.last, other.first, level, is_read, earlier, later)


def _same_client(
    accesses: Sequence[Access], transactions: Sequence[Transaction]
) -> Iterator[tuple[Access, Access]]:
    previous: dict[int, Access] = {}
    for each in accesses:
        transaction = transactions[each.transaction]
        process = transaction.invoke.process
        if process in previous:
            yield previous[process], each
        if transaction.outcome == "ok":
            previous[process] = each


def _ended_before(
    accesses: Sequence[Access], transactions: Sequence[Transaction]
) -> Iterator[tuple[Access, Access]]:
    """Yield pairs of which one ended before the other began, and none is between them."""
    by_end = sorted(
        (each for each in accesses if transactions[each.transaction].outcome == "ok"),
        key=lambda each: transactions[each.transaction].ended,
    )
    ended: list[Access] = []
    place = 0
    # Accesses are in the order of their beginnings.
    for each in accesses:
        begun = transactions[each.transaction].begun
        while (
            place < len(by_end)
            and transactions[by_end[place].transaction].ended < begun
        ):
            ended.append(by_end[place])
            place += 1
        if not ended:
            continue
        latest = max(transactions[one.transaction].begun for one in ended)
        ended = [one for one in ended if transactions[one.transaction].ended > latest]
        for one in ended:
            yield one, each


def _first(accesses: Sequence[Access], known: Sequence[Order]) -> Iterator[Order]:
    """Yield that there was no value before those that nothing else comes before."""
    later = {order.after for order in known if order.level is Level.DATA}
    for each in accesses:
        if each.written is not UNKNOWN and each.written not in later:
            number = each.transaction
            yield Order(None, each.written, Level.DATA, False, number, number)
