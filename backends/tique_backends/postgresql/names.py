"""Names and conditions that PostgreSQL writes in its own way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_backends.names import cache_name, quote
from tique_backends.postgresql.values.literals import quoted
from tique_backends.postgresql.values.types import is_exact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_rewriter.schema import Table


def stage_name(table: Table) -> str:
    """The session's staging table."""
    return f"pg_temp.{quote(f'tique_stage_{table.id}')}"


def still_there(table: Table) -> str:
    """A condition that is TRUE, in a statement that fails when the table is gone.

    The name of the cache table, which has the table's number in it, is looked up as the
    statement is parsed, after the tables in FROM are locked. A statement that is prepared
    is parsed again when the cache table was dropped. It costs an execution nothing.
    """
    return f"CAST({quoted(cache_name(table))} AS pg_catalog.regclass) IS NOT NULL"


def same_rows(table: Table, columns: Sequence[int], left: str, right: str) -> str:
    """As :func:`key_equality`, but NULL is the same as NULL."""
    conditions = []
    for column in [table.columns[i] for i in columns]:
        one, other = left + quote(column.name), right + quote(column.name)
        # IS NOT DISTINCT FROM looks for an operator along the path, but for NULL.
        conditions.append(
            f"({one} {column.equality} {other} OR "
            f"{one} IS NOT DISTINCT FROM NULL AND {other} IS NOT DISTINCT FROM NULL)"
        )
    return " AND ".join(conditions)


def images(table: Table, prefix: str = "") -> list[str]:
    """Texts that differ between rows that are equal and not the same.

    A row's text has its values as their types put them out: a CAST of BPCHAR to text
    leaves blanks out. Rows that are not equal may have the same one.
    """
    inexact = [i for i, each in enumerate(table.columns) if not is_exact(each.type)]
    return [image(table, inexact, prefix)] if inexact else []


def image(table: Table, positions: Sequence[int], prefix: str) -> str:
    """The text of a row of these columns."""
    row = ", ".join(f"{prefix}{quote(table.columns[i].name)}" for i in positions)
    return f"CAST(ROW({row}) AS pg_catalog.text)"
