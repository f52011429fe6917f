"""Values that the driver keeps in PostgreSQL's own text form.

Python has no value that is the same as one of JSONB, TIMESTAMPTZ or an array: a number in
a document loses digits, a moment its session's time zone, an array its bounds, and
psycopg's objects for a document can be changed. PostgreSQL reads its own text for a
value as that value again. So the driver keeps that text, from the query that gives it
to storage, and converts it as psycopg does where an application looks at it.

Equal values may have several texts (``{1,2}`` and ``[1:2]={1,2}``): a column of a key is
never kept so. Nor are types whose text depends on the session (MONEY, XML, REGCLASS) or
on DDL that happens without tique (rows), nor arrays of types with a length, which a
query's CAST would cut and only staging judges.

*Types of the application's.* A domain is its base type, and the engine is asked at each
statement whether a row is in it (:attr:`Table.judges_rows`). Enumerations, ranges whose
text PostgreSQL's own functions read, and arrays of both are held as text (:func:`is_own`):
each text is read by the type's input function, since a cast from TEXT may be a role's own
code (P11). To read a composite type's text, or that of an array of domains, may run the
CHECK of a domain that their owner has put there since. So these are held if all that they
consist of is PostgreSQL's own, or belongs to the owner of schema ``tique``, with whose rights
it is read, and calls nothing of others; else their rows are staged. Their attributes are
kept from being dropped past tique (:data:`KEEPING_ATTRIBUTES`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.adapt import AdaptersMap, Transformer
from psycopg.pq import Format
from psycopg.types.string import TextLoader
from typing_extensions import override

from tique_backends.postgresql.values.parameters import DUMPERS
from tique_backends.records import Row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from psycopg.abc import AdaptContext

_SCALARS = (
    *("real", "time without time zone", "time with time zone"),
    *("timestamp with time zone", "interval", "json", "jsonb", "inet", "cidr"),
    *("macaddr", "macaddr8", "bit", "bit varying", "tsvector", "tsquery"),
    *("point", "line", "lseg", "box", "path", "polygon", "circle"),
    *("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"),
    *("int4multirange", "int8multirange", "nummultirange", "datemultirange"),
    *("tsmultirange", "tstzmultirange"),
)
_ELEMENTS = (
    *_SCALARS,
    *("boolean", "smallint", "integer", "bigint", "double precision", "numeric"),
    *("text", "character varying", "bytea", "date", "uuid"),
    "timestamp without time zone",
)
_RANGE = """EXISTS (SELECT FROM pg_catalog.pg_range AS r
    JOIN pg_catalog.pg_opclass AS o ON o.oid = r.rngsubopc
    WHERE r.rngtypid = {type}.oid AND r.rngcanonical = 0
      AND o.opcnamespace = 'pg_catalog'::regnamespace
      AND r.rngsubtype IN (20, 21, 23, 25, 701, 1043, 1082, 1114, 1700, 2950))"""
_OF_THE_OWNER = """t.typowner = (SELECT n.nspowner FROM pg_catalog.pg_namespace AS n
      WHERE n.nspname = 'tique')
    AND (t.typrelid = 0 OR EXISTS (SELECT FROM pg_catalog.pg_class AS c
      WHERE c.oid = t.typrelid AND c.relkind = 'c'))
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint AS k
      JOIN pg_catalog.pg_depend AS u ON u.objid = k.oid
        AND u.classid = 'pg_catalog.pg_constraint'::regclass
      WHERE k.contypid = t.oid AND u.refobjid <> t.oid)"""
_PARTS = """WITH RECURSIVE part(oid) AS (SELECT {type} UNION SELECT w.oid FROM part
      JOIN pg_catalog.pg_type AS t ON t.oid = part.oid CROSS JOIN LATERAL (
        SELECT a.atttypid FROM pg_catalog.pg_attribute AS a
          WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
        UNION ALL SELECT t.typelem WHERE t.typcategory = 'A'
        UNION ALL SELECT t.typbasetype WHERE t.typtype = 'd') AS w(oid))"""
HELD = f"""e.typtype = 'e' OR {_RANGE.format(type="e")} OR (
  e.typtype IN ('c', 'd') AND NOT EXISTS (
    {_PARTS.format(type="e.oid")}
    SELECT FROM part JOIN pg_catalog.pg_type AS t ON t.oid = part.oid
    WHERE NOT (t.oid IN ({", ".join(str(psycopg.adapters.types.get_oid(n)) for n in _ELEMENTS)})
      OR t.typcategory = 'A' OR t.typtype = 'e' OR {_RANGE.format(type="t")}
      OR (t.typtype IN ('c', 'd') AND {_OF_THE_OWNER}))))"""
"""SQL: a type ``e`` of the application's is one whose text is held, and in arrays too."""

