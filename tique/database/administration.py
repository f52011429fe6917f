"""Acts of administration, apart from connections: adopting, detaching, histories."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tique._translation import translating
from tique.database.database import acquire, release
from tique_backends.concurrency.undisturbed import undisturbed

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from tique.database.database import Database

_Found = TypeVar("_Found")


def administer(
    url: str | os.PathLike[str], work: Callable[[Database], _Found]
) -> _Found:
    """Do one thing in a database that is opened for it; no signal handler cuts it short."""
    with translating():
        database = acquire(url, {})
        try:
            return undisturbed(lambda: work(database))
        finally:
            release(database)
