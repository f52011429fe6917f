"""Checkers: from a history to the models that it may have happened under.

One module per workload, each with ``check(operations)``; `list_append` is the one that sees
most. Each module describes its workload's operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepsen.checker import (
    bank,
    counter,
    jobs,
    list_append,
    long_fork,
    on_call,
    parent_child,
    predicate,
    queue,
    registers,
    replica,
    time_travel,
    unique,
    write_skew,
)
from jepsen.history import MalformedHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jepsen.checker.verdict import Verdict
    from jepsen.history import Operation

CHECKERS: dict[str, Callable[[Sequence[Operation]], Verdict]] = {
    "list-append": list_append.check,
    "bank": bank.check,
    "old-snapshot": bank.check,
    "counter": counter.check,
    "jobs": jobs.check,
    "long-fork": long_fork.check,
    "on-call": on_call.check,
    "parent-child": parent_child.check,
    "predicate": predicate.check,
    "queue": queue.check,
    "replica": replica.check,
    "rw-register": registers.check,
    "short-history": time_travel.check,
    "time-travel": time_travel.check,
    "unique": unique.check,
    "write-skew": write_skew.check,
}

# The operation that only one workload has.
_BY_OPERATION = {
    "move": "time-travel",
    "note": "time-travel",
    "recall": "time-travel",
    "replay": "time-travel",
    "transfer": "bank",
    "watch": "bank",
    "late-transfer": "bank",
    "add": "counter",
    "hold": "jobs",
    "submit": "jobs",
    "take": "jobs",
    "collect": "jobs",
    "write": "long-fork",
    "look": "on-call",
    "turn": "on-call",
    "insert-child": "parent-child",
    "insert-parent": "parent-child",
    "delete-parent": "parent-child",
    "delete-family": "parent-child",
    "update": "predicate",
    "delete": "predicate",
    "enqueue": "queue",
    "dequeue": "queue",
    "drain": "queue",
    "withdraw": "write-skew",
}


def check(operations: Sequence[Operation], workload: str | None = None) -> Verdict:
    """Return the verdict on a history.

    Parameters
    ----------
    operations : sequence of Operation
        The history.
    workload : str, optional
        One of `CHECKERS`; without it the operations tell.

    Raises
    ------
    MalformedHistory
        If it is no history of this workload.
    """
    name = workload or recognise(operations)
    try:
        return CHECKERS[name](operations)
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise MalformedHistory(
            f"the operations are not those of {name}: {error!r}"
        ) from error


def recognise(operations: Sequence[Operation]) -> str:
    """Return the workload that the operations are of.

    Raises
    ------
    MalformedHistory
        If they are of none, or of several.
    """
    if not operations:
        raise MalformedHistory("the history has no operations")
    names = {each.f for each in operations}
    if names == {"txn"}:
        writes = {f for each in operations for f, *_ in each.value}
        return "rw-register" if "w" in writes else "list-append"
    found = {_BY_OPERATION[name] for name in names if name in _BY_OPERATION}
    if not found and "insert" in names:
        # Both read and insert; a predicate's rows have names for their columns.
        one = next(each for each in operations if each.f == "insert")
        found = {"predicate" if isinstance(one.value, dict) else "unique"}
    if len(found) != 1:
        raise MalformedHistory(
            f"cannot tell the workload of the operations {', '.join(sorted(names))}"
        )
    return found.pop()
