"""Running a transaction of Django's again after a conflict."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, TypeVar

from django.db import DatabaseError, transaction

if TYPE_CHECKING:
    from collections.abc import Callable

_Result = TypeVar("_Result")

_CONFLICTS = {"40001", "40P01"}
"""Serialization failure, and deadlock."""
_UNPAUSED = 3
_LONGEST_PAUSE = 0.04
"""In seconds."""


def retrying(
    work: Callable[[], _Result], *, using: str | None = None, attempts: int = 20
) -> _Result:
    """Run ``work()`` in a transaction, again if it meets a conflict.

    >>> def pay():
    ...     account = Account.objects.get(pk=1)
    ...     account.balance -= 10
    ...     account.save()
    >>> retrying(pay)

    Conflicts of PostgreSQL's own, without tique, are conflicts too.

    Parameters
    ----------
    work
        The transaction's work: it reads its objects itself, must not commit, and may be run
        more than once.
    using
        The database's name in ``DATABASES``; without it, the default one.
    attempts
        How often the work is tried, at most.

    Returns
    -------
    object
        The result of ``work`` in the attempt that was committed.

    Raises
    ------
    django.db.OperationalError
        If the last attempt met a conflict too; its ``__cause__`` is the driver's error,
        :class:`tique.SerializationError`.
    RuntimeError
        Inside ``transaction.atomic()``, which could not be run again.
    """
    if attempts < 1:
        raise ValueError(f"attempts must be at least 1, not {attempts}")
    attempt = 1
    while True:
        try:
            with transaction.atomic(using, durable=True):
                return work()
        except DatabaseError as error:
            if not _is_conflict(error) or attempt == attempts:
                raise
        if attempt > _UNPAUSED:
            # Another process may be the winner each time.
            time.sleep(random.uniform(0, _LONGEST_PAUSE))  # noqa: S311 - no secret
        attempt += 1


def _is_conflict(error: DatabaseError) -> bool:
    return getattr(error.__cause__, "sqlstate", None) in _CONFLICTS
