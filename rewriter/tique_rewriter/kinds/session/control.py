"""Transaction control in SQL text, read before any parser sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.plans.plan import Control, TransactionControl
from tique_rewriter.scope.past import read_point
from tique_rewriter.text.cursor import Cursor

if TYPE_CHECKING:
    from tique_rewriter.plans.past import Past
    from tique_rewriter.text.source import Source

_LEVELS = (
    *("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"),
    "SNAPSHOT",
)


def plan_control(source: Source) -> TransactionControl:
    """Return the plan of BEGIN, COMMIT, ROLLBACK, the savepoint family, SET TRANSACTION."""
    words = Cursor(source)
    plan = _plan(words)
    words.finish()
    return plan


def _plan(words: Cursor) -> TransactionControl:
    verb = words.take().keyword
    if verb == "START" and not words.accept("TRANSACTION"):
        raise words.source.syntax("START without TRANSACTION", 0)
    if verb == "SAVEPOINT":
        return TransactionControl(0, (), Control.SAVEPOINT, _name(words))
    if verb == "RELEASE":
        words.accept("SAVEPOINT")
        return TransactionControl(0, (), Control.RELEASE, _name(words))
    words.accept("TRANSACTION", "WORK")
    if verb in ("SET", "BEGIN", "START"):
        if verb == "SET":
            _expect(words, "a transaction mode")
        control = Control.SET_TRANSACTION if verb == "SET" else Control.BEGIN
        given = len(words.source.lexed.arguments)
        modes = _modes(words)
        as_of = _as_of(words, modes[1])
        return TransactionControl(given, (), control, None, *modes, as_of=as_of)
    if verb in ("COMMIT", "END"):
        return TransactionControl(0, (), Control.COMMIT, chains=_chains(words))
    if words.accept("TO"):
        words.accept("SAVEPOINT")
        return TransactionControl(0, (), Control.ROLLBACK_TO, _name(words))
    return TransactionControl(0, (), Control.ROLLBACK, chains=_chains(words))


def _chains(words: Cursor) -> bool:
    """Read AND [NO] CHAIN, if it is there; whether another transaction begins."""
    if not words.source.rules.chains or words.accept("AND NO CHAIN"):
        return False
    return bool(words.accept("AND CHAIN"))


def _as_of(words: Cursor, read_only: bool | None) -> Past | None:
    """Read AS OF a point of the past, if it is there."""
    if words.follows("AS OF") and read_only is False:
        raise words.source.syntax("READ WRITE AS OF the past", words.start)
    return read_point(words) if words.accept("AS OF") else None


def _name(words: Cursor) -> str:
    return words.source.rules.same(words.name("a savepoint's name is missing"))


def _expect(words: Cursor, what: str) -> None:
    if words.is_done:
        raise words.source.syntax(f"{what} is missing", words.start)


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
        # What only reads is never aborted: it has nothing to wait for.
        elif not words.accept("DEFERRABLE", "NOT DEFERRABLE", ","):
            break
    return isolation, read_only
