"""PostgreSQL's SQL for snapshots, certification and constraints: pure text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique_backends.forms import Forms, together
from tique_backends.names import (
    cache_name,
    column_list,
    key_equality,
    key_list,
    quote,
    storage_name,
)
from tique_backends.postgresql.literals import carried, equality, listed, typed
from tique_backends.postgresql.names import newest, same_rows, stage_name
from tique_backends.postgresql.types import INTEGERS, assigned, comparable_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tique_backends.base import Row
    from tique_rewriter.schema import Table


def known_rows(
    table: Table, positions: Sequence[int], values: Sequence[Sequence[Any]], alias: str
) -> str:
    """A source of rows whose columns at ``positions`` have these ``values``.

    Its columns are called ``_0``, ``_1`` … by position and are of the table's types, but
    for those whose values are kept as text.
    """
    arrays = ", ".join(
        listed(column, table.columns[i].type)
        for i, column in zip(positions, values, strict=True)
    )
    names = ", ".join(f"_{i}" for i in positions)
    return f"unnest({arrays}) AS {alias}({names})"


class PostgreSQLForms(Forms):
    """The forms for PostgreSQL, which plans NOT EXISTS as an anti-join."""

    @override
    def stage(self, table: Table) -> str:
        return stage_name(table)

    @override
    def scan(
        self,
        table: Table,
        sts: int,
        *,
        staged: int | None,
        tombstones: bool = True,
        flat: bool = False,
    ) -> tuple[str, ...]:
        versions = self._versions(table, sts, staged)
        columns = column_list(table)
        if table.is_keyless:
            added = f"(SELECT {columns} FROM {versions} AS _i WHERE NOT _deleted)"
            rows = (added, f"(SELECT {columns} FROM {storage_name(table)})")
            if not tombstones:
                return rows
            # EXCEPT ALL takes one copy per tombstone and NULL for equal to NULL.
            return (
                f"(SELECT {columns} FROM {together(rows)} AS _p EXCEPT ALL "
                f"SELECT {columns} FROM {versions} AS _d WHERE _deleted)",
            )
        current = (
            f"(SELECT {column_list(table, '_c.')} FROM {versions} AS _c "
            "WHERE NOT _c._deleted"
            + ("" if flat else f" AND {newest(table, versions, '_cts', '_c')}")
            + ")"
        )
        same = key_equality(table, table.primary_key, "_s.", "_v.")
        kept = (
            f"(SELECT {column_list(table, '_s.')} FROM {storage_name(table)} AS _s "
            f"WHERE NOT EXISTS (SELECT 1 FROM {versions} AS _v WHERE {same}))"
        )
        return kept, current

    @override
    def point(
        self, table: Table, sts: int, key: Sequence[str], *, staged: int | None
    ) -> str:
        columns = column_list(table)
        match = " AND ".join(
            f"{quote(table.columns[i].name)} = {text}"
            for i, text in zip(table.primary_key, key, strict=True)
        )
        return (
            f"(SELECT {columns} FROM (SELECT {columns}, _cts, _deleted FROM ("
            f"SELECT {columns}, CAST(-1 AS BIGINT) AS _cts, FALSE AS _deleted "
            f"FROM {storage_name(table)} WHERE {match} UNION ALL "
            f"SELECT {columns}, _cts, _deleted "
            f"FROM {self._versions(table, sts, staged)} AS _v WHERE {match}) AS _u "
            "ORDER BY _cts DESC LIMIT 1) AS _n WHERE NOT _deleted)"
        )

    @override
    def constant(self, table: Table, columns: Sequence[int], row: Row | None) -> str:
        if row is None:
            names = key_list(table, columns)
            return f"(SELECT {names} FROM {storage_name(table)} WHERE FALSE)"
        items = ", ".join(
            f"{typed(row[i], table.columns[i].type)} AS {quote(table.columns[i].name)}"
            for i in columns
        )
        return f"(SELECT {items})"

    @override
    def overlay(
        self,
        table: Table,
        columns: Sequence[int],
        bound: Mapping[int, Any],
        keys: Sequence[Row],
        rows: Sequence[Row],
    ) -> tuple[str, ...]:
        conditions = [equality(table, i, value) for i, value in bound.items()]
        if keys:
            conditions.append(self._excluded(table, bound, keys))
        kept = (
            f"(SELECT {key_list(table, columns)} FROM {storage_name(table)}"
            f"{' WHERE ' if conditions else ''}{' AND '.join(conditions)})"
        )
        if not rows:
            return (kept,)
        free = [i for i in columns if i not in bound]
        added = [[row[i] for row in rows] for i in free]
        return kept, f"({self._constants(table, columns, bound, added, len(rows))})"

    @override
    def joins_in_parts(self, parts: int, others: int, *, wide: bool) -> bool:
        # Below a UNION ALL with conditions PostgreSQL looks no row up by an index.
        return parts * others > 1

    @override
    def constants(
        self,
        table: Table,
        columns: Sequence[int],
        bound: Mapping[int, Any],
        values: Sequence[Sequence[Any]],
    ) -> str:
        if not values[0]:
            return self.constant(table, columns, None)
        return f"({self._constants(table, columns, bound, values, len(values[0]))})"

    def _constants(
        self,
        table: Table,
        columns: Sequence[int],
        bound: Mapping[int, Any],
        values: Sequence[Sequence[Any]],
        rows: int,
    ) -> str:
        free = [i for i in columns if i not in bound]
        items = ", ".join(
            (
                typed(bound[i], table.columns[i].type)
                if i in bound
                else carried(f"_x._{i}", table.columns[i].type)
            )
            + f" AS {quote(table.columns[i].name)}"
            for i in columns
        )
        if not free:
            return " UNION ALL ".join([f"SELECT {items}"] * rows)
        return f"SELECT {items} FROM {known_rows(table, free, values, '_x')}"

    def _excluded(
        self, table: Table, bound: Mapping[int, Any], keys: Sequence[Row]
    ) -> str:
        """A condition by which a row's key is none of ``keys``.

        The columns in ``bound`` are the same in all of them and need no comparing.
        """
        free = [n for n, i in enumerate(table.primary_key) if i not in bound]
        if not free:
            return "FALSE"
        positions = [table.primary_key[n] for n in free]
        columns = [table.columns[i] for i in positions]
        if len(free) == 1 and columns[0].type in INTEGERS:
            items = ", ".join(str(int(key[free[0]])) for key in keys)
            return f"{quote(columns[0].name)} NOT IN ({items})"
        # Neither side has NULLs.
        values = [[key[n] for key in keys] for n in free]
        names = ", ".join(f"_{i}" for i in positions)
        return (
            f"({key_list(table, positions)}) NOT IN (SELECT {names} "
            f"FROM {known_rows(table, positions, values, '_x')})"
        )

    @override
    def cast(self, text: str, type_name: str) -> str:
        return assigned(text, type_name)

    @override
    def once(self, name: str, columns: Sequence[str], query: str) -> str:
        return f"WITH {name}({', '.join(columns)}) AS MATERIALIZED ({query})"

    @override
    def stage_query(
        self, items: Sequence[str], source: str, sequence: int, *, deleted: bool
    ) -> str:
        return f"SELECT {', '.join(items)}, {sequence}, {str(deleted).upper()}{source}"

    @override
    def conflicts(self, table: Table, columns: Sequence[int], rows: int) -> str:
        width = len(columns) + 1
        types = [comparable_type(table.columns[i].type) for i in columns]
        keys = ", ".join(
            f"({ordinal}, "
            + "".join(
                f"CAST(${ordinal * width + n + 1} AS {type_name}), "
                for n, type_name in enumerate(types)
            )
            + f"CAST(${ordinal * width + width} AS BIGINT))"
            for ordinal in range(rows)
        )
        aliases = ", ".join(quote(table.columns[i].name) for i in columns)
        return (
            f"SELECT _k._ordinal, max(_v._cts) FROM (VALUES {keys}) "
            f"AS _k(_ordinal, {aliases}, _sts) JOIN {cache_name(table)} AS _v "
            f"ON {self._same(table, columns, '_k.', '_v.')} AND _v._cts > _k._sts "
            f"{'AND _v._deleted ' if self._is_whole_row(table, columns) else ''}"
            "GROUP BY _k._ordinal"
        )

    @override
    def staged_conflicts(self, table: Table, columns: Sequence[int], sts: int) -> str:
        whole_row = self._is_whole_row(table, columns)
        return (
            f"SELECT {key_list(table, columns, '_k.')}, max(_v._cts) "
            f"FROM {stage_name(table)} AS _k JOIN {cache_name(table)} AS _v "
            f"ON {self._same(table, columns, '_k.', '_v.')} AND _v._cts > {sts} "
            f"{'WHERE _k._deleted AND _v._deleted ' if whole_row else ''}"
            f"GROUP BY {key_list(table, columns, '_k.')} LIMIT 1"
        )

    def _same(self, table: Table, columns: Sequence[int], left: str, right: str) -> str:
        """Equality of keys; of whole rows, NULLs included, where there is none."""
        if self._is_whole_row(table, columns):
            return same_rows(table, columns, left, right)
        return key_equality(table, columns, left, right)
