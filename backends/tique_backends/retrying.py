"""Running work again that conflicted with a concurrent engine transaction."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, TypeVar

from tique_backends.errors import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable

_Outcome = TypeVar("_Outcome")

_ATTEMPTS = 50
_LONGEST_PAUSE = 0.1


def persist(attempt: Callable[[], _Outcome]) -> _Outcome:
    """Attempt something until no conflict aborts it."""
    for number in range(_ATTEMPTS - 1):
        try:
            return attempt()
        except ConflictError:
            longest = min(_LONGEST_PAUSE, 0.001 * 2**number)
            time.sleep(random.uniform(0, longest))  # noqa: S311
    return attempt()
