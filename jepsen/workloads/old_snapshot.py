"""Transfers beside snapshots that are old: each stays as it is, whatever is folded.

A transaction that watches reads all accounts, waits for seconds, and reads them again and
again; some transfer an amount at their end, which they see then, and so are certified
against all that happened meanwhile. One client does nothing else.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from jepsen.workloads.bank import ACCOUNTS, Bank
from jepsen.workloads.base import Operation

if TYPE_CHECKING:
    import tique

_WATCHING = 0.02
"""The share of operations that watch, for all clients but one."""

_QUIET = (ACCOUNTS - 2, ACCOUNTS - 1)
"""Accounts that others change seldom: transfers at the end are between these."""

_SELDOM = 0.02

_WAITS = (0.1, 0.5, 1.5, 8.0)
"""Seconds that such a transaction waits in all."""

_READS = 4
"""How often it reads meanwhile."""


class OldSnapshot(Bank):
    """Transfers, reads, and transactions that stay open."""

    name: ClassVar[str] = "old-snapshot"
    options: ClassVar[dict[str, Any]] = {"long_snapshot": 0.3}

    @override
    def generate(self) -> Operation:
        """Choose a transfer, a read, or to watch."""
        if not self.client or self.chance.random() < _WATCHING:
            if self.chance.random() < 0.5:
                return Operation("watch", None)
            source, target = self.chance.sample(_QUIET, 2)
            return Operation(
                "late-transfer", {"from": source, "to": target, "amount": 1}
            )
        while True:
            operation = super().generate()
            if operation.f == "read" or self.chance.random() < _SELDOM:
                return operation
            if not {operation.value["from"], operation.value["to"]} & {*_QUIET}:
                return operation

    @override
    def apply(self, connection: tique.Connection, operation: Operation) -> Any:
        """Do as the bank does, or watch first."""
        if operation.f not in ("watch", "late-transfer"):
            return super().apply(connection, operation)
        reads = [super().apply(connection, Operation("read", None))]
        pause = self.chance.choice(_WAITS) / _READS
        for _ in range(_READS):
            time.sleep(pause)
            reads.append(super().apply(connection, Operation("read", None)))
        if operation.f == "watch":
            return {"reads": reads}
        transfer = Operation("transfer", operation.value)
        moved = super().apply(connection, transfer)
        after = super().apply(connection, Operation("read", None))
        return {**moved, "reads": reads, "after": after}
