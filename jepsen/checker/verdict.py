"""The result of a checker."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jepsen.checker import models

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jepsen.checker.models import Model

# As many of each kind are written out; the others are counted.
EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Something that a model forbids.

    Attributes
    ----------
    name : str
        Its name; Elle's where Elle has one.
    lines : tuple of str
        An explanation, for a reader.
    """

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The anomalies of a history.

    Attributes
    ----------
    anomalies : tuple of Anomaly
        Examples of each kind.
    counts : mapping of str to int
        How many of each kind there are.
    unknown : str, optional
        Why nothing follows from a history without anomalies.
    doubts : mapping of Model to str
        Why nothing follows for one model.
    """

    anomalies: tuple[Anomaly, ...]
    counts: Mapping[str, int]
    unknown: str | None = None
    doubts: Mapping[Model, str] = field(default_factory=dict)

    def valid(self, model: Model) -> bool | None:
        """Return whether the history may occur under a model; None is unknown.

        A forbidden anomaly is one however little else the history shows.
        """
        if not models.PROSCRIBED[model].isdisjoint(self.counts):
            return False
        return None if self.unknown or model in self.doubts else True


class Findings:
    """Collects anomalies; keeps the first of each kind and counts the others."""

    def __init__(self) -> None:
        self._anomalies: list[Anomaly] = []
        self._counts: Counter[str] = Counter()

    def add(self, name: str, *lines: str) -> None:
        """Note one."""
        self._counts[name] += 1
        if self._counts[name] <= EXAMPLES:
            self._anomalies.append(Anomaly(name, lines))

    def count(self, name: str, more: int) -> None:
        """Note that there are more, of which nothing is told."""
        if more:
            self._counts[name] += more

    def verdict(
        self, unknown: str | None = None, doubts: Mapping[Model, str] | None = None
    ) -> Verdict:
        """Return the findings as a verdict."""
        return Verdict(
            tuple(self._anomalies), dict(self._counts), unknown, dict(doubts or {})
        )
