"""CREATE, ALTER and DROP of schemas and sequences.

The engine runs them as they stand. Every word of them is accounted for here: an option
that is on no list, and a name in tique's schema, are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.attaching import check_not_attached
from tique_rewriter.ddl_plans import DefineObjects, RenameSchema
from tique_rewriter.definition import qualified_name
from tique_rewriter.identity import are_options
from tique_rewriter.names import check_reserved

if TYPE_CHECKING:
    from tique_rewriter.plan import Plan
    from tique_rewriter.schema import Definitions
    from tique_rewriter.source import Source

_OWNED = ("OWNED", "BY")

OBJECTS = frozenset({"SCHEMA", "SEQUENCE"})
"""The kinds of objects that :func:`plan_object` reads."""


def plan_object(source: Source, catalog: Definitions) -> Plan:
    """Return the plan of CREATE, ALTER or DROP of a schema or a sequence.

    Raises
    ------
    UnsupportedSQL
        For a clause that is not on the list, or a reserved name.
    """
    if source.lexed.arguments:
        raise source.syntax(
            "a placeholder in DDL", source.lexed.starts[0], "write a literal"
        )
    verb, number = source.words[0].keyword, 1
    if source.keywords(number)[:2] == ["OR", "REPLACE"]:
        number += 2
    kind = source.words[number].keyword
    if number == 3 and (kind != "SEQUENCE" or verb != "CREATE"):
        raise source.unsupported(f"{verb} OR REPLACE {kind}", source.words[0].start)
    number += 1
    if source.keywords(number)[:3] == ["IF", "NOT", "EXISTS"] and verb == "CREATE":
        number += 3
    elif source.keywords(number)[:2] == ["IF", "EXISTS"] and verb != "CREATE":
        number += 2
    if kind == "SCHEMA":
        return _schema(source, catalog, verb, number)
    return _sequence(source, catalog, verb, number)


def _schema(source: Source, catalog: Definitions, verb: str, number: int) -> Plan:
    if verb == "ALTER":
        return _rename_schema(source)
    names, number = object_names(source, number, "", several=verb == "DROP")
    for _, name in names:
        check_reserved(source, name, source.words[0].start)
        check_not_attached(source, catalog, name, source.words[0].start)
    cascades = verb == "DROP" and source.keywords(number) == ["CASCADE"]
    if verb == "DROP" and source.keywords(number) in (["CASCADE"], ["RESTRICT"]):
        number += 1
    expect_end(source, number, f"{verb} SCHEMA")
    dropped = tuple([name for _, name in names]) if cascades else ()
    return DefineObjects(0, (), source.words_text(source.words), dropped)


def _rename_schema(source: Source) -> RenameSchema:
    words, rules = source.words, source.rules
    match source.keywords(2):
        case [_, "RENAME", "TO", _] if rules.renames_schemas:
            before, after = source.identifier(words[2]), source.identifier(words[5])
        case _:
            raise source.unsupported("ALTER SCHEMA", words[0].start)
    for name in (before, after):
        check_reserved(source, name, words[0].start)
    return RenameSchema(0, (), source.words_text(words), (before, after))


def _sequence(
    source: Source, catalog: Definitions, verb: str, number: int
) -> DefineObjects:
    default = catalog.default_schema
    names, number = object_names(source, number, default, several=verb == "DROP")
    for schema, _ in names:
        check_reserved(source, schema, source.words[0].start)
        check_not_attached(source, catalog, schema, source.words[0].start)
    if verb == "ALTER" and source.keywords(number)[:2] == ["RENAME", "TO"]:
        if source.rules.sequences_only_restart:
            raise source.unsupported("RENAME of a sequence", source.words[number].start)
        expect_new_name(source, number + 2)
    elif verb == "DROP":
        if source.keywords(number) == ["RESTRICT"]:
            number += 1
        expect_end(source, number, "DROP SEQUENCE")
    else:
        _check_options(source, number, verb)
    return DefineObjects(0, (), source.words_text(source.words))


def object_names(
    source: Source, number: int, default: str, *, several: bool
) -> tuple[list[tuple[str, str]], int]:
    """Return one name or several, with schemas, and the number of the word behind.

    An empty ``default`` says that none may be written.
    """
    names = []
    while True:
        schema, name, number = qualified_name(source, number, default)
        names.append((schema, name))
        if not several or source.keywords(number)[:1] != [","]:
            break
        number += 1
    if default == "" and any(schema for schema, _ in names):
        raise source.unsupported(
            "a name with a database in it", source.words[number - 1].start
        )
    return names, number


def _check_options(source: Source, number: int, verb: str) -> None:
    words = source.words[number:]
    keywords = [word.keyword for word in words]
    if tuple(keywords[-5:-3]) == _OWNED or tuple(keywords[-7:-5]) == _OWNED:
        start = len(words) - (3 if tuple(keywords[-5:-3]) == _OWNED else 5)
        owner = source.identifier(words[start])
        check_reserved(source, owner, source.words[0].start)
        words = words[: start - 2]
    elif keywords[-3:] == [*_OWNED, "NONE"]:
        words = words[:-3]
    changes = {word.keyword for word in words} - {"RESTART", "WITH", "-", "+"}
    only_restarts = source.rules.sequences_only_restart and verb == "ALTER"
    if only_restarts and any(not word.isdigit() for word in changes):
        raise source.unsupported(
            "ALTER SEQUENCE of anything but RESTART",
            source.words[0].start,
            f"{source.rules.engine} crashes",
        )
    if not are_options(words):
        raise source.unsupported(
            f"an option of {verb} SEQUENCE",
            words[0].start if words else source.words[0].start,
        )


def plan_alter_index(source: Source, catalog: Definitions) -> DefineObjects:
    """Return the plan of ALTER INDEX … RENAME TO.

    Raises
    ------
    UnsupportedSQL
        For any other change, or an index of tique's.
    """
    number = 4 if source.keywords(2)[:2] == ["IF", "EXISTS"] else 2
    names, number = object_names(source, number, catalog.default_schema, several=False)
    check_reserved(source, names[0][0], source.words[0].start)
    if source.keywords(number)[:2] != ["RENAME", "TO"]:
        raise source.unsupported(
            "ALTER INDEX of anything but its name", source.words[0].start
        )
    expect_new_name(source, number + 2)
    return DefineObjects(0, (), source.words_text(source.words))


def expect_new_name(source: Source, number: int) -> None:
    """Expect one word, a name, and no other."""
    if number >= len(source.words):
        raise source.syntax("a name is missing", source.words[-1].start)
    source.identifier(source.words[number])
    expect_end(source, number + 1, "RENAME")


def expect_end(source: Source, number: int, statement: str) -> None:
    """Refuse words that are left over."""
    if number < len(source.words):
        word = source.words[number]
        shown = source.text[word.start : word.end]
        raise source.unsupported(f'"{shown}" in {statement}', word.start)
