"""The checker of list-append histories.

Elle's procedure, in the same words (Kingsbury and Alvaro, Elle: Inferring Isolation
Anomalies from Experimental Observations, VLDB 2020): the versions of each key from its
reads, dependencies from the versions, anomalies from cycles of dependencies, and from an
anomaly the models under which it may not happen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepsen.checker import anomalies, explanation
from jepsen.checker.cycles import cycles
from jepsen.checker.dependencies import dependencies
from jepsen.checker.graph import Edges, Graph
from jepsen.checker.realtime import processes, realtime
from jepsen.checker.transactions import pairs
from jepsen.checker.verdict import Findings
from jepsen.checker.versions import committed, versions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jepsen.checker.transactions import Transaction
    from jepsen.checker.verdict import Verdict
    from jepsen.checker.versions import KeyVersions
    from jepsen.history import Operation


def check(operations: Sequence[Operation]) -> Verdict:
    """Return the verdict on a list-append history.

    Raises
    ------
    MalformedHistory
        If it is none.
    """
    transactions = pairs(operations)
    keys = versions(transactions)
    is_committed = committed(transactions, keys)
    findings = Findings()
    anomalies.find(transactions, keys, is_committed, findings)
    found = cycles(_graph(transactions, keys, is_committed))
    for cycle in found.cycles:
        findings.add(cycle.name, *explanation.cycle(cycle, transactions, keys))
    for name, more in found.more.items():
        findings.count(name, more)
    return findings.verdict(_unknown(transactions, keys))


def _graph(
    transactions: Sequence[Transaction],
    keys: Sequence[KeyVersions],
    is_committed: Sequence[bool],
) -> Graph:
    by_versions, nodes = dependencies(keys, is_committed, len(transactions))
    by_clock, nodes = realtime(transactions, is_committed, nodes)
    by_client = processes(transactions, is_committed)
    edges = Edges.all([by_versions, by_client, by_clock])
    return Graph(len(transactions), nodes, edges)


def _unknown(
    transactions: Sequence[Transaction], keys: Sequence[KeyVersions]
) -> str | None:
    """Return why a history without anomalies says nothing, if it does not.

    It says something as soon as one acknowledged transaction has read a key to which
    another appended, one that may have been committed: the read shows the append or it
    does not, and either could be wrong. Below that there is nothing to depend on, and
    every order of the transactions is as good as any other. A longer history is no better
    by itself: a run whose clients never got through writes one that nothing could
    contradict.
    """
    for known in keys:
        writers = {
            writer
            for writer in known.writers.values()
            if transactions[writer].outcome != "fail"
        }
        if any(writers - {reader} for reader, _ in known.reads):
            return None
    return "no acknowledged transaction read a key to which another appended"
