"""The versions that each key went through, as its reads show them.

A list that is only appended to tells its own history: a read of ``[1 2 3]`` says that the
versions before it were ``[1 2]``, ``[1]`` and ``[]``. The longest read of a key is the order
of its versions; every other read must be the beginning of it. An append that no read
shows came later than all those that were read, if it was committed at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jepsen.history import MalformedHistory

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from jepsen.checker.transactions import Transaction

Elements = tuple[Any, ...]


@dataclass(slots=True)
class KeyVersions:
    """The known facts about one key; transactions are named by their numbers.

    Attributes
    ----------
    key : Hashable
        Its name.
    writers : dict
        By element, the transaction that appended it, with any outcome.
    reads : list
        The reads of acknowledged transactions, in the order of the history.
    order : tuple
        The elements in the order of the versions.
    odd : list
        The reads that are not the beginning of the order. No edge follows from them.
    seen : set
        The elements that a read shows.
    """

    key: Hashable
    writers: dict[Any, int] = field(default_factory=dict)
    reads: list[tuple[int, Elements]] = field(default_factory=list)
    order: Elements = ()
    odd: list[tuple[int, Elements]] = field(default_factory=list)
    seen: set[Any] = field(default_factory=set)


def versions(transactions: Sequence[Transaction]) -> list[KeyVersions]:
    """Return the known facts about each key.

    Raises
    ------
    MalformedHistory
        If a micro-operation is unknown, an element is appended to a key twice, or a
        read shows an element that no transaction appended.
    """
    keys: dict[Hashable, KeyVersions] = {}
    for number, transaction in enumerate(transactions):
        if transaction.outcome == "ok":
            _check_completion(transaction)
        _collect(keys, number, transaction)
    for each in keys.values():
        _order(each, transactions)
    return list(keys.values())


def _check_completion(transaction: Transaction) -> None:
    """Refuse a completion that is of another transaction than the invocation."""
    asked, done = transaction.invoke.value, transaction.value
    if len(asked) == len(done) and all(
        before[0] == after[0]
        and before[1] == after[1]
        and (before[0] != "append" or before[2] == after[2])
        for before, after in zip(asked, done, strict=True)
    ):
        return
    raise MalformedHistory(
        f"operation {transaction.index}: completes another transaction than "
        f"operation {transaction.invoke.index} began"
    )


def _collect(
    keys: dict[Hashable, KeyVersions], number: int, transaction: Transaction
) -> None:
    acknowledged = transaction.outcome == "ok"
    for f, key, argument in transaction.value:
        known = keys.get(key)
        if known is None:
            known = keys[key] = KeyVersions(key)
        if f == "append":
            if argument in known.writers:
                raise MalformedHistory(
                    f"operation {transaction.invoke.index}: appends {argument!r} to key "
                    f"{key!r}, to which it was appended before: a read could not tell "
                    "which of the two it sees"
                )
            known.writers[argument] = number
        elif f == "r":
            if acknowledged:
                known.reads.append((number, argument or ()))
        else:
            raise MalformedHistory(
                f"operation {transaction.invoke.index}: unknown micro-operation {f!r}: "
                "there are r and append"
            )


def _order(known: KeyVersions, transactions: Sequence[Transaction]) -> None:
    longest = max((value for _, value in known.reads), key=len, default=())
    known.order = tuple(dict.fromkeys(longest))
    known.seen = set(known.order)
    for number, value in known.reads:
        if value != known.order[: len(value)]:
            known.odd.append((number, value))
            known.seen.update(value)
    if known.seen <= known.writers.keys():
        return
    for number, value in known.reads:
        for element in value:
            if element not in known.writers:
                raise MalformedHistory(
                    f"operation {transactions[number].index}: reads {element!r} of key "
                    f"{known.key!r}, which was never appended"
                )


def committed(
    transactions: Sequence[Transaction], keys: Sequence[KeyVersions]
) -> list[bool]:
    """Return of each transaction whether it is known to be committed.

    One in doubt is as soon as anything that it appended is seen.
    """
    known = [transaction.outcome == "ok" for transaction in transactions]
    for each in keys:
        for element in each.seen:
            writer = each.writers[element]
            if transactions[writer].outcome == "info":
                known[writer] = True
    return known


def unseen(known: KeyVersions, is_committed: Sequence[bool]) -> list[int]:
    """Return the committed transactions with an append to a key that no read shows."""
    return list(
        dict.fromkeys(
            writer
            for element, writer in known.writers.items()
            if is_committed[writer] and element not in known.seen
        )
    )
