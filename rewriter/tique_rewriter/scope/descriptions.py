"""What is asked of a relation's definition: its storage has exactly the application's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.text.names import quote

if TYPE_CHECKING:
    from tique_rewriter.schema import Catalog
    from tique_rewriter.text.source import Source


def definition(
    source: Source, catalog: Catalog, schema: str | None, name: str, start: int
) -> str:
    """Return the qualified name of a table, or of a view; empty if there is none.

    Raises
    ------
    UnsupportedSQL
        For a temporary one, which the engine has by another name or not at all.
    """
    table, view = catalog.find(schema, name), catalog.view(schema, name)
    table = view.table if view is not None else table
    if table is not None and table.is_temporary:
        raise source.unsupported(
            f'DESCRIBE of "{name}", which is temporary,',
            start,
            "describe a query of it",
        )
    return "" if table is None else f"{quote(table.schema)}.{quote(table.name)}"
