"""CREATE, ALTER and DROP of enumerations and domains, and COMMENT ON.

The engine runs them as they stand. A change that would give stored values another meaning, or take
some back that were acknowledged, is refused: recent versions have them as they were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.kinds.define.definition import read_type
from tique_rewriter.plans.ddl_plans import DefineObjects
from tique_rewriter.safety.token_checks import check_calls
from tique_rewriter.text.cursor import Cursor
from tique_rewriter.text.names import check_not_attached, check_reserved, check_writable
from tique_rewriter.text.source import Source
from tique_rewriter.tree.scalars import split

if TYPE_CHECKING:
    from tique_rewriter.schema import Definitions
    from tique_rewriter.text.source import Word

_COMMENTED = frozenset(
    {"TABLE", "COLUMN", "VIEW", "SCHEMA", "SEQUENCE", "TYPE", "DOMAIN", "INDEX"}
)
_OF_CODE = frozenset({"EXTENSION", "FUNCTION", "PROCEDURE", "AGGREGATE"})
_OF_DOMAIN = frozenset({"DEFAULT", "CONSTRAINT", "NOT", "NULL", "CHECK"})


def plan_type(source: Source, catalog: Definitions) -> DefineObjects:
    """Return the plan of CREATE, ALTER or DROP of a TYPE or a DOMAIN.

    Raises
    ------
    UnsupportedSQL
        For any other type than an enumeration, and for a clause that is on no list.
    """
    cursor = Cursor.of_definition(source)
    verb, kind = cursor.take().keyword, cursor.take().keyword
    if verb != "ALTER":
        cursor.accept("IF EXISTS" if verb == "DROP" else "IF NOT EXISTS")
    names = cursor.names(catalog.default_schema, several=verb == "DROP")
    for schema, _ in names:
        check_writable(source, catalog, schema, source.start)
    if verb == "DROP":
        cursor.accept_last("RESTRICT")
        cursor.finish(f"in DROP {kind}")
    elif verb == "ALTER" and _is_renamed(source, cursor.rest):
        return DefineObjects(0, (), cursor.statement, changed_type=names[0][1])
    elif verb == "ALTER" and kind == "TYPE":
        _check_new_value(cursor)
    elif verb == "ALTER":
        _check_domain_change(source, cursor.rest)
    elif kind == "TYPE":
        _check_new_type(cursor)
    else:
        _check_domain(cursor)
    return DefineObjects(0, (), cursor.statement)


def plan_comment(source: Source, catalog: Definitions) -> DefineObjects:
    """Return the plan of COMMENT ON … IS 'text'.

    Raises
    ------
    UnsupportedSQL
        For an object of a kind that is on no list, or one of tique's.
    """
    cursor = Cursor.of_definition(source, 2)
    if source.rules.materializes and cursor.follows("MATERIALIZED VIEW"):
        cursor.take()
    kind = cursor.keyword
    is_known = kind in _COMMENTED or (kind in _OF_CODE and source.rules.extensions)
    if source.keywords(1)[:1] != ["ON"] or not is_known:
        raise source.unsupported(f"COMMENT ON {kind}".strip(), source.start)
    cursor.take()
    names = cursor.take_until({"IS"})
    if kind in _OF_CODE:
        # In brackets are the types of arguments.
        names = [word for word in names if not word.depth]
    for number, word in enumerate(names):
        if number % 2 == 0:
            check_reserved(source, source.identifier(word), source.start)
        elif word.keyword != ".":
            raise source.syntax(". or IS is expected", word.start)
    if len(names) > 2:
        outer = source.identifier(names[0])
        check_not_attached(source, catalog, outer, names[0].start)
    cursor.accept("IS")
    is_text = cursor.left == 1 and _is_text(source, cursor.word, or_null=True)
    if len(names) % 2 == 0 or not is_text:
        raise source.unsupported("this form of COMMENT", source.start)
    return DefineObjects(0, (), cursor.statement)


def _is_text(source: Source, word: Word, *, or_null: bool = False) -> bool:
    raw = source.raw(word)
    return (or_null and word.keyword == "NULL") or (
        not word.keyword and raw.endswith("'")
    )


def _is_renamed(source: Source, words: list[Word]) -> bool:
    """Whether the words give the type, or a value of it, a new name."""
    match [word.keyword for word in words]:
        case ["RENAME", "TO", _]:
            source.identifier(words[2])
            return True
        case ["RENAME", "VALUE", _, "TO", _] if source.keywords(1)[0] == "TYPE":
            return _is_text(source, words[2]) and _is_text(source, words[4])
    return False


def _check_new_value(cursor: Cursor) -> None:
    source, is_new = cursor.source, cursor.accept("ADD VALUE")
    cursor.accept("IF NOT EXISTS")
    match cursor.rest:
        case [value] if is_new and _is_text(source, value):
            return
        case [value, place, other] if is_new and place.keyword in ("BEFORE", "AFTER"):
            if _is_text(source, value) and _is_text(source, other):
                return
    raise source.unsupported(
        "ALTER TYPE of anything but ADD VALUE and RENAME", source.start
    )


def _check_new_type(cursor: Cursor) -> None:
    source, kinds = cursor.source, cursor.source.rules.definable_types
    has_as = cursor.accept("AS")
    if has_as and cursor.left and not cursor.follows("ENUM") and "ALIAS" in kinds:
        _check_alias(source, cursor.rest)
    elif has_as and cursor.follows("(") and "COMPOSITE" in kinds:
        _check_composite(cursor)
    elif has_as and "COMPOSITE" in kinds and cursor.accept("RANGE"):
        _check_range(cursor)
    elif has_as and cursor.accept("ENUM") and cursor.follows("("):
        _check_enumeration(cursor)
    else:
        raise source.unsupported("CREATE TYPE of this kind", source.start)


def _check_domain_change(source: Source, words: list[Word]) -> None:
    """Refuse what values that are there might violate: recent versions are not asked."""
    match [word.keyword for word in words]:
        case ["SET", "DEFAULT", _, *_]:
            check_calls(source, words[2:])
        case ["DROP", "DEFAULT"] | ["DROP", "NOT", "NULL"]:
            pass
        case ["DROP", "CONSTRAINT", *rest] if len(rest) == 1 + 2 * (
            rest[:2] == ["IF", "EXISTS"]
        ):
            source.identifier(words[-1])
        case ["RENAME", "CONSTRAINT", _, "TO", _]:
            source.identifier(words[2])
            source.identifier(words[4])
        case _:
            raise source.unsupported(
                "this form of ALTER DOMAIN",
                source.start,
                "recent versions of rows may violate it",
            )


def _check_enumeration(cursor: Cursor) -> None:
    source = cursor.source
    if cursor.keywords[-1] != ")":
        raise source.unsupported("CREATE TYPE of this kind", source.start)
    for piece in split(cursor.rest[1:-1]):
        if len(piece) != 1 or not _is_text(source, piece[0]):
            raise source.unsupported("a value of ENUM that is no text", cursor.start)


def _check_composite(cursor: Cursor) -> None:
    """Account for every word of a list of attributes in brackets."""
    source, start = cursor.source, cursor.start
    attributes = cursor.brackets() or []
    if cursor.left:
        raise source.unsupported("CREATE TYPE of this kind", source.start)
    for piece in split(attributes):
        if len(piece) < 2:
            raise source.syntax("an attribute and its type are expected", start)
        source.identifier(piece[0])
        if any(word.keyword == "COLLATE" for word in piece):
            raise source.unsupported("COLLATE", piece[0].start)
        read_type(source, piece[1:])


def _check_range(cursor: Cursor) -> None:
    """Refuse a range with functions of the application's own."""
    source = cursor.source
    given = Cursor(source, cursor.brackets() or [])
    is_subtype = given.accept("SUBTYPE =") and given.left and "," not in given.keywords
    if cursor.left or not is_subtype:
        raise source.unsupported(
            "this form of CREATE TYPE … AS RANGE", source.start, "it takes SUBTYPE"
        )
    read_type(source, given.rest)


