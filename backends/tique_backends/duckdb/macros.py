"""The macros of a DuckDB database: what they may be called, and their texts.

DuckDB looks for a function in the database's schemas before its own, also for the one
behind an operator or a keyword: with a macro called ``+`` or ``count_star``, ``1 + 1``
and ``count(*)`` are calls of it, in tique's own statements too. No text shows such a
call, so a database with such a macro is not opened. Macros of other names can be called
by name only, and the rewriter sees to those.

The macros are read once, when the instance is opened. tique makes none, and no other
process can while the file is open.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tique_backends.errors import EngineError, ErrorKind
from tique_rewriter.schema import Function

if TYPE_CHECKING:
    import duckdb

# No function or operator may be in these: they could be macros of the application's.
_MACROS = """
SELECT schema_name, function_name, function_type, macro_definition, parameters
FROM system.main.duckdb_functions() WHERE NOT internal"""

_DUCKDBS = "SELECT function_name FROM system.main.duckdb_functions() WHERE internal"

_KINDS = ("macro", "table_macro")


def macros(instance: duckdb.DuckDBPyConnection) -> list[Function]:
    """Return the application's macros, one for each of their definitions.

    Raises
    ------
    EngineError
        UNSUPPORTED, naming a macro that stands before a function of DuckDB's.
    """
    found = [
        row for row in instance.execute(_MACROS).fetchall() if str(row[2]) in _KINDS
    ]
    if not found:
        return []
    own = {str(name).lower() for (name,) in instance.execute(_DUCKDBS).fetchall()}
    for schema, name, *_ in found:
        if name.lower() in own or re.search(r"\w", name) is None:
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                f"the macro {schema}.{name}() would be called in place of DuckDB's own "
                "function or operator of that name, in tique's statements too; drop it "
                "with DuckDB alone, or make it again under another name",
            )
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
        for schema, name, kind, definition, parameters in found
    ]
