"""The macros of a DuckDB database: what they may be called, and their texts.

DuckDB looks for a function in the database's schemas before its own, also for the one
behind an operator or a keyword: with a macro called ``+`` or ``count_star``, ``1 + 1``
and ``count(*)`` are calls of it, in tique's own statements too. No text shows such a
call, so a database with such a macro is not opened. Macros of other names can be called
by name only, and the rewriter sees to those.

tique itself makes none for the application that would do so, and no other process can
while the file is open. To list functions DuckDB makes rows of all of its own, which takes
longer than all else of a CREATE TABLE: a database that had no macro when it was opened is
not asked again before one is made.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tique_backends.duckdb.catalog.purity import KNOWN, nodes
from tique_backends.errors import EngineError, ErrorKind
from tique_rewriter.schema import Function

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Ask = Callable[..., Sequence[Any]]

# No function or operator may be in these: they could be macros of the application's.
_MACROS = """
SELECT schema_name, function_name, function_type, macro_definition, parameters
FROM system.main.duckdb_functions()
WHERE NOT internal AND database_name IN (system.main.current_database(), 'temp')"""

_DUCKDBS = "SELECT function_name FROM system.main.duckdb_functions() WHERE internal"

_KINDS = ("macro", "table_macro")
_MORE = frozenset(
    {"SUBQUERY", "WINDOW", "LAMBDA", "STAR", "POSITIONAL_REFERENCE", "PARAMETER"}
)
"""The parser's classes of expressions that are more than a value of their operands."""


def check_names(ask: Ask) -> bool:
    """Refuse a database with a macro that stands before a function of DuckDB's.

    Returns
    -------
    bool
        Whether it has any macro.

    Raises
    ------
    EngineError
        UNSUPPORTED, naming the macro.
    """
    found = _found(ask)
    own = _own(ask) if found else set()
    for schema, name, *_ in found:
        if name.lower() in own or re.search(r"\w", name) is None:
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                f"the macro {schema}.{name}() would be called in place of DuckDB's own "
                "function or operator of that name, in tique's statements too; drop it "
                "with DuckDB alone, or make it again under another name",
            )
    return bool(found)


def functions(ask: Ask) -> list[Function]:
    """Return the application's macros, one for each of their definitions."""
    return [
        Function(
            schema=schema.lower(),
            name=name.lower(),
            signature=f"{schema}.{name}({', '.join(parameters)})",
            language="sql",
            body=f"SELECT {definition}",
            defaults="",
            is_volatile=False,
            is_plain=kind == "macro",
            is_shadowed=False,
            extension=None,
            digest=definition,
        )
        for schema, name, kind, definition, parameters in _found(ask)
    ]


def check_new(ask: Ask, name: str, expression: str) -> None:
    """Refuse a macro that would stand before a function of DuckDB's, or is impure.

    A statement's own words say whether a function in it varies; a macro must not hide one.
    That it names its parameters and no other column DuckDB itself sees to.

    Raises
    ------
    EngineError
        UNSUPPORTED, with the reason.
    """
    if name in _own(ask):
        raise EngineError(
            ErrorKind.UNSUPPORTED,
            f"the macro {name}() is not supported: it would be called in place of "
            "DuckDB's own function of that name, in tique's statements too",
        )
    parsed = _parsed(ask, expression)
    found = [node for node in nodes(parsed) if node.get("class") in _MORE]
    calls = {
        str(node["function_name"]).lower()
        for node in nodes(parsed)
        if node.get("class") == "FUNCTION"
    }
    impure = sorted(calls - KNOWN)
    if parsed["error"] or found or impure:
        problem = (
            f"it calls {impure[0]}(), which is not known to depend on its arguments alone"
            if impure
            else "it has more in it than functions of its parameters"
        )
        raise EngineError(
            ErrorKind.UNSUPPORTED, f"the macro {name}() is not supported: {problem}"
        )


def _found(ask: Ask) -> list[Any]:
    return [row for row in ask(_MACROS) if str(row[2]) in _KINDS]


def _own(ask: Ask) -> set[str]:
    return {str(name).lower() for (name,) in ask(_DUCKDBS)}


def _parsed(ask: Ask, expression: str) -> Any:
    ((answer,),) = ask("SELECT json_serialize_sql($1)", [f"SELECT ({expression})"])
    return json.loads(answer or '{"error": true}')
