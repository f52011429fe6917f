"""Views, read from DuckDB's catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_backends.errors import EngineError
from tique_backends.names import quote
from tique_rewriter.schema import Column, Table, View

if TYPE_CHECKING:
    from tique_backends.session import Session

_VIEWS = """
SELECT view_oid, database_name, schema_name, view_name, sql FROM duckdb_views()
WHERE database_name = current_database() AND NOT internal AND NOT temporary
  AND schema_name <> 'tique'
ORDER BY view_oid"""


def views(session: Session) -> list[View]:
    """The application's views.

    DuckDB keeps one whose tables are gone or have changed, and may be unable to read it.
    """
    found = []
    for number, database, schema, name, definition in session.execute(
        _VIEWS
    ).fetch_all():
        place = f"{quote(database)}.{quote(schema)}.{quote(name)}"
        columns: tuple[Column, ...] = ()
        fault = None
        try:
            described = session.execute(f"DESCRIBE {place}").fetch_all()
        except EngineError as error:
            fault = str(error)
        else:
            columns = tuple([Column(row[0], row[1]) for row in described])
        table = Table(schema, name, columns, id=-number, fault=fault)
        found.append(View(table, definition))
    return found
