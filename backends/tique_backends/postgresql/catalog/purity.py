"""Whether storage's constraints and indexes depend on nothing but the row (P4).

A row is checked when it is written, and by the storage table's constraints and indexes
once more when it is folded, in another session and perhaps much later: the second
result has to equal the first. PostgreSQL itself decides whether an expression is a
function of the row alone, as it does for the condition of an index: functions,
operators, conversions and their types' input and output have to be immutable, and
system columns are none of the row's. The constraint is put there, on an empty temporary
table.

IMMUTABLE is a claim of a function's author. PostgreSQL and the authors of extensions
are believed; a function of the application's may read other tables, and may be
replaced.

*Users' code (P11).* To plan a statement on a table computes constants in its indexes and
statistics. So nothing is planned, and no constraint is tried, before the catalog has said
that none of them is another role's code.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.names import column_list, storage_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.records import Row
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_CONSTRAINTS = """
WITH RECURSIVE _types(oid) AS (
  SELECT atttypid FROM pg_catalog.pg_attribute
  WHERE attrelid = CAST($1 AS regclass) AND attnum > 0 AND NOT attisdropped
  UNION SELECT p.oid FROM _types AS s JOIN pg_catalog.pg_type AS t ON t.oid = s.oid
  CROSS JOIN LATERAL (
    SELECT t.typelem UNION ALL SELECT t.typbasetype
    UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range AS r
      WHERE t.oid IN (r.rngtypid, r.rngmultitypid)
    UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute AS a
      WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
  ) AS p(oid) WHERE p.oid <> 0
)
SELECT 'generated column ' || a.attname, '(' || pg_get_expr(d.adbin, d.adrelid)
  || ') IS NULL', d.adbin::TEXT, NULL::TEXT
FROM pg_catalog.pg_attribute AS a
JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = CAST($1 AS regclass) AND a.attgenerated <> '' AND NOT a.attisdropped
UNION ALL
SELECT 'CHECK constraint ' || conname, pg_get_expr(conbin, conrelid), conbin::TEXT,
  NULL::TEXT
FROM pg_catalog.pg_constraint
WHERE conrelid = CAST($1 AS regclass) AND contype = 'c'
UNION ALL
SELECT 'CHECK constraint ' || c.conname || ' of domain ' || format_type(t.oid, NULL),
  pg_get_expr(c.conbin, 0), c.conbin::TEXT, format_type(t.typbasetype, t.typtypmod)
FROM pg_catalog.pg_constraint AS c JOIN pg_catalog.pg_type AS t ON t.oid = c.contypid
WHERE c.contypid IN (SELECT oid FROM _types) AND c.contype = 'c'"""

_INDEXES = """
SELECT 'index ' || c.relname, m.amname,
  coalesce(i.indexprs::TEXT, '') || coalesce(i.indpred::TEXT, ''),
  (SELECT string_agg(p.opcname, ', ') FROM pg_catalog.pg_opclass AS p
   WHERE p.oid = ANY (i.indclass::OID[]) AND p.oid >= 16384 AND NOT EXISTS (
     SELECT FROM pg_catalog.pg_depend AS d WHERE d.objid = p.oid AND d.deptype = 'e'
     AND d.classid = 'pg_catalog.pg_opclass'::regclass)),
  CASE m.amname WHEN 'btree' THEN (
    SELECT string_agg(pg_get_indexdef(i.indexrelid, _n, FALSE), ', ')
    FROM generate_series(1, i.indnkeyatts) AS _n) END
FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
JOIN pg_catalog.pg_am AS m ON m.oid = c.relam
WHERE i.indrelid = CAST($1 AS regclass) ORDER BY c.relname"""

_FUNCTIONS = """
SELECT p.oid::regprocedure::TEXT, p.provolatile <> 'i', p.oid >= 16384 AND NOT EXISTS (
  SELECT FROM pg_catalog.pg_depend AS d WHERE d.objid = p.oid AND d.deptype = 'e'
  AND d.classid = 'pg_catalog.pg_proc'::regclass)
FROM pg_catalog.pg_proc AS p WHERE p.oid = ANY (CAST($1 AS OID[])) OR p.oid IN (
  SELECT oprcode FROM pg_catalog.pg_operator WHERE oid = ANY (CAST($2 AS OID[])))
