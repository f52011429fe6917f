"""Updates that begin without a question for the snapshot.

Before a transaction begins, a process that shares its database asks the server for the
newest timestamp, and follows the log up to it (:mod:`tique.timeline.shared`). An UPDATE of one
row by its key that merges (:mod:`tique.commit.mergeable`), a transaction of its own, can do
without: it begins *blindly*, on the commits that its process has followed, and the request that
commits it says whether these were enough.

Argument
--------
*Strong snapshot isolation (P1, P2, P3).* A blind transaction has seen nothing but rows that it
writes, with their conditions, and has an answer only when it is committed. Each row is certified
since the version that it was computed on: by this process up to what it has followed, by the
server for all later commits, in the step that hands out the timestamp. So that version is the newest
with a smaller timestamp, and what the statement did is what it would have done on a snapshot
taken just before its own timestamp. That snapshot has every commit that was acknowledged
before the request was sent, and so before the call. (It may cover commits that are not finished
yet: none of them has the row, and the transaction looks at nothing else.)

*What no commit certifies is not believed.* That a row is not there, that its condition is
false, that a value breaks a constraint, or that the engine had to be asked: such a run is undone,
the transaction takes a snapshot of now, and the statement runs again in it (:func:`run_blindly`).
The application sees the second run alone. The result that stands must be shown by the transaction itself
(:attr:`~tique.query.transaction.transaction.Transaction.has_merging_rows_only`), whatever its plan says.

*Definitions.* The statement was planned by those that the process had followed. A change of
definitions has a barrier, and the server refuses the commits of a process that has not followed
it. One that was followed between plan and certification has changed the catalog's version:
then the commit is lost (:mod:`tique.commit.batch`), and the statement is run again, planned anew. So the definitions
at the timestamp are those of the plan, also where a new name would have been found first.

*Privileges.* A process that learns them with its snapshots asks for each.

*λ (P7)* and the lease are as for any transaction: its snapshot, an older one, is registered in
this process, whose anchor in the server is not newer.

*If the process dies*, at any line: before the request to commit nothing of the transaction is
anywhere else, and from then on it is a commit as any other.

*Costs.* A commit of the row by another process that was not followed makes the server refuse
the request, and it is made twice. So transactions begin blindly only while this process's last
commits were the newest of all (:attr:`~tique.timeline.local.Timeline.can_skip_snapshot`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique import errors
from tique_backends.errors import EngineError, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tique.query.base import Outcome, Statement
    from tique.query.transaction.ddl_transaction import DDLTransaction

_JUDGEMENTS = frozenset(
    {
        ErrorKind.PROGRAMMING,
        ErrorKind.UNSUPPORTED,
        ErrorKind.DATA,
        ErrorKind.UNIQUE,
        ErrorKind.NOT_NULL,
        ErrorKind.CHECK,
        ErrorKind.INTEGRITY,
    }
)
"""Errors of the engine that depend on what the statement reads."""


def run_blindly(
    statement: Statement, transaction: DDLTransaction, parameters: Sequence[Any]
) -> Outcome:
    """Run a statement in a blind transaction; once more on a snapshot of now, if need be.

    Raises
    ------
    SerializationError
        The snapshot of now has other definitions than the plan.
    """
    try:
        outcome = statement.run(transaction, parameters)
    except EngineError as error:
        if error.kind not in _JUDGEMENTS:
            raise
    except errors.OperationalError:
        raise
    except errors.Error:
        pass
    else:
        if transaction.has_merging_rows_only:
            return outcome
        outcome.close()
    planned_at = transaction.planned_at
    transaction.begin_anew()
    if planned_at != transaction.catalog.version:
        raise errors.SerializationError(
            "definitions have changed since the statement was planned; run it again"
        )
    return statement.run(transaction, parameters)
