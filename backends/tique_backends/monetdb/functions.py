"""Functions that are not MonetDB's own, read from its catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.schema import Function

if TYPE_CHECKING:
    from tique_backends.session import Session

# The text is the whole CREATE FUNCTION, in SQL or in another language: no expression.
_FUNCTIONS = """
SELECT s.name, f.name, s.name || '.' || f.name, 'CREATE', f.func, '', f.side_effect,
  f.type = 1, EXISTS (SELECT 1 FROM sys.functions AS o
                      WHERE o.system AND o.name = f.name),
  CAST(NULL AS VARCHAR(1)), f.id || ' ' || f.func
FROM sys.functions AS f JOIN sys.schemas AS s ON s.id = f.schema_id
WHERE NOT f.system AND s.name <> 'tique'
ORDER BY f.id"""


def functions(session: Session) -> list[Function]:
    """The application's functions, in whatever language."""
    return [Function(*row) for row in session.execute(_FUNCTIONS).fetch_all()]
