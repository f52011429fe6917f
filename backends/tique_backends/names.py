"""Names and lists of columns in SQL, as every engine writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_rewriter.schema import Column, Generated, Table


def quote(identifier: str) -> str:
    """Quote an identifier."""
    return '"' + identifier.replace('"', '""') + '"'


def storage_name(table: Table) -> str:
    """The storage table: the application's own.

    A temporary one has a name of tique's: no statement that reaches the engine as it
    stands can mean it, nor another table because of it.
    """
    if table.is_temporary:
        return f"{quote(table.schema)}.{quote(f'tique_temporary_{table.id}')}"
    return f"{quote(table.schema)}.{quote(table.name)}"


def cache_name(table: Table) -> str:
    """The cache table, in tique's schema; a temporary table's is always empty.

    It bears the table's number, so that a statement finds none whose table is gone
    (:mod:`tique.query.define.redefinition`).
    """
    schema = quote(table.schema) if table.is_temporary else "tique"
    return f"{schema}.{quote(cache_label(table.id))}"


def cache_label(number: int) -> str:
    """The name of a cache table without its schema, not quoted, by its table's number."""
    return f"tique_cache_{number}"


def history_label(number: int) -> str:
    """The name of a history table without its schema, not quoted, by its table's number."""
    return f"tique_history_{number}"


def history_name(table: Table) -> str:
    """The table with the states that rows had before, in tique's schema."""
    return f"tique.{quote(history_label(table.id))}"


def stage_label(table: Table) -> str:
    """The name of a session's staging table, without its schema, not quoted."""
    return f"tique_stage_{table.id if table.is_temporary else table.qualified_name}"


def column_list(table: Table, prefix: str = "") -> str:
    """All of the table's columns, optionally qualified."""
    return ", ".join(prefix + quote(column.name) for column in table.columns)


def key_list(table: Table, positions: Sequence[int], prefix: str = "") -> str:
    """The columns at ``positions``, optionally qualified."""
    return ", ".join(prefix + quote(table.columns[i].name) for i in positions)


def key_equality(table: Table, positions: Sequence[int], left: str, right: str) -> str:
    """``left.k = right.k AND …`` over the columns at ``positions``."""
    columns = [table.columns[i] for i in positions]
    names = [(quote(column.name), column.equality) for column in columns]
    return " AND ".join(f"{left}{name} {equal} {right}{name}" for name, equal in names)


def collated(column: Column | Generated) -> str:
    """What a value of the column's type needs to be sorted as the column."""
    return "" if column.collation is None else f" COLLATE {column.collation}"
