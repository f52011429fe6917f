"""Transaction control in SQL text, read before any parser sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.plan import Control, TransactionControl

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique_rewriter.source import Source, Word

_LEVELS = (
    ("READ", "UNCOMMITTED"),
    ("READ", "COMMITTED"),
    ("REPEATABLE", "READ"),
    ("SERIALIZABLE",),
    ("SNAPSHOT",),
)


class _Words:
    """Reads a statement's words from left to right."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.number = 0

    def accept(self, *keywords: str) -> bool:
        """Step over these words if they come next."""
        words = self.source.words[self.number : self.number + len(keywords)]
        if tuple(word.keyword for word in words) != keywords:
            return False
        self.number += len(keywords)
        return True

    def name(self) -> str:
        word = self.next("a savepoint's name")
        self.number += 1
        return self.source.rules.same(self.source.identifier(word))

    def next(self, expected: str) -> Word:
        if self.number >= len(self.source.words):
            last = self.source.words[-1]
            raise self.source.syntax(f"{expected} is missing", last.start)
        return self.source.words[self.number]

    def finish(self) -> None:
        if self.number < len(self.source.words):
            word = self.source.words[self.number]
            shown = self.source.text[word.start : word.end]
            raise self.source.unsupported(f'"{shown}" here', word.start)


def plan_control(source: Source) -> TransactionControl:
    """Return the plan of BEGIN, COMMIT, ROLLBACK, the savepoint family, SET TRANSACTION."""
    words = _Words(source)
    verb = words.next("a statement")
    words.number += 1
    plan = _READERS[verb.keyword](words)
    words.finish()
    return plan


def _begin(words: _Words) -> TransactionControl:
    if words.source.words[0].keyword == "START" and not words.accept("TRANSACTION"):
        raise words.source.syntax("START without TRANSACTION", 0)
    _ = words.accept("WORK") or words.accept("TRANSACTION")
    isolation, read_only = _modes(words)
    return TransactionControl(
        0, (), Control.BEGIN, isolation=isolation, read_only=read_only
    )


def _commit(words: _Words) -> TransactionControl:
    _ = words.accept("WORK") or words.accept("TRANSACTION")
    return TransactionControl(0, (), Control.COMMIT, chains=_chains(words))


def _chains(words: _Words) -> bool:
    """Read AND [NO] CHAIN, if it is there; whether another transaction begins."""
    if not words.source.rules.chains or words.accept("AND", "NO", "CHAIN"):
        return False
    return words.accept("AND", "CHAIN")


def _rollback(words: _Words) -> TransactionControl:
    _ = words.accept("WORK") or words.accept("TRANSACTION")
    if words.accept("TO"):
        words.accept("SAVEPOINT")
        return TransactionControl(0, (), Control.ROLLBACK_TO, words.name())
    return TransactionControl(0, (), Control.ROLLBACK, chains=_chains(words))


def _savepoint(words: _Words) -> TransactionControl:
    return TransactionControl(0, (), Control.SAVEPOINT, words.name())


def _release(words: _Words) -> TransactionControl:
    words.accept("SAVEPOINT")
    return TransactionControl(0, (), Control.RELEASE, words.name())


def _set(words: _Words) -> TransactionControl:
    words.accept("TRANSACTION")
    words.next("a transaction mode")
    isolation, read_only = _modes(words)
    return TransactionControl(
        0, (), Control.SET_TRANSACTION, isolation=isolation, read_only=read_only
    )


def read_modes(source: Source, number: int) -> tuple[str | None, bool | None]:
    """Return isolation level and READ ONLY from this word on, None where not said."""
    words = _Words(source)
    words.number = number
    words.next("a transaction mode")
    modes = _modes(words)
    words.finish()
    return modes


def _modes(words: _Words) -> tuple[str | None, bool | None]:
    isolation: str | None = None
    read_only: bool | None = None
    while words.number < len(words.source.words):
        if words.accept("ISOLATION", "LEVEL"):
            word = words.next("an isolation level")
            level = next((lv for lv in _LEVELS if words.accept(*lv)), None)
            if level is None:
                shown = words.source.text[word.start : word.end]
                raise words.source.unsupported(
                    f'the isolation level "{shown}"', word.start
                )
            isolation = " ".join(level)
        elif words.accept("READ", "ONLY"):
            read_only = True
        elif words.accept("READ", "WRITE"):
            read_only = False
        elif not words.accept(","):
            break
    return isolation, read_only


_READERS: dict[str, Callable[[_Words], TransactionControl]] = {
    "BEGIN": _begin,
    "START": _begin,
    "COMMIT": _commit,
    "END": _commit,
    "ROLLBACK": _rollback,
    "ABORT": _rollback,
    "SAVEPOINT": _savepoint,
    "RELEASE": _release,
    "SET": _set,
}

VERBS = frozenset(_READERS)
"""The first words of the statements that :func:`plan_control` reads."""
