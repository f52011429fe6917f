"""Tables' schemas, read from PostgreSQL's catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_backends.catalog.foreign_keys import Declared
from tique_backends.catalog.relations import Relations, expect_free
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.names import storage_name
from tique_backends.postgresql.catalog.paths import without_path
from tique_backends.postgresql.catalog.unique_indexes import UNIQUE_OF_TABLES, with_keys
from tique_backends.postgresql.values.bounds import INDEX_SHAPES, Stored, bounds
from tique_backends.postgresql.values.text_values import HELD, is_own
from tique_backends.postgresql.values.types import type_name
from tique_rewriter.schema import Action, Check, Column, Generated, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tique_backends.records import Row
    from tique_backends.session import Session

USER_TABLES = """
SELECT n.nspname, c.relname
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'm') AND c.relpersistence <> 't' AND NOT c.relispartition
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'tique')
  AND n.nspname NOT LIKE 'pg\\_%'
ORDER BY 1, 2"""

_CANDIDATES = """
SELECT w.number, c.oid, n.nspname, c.relname, c.relkind::TEXT, c.relpersistence::TEXT,
  c.relispartition, c.relhassubclass, c.relrowsecurity,
  EXISTS (SELECT 1 FROM pg_catalog.pg_inherits AS i WHERE i.inhrelid = c.oid)
FROM unnest(CAST($1 AS TEXT[]), CAST($2 AS TEXT[]))
  WITH ORDINALITY AS w(schema_name, table_name, number)
JOIN pg_catalog.pg_namespace AS n ON lower(n.nspname) = lower(w.schema_name)
JOIN pg_catalog.pg_class AS c
  ON c.relnamespace = n.oid AND lower(c.relname) = lower(w.table_name)
WHERE c.relkind NOT IN ('i', 'I', 'c', 't') AND n.nspname <> 'tique'
  AND n.nspname NOT LIKE 'pg\\_%'
ORDER BY w.number, CASE WHEN n.nspname = w.schema_name AND c.relname = w.table_name
  THEN 0 ELSE 1 END, n.nspname, c.relname"""

_COLUMNS = """
SELECT a.attrelid, a.attname, a.attnum, u.oid::BIGINT, u.modifier,
  format_type(u.oid, u.modifier),
  a.attnotnull, coalesce(pg_get_expr(d.adbin, d.adrelid), CASE t.typtype WHEN 'd' THEN t.typdefault END),
  a.attidentity::TEXT,
  a.attgenerated::TEXT, a.attlen, a.attstorage::TEXT, t.typtype::TEXT,
  CASE WHEN a.attcollation <> t.typcollation OR a.attgenerated <> '' THEN quote_ident(v.nspname) || '.' || quote_ident(l.collname) END,
  coalesce(l.collisdeterministic, TRUE),
  CASE WHEN has_schema_privilege(n.oid, 'USAGE') THEN
    pg_get_serial_sequence(quote_ident(n.nspname) || '.' || quote_ident(c.relname), a.attname) END,
  coalesce(u.equality, 'OPERATOR(pg_catalog.=)'),
  CASE t.typtype WHEN 'd' THEN format_type(t.oid, NULL) END,
  {held},
  t.typtype = 'e'
FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
CROSS JOIN LATERAL (WITH RECURSIVE below(oid, modifier) AS (
    SELECT a.atttypid, a.atttypmod UNION ALL
    SELECT b.typbasetype, b.typtypmod FROM below
    JOIN pg_catalog.pg_type AS b ON b.oid = below.oid WHERE b.typtype = 'd')
  SELECT below.*, CASE b.typcategory WHEN 'A' THEN b.typelem ELSE b.oid END AS element,
    (SELECT 'OPERATOR(' || quote_ident(m.nspname) || '.' || o.oprname || ')'
      FROM pg_catalog.pg_opclass AS f
      JOIN pg_catalog.pg_am AS h ON h.oid = f.opcmethod AND h.amname = 'btree'
      JOIN pg_catalog.pg_amop AS e ON e.amopfamily = f.opcfamily AND e.amopstrategy = 3
        AND e.amoplefttype = b.oid AND e.amoprighttype = b.oid
      JOIN pg_catalog.pg_operator AS o ON o.oid = e.amopopr
      JOIN pg_catalog.pg_namespace AS m ON m.oid = o.oprnamespace
      WHERE f.opcintype = b.oid AND f.opcdefault) AS equality
  FROM below
  JOIN pg_catalog.pg_type AS b ON b.oid = below.oid WHERE b.typtype <> 'd' LIMIT 1) AS u
