"""Unique indexes of PostgreSQL's tables, which belong to no constraint.

One on plain columns keeps duplicates out just as a UNIQUE constraint on them does, so that
certification has to know it as a key of the table. *No other equality (P3).* Rows that an
index calls equal have to be equal by the columns' own equality, and the reverse, for
certification compares by that: no other operator class or collation than a constraint
would have, no condition, no expression, and NULL is not equal to NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tique_backends.records import Row

_OTHERS = """
i.indisunique AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_constraint AS k
  WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))"""

UNIQUE_INDEXES = f"""
SELECT n.nspname, t.relname, c.relname FROM pg_catalog.pg_index AS i
JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
JOIN pg_catalog.pg_class AS t ON t.oid = i.indrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
WHERE {_OTHERS} AND n.nspname <> 'tique' AND n.nspname NOT LIKE 'pg\\_%'
ORDER BY 1, 2, 3"""
"""A query for schema, table and name of all there are."""

UNIQUE_OF_TABLES = f"""
SELECT i.indrelid, c.relname, (SELECT array_agg(i.indkey[n] ORDER BY n)
    FROM generate_series(0, i.indnkeyatts - 1) AS n),
  CASE WHEN i.indexprs IS NOT NULL THEN 'on an expression'
  WHEN i.indpred IS NOT NULL THEN 'with a condition'
  WHEN NOT i.indisvalid OR NOT i.indisready OR NOT i.indislive
    THEN 'that is not valid'
  WHEN NOT i.indimmediate THEN 'that is checked later'
  WHEN i.indnullsnotdistinct THEN 'in which NULL is equal to NULL'
  WHEN EXISTS (SELECT 1 FROM generate_series(0, i.indnkeyatts - 1) AS n
    JOIN pg_catalog.pg_attribute AS a
      ON a.attrelid = i.indrelid AND a.attnum = i.indkey[n]
    WHERE i.indcollation[n] <> a.attcollation) THEN 'with another collation'
  WHEN EXISTS (SELECT 1 FROM generate_series(0, i.indnkeyatts - 1) AS n
    JOIN pg_catalog.pg_attribute AS a
      ON a.attrelid = i.indrelid AND a.attnum = i.indkey[n]
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
WHERE i.indrelid = ANY(CAST($1 AS OID[])) AND {_OTHERS} ORDER BY c.relname"""
"""A query for those of tables: table, name, numbers of the columns, and why it is no key."""


def unique_indexes(
    rows: Iterable[Row], numbers: Mapping[int, int], refuse: Callable[[str], None]
) -> dict[tuple[int, ...], str]:
    """Return a table's unique indexes: the name of one by the positions of its columns.

    ``rows`` are the table's of :data:`UNIQUE_OF_TABLES`, and ``numbers`` are the positions
    of the columns by PostgreSQL's. ``refuse`` is called for an index that is no key; if it
    returns, that is left out.
    """
    found: dict[tuple[int, ...], str] = {}
    for index, columns, why in rows:
        if why is not None:
            refuse(
                f"has a unique index {why}, {index}; certification takes plain columns"
            )
        elif not numbers.keys() >= set(columns):
            refuse(f"has a unique index with a generated column, {index}")
        else:
            found.setdefault(tuple([numbers[i] for i in columns]), index)
    return found
