"""PostgreSQL's SQL for snapshots, certification and constraints: pure text.

*Reading storage rows by their key:* the text of the queries, and their parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique_backends.names import cache_name, key_list, quote, storage_name
from tique_backends.postgresql.names import images, same_rows, stage_name, still_there
from tique_backends.postgresql.values.literals import (
    array_parameter,
    array_parameters,
    arrays,
    carried,
    listed,
    rows_of,
    typed,
)
from tique_backends.postgresql.values.types import INTEGERS, assigned, comparable_type
from tique_backends.servers.server_forms import ServerForms, listed_equality

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.records import Row
    from tique_rewriter.schema import Table


def known_rows(
    table: Table, positions: Sequence[int], values: Sequence[Sequence[Any]], alias: str
) -> str:
    """A source of rows whose columns at ``positions`` have these ``values``.

    Its columns are called ``_0``, ``_1`` … by position and are of the table's types, but
    for those whose values are kept as text.
    """
    source = rows_of(
        listed(column, table.columns[i])
        for i, column in zip(positions, values, strict=True)
    )
    names = ", ".join(f"_{i}" for i in positions)
    return f"{source} AS {alias}({names})"


class PostgreSQLForms(ServerForms):
    """The forms for PostgreSQL."""

    integers = INTEGERS
    keeps_dead_rows = True
    only = "ONLY "
    overlays_in_parts = True
    stage = staticmethod(stage_name)
    known_rows = staticmethod(known_rows)
    typed = staticmethod(typed)
    carried = staticmethod(carried)
    cast = staticmethod(assigned)
    same_rows = staticmethod(same_rows)
    images = staticmethod(images)

    @override
    def has_value(self, expression: str) -> str:
        # A composite of NULLs IS NULL, and is none.
        return f"{expression} IS DISTINCT FROM NULL"

    @override
    def first_of(self, query: str) -> str:
        # For the sake of a first row the planner would look every pair of rows over.
        return f"WITH _all AS MATERIALIZED ({query}) SELECT * FROM _all LIMIT 1"

    @override
    def hashed(self, values: Sequence[str]) -> str:
        return f"pg_catalog.hash_record_extended(ROW({', '.join(values)}), 0)"

    @override
    def stored(self, table: Table) -> str:
        if table.is_temporary:
            return storage_name(table)
        return f"(SELECT * FROM {storage_name(table)} WHERE {still_there(table)})"

    @override
    def _guarding(self, table: Table) -> tuple[str, list[str]]:
        return "", [] if table.is_temporary else [still_there(table)]

    @override
    def joins_in_parts(self, parts: int, others: int, *, wide: bool) -> bool:
        # Below a UNION ALL with conditions PostgreSQL looks no row up by an index.
        return parts * others > 1

    @override
    def _unlike(
        self, table: Table, positions: Sequence[int], values: Sequence[Sequence[Any]]
    ) -> tuple[str, list[str]]:
        # Neither side has NULLs.
        excluded = known_rows(table, positions, values, "_x")
        equalities = {table.columns[i].equality for i in positions}
        if len(equalities) > 1:
            same = listed_equality(table, positions)
            return "", [f"NOT EXISTS (SELECT 1 FROM {excluded} WHERE {same})"]
        # NOT IN, but for the operator's schema.
        names = ", ".join(f"_{i}" for i in positions)
        mine = f"({key_list(table, positions, '_s.')}) {equalities.pop()}"
        return "", [f"NOT ({mine} ANY (SELECT {names} FROM {excluded}))"]

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
        relation = f"(VALUES {keys}) AS _k(_ordinal, {aliases}, _sts)"
        return self._conflicts(table, columns, relation, cache_name(table))


def row_query(table: Table, read: Sequence[int], key: Row) -> tuple[str, list[Any]]:
    """The row that has a key."""
    return _query(table, read, _key_condition(table, len(key))), list(key)


def rows_query(
    table: Table, read: Sequence[int], keys: Sequence[Row]
) -> tuple[str, list[Any]]:
    """The rows that have one of some keys."""
    *fixed, last = table.primary_key
    prefix = keys[0][:-1]
    if all(key[:-1] == prefix for key in keys):
        kind = table.columns[last].type
        parameters = [*prefix, array_parameter([key[-1] for key in keys], kind)]
        condition = _key_condition(table, len(fixed))
        condition += f"{' AND ' if fixed else ''}{key_list(table, [last])} "
        condition += table.columns[last].equality
        condition += f" ANY (CAST(${len(parameters)} AS {kind}[]))"
        return _query(table, read, condition), parameters
    source = arrays(table, table.primary_key)
    names = ", ".join(f"_{i}" for i in table.primary_key)
    same = listed_equality(table, table.primary_key)
    sql = (
        f"SELECT {key_list(table, read, '_s.')} FROM ONLY {storage_name(table)} AS _s "
        f"JOIN {source} AS _x({names}) ON {same}{_still_there(table, ' WHERE ')}"
    )
    return sql, [*array_parameters(table, table.primary_key, keys)]


def range_query(
    table: Table, read: Sequence[int], prefix: Row, first: int, last: int
) -> tuple[str, list[Any]]:
    """Rows with a prefix of the key, and an integer between two after it."""
    ranged = table.columns[table.primary_key[len(prefix)]]
    largest = (1 << INTEGERS[ranged.type] - 1) - 1
    between = [max(first, -largest - 1), min(last, largest)]
    condition = _key_condition(table, len(prefix), ranges=True)
    return _query(table, read, condition), [*prefix, *between]


def _query(table: Table, read: Sequence[int], condition: str) -> str:
    """A query for some columns of the storage rows that match."""
    return (
        f"SELECT {key_list(table, read)} FROM ONLY {storage_name(table)} "
        f"WHERE {condition or 'TRUE'}{_still_there(table, ' AND ')}"
    )


def _still_there(table: Table, before: str) -> str:
    return "" if table.is_temporary else before + still_there(table)


def _key_condition(table: Table, bound: int, *, ranges: bool = False) -> str:
    """A condition on the key's first columns, and on the range of the one after them."""
    columns = [table.columns[i] for i in table.primary_key]
    terms = [
        f"{quote(each.name)} {each.equality} "
        f"CAST(${number} AS {comparable_type(each.type)})"
        for number, each in enumerate(columns[:bound], 1)
    ]
    if ranges:
        terms += [
            f"{quote(columns[bound].name)} OPERATOR(pg_catalog.{operator}) "
            f"CAST(${number} AS {columns[bound].type})"
            for number, operator in enumerate((">=", "<="), bound + 1)
        ]
    return " AND ".join(terms)