JOIN pg_catalog.pg_type AS e ON e.oid = u.element
JOIN pg_catalog.pg_class AS c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg_catalog.pg_collation AS l ON l.oid = a.attcollation
LEFT JOIN pg_catalog.pg_namespace AS v ON v.oid = l.collnamespace
WHERE a.attrelid = ANY(CAST($1 AS OID[])) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum""".replace("{held}", HELD)

_CUTTING_DOMAINS = """
WITH RECURSIVE below(base, modifier) AS (
  SELECT t.typbasetype, t.typtypmod FROM pg_catalog.pg_attribute AS a
  JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
  WHERE a.attrelid = $1 AND t.typtype = 'd' AND a.attnum = $2
  UNION ALL SELECT t.typbasetype, t.typtypmod FROM below
  JOIN pg_catalog.pg_type AS t ON t.oid = below.base WHERE t.typtype = 'd')
SELECT 1 FROM below JOIN pg_catalog.pg_type AS t ON t.oid = below.base
WHERE below.modifier >= 0
  AND t.typname IN ('varchar', 'bpchar', 'bit', 'varbit', '_varchar', '_bpchar', '_bit', '_varbit')"""
"""Whether a column's domain is of a type whose casts cut values, which assignments do not."""

_CONSTRAINTS = """
SELECT conrelid, contype::TEXT, conname, conkey, pg_get_expr(conbin, conrelid), condeferrable,
  convalidated, to_json(k)->>'conenforced' IS DISTINCT FROM 'false',
  EXISTS (SELECT 1 FROM pg_catalog.pg_index AS i
    WHERE i.indexrelid = conindid AND i.indisexclusion)
FROM pg_catalog.pg_constraint AS k WHERE conrelid = ANY(CAST($1 AS OID[]))
AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_index AS i
  WHERE i.indexrelid = conindid AND contype = 'u' AND i.indnullsnotdistinct)
ORDER BY oid"""
"""A query for those of tables but the keys in which NULL is equal to NULL."""

_REFERENCING = """
SELECT DISTINCT n.nspname, c.relname FROM pg_catalog.pg_constraint AS k
JOIN pg_catalog.pg_class AS c ON c.oid = k.conrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE k.confrelid = $1::regclass AND k.contype = 'f' ORDER BY 1, 2"""

_FOREIGN_KEYS = """
SELECT k.conname, n.nspname, c.relname, k.confdeltype::TEXT, k.confupdtype::TEXT,
  k.confmatchtype::TEXT, k.condeferrable, k.condeferred, k.convalidated,
  coalesce(cardinality(k.confdelsetcols), 0),
  (SELECT array_agg(a.attname::TEXT ORDER BY p.n)
    FROM unnest(k.conkey) WITH ORDINALITY AS p(i, n)
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = p.i),
  (SELECT array_agg(a.attname::TEXT ORDER BY p.n)
    FROM unnest(k.confkey) WITH ORDINALITY AS p(i, n)
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.confrelid AND a.attnum = p.i)
FROM pg_catalog.pg_constraint AS k
JOIN pg_catalog.pg_class AS c ON c.oid = k.confrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE k.conrelid = $1::regclass AND k.contype = 'f' ORDER BY k.oid"""

_ACTIONS = {
    "a": Action.NO_ACTION,
    "r": Action.RESTRICT,
    "c": Action.CASCADE,
    "n": Action.SET_NULL,
    "d": Action.SET_DEFAULT,
}

_TRIGGERS = """
SELECT tgrelid, tgname FROM pg_catalog.pg_trigger
WHERE tgrelid = ANY(CAST($1 AS OID[])) AND NOT tgisinternal
UNION ALL SELECT ev_class, rulename FROM pg_catalog.pg_rewrite
WHERE ev_class = ANY(CAST($1 AS OID[]))"""

_KINDS = {
    "v": "a view",
    "f": "a foreign table",
    "S": "a sequence",
    "p": "partitioned: its rows live in its partitions",
}


OF_TYPE = """
WITH RECURSIVE used(oid) AS (
  SELECT t.oid FROM pg_catalog.pg_type AS t WHERE lower(t.typname) = lower($1)
  UNION SELECT t.oid FROM used AS u, pg_catalog.pg_type AS t
  WHERE t.typelem = u.oid OR t.typbasetype = u.oid
    OR EXISTS (SELECT 1 FROM pg_catalog.pg_range AS r
      WHERE r.rngsubtype = u.oid AND t.oid IN (r.rngtypid, r.rngmultitypid))
    OR EXISTS (SELECT 1 FROM pg_catalog.pg_attribute AS a
      WHERE a.attrelid = t.typrelid AND a.atttypid = u.oid AND NOT a.attisdropped))
SELECT DISTINCT n.nspname, c.relname FROM pg_catalog.pg_attribute AS a
JOIN pg_catalog.pg_class AS c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE a.atttypid IN (SELECT oid FROM used) AND NOT a.attisdropped
  AND c.relkind IN ('r', 'p', 'm', 'f') AND n.nspname <> 'tique'
  AND NOT (c.relpersistence = 't' AND c.relname LIKE 'tique\\_stage\\_%') ORDER BY 1, 2"""
