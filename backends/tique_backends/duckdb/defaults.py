"""DEFAULT expressions, with the schema written before names of the table's own.

DuckDB keeps their text, and looks for the sequences and macros in it in the table's schema
before it does along the session's path. A statement of tique's has the text without the
table: there the schema has to be written.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tique_backends.duckdb.paths import split_path
from tique_backends.duckdb.purity import KNOWN
from tique_backends.names import quote

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique_backends.records import Row

_SEQUENCES = """
SELECT schema_name, system.main.lower(sequence_name) FROM duckdb_sequences()
WHERE database_name = current_database()"""
_MACROS = """
SELECT schema_name, system.main.lower(function_name) FROM duckdb_functions()
WHERE NOT internal AND database_name = current_database()"""

_NEXT = re.compile(r"\b(nextval|currval)\('((?:[^']|'')*)'\)")
_CALL = re.compile(r"""('(?:[^']|'')*')|(?<![\w."])(\w+|"(?:[^"]|"")*")(?=\()""")
_USUAL = KNOWN | {
    "nextval",
    "currval",
    "now",
    "uuid",
    "random",
    "get_current_timestamp",
}


def at_home(text: str, schema: str, ask: Callable[..., list[Row]]) -> str:
    """The text of a DEFAULT of a table in that schema, as it is meant everywhere.

    ``ask`` gives the rows of a query that begin with two values.
    """

    def sequence(found: re.Match[str]) -> str:
        ((*above, name),) = split_path(found[2].replace("''", "'"))
        if above or not ask(_SEQUENCES, schema, name.lower()):
            return found[0]
        place = f"{quote(schema)}.{quote(name)}".replace("'", "''")
        return f"{found[1]}('{place}')"

    def call(found: re.Match[str]) -> str:
        name = found[2]
        if name is None or name.lower() in _USUAL:
            return found[0]
        bare = name.strip('"').replace('""', '"').lower()
        return f"{quote(schema)}.{name}" if ask(_MACROS, schema, bare) else name

    return _CALL.sub(call, _NEXT.sub(sequence, text))
