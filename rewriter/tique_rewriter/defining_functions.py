"""CREATE and DROP of functions, procedures and aggregates, and of extensions.

The engine runs them as they stand. To create a function does nothing but to make its
name: a statement calls it only if :mod:`tique_rewriter.functions` knows that it may. So
the one thing to be refused is a name that statements may call anyway, for which the engine
might then take the new function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.ddl_plans import DefineObjects
from tique_rewriter.definition import qualified_name
from tique_rewriter.names import check_reserved
from tique_rewriter.objects import expect_end

if TYPE_CHECKING:
    from tique_rewriter.schema import Definitions
    from tique_rewriter.source import Source, Word

FUNCTIONS = frozenset({"FUNCTION", "PROCEDURE", "AGGREGATE"})
"""The kinds of objects that :func:`plan_function` reads."""


def plan_function(source: Source, catalog: Definitions) -> DefineObjects:
    """Return the plan of CREATE [OR REPLACE] or DROP of a function, a procedure or an aggregate.

    Raises
    ------
    UnsupportedSQL
        For a name of the engine's own functions, or in a reserved schema.
    """
    words = source.words
    _expect_no_values(source)
    verb, number = words[0].keyword, 1
    if source.keywords(1)[:2] == ["OR", "REPLACE"]:
        number = 3
    kind = words[number].keyword
    number += 1
    if verb == "ALTER":
        raise source.unsupported(
            f"ALTER {kind}",
            words[0].start,
            "write CREATE OR REPLACE, or DROP and CREATE",
        )
    if verb == "CREATE":
        place = words[min(number, len(words) - 1)]
        schema, name, number = qualified_name(source, number, catalog.default_schema)
        check_reserved(source, schema, place.start)
        known = source.rules.before_brackets
        if schema.lower().startswith("pg_") or (known and known.fullmatch(name)):
            raise source.unsupported(
                f'the name "{name}" of a function',
                place.start,
                f"{source.rules.engine} has one of that name, which statements call",
            )
        if source.keywords(number)[:1] != ["("]:
            raise source.syntax("( is expected", place.start)
        return DefineObjects(0, (), source.words_text(words))
    if source.keywords(number)[:2] == ["IF", "EXISTS"]:
        number += 2
    while True:
        place = words[min(number, len(words) - 1)]
        schema, _, number = qualified_name(source, number, catalog.default_schema)
        check_reserved(source, schema, place.start)
        if source.keywords(number)[:1] == ["("]:
            number += 1 + source.closing(words[number:])
        if source.keywords(number)[:1] != [","]:
            break
        number += 1
    if source.keywords(number) == ["RESTRICT"]:
        number += 1
    expect_end(source, number, f"DROP {kind}")
    return DefineObjects(0, (), source.words_text(words))


def plan_extension(source: Source) -> DefineObjects:
    """Return the plan of CREATE or DROP EXTENSION.

    Raises
    ------
    UnsupportedSQL
        For one that is on no list, and for CASCADE of DROP.
    """
    words = source.words
    _expect_no_values(source)
    verb, number = words[0].keyword, 2
    if verb == "CREATE" and source.keywords(2)[:3] == ["IF", "NOT", "EXISTS"]:
        number = 5
    elif verb == "DROP" and source.keywords(2)[:2] == ["IF", "EXISTS"]:
        number = 4
    if verb == "ALTER" or number >= len(words):
        raise source.unsupported(f"{verb} EXTENSION", words[0].start)
    name = source.identifier(words[number])
    if name not in source.rules.extensions:
        raise source.unsupported(
            f"the extension {name}",
            words[number].start,
            "its code may read and write tables outside of the snapshot",
        )
    _check_options(source, words[number + 1 :])
    return DefineObjects(0, (), source.words_text(words))


def _check_options(source: Source, rest: list[Word]) -> None:
    verb = source.words[0].keyword
    if verb == "CREATE" and rest and rest[0].keyword == "WITH":
        rest = rest[1:]
    while rest:
        keyword = rest[0].keyword
        if verb == "CREATE" and keyword in ("SCHEMA", "VERSION") and len(rest) > 1:
            if keyword == "SCHEMA":
                check_reserved(source, source.identifier(rest[1]), rest[1].start)
            rest = rest[2:]
        elif keyword == ("CASCADE" if verb == "CREATE" else "RESTRICT"):
            rest = rest[1:]
        else:
            shown = source.text[rest[0].start : rest[0].end]
            raise source.unsupported(f'"{shown}" in {verb} EXTENSION', rest[0].start)


def _expect_no_values(source: Source) -> None:
    if source.lexed.arguments:
        raise source.syntax(
            "a placeholder in DDL", source.lexed.starts[0], "write a literal"
        )