KEEPING_ATTRIBUTES = f"""
SELECT format('ALTER TABLE %s ALTER %I SET DEFAULT CASE WHEN %s THEN CAST(NULL AS %s) END',
  a.attrelid::pg_catalog.regclass, a.attname, s.reads, format_type(a.atttypid, a.atttypmod))
FROM tique."tables" AS k JOIN pg_catalog.pg_attribute AS a
  ON a.attrelid = to_regclass(concat('tique.tique_cache_', k.id)) AND a.attnum > 0
  AND NOT a.attisdropped AND NOT a.atthasdef AND a.atttypid >= 16384
JOIN pg_catalog.pg_class AS v ON v.oid = a.attrelid AND pg_has_role(v.relowner, 'USAGE')
CROSS JOIN LATERAL ({_PARTS.format(type="a.atttypid")}
  SELECT string_agg(format('(CAST(NULL AS %s)).%I IS NULL',
    c.reltype::pg_catalog.regtype, i.attname), ' OR ')
  FROM part JOIN pg_catalog.pg_type AS t ON t.oid = part.oid AND {_OF_THE_OWNER}
  JOIN pg_catalog.pg_class AS c ON c.oid = t.typrelid
  JOIN pg_catalog.pg_attribute AS i ON i.attrelid = c.oid AND i.attnum > 0
    AND NOT i.attisdropped) AS s(reads)
WHERE s.reads IS NOT NULL"""
"""Statements that have PostgreSQL refuse DROP ATTRIBUTE of a type whose values are held.

A text has its attributes by their places: with another attribute in the place of one that
was dropped it would be read as another value. The cache tables' defaults, which nothing
uses, depend on the attributes.
"""

_OIDS = {
    # As :func:`tique_backends.postgresql.values.types.type_name` has it.
    "REAL": psycopg.adapters.types.get_oid("real"),
    **{name: psycopg.adapters.types.get_oid(name) for name in _SCALARS},
    **{f"{name}[]": psycopg.adapters.types.get_oid(f"{name}[]") for name in _ELEMENTS},
}


def _display(oid: int) -> str:
    """The name that psycopg has for a type in a result's description."""
    info = psycopg.adapters.types[oid]
    return info.name if info.oid == oid else f"{info.name}[]"


_SHOWN = {name.upper(): name for name in _OIDS} | {
    _display(oid).upper(): name for name, oid in _OIDS.items()
}
_MODIFIER = re.compile(r"\(\d+(?:,-?\d+)?\)")
_FIELDS = re.compile(r"interval (?:year|month|day|hour|minute|second)(?: to \w+)?")
_SIZED_ARRAY = re.compile(r"(?:character varying|bit|bit varying)\(\d+\)\[\]")

_KEEPING = AdaptersMap(psycopg.adapters)
for _oid in _OIDS.values():
    _KEEPING.register_loader(_oid, TextLoader)
for _kind, _dumper in DUMPERS:
    _KEEPING.register_dumper(_kind, _dumper)


def _oid_of(type_name: str) -> int | None:
    if _SIZED_ARRAY.fullmatch(type_name):
        return None
    return _OIDS.get(_MODIFIER.sub("", type_name))


def _shown_oid(type_name: str) -> int | None:
    """The type whose text a :class:`KeepingCursor` has, which is not always kept."""
    name = _FIELDS.sub("interval", _MODIFIER.sub("", type_name))
    return _OIDS.get(name)


def kept_name(shown: str) -> str:
    """Return the name of the type whose text a :class:`KeepingCursor` has for a result.

    ``shown`` is the type of a result's column; the name is empty if it has no text.
    """
    return _SHOWN.get(_MODIFIER.sub("", shown), "")


def is_kept(type_name: str) -> bool:
    """Whether values of a type are kept as text."""
    return _oid_of(type_name) is not None


def is_own(type_name: str) -> bool:
    """Whether a type, or that of an array's elements, is no type of PostgreSQL's own."""
    return "." in type_name and not type_name.startswith("pg_catalog.")


class KeepingCursor(psycopg.RawCursor[Row]):
    """A cursor for rows that the driver keeps."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._kept = AdaptersMap(_KEEPING)
        super().__init__(connection)

    @property
    @override
    def adapters(self) -> AdaptersMap:
        """How values are read."""
        return self._kept


@lru_cache(maxsize=4096)
def are_shown_otherwise(type_names: tuple[str, ...]) -> bool:
    """Whether values of some of the types are shown in another form than is kept."""
    return any(_shown_oid(type_name) is not None for type_name in type_names)


class Showing:
    """Converts rows that were kept to psycopg's values.

    ``context`` is psycopg's connection or cursor: its session's time zone counts.
    """

    def __init__(self, context: AdaptContext) -> None:
        self._loading = Transformer(context)
        self._loaders: dict[str, Callable[[Any], Any] | None] = {}

    def _loader(self, type_name: str) -> Callable[[Any], Any] | None:
        if type_name not in self._loaders:
            oid = _shown_oid(type_name)
            self._loaders[type_name] = (
                None if oid is None else self._loading.get_loader(oid, Format.TEXT).load
            )
        return self._loaders[type_name]

    def rows(self, type_names: Sequence[str], rows: list[Row]) -> list[Row]:
        """Return the rows, whose columns are of these types, with psycopg's values."""
        loaders = [
            (i, load)
            for i, name in enumerate(type_names)
            if (load := self._loader(name)) is not None
        ]
        if not loaders:
            return rows
        return [_shown(row, loaders) for row in rows]


def _shown(row: Row, loaders: Sequence[tuple[int, Callable[[Any], Any]]]) -> Row:
    values = list(row)
    for position, load in loaders:
        if values[position] is not None:
            values[position] = load(values[position].encode())
    return tuple(values)
