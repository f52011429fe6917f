"""Reads of a replica: each is the source at the version that it has, and none goes back.

``transfer`` as a bank's, ``append`` of ``[list, element]``; ``look`` of ``{"version", "life",
"stored", "accounts", "lists", "rows"}`` in a replica's process, where looks at what is stored
go back behind no other of these, and those at the newest state behind none of theirs; ``look-own`` of ``{"list", "elements"}``
after the same client's appends; ``log`` of ``{"balances", "appends"}``, each with the version
that its commit made.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING

from jepsen import edn
from jepsen.checker.time_travel import check_order
from jepsen.checker.transactions import nothing_to_compare, pairs
from jepsen.checker.verdict import Findings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jepsen.checker.transactions import Transaction
    from jepsen.checker.verdict import Verdict
    from jepsen.history import Operation


class _Source:
    """The source at each version, by its log."""

    def __init__(self, log: Mapping[str, Sequence[Sequence[int]]]) -> None:
        self._balances: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._appends: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for version, account, balance in log["balances"]:
            self._balances[account].append((version, balance))
        for version, number, element in log["appends"]:
            self._appends[number].append((version, element))

        self.total = sum(states[-1][1] for states in self._balances.values())

    def accounts(self, version: int) -> dict[int, int]:
        """All balances."""
        return {
            account: states[end - 1][1] if (end := _until(states, version)) else 0
            for account, states in self._balances.items()
        }

    def elements(self, number: int, version: int | None = None) -> list[int]:
        """A list, by default at the end."""
        found = self._appends.get(number, [])
        end = len(found) if version is None else _until(found, version)
        return [element for _, element in found[:end]]


def _until(states: Sequence[tuple[int, int]], version: int) -> int:
    return bisect_right(states, version, key=lambda state: state[0])


def check(operations: Sequence[Operation]) -> Verdict:
    """Return the verdict on a history of a source and its replica."""
    transactions = pairs(operations)
    done = [each for each in transactions if each.outcome == "ok"]
    logs = [each.value for each in done if each.invoke.f == "log"]
    findings = Findings()
    if not logs:
        return findings.verdict("the source's log was not read")
    source = _Source(logs[-1])
    looks = [each for each in done if each.invoke.f == "look"]
    for each in looks:
        _check_look(each, source, findings)
    lines = defaultdict(list)
    for each in looks:
        lines[each.value["life"], each.value.get("stored", False)].append(each)
    for line in lines.values():
        check_order(line, findings)
    _check_own(transactions, findings)
    for each in transactions:
        if each.invoke.f == "append":
            number, element = each.invoke.value
            is_there = element in source.elements(number)
            if is_there and each.outcome == "fail":
                findings.add("G1a", f"the append at index {each.index} failed: {each}")
            if not is_there and each.outcome == "ok":
                findings.add("lost-append", f"the append at index {each.index} is lost")
    return findings.verdict(
        nothing_to_compare(transactions, {"look"}, {"transfer", "append"})
    )


def _check_look(look: Transaction, source: _Source, findings: Findings) -> None:
    """Note a read that is not the source at its version."""
    version = look.value["version"]
    expected = source.accounts(version)
    if look.value["accounts"] != expected:
        findings.add(
            "changed-past",
            f"the look at index {look.index} has of version {version} accounts "
            f"{edn.text(look.value['accounts'])}",
            f"the source had {edn.text(expected)}",
        )
    if sum(look.value["accounts"].values()) not in (0, source.total):
        findings.add("wrong-total", f"the look at index {look.index} has another total")
    for number, elements in look.value["lists"].items():
        wanted = source.elements(number, version)
        if elements != wanted:
            findings.add(
                "changed-past",
                f"the look at index {look.index} has of version {version} list {number} "
                f"as {edn.text(elements)}",
                f"the source had {edn.text(wanted)}",
            )
        if look.value["rows"][number] != sorted(wanted):
            findings.add(
                "contradictory-rows",
                f"the look at index {look.index} has of version {version} the rows "
                f"{edn.text(look.value['rows'][number])} of list {number}",
                f"the source had {edn.text(wanted)}",
            )


def _check_own(transactions: Sequence[Transaction], findings: Findings) -> None:
    """Note a read that misses what its client has just appended."""
    own: dict[int, tuple[int, int]] = {}
    for each in sorted(transactions, key=lambda each: each.ended):
        last = own.pop(each.invoke.process, None)
        if each.outcome != "ok":
            continue
        if each.invoke.f == "append":
            own[each.invoke.process] = tuple(each.value)
        elif each.invoke.f == "look-own":
            number, elements = each.value["list"], each.value["elements"]
            if last and last[0] == number and last[1] not in elements:
                findings.add(
                    "stale-read",
                    f"the look-own at index {each.index} has list {number} as "
                    f"{edn.text(elements)}",
                    f"without {last[1]}, which its client appended before",
                )
