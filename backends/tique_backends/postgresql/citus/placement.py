"""Where Citus has a managed table's rows, and its cache table's beside them.

A cache table is distributed by the same column as its table and co-located with it, or a
reference table as it is: so each shard's versions are on the node of its rows, move with these,
and are read by the same task. A table that Citus has on the coordinator only needs nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.names import cache_name, storage_name
from tique_backends.postgresql.values.literals import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tique_backends.records import Row
    from tique_backends.session import Session
    from tique_rewriter.schema import Table


class Placement(NamedTuple):
    """How Citus has a table.

    Its ``kind`` is ``'t'`` (a reference table), ``'h'`` (by a hash of ``column``) or ``'n'`` (in
    one shard). Tables of one ``group`` are co-located.
    """

    kind: str
    column: str | None
    group: int


_PLACED = (
    "SELECT _n.name, CASE WHEN repmodel = 't' THEN 't' ELSE partmethod::TEXT END, "
    "CASE WHEN partmethod = 'h' THEN column_to_column_name(logicalrelid, partkey) END, "
    "colocationid FROM unnest(CAST($1 AS TEXT[])) AS _n(name) "
    "JOIN pg_catalog.pg_dist_partition ON logicalrelid = to_regclass(_n.name) "
    # A table of the coordinator's own that Citus knows because of its foreign keys.
    "WHERE NOT (partmethod = 'n' AND repmodel = 's' AND colocationid = 0)"
)

_OF_A_TENANT = (
    "SELECT 1 FROM pg_catalog.pg_dist_schema JOIN pg_catalog.pg_namespace AS n "
    "ON n.oid = schemaid WHERE nspname = $1"
)

_KINDS = {"t": "a reference table", "h": "distributed by {}", "n": "in one shard"}


def _read(session: Session, names: Sequence[str]) -> dict[str, Placement]:
    return _found(session.execute(_PLACED, [list(names)]).fetch_all())


def _found(rows: Sequence[Row]) -> dict[str, Placement]:
    return {name: Placement(*rest) for name, *rest in rows}


def place(session: Session, table: Table) -> Placement | None:
    """Let a table's new cache table be where its rows are; None: on the coordinator.

    Raises
    ------
    EngineError
        UNSUPPORTED for a table without a primary key, or one of another kind.
    """
    storage, cache = storage_name(table), cache_name(table)
    placed = _read(session, [storage]).get(storage)
    if placed is None:
        return None
    why = ""
    if placed.kind not in _KINDS:
        why = "is distributed by append or by range"
    elif table.is_keyless:
        why = "is distributed, and has no primary key: add one"
    elif session.execute(_OF_A_TENANT, [table.schema]).fetch_all():
        why = "is in a distributed schema: undistribute that"
    if why:
        raise EngineError(
            ErrorKind.UNSUPPORTED,
            f"table {table.qualified_name} cannot be managed: by Citus it {why}",
        )
    if placed.kind == "t":
        session.execute(f"SELECT create_reference_table({quoted(cache)})").close()
    else:
        column = "NULL" if placed.column is None else quoted(placed.column)
        session.execute(
            f"SELECT create_distributed_table({quoted(cache)}, {column}, "
            f"colocate_with => {quoted(storage)})"
        ).close()
        # Shards move by logical replication, beside folds.
        session.execute(f"ALTER TABLE {cache} REPLICA IDENTITY FULL").close()
    return placed


def shape_name(table: Table) -> str:
    """The coordinator's own table like the cache table (``shards.sql``)."""
    return f"tique.tique_shape_{table.id}"


def placements(
    session: Session, tables: Sequence[Table]
) -> tuple[list[Table], dict[int, Placement]]:
    """The placements of managed tables' versions, by number.

    A table that was placed otherwise since it was adopted has that for a ``fault``.
    """
    names = {t.id: (storage_name(t), cache_name(t)) for t in tables}
    found = _read(session, [name for pair in names.values() for name in pair])
    checked, placed = [], {}
    for table in tables:
        rows, versions = (found.get(name) for name in names[table.id])
        if table.fault is None and rows != versions:
            table = replace(table, fault=_fault(table, rows, versions))
        checked.append(table)
        if versions is not None:
            placed[table.id] = versions
    return checked, placed


def expect_placed(session: Session, table: Table, placed: Placement | None) -> None:
    """Refuse a table of which rows or versions are not where they were.

    In the engine transaction that writes them, which has locked the table.

    Raises
    ------
    EngineError
        PROGRAMMING.
    """
    fault = moved(
        lambda sql, names: session.execute(sql, names).fetch_all(), table, placed
    )
    if fault is not None:
        raise EngineError(ErrorKind.PROGRAMMING, fault, "55000")


def moved(
    ask: Callable[[str, Sequence[object]], Sequence[Row]],
    table: Table,
    placed: Placement | None,
) -> str | None:
    """What has become of a table that is not where it was, if so."""
    names = storage_name(table), cache_name(table)
    found = _found(ask(_PLACED, [list(names)]))
    rows, versions = map(found.get, names)
    same = rows == placed and versions == placed
    return None if same else _fault(table, rows, versions)


def _fault(table: Table, rows: Placement | None, versions: Placement | None) -> str:
    return (
        f"table {table.qualified_name} was distributed otherwise since it was adopted: its "
        f"rows are {_spelled(rows)}, its recent versions {_spelled(versions)}; undo that "
        "(detach a table before it is distributed otherwise, and adopt it again)"
    )


def _spelled(placed: Placement | None) -> str:
    if placed is None:
        return "on the coordinator only"
    kind = _KINDS.get(placed.kind, "distributed").format(placed.column)
    return f"{kind} (co-location group {placed.group})"
