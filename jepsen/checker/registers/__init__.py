"""The checker of rw-register histories: unique values that are written and read.

A read of a register shows one version and not, as a list's does, those before it. So the order
of versions is known in part only: what follows from the reads and writes themselves, from
the order of clients and from the clock (`orders`). Dependencies and cycles come from that
as they do in `list_append`, under the same names, which is Elle's procedure
(``elle.rw-register``).

The cycles of an order that is known in part do not show everything: of two writes that
no reads put in order, either order may contradict the reads. So where there is no cycle
an order of all transactions is sought (`serial`). Such an order shows the history
strict-serializable, and so valid under every model; that there is none is an anomaly of its
own. Under the models below serializability valid means that nothing contradicts them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepsen.checker import explanation
from jepsen.checker.cycles import cycles
from jepsen.checker.graph import Edges, Graph, Level
from jepsen.checker.models import Model
from jepsen.checker.realtime import processes, realtime
from jepsen.checker.registers import anomalies
from jepsen.checker.registers.dependencies import dependencies
from jepsen.checker.registers.orders import find_orders
from jepsen.checker.registers.serial import Search
from jepsen.checker.registers.versions import committed, registers
from jepsen.checker.registers.wording import REASONS, transaction
from jepsen.checker.transactions import pairs
from jepsen.checker.verdict import Findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jepsen.checker.registers.versions import Register
    from jepsen.checker.transactions import Transaction
    from jepsen.checker.verdict import Verdict
    from jepsen.history import Operation

_SERIAL = (
    (Model.STRICT_SERIALIZABLE, Level.REALTIME, "no-serial-order-realtime"),
    (Model.SERIALIZABLE, Level.DATA, "no-serial-order"),
)
"""The models that ask for an order of all transactions, the stronger first."""


def check(operations: Sequence[Operation]) -> Verdict:
    """Return the verdict on a rw-register history.

    Raises
    ------
    MalformedHistory
        If it is none.
    """
    transactions = pairs(operations)
    found = registers(transactions)
    is_committed = committed(transactions, found)
    findings = Findings()
    anomalies.find(transactions, found, findings)
    graph = _graph(transactions, found, is_committed)
    known = cycles(graph)
    for cycle in known.cycles:
        findings.add(
            cycle.name,
            *explanation.cycle(cycle, transactions, found, transaction, REASONS),
        )
    for name, more in known.more.items():
        findings.count(name, more)
    doubts = _find_no_order(transactions, found, is_committed, graph, findings)
    return findings.verdict(_unknown(transactions, found), doubts)


def _graph(
    transactions: Sequence[Transaction],
    found: Sequence[Register],
    is_committed: Sequence[bool],
) -> Graph:
    for each in found:
        each.orders = find_orders(each, transactions, is_committed)
    by_clock, nodes = realtime(transactions, is_committed, len(transactions))
    by_client = processes(transactions, is_committed)
    by_versions = dependencies(found, is_committed)
    return Graph(
        len(transactions), nodes, Edges.all([by_versions, by_client, by_clock])
    )


def _find_no_order(
    transactions: Sequence[Transaction],
    found: Sequence[Register],
    is_committed: Sequence[bool],
    graph: Graph,
    findings: Findings,
) -> dict[Model, str]:
    """Seek a serial order for each model that asks for one and is not contradicted yet."""
    doubts = {}
    for model, level, name in _SERIAL:
        if findings.verdict().valid(model) is False:
            continue
        search = Search(transactions, found, is_committed, graph, level)
        outcome = search.run()
        if outcome:
            break
        if outcome is None:
            doubts[model] = "no order of the transactions was found in the time for it"
        else:
            findings.add(name, *search.impasse)
    return doubts


def _unknown(
    transactions: Sequence[Transaction], found: Sequence[Register]
) -> str | None:
    """Return why a history without anomalies says nothing, if it does not.

    As of list-append: some read has to show another's write or miss it.
    """
    for register in found:
        writers = {
            writer
            for writer in register.writers.values()
            if transactions[writer].outcome != "fail"
        }
        readers = {reader for reader, _ in register.reads}
        if any(writers - {reader} for reader in readers):
            return None
    return "no acknowledged transaction read a key that another wrote"
