"""Moving versions to the storage table, and back to the cache table from the log.

Each function is the body of one engine transaction and may be repeated: versions that
it moves leave the cache table in the same transaction, and a replay appends only
versions that are newer than the last fold and not there.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tique_backends.monetdb.log import logged_versions
from tique_backends.monetdb.values.inserting import insert
from tique_backends.names import (
    cache_name,
    column_list,
    key_equality,
    quote,
    storage_name,
)
from tique_backends.rows.gaps import by_columns, completed, is_partial
from tique_backends.servers.replaying import excluded_stamps, whole_versions
from tique_backends.servers.server_forms import newest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from tique_backends.monetdb.sessions.session import MonetDBSession
    from tique_backends.records import Row
    from tique_backends.servers.aside import Aside
    from tique_rewriter.schema import Table

_PIECE = "tmp.tique_piece"


def overwrite_cached(
    session: MonetDBSession, table: Table, after: int, until: int
) -> int:
    """Replace storage rows by their newest versions with ``after`` < cts ≤ ``until``.

    Return how many rows were written, nearly.
    """
    cache, storage = cache_name(table), storage_name(table)
    same = key_equality(table, table.primary_key, "_s.", "_v.")
    gone = session.change(
        f"DELETE FROM {storage} AS _s WHERE EXISTS (SELECT 1 FROM {cache} AS _v "
        f"WHERE _v._cts > {after} AND _v._cts <= {until} AND {same})",
        wide=True,
    )
    there = session.change(
        f"INSERT INTO {storage} SELECT {column_list(table, '_n.')} FROM {cache} AS _n "
        f"WHERE _n._cts > {after} AND _n._cts <= {until} AND NOT _n._deleted "
        f"AND {newest(table, cache, '_cts', '_n', until)}",
        wide=True,
    )
    return max(gone, there)


def fold_keyless(session: MonetDBSession, table: Table, after: int, until: int) -> None:
    """Remove one copy per tombstone, then add the inserted rows.

    Rows both inserted and deleted since cancel out: storage never had them.

    MonetDB shows no row ids. So all copies of the rows in question are replaced by
    those that stay. NULL is equal to nothing, and a condition with OR would compare
    every row with every tombstone: tombstones with NULLs in the same columns are dealt
    with together, by equality in the other columns.
    """
    cache, storage = cache_name(table), storage_name(table)
    columns = column_list(table)
    names = [quote(column.name) for column in table.columns]
    recent = f"SELECT {columns} FROM {cache} WHERE _cts > {after} AND _cts <= {until}"
    inserted, deleted = f"{recent} AND NOT _deleted", f"{recent} AND _deleted"
    gone = f"FROM ({deleted} EXCEPT ALL {inserted}) AS _g WHERE TRUE"
    nulls = ", ".join(f"{name} IS NULL AS _{i}" for i, name in enumerate(names))
    patterns = session.execute(
        f"SELECT DISTINCT * FROM (SELECT {nulls} {gone}) AS _n"
    ).fetch_all()
    for pattern in patterns:
        empty = [n for n, is_null in zip(names, pattern, strict=True) if is_null]
        equal = [n for n, is_null in zip(names, pattern, strict=True) if not is_null]
        copies = "".join(f" AND {name} IS NULL" for name in empty)
        alike = "".join(f" AND _d.{name} = _s.{name}" for name in equal)
        matching = " AND ".join(
            [f"_s.{name} IS NULL" for name in empty]
            + [f"EXISTS (SELECT 1 FROM (SELECT * {gone}) AS _d WHERE TRUE{alike})"]
        )
        with _piece(session, table, range(len(names))):
            session.execute(
                f"INSERT INTO {_PIECE} SELECT {columns} FROM {storage} AS _s "
                f"WHERE {matching} EXCEPT ALL SELECT {columns} {gone}{copies}"
            )
            session.execute(f"DELETE FROM {storage} AS _s WHERE {matching}")
            session.execute(f"INSERT INTO {storage} SELECT {columns} FROM {_PIECE}")
    session.execute(
        f"INSERT INTO {storage} SELECT {columns} "
        f"FROM ({inserted} EXCEPT ALL {deleted}) AS _a"
    )


def store_rows(
    session: MonetDBSession,
    table: Table,
    rows: Mapping[Row, Row | None],
    new: Collection[Row],
) -> None:
    """Put rows in the place of those with their keys; None: in place of one, nothing.

    Storage has no rows with the keys ``new``: MonetDB scans the whole table for rows to
    delete. Rows with gaps change only the columns that they have, except where the
    table has UNIQUE keys: an UPDATE may meet a value that another row is about to give
    up.
    """
    partial = {key: row for key, row in rows.items() if row and is_partial(row)}
    if partial and table.unique:
        stored = session.read_rows(table, list(partial))
        rows = {
            **rows,
            **{
                key: completed(row, stored[key])
                for key, row in partial.items()
                if key in stored
            },
        }
        partial = {}
    whole = {key: row for key, row in rows.items() if key not in partial}
    if whole:
        _replace(session, table, whole, [key for key in whole if key not in new])
    for known, changed in by_columns(partial.values()).items():
        _update(session, table, known, changed)


def _replace(
    session: MonetDBSession,
    table: Table,
    rows: Mapping[Row, Row | None],
    old: Sequence[Row],
) -> None:
    storage = storage_name(table)
    if old:
        same = key_equality(table, table.primary_key, "_s.", "_r.")
        with _piece(session, table, table.primary_key, old):
            session.execute(
                f"DELETE FROM {storage} AS _s "
                f"WHERE EXISTS (SELECT 1 FROM {_PIECE} AS _r WHERE {same})"
            )
    kept = [row for row in rows.values() if row is not None]
    if kept:
        session.change(insert(storage, kept, table.types))


def _update(
    session: MonetDBSession, table: Table, columns: Sequence[int], rows: Sequence[Row]
) -> None:
    changed = [i for i in columns if i not in table.primary_key]
    if not changed:
        return
    names = [quote(table.columns[i].name) for i in changed]
    values = ", ".join(f"{name} = _r.{name}" for name in names)
    same = key_equality(table, table.primary_key, "_s.", "_r.")
    with _piece(session, table, columns, rows):
        session.execute(
            f"UPDATE {storage_name(table)} AS _s SET {values} "
            f"FROM {_PIECE} AS _r WHERE {same}"
        )


@contextmanager
def _piece(
    session: MonetDBSession,
    table: Table,
    columns: Sequence[int],
    rows: Sequence[Row] = (),
) -> Iterator[None]:
    """A temporary table with some of the table's columns; a rollback drops it too."""
    layout = ", ".join(
        f"{quote(table.columns[i].name)} {table.columns[i].type}" for i in columns
    )
    session.create_temporary(_PIECE, layout)
    if rows:
        types = [table.columns[i].type for i in columns]
        session.change(insert(_PIECE, rows, types))
    yield
    session.drop_temporary(_PIECE)


def claim_fold(session: MonetDBSession, table: Table, known: str, until: int) -> bool:
    """Note how far the table will be folded, if that is ``known`` of its row.

    A concurrent transaction that folds it, or fills its cache table, writes the same
    columns of the row: one of the two is aborted by the engine, which takes updates of
    different columns for no conflict.
    """
    claimed = f'UPDATE tique."tables" SET folded = {until}, drained = drained'
    return session.change(f"{claimed} WHERE {known}") > 0


def versions_to_replay(
    session: MonetDBSession, table: Table, aside: Aside
) -> list[tuple[int, Row, bool]]:
    """The logged versions that the cache table lacks, whole."""
    ((folded,),) = session.execute(
        f'SELECT folded FROM tique."tables" WHERE id = {table.id}'
    ).fetch_all()
    entries = session.execute(
        f"SELECT commits FROM tique.log WHERE cts > {folded}"
    ).fetch_all()
    texts = [text for (text,) in entries]
    excluded = excluded_stamps(session, table)
    versions = list(logged_versions(table, texts, folded, aside, excluded))
    return whole_versions(session, table, versions, aside)
