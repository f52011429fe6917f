"""The findings on registers, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jepsen import edn
from jepsen.checker.graph import Kind, Level

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jepsen.checker.cycles import Step
    from jepsen.checker.registers.orders import Order
    from jepsen.checker.registers.versions import Register
    from jepsen.checker.transactions import Transaction


def transaction(each: Transaction) -> str:
    """Return a transaction on one line: its place in the history and its operations."""
    outcome = "" if each.outcome == "ok" else f", {each.outcome}"
    parts = [
        f"[{f} {edn.text(key)} "
        f"{'?' if f == 'r' and each.outcome != 'ok' else edn.text(value)}]"
        for f, key, value in each.value
    ]
    place = f"index {each.index}, process {each.invoke.process}{outcome}"
    return f"({place}) {' '.join(parts)}"


def _overwrote(
    step: Step,
    source: str,
    target: str,
    transactions: Sequence[Transaction],
    found: Sequence[Register],
) -> str:
    register = found[step.key]
    order = register.orders[step.version]
    return (
        f"{target} wrote {edn.text(order.after)} to key {edn.text(register.key)} after "
        f"{source} had written {edn.text(order.before)} (ww)"
        f"{_because(order, transactions)}"
    )


def _observed(
    step: Step,
    source: str,
    target: str,
    _transactions: Sequence[Transaction],
    found: Sequence[Register],
) -> str:
    register = found[step.key]
    value = next(
        access.read for access in register.accesses if access.transaction == step.target
    )
    return (
        f"{target} read {edn.text(value)} of key {edn.text(register.key)}, which "
        f"{source} wrote (wr)"
    )


def _missed(
    step: Step,
    source: str,
    target: str,
    transactions: Sequence[Transaction],
    found: Sequence[Register],
) -> str:
    register = found[step.key]
    order = register.orders[step.version]
    return (
        f"{source} read key {edn.text(register.key)} as {edn.text(order.before)}, which "
        f"{target} overwrote with {edn.text(order.after)} (rw)"
        f"{_because(order, transactions)}"
    )


def _because(order: Order, transactions: Sequence[Transaction]) -> str:
    """Return how an order of versions is known, as an addition to a sentence."""
    before, after = edn.text(order.before), edn.text(order.after)
    earlier, later = transactions[order.earlier], transactions[order.later]
    met = "read" if order.is_read else "wrote"
    match order.level:
        case Level.PROCESS:
            process = earlier.invoke.process
            return (
                f": process {process} met {before} at index {earlier.index}, and then "
                f"{met} {after} at index {later.index}"
            )
        case Level.REALTIME:
            return (
                f": {before} was there at index {earlier.index}, and the transaction "
                f"that began later, at index {later.invoke.index}, {met} {after}"
            )
    if order.before is None:
        return ""
    return f": index {later.index} read {before} and then wrote {after}"


REASONS: Mapping[Kind, Callable[..., str]] = {
    Kind.WW: _overwrote,
    Kind.OVERWRITTEN: _overwrote,
    Kind.WR: _observed,
    Kind.RW: _missed,
}


def impasse(
    stuck: Sequence[tuple[int, int, Any, int]],
    placed: int,
    transactions: Sequence[Transaction],
    found: Sequence[Register],
) -> tuple[str, ...]:
    """Return why no order of the transactions goes on.

    Parameters
    ----------
    stuck : sequence of tuple
        A transaction that could be next, the number of a register that it overwrites, the
        value there, and a transaction that has yet to read that.
    placed : int
        How many came before.
    transactions, found : sequence
        What the numbers mean.
    """
    numbers = dict.fromkeys(
        number for each in stuck[:_SHOWN] for number in (each[0], each[3])
    )
    names = {number: f"T{place}" for place, number in enumerate(numbers, 1)}
    lines = [
        "no order of the transactions is explained by what they read; the longest "
        f"beginning that is has {placed} of them"
    ]
    lines += [
        f"{name} = {transaction(transactions[number])}"
        for number, name in names.items()
    ]
    lines += [
        f"{names[next_]} cannot come next: it overwrites {edn.text(value)} of key "
        f"{edn.text(found[key].key)}, which {names[reader]} has yet to read"
        for next_, key, value, reader in stuck[:_SHOWN]
    ]
    return tuple(lines)


_SHOWN = 4
