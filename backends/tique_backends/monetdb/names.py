"""Names and conditions that MonetDB writes in its own way."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from tique_backends.monetdb.values.literals import read_as
from tique_backends.monetdb.values.types import is_text
from tique_backends.names import quote, stage_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_rewriter.schema import Table


def stage_name(table: Table) -> str:
    """The session's staging table; local temporary tables live in schema tmp.

    Another layout is another table, as MonetDB does not always drop one (HY013).
    """
    layout = blake2b(stage_columns(table).encode(), digest_size=8).hexdigest()
    return f"tmp.{quote(f'{stage_label(table)}_{layout}')}"


def stage_columns(table: Table) -> str:
    """Column definitions of a staging table; NOT NULL is the engine's to check."""
    return version_columns(table, "_sequence BIGINT", "_deleted BOOLEAN")


def same_rows(table: Table, columns: Sequence[int], left: str, right: str) -> str:
    """As :func:`key_equality`, but NULL is the same as NULL.

    MonetDB has no IS NOT DISTINCT FROM.
    """
    names = (quote(table.columns[i].name) for i in columns)
    return " AND ".join(
        f"({left}{name} = {right}{name} OR "
        f"({left}{name} IS NULL AND {right}{name} IS NULL))"
        for name in names
    )


def comparable(text: str, type_name: str) -> str:
    """``text`` to be compared with a column of that type.

    Its length does not matter: a CAST to a shorter type would cut it. Without any CAST
    MonetDB takes a column of VALUES that starts with NULL for a small integer.
    """
    return f"CAST({text} AS {'CLOB' if is_text(type_name) else read_as(type_name)})"


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
