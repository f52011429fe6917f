"""The findings, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jepsen import edn
from jepsen.checker.graph import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jepsen.checker.cycles import Cycle, Step
    from jepsen.checker.transactions import Transaction
    from jepsen.checker.versions import KeyVersions

# A read of more elements is told by its last ones.
_SHOWN = 8


def elements(value: Sequence[Any]) -> str:
    """Return the text of a read's elements."""
    shown = " ".join(map(edn.text, value[-_SHOWN:]))
    return f"[… {shown}]" if len(value) > _SHOWN else f"[{shown}]"


def transaction(each: Transaction) -> str:
    """Return a transaction on one line: its place in the history and its operations."""
    outcome = "" if each.outcome == "ok" else f", {each.outcome}"
    parts = []
    for f, key, argument in each.value:
        if f == "append":
            parts.append(f"[append {edn.text(key)} {edn.text(argument)}]")
        elif each.outcome == "ok":
            parts.append(f"[r {edn.text(key)} {elements(argument or ())}]")
        else:
            parts.append(f"[r {edn.text(key)} ?]")
    place = f"index {each.index}, process {each.invoke.process}{outcome}"
    return f"({place}) {' '.join(parts)}"


def cycle(
    found: Cycle,
    transactions: Sequence[Transaction],
    keys: Sequence[Any],
    text: Callable[[Transaction], str] = transaction,
    reasons: Mapping[Kind, Callable[..., str]] | None = None,
) -> tuple[str, ...]:
    """Return a cycle: its transactions, then why each came before the next.

    Parameters
    ----------
    found : Cycle
        The cycle.
    transactions, keys : sequence
        What its steps name by numbers.
    text : callable, optional
        How a transaction is written, if it is none of list-append.
    reasons : mapping, optional
        The reasons of some kinds, where they are others.
    """
    told = REASONS | dict(reasons or {})
    names = {step.source: f"T{place}" for place, step in enumerate(found.steps, 1)}
    lines = [f"{name} = {text(transactions[number])}" for number, name in names.items()]
    for place, step in enumerate(found.steps, 1):
        source, target = names[step.source], names[step.target]
        reason = told[step.kind](step, source, target, transactions, keys)
        however = "but " if place == len(found.steps) else ""
        lines.append(f"{however}{source} came before {target}: {reason}")
    return tuple(lines)


def _overwrote(
    step: Step,
    source: str,
    target: str,
    _transactions: Sequence[Transaction],
    keys: Sequence[KeyVersions],
) -> str:
    known = keys[step.key]
    before = known.order[step.version - 1]
    element, seen = _written(step, known)
    how = "" if seen else ", which no read shows,"
    return (
        f"{target} appended {edn.text(element)}{how} to key {edn.text(known.key)} after "
        f"{source} had appended {edn.text(before)} (ww)"
    )


def _observed(
    step: Step,
    source: str,
    target: str,
    _transactions: Sequence[Transaction],
    keys: Sequence[KeyVersions],
) -> str:
    known = keys[step.key]
    element = known.order[step.version - 1]
    return (
        f"{target} read {edn.text(element)} of key {edn.text(known.key)}, which {source} "
        "appended (wr)"
    )


def _missed(
    step: Step,
    source: str,
    target: str,
    _transactions: Sequence[Transaction],
    keys: Sequence[KeyVersions],
) -> str:
    known = keys[step.key]
    element, seen = _written(step, known)
    how = "" if seen else ", which no read shows"
    return (
        f"{source} read key {edn.text(known.key)} as "
        f"{elements(known.order[: step.version])}, without {edn.text(element)} that "
        f"{target} appended{how} (rw)"
    )


def _written(step: Step, known: KeyVersions) -> tuple[Any, bool]:
    """Return the target's append after a version, and whether a read shows it."""
    for element in known.order[step.version :]:
        if known.writers[element] == step.target:
            return element, True
    for element, writer in known.writers.items():
        if writer == step.target and element not in known.seen:
            return element, False
    raise AssertionError("an edge to a transaction that appended nothing")


def _same_process(
    step: Step,
    source: str,
    target: str,
    transactions: Sequence[Transaction],
    _keys: Sequence[KeyVersions],
) -> str:
    process = transactions[step.source].invoke.process
    return f"process {process} ran {source} and then {target} (process)"


def _ended_before(
    step: Step,
    source: str,
    target: str,
    transactions: Sequence[Transaction],
    _keys: Sequence[KeyVersions],
) -> str:
    ended, begun = transactions[step.source], transactions[step.target]
    return (
        f"{source} was acknowledged at index {ended.index}, before {target} was invoked "
        f"at index {begun.invoke.index} (realtime)"
    )


REASONS: dict[Kind, Callable[..., str]] = {
    Kind.WW: _overwrote,
    Kind.WR: _observed,
    Kind.RW: _missed,
    Kind.PROCESS: _same_process,
    Kind.REALTIME: _ended_before,
}
