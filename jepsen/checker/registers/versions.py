"""What each transaction read and wrote of each register."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jepsen.history import MalformedHistory

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from jepsen.checker.registers.orders import Order
    from jepsen.checker.transactions import Transaction

UNKNOWN: Final = object()
"""In the place of a value: it was not read, or not written, or that is not known."""


class Access(NamedTuple):
    """What others can see of a transaction's part in a register.

    Attributes
    ----------
    transaction : int
        Its number.
    read : Any
        What it read before it wrote: None is the register without a value.
    written : Any
        What it wrote last.
    """

    transaction: int
    read: Any
    written: Any

    @property
    def first(self) -> Any:
        """The first version that it met."""
        return self.written if self.read is UNKNOWN else self.read

    @property
    def last(self) -> Any:
        """The last version that it met."""
        return self.read if self.written is UNKNOWN else self.written


@dataclass(slots=True)
class Register:
    """The known facts about one key; transactions are named by their numbers.

    Attributes
    ----------
    key : Hashable
        Its name.
    writers : dict
        By value, the transaction that wrote it, with any outcome.
    passing : set
        The values that their own transaction replaced: no versions.
    accesses : list of Access
        Those of transactions that did not fail, in the order of the history. What one in
        doubt read is not known.
    reads : list
        All reads of acknowledged transactions, their own writes' too.
    orders : list
        The known orders of two versions.
    """

    key: Hashable
    writers: dict[Any, int] = field(default_factory=dict)
    passing: set[Any] = field(default_factory=set)
    accesses: list[Access] = field(default_factory=list)
    reads: list[tuple[int, Any]] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)

    def writer(self, value: Any, is_committed: Sequence[bool]) -> int | None:
        """Return who wrote a version; None if it is none, or the first one."""
        if value is None or value is UNKNOWN or value in self.passing:
            return None
        number = self.writers[value]
        return number if is_committed[number] else None


def registers(transactions: Sequence[Transaction]) -> list[Register]:
    """Return the known facts about each key.

    Raises
    ------
    MalformedHistory
        If a micro-operation is unknown, a value is written to a key twice, or a read shows
        a value that no transaction wrote.
    """
    found: dict[Hashable, Register] = {}
    for number, transaction in enumerate(transactions):
        if transaction.outcome == "ok":
            _check_completion(transaction)
        _collect(found, number, transaction)
    for register in found.values():
        for number, value in register.reads:
            if value is not None and value not in register.writers:
                raise MalformedHistory(
                    f"operation {transactions[number].index}: reads {value!r} of key "
                    f"{register.key!r}, which was never written"
                )
    return list(found.values())


def _check_completion(transaction: Transaction) -> None:
    """Refuse a completion that is of another transaction than the invocation."""
    asked, done = transaction.invoke.value, transaction.value
    if len(asked) == len(done) and all(
        before[:2] == after[:2] and (before[0] == "r" or before[2] == after[2])
        for before, after in zip(asked, done, strict=True)
    ):
        return
    raise MalformedHistory(
        f"operation {transaction.index}: completes another transaction than "
        f"operation {transaction.invoke.index} began"
    )


def _collect(
    found: dict[Hashable, Register], number: int, transaction: Transaction
) -> None:
    is_acknowledged = transaction.outcome == "ok"
    read: dict[Hashable, Any] = {}
    written: dict[Hashable, Any] = {}
    for f, key, value in transaction.value:
        register = found.setdefault(key, Register(key))
        if f == "w":
            if value is None or value in register.writers:
                raise MalformedHistory(
                    f"operation {transaction.invoke.index}: writes {value!r} to key "
                    f"{key!r}, which no other write may do: a read could not tell what "
                    "it sees"
                )
            register.writers[value] = number
            if key in written:
                register.passing.add(written[key])
            written[key] = value
        elif f == "r":
            if is_acknowledged:
                register.reads.append((number, value))
                if key not in written:
                    read.setdefault(key, value)
        else:
            raise MalformedHistory(
                f"operation {transaction.invoke.index}: unknown micro-operation {f!r}: "
                "there are r and w"
            )
    if transaction.outcome != "fail":
        for key in read | written:
            access = Access(number, read.get(key, UNKNOWN), written.get(key, UNKNOWN))
            found[key].accesses.append(access)


def committed(
    transactions: Sequence[Transaction], found: Sequence[Register]
) -> list[bool]:
    """Return of each transaction whether it is known to be committed.

    One in doubt is as soon as anything that it wrote is seen.
    """
    known = [transaction.outcome == "ok" for transaction in transactions]
    for register in found:
        for _, value in register.reads:
            if value is not None:
                writer = register.writers[value]
                known[writer] |= transactions[writer].outcome == "info"
    return known
