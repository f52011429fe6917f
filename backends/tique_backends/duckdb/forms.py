"""DuckDB's SQL for snapshots, certification and constraints: pure text.

Measured on 1.5 and 2.0: ANTI JOIN is several times as fast as NOT EXISTS, and
``QUALIFY row_number()`` over the small cache table beats rank() and DISTINCT ON
several times over.

Storage rows are read by their key as they are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique_backends.duckdb.values.keyless import images, same_rows
from tique_backends.duckdb.values.literals import (
    INTEGERS,
    converted,
    listed,
    literal,
    plain_literal,
)
from tique_backends.duckdb.values.text_values import kept_list
from tique_backends.forms import Forms, difference, together
from tique_backends.names import (
    cache_name,
    column_list,
    key_equality,
    key_list,
    quote,
    stage_label,
    storage_name,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.records import Row
    from tique_rewriter.schema import Column, Table


_LITERAL_KEYS = 8
"""Up to so many keys a NOT IN beats a join."""

_LITERAL_VALUES = 24
"""Up to so many values single literals beat lists."""

_NARROW = 3
"""Up to so many columns a join reads them faster than by the rows' places."""

_SINGLE_READS = 16
"""Up to so many keys a UNION ALL of index look-ups beats a join with the keys."""


def stage_name(table: Table) -> str:
    """The session's staging table."""
    return f"temp.{quote(stage_label(table))}"


def equality(table: Table, position: int, value: Any, prefix: str = "") -> str:
    """``k = value``, for a value that is exactly of the column's type."""
    column = table.columns[position]
    name = prefix + quote(column.name)
    if column.type in INTEGERS:
        return f"{name} = {int(value)}"
    return f"{name} = CAST({literal(value)} AS {column.type})"


def known_rows(
    table: Table,
    positions: Sequence[int],
    values: Sequence[Sequence[Any]],
    alias: str,
) -> str:
    """A source of rows whose columns at ``positions`` have these ``values``.

    Its columns are called ``_0``, ``_1`` … by position and may still be text.
    """
    types = [table.columns[i].type for i in positions]
    if len(values[0]) * len(values) <= _LITERAL_VALUES:
        rows = ", ".join(
            f"({', '.join(map(plain_literal, row, types))})"
            for row in zip(*values, strict=True)
        )
        return f"(VALUES {rows}) AS {alias}({', '.join(f'_{i}' for i in positions)})"
    lists = ", ".join(
        f"unnest({listed(column, type_name)}) AS _{i}"
        for i, type_name, column in zip(positions, types, values, strict=True)
    )
    return f"(SELECT {lists}) AS {alias}"


def listed_equality(table: Table, positions: Sequence[int]) -> str:
    """Equality of ``_s`` and of the rows ``_x`` of :func:`known_rows`."""
    return " AND ".join(
        f"_s.{quote(table.columns[i].name)} = CAST(_x._{i} AS {table.columns[i].type})"
        for i in positions
    )


def version_columns(table: Table) -> list[str]:
    """Column definitions of a cache table, without its stamps.

    It holds acknowledged rows: no constraint may refuse them (P4).
    """
    return [f"{quote(column.name)} {column.type}" for column in table.columns]


def staged_columns(table: Table) -> list[str]:
    """Column definitions of a staging table, without its stamps."""
    return [
        f"{quote(column.name)} {column.type}{' NOT NULL' if column.not_null else ''}"
        for column in table.columns
    ]


def staged_generated(table: Table) -> list[str]:
    """The columns at the end of a staging table that judge new rows: generated ones."""
    columns = [
        f"{quote(each.name)} {each.type} GENERATED ALWAYS AS ({each.expression})"
        for each in table.generated
    ]
    # What an index of storage would compute at a fold is found at the statement.
    columns += [
        f"_sequence_{number} GENERATED ALWAYS AS ({expression})"
        for number, expression in enumerate(table.indexed)
    ]
    return columns


def staged_checks(table: Table) -> list[str]:
    """The table's CHECK constraints, for a staging table: they check new rows.

    A tombstone's row was there before.
    """
    return [f"CHECK (_deleted OR ({check.expression}))" for check in table.checks]


def newest(table: Table, source: str, stamp: str) -> str:
    """A query for the newest row per key of ``source``, tombstones included."""
    return (
        f"SELECT * FROM {source} QUALIFY row_number() OVER (PARTITION BY "
        f"{key_list(table, table.primary_key)} ORDER BY {stamp} DESC) = 1"
    )


