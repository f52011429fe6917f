"""Tables as of the past: which version a statement reads, and whether it can be read.

Argument
--------
*One engine transaction (P1).* Everything here is asked in the engine transaction that keeps the
transaction's snapshot (:mod:`tique.query.transaction.held`), and the statement's rows are read
in it. So it does not matter what is folded or pruned meanwhile: what is found to be there
is there when it is read. How storage, cache and images make a table of then is in
:mod:`tique_backends.catalog.histories`.

*The same rows each time.* A version that is not beyond the snapshot's own has all of its
commits: none is added to it later. A time stands for a version that way, but for one so
near to now that a commit with that time is still under way.

A transaction that is AS OF the past only reads, and all of its statements read the same version.
At READ COMMITTED it would be no different.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique import errors
from tique.history.moments import Point, expect_kept, point_of

if TYPE_CHECKING:
    from datetime import datetime

    from tique.query.transaction.transaction import Transaction
    from tique_rewriter.schema import Table


def point_at(transaction: Transaction, asked: int | datetime) -> Point:
    """The point of the past that is asked for; the engine keeps the snapshot from now on.

    Raises
    ------
    ProgrammingError
        It is in the future (SQLSTATE 22023).
    OperationalError
        No commit is known that was so early (72000).
    NotSupportedError
        The transaction has run DDL.
    """
    if transaction.has_run_ddl:
        raise errors.NotSupportedError(
            "the past is not read in a transaction after its DDL: read it before"
        )
    transaction.hold()
    return point_of(transaction.engine, transaction.session, asked, transaction.sts)


def folded_until(transaction: Transaction, table: Table, point: Point) -> int:
    """Up to which version storage is folded, of a table that can be read as of a point.

    Raises
    ------
    ProgrammingError
        The table has no history (SQLSTATE 55000).
    OperationalError
        Its history has no such point (72000).
    """
    transaction.versions(table)
    held = transaction.held
    assert held is not None
    if (table.id, point) not in held.readable:
        expect_kept(transaction.session, table, point)
        held.readable.add((table.id, point))
    return held.folded[table.id]
