"""CREATE, ALTER and DROP of enumerations and domains, and COMMENT ON.

The engine runs them as they stand. What would give stored values another meaning, or take
some back that were acknowledged, is refused: recent versions have them as they were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.kinds.define.definition import read_type
from tique_rewriter.plans.ddl_plans import DefineObjects
from tique_rewriter.safety.token_checks import check_calls
from tique_rewriter.text.cursor import Cursor, refuse_placeholders
from tique_rewriter.text.names import check_not_attached, check_reserved, check_writable
from tique_rewriter.text.placeholders import number_placeholders
from tique_rewriter.text.source import Source
from tique_rewriter.tree.scalars import split

if TYPE_CHECKING:
    from tique_rewriter.schema import Definitions
    from tique_rewriter.text.source import Word

_COMMENTED = frozenset(
    {"TABLE", "COLUMN", "VIEW", "SCHEMA", "SEQUENCE", "TYPE", "DOMAIN", "INDEX"}
)
_OF_DOMAIN = frozenset({"DEFAULT", "CONSTRAINT", "NOT", "NULL", "CHECK"})


def plan_type(source: Source, catalog: Definitions) -> DefineObjects:
    """Return the plan of CREATE, ALTER or DROP of a TYPE or a DOMAIN.

    Raises
    ------
    UnsupportedSQL
        For any other type than an enumeration, and for a clause that is on no list.
    """
    words = source.words
    verb, kind = source.keywords()[:2]
    cursor = Cursor.of_definition(source, 2)
    if verb != "ALTER":
        cursor.accept("IF EXISTS" if verb == "DROP" else "IF NOT EXISTS")
    names = cursor.names(catalog.default_schema, several=verb == "DROP")
    for schema, _ in names:
        check_writable(source, catalog, schema, words[0].start)
    if verb == "DROP":
        cursor.accept_last("RESTRICT")
        cursor.finish(f"in DROP {kind}")
    elif verb == "ALTER" and _is_renamed(source, cursor.rest):
        return DefineObjects(0, (), cursor.statement, changed_type=names[0][1])
    elif kind == "TYPE":
        _check_enumeration(source, verb, cursor.rest)
    elif verb == "CREATE":
        _check_domain(cursor)
    else:
        _check_domain_change(source, cursor.rest)
    return DefineObjects(0, (), cursor.statement)


def plan_comment(source: Source, catalog: Definitions) -> DefineObjects:
    """Return the plan of COMMENT ON … IS 'text'.

    Raises
    ------
    UnsupportedSQL
        For an object of a kind that is on no list, or one of tique's.
    """
    refuse_placeholders(source, "DDL")
    words, keywords = source.words, source.keywords()
    kind = keywords[2] if len(words) > 2 else ""
    first = 3
    if source.rules.materializes and keywords[2:4] == ["MATERIALIZED", "VIEW"]:
        kind, first = "VIEW", 4
    if keywords[1:2] != ["ON"] or kind not in _COMMENTED:
        raise source.unsupported(f"COMMENT ON {kind}".strip(), words[0].start)
    number = first
    while number < len(words) and keywords[number] != "IS":
        is_name = (number - first) % 2 == 0
        if is_name:
            check_reserved(source, source.identifier(words[number]), words[0].start)
        elif keywords[number] != ".":
            raise source.syntax(". or IS is expected", words[number].start)
        number += 1
    if number > first + 2:
        outer = source.identifier(words[first])
        check_not_attached(source, catalog, outer, words[first].start)
    text = words[number + 1 :]
    if (
        (number - first) % 2 == 0
        or len(text) != 1
        or not _is_text(source, text[0], or_null=True)
    ):
        raise source.unsupported("this form of COMMENT", words[0].start)
    return DefineObjects(0, (), source.words_text(words))


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


def _check_enumeration(source: Source, verb: str, words: list[Word]) -> None:
    keywords = [word.keyword for word in words]
    if verb == "ALTER":
        rest = words[2:]
        if [w.keyword for w in rest[:3]] == ["IF", "NOT", "EXISTS"]:
            rest = rest[3:]
        is_known = keywords[:2] == ["ADD", "VALUE"] and (
            len(rest) == 1
            or (len(rest) == 3 and rest[1].keyword in ("BEFORE", "AFTER"))
        )
        if is_known and all(_is_text(source, word) for word in rest[::2]):
            return
        raise source.unsupported(
            "ALTER TYPE of anything but ADD VALUE and RENAME", source.words[0].start
        )
    is_alias = keywords[:1] == ["AS"] and keywords[1:2] not in ([], ["ENUM"])
    if is_alias and "ALIAS" in source.rules.definable_types:
        _check_alias(source, words[1:])
        return
    if keywords[:2] == ["AS", "("] and "COMPOSITE" in source.rules.definable_types:
        _check_composite(source, words[1:])
        return
    is_range = keywords[:2] == ["AS", "RANGE"]
    if is_range and "COMPOSITE" in source.rules.definable_types:
        _check_range(source, words[2:])
        return
    if keywords[:3] != ["AS", "ENUM", "("] or keywords[-1] != ")":
        raise source.unsupported("CREATE TYPE of this kind", source.words[0].start)
    for piece in split(words[3:-1]):
        if len(piece) != 1 or not _is_text(source, piece[0]):
            raise source.unsupported("a value of ENUM that is no text", words[2].start)


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
                source.words[0].start,
                "recent versions of rows may violate it",
            )


def _check_composite(source: Source, words: list[Word]) -> None:
    """Account for every word of a list of attributes in brackets."""
    if source.closing(words) != len(words) - 1:
        raise source.unsupported("CREATE TYPE of this kind", source.words[0].start)
    for piece in split(words[1:-1]):
        if len(piece) < 2:
            raise source.syntax(
                "an attribute and its type are expected", words[0].start
            )
        source.identifier(piece[0])
        if any(word.keyword == "COLLATE" for word in piece):
            raise source.unsupported("COLLATE", piece[0].start)
        read_type(source, piece[1:])


def _check_range(source: Source, words: list[Word]) -> None:
    """Refuse a range with functions of the application's own."""
    keywords = [word.keyword for word in words]
    is_whole = keywords[:1] == ["("] and source.closing(words) == len(words) - 1
    is_one = len(words) > 4 and "," not in keywords
    if not is_whole or keywords[1:3] != ["SUBTYPE", "="] or not is_one:
        raise source.unsupported(
            "this form of CREATE TYPE … AS RANGE",
            source.words[0].start,
            "it takes SUBTYPE",
        )
    read_type(source, words[3:-1])


def _check_alias(source: Source, words: list[Word]) -> None:
    """Refuse what the parser does not read as one type: the words of a column's."""
    text = f"SELECT CAST(NULL AS {source.words_text(words)})"
    lexed = number_placeholders(text, "pyformat", False, lexicon=source.rules.lexicon)
    tree = Source(lexed, source.rules).parse()
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
