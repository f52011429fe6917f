"""Whether a row that was acknowledged is there ever after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jepsen import edn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from jepsen.checker.transactions import Transaction
    from jepsen.checker.verdict import Findings

Row = tuple[Any, ...]


def find_lost(
    inserts: Mapping[Row, Transaction],
    reads: Sequence[tuple[Transaction, AbstractSet[Row]]],
    findings: Findings,
) -> None:
    """Note each row that a read misses which began after its insert was acknowledged.

    Parameters
    ----------
    inserts : mapping of row to Transaction
        Rows that no operation deletes.
    reads : sequence of Transaction and set of rows
        Reads of all rows, in the order in which they began.
    findings : Findings
        Where to note them (lost-row).
    """
    acknowledged = sorted(
        (each.ended, row) for row, each in inserts.items() if each.outcome == "ok"
    )
    waiting = iter(acknowledged)
    ended, row = next(waiting, (None, ()))
    known: set[Row] = set()
    for read, found in reads:
        while ended is not None and ended < read.begun:
            known.add(row)
            ended, row = next(waiting, (None, ()))
        lost = known - found
        known -= lost
        for each in lost:
            findings.add(
                "lost-row",
                f"the insert of {edn.text(each)} was acknowledged at index "
                f"{inserts[each].index}; the read at index {read.index} began later and "
                "does not see it",
            )
