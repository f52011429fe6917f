"""A kind of statement, and the registry of those that a dialect has.

A dialect lists its kinds in ``STATEMENTS``. The first words of a statement say of which
kind it is; if several kinds begin with them, it is the one with the longest beginning:

>>> sorted(phrases("CREATE [OR REPLACE] VIEW", "DROP VIEW|TABLE"))
['CREATE OR REPLACE VIEW', 'CREATE VIEW', 'DROP TABLE', 'DROP VIEW']
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from itertools import product
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tique_rewriter.kinds.planner import Planner
    from tique_rewriter.plans.plan import Plan
    from tique_rewriter.text.source import Source

    Reader = Callable[[Source, Planner], Plan]
    Tag = str | Callable[[Source], str]

_PART = re.compile(r"\[(.+?)\]|(\S+)")
_NOT_IN_TAGS = frozenset(
    ("OR", "REPLACE", "TEMP", "TEMPORARY", "LOCAL", "UNLOGGED", "UNIQUE")
)


def phrases(*patterns: str, tag: Tag | None = None) -> dict[str, Tag]:
    """Return all beginnings of some patterns, each with its command tag.

    What is in square brackets may be missing, and ``|`` stands between words of which one
    is there. The tag is the beginning itself without what its object is like, if none is
    given.
    """
    found: dict[str, Tag] = {}
    for pattern in patterns:
        parts = [
            [optional, ""] if optional else word.split("|")
            for optional, word in _PART.findall(pattern)
        ]
        for words in product(*parts):
            phrase = " ".join(filter(None, words))
            said = [word for word in phrase.split() if word not in _NOT_IN_TAGS]
            found[phrase] = tag or " ".join(said)
    return found


@dataclass(frozen=True)
class Kind:
    """A kind of statement.

    Parameters
    ----------
    read
        Returns the plan of such a statement.
    begins
        The words that it may begin with, and the command tag of each, in which ``#``
        stands for the number of rows: ``INSERT 0 #``.
    checks
        Whether its functions and names are checked before it is read.
    explains
        Whether EXPLAIN may stand before it.
    """

    read: Reader
    begins: Mapping[str, Tag]
    checks: bool = False
    explains: bool = True

    def without(self, *words: str) -> Kind:
        """Return this kind without the beginnings in which one of these words is."""
        begins = {
            phrase: tag
            for phrase, tag in self.begins.items()
            if not set(words).intersection(phrase.split())
        }
        return replace(self, begins=begins)


class Registry:
    """The kinds of statements that a dialect has.

    Raises
    ------
    ValueError
        Two kinds have the same beginning.
    """

    def __init__(self, *kinds: Kind) -> None:
        self._found: dict[tuple[str, ...], tuple[Kind, Tag]] = {}
        for kind in kinds:
            for phrase, tag in kind.begins.items():
                words = tuple(phrase.split())
                if words in self._found:
                    raise ValueError(f"two kinds of statements begin with {phrase}")
                self._found[words] = kind, tag
        self._longest = max(map(len, self._found))

    def _find(self, words: list[str]) -> tuple[Kind, Tag] | None:
        for count in range(self._longest, 0, -1):
            found = self._found.get(tuple(words[:count]))
            if found is not None:
                return found
        return None

    def kind(self, source: Source) -> Kind | None:
        """Return the kind of a statement; None if the dialect has none that begins so."""
        found = self._find(source.keywords())
        return found and found[0]

    def tag(self, source: Source, verb: str = "") -> str:
        """Return the command tag of a statement, or of another one that begins with ``verb``."""
        found = self._find([verb] if verb else source.keywords())
        if found is None:
            return ""
        tag = found[1]
        return tag if isinstance(tag, str) else tag(source)


@cache
def registry_of(dialect: str) -> Registry:
    """Return the kinds of statements that a dialect has."""
    module = import_module(f"tique_rewriter.dialects.{dialect}")
    return cast("Registry", module.STATEMENTS)
