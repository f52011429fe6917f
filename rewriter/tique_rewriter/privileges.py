"""GRANT and REVOKE, which the engine runs as they stand.

A role's privileges on a table are those on its versions, so nothing else has to be done.
Every word is accounted for: the objects are of kinds on a list, and none is tique's but
the schema itself, which any role may be given the use of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.ddl_plans import Grant
from tique_rewriter.definition import qualified_name
from tique_rewriter.names import PRIVATE_SCHEMA, check_reserved
from tique_rewriter.scalars import split

if TYPE_CHECKING:
    from tique_rewriter.source import Source, Word

_PRIVILEGES = frozenset(
    (
        *("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"),
        *("USAGE", "CREATE", "CONNECT", "TEMPORARY", "TEMP", "EXECUTE", "MAINTAIN"),
        *("ALL", "ALL PRIVILEGES"),
    )
)
_KINDS = frozenset({"TABLE", "SEQUENCE", "SCHEMA", "DATABASE", "TYPE", "DOMAIN"})
_CALLED = frozenset({"FUNCTION", "PROCEDURE", "ROUTINE"})
_SETS = frozenset({"TABLES", "SEQUENCES", "FUNCTIONS", "PROCEDURES", "ROUTINES"})
_TAILS = (
    *((), ("CASCADE",), ("RESTRICT",), ("WITH", "GRANT", "OPTION")),
    *(("WITH", "ADMIN", "OPTION"),),
)


def plan_grant(source: Source) -> Grant:
    """Return the plan of GRANT or REVOKE of privileges on objects.

    Raises
    ------
    UnsupportedSQL
        For an object of a kind that is on no list, or one of tique's.
    """
    words = source.words
    if source.lexed.arguments:
        raise source.syntax(
            "a placeholder in DDL", source.lexed.starts[0], "write a literal"
        )
    verb = words[0].keyword
    begin = 1
    if verb == "REVOKE" and source.keywords(1)[:3] == ["GRANT", "OPTION", "FOR"]:
        begin = 4
    on = _first(words, begin, "ON")
    if on == len(words):
        raise source.unsupported(
            f"{verb} of a role",
            words[0].start,
            "roles are the server's; use its own client",
        )
    privileges = [_privilege(source, piece) for piece in split(words[begin:on])]
    to = _first(words, on, "TO" if verb == "GRANT" else "FROM")
    if not privileges or to >= len(words) - 1 or to == on + 1:
        raise source.syntax("a role is expected", words[-1].start)
    _check_objects(source, words[on + 1 : to], uses_only=privileges == ["USAGE"])
    _check_roles(source, words[to + 1 :])
    return Grant(0, (), source.words_text(words))


def plan_default_privileges(source: Source) -> Grant:
    """Return the plan of ALTER DEFAULT PRIVILEGES, which are of objects to come.

    tique's own get none of them.

    Raises
    ------
    UnsupportedSQL
        For objects of a kind that is on no list, or in tique's schema.
    """
    words, number = source.words, 3
    if source.lexed.arguments:
        raise source.syntax(
            "a placeholder in DDL", source.lexed.starts[0], "write a literal"
        )
    if source.keywords(number)[:2] in (["FOR", "ROLE"], ["FOR", "USER"]):
        number = _after_names(source, number + 2)
    if source.keywords(number)[:2] == ["IN", "SCHEMA"]:
        number = _after_names(source, number + 2)
    verb = source.keywords(number)[:1]
    if verb not in (["GRANT"], ["REVOKE"]):
        raise source.syntax("GRANT or REVOKE is expected", words[-1].start)
    begin = number + 1
    if source.keywords(begin)[:3] == ["GRANT", "OPTION", "FOR"]:
        begin += 3
    on = _first(words, begin, "ON")
    for piece in split(words[begin:on]):
        _privilege(source, piece)
    to = _first(words, on, "TO" if verb == ["GRANT"] else "FROM")
    kind = [word.keyword for word in words[on + 1 : to]]
    if len(kind) != 1 or kind[0] not in _SETS | {"TYPES", "SCHEMAS"}:
        raise source.unsupported(
            "this form of ALTER DEFAULT PRIVILEGES", words[0].start
        )
    if to >= len(words) - 1 or on == begin:
        raise source.syntax("a role is expected", words[-1].start)
    _check_roles(source, words[to + 1 :])
    return Grant(0, (), source.words_text(words))


def _after_names(source: Source, number: int) -> int:
    """The number of the word behind a list of names, none of them tique's."""
    while True:
        if number >= len(source.words):
            raise source.syntax("a name is missing", source.words[-1].start)
        word = source.words[number]
        check_reserved(source, source.identifier(word), word.start)
        if source.keywords(number + 1)[:1] != [","]:
            return number + 1
        number += 2


def _first(words: list[Word], start: int, keyword: str) -> int:
    """The number of the first such word outside brackets, or how many there are."""
    for number in range(start, len(words)):
        if words[number].keyword == keyword and not words[number].depth:
            return number
    return len(words)


def _privilege(source: Source, piece: list[Word]) -> str:
    """The name of a privilege, which a list of columns may follow."""
    names = [word for word in piece if not word.depth]
    name = " ".join(word.keyword for word in names)
    listed = piece[len(names) :]
    if name not in _PRIVILEGES or (
        listed and source.closing(listed) != len(listed) - 1
    ):
        shown = source.words_text(piece) if piece else ","
        raise source.unsupported(
            f"{source.words[0].keyword} {shown}", source.words[0].start
        )
    return name


def _check_objects(source: Source, words: list[Word], *, uses_only: bool) -> None:
    keywords = [word.keyword for word in words]
    number = source.number(words[0].start)
    end = number + len(words)
    kind = keywords[0]
    if kind == "ALL" and keywords[2:4] == ["IN", "SCHEMA"] and keywords[1] in _SETS:
        kind, number = "SCHEMA", number + 4
        uses_only = False
    elif kind in _KINDS | _CALLED and number + 1 < end and keywords[1] not in ",.":
        number += 1
    elif len(keywords) > 1 and keywords[1] not in (",", "."):
        raise source.unsupported(
            f"{source.words[0].keyword} ON {kind}", source.words[0].start
        )
    else:
        kind = "TABLE"
    while True:
        place = source.words[number].start
        schema, name, number = qualified_name(source, number, "")
        if kind == "SCHEMA":
            schema = name
        if not (uses_only and kind == "SCHEMA" and name == PRIVATE_SCHEMA):
            check_reserved(source, schema, place)
        if kind in _CALLED and number < end and source.words[number].keyword == "(":
            number += 1 + source.closing(source.words[number:])
        if number >= end:
            return
        if source.words[number].keyword != ",":
            shown = source.words[number]
            raise source.syntax(", or the end of the list is expected", shown.start)
        number += 1


def _check_roles(source: Source, words: list[Word]) -> None:
    number = 0
    while True:
        if words[number].keyword == "GROUP":
            number += 1
        if number >= len(words):
            raise source.syntax("a role is expected", words[-1].start)
        source.identifier(words[number])
        number += 1
        if number >= len(words) or words[number].keyword != ",":
            break
        number += 1
        if number >= len(words):
            raise source.syntax("a role is expected", words[-1].start)
    rest = [word.keyword for word in words[number:]]
    if rest[:2] == ["GRANTED", "BY"] and len(rest) > 2:
        rest = rest[3:]
    elif rest[-3:-1] == ["GRANTED", "BY"]:
        rest = rest[:-3]
    if tuple(rest) not in _TAILS:
        raise source.unsupported(
            f'"{source.words_text(words[number:])}" in {source.words[0].keyword}',
            words[number].start,
        )
