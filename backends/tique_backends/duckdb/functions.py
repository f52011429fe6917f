"""Macros, read from DuckDB's catalog; DuckDB has no other functions of the application's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.schema import Function

if TYPE_CHECKING:
    from tique_backends.session import Session

_MACROS = """
SELECT schema_name, function_name,
  schema_name || '.' || function_name || '(' || array_to_string(parameters, ', ') || ')',
  'sql', 'SELECT ' || macro_definition, '', false, function_type = 'macro',
  EXISTS (SELECT 1 FROM duckdb_functions() AS o
          WHERE o.internal AND o.function_name = m.function_name),
  NULL, md5(macro_definition)
FROM duckdb_functions() AS m
WHERE NOT internal AND function_type IN ('macro', 'table_macro')
  AND database_name IN (current_database(), 'temp')
ORDER BY ALL"""


def macros(session: Session) -> list[Function]:
    """The application's macros, temporary ones included."""
    return [Function(*row) for row in session.execute(_MACROS).fetch_all()]
