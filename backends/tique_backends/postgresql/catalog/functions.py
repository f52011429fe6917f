"""Functions that are not PostgreSQL's own, and what calls functions that no text names.

Both are read from its catalog. Calls without a name are those of operators, conversions,
operator classes, and types: by the CHECK or the DEFAULT of a domain, and by functions of
their own. A type also calls what its parts call, those of
tables' rows too, and so do functions and operators that take or return it. PostgreSQL keeps all
of that as dependencies, but for those on what is its own: the functions that a domain calls are
looked for in its parsed expressions.

A cast needs both of its types, so that one of them is enough to find it: the one that the
function's owner has, if there is one, as no other role can make a cast of its own types.

Functions of PostgreSQL's own are believed unless they are VOLATILE or read relations by their
names (those for XML), and extensions' unless they are VOLATILE. The rewriter judges all others.
Temporary objects are other sessions': a connection makes none but tables, of types that it names.

*Whether a query gives the same in any session of a role, and at any time.*
PostgreSQL marks each function: *immutable* ones depend on their arguments alone. Of a name
that several functions have, all must be; an application's function of that name may be the
one that is called, so there must be none. Some are *stable* only because of the session's settings (the time zone, how values
are written), which are the same in every session of a role that has changed none.

Operators, conversions and the CHECK constraints of domains call functions that no text names. While the
application has one whose function is VOLATILE or its own, no query depends on rows alone: that function might
write, which would be undone with the fold, or read what the fold's snapshot is too old for. Extensions
are believed, as in :mod:`.purity`.

Others depend on the transaction: in an engine transaction that lasts over many queries ``now()`` is the
time of its beginning, and so is the string ``now`` where it becomes a moment.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tique_backends.catalog.words import SYNTAX
from tique_rewriter.schema import Function, HiddenCall, Named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.postgresql.sessions.presence import Presence
    from tique_backends.session import Session


# PostgreSQL gives no oid from 16384 on to an object of its own.
_ARE_THERE = """
SELECT EXISTS (SELECT FROM pg_catalog.pg_operator WHERE oid >= 16384::OID)
  OR EXISTS (SELECT FROM pg_catalog.pg_cast WHERE oid >= 16384::OID)
  OR EXISTS (SELECT FROM pg_catalog.pg_opclass WHERE oid >= 16384::OID)
  OR EXISTS (SELECT FROM pg_catalog.pg_amproc WHERE oid >= 16384::OID)
  OR EXISTS (SELECT FROM pg_catalog.pg_type WHERE oid >= 16384::OID AND typtype = 'd')
  OR EXISTS (SELECT FROM pg_catalog.pg_depend
    WHERE refclassid = 'pg_catalog.pg_proc'::regclass
    AND classid = 'pg_catalog.pg_type'::regclass)"""

_HIDDEN = """
WITH RECURSIVE _own(type, schema, symbol, function, behind) AS (
  SELECT 0::OID, o.oprnamespace, o.oprname, o.oprcode::OID, pg_catalog.format(
    'the operator %s.%s (%s)', o.oprnamespace::regnamespace, o.oprname,
    pg_catalog.concat_ws(', ', NULLIF(o.oprleft, 0::OID)::regtype, NULLIF(o.oprright, 0::OID)::regtype))
  FROM pg_catalog.pg_operator AS o WHERE o.oid >= 16384::OID
  UNION ALL
  SELECT CASE WHEN t.oid >= 16384::OID AND t.typowner = p.proowner THEN t.oid
      WHEN s.oid >= 16384::OID AND s.typowner = p.proowner THEN s.oid
      WHEN t.oid >= 16384::OID THEN t.oid WHEN s.oid >= 16384::OID THEN s.oid ELSE 0 END,
    0, NULL, p.oid, pg_catalog.format('the cast from %s to %s', s.oid::regtype, t.oid::regtype)
  FROM pg_catalog.pg_cast AS c JOIN pg_catalog.pg_type AS s ON s.oid = c.castsource
  JOIN pg_catalog.pg_type AS t ON t.oid = c.casttarget
  JOIN pg_catalog.pg_proc AS p ON p.oid = c.castfunc WHERE c.oid >= 16384::OID
  UNION ALL
  SELECT CASE WHEN f.lefttype >= 16384::OID THEN f.lefttype
      WHEN f.righttype >= 16384::OID THEN f.righttype ELSE 0 END, 0, NULL, f.function,
    pg_catalog.format('the operator class %s.%s', c.opcnamespace::regnamespace, c.opcname)
  FROM (
    SELECT amprocfamily, amproclefttype, amprocrighttype, amproc::OID
    FROM pg_catalog.pg_amproc WHERE oid >= 16384::OID
    UNION ALL
    SELECT a.amopfamily, a.amoplefttype, a.amoprighttype, o.oprcode::OID
    FROM pg_catalog.pg_amop AS a JOIN pg_catalog.pg_operator AS o ON o.oid = a.amopopr
    WHERE a.oid >= 16384::OID
  ) AS f(family, lefttype, righttype, function)
  JOIN pg_catalog.pg_opclass AS c ON c.opcfamily = f.family AND c.opcdefault
  UNION ALL
  SELECT u.type, 0, NULL, u.function,
    pg_catalog.format('the type %s', u.type::regtype) FROM (
    SELECT coalesce(NULLIF(c.contypid, 0::OID), t.oid), coalesce(o.oprcode::OID, d.refobjid)
    FROM pg_catalog.pg_depend AS d
    LEFT JOIN pg_catalog.pg_type AS t
      ON t.oid = d.objid AND d.classid = 'pg_catalog.pg_type'::regclass
    LEFT JOIN pg_catalog.pg_constraint AS c
      ON c.oid = d.objid AND d.classid = 'pg_catalog.pg_constraint'::regclass
    LEFT JOIN pg_catalog.pg_operator AS o
      ON o.oid = d.refobjid AND d.refclassid = 'pg_catalog.pg_operator'::regclass
    WHERE (t.oid <> 0::OID OR c.contypid <> 0::OID) AND d.refclassid IN
      ('pg_catalog.pg_proc'::regclass, 'pg_catalog.pg_operator'::regclass)
    UNION ALL
    SELECT t.oid, f.number[1]::OID FROM pg_catalog.pg_type AS t
    LEFT JOIN pg_catalog.pg_constraint AS c ON c.contypid = t.oid
    CROSS JOIN LATERAL pg_catalog.regexp_matches(
      pg_catalog.concat(t.typdefaultbin, c.conbin), ':funcid ([1-9][0-9]*)', 'g'
    ) AS f(number) WHERE t.typtype = 'd' AND t.oid >= 16384::OID
  ) AS u(type, function)
), _calls AS (
  SELECT c.type, c.schema, c.symbol, c.behind, p.oid < 16384::OID AS is_engines,
    CASE WHEN p.oid < 16384::OID THEN p.proname::TEXT ELSE pg_catalog.format('%I.%I(%s)',
      n.nspname, p.proname, pg_catalog.oidvectortypes(p.proargtypes)) END AS function,
    EXISTS (SELECT FROM pg_catalog.pg_type AS t
      WHERE t.oid = c.type AND t.typtype = 'd' AND c.behind LIKE 'the type %') AS is_domain
  FROM _own AS c JOIN pg_catalog.pg_proc AS p ON p.oid = c.function
  JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
  LEFT JOIN pg_catalog.pg_depend AS d ON d.objid = p.oid AND d.deptype = 'e'
    AND d.classid = 'pg_catalog.pg_proc'::regclass
  WHERE c.schema IS DISTINCT FROM
      (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'tique')
    AND (p.provolatile = 'v' OR p.proname LIKE '%xml%'
      OR p.oid >= 16384::OID AND d.objid IS NULL)
), _used AS (
  SELECT type, behind, function, is_engines, is_domain FROM _calls WHERE type <> 0::OID
  UNION
  SELECT CASE d.classid WHEN 'pg_catalog.pg_type'::regclass THEN d.objid
      WHEN 'pg_catalog.pg_class'::regclass
        THEN (SELECT c.reltype FROM pg_catalog.pg_class AS c WHERE c.oid = d.objid)
      ELSE (SELECT c.contypid FROM pg_catalog.pg_constraint AS c WHERE c.oid = d.objid)
    END, u.behind, u.function, u.is_engines, u.is_domain
  FROM _used AS u JOIN pg_catalog.pg_depend AS d ON d.refobjid = u.type
    AND d.refclassid = 'pg_catalog.pg_type'::regclass AND d.classid IN (
      'pg_catalog.pg_type'::regclass, 'pg_catalog.pg_class'::regclass,
      'pg_catalog.pg_constraint'::regclass)
), _names(named, schema, name, behind, function, is_engines) AS (
  SELECT CASE WHEN symbol IS NULL THEN 'anything' ELSE 'operator' END, schema, symbol, behind,
    function, is_engines FROM _calls WHERE type = 0::OID
  UNION
  SELECT CASE WHEN u.is_domain AND c.relkind <> 'c' THEN 'relation' ELSE 'type' END,
    t.typnamespace, t.typname, u.behind, u.function, u.is_engines
  FROM _used AS u JOIN pg_catalog.pg_type AS t ON t.oid = u.type
  LEFT JOIN pg_catalog.pg_class AS c ON c.oid = t.typrelid
  UNION
  SELECT CASE WHEN p.oid IS NULL THEN 'operator' ELSE 'function' END,
    coalesce(p.pronamespace, o.oprnamespace), coalesce(p.proname, o.oprname), u.behind,
    u.function, u.is_engines
  FROM _used AS u JOIN pg_catalog.pg_depend AS d ON d.refobjid = u.type
    AND d.refclassid = 'pg_catalog.pg_type'::regclass
  LEFT JOIN pg_catalog.pg_proc AS p
    ON p.oid = d.objid AND d.classid = 'pg_catalog.pg_proc'::regclass
  LEFT JOIN pg_catalog.pg_operator AS o
    ON o.oid = d.objid AND d.classid = 'pg_catalog.pg_operator'::regclass
  WHERE p.oid <> 0::OID OR o.oid <> 0::OID
)
SELECT n.named, coalesce(s.nspname, ''), coalesce(n.name, ''), n.behind, n.function,
  n.is_engines
