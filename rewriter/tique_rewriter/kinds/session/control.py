"""Transaction control in SQL text, read before any parser sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.plans.plan import Control, TransactionControl
from tique_rewriter.text.cursor import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique_rewriter.text.source import Source

_LEVELS = (
    *("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"),
    "SNAPSHOT",
)


def plan_control(source: Source) -> TransactionControl:
    """Return the plan of BEGIN, COMMIT, ROLLBACK, the savepoint family, SET TRANSACTION."""
    words = Cursor(source)
    plan = _READERS[words.take().keyword](words)
    words.finish()
    return plan


def _begin(words: Cursor) -> TransactionControl:
    if words.source.words[0].keyword == "START" and not words.accept("TRANSACTION"):
        raise words.source.syntax("START without TRANSACTION", 0)
    words.accept("WORK", "TRANSACTION")
    isolation, read_only = _modes(words)
    return TransactionControl(
        0, (), Control.BEGIN, isolation=isolation, read_only=read_only
    )


def _commit(words: Cursor) -> TransactionControl:
    words.accept("WORK", "TRANSACTION")
    return TransactionControl(0, (), Control.COMMIT, chains=_chains(words))


def _chains(words: Cursor) -> bool:
    """Read AND [NO] CHAIN, if it is there; whether another transaction begins."""
    if not words.source.rules.chains or words.accept("AND NO CHAIN"):
        return False
    return bool(words.accept("AND CHAIN"))


def _rollback(words: Cursor) -> TransactionControl:
    words.accept("WORK", "TRANSACTION")
    if words.accept("TO"):
        words.accept("SAVEPOINT")
        return TransactionControl(0, (), Control.ROLLBACK_TO, _name(words))
    return TransactionControl(0, (), Control.ROLLBACK, chains=_chains(words))


def _savepoint(words: Cursor) -> TransactionControl:
    return TransactionControl(0, (), Control.SAVEPOINT, _name(words))


def _release(words: Cursor) -> TransactionControl:
    words.accept("SAVEPOINT")
    return TransactionControl(0, (), Control.RELEASE, _name(words))


def _name(words: Cursor) -> str:
    return words.source.rules.same(words.name("a savepoint's name is missing"))


def _expect(words: Cursor, what: str) -> None:
    if words.is_done:
        raise words.source.syntax(f"{what} is missing", words.start)


def _set(words: Cursor) -> TransactionControl:
    words.accept("TRANSACTION")
    _expect(words, "a transaction mode")
    isolation, read_only = _modes(words)
    return TransactionControl(
        0, (), Control.SET_TRANSACTION, isolation=isolation, read_only=read_only
    )


def read_modes(words: Cursor) -> tuple[str | None, bool | None]:
    """Read isolation level and READ ONLY, the rest of a statement; None where not said."""
    _expect(words, "a transaction mode")
    modes = _modes(words)
    words.finish()
    return modes


def _modes(words: Cursor) -> tuple[str | None, bool | None]:
    isolation: str | None = None
    read_only: bool | None = None
    while words.left:
        if words.accept("ISOLATION LEVEL"):
            _expect(words, "an isolation level")
            isolation = words.accept(*_LEVELS)
            if not isolation:
                shown = words.source.raw(words.word)
                raise words.source.unsupported(
                    f'the isolation level "{shown}"', words.start
                )
        elif words.accept("READ ONLY"):
            read_only = True
        elif words.accept("READ WRITE"):
            read_only = False
        elif not words.accept(","):
            break
    return isolation, read_only


_READERS: dict[str, Callable[[Cursor], TransactionControl]] = {
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
