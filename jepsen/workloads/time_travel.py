"""Transfers, and reads of the past: it stays as it was when it was the present.

A client notes all accounts together with their version. Later it asks for some of these
versions again, or has the feed of changes lead from one of them to another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from jepsen.workloads.bank import ACCOUNTS, Bank
from jepsen.workloads.base import Operation, rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import tique
    from jepsen.recorder import Event


class TimeTravel(Bank):
    """Transfers, notes of the present, and reads of the past."""

    name: ClassVar[str] = "time-travel"
    options: ClassVar[dict[str, Any]] = {"history": "10 days"}
    most_notes: ClassVar[int] = 300
    """Versions that a client remembers; of more it forgets one at random."""
    # A change of columns would end the history, and what was noted with it.
    definitions: ClassVar[tuple[str, ...]] = tuple(
        each for each in Bank.definitions if "ALTER" not in each
    )

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._notes: list[dict[str, Any]] = []

    @override
    def generate(self) -> Operation:
        """Choose a transfer, or what to read."""
        operation = super().generate()
        kind = self.chance.choice(("note", "recall", "replay"))
        if operation.f == "transfer":
            return Operation("move", operation.value)
        if kind == "note" or len(self._notes) < 2:
            return Operation("note", None)
        first, last = sorted(
            self.chance.sample(self._notes, 2), key=lambda note: note["version"]
        )
        if kind == "recall":
            return Operation("recall", {"version": first["version"]})
        return Operation("replay", {"since": first, "version": last["version"]})

    @override
    def apply(self, connection: tique.Connection, operation: Operation) -> Any:
        """Do as the bank does, or read the present or the past."""
        value = operation.value
        if operation.f == "move":
            return super().apply(connection, Operation("transfer", value))
        if operation.f == "note":
            accounts = self._accounts(connection)
            note = {"version": connection.version, "accounts": accounts}
            if len(self._notes) >= self.most_notes:
                self._notes.pop(self.chance.randrange(self.most_notes))
            self._notes.append(note)
            return note
        if operation.f == "recall":
            return {**value, "accounts": self._past(connection, **value)}
        return {**value, "accounts": _replayed(connection, **value)}

    def _past(self, connection: tique.Connection, version: int) -> dict[str, int]:
        if self.chance.random() < 0.7:
            with connection.transaction(as_of=version):
                return self._accounts(connection)
        # Beside the present, which such a statement has in the same engine transaction.
        found = rows(
            connection,
            "SELECT past.id, past.balance, account.id FROM account AS past "
            "AT (VERSION => %s) LEFT JOIN account ON account.id = past.id",
            version,
        )
        return dict.fromkeys(map(str, range(ACCOUNTS)), 0) | {
            str(account): int(balance) for account, balance, _ in found
        }

    def _accounts(self, connection: tique.Connection) -> dict[str, int]:
        found: dict[str, int] = super().apply(connection, Operation("read", None))
        return found

    @classmethod
    @override
    def final(cls, events: Sequence[Event]) -> list[Operation]:
        """Note all accounts, and ask for versions of the whole run again."""
        notes = [
            event.value for event in events if event.f == "note" and event.kind == "ok"
        ]
        notes.sort(key=lambda note: note["version"])
        some = notes[:: max(1, len(notes) // 20)]
        return [
            Operation("note", None),
            *(Operation("recall", {"version": note["version"]}) for note in some),
            *(
                Operation("replay", {"since": some[0], "version": note["version"]})
                for note in some[1:]
            ),
        ]


class ShortHistory(TimeTravel):
    """The same with a past that is soon gone: what is answered of it is still right."""

    name: ClassVar[str] = "short-history"
    options: ClassVar[dict[str, Any]] = {"history": "4 seconds"}
    # A change of columns ends it, too.
    definitions: ClassVar[tuple[str, ...]] = Bank.definitions
    most_notes: ClassVar[int] = 6

    @classmethod
    @override
    def final(cls, events: Sequence[Event]) -> list[Operation]:
        """Note all accounts: no version of the run can be asked for any more."""
        return [Operation("note", None)]


def _replayed(
    connection: tique.Connection, since: Mapping[str, Any], version: int
) -> dict[str, int]:
    """The accounts that the feed's changes make of those of a version before."""
    accounts = dict(since["accounts"])
    feed = connection.changes("account", since=since["version"], until=version)
    for change in feed:
        if change.old is not None:
            account, balance = map(int, change.old[:2])
            if accounts[str(account)] != balance:
                # No account has this name: the checker finds the difference.
                accounts[f"{account} before {change.version}"] = balance
            accounts[str(account)] = 0
        if change.new is not None:
            account, balance = map(int, change.new[:2])
            accounts[str(account)] = balance
    return accounts
