"""Running a transaction again after a conflict."""

from __future__ import annotations

import itertools
import random
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from tique.errors import ProgrammingError, Rollback, SerializationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tique.connection.connection import Connection

_Result = TypeVar("_Result")

_UNPAUSED = 3
"""Attempts without a pause: a conflict within the process has waited for its turn."""
_FIRST_PAUSE = 0.001
_LONGEST_PAUSE = 0.04
"""In seconds; shorter than a turn (:mod:`tique.commit.turns`)."""


def run_transaction(
    connection: Connection,
    work: Callable[[Connection], _Result],
    *,
    attempts: int = 20,
    priority: bool = False,
) -> _Result:
    """Run ``work(connection)`` in a transaction, again if it meets a conflict.

    Parameters
    ----------
    connection
        A connection without an open transaction.
    work
        The transaction's work; it must not commit, and may be run more than once.
    attempts
        How often it is tried, at most.
    priority
        Whether it is a long one, whose later attempts may hold others up
        (:meth:`Connection.transaction`).

    Returns
    -------
    object
        The result of ``work`` in the attempt that was committed.

    Raises
    ------
    SerializationError
        If the last attempt met a conflict too.
    ProgrammingError
        If a transaction is open on the connection.
    Rollback
        If ``work`` raises it: nothing is committed.
    """
    check(attempts, in_transaction=connection.in_transaction)
    try:
        for attempt in itertools.count(1):
            try:
                with connection.transaction(priority=priority), told() as left:
                    return work(connection)
            except SerializationError:
                if attempt == attempts:
                    raise
            else:
                raise left[0]
            time.sleep(pause(attempt))
    finally:
        connection._execution.leave_turn()
    raise AssertionError


@contextmanager
def told() -> Iterator[list[Rollback]]:
    """Note the Rollback that leaves a block of a transaction, which ends there."""
    left: list[Rollback] = []
    try:
        yield left
    except Rollback as error:
        left.append(error)
        raise


def check(attempts: int, *, in_transaction: bool) -> None:
    """Refuse to run a transaction inside another one, or not even once."""
    if in_transaction:
        raise ProgrammingError(
            "run_transaction() begins a transaction itself; commit or roll back first",
            sqlstate="25001",
        )
    if attempts < 1:
        raise ProgrammingError(f"attempts must be at least 1, not {attempts}")


def pause(attempt: int) -> float:
    """Seconds to wait after an attempt that met a conflict."""
    if attempt <= _UNPAUSED:
        return 0.0
    # Another process may be the winner each time.
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)
    return random.uniform(0, longest)  # noqa: S311 - not for secrets