def _check_alias(source: Source, words: list[Word]) -> None:
    """Refuse what the parser does not read as one type: the words of a column's."""
    text = f"SELECT CAST(NULL AS {source.words_text(words)})"
    tree = Source.of_text(text, source.rules).parse()
    parts = tree.args.get("expressions") or [tree]
    is_type = isinstance(parts[0], exp.Cast) and parts[0].find(exp.Query) is None
    if len(parts) > 1 or not is_type or tree.args.get("from_"):
        raise source.unsupported("this type", words[0].start)


def _check_domain(cursor: Cursor) -> None:
    """Account for every word of a domain's definition."""
    source = cursor.source
    cursor.accept("AS")
    words = cursor.rest
    check_calls(source, words)
    level = words[0].depth if words else 0
    type_words = cursor.take_until(_OF_DOMAIN, level)
    if not type_words:
        raise source.syntax("a type is expected", source.words[-1].start)
    read_type(source, type_words)
    if any(word.keyword == "COLLATE" for word in words):
        raise source.unsupported("COLLATE", source.find("COLLATE"))
    while cursor.left:
        if cursor.follows("CHECK ("):
            cursor.take()
            cursor.brackets()
        elif cursor.left > 2 and cursor.accept("CONSTRAINT"):
            cursor.take()
        elif cursor.left > 1 and cursor.accept("DEFAULT"):
            cursor.take()
            cursor.take_until(_OF_DOMAIN, level)
        elif not cursor.accept("NOT NULL", "NULL"):
            raise cursor.unexpected("in CREATE DOMAIN")
