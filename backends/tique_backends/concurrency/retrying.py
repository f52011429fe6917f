"""Running work again that a conflict or an interruption was in the way of."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, TypeVar

from tique_backends.errors import ConflictError, EngineError, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Callable

_Outcome = TypeVar("_Outcome")

_ATTEMPTS = 50
_LONGEST_PAUSE = 0.1
_INTERRUPTIONS = 10


def persist(attempt: Callable[[], _Outcome]) -> _Outcome:
    """Attempt something until no conflict aborts it."""
    for number in range(_ATTEMPTS - 1):
        try:
            return attempt()
        except ConflictError:
            longest = min(_LONGEST_PAUSE, 0.001 * 2**number)
            time.sleep(random.uniform(0, longest))  # noqa: S311
    return attempt()


def insist(attempt: Callable[[], _Outcome]) -> _Outcome:
    """Attempt something that may be repeated, although it is interrupted.

    A request to stop a statement can reach the ROLLBACK after it, which is never meant.
    """
    for _ in range(_INTERRUPTIONS):
        try:
            return attempt()
        except EngineError as error:
            if error.kind is not ErrorKind.INTERRUPTED:
                raise
    return attempt()
