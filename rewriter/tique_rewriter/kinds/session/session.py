"""Plans of SET, RESET and SHOW: the settings of the application's session.

Which of the engine's settings may be changed is the backend's business: a plan has the
setting's name and its values, as they are written. A value is a literal or a word; an
expression is refused, because it might be one of anything.

*SET CONSTRAINTS:* when the deferrable constraints of a transaction are checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from tique_rewriter.kinds.session.control import read_modes
from tique_rewriter.plans.plan import ISOLATION, Plan
from tique_rewriter.text.cursor import Cursor
from tique_rewriter.text.names import quote

if TYPE_CHECKING:
    from tique_rewriter.errors import AnyError, UnsupportedSQL
    from tique_rewriter.text.source import Source, Word


TIME_ZONE = "timezone"


@dataclass(frozen=True)
class SessionPlan(Plan):
    """A statement about the application's session: it reads and writes no table."""


@dataclass(frozen=True)
class Nothing(SessionPlan):
    """A text without a statement: pools send it to see whether a connection is alive."""


class Scope(Enum):
    """How far SET reaches: said, or left to the setting."""

    UNSAID = ""
    SESSION = "SESSION"
    LOCAL = "LOCAL"
    GLOBAL = "GLOBAL"


@dataclass(frozen=True)
class SetSetting(SessionPlan):
    """SET and RESET of one setting, its name folded.

    ``values`` are the texts of a list, mostly of one; None for the default.
    """

    name: str
    values: tuple[str, ...] | None
    scope: Scope = Scope.UNSAID


@dataclass(frozen=True)
class ResetAll(SessionPlan):
    """RESET ALL."""


@dataclass(frozen=True)
class SetCharacteristics(SessionPlan):
    """The modes of all transactions to come; None where not said."""

    isolation: str | None
    read_only: bool | None


@dataclass(frozen=True)
class Discard(SessionPlan):
    """DISCARD ALL, PLANS, SEQUENCES or TEMP."""

    what: str


@dataclass(frozen=True)
class ShowSetting(SessionPlan):
    """SHOW of one setting; of all of them if it has no name."""

    name: str | None


_CHARACTERISTICS = "SESSION CHARACTERISTICS AS TRANSACTION"
_DISCARDED = ("ALL", "PLANS", "SEQUENCES", "TEMP", "TEMPORARY")

_PHRASES = {
    "TIME ZONE": TIME_ZONE,
    "SESSION AUTHORIZATION": "session_authorization",
    "TRANSACTION ISOLATION LEVEL": ISOLATION,
}
"""Settings with a name of several words."""

_BARE = frozenset({"ROLE", "SCHEMA", "NAMES"})
"""Settings whose value may follow the name without ``=`` or TO."""

_RESERVED = frozenset(
    (
        *("USER", "SESSION_USER", "NULL", "SELECT", "CASE", "CAST", "DEFAULT", "NOT"),
        *("LOCALTIME", "LOCALTIMESTAMP"),
        *(f"CURRENT_{what}" for what in ("DATE", "TIME", "TIMESTAMP", "USER", "ROLE")),
        *("CURRENT_CATALOG", "CURRENT_SCHEMA"),
    )
)
"""Words that are expressions, and no values of a setting."""

_SCOPES = frozenset({"SESSION", "LOCAL", "GLOBAL"})


def after_verb(source: Source) -> Cursor:
    """Return the cursor behind the first word.

    Raises
    ------
    SyntaxProblem
        If there is no other.
    """
    if len(source.words) == 1:
        raise source.syntax(f"{source.words[0].keyword} of nothing", source.start)
    return Cursor(source, number=1)


def plan_setting(source: Source) -> SessionPlan:
    """Return the plan of SET, RESET or SHOW of a setting.

    Raises
    ------
    SyntaxProblem
        Without a name or a value.
    UnsupportedSQL
        For a value that is not written out.
    """
    verb, cursor = source.words[0].keyword, after_verb(source)
    if verb == "SET":
        if cursor.accept(_CHARACTERISTICS):
            return SetCharacteristics(0, (), *read_modes(cursor))
        return plan_assignment(cursor)
    if cursor.accept("ALL"):
        finish(cursor)
        return ResetAll(0, ()) if verb == "RESET" else ShowSetting(0, (), None)
    name = _name(cursor)
    finish(cursor)
    if verb == "RESET":
        return SetSetting(0, (), name, None)
    return ShowSetting(0, (), name)


def plan_discard(source: Source) -> Discard:
    """Return the plan of DISCARD."""
    cursor = after_verb(source)
    what = cursor.accept(*_DISCARDED)
    if not what:
        raise _refused(source, cursor.word)
    finish(cursor)
    return Discard(0, (), "TEMP" if what == "TEMPORARY" else what)


