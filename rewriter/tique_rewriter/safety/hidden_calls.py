"""Functions of the application's own that a statement calls without naming them.

Operators, conversions, the CHECK of a domain, operator classes and types call functions, and
so does a function's name that the engine's own functions have, too. As with a call by name
(:mod:`tique_rewriter.safety.functions`) the body would read storage behind the driver's back, or
write. Only the engine knows which operator a statement's types lead to, so what counts is a
name in the text, which is enough to call the function:

* an operator's own symbol, whatever its operands. Comparisons stand for themselves: JOIN
  USING, IN and tique's own statements have them;
* a type's name, of all types that have a part of that type, those of tables' rows among
  them: no value of the type is in a statement that names neither the type nor a relation
  with it. Parts are found by the engine's own catalog. A value of a domain was checked
  when it was written: relations with one count only where they are not just read;
* the name of a function, before a bracket, that takes or returns such a type;
* nothing at all for a conversion between two types of the engine's own;
* in the DEFAULT of a column, where no rule of statements has looked at it, the name of any
  function that may not be called but an extension's.

A name counts if its schema stands before it, or if none does and the schema is on the search
path: so a role that may create objects elsewhere hinders no other role. OPERATOR(…) is no
name that statements may call. Strings and comments do not count. The rule refuses too much and
never too little; an ordinary database has nothing of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from tique_rewriter.plans.change_plans import (
    CopyIn,
    InsertQuery,
    InsertRows,
    Merge,
    Update,
)
from tique_rewriter.schema import Named
from tique_rewriter.text.placeholders import OWN_STYLE, number_placeholders

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from tique_rewriter.dialects import Rules
    from tique_rewriter.plans.plan import Plan
    from tique_rewriter.schema import Column, Definitions, HiddenCall
    from tique_rewriter.text.placeholders import Lexed
    from tique_rewriter.text.source import Source

_NAME = re.compile(r"[^\W\d][\w$]*")
_NEXT = re.compile(r"\S")
_DOT = re.compile(r"\s*\.\s*")
_COMPARISONS = frozenset(
    {
        *("=", "<>", "<", "<=", ">", ">="),
        # LIKE, ILIKE and SIMILAR TO.
        *("~~", "!~~", "~~*", "!~~*", "~", "!~"),
    }
)
"""Operators that keywords stand for."""

_BEFORE_RELATIONS = frozenset({"from", "join", "only", "table"})
_CHANGES = frozenset(
    {"insert", "update", "merge", "copy", "create", "alter", "prepare"}
)
_WITHOUT_CALLS = frozenset({"DROP", "COMMENT", "GRANT", "REVOKE"})
_UNCALLED = frozenset({"FUNCTION", "PROCEDURE", "AGGREGATE", "EXTENSION"})
_MENDED = frozenset({"DOMAIN", "TYPE"})


class HiddenCalls:
    """The names that call functions which may not be called.

    Parameters
    ----------
    calls
        All of them.
    schemas
        The search path; None for any.
    """

    def __init__(
        self, calls: Iterable[HiddenCall], schemas: Iterable[str] | None = None
    ) -> None:
        self._all = tuple(calls)
        self._in_statements = [c for c in self._all if c.named is not Named.DEFAULT]
        self._schemas = schemas and frozenset(schema.lower() for schema in schemas)

    def __bool__(self) -> bool:
        """Whether there is any, along whichever path."""
        return bool(self._all)

    def along(self, schemas: Iterable[str]) -> HiddenCalls:
        """Return the same for a search path."""
        return HiddenCalls(self._all, schemas) if self._all else self

    def along_also(self, schemas: Iterable[str]) -> HiddenCalls:
        """Return the same for the search path and these schemas."""
        return self if self._schemas is None else self.along({*self._schemas, *schemas})

    def in_statement(self, lexed: Lexed) -> tuple[HiddenCall, int] | None:
        """Return one of them that a statement has, and its place."""
        return self._first(self._in_statements, lexed) if self._in_statements else None

    def in_definition(self, text: str, rules: Rules) -> HiddenCall | None:
        """Return one that a function's body or a DEFAULT has, along any path.

        Raises
        ------
        RewriteError
            The text cannot be read.
        """
        if not self._all:
            return None
        lexed = number_placeholders(text, OWN_STYLE, False, lexicon=rules.lexicon)
        found = HiddenCalls(self._all)._first(self._all, lexed)
        return found and found[0]

    def _first(
        self, calls: Iterable[HiddenCall], lexed: Lexed
    ) -> tuple[HiddenCall, int] | None:
        words = _Words(lexed)
        for call in calls:
            schema = call.schema.lower()
            is_on_path = self._schemas is None or schema in self._schemas
            place = words.find(call, {schema, ""} if is_on_path else {schema})
            if place is not None:
                return call, place
        return None


NO_CALLS = HiddenCalls(())


class _Name(NamedTuple):
    """A name in a text, in small letters."""

    schema: str
    name: str
    start: int
    end: int
    after: str
    """The word before it and its schema, with nothing but blanks between."""
    following: str
    """The first character after it that is not blank."""


class _Words:
    """A text's names and symbols, without its strings and comments; all places stay."""

    def __init__(self, lexed: Lexed) -> None:
        text = list(lexed.text)
        names: list[tuple[int, int, str]] = []
        for start, end in (*lexed.quotes, *lexed.comments):
            raw = lexed.text[start:end]
            if raw.startswith('"'):
                names.append((start, end, raw[1:-1].replace('""', '"').lower()))
            text[start:end] = " " * (end - start)
        self._bare = "".join(text)
        names += [(*m.span(), m.group().lower()) for m in _NAME.finditer(self._bare)]
        self._names: list[_Name] = []
        self._only_reads = True
        for start, end, name in sorted(names):
            schema, after = "", ""
            if self._names:
                before = self._names[-1]
                between = self._bare[before.end : start]
                if _DOT.fullmatch(between):
                    schema, after = before.name, before.after
                elif not between.strip():
                    after = before.name
            following = _NEXT.search(self._bare, end)
            called = following.group() if following else ""
            self._names.append(_Name(schema, name, start, end, after, called))
            self._only_reads &= name not in _CHANGES

    def find(self, call: HiddenCall, schemas: Collection[str]) -> int | None:
        """The place of what calls it, in one of the schemas; None if it is not there."""
        if call.named is Named.ANYTHING:
            return 0
        if call.named is Named.OPERATOR:
            if "" not in schemas:
                return None
            place = 0 if call.name in _COMPARISONS else self._bare.find(call.name)
            return None if place < 0 else place
        wanted = call.name.lower()
        for name in self._names:
            if (
                name.name == wanted
                and name.schema in schemas
                and self._calls(name, call.named)
            ):
                return name.start
        return None

    def _calls(self, name: _Name, named: Named) -> bool:
        if named is Named.TYPE:
            return True
        if named is not Named.RELATION:
            return name.following == "("
        is_read = name.after in _BEFORE_RELATIONS or name.following == "."
        return not (self._only_reads and is_read)


