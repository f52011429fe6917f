"""The workloads, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepsen.workloads.bank import Bank
from jepsen.workloads.counter import Counter
from jepsen.workloads.jobs import Jobs
from jepsen.workloads.list_append import ListAppend
from jepsen.workloads.long_fork import LongFork
from jepsen.workloads.old_snapshot import OldSnapshot
from jepsen.workloads.on_call import OnCall
from jepsen.workloads.parent_child import ParentChild
from jepsen.workloads.predicate import Predicate
from jepsen.workloads.predicate_append import PredicateAppend
from jepsen.workloads.queue import Queue
from jepsen.workloads.replica import Replica
from jepsen.workloads.rw_register import PredicateRegister, RwRegister
from jepsen.workloads.statement_append import StatementAppend
from jepsen.workloads.time_travel import ShortHistory, TimeTravel
from jepsen.workloads.unique import Unique
from jepsen.workloads.write_skew import WriteSkew

if TYPE_CHECKING:
    from jepsen.workloads.base import Workload

WORKLOADS: dict[str, type[Workload]] = {
    workload.name: workload
    for workload in (
        ListAppend,
        RwRegister,
        Bank,
        OldSnapshot,
        TimeTravel,
        ShortHistory,
        Replica,
        LongFork,
        WriteSkew,
        OnCall,
        Unique,
        ParentChild,
        Queue,
        Jobs,
        Counter,
        Predicate,
    )
}

READ_COMMITTED: dict[str, type[Workload]] = {
    workload.name: workload for workload in (StatementAppend, Unique, ParentChild)
}
"""Those whose rule holds at READ COMMITTED, too: none reads, and then writes what it computed."""

SERIALIZABLE = WORKLOADS | {
    workload.name: workload for workload in (PredicateAppend, PredicateRegister)
}
"""All of them, two with rows that are found by a condition."""

LEVELS = {
    "snapshot": WORKLOADS,
    "read committed": READ_COMMITTED,
    "serializable": SERIALIZABLE,
}
"""The workloads by isolation level, as ``--level`` has it."""
