"""Rows that storage may be too small for: an index's row, or the row itself.

How large they become depends on how well PostgreSQL compresses the values, so only the
server can tell (SQLSTATE 54000); and an index on an expression, or with a condition, may
fail for any row. But a row of little text passes in any case. :func:`bounds` says for a
table, once, which rows may not; none where no value of the indexed columns can be long.
For the others the session's staging table gets the storage table's indexes
(:data:`INDEXES`), none of them unique, and takes or refuses each row as storage would.

*The second answer is the first (P4).* A B-tree, hash or GIN index takes a value or not
whatever else it holds, and values in the staging table are compressed as in storage. The
inner rows of GiST and SP-GiST over ranges, and BRIN's summaries, are made of two rows'
values: the staging table has a CHECK in their place, that the text of the values is short
enough for a page to hold it twice. A longer one is refused, though PostgreSQL might take
it; one that it has taken before can be deleted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from tique_backends.postgresql.values.types import is_number, is_text
from tique_rewriter.schema import Bound

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique_backends.records import Row
    from tique_rewriter.schema import Column

INDEX_SHAPES = """
SELECT i.indrelid, m.amname, i.indexprs IS NOT NULL OR i.indpred IS NOT NULL,
  ARRAY(SELECT k FROM unnest(CAST(i.indkey AS SMALLINT[])) AS k),
  ARRAY(SELECT CAST(p.opcname AS TEXT)
    FROM unnest(CAST(i.indclass AS OID[])) WITH ORDINALITY AS o(oid, n)
    JOIN pg_catalog.pg_opclass AS p ON p.oid = o.oid ORDER BY o.n),
  ARRAY(SELECT d.refobjsubid FROM pg_catalog.pg_depend AS d
    WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = i.indexrelid
    AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = i.indrelid)
FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
JOIN pg_catalog.pg_am AS m ON m.oid = c.relam
WHERE i.indrelid = ANY(CAST($1 AS OID[])) ORDER BY i.indexrelid"""
"""A query for the properties of tables' indexes that :func:`bounds` needs, after the table."""

INDEXES = r"""
SELECT '_i' || i.indexrelid, CAST(c.relname AS TEXT), CASE WHEN k.length IS NULL
  THEN substr(pg_get_indexdef(i.indexrelid), length(format('CREATE %sINDEX %I ON %I.%I ',
    CASE WHEN i.indisunique THEN 'UNIQUE ' ELSE '' END, c.relname, n.nspname,
    t.relname)) + 1) END,
  '_deleted OR ' || k.length || ' <= 2700'
FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
JOIN pg_catalog.pg_am AS m ON m.oid = c.relam
JOIN pg_catalog.pg_class AS t ON t.oid = i.indrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.relnamespace
CROSS JOIN LATERAL (
  SELECT string_agg(format('coalesce(octet_length(CAST(%s AS TEXT)), 0)',
    pg_get_indexdef(i.indexrelid, CAST(o.n AS INTEGER), FALSE)), ' + ' ORDER BY o.n)
    AS length
  FROM unnest(CAST(i.indclass AS OID[])) WITH ORDINALITY AS o(oid, n)
  JOIN pg_catalog.pg_opclass AS p ON p.oid = o.oid
  WHERE m.amname IN ('gist', 'spgist', 'brin') AND p.opcname ~ ('^((multi)?range_ops|'
    'gist_(text|bytea|bpchar|numeric|v?bit)_ops|.*_minmax_ops|range_inclusion_ops)$')
) AS k
WHERE i.indrelid = CAST($1 AS regclass) AND (i.indexprs IS NOT NULL
  OR i.indpred IS NOT NULL
  OR EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = i.indrelid
    AND a.attnum = ANY (CAST(i.indkey AS SMALLINT[])) AND a.attlen < 0))
ORDER BY i.indexrelid"""
"""A table's indexes, as a staging table has them: the name there, the index's own name,
and the text after the table's name in CREATE INDEX, or else a CHECK instead."""

STORED = "INCLUDING STORAGE INCLUDING COMPRESSION"
"""The storage properties that a table for versions copies from the storage table."""

_INDEX_ROW = 2600
"""Bytes of values that every index takes: a B-tree, the narrowest, has room for 2704."""

_ROW = 8000
"""Bytes that a row may have when everything is out of line that can be, of 8160."""

_OUT_OF_LINE = 28
"""Bytes that such a value leaves behind, or has if it is too short for that."""

_HEADER = 12
"""Bytes around a value: its length, and its alignment."""

_OF_TEXT = 8
"""Bytes that a character of a value's text stands for, at most, of any type."""

_SIZED = re.compile(r"(?:VARCHAR|pg_catalog\.bpchar|bit|bit varying)\((\d+)\)")
_DIGITS = re.compile(r"(?:NUMERIC|pg_catalog\.numeric)\((\d+),-?\d+\)")
_SHORT = {
    **dict.fromkeys(("inet", "cidr"), 24),
    **dict.fromkeys(("int4range", "int8range", "daterange"), 40),
    **dict.fromkeys(("tsrange", "tstzrange"), 40),
}
_SHORT_ELEMENTS = frozenset(
    {"boolean[]", "smallint[]", "integer[]", "bigint[]", "real[]", "double precision[]"}
    | {"date[]", "uuid[]", "timestamp without time zone[]", "interval[]", "inet[]"}
    | {"timestamp with time zone[]"}
)