"""A query for the tables that have columns of a type of a name, however deep in others."""

OWNED_SEQUENCES = """
SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) FROM pg_catalog.pg_depend AS d
JOIN pg_catalog.pg_class AS c ON c.oid = d.objid AND c.relkind = 'S'
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.deptype IN ('a', 'i')
  AND d.refclassid = 'pg_catalog.pg_class'::regclass
  AND d.refobjid = CAST($1 AS regclass) AND d.refobjsubid > 0 ORDER BY 1"""
"""A query for the sequences that belong to a table's columns: SERIAL, IDENTITY, OWNED BY."""

LAYOUTS = """
SELECT c.relname, a.attname FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
WHERE c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'tique')
  AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY c.oid, a.attnum"""
"""A query for the columns of tique's tables: table and column name, in order."""


class Descriptions:
    """The schemas of some tables.

    Parameters
    ----------
    session
        The session to ask over.
    names
        Schema and name of each table; they are matched without regard to case.
    """

    def __init__(self, session: Session, names: Sequence[tuple[str, str]]) -> None:
        self._session = session
        found = session.execute(
            _CANDIDATES, [[name[n] for name in names] for n in range(2)]
        ).fetch_all()
        self._candidates: dict[tuple[str, str], Row] = {}
        for number, *candidate in found:
            self._candidates.setdefault(names[number - 1], tuple(candidate))
        numbers = [candidate[0] for candidate in self._candidates.values()]
        self._relations = Relations(session, [numbers])

    def describe(self, schema: str, name: str, table_id: int = 0) -> Table:
        """Return the schema of one of the tables.

        Raises
        ------
        EngineError
            PROGRAMMING if there is no such table, UNSUPPORTED if it has something
            whose promises tique cannot keep.
        """
        found = self._candidates.get((schema, name))
        if found is None:
            raise EngineError(
                ErrorKind.PROGRAMMING, f"there is no table {schema}.{name}", "42P01"
            )
        return _described(self._session, self._relations.rows, found, table_id)


def describe(session: Session, schema: str, name: str, table_id: int = 0) -> Table:
    """Read one table's schema, as :meth:`Descriptions.describe` does."""
    with without_path(session):
        return Descriptions(session, [(schema, name)]).describe(schema, name, table_id)