ORDER BY 1"""

_CONVERSIONS = """
SELECT format_type(t.oid, NULL) FROM pg_catalog.pg_type AS t
JOIN pg_catalog.pg_proc AS p ON p.oid IN (t.typinput, t.typoutput)
WHERE t.oid = ANY (CAST($1 AS OID[])) AND p.provolatile <> 'i' ORDER BY 1"""

_STRANGE = """
SELECT what FROM pg_catalog.pg_class AS c, tique.guest_strange(c.oid) AS what
WHERE c.oid = CAST($1 AS regclass) AND c.relpersistence <> 't' AND what IS NOT NULL"""

_ROW_ALONE = "it must depend on the row alone, because storage checks it again long after the commit"

_NO_OPERATOR = "42883"

_METHODS = frozenset({"btree", "hash", "gin", "gist", "spgist", "brin"})

_PROBE = "pg_temp.tique_probe"

# Patterns in the text of a parsed expression.
_FUNCTION = re.compile(r":(?:opfuncid|funcid|hashfuncid|negfuncid|aggfnoid) ([1-9]\d*)")
_OPERATOR = re.compile(r":opno (\d+)|:opnos \(o ([\d ]+)\)")
_SYSTEM_COLUMN = re.compile(r":varattno (-\d+)")
_TYPE = re.compile(r":\w*type (\d+)")
_KEYWORD = re.compile(r"\{SQLVALUEFUNCTION :op (\d+)")
_SYSTEM_COLUMNS = {-1: "ctid", -2: "xmin", -3: "cmin", -4: "xmax", -5: "cmax"}
_TABLE_OID = "tableoid"
_KEYWORDS = (
    *("current_date", "current_time", "current_time", "current_timestamp"),
    *("current_timestamp", "localtime", "localtime", "localtimestamp"),
    *("localtimestamp", "current_role", "current_user", "user", "session_user"),
    *("current_catalog", "current_schema"),
)


class _Constraint(NamedTuple):
    label: str
    text: str
    tree: str
    domain_base: str | None
    """The type of VALUE, in a domain's."""


def check_definition(session: Session, table: Table) -> None:
    """Refuse a table whose constraints or indexes depend on more than its rows.

    Raises
    ------
    EngineError
        UNSUPPORTED, naming the constraint or index, and the function.
    """
    place = storage_name(table)
    rows = session.execute(_CONSTRAINTS, [place]).fetch_all()
    constraints = [_Constraint(*row) for row in rows]
    for constraint in constraints:
        reason = _foreign(session, constraint.tree)
        if reason is not None:
            raise _refusal(table, f"{constraint.label} {reason}; {_ROW_ALONE}")
    indexes = session.execute(_INDEXES, [place]).fetch_all()
    for index in indexes:
        _check_index(session, table, index)
    for (strange,) in session.execute(_STRANGE, [place]).fetch_all():
        for constraint in constraints:
            reason = _dependency(session, constraint.tree)
            if reason is not None:
                raise _refusal(table, f"{constraint.label} {reason}; {_ROW_ALONE}")
        raise _refusal(
            table,
            f"{strange} is neither PostgreSQL's own nor an extension's, and work of "
            "tique's own on the table would run it; drop it, or what calls it",
        )
    for constraint in constraints:
        reason = _impurity(session, table, constraint)
        if reason is not None:
            raise _refusal(table, f"{constraint.label} {reason}; {_ROW_ALONE}")
    for label, _, _, _, key in indexes:
        if key is not None:
            _expect_order(session, table, label, key)
    if table.is_keyless and not table.id:
        _expect_equality(session, table)


def _refusal(table: Table, what: str) -> EngineError:
    return EngineError(ErrorKind.UNSUPPORTED, f"table {table.qualified_name}: {what}")


