"""The hook of an observer of statements, commits and checkpoints; empty unless one is set.

The driver looks at :data:`observer` once per statement, commit, group commit and round of
checkpoints. It tells no values and no text of a statement (P11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class Observer(Protocol):
    """Whatever :mod:`tique.observability` has set.

    ``system`` is the engine's name, and moments are those of ``time.perf_counter()``.
    """

    def observed(
        self, system: str, kind: str, run: Callable[_Parameters, _Result]
    ) -> Callable[_Parameters, _Result]:
        """The run of a statement of some kind, observed."""

    def commit(self, system: str, txid: int) -> AbstractContextManager[None]:
        """A context in which a transaction with writes is committed."""

    def grouped(
        self, system: str, tickets: int, moments: tuple[float, float, float, float]
    ) -> None:
        """A group commit has ended, of so many transactions.

        The moments are its begin and the ends of its phases: certify, append, publish.
        """

    def folded(self, system: str, versions: int, began: float) -> None:
        """A round of a checkpoint has ended."""


observer: Observer | None = None
"""Read it once where it is used: any thread may take it away."""
