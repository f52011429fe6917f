"""Whether a query gives the same in any session of a role, and at any time.

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

from tique_backends.words import SYNTAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.postgresql.presence import Presence

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
