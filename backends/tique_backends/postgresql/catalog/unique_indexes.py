"""Unique indexes of PostgreSQL's tables that belong to no constraint, or to no plain one.

One on plain columns keeps duplicates out just as a UNIQUE constraint on them does, so that
certification has to know it as a key of the table. One on expressions, or with a condition,
is a key whose values the engine computes from the rows' columns: where the condition is not
true they are NULL, which is equal to nothing. So is a key with NULLS NOT DISTINCT, by a
constraint as well: its values are arrays, of which one of NULL is equal to another.

*No other equality (P3).* Values that an index calls equal have to be equal by their type's
own equality, and the reverse, for certification compares by that: no other operator class
than a constraint would have, and no collation by which different texts are equal. Equal
values of an expression need the same hash, for other processes know these.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tique_backends.catalog.keys import with_unique_indexes
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.names import quote
from tique_rewriter.schema import ComputedKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tique_backends.forms import Forms
    from tique_backends.records import Row
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_NO_FUNCTION = "42883"

_IS_OWN = """
NOT EXISTS (SELECT 1 FROM pg_catalog.pg_constraint AS k
  WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))"""

UNIQUE_INDEXES = f"""
SELECT n.nspname, t.relname, c.relname FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
JOIN pg_catalog.pg_class AS t ON t.oid = i.indrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
WHERE i.indisunique AND {_IS_OWN} AND n.nspname <> 'tique' AND n.nspname NOT LIKE 'pg\\_%'
ORDER BY 1, 2, 3"""
"""A query for schema, table and name of all there are."""

UNIQUE_OF_TABLES = f"""
SELECT i.indrelid, c.relname, (SELECT array_agg(i.indkey[n] ORDER BY n)
    FROM generate_series(0, i.indnkeyatts - 1) AS n),
  CASE WHEN i.indexprs IS NULL AND i.indpred IS NULL AND NOT i.indnullsnotdistinct
  THEN NULL ELSE
    (SELECT array_agg(pg_get_indexdef(i.indexrelid, n, FALSE) ORDER BY n)
      FROM generate_series(1, i.indnkeyatts) AS n) END,
  (SELECT array_agg(CASE WHEN i.indnullsnotdistinct THEN 'OPERATOR(pg_catalog.=)'
      ELSE 'OPERATOR(' || quote_ident(s.nspname) || '.' || o.oprname || ')' END ORDER BY n)
    FROM generate_series(0, i.indnkeyatts - 1) AS n
    JOIN pg_catalog.pg_opclass AS f ON f.oid = i.indclass[n]
    JOIN pg_catalog.pg_amop AS e ON e.amopfamily = f.opcfamily AND e.amopstrategy = 3
      AND e.amoplefttype = f.opcintype AND e.amoprighttype = f.opcintype
    JOIN pg_catalog.pg_operator AS o ON o.oid = e.amopopr
    JOIN pg_catalog.pg_namespace AS s ON s.oid = o.oprnamespace),
  pg_get_expr(i.indpred, i.indrelid), i.indnullsnotdistinct, NOT {_IS_OWN},
  ARRAY(SELECT d.refobjsubid FROM pg_catalog.pg_depend AS d
    WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = i.indexrelid
    AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = i.indrelid),
  CASE WHEN concat(i.indexprs, i.indpred) LIKE '%:varattno 0 %' THEN 'on whole rows'
  WHEN NOT i.indisvalid OR NOT i.indisready OR NOT i.indislive
    THEN 'that is not valid'
  WHEN NOT i.indimmediate THEN 'that is checked later'
  WHEN i.indnullsnotdistinct AND EXISTS (SELECT 1 FROM pg_catalog.pg_attribute AS a
    JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
    WHERE a.attrelid = i.indexrelid AND a.attnum <= i.indnkeyatts
    AND t.typcategory = 'A')
    THEN 'of arrays in which NULL is equal to NULL'
  WHEN EXISTS (SELECT 1 FROM pg_catalog.pg_collation AS l
    WHERE l.oid = ANY(CAST(i.indcollation AS OID[])) AND NOT l.collisdeterministic)
    THEN 'with a collation by which different texts are equal'
  WHEN EXISTS (SELECT 1 FROM generate_series(0, i.indnkeyatts - 1) AS n
    JOIN pg_catalog.pg_attribute AS a ON CASE i.indkey[n]
      WHEN 0 THEN a.attrelid = i.indexrelid AND a.attnum = n + 1
      ELSE a.attrelid = i.indrelid AND a.attnum = i.indkey[n] END
    CROSS JOIN LATERAL (
      WITH RECURSIVE base(oid, typtype, typbasetype) AS (
        SELECT t.oid, t.typtype, t.typbasetype FROM pg_catalog.pg_type AS t
        WHERE t.oid = a.atttypid
        UNION ALL SELECT t.oid, t.typtype, t.typbasetype FROM base
        JOIN pg_catalog.pg_type AS t ON t.oid = base.typbasetype
        WHERE base.typtype = 'd')
      SELECT oid FROM base WHERE typtype <> 'd') AS b
    JOIN pg_catalog.pg_opclass AS o ON o.oid = i.indclass[n]
    JOIN pg_catalog.pg_am AS m ON m.oid = o.opcmethod
    JOIN pg_catalog.pg_type AS t ON t.oid = o.opcintype
    WHERE m.amname <> 'btree' OR NOT o.opcdefault OR o.opcintype <> b.oid AND (
      t.typtype <> 'p' AND NOT t.typispreferred
      OR EXISTS (SELECT 1 FROM pg_catalog.pg_opclass AS e
        WHERE e.opcmethod = o.opcmethod AND e.opcdefault AND e.opcintype = b.oid)))
    THEN 'with an operator class other than the type''s own'
  END
FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
WHERE i.indrelid = ANY(CAST($1 AS OID[])) AND i.indisunique
AND (i.indnullsnotdistinct OR {_IS_OWN}) ORDER BY c.relname"""
"""A query for those of tables: table, name, numbers of the columns (0: an expression), the
texts of all parts if it is more than plain columns, their equality (of arrays, where NULL is
equal to NULL), the text of the condition, whether NULL is equal to NULL, whether the index is a constraint's, the numbers of the columns that it
depends on, and why it is no key."""


def with_keys(
    table: Table,
    rows: Iterable[Row],
    numbers: Mapping[int, int],
    refuse: Callable[[str], None],
) -> Table:
    """Return a table with its unique indexes as keys.

    ``rows`` are the table's of :data:`UNIQUE_OF_TABLES`, and ``numbers`` are the positions
    of the columns by PostgreSQL's. ``refuse`` is called for an index that is no key; if it
    returns, that is left out.
    """
    plain: dict[tuple[int, ...], str] = {}
    computed = []
    for index, columns, texts, equalities, condition, *others in rows:
        nulls_equal, constraint, needed, why = others
        if why is not None:
            refuse(f"has a unique index {why}, {index}")
        elif not numbers.keys() >= {*columns, *needed} - {0}:
            refuse(f"has a unique index with a generated column, {index}")
        elif texts is None:
            plain.setdefault(tuple([numbers[i] for i in columns]), index)
        else:
            # What a constraint's index depends on, the constraint does.
            used = {*columns, *needed} - {0}
            positions = tuple(sorted(numbers[i] for i in used))
            computed.append(
                ComputedKey(
                    index,
                    tuple(texts),
                    tuple(equalities),
                    positions,
                    condition,
                    nulls_equal,
                    constraint,
                )
            )
    return replace(with_unique_indexes(table, plain), computed_keys=tuple(computed))


def expect_hashes(session: Session, forms: Forms, table: Table) -> None:
    """Refuse a table with an index whose values have no hash.

    Raises
    ------
    EngineError
        UNSUPPORTED, naming the index.
    """
    row = ", ".join(
        f"CAST(NULL AS {column.type}) AS {quote(column.name)}"
        for column in table.columns
    )
    for key in table.computed_keys:
        try:
            session.execute(
                f"SELECT {forms.hashed(key.texts)} FROM (SELECT {row}) AS _row"
            ).fetch_all()
        except EngineError as error:
            if error.sqlstate != _NO_FUNCTION:
                raise
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                f"table {table.qualified_name} has a unique index of values without a "
                f"hash, {key.name}",
            ) from error
