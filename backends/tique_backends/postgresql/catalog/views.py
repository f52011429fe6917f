"""Views, read from PostgreSQL's catalog."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tique_backends.errors import EngineError
from tique_backends.names import quote
from tique_backends.postgresql.catalog.paths import without_path
from tique_backends.postgresql.values.types import type_name
from tique_rewriter.schema import Column, Table, View

if TYPE_CHECKING:
    from tique_backends.records import Row
    from tique_backends.session import Session

_ARE_THERE = """
SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind = CAST($1 AS "char") AND c.relpersistence <> 't' AND n.nspname NOT LIKE 'pg\\_%'
  AND n.nspname NOT IN ('information_schema', 'tique'))"""

_VIEWS = """
SELECT c.oid::BIGINT, n.nspname, c.relname, pg_catalog.pg_get_viewdef(c.oid),
  (SELECT array_agg(a.attname::TEXT ORDER BY a.attnum) FROM pg_catalog.pg_attribute AS a
   WHERE a.attrelid = c.oid AND a.attnum > 0),
  (SELECT array_agg(a.atttypid::BIGINT ORDER BY a.attnum) FROM pg_catalog.pg_attribute AS a
   WHERE a.attrelid = c.oid AND a.attnum > 0),
  (SELECT array_agg(a.atttypmod ORDER BY a.attnum) FROM pg_catalog.pg_attribute AS a
   WHERE a.attrelid = c.oid AND a.attnum > 0),
  (SELECT array_agg(pg_catalog.format_type(a.atttypid, a.atttypmod) ORDER BY a.attnum)
   FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0),
  CASE WHEN c.relhastriggers THEN 'a trigger'
    WHEN EXISTS (SELECT 1 FROM pg_catalog.pg_rewrite AS r
      WHERE r.ev_class = c.oid AND r.rulename <> '_RETURN') THEN 'a rule'
    WHEN EXISTS (SELECT 1 FROM pg_catalog.pg_attrdef AS d WHERE d.adrelid = c.oid)
      THEN 'a DEFAULT of its own' END,
  pg_catalog.upper(substring(c.reloptions::TEXT FROM 'check_option=([A-Za-z]+)'))
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind = CAST($1 AS "char") AND c.relpersistence <> 't' AND n.nspname NOT LIKE 'pg\\_%'
  AND n.nspname NOT IN ('information_schema', 'tique') ORDER BY c.oid"""

_ATTEMPTS = 5


def views(session: Session, kind: str = "v") -> list[View]:
    """The application's views, or those of another kind.

    PostgreSQL writes their queries anew, with a schema before every name that is not found
    without: with an empty search path before all but its own.
    """
    if not session.execute(_ARE_THERE, [kind]).fetch_all()[0][0]:
        return []
    with without_path(session):
        found = _read(session, kind)
    return [_view(*row) for row in found if row[3] is not None and row[4] is not None]


def _read(session: Session, kind: str) -> list[Row]:
    for _ in range(_ATTEMPTS - 1):
        # One of them may be dropped meanwhile.
        with suppress(EngineError):
            return session.execute(_VIEWS, [kind]).fetch_all()
    return session.execute(_VIEWS, [kind]).fetch_all()


def _view(
    number: int,
    schema: str,
    name: str,
    query: str,
    names: list[str],
    types: list[int],
    modifiers: list[int],
    displays: list[str],
    obstacle: str | None,
    check_option: str | None,
) -> View:
    columns = tuple(
        [
            Column(column, type_name(oid, modifier, display))
            for column, oid, modifier, display in zip(
                names, types, modifiers, displays, strict=True
            )
        ]
    )
    definition = f"CREATE VIEW {quote(schema)}.{quote(name)} AS {query}"
    has = None if obstacle is None else f"it has {obstacle}"
    table = Table(schema, name, columns, id=-number)
    return View(table, definition, obstacle=has, check_option=check_option)
