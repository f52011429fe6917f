"""Running the work of a session again after a conflict."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy.exc import DBAPIError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from sqlalchemy.ext.asyncio import AsyncSession
    from sqlalchemy.orm import Session

_Result = TypeVar("_Result")
_Session = TypeVar("_Session", bound="Session")
_AsyncSession = TypeVar("_AsyncSession", bound="AsyncSession")

_CONFLICTS = ("40001", "40P01")
"""SQLSTATEs: a serialization failure, and a deadlock, which PostgreSQL without tique has."""
_UNPAUSED = 3
"""Attempts without a pause: a conflict within the process has waited for its turn."""
_FIRST_PAUSE = 0.001
_LONGEST_PAUSE = 0.04
"""In seconds."""


def retrying(
    session_factory: Callable[[], AbstractContextManager[_Session]],
    *,
    attempts: int = 20,
) -> Callable[[Callable[[_Session], _Result]], _Result]:
    """Return what runs ``work(session)`` in a transaction, again if it meets a conflict.

    Each attempt has a session of its own, so that no object of an attempt that lost is in the
    next one:

    >>> Session = sessionmaker(engine)
    >>> def pay(session):
    ...     session.get_one(Account, 1).balance -= 10
    >>> retrying(Session)(pay)

    ``@retrying(Session)`` before the function runs it at once, under its name. Conflicts of
    PostgreSQL's own, through psycopg without tique, are conflicts too.

    Parameters
    ----------
    session_factory
        Makes sessions: a ``sessionmaker``, or one that fits its call.
    attempts
        How often the work is tried, at most.

    Returns
    -------
    Callable
        Takes the work, which must not commit and may be run more than once, and returns
        its result in the attempt that was committed.

    Raises
    ------
    sqlalchemy.exc.OperationalError
        If the last attempt met a conflict too; its ``orig`` is the
        driver's error, :class:`tique.SerializationError`.
    """
    _check(attempts)

    def run(work: Callable[[_Session], _Result]) -> _Result:
        attempt = 1
        while True:
            try:
                with session_factory() as session, session.begin():
                    return work(session)
            except DBAPIError as error:
                if not is_conflict(error) or attempt == attempts:
                    raise
            time.sleep(_pause(attempt))
            attempt += 1

    return run


def retrying_async(
    session_factory: Callable[[], AbstractAsyncContextManager[_AsyncSession]],
    *,
    attempts: int = 20,
) -> Callable[[Callable[[_AsyncSession], Awaitable[_Result]]], Awaitable[_Result]]:
    """Return what runs ``await work(session)`` as :func:`retrying` runs work.

    >>> Session = async_sessionmaker(engine)
    >>> async def pay(session):
    ...     (await session.get_one(Account, 1)).balance -= 10
    >>> await retrying_async(Session)(pay)

    Parameters
    ----------
    session_factory
        Makes sessions: an ``async_sessionmaker``, or one that fits its call.
    attempts
        How often the work is tried, at most.

    Returns
    -------
    Callable
        Takes the work, a coroutine function, and returns an awaitable of its result.

    Raises
    ------
    sqlalchemy.exc.OperationalError
        As :func:`retrying`.
    """
    _check(attempts)

    async def run(work: Callable[[_AsyncSession], Awaitable[_Result]]) -> _Result:
        attempt = 1
        while True:
            try:
                async with session_factory() as session, session.begin():
                    return await work(session)
            except DBAPIError as error:
                if not is_conflict(error) or attempt == attempts:
                    raise
            await asyncio.sleep(_pause(attempt))
            attempt += 1

    return run


def _check(attempts: int) -> None:
    if attempts < 1:
        raise ValueError(f"attempts must be at least 1, not {attempts}")


def _pause(attempt: int) -> float:
    """Seconds to wait after an attempt that lost."""
    if attempt <= _UNPAUSED:
        return 0
    # Another process may be the winner each time.
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)
    return random.uniform(0, longest)  # noqa: S311 - not for secrets


def is_conflict(error: BaseException) -> bool:
    """Whether running the transaction again may succeed."""
    return (
        isinstance(error, DBAPIError)
        and getattr(error.orig, "sqlstate", None) in _CONFLICTS
    )
