"""Statements that define, change and drop what lasts, and temporary tables and views."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tique_rewriter.kinds.define.alter import plan_alter
from tique_rewriter.kinds.define.create_as import (
    before_data_clause,
    is_from_query,
    plan_create_as,
)
from tique_rewriter.kinds.define.ddl import (
    plan_create_index,
    plan_drop_index,
    plan_drop_table,
)
from tique_rewriter.kinds.define.defining_functions import (
    plan_extension,
    plan_function,
    plan_macro,
)
from tique_rewriter.kinds.define.definition import plan_create_table
from tique_rewriter.kinds.define.materialized import (
    plan_create_materialized,
    plan_refresh,
)
from tique_rewriter.kinds.define.objects import (
    plan_alter_index,
    plan_object,
    plan_owner,
)
from tique_rewriter.kinds.define.privileges import plan_default_privileges, plan_grant
from tique_rewriter.kinds.define.temporary import (
    plan_create_temporary,
    plan_drop_temporary_views,
    plan_temporary_view,
)
from tique_rewriter.kinds.define.types import plan_comment, plan_type
from tique_rewriter.kinds.define.views import (
    plan_alter_view,
    plan_create_view,
    plan_drop_view,
)
from tique_rewriter.kinds.registry import Kind, phrases
from tique_rewriter.text.cursor import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique_rewriter.kinds.planner import Planner
    from tique_rewriter.kinds.registry import Tag
    from tique_rewriter.plans.plan import Plan
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.text.source import Source


def _create_table(source: Source, planner: Planner) -> Plan:
    return _plan_table(source, planner, planner.without_temporaries)


def _plan_table(source: Source, planner: Planner, catalog: Catalog) -> Plan:
    if is_from_query(source):
        return plan_create_as(source, catalog, planner.part, planner.plan_whole)
    return plan_create_table(source, catalog)


def _create_unlogged(source: Source, planner: Planner) -> Plan:
    """Plan CREATE TABLE, without the word: the table's versions are in the log."""
    return _create_table(source.blanked(source.words[1:2]), planner)


def _create_temporary(source: Source, planner: Planner) -> Plan:
    lasting = planner.catalog.without_temporaries
    return plan_create_temporary(
        source, lasting, lambda made: _plan_table(made, planner, lasting)
    )


def _drop_view(source: Source, planner: Planner) -> Plan:
    temporary = plan_drop_temporary_views(source, planner.catalog)
    return temporary or plan_drop_view(source, planner.without_temporaries)


def _refuse(source: Source) -> Plan:
    cursor = Cursor(source)
    verb = cursor.take().keyword
    if verb == "CREATE" and cursor.left > 2 and cursor.accept("OR REPLACE"):
        verb = "CREATE OR REPLACE"
    if cursor.is_done:
        raise source.syntax("the statement ends too early", source.start)
    raise source.unsupported(f"{verb} {cursor.keyword}", source.start)


def _tag_of_rows(source: Source) -> str:
    """Return the tag of what is made of a query's rows, or only as they would be."""
    what = "MATERIALIZED VIEW" if source.words[1].keyword == "MATERIALIZED" else "TABLE"
    if not is_from_query(source):
        return f"CREATE {what}"
    if before_data_clause(source.words)[1]:
        return "SELECT #"
    return "CREATE TABLE AS" if what == "TABLE" else f"CREATE {what}"


def _by_planner(
    read: Callable[[Source, Planner], Plan], *patterns: str, tag: Tag | None = None
) -> Kind:
    def read_all(source: Source, planner: Planner) -> Plan:
        return plan_owner(source) or read(source, planner)

    return Kind(read_all, phrases(*patterns, tag=tag), checks=True)


def _by_lasting(
    read: Callable[[Source, Catalog], Plan], *patterns: str, tag: Tag | None = None
) -> Kind:
    """Return a kind of statements that name what lasts."""
    return _by_planner(
        lambda source, p: read(source, p.without_temporaries), *patterns, tag=tag
    )


def _by_words(read: Callable[[Source], Plan], *patterns: str) -> Kind:
    return _by_planner(lambda source, _: read(source), *patterns)


CREATE_TABLE = _by_planner(_create_table, "CREATE [OR REPLACE] TABLE", tag=_tag_of_rows)
UNLOGGED_TABLE = _by_planner(
    _create_unlogged, "CREATE UNLOGGED TABLE", tag=_tag_of_rows
)
TEMPORARY_TABLE = _by_planner(
    _create_temporary,
    "CREATE [OR REPLACE] [LOCAL] TEMP|TEMPORARY TABLE",
    tag=_tag_of_rows,
)
TEMPORARY_VIEW = _by_planner(
    lambda source, planner: plan_temporary_view(source, planner.catalog),
    "CREATE [OR REPLACE] [LOCAL] TEMP|TEMPORARY VIEW",
)
ALTER_VIEW = _by_lasting(plan_alter_view, "ALTER VIEW")
ALTER_INDEX = _by_lasting(plan_alter_index, "ALTER INDEX")
MATERIALIZED_VIEW = (
    _by_lasting(plan_create_materialized, "CREATE MATERIALIZED VIEW", tag=_tag_of_rows),
    _by_lasting(partial(plan_alter, is_materialized=True), "ALTER MATERIALIZED VIEW"),
    _by_lasting(
        partial(plan_drop_table, kind="MATERIALIZED VIEW"), "DROP MATERIALIZED VIEW"
    ),
    Kind(
        lambda source, planner: plan_refresh(source, planner.without_temporaries),
        phrases("REFRESH", tag="REFRESH MATERIALIZED VIEW"),
        explains=False,
    ),
)
TYPE = _by_lasting(plan_type, "CREATE|ALTER|DROP TYPE|DOMAIN")
FUNCTION = _by_lasting(
    plan_function,
    "CREATE [OR REPLACE] FUNCTION|PROCEDURE|AGGREGATE",
    "ALTER|DROP FUNCTION|PROCEDURE|AGGREGATE",
)
MACRO = _by_lasting(
    plan_macro, "CREATE [OR REPLACE] MACRO|FUNCTION", "ALTER|DROP MACRO|FUNCTION"
)
EXTENSION = _by_words(plan_extension, "CREATE|ALTER|DROP EXTENSION")
GRANT = Kind(lambda source, _: plan_grant(source), phrases("GRANT|REVOKE"))
DEFAULT_PRIVILEGES = _by_words(plan_default_privileges, "ALTER DEFAULT PRIVILEGES")
COMMON = (
    _by_lasting(plan_alter, "ALTER TABLE"),
    _by_planner(lambda source, p: plan_drop_table(source, p.catalog), "DROP TABLE"),
    _by_lasting(plan_create_view, "CREATE [OR REPLACE] VIEW"),
    _by_planner(_drop_view, "DROP VIEW"),
    _by_lasting(plan_create_index, "CREATE [UNIQUE] INDEX"),
    _by_words(plan_drop_index, "DROP INDEX"),
    _by_lasting(plan_object, "CREATE [OR REPLACE] SCHEMA|SEQUENCE"),
    _by_lasting(plan_object, "ALTER|DROP SCHEMA|SEQUENCE"),
    _by_lasting(plan_comment, "COMMENT"),
    _by_words(_refuse, "ALTER|CREATE|DROP"),
)
"""What all dialects have; the last refuses what begins like a definition and is none."""