def _described(
    session: Session,
    ask: Callable[..., list[Row]],
    found: Row,
    table_id: int,
) -> Table:
    number, schema, name, kind, persistence, is_part, has_parts, has_policies, heir = (
        found
    )
    label = f"{schema}.{name}"

    def refuse(what: str) -> EngineError:
        return EngineError(ErrorKind.UNSUPPORTED, f"table {label} {what}")

    def refuse_new(what: str) -> None:
        # The owner of a managed table may add it at any time, and must not keep other
        # roles from opening the database (P6, P11). The engine applies it when versions
        # are folded, or the fold is refused: that stops at this table, and is in the
        # status.
        if not table_id:
            raise refuse(what)

    is_materialized = kind == "m"
    if kind in _KINDS:
        raise refuse(f"is {_KINDS[kind]}")
    if is_part:
        raise refuse("is a partition of another table")
    if has_parts or heir:
        raise refuse("inherits from another table, or another one from it")
    if persistence != "p":
        raise refuse("is temporary or unlogged: its rows would not survive a crash")
    if has_policies:
        raise refuse("has row-level security, which its versions would not have")
    columns: list[Column] = []
    stored: list[Stored] = []
    numbers: dict[int, int] = {}
    computed: list[Generated] = []
    computed_sizes: list[tuple[Column, Stored]] = []
    for row in ask(_COLUMNS, number):
        column, attribute, oid, modifier, display, not_null, default = row[:7]
        identity, generated, length, storage, type_kind, collation, *others = row[7:]
        is_deterministic, sequence, equality, domain, is_held, is_named = others
        expect_free(label, column)
        if identity:
            default = f"nextval('{sequence}'::regclass)"
        if type_kind == "p":
            raise refuse(f"has a column of a pseudo-type, {column!r}")
        if not is_deterministic:
            # Here values are equal if their bytes are (P3, P9).
            raise refuse(
                f"has a column with a collation by which different texts are equal, "
                f"{column!r}"
            )
        sought = [number, attribute]
        if type_kind == "d" and session.execute(_CUTTING_DOMAINS, sought).fetch_all():
            refuse_new(f"has a column of a domain with a length, {column!r}")
        if generated == "v":
            raise refuse(f"has a virtual column, {column!r}; write STORED")
        if generated:
            place = len(columns) + len(computed)
            kind = type_name(oid, modifier, display)
            computed.append(
                Generated(column, kind, default, place, collation, not_null)
            )
            computed_sizes.append((Column(column, kind), Stored(length, storage)))
            continue
        numbers[attribute] = len(columns)
        stored.append(Stored(length, storage))
        columns.append(
            Column(
                column,
                type_name(oid, modifier, display),
                not_null,
                default,
                is_always=identity == "a",
                collation=collation,
                equality=equality,
                domain=domain,
                is_opaque=is_own(display) and not is_held,
                is_named=is_named,
            )
        )
    if not columns:
        raise refuse("has no columns")
    if is_materialized:
        # Nothing is folded to it: no key and no index of it concerns a version.
        return Table(schema, name, tuple(columns), id=table_id, is_materialized=True)
    if triggers := ask(_TRIGGERS, number):
        # A fold would set it off, long after the commit and for several at once.
        refuse_new(f"has a trigger or a rule, {triggers[0][0]}")
    primary: tuple[int, ...] = ()
    unique: list[tuple[int, ...]] = []
    key_names: list[tuple[str, tuple[int, ...]]] = []
    checks: list[Check] = []
    for row in ask(_CONSTRAINTS, number):
        kind, constraint, key, expression, deferrable, is_valid, holds, excludes = row
        if kind == "f":
            # The caller takes it over, or has done so.
            continue
        if deferrable:
            refuse_new(f"has a deferrable constraint, {constraint}")
        if excludes:
            # From release 18 on, a key may exclude overlapping values.
            refuse_new(f"has a constraint of a kind tique cannot keep ({constraint})")
        if kind in ("p", "u") and not numbers.keys() >= set(key):
            raise refuse(f"has a key with a generated column, {constraint}")
        if kind in ("p", "u"):
            key_names.append((constraint, tuple(numbers[i] for i in key)))
        if kind == "p":
            primary = tuple(numbers[i] for i in key)
        elif kind == "u":
            unique.append(tuple(numbers[i] for i in key))
        elif kind not in ("c", "n") or not is_valid:
            refuse_new(f"has a constraint of a kind tique cannot keep ({constraint})")
        if kind == "c" and holds:
            checks.append(Check(expression, constraint))
    table = Table(
        schema,
        name,
        tuple(columns),
        primary,
        tuple(unique),
        tuple(checks),
        table_id,
        bounds(columns, stored, numbers, ask(INDEX_SHAPES, number), computed_sizes),
        key_names=tuple(key_names),
        generated=tuple(computed),
    )
    return with_keys(table, ask(UNIQUE_OF_TABLES, number), numbers, refuse_new)


def foreign_keys(session: Session, table: Table) -> list[Declared]:
    """The FOREIGN KEY constraints that PostgreSQL has on a table.

    Raises
    ------
    EngineError
        UNSUPPORTED if one is of a kind that tique cannot keep.
    """
    found = []
    for row in session.execute(_FOREIGN_KEYS, [storage_name(table)]).fetch_all():
        name, schema, parent, on_delete, on_update, match, *others = row
        deferrable, is_deferred, is_valid, some_columns, columns, key = others
        what = ""
        if match != "s":
            what = "MATCH FULL"
        elif some_columns:
            what = "SET NULL or SET DEFAULT with a list of columns"
        elif deferrable and not is_deferred:
            what = "DEFERRABLE INITIALLY IMMEDIATE"
        elif not is_valid:
            what = "NOT VALID"
        if what:
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                f"table {table.qualified_name} has a FOREIGN KEY constraint ({name}) "
                f"with {what}",
            )
        found.append(
            Declared(
                name,
                columns,
                (schema, parent),
                key,
                _ACTIONS[on_delete],
                _ACTIONS[on_update],
                is_deferred,
            )
        )
    return found


def referencing_tables(session: Session, table: Table) -> list[Row]:
    """Schema and name of each table with a constraint that references this one."""
    return session.execute(_REFERENCING, [storage_name(table)]).fetch_all()
