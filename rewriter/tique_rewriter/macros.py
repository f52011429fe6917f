"""CREATE and DROP MACRO, where the engine's functions of the application's own are macros.

A macro is created if it is one expression over its parameters that reads nothing. Which
functions it calls, and whether its name is free, only the engine can tell, so the plan has
its parts. Whatever is created, a statement calls it only if
:mod:`tique_rewriter.functions` knows that it may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.attaching import check_not_attached
from tique_rewriter.ddl_plans import DefineMacro, DefineObjects
from tique_rewriter.definition import qualified_name
from tique_rewriter.functions import reads_nothing
from tique_rewriter.names import check_reserved
from tique_rewriter.objects import expect_end

if TYPE_CHECKING:
    from tique_rewriter.schema import Definitions
    from tique_rewriter.source import Source

MACROS = frozenset({"MACRO", "FUNCTION"})
"""The kinds of objects that :func:`plan_macro` reads: two words for one thing."""


def plan_macro(source: Source, catalog: Definitions) -> DefineObjects:
    """Return the plan of CREATE [OR REPLACE] MACRO or DROP MACRO.

    Raises
    ------
    UnsupportedSQL
        For a macro that is a table, has several definitions or more in it than an
        expression over its parameters; for a name that statements call or a reserved one.
    """
    words = source.words
    if source.lexed.arguments:
        raise source.syntax(
            "a placeholder in DDL", source.lexed.starts[0], "write a literal"
        )
    if words[0].keyword == "DROP":
        return _drop(source, catalog)
    if words[0].keyword != "CREATE":
        raise source.unsupported(
            f"{words[0].keyword} {words[1].keyword}", words[0].start
        )
    number = 4 if source.keywords(1)[:2] == ["OR", "REPLACE"] else 2
    if source.keywords(number)[:3] == ["IF", "NOT", "EXISTS"]:
        number += 3
    place = words[min(number, len(words) - 1)].start
    schema, name, number = qualified_name(source, number, catalog.default_schema)
    check_reserved(source, schema, place)
    check_not_attached(source, catalog, schema, place)
    rules = source.rules
    if not name.isidentifier() or rules.table_functions.fullmatch(name.lower()):
        raise source.unsupported(
            f'the name "{name}" of a macro',
            place,
            f"{rules.engine} may have a function or an operator of that name",
        )
    if source.keywords(number)[:1] != ["("]:
        raise source.syntax("( is expected", place)
    end = number + source.closing(words[number:])
    body = words[end + 2 :]
    if source.keywords(end + 1)[:1] != ["AS"] or not body:
        raise source.syntax("AS and an expression are expected", place)
    if body[0].keyword == "TABLE":
        raise source.unsupported(
            "CREATE MACRO … AS TABLE", words[0].start, "create a view"
        )
    if any(word.keyword == "," and not word.depth for word in body):
        raise source.unsupported(
            "CREATE MACRO with several definitions",
            words[0].start,
            "give each a name of its own",
        )
    expression = source.words_text(body)
    called = [word for word in body if source.text[word.end :].lstrip()[:1] == "("]
    own = [
        word for word in called if _is_own(source.text[word.start : word.end], catalog)
    ]
    if own or not reads_nothing(f"SELECT ({expression})", rules):
        raise source.unsupported(
            "a macro that is more than an expression over its parameters",
            own[0].start if own else body[0].start,
            "it would read what is in no snapshot, or call another macro",
        )
    text = source.words_text(words)
    return DefineMacro(0, (), text, name=name.lower(), expression=expression)


def _is_own(text: str, catalog: Definitions) -> bool:
    name = text.strip('"').lower()
    return catalog.may_call(None, name) or catalog.is_unsafe(name)


def _drop(source: Source, catalog: Definitions) -> DefineObjects:
    number = 3 if source.keywords(2)[:1] == ["TABLE"] else 2
    if source.keywords(number)[:2] == ["IF", "EXISTS"]:
        number += 2
    place = source.words[min(number, len(source.words) - 1)].start
    schema, _, number = qualified_name(source, number, catalog.default_schema)
    check_reserved(source, schema, place)
    check_not_attached(source, catalog, schema, place)
    if source.keywords(number) == ["RESTRICT"]:
        number += 1
    expect_end(source, number, "DROP MACRO")
    return DefineObjects(0, (), source.words_text(source.words))