def check_hidden(source: Source, definitions: Definitions) -> None:
    """Refuse a text that calls a function of the application's own without its name.

    Raises
    ------
    UnsupportedSQL
        It names what calls one that may not be called.
    """
    found = definitions.hidden_calls.in_statement(source.lexed)
    if found is not None:
        call, place = found
        raise source.unsupported(call.behind, place, _reason(call))


def check_statement(source: Source, definitions: Definitions) -> None:
    """The same for a statement, of which some call nothing.

    What drops or mends an object is among these.
    """
    if not definitions.hidden_calls:
        return
    words = source.keywords()
    if words[0] in _WITHOUT_CALLS or (
        words[0] == "ALTER" and not _MENDED.isdisjoint(words[1:2])
    ):
        return
    is_made = words[0] == "CREATE" and not _UNCALLED.isdisjoint(words[1:4])
    if not is_made:
        check_hidden(source, definitions)


def _reason(call: HiddenCall) -> str:
    return (
        f"it calls {call.function}, which might read or change what is in no snapshot; "
        f"{call.advice}"
    )


def check_defaults(source: Source, plan: Plan, definitions: Definitions) -> None:
    """Refuse a change that needs a DEFAULT which calls a function of the application's.

    Raises
    ------
    UnsupportedSQL
        The function may not be called.
    """
    if not definitions.hidden_calls:
        return
    for column in _defaults(source, plan):
        text = column.default or ""
        call = definitions.hidden_calls.in_definition(text, source.rules)
        if call is not None:
            what = f'the DEFAULT of the column "{column.name}"'
            place = source.words[0].start
            raise source.unsupported(what, place, f"{_reason(call)}, or give a value")


def _defaults(source: Source, plan: Plan) -> Iterator[Column]:
    """Yield the columns whose DEFAULT a change may need."""
    is_named = "DEFAULT" in source.keywords()
    if isinstance(plan, InsertRows | InsertQuery | CopyIn):
        given = () if is_named else plan.columns
    elif isinstance(plan, Merge) or (isinstance(plan, Update) and is_named):
        given = ()
    else:
        return
    for position, column in enumerate(plan.table.columns):
        if column.default is not None and position not in given:
            yield column
