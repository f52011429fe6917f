"""Views, read from MonetDB's catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_backends.monetdb.types import type_name
from tique_rewriter.schema import Column, Table, View

if TYPE_CHECKING:
    from tique_backends.session import Session

_VIEWS = """
SELECT t.id, s.name, t.name, t.query FROM sys.tables AS t
JOIN sys.schemas AS s ON s.id = t.schema_id
WHERE t.type = 1 AND NOT t.system AND s.name <> R'tique' ORDER BY t.id"""

_COLUMNS = """
SELECT c.table_id, c.name, c.type, c.type_digits, c.type_scale FROM sys.columns AS c
JOIN sys.tables AS t ON t.id = c.table_id WHERE t.type = 1 AND NOT t.system
ORDER BY c.table_id, c.number"""


def views(session: Session) -> list[View]:
    """The application's views.

    The columns in the catalog are those from their creation: a star stands for more, if
    the table has more by now.
    """
    found = session.execute(_VIEWS).fetch_all()
    if not found:
        return []
    columns: dict[int, list[Column]] = {}
    for number, name, kind, digits, scale in session.execute(_COLUMNS).fetch_all():
        text = type_name(kind, digits, scale) or kind.upper()
        columns.setdefault(number, []).append(Column(name, text))
    return [
        View(
            Table(schema, name, tuple(columns.get(number, ())), id=-number),
            definition,
            has_its_columns=False,
        )
        for number, schema, name, definition in found
    ]
