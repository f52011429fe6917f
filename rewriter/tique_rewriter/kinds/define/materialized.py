"""CREATE and REFRESH MATERIALIZED VIEW.

A materialized view is the engine's own, which stores the rows that its query has had over
storage. So a query that a statement may have is one for it if each of its relations is
in storage what it is in a snapshot: the managed tables, once they are folded, and no
listing of the engine's own objects, from which plans leave tique's out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.errors import UnsupportedSQL
from tique_rewriter.kinds.define.create_as import before_data_clause
from tique_rewriter.kinds.define.views import (
    catalog_of,
    checked_header,
    inside_view,
    plan_body,
)
from tique_rewriter.kinds.session.session import after_verb
from tique_rewriter.plans.ddl_plans import CreateMaterialized, RefreshMaterialized
from tique_rewriter.plans.text import Variant
from tique_rewriter.scope.targets import named_table, unknown_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tique_rewriter.plans.plan import Select
    from tique_rewriter.schema import Definitions, Table, View
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.text.source import Source

_LISTING = "a materialized view over the engine's own relations"
_ADVICE = "it would have tique's own objects among its rows"


def plan_create_materialized(source: Source, catalog: Catalog) -> CreateMaterialized:
    """Return the plan of CREATE MATERIALIZED VIEW.

    Raises
    ------
    RewriteError
        As for its query as a statement of its own.
    """
    header = checked_header(source, catalog)
    inside = inside_view(catalog, source.rules, header.name[0])
    if _lists(plan_body(header, inside)):
        raise source.unsupported(_LISTING, header.start, _ADVICE)
    first = source.start
    return CreateMaterialized(
        0,
        (),
        header.name,
        source.text[first : header.end],
        header.if_not_exists,
        header.has_rows,
    )


def plan_refresh(source: Source, catalog: Catalog) -> RefreshMaterialized:
    """Return the plan of REFRESH MATERIALIZED VIEW [CONCURRENTLY] … [WITH [NO] DATA]."""
    cursor = after_verb(source)
    if not cursor.accept("MATERIALIZED VIEW"):
        raise source.syntax("MATERIALIZED VIEW is expected", cursor.start)
    cursor.accept("CONCURRENTLY")
    first = cursor.number
    view = named_table(cursor, catalog, is_materialized=True)
    if view is None:
        raise unknown_name(cursor, first)
    left, has_rows = before_data_clause(cursor.rest)
    if left:
        cursor.finish("in REFRESH")
    return RefreshMaterialized(
        0, (), view, f"REFRESH {source.words_text(source.words[1:])}", has_rows
    )


def tables_of(definitions: Definitions, dialect: str, view: View) -> set[Table]:
    """Return the managed tables that a materialized view reads, through views too.

    Raises
    ------
    RewriteError
        One of its subclasses, if its query is not one that a statement may have.
    """
    select = catalog_of(definitions, dialect).query_of(view).select
    if _lists(select):
        raise UnsupportedSQL(f"{_LISTING} is not supported; {_ADVICE}")
    return set(_tables(select))


def _lists(select: Select) -> bool:
    """Whether a query reads relations of the engine's, of which plans leave a part out."""
    return any(isinstance(p, Variant) and p.written for p in select.text) or any(
        _lists(reference.view.select)
        for reference in select.references
        if reference.view is not None
    )


def _tables(select: Select) -> Iterator[Table]:
    for reference in select.references:
        if reference.view is None:
            yield reference.table
        else:
            yield from _tables(reference.view.select)
