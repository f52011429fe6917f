"""Transfers between accounts; the sum stays as it is.

An account whose balance is 0 has no row: it is deleted, and inserted again with the next
transfer to it. Some transfers read both balances and write new ones, others leave it to
the database to add and subtract, on a condition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from jepsen.workloads.base import Operation, Refused, Workload, change, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import tique
    from jepsen.recorder import Event

ACCOUNTS = 8
START = 20


class Bank(Workload):
    """Transfers, and reads of all accounts."""

    name: ClassVar[str] = "bank"
    definitions: ClassVar[tuple[str, ...]] = (
        *Workload.definitions,
        "CREATE INDEX balances ON account (balance)",
        "DROP INDEX balances",
        "ALTER TABLE account ADD COLUMN note VARCHAR(10)",
        "ALTER TABLE account DROP COLUMN note",
    )

    @classmethod
    @override
    def create(cls, connection: tique.Connection) -> None:
        """Make the accounts."""
        connection.execute(
            "CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT)"
        )
        for account in range(ACCOUNTS):
            change(
                connection,
                "INSERT INTO account (id, balance) VALUES (%s, %s)",
                account,
                START,
            )
        connection.commit()

    @override
    def generate(self) -> Operation:
        """Choose a transfer or a read."""
        if self.chance.random() < 0.4:
            return Operation("read", None)
        source, target = self.chance.sample(range(ACCOUNTS), 2)
        amount = self.chance.randint(1, 10)
        return Operation("transfer", {"from": source, "to": target, "amount": amount})

    @override
    def apply(self, connection: tique.Connection, operation: Operation) -> Any:
        """Read all accounts, in one statement or in many, or move an amount."""
        if operation.f == "read":
            if self.chance.random() < 0.5:
                found = rows(connection, "SELECT id, balance FROM account")
            else:
                found = [
                    (account, _balance(connection, account))
                    for account in range(ACCOUNTS)
                ]
            return dict.fromkeys(map(str, range(ACCOUNTS)), 0) | {
                str(account): int(balance) for account, balance in found
            }
        value = operation.value
        if self.chance.random() < 0.5:
            _move(connection, value["from"], value["to"], value["amount"])
            return value
        balances = [
            (value["from"], -value["amount"]),
            (value["to"], value["amount"]),
        ]
        for account, amount in balances:
            balance = _balance(connection, account)
            if balance + amount < 0:
                raise Refused("the balance would be negative")
            if balance + amount == 0:
                change(connection, "DELETE FROM account WHERE id = %s", account)
            elif balance == 0:
                change(
                    connection,
                    "INSERT INTO account (id, balance) VALUES (%s, %s)",
                    account,
                    amount,
                )
            else:
                change(
                    connection,
                    "UPDATE account SET balance = %s WHERE id = %s",
                    balance + amount,
                    account,
                )
        return value

    @classmethod
    @override
    def final(cls, events: Sequence[Event]) -> list[Operation]:
        """Read all accounts."""
        return [Operation("read", None)] * 3


def _move(connection: tique.Connection, source: int, target: int, amount: int) -> None:
    """Move an amount without a look at the balances; a whole one is never moved."""
    taken = change(
        connection,
        "UPDATE account SET balance = balance - %s WHERE id = %s AND balance > %s",
        amount,
        source,
        amount,
    )
    if not taken:
        raise Refused("the balance would not be positive")
    change(
        connection,
        "INSERT INTO account (id, balance) VALUES (%s, %s) "
        "ON CONFLICT (id) DO UPDATE SET balance = account.balance + excluded.balance",
        target,
        amount,
    )


def _balance(connection: tique.Connection, account: int) -> int:
    found = rows(connection, "SELECT balance FROM account WHERE id = %s", account)
    return int(found[0][0]) if found else 0
