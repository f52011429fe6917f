"""Pairs of accounts that together must not be overdrawn: snapshot isolation allows it.

A withdrawal looks at both accounts of a pair and writes one. A lost update on one of
them is another matter, and not allowed.

An account without withdrawals has no row: pairs never run out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from jepsen.workloads.base import Operation, Refused, Workload, change, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import tique
    from jepsen.recorder import Event

START = 100
"""The initial balance of each account of a pair."""
_EPOCH = 0.005


class WriteSkew(Workload):
    """Withdrawals from either account of a pair, and reads of both."""

    name: ClassVar[str] = "write-skew"

    @classmethod
    @override
    def create(cls, connection: tique.Connection) -> None:
        """Make the table."""
        connection.execute(
            "CREATE TABLE pair (id INTEGER, side INTEGER, balance BIGINT, "
            "PRIMARY KEY (id, side))"
        )
        connection.commit()

    @override
    def generate(self) -> Operation:
        """Choose a current pair, and an operation on it."""
        pair = self.epoch(_EPOCH) + self.chance.randrange(2)
        if self.chance.random() < 0.4:
            return Operation("read", {str(pair): None})
        return Operation(
            "withdraw",
            {
                "pair": pair,
                "account": self.chance.randrange(2),
                "amount": self.chance.randint(20, 150),
            },
        )

    @override
    def apply(self, connection: tique.Connection, operation: Operation) -> Any:
        """Withdraw if both have enough together, or read."""
        if operation.f == "read":
            return {
                pair: [balance for balance, _ in _accounts(connection, int(pair))]
                for pair in operation.value
            }
        value = operation.value
        pair, side, amount = value["pair"], value["account"], value["amount"]
        accounts = _accounts(connection, pair)
        if sum(balance for balance, _ in accounts) < amount:
            raise Refused("both accounts together have too little")
        balance, is_there = accounts[side]
        if is_there:
            sql = "UPDATE pair SET balance = %s WHERE id = %s AND side = %s"
        else:
            sql = "INSERT INTO pair (balance, id, side) VALUES (%s, %s, %s)"
        change(connection, sql, balance - amount, pair, side)
        return value

    @classmethod
    @override
    def final(cls, events: Sequence[Event]) -> list[Operation]:
        """Read every pair that has withdrawals."""
        pairs = {event.value["pair"] for event in events if event.f == "withdraw"}
        ordered = sorted(pairs)
        return [
            Operation("read", dict.fromkeys(map(str, ordered[first : first + 100])))
            for first in range(0, len(ordered), 100)
        ]


def _accounts(connection: tique.Connection, pair: int) -> list[tuple[int, bool]]:
    """The balances of both sides, and whether they have rows."""
    found = dict(rows(connection, "SELECT side, balance FROM pair WHERE id = %s", pair))
    return [(int(found.get(side, START)), side in found) for side in (0, 1)]