FROM _names AS n LEFT JOIN pg_catalog.pg_namespace AS s ON s.oid = n.schema
WHERE s.nspname IS NULL OR s.nspname NOT LIKE 'pg\\_%'
ORDER BY 1, 2, 3, 4, 5"""


def hidden_calls(session: Session) -> list[HiddenCall]:
    """What calls functions that are not certainly safe, by the names that call it."""
    if not session.execute(_ARE_THERE).fetch_all()[0][0]:
        return []
    rows = session.execute(_HIDDEN).fetch_all()
    return [HiddenCall(Named(named), *rest) for named, *rest in rows]


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


_IMMUTABLE = """
SELECT proname FROM pg_catalog.pg_proc
WHERE pronamespace = 'pg_catalog'::regnamespace
GROUP BY proname HAVING bool_and(provolatile = 'i')"""

# PostgreSQL gives no oid from 16384 on to an object of its own.
_OF_APPLICATIONS = """
SELECT 1 FROM pg_catalog.pg_proc WHERE proname = ANY (CAST($1 AS NAME[]))
AND pronamespace <> 'pg_catalog'::regnamespace
UNION ALL
SELECT 1 FROM (
  SELECT oprcode FROM pg_catalog.pg_operator WHERE oid >= 16384
  UNION ALL SELECT castfunc FROM pg_catalog.pg_cast WHERE oid >= 16384
  UNION ALL SELECT d.refobjid FROM pg_catalog.pg_constraint AS c
  JOIN pg_catalog.pg_depend AS d ON d.objid = c.oid
  AND d.classid = 'pg_catalog.pg_constraint'::regclass
  AND d.refclassid = 'pg_catalog.pg_proc'::regclass WHERE c.contypid <> 0
) AS c (function) JOIN pg_catalog.pg_proc AS p ON p.oid = c.function
WHERE p.provolatile = 'v' OR p.oid >= 16384 AND NOT EXISTS (
  SELECT FROM pg_catalog.pg_depend AS d WHERE d.objid = p.oid AND d.deptype = 'e'
  AND d.classid = 'pg_catalog.pg_proc'::regclass)
LIMIT 1"""

_BY_SETTINGS = """
array_to_string concat concat_ws date_part date_trunc enum_first enum_last enum_range
extract format generate_series json_agg json_build_array json_build_object json_object_agg
jsonb_agg jsonb_build_array jsonb_build_object jsonb_object_agg row_to_json timezone to_char
to_json to_jsonb
"""


_MOMENT = re.compile(r"now|today|tomorrow|yesterday", re.IGNORECASE)


class Volatility:
    """Tells the names that depend on nothing but rows and parameters."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._known: frozenset[str] | None = None

    def depend_on_rows(
        self, calls: frozenset[str], parameters: Sequence[object]
    ) -> bool:
        """See :meth:`tique_backends.engine.Engine.depend_on_rows`."""
        if any(
            not isinstance(value, int | float | None) and _MOMENT.search(repr(value))
            for value in parameters
        ):
            return False
        if self._known is None:
            names = {name for (name,) in self._presence.ask(_IMMUTABLE)}
            self._known = SYNTAX.union(names, _BY_SETTINGS.split())
        if not calls <= self._known:
            return False
        # One may have been created since the last query.
        return not self._presence.ask(_OF_APPLICATIONS, [list(calls)])
