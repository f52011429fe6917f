"""Operations in pairs: requests and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jepsen.history import MalformedHistory

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from jepsen.history import Operation, OperationType


@dataclass(frozen=True, slots=True)
class Transaction:
    """An invocation and its completion.

    One without a completion (its client was killed, the run was over) is in doubt, as
    one that was closed with ``info``.

    Attributes
    ----------
    invoke : Operation
        The request.
    complete : Operation, optional
        Its outcome.
    begun, ended : int
        Where in the history; of one in doubt, the history's length: it may take effect
        at any time later.
    """

    invoke: Operation
    complete: Operation | None
    begun: int
    ended: int

    @property
    def outcome(self) -> OperationType:
        """``ok``, ``fail`` or ``info``."""
        return "info" if self.complete is None else self.complete.type

    @property
    def value(self) -> Any:
        """Its micro-operations: only an acknowledged one knows the results of reads."""
        if self.complete is not None and self.complete.type == "ok":
            return self.complete.value
        return self.invoke.value

    @property
    def index(self) -> int:
        """The index to look for in the file: the completion's if there is one."""
        return (self.complete or self.invoke).index


def nothing_to_compare(
    transactions: Sequence[Transaction], reads: Set[str], writes: Set[str]
) -> str | None:
    """Return why a history without anomalies says nothing, if it does not.

    Parameters
    ----------
    transactions : sequence of Transaction
        The history.
    reads, writes : set of str
        Which operations are which.
    """
    if not any(
        each.invoke.f in reads and each.outcome == "ok" for each in transactions
    ):
        return "nothing was read"
    if not any(
        each.invoke.f in writes and each.outcome != "fail" for each in transactions
    ):
        return "nothing was written"
    return None


def pairs(operations: Sequence[Operation]) -> list[Transaction]:
    """Return the operations in pairs, in the order in which they were invoked.

    Raises
    ------
    MalformedHistory
        If they are no history: there are none, the indices do not ascend, a process has
        two operations open at once or completes one that it did not begin.
    """
    if not operations:
        raise MalformedHistory("the history has no operations")
    transactions: list[Transaction | None] = []
    open_by_process: dict[int, tuple[int, int]] = {}
    previous = -1
    for position, operation in enumerate(operations):
        if operation.index <= previous:
            raise MalformedHistory(
                f"operation {operation.index}: comes after operation {previous}: "
                "an index must be greater than the one before"
            )
        previous = operation.index
        if operation.type == "invoke":
            if operation.process in open_by_process:
                begun = operations[open_by_process[operation.process][1]]
                raise MalformedHistory(
                    f"operation {operation.index}: process {operation.process} invokes "
                    f"while its operation {begun.index} is open"
                )
            open_by_process[operation.process] = (len(transactions), position)
            transactions.append(None)
            continue
        if operation.process not in open_by_process:
            raise MalformedHistory(
                f"operation {operation.index}: process {operation.process} completes "
                "an operation that it did not invoke"
            )
        number, begun_at = open_by_process.pop(operation.process)
        invoke = operations[begun_at]
        if operation.f != invoke.f:
            raise MalformedHistory(
                f"operation {operation.index}: completes {invoke.f} as {operation.f}"
            )
        ended = len(operations) if operation.type == "info" else position
        transactions[number] = Transaction(invoke, operation, begun_at, ended)
    for number, begun_at in open_by_process.values():
        transactions[number] = Transaction(
            operations[begun_at], None, begun_at, len(operations)
        )
    return [each for each in transactions if each is not None]