def plan_assignment(cursor: Cursor) -> SetSetting:
    """Return the plan of the words after SET."""
    source, scope = cursor.source, Scope.UNSAID
    first, second = (*cursor.keywords, "")[:2]
    if first in _SCOPES and second not in ("AUTHORIZATION", "=", "TO"):
        scope = Scope(cursor.accept(first))
    bare = cursor.keyword
    name = _name(cursor)
    if not cursor.accept("=", "TO") and (
        name not in _PHRASES.values() and bare not in _BARE
    ):
        raise unread(source, source.syntax("= or TO is missing", cursor.start))
    words = cursor.rest
    if not words:
        raise source.syntax("a value is missing", source.words[-1].start)
    if cursor.accept("DEFAULT") or (name == TIME_ZONE and cursor.accept("LOCAL")):
        finish(cursor)
        return SetSetting(0, (), name, None, scope)
    return SetSetting(0, (), name, values_of(source, name, words), scope)


def plan_use(source: Source) -> SetSetting:
    """Return the plan of USE of a schema, a database, or both.

    Raises
    ------
    UnsupportedSQL
        For more than names and full stops.
    """
    cursor, parts = after_verb(source), list[str]()
    if cursor.left % 2 == 0 and source.words[-1].keyword == ".":
        raise source.syntax("a name is missing", source.words[-1].start)
    while not parts or cursor.accept("."):
        (name,) = values_of(source, "schema", [cursor.take()])
        special = {".", ",", '"'}.intersection(name)
        parts.append(quote(name) if special else name)
    finish(cursor)
    return SetSetting(0, (), "schema", (".".join(parts),))


def _name(cursor: Cursor) -> str:
    """Read a setting's name, and return it folded."""
    if phrase := cursor.accept(*_PHRASES):
        return _PHRASES[phrase]
    parts = [cursor.name("a setting's name is missing")]
    while cursor.left > 1 and cursor.accept("."):
        parts.append(cursor.name())
    return ".".join(parts).lower()


def values_of(source: Source, name: str, words: list[Word]) -> tuple[str, ...]:
    """Return the values that these words are, for the setting of that name."""
    if name == TIME_ZONE and words[0].keyword == "INTERVAL":
        return (_interval(source, words),)
    cursor = Cursor(source, words)
    values = [_value(cursor)]
    while cursor.left:
        if not cursor.follows(",") or cursor.left == 1:
            raise _refused(source, cursor.word)
        cursor.take()
        values.append(_value(cursor))
    return tuple(values)


def _value(cursor: Cursor) -> str:
    source, word, sign = cursor.source, cursor.take(), ""
    if word.keyword in ("+", "-") and cursor.left:
        sign, word = word.keyword.replace("+", ""), cursor.take()
    raw = source.raw(word)
    if word.start in source.lexed.starts:
        raise source.unsupported(
            "a placeholder in SET", word.start, "write the value into the statement"
        )
    if raw[0] == "'" and not sign:
        if "\\" in raw and source.rules.lexicon.escapes:
            raise _refused(source, word)
        return raw[1:-1].replace("''", "'")
    if raw[0].isdigit() or raw[0] == ".":
        return sign + raw
    is_name = word.keyword and raw.isidentifier() and word.keyword not in _RESERVED
    if not sign and (raw[0] == '"' or is_name):
        value = source.identifier(word)
        while cursor.left > 1 and cursor.accept("."):
            value += f".{cursor.name()}"
        return value
    raise _refused(source, word)


def _interval(source: Source, words: list[Word]) -> str:
    """Return the text of an INTERVAL, which a time zone may be."""
    if len(words) < 2 or source.text[words[1].start] != "'":
        raise _refused(source, words[0])
    if [word.keyword for word in words[2:]] not in ([], ["HOUR", "TO", "MINUTE"]):
        raise _refused(source, words[2])
    raw = source.text[words[1].start + 1 : words[1].end - 1]
    if not raw or set(raw) - set("+-:0123456789"):
        raise _refused(source, words[1])
    return f"INTERVAL '{raw}'"


def finish(cursor: Cursor) -> None:
    """Refuse words that are left."""
    if cursor.left:
        raise unread(cursor.source, cursor.unexpected())


def refused(source: Source, what: str, start: int, advice: str = "") -> UnsupportedSQL:
    """Return the refusal of a construct, with the whole statement."""
    return unread(source, source.unsupported(what, start, advice))


def unread(source: Source, error: AnyError) -> AnyError:
    """Return the error with the whole statement: the engine may understand it."""
    error.text = source.lexed.original.strip().rstrip("; \t\r\n")
    return error


def _refused(source: Source, word: Word) -> UnsupportedSQL:
    advice = "a setting takes words and literals"
    return refused(source, f'"{source.raw(word)}" here', word.start, advice)


@dataclass(frozen=True)
class SetConstraints(SessionPlan):
    """SET CONSTRAINTS; without ``names`` all of them.

    A name has its schema, which is empty if it was not given.
    """

    names: tuple[tuple[str, str], ...] | None
    is_deferred: bool


def plan_set_constraints(source: Source) -> SetConstraints:
    """Return the plan of SET CONSTRAINTS … DEFERRED or IMMEDIATE."""
    cursor = after_verb(source)
    cursor.accept("CONSTRAINTS")
    names = [] if cursor.accept("ALL") else cursor.names()
    mode = cursor.accept("DEFERRED", "IMMEDIATE")
    if not mode:
        raise source.syntax("DEFERRED or IMMEDIATE is missing", source.words[-1].start)
    finish(cursor)
    return SetConstraints(0, (), tuple(names) or None, mode == "DEFERRED")