def _check_index(session: Session, table: Table, row: Row) -> None:
    label, method, trees, classes, _ = row
    if method not in _METHODS:
        raise _refusal(
            table,
            f"{label} is of the kind {method}: which rows that takes is not known, and "
            "it is asked long after the commit",
        )
    if classes:
        raise _refusal(
            table,
            f"{label} is ordered by an operator class of your own, {classes}, which may "
            "give another answer long after the commit",
        )
    reason = _foreign(session, trees)
    if reason is not None:
        raise _refusal(
            table,
            f"{label} {reason}; it must depend on the row alone, because it takes the "
            "row long after the commit",
        )


def _expect_order(session: Session, table: Table, label: str, key: str) -> None:
    # Arrays and rows of types without an order fail with the second value only.
    try:
        session.execute(f"EXPLAIN SELECT FROM {storage_name(table)} ORDER BY {key}")
    except EngineError as error:
        raise _refusal(table, f"{label} would take one row only: {error}") from error


def _expect_equality(session: Session, table: Table) -> None:
    rows = f"SELECT {column_list(table)} FROM {storage_name(table)}"
    try:
        session.execute(f"EXPLAIN {rows} EXCEPT ALL {rows}").fetch_all()
    except EngineError as error:
        if error.sqlstate != _NO_OPERATOR:
            raise
        raise EngineError(
            ErrorKind.UNSUPPORTED,
            f"table {table.qualified_name} has no PRIMARY KEY, and nothing else tells "
            f"its rows apart: {error}",
        ) from error


def _numbers(found: Sequence[str | tuple[str, ...]]) -> str:
    """Return the numbers that a pattern found, as an array's text."""
    parts = [part for item in found for part in ([item] if type(item) is str else item)]
    return "{" + ",".join(",".join(parts).replace(",", " ").split()) + "}"


def _called(session: Session, tree: str) -> list[Row]:
    """The functions that are called: names, whether they are mutable, and foreign."""
    return session.execute(
        _FUNCTIONS,
        [_numbers(_FUNCTION.findall(tree)), _numbers(_OPERATOR.findall(tree))],
    ).fetch_all()


def _foreign(session: Session, tree: str) -> str | None:
    """Return an expression's part that is not PostgreSQL's own, if there is one."""
    if not tree:
        return None
    for name, _, is_foreign in _called(session, tree):
        if is_foreign:
            return (
                f"calls {name}, which is neither PostgreSQL's own nor an extension's: "
                "the data that it reads are not known, whatever it is declared to be"
            )
    if "{COERCETODOMAIN " in tree:
        return "converts to a domain, which may change"
    if "{XMLEXPR " in tree:
        return "makes XML, which depends on settings of the session"
    return None


def _impurity(session: Session, table: Table, constraint: _Constraint) -> str | None:
    """Return a constraint's dependency other than the row; None if there is none."""
    # A refusal ends the transaction around it.
    culprit = _culprit(session, constraint.tree)
    shape = f"value {constraint.domain_base}"
    if constraint.domain_base is None:
        shape = f"LIKE {storage_name(table)}"
    session.execute(f"DROP TABLE IF EXISTS {_PROBE}")
    session.execute(f"CREATE TEMPORARY TABLE {_PROBE.partition('.')[2]} ({shape})")
    try:
        session.execute(f"CREATE INDEX ON {_PROBE} ((1)) WHERE {constraint.text}")
    except EngineError as error:
        return culprit or f"cannot be examined: {error}"
    session.execute(f"DROP TABLE {_PROBE}")
    return None


def _dependency(session: Session, tree: str) -> str | None:
    """Return an expression's part that depends on more than the row, by the catalog."""
    for number in map(int, _SYSTEM_COLUMN.findall(tree)):
        return f"looks at {_SYSTEM_COLUMNS.get(number, _TABLE_OID)}"
    for number in map(int, _KEYWORD.findall(tree)):
        return f"calls {_KEYWORDS[number]}"
    for name, is_mutable, _ in _called(session, tree):
        if is_mutable:
            return f"calls {name}, which is not immutable"
    return None


def _culprit(session: Session, tree: str) -> str | None:
    """How an expression that PostgreSQL refuses may depend on more than the row."""
    reason = _dependency(session, tree)
    if reason is not None:
        return reason
    types = session.execute(_CONVERSIONS, [_numbers(_TYPE.findall(tree))]).fetch_all()
    if types:
        return f"converts {types[0][0]} from or to text, as settings of the session say"
    return None