_OF_ANY_LENGTH = {
    "hash": re.compile(".*"),
    "gin": re.compile(
        "jsonb_ops|jsonb_path_ops|tsvector_ops|gin_trgm_ops|gin__int_ops"
    ),
    "gist": re.compile("(box|circle|point|poly|inet|tsquery|tsvector)_ops"),
    "spgist": re.compile("(box|poly|inet|text|kd_point|quad_point)_ops"),
    "brin": re.compile(".*_bloom_ops|.*_minmax_multi_ops|(box|inet)_inclusion_ops"),
}
"""Operator classes that keep a short form of a value, however long that is."""


class Stored(NamedTuple):
    """How a column is stored: its type's length (-1: it varies), and where."""

    length: int
    storage: str


class _Size(NamedTuple):
    """A value's size in a column: bytes of any; by character or byte; at most."""

    fixed: int
    weight: int
    most: float


def _size(column: Column, stored: Stored) -> _Size:
    kind = column.type
    if stored.length > 0:
        return _Size(stored.length + _HEADER, 0, 0)
    if kind in _SHORT:
        return _Size(_SHORT[kind], 0, 0)
    if found := _DIGITS.fullmatch(kind):
        return _Size(int(found[1]) // 2 + 2 * _HEADER, 0, 0)
    if found := _SIZED.fullmatch(kind):
        return _Size(_HEADER, 1, 4 * int(found[1]))
    short = is_text(kind) or is_number(kind) or kind in ("BYTEA", "pg_catalog.bpchar")
    return _Size(_HEADER, 1 if short else _OF_TEXT, float("inf"))


def bounds(
    columns: Sequence[Column],
    stored: Sequence[Stored],
    numbers: dict[int, int],
    indexes: Iterable[Row],
    computed: Sequence[tuple[Column, Stored]] = (),
) -> tuple[Bound, ...]:
    """Return the bounds of rows about which the server has to be asked.

    Parameters
    ----------
    columns, stored
        The table's columns, and how each is stored.
    numbers
        Their positions, by PostgreSQL's numbers.
    indexes
        The rows of :data:`INDEX_SHAPES`, without the table.
    computed
        The generated columns, which storage has beside the others.
    """
    sizes = [_size(c, s) for c, s in zip(columns, stored, strict=True)]
    more = [_size(*column) for column in computed]
    found = [_row_bound(sizes, stored, more, [s for _, s in computed])]
    for method, is_computed, key, classes, others in indexes:
        if is_computed or not numbers.keys() >= {*key, *others}:
            used = {*key, *others} - {0}
            if 0 in others or not numbers.keys() >= used:
                used = set(numbers)
            found.append(_always(sorted(numbers[i] for i in used)))
            continue
        positions = [numbers[i] for i in key]
        long = [
            position
            for n, position in enumerate(positions)
            if n >= len(classes) or _may_be_long(method, classes[n], columns[position])
        ]
        found.append(_index_bound(long, sizes))
    return tuple(dict.fromkeys(bound for bound in found if bound is not None))


def _may_be_long(method: str, operator_class: str, column: Column) -> bool:
    if method == "gin" and column.type in _SHORT_ELEMENTS:
        return False
    if method == "hash" and column.type.endswith("[]"):
        # There may be no hash of its elements.
        return True
    short = _OF_ANY_LENGTH.get(method)
    return short is None or short.fullmatch(operator_class) is None


def _always(positions: Sequence[int]) -> Bound:
    return Bound(tuple(positions), (0,) * len(positions), -1)


def _index_bound(positions: Sequence[int], sizes: Sequence[_Size]) -> Bound | None:
    most = _INDEX_ROW - sum(sizes[i].fixed for i in positions)
    if sum(sizes[i].most for i in positions) <= most:
        return None
    varying = [i for i in positions if sizes[i].weight]
    return Bound(tuple(varying), tuple(sizes[i].weight for i in varying), most)


def _row_bound(
    sizes: Sequence[_Size],
    stored: Sequence[Stored],
    more: Sequence[_Size],
    more_stored: Sequence[Stored],
) -> Bound | None:
    # Values that must stay in the row are of TSQUERY, or were made to by ALTER TABLE.
    staying = [i for i, s in enumerate(stored) if s.length < 0 and s.storage == "p"]
    most = float(_ROW - (len(sizes) + len(more)) // 8)
    for size, kept in zip(more, more_stored, strict=True):
        if kept.length < 0 and kept.storage == "p":
            return _always(range(len(sizes)))
        most -= (
            size.fixed if kept.length > 0 else min(size.fixed + size.most, _OUT_OF_LINE)
        )
    for i, size in enumerate(sizes):
        is_moved = stored[i].length < 0 and i not in staying
        most -= min(size.fixed + size.most, _OUT_OF_LINE) if is_moved else size.fixed
    if most < 0:
        return _always(range(len(sizes)))
    if sum(sizes[i].most for i in staying) <= most:
        return None
    return Bound(tuple(staying), tuple(sizes[i].weight for i in staying), int(most))