def newest_in_order(
    table: Table, source: str, stamp: str, condition: str = "TRUE"
) -> str:
    """The same for a table, in the order in which its rows were written.

    What is made of it keeps that order, as DuckDB keeps a table's own (a promise of its
    setting ``preserve_insertion_order``).
    """
    keys = key_list(table, table.primary_key)
    return (
        f"SELECT {column_list(table)}, {stamp}, _deleted FROM "
        f"(SELECT *, rowid AS _place FROM {source} WHERE {condition} QUALIFY row_number() "
        f"OVER (PARTITION BY {keys} ORDER BY {stamp} DESC) = 1) ORDER BY {stamp}, _place"
    )


class DuckDBForms(Forms):
    """The forms that measured fastest on DuckDB."""

    integers = INTEGERS
    most_listed = _LITERAL_KEYS
    no_rows = "LIMIT 0"
    stage = staticmethod(stage_name)
    known_rows = staticmethod(known_rows)
    same_rows = staticmethod(same_rows)
    images = staticmethod(images)
    cast = staticmethod(converted)

    @override
    def stored_with_keys(self, table: Table, keys: str) -> str:
        same = key_equality(table, table.primary_key, "_s.", "_k.")
        found = with_keys(table, f"{keys} AS _k", "_k", same)
        return f"(SELECT _s.* FROM {found})"

    @override
    def scan(
        self,
        table: Table,
        sts: int,
        *,
        staged: int | None,
        appended: bool = False,
        flat: bool = False,
        past: bool = False,
        folded: int = 0,
    ) -> tuple[str, ...]:
        versions = (
            self._past_versions(table, sts, folded, flat=flat)
            if past
            else self._versions(table, sts, staged, folded)
        )
        columns = column_list(table)
        if appended:
            # A join would lose the order of the rows (and take 8 ms per million).
            return self._seen(
                f"(SELECT {columns} FROM {storage_name(table)})",
                f"(SELECT {columns} FROM {versions})",
            )
        if table.is_keyless:
            rows = (
                f"(SELECT {columns} FROM {storage_name(table)} "
                f"UNION ALL SELECT {columns} FROM {versions} WHERE NOT _deleted)"
            )
            gone = f"{versions} WHERE _deleted"
            return self._seen(f"({difference(table, rows, gone, images(table))})")
        same = key_equality(table, table.primary_key, "_s.", "_v.")
        current = versions if flat else f"({newest(table, versions, '_cts')})"
        return self._seen(
            f"(SELECT {column_list(table, '_s.')} FROM {storage_name(table)} AS _s "
            f"ANTI JOIN {versions} AS _v ON {same})",
            f"(SELECT {columns} FROM {current} WHERE NOT _deleted)",
        )

    @override
    def typed(self, value: Any, type_name: str) -> str:
        return converted(literal(value), type_name)

    @override
    def carried(self, name: str, column: Column) -> str:
        return converted(name, column.type)

    @override
    def _equality(self, table: Table, position: int, value: Any) -> str:
        return equality(table, position, value, "_s.")

    @override
    def _unlike(
        self, table: Table, positions: Sequence[int], values: Sequence[Sequence[Any]]
    ) -> tuple[str, list[str]]:
        excluded = known_rows(table, positions, values, "_x")
        same = listed_equality(table, positions)
        return f" ANTI JOIN {excluded} ON {same}", []

    @override
    def staged_duplicate(self, table: Table, sts: int, sequence: int) -> str:
        names = key_list(table, table.primary_key)
        staged = stage_name(table)
        before = together(self.scan(table, sts, staged=sequence - 2))
        old = key_equality(table, table.primary_key, "_n.", "_o.")
        gone = key_equality(table, table.primary_key, "_n.", "_d.")
        return (
            f"(SELECT {names} FROM {staged} WHERE _sequence = {sequence} "
            f"GROUP BY {names} HAVING count(*) > 1 LIMIT 1) UNION ALL "
            f"(SELECT {key_list(table, table.primary_key, '_n.')} FROM {staged} AS _n "
            f"WHERE _n._sequence = {sequence} "
            f"AND EXISTS (SELECT 1 FROM {before} AS _o WHERE {old}) "
            f"AND NOT EXISTS (SELECT 1 FROM {staged} AS _d "
            f"WHERE _d._sequence = {sequence - 1} AND {gone}) LIMIT 1)"
        )

    @override
    def hashed(self, values: Sequence[str]) -> str:
        return f"system.main.hash({', '.join(values)})"

    @override
    def conflicts(self, table: Table, columns: Sequence[int], rows: int) -> str:
        width = len(columns) + 1
        names = key_list(table, columns)
        types = [*(table.columns[i].type for i in columns), "BIGINT"]
        # Each by itself: decimals of many sizes would meet as DOUBLE.
        keys = ", ".join(
            f"({ordinal}, "
            + ", ".join(
                f"CAST(${ordinal * width + i + 1} AS {type_name})"
                for i, type_name in enumerate(types)
            )
            + ")"
            for ordinal in range(rows)
        )
        return self._conflicts(
            table,
            columns,
            f"(VALUES {keys}) AS _k(_ordinal, {names}, _sts)",
            f"(SELECT {names}, _cts, _deleted FROM {cache_name(table)})",
        )


