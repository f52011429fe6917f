"""Functions that are not PostgreSQL's own, read from its catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.schema import Function

if TYPE_CHECKING:
    from tique_backends.session import Session

# PostgreSQL gives no oid from 16384 on to a function of its own: without this the planner
# takes thousands for the application's, and compiles the query for 30 ms.
_FUNCTIONS = """
SELECT n.nspname, p.proname, pg_catalog.format('%I.%I(%s)', n.nspname, p.proname,
    pg_catalog.oidvectortypes(p.proargtypes)),
  l.lanname, coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc),
  coalesce(pg_catalog.pg_get_expr(p.proargdefaults, 0), ''),
  p.provolatile = 'v', p.prokind = 'f' AND NOT p.proretset AND p.proconfig IS NULL,
  EXISTS (SELECT FROM pg_catalog.pg_proc AS o WHERE o.proname = p.proname
    AND o.pronamespace::regnamespace::TEXT IN ('pg_catalog', 'tique')),
  (SELECT e.extname FROM pg_catalog.pg_depend AS d
   JOIN pg_catalog.pg_extension AS e ON e.oid = d.refobjid
   WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
     AND d.refclassid = 'pg_catalog.pg_extension'::regclass LIMIT 1),
  pg_catalog.md5(pg_catalog.concat_ws(' ', p.oid, p.xmin, p.prosrc, p.probin))
FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
JOIN pg_catalog.pg_language AS l ON l.oid = p.prolang
WHERE p.oid >= 16384::OID
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'tique')
  AND n.nspname NOT LIKE 'pg\\_%' ORDER BY p.oid"""


def functions(session: Session) -> list[Function]:
    """The application's functions and those of extensions."""
    return [Function(*row) for row in session.execute(_FUNCTIONS).fetch_all()]
