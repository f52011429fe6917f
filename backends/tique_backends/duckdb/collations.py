"""Collations of DuckDB's columns, which decide which of their values are equal.

So a column's collation is a part of its type here (``VARCHAR COLLATE nocase``): no value of
such a type is compared in memory. DuckDB's catalog shows a collation in the text of CREATE
TABLE alone; a plan has it with the type.

*No keys (P3).* DuckDB's indexes call equal what has the same letters, its comparisons what
the collation says. A row under ``'a'`` and one under ``'A'`` are two for the one and one
row for the other, so neither can be meant by a key. Nor can the rows of a table without a
key be told apart.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tique_backends.duckdb.literals import is_collated
from tique_backends.duckdb.purity import asked, nodes
from tique_backends.errors import EngineError, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_NAME = re.compile(r"[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)*", re.IGNORECASE)


def collations(session: Session, place: str) -> dict[str, str]:
    """The collations of a table's columns, by name, of those that have one.

    ``place`` is the table's qualified name in SQL.
    """
    plan = asked(session, "json_serialize_plan", f"SELECT * FROM {place}")
    read = next((n for n in nodes(plan) if n.get("type") == "LOGICAL_GET"), None)
    if read is None:
        raise EngineError(
            ErrorKind.UNSUPPORTED, f"the collations of {place} cannot be examined"
        )
    found = {}
    for name, kind in zip(read["names"], read["returned_types"], strict=True):
        collation = (kind["type_info"] or {}).get("collation", "")
        every = {node["collation"] for node in nodes(kind) if node.get("collation")}
        if every - {collation} or (collation and not _NAME.fullmatch(collation)):
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                f"{place} has a column with a collation that no type shows, {name}",
            )
        if collation:
            found[name] = collation
    return found


def may_have_collations(definition: str, type_names: Iterable[str]) -> bool:
    """Whether a table may have columns with collations; a nested one is not shown.

    ``definition`` is the text of CREATE TABLE without what is in quotes.
    """
    return " COLLATE " in definition or any(
        "VARCHAR" in name and name.endswith((")", "]")) for name in type_names
    )


def check_collations(table: Table) -> None:
    """Refuse a table whose columns with a collation would have to tell rows apart.

    Raises
    ------
    EngineError
        UNSUPPORTED.
    """
    collated = {i for i, column in enumerate(table.columns) if is_collated(column.type)}
    if not collated:
        return
    keys = (table.primary_key, *table.unique, *(k.columns for k in table.computed_keys))
    reason = ""
    if table.is_keyless:
        reason = "and no primary key, so that nothing tells its rows apart"
    elif any(not collated.isdisjoint(key) for key in keys):
        reason = "in a key, whose index calls other values equal than a comparison does"
    elif table.generated:
        reason = "beside a generated column, which might be compared by it"
    if reason:
        name = table.columns[min(collated)].name
        raise EngineError(
            ErrorKind.UNSUPPORTED,
            f"table {table.qualified_name} has a column with a collation, {name}, {reason}",
        )
