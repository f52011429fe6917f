"""Names and lists of columns in MonetDB's SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tique_backends.monetdb.literals import literal, typed
from tique_backends.monetdb.types import is_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_rewriter.schema import Table


def quote(identifier: str) -> str:
    """Quote an identifier."""
    return '"' + identifier.replace('"', '""') + '"'


def storage_name(table: Table) -> str:
    """The storage table: the application's own."""
    return f"{quote(table.schema)}.{quote(table.name)}"


def cache_name(table: Table) -> str:
    """The cache table, in tique's schema."""
    return f"tique.{quote(table.qualified_name)}"


def stage_name(table: Table) -> str:
    """The session's staging table; local temporary tables live in schema tmp."""
    return f"tmp.{quote('tique_stage_' + table.qualified_name)}"


def column_list(table: Table, prefix: str = "") -> str:
    """All of the table's columns, optionally qualified."""
    return ", ".join(prefix + quote(column.name) for column in table.columns)


def key_list(table: Table, positions: Sequence[int], prefix: str = "") -> str:
    """The columns at ``positions``, optionally qualified."""
    return ", ".join(prefix + quote(table.columns[i].name) for i in positions)


def key_equality(table: Table, positions: Sequence[int], left: str, right: str) -> str:
    """``left.k = right.k AND …`` over the columns at ``positions``."""
    names = (quote(table.columns[i].name) for i in positions)
    return " AND ".join(f"{left}{name} = {right}{name}" for name in names)


def same_rows(table: Table, positions: Sequence[int], left: str, right: str) -> str:
    """As :func:`key_equality`, but NULL is the same as NULL.

    MonetDB has no IS NOT DISTINCT FROM.
    """
    names = (quote(table.columns[i].name) for i in positions)
    return " AND ".join(
        f"({left}{name} = {right}{name} OR "
        f"({left}{name} IS NULL AND {right}{name} IS NULL))"
        for name in names
    )


def equality(table: Table, position: int, value: Any, prefix: str = "") -> str:
    """``k = value``, for a value that is exactly of the column's type."""
    column = table.columns[position]
    return f"{prefix}{quote(column.name)} = {typed(value, column.type)}"


def comparable(text: str, type_name: str) -> str:
    """``text`` to be compared with a column of that type.

    Its length does not matter: a CAST to a shorter type would cut it. Without any CAST
    MonetDB takes a column of VALUES that starts with NULL for a small integer.
    """
    return f"CAST({text} AS {'CLOB' if is_text(type_name) else type_name})"


def version_columns(table: Table, *stamps: str) -> str:
    """Column definitions of a cache or staging table."""
    return ", ".join(
        [
            f"{quote(column.name)} {column.type}"
            f"{' NOT NULL' if column.not_null else ''}"
            for column in table.columns
        ]
        + [f"{stamp} NOT NULL" for stamp in stamps]
    )


def newest(
    table: Table, source: str, stamp: str, alias: str, until: int | None = None
) -> str:
    """A condition: no row of ``source`` has the key of ``alias`` and a later stamp."""
    same = key_equality(table, table.primary_key, f"{alias}.", "_l.")
    bound = "" if until is None else f" AND _l.{stamp} <= {literal(until)}"
    return (
        f"NOT EXISTS (SELECT 1 FROM {source} AS _l WHERE {same} "
        f"AND _l.{stamp} > {alias}.{stamp}{bound})"
    )
