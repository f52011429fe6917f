"""CREATE and DROP of functions, procedures and aggregates, and of extensions.

The engine runs them as they stand. To create a function does nothing but to make its
name: a statement calls it only if :mod:`tique_rewriter.safety.functions` knows that it may. So
the one thing to be refused is a name that statements may call anyway, for which the engine
might then take the new function.

*CREATE and DROP MACRO*, where the engine's functions of the application's own are macros.
A macro is created if it is one expression over its parameters that reads nothing. Which
functions it calls, and whether its name is free, only the engine can tell, so the plan has
its parts. A statement calls a new macro only if
:mod:`tique_rewriter.safety.functions` knows that it may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.plans.ddl_plans import DefineMacro, DefineObjects
from tique_rewriter.safety.functions import reads_nothing
from tique_rewriter.text.cursor import Cursor

if TYPE_CHECKING:
    from tique_rewriter.schema import Definitions
    from tique_rewriter.text.source import Source


def plan_function(source: Source, catalog: Definitions) -> DefineObjects:
    """Return the plan of CREATE [OR REPLACE] or DROP of a function, a procedure or an aggregate.

    Raises
    ------
    UnsupportedSQL
        For a name of the engine's own functions, or in a reserved schema.
    """
    cursor = Cursor.of_definition(source)
    verb = cursor.take().keyword
    cursor.accept("OR REPLACE")
    kind = cursor.take().keyword
    if verb == "ALTER":
        raise source.unsupported(
            f"ALTER {kind}", source.start, "write CREATE OR REPLACE, or DROP and CREATE"
        )
    if verb == "CREATE":
        _check_name(cursor, catalog)
    else:
        cursor.accept("IF EXISTS")
        cursor.list_of(lambda: _signature(cursor, catalog))
        cursor.accept_last("RESTRICT")
        cursor.finish(f"in DROP {kind}")
    return DefineObjects(0, (), cursor.statement)


def _check_name(cursor: Cursor, catalog: Definitions) -> None:
    source, start = cursor.source, cursor.start
    schema, name = cursor.unreserved(catalog.default_schema)
    known = source.rules.before_brackets
    if schema.lower().startswith("pg_") or (known and known.fullmatch(name)):
        raise source.unsupported(
            f'the name "{name}" of a function',
            start,
            f"{source.rules.engine} has one of that name, which statements call",
        )
    if not cursor.follows("("):
        raise source.syntax("( is expected", start)


def _signature(cursor: Cursor, catalog: Definitions) -> None:
    cursor.unreserved(catalog.default_schema)
    cursor.brackets()


def plan_extension(source: Source) -> DefineObjects:
    """Return the plan of CREATE or DROP EXTENSION.

    Raises
    ------
    UnsupportedSQL
        For one that is on no list, and for CASCADE of DROP.
    """
    cursor = Cursor.of_definition(source)
    verb = cursor.take().keyword
    cursor.accept("EXTENSION")
    if verb != "ALTER":
        cursor.accept("IF NOT EXISTS" if verb == "CREATE" else "IF EXISTS")
    if verb == "ALTER" or cursor.is_done:
        raise source.unsupported(f"{verb} EXTENSION", source.start)
    name = cursor.name()
    if name not in source.rules.extensions:
        raise source.unsupported(
            f"the extension {name}",
            cursor.before.start,
            "its code may read and write tables outside of the snapshot",
        )
    if verb == "CREATE":
        cursor.accept("WITH")
    while cursor.left:
        is_pair = verb == "CREATE" and cursor.left > 1
        if is_pair and cursor.accept("SCHEMA"):
            cursor.unreserved_name()
        elif is_pair and cursor.accept("VERSION"):
            cursor.take()
        elif not cursor.accept("CASCADE" if verb == "CREATE" else "RESTRICT"):
            raise cursor.unexpected(f"in {verb} EXTENSION")
    return DefineObjects(0, (), cursor.statement)


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
            "CREATE MACRO … AS TABLE",
            words[0].start,
            "its query would read storage, which lacks recent versions: create a view",
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
