"""Fences: expressions are computed for rows of the snapshot alone (P1).

A table's form in a query is storage without some of its rows, and others instead
(:mod:`tique.query.read.sources`). An engine may compute a condition before it leaves the former
out, and fail: ``WHERE 10 / n > 1`` after a ``DELETE … WHERE n = 0`` that is not folded yet.
So it may for rows that no condition on the key lets through, and MonetDB does for rows that a
fold has deleted. Such a statement is run again, with each form behind a *fence*, through which
the engine moves no condition.

Citus refuses joins other than by the distribution column in many places. A fence lets it bring
each table's rows to one place first, and join them there.

Argument
--------
A statement that fails has done nothing (P8), and has given the application no row: so it may
be run once more, on the same snapshot. There the engine finds the form's rows first, which
are the snapshot's. An error that it still raises, it may raise natively. Without the
error no statement is fenced: conditions that reach storage make use of its order and
indexes. In a transaction with DDL there is no second run: the engine has aborted its own
transaction with the first error, and the application's with it; so it does with one that
keeps a snapshot, where it has no savepoints, and the application runs that transaction again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tique import errors
from tique_backends.errors import EngineError, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tique.query.base import Outcome
    from tique.query.transaction.ddl_transaction import DDLTransaction


def run_fenced_if_needed(
    run: Callable[[DDLTransaction, Sequence[Any]], Outcome],
    transaction: DDLTransaction,
    bound: Sequence[Any],
) -> Outcome:
    """Run a statement; once more if a row that the snapshot lacks may be at fault."""
    transaction.needs_fence = False
    try:
        return run(transaction, bound)
    except EngineError as error:
        if error.kind is ErrorKind.UNSUPPORTED:
            if not transaction.engine.capabilities.refuses_joins:
                raise
        elif error.kind is not ErrorKind.DATA or not transaction.needs_fence:
            raise
        if not transaction.goes_on():
            raise errors.SerializationError(
                "a row that the snapshot lacks may be at fault for an error, with which the "
                f"engine has ended the transaction that kept it; run it again ({error})"
            ) from error
    transaction.is_fenced = True
    try:
        return run(transaction, bound)
    finally:
        transaction.is_fenced = False
