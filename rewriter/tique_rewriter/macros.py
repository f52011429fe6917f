"""CREATE and DROP MACRO, where the engine's functions of the application's own are macros.

A macro is created if it is one expression over its parameters that reads nothing. Which
functions it calls, and whether its name is free, only the engine can tell, so the plan has
its parts. Whatever is created, a statement calls it only if
:mod:`tique_rewriter.functions` knows that it may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.cursor import Cursor
from tique_rewriter.ddl_plans import DefineMacro, DefineObjects
from tique_rewriter.functions import reads_nothing

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
    words, cursor = source.words, Cursor.of_definition(source)
    verb = cursor.take().keyword
    cursor.accept("OR REPLACE")
    kind = cursor.take().keyword
    if verb == "DROP":
        return _drop(cursor, catalog)
    if verb != "CREATE":
        raise source.unsupported(f"{verb} {kind}", words[0].start)
    cursor.accept("IF NOT EXISTS")
    place = cursor.start
    _, name = cursor.writable(catalog)
    rules = source.rules
    if not name.isidentifier() or rules.table_functions.fullmatch(name.lower()):
        raise source.unsupported(
            f'the name "{name}" of a macro',
            place,
            f"{rules.engine} may have a function or an operator of that name",
        )
    if cursor.brackets() is None:
        raise source.syntax("( is expected", place)
    has_as = cursor.accept("AS")
    body = cursor.rest
    if not has_as or not body:
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
    own = [word for word in called if _is_own(source.raw(word), catalog)]
    if own or not reads_nothing(f"SELECT ({expression})", rules):
        raise source.unsupported(
            "a macro that is more than an expression over its parameters",
            own[0].start if own else body[0].start,
            "it would read what is in no snapshot, or call another macro",
        )
    return DefineMacro(
        0, (), cursor.statement, name=name.lower(), expression=expression
    )


def _is_own(text: str, catalog: Definitions) -> bool:
    name = text.strip('"').lower()
    return catalog.may_call(None, name) or catalog.is_unsafe(name)


def _drop(cursor: Cursor, catalog: Definitions) -> DefineObjects:
    cursor.accept("TABLE")
    cursor.accept("IF EXISTS")
    cursor.writable(catalog)
    cursor.accept_last("RESTRICT")
    cursor.finish("in DROP MACRO")
    return DefineObjects(0, (), cursor.statement)
