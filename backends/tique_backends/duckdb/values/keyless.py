"""Rows of tables without a key, which are told apart to the last digit.

Values may be equal and not the same: 0.0 and -0.0, a month and 30 days. A tombstone is a
copy of the row that it deletes, and takes that row or one that is the same, so that where
a table has such types more than the values is compared, their *images*.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import duckdb

from tique_backends.names import column_list, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_rewriter.schema import Table

FLOATS = frozenset({"FLOAT", "DOUBLE"})
_EXACT = frozenset(
    (
        *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
        *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
        *("VARCHAR", "JSON", "BLOB", "BIT", "UUID", "DATE", "TIME", "TIME_NS"),
        *("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
        *("TIME WITH TIME ZONE", "TIMESTAMP WITH TIME ZONE"),
    )
)
_WITH_ARGUMENTS = re.compile(r"DECIMAL\(\d+,\s*\d+\)|ENUM\(.*\)")
"""Types of which equal values are the same."""

_KEEPS_SIGNS = not duckdb.__version__.startswith("1.")
"""Whether 0.0 and -0.0 stay what they are: in 1.5 a CHECKPOINT makes one of both, and
a tombstone takes either."""


def same_rows(table: Table, columns: Sequence[int], left: str, right: str) -> str:
    """As :func:`key_equality`, but NULL is the same as NULL."""
    names = (quote(table.columns[i].name) for i in columns)
    return " AND ".join(
        f"{left}{name} IS NOT DISTINCT FROM {right}{name}" for name in names
    )


def images(table: Table, prefix: str = "") -> list[str]:
    """Expressions that differ between rows that are equal and not the same.

    Rows that are not equal may have the same ones. A NaN has a sign as well, which gets
    lost on the way through Python.
    """
    found = []
    for column in table.columns:
        name = f"{prefix}{quote(column.name)}"
        if column.type in FLOATS:
            if _KEEPS_SIGNS:
                found.append(f"({name} = 0 AND signbit({name}))")
        elif column.type not in _EXACT and not _WITH_ARGUMENTS.fullmatch(column.type):
            text = f"CAST({name} AS VARCHAR)"
            if column.type == "VARIANT":
                found.append(f"variant_typeof({name})")
            found.append(text if _KEEPS_SIGNS else f"replace({text}, '-0.0', '0.0')")
    return found


def numbered(table: Table, rows: str, others: str = "") -> str:
    """A query for rows, and ``others`` of their items, that counts the same ones.

    Their number, from 1, is ``_copy``.
    """
    columns = column_list(table)
    # By themselves -0.0 would come out as 0.0 (1.5), as it does of EXCEPT ALL.
    alike = ", ".join([columns, *images(table)])
    return (
        f"SELECT {columns}{others}, row_number() OVER (PARTITION BY row({alike})) "
        f"AS _copy FROM {rows}"
    )


def counted(table: Table, gone: str) -> str:
    """A query for how many of ``gone`` are the same (``_copies``)."""
    named = [f"{image} AS _image_{i}" for i, image in enumerate(images(table))]
    every = ", ".join([column_list(table), *named])
    return f"SELECT {every}, count(*) AS _copies FROM {gone} GROUP BY ALL"


def among_counted(table: Table) -> str:
    """A condition: a numbered row ``_p`` is among so many as are counted, ``_g``."""
    conditions = [same_rows(table, range(len(table.columns)), "_p.", "_g.")]
    conditions += [
        f"{image} IS NOT DISTINCT FROM _g._image_{i}"
        for i, image in enumerate(images(table, "_p."))
    ]
    return " AND ".join([*conditions, "_p._copy <= _g._copies"])