class GatheredForms(DuckDBForms):
    """The forms for statements with a window over all rows.

    DuckDB has faults with these (README.md). A UNION ALL is several pipelines, and a window
    without PARTITION BY and ORDER BY is not ready for that: ``dense_rank()`` crashes when
    the first of them has no rows, and up to 1.5.5 ``lead()`` gives rows twice. A query below
    LIMIT 100% is gathered first, by one thread, in its order, and then read as one. (A
    materialized CTE loses the order.)
    """

    @override
    def _seen(self, *queries: str, several: bool = True) -> tuple[str, ...]:
        if not several:
            return queries
        return (f"(SELECT * FROM {together(queries)} AS _u LIMIT 100%)",)


def row_query(table: Table, read: Sequence[int], key: Row) -> str:
    """The row that has a key."""
    # Literals: a parameter has DuckDB 1.5 look for pandas in the whole sys.path.
    match = " AND ".join(
        equality(table, i, value)
        for i, value in zip(table.primary_key, key, strict=True)
    )
    return _query(table, read, match)


def range_query(
    table: Table, read: Sequence[int], prefix: Row, first: int, last: int
) -> str:
    """Rows with a prefix of the key, and an integer between two after it."""
    *fixed, ranged = table.primary_key[: len(prefix) + 1]
    matches = [equality(table, i, v) for i, v in zip(fixed, prefix, strict=True)]
    matches.append(f"{key_list(table, [ranged])} BETWEEN {first} AND {last}")
    return _query(table, read, " AND ".join(matches))


def rows_query(table: Table, read: Sequence[int], keys: Sequence[Row]) -> str:
    """The rows that have one of some keys."""
    span = _contiguous(keys)
    if span is not None:
        return range_query(table, read, keys[0][:-1], *span)
    if len(keys) <= _SINGLE_READS:
        return " UNION ALL ".join(row_query(table, read, key) for key in keys)
    values = list(zip(*keys, strict=True))
    wanted = known_rows(table, table.primary_key, values, "_x")
    same = listed_equality(table, table.primary_key)
    source = f"{storage_name(table)} AS _s JOIN {wanted} ON {same}"
    if len(read) > _NARROW:
        source = with_keys(table, wanted, "_x", same)
    return f"SELECT {kept_list(table, read, '_s.')} FROM {source}"


def with_keys(table: Table, keys: str, name: str, same: str) -> str:
    """The storage rows ``_s`` that are the ``same`` as one of ``keys``, for FROM.

    Their places are found first: only then DuckDB 2.0 reads no more of the other columns
    than these rows' (1.5 does for few). Each key is there once, with other columns of
    the table's perhaps, under the ``name`` that ``keys`` has.
    """
    storage = storage_name(table)
    names = [column.name for column in table.columns]
    names += [column.name for column in table.generated]
    if "rowid" in map(str.lower, names):
        # The place has no name then.
        return f"{storage} AS _s JOIN {keys} ON {same}"
    return (
        f"{storage} AS _s JOIN (SELECT _s.rowid, {name}.* FROM {storage} AS _s "
        f"JOIN {keys} ON {same}) AS {name} ON _s.rowid = {name}.rowid"
    )


def every_column(table: Table) -> tuple[int, ...]:
    """The positions of all of the table's columns."""
    return tuple(range(len(table.columns)))


def _contiguous(keys: Sequence[Row]) -> tuple[int, int] | None:
    """First and last of the keys' last columns, if they are a run of integers.

    A range of an index's keys is one statement at the price of one look-up.
    """
    if len(keys) < 2 or any(key[:-1] != keys[0][:-1] for key in keys):
        return None
    values = [key[-1] for key in keys]
    if any(type(value) is not int for value in values):
        return None
    first, last = min(values), max(values)
    return (first, last) if last - first == len(set(values)) - 1 else None


def _query(table: Table, read: Sequence[int], match: str) -> str:
    """A query for some columns of the storage rows that match."""
    return f"SELECT {kept_list(table, read)} FROM {storage_name(table)} WHERE {match}"
