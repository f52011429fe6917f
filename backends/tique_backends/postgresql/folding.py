"""Moving versions to the storage table, and back to the cache table from the log.

Each function is part of the body of one engine transaction that has locked the table's
row in ``tique.tables`` before: no other transaction folds the table or fills its cache
table until that ends, whatever PostgreSQL's snapshots show of other things.

Its COMMIT does not wait for the disk (P4 does not need it). The versions that it moves
are in the log, and its progress stands in the row that it locked: a crash that loses it
leaves the state before, consistent, to be moved again. PostgreSQL loses such
transactions in the order in which they were committed, from the last one on, so none is
lost that a later commit, a fold, or the pruning of the log relied on.

*Users' code (P11).* A statement on a storage table can run code of roles that own it, its
types or its functions: when it is executed, and when it is planned. A fold is no role's
own statement, so it runs none: ``guest_expect_own`` (``guests_sql/checks.sql``) has
locked the table and found nothing that is neither PostgreSQL's own nor an extension's
before the first such statement, and names are looked for in ``pg_catalog`` alone. Its
lock does not keep another table from inheriting: statements name the table ONLY. To
switch to the table owner's role would not do: code that ``SET ROLE`` brought there can
``RESET`` it, and a function with its owner's rights leaves it deferred triggers, which
run at COMMIT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.forms import difference
from tique_backends.names import (
    cache_name,
    column_list,
    key_equality,
    key_list,
    quote,
    storage_name,
)
from tique_backends.postgresql.catalog.paths import path_locked
from tique_backends.postgresql.log import decoded
from tique_backends.postgresql.names import image, images, same_rows
from tique_backends.postgresql.values.literals import array_parameters, arrays, quoted
from tique_backends.postgresql.values.types import is_exact
from tique_backends.rows.gaps import by_columns, completed, is_partial
from tique_backends.servers.logged import versions_of
from tique_backends.servers.replaying import excluded_stamps, whole_versions
from tique_backends.servers.server_forms import listed_equality, newest
from tique_backends.sharing import UnstoredRowError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tique_backends.postgresql.sessions.session import PostgreSQLSession
    from tique_backends.records import Row
    from tique_backends.servers.aside import Aside
    from tique_rewriter.schema import Table

_GIVEN = "OVERRIDING SYSTEM VALUE"
"""The values of columns GENERATED ALWAYS, too, are those that were acknowledged."""

AT_LEISURE = (
    "concat(set_config('synchronous_commit', 'off', TRUE), "
    "CASE current_setting('lock_timeout') WHEN '0' "
    "THEN set_config('lock_timeout', '5s', TRUE) END)"
)
"""Lets the engine transaction's COMMIT not wait for the disk, and nothing long for locks.

A role that may write a table may lock it, for as long as it likes (P6).
"""


def claim_fold(
    session: PostgreSQLSession, table: Table, known: str, until: int
) -> bool:
    """Lock the table's row, and note how far it will be folded, if that is ``known``.

    Raises
    ------
    EngineError
        PROGRAMMING if other roles' code would run with this role's rights (P11).
    """
    return (
        session.change(
            f'UPDATE tique."tables" SET folded = {until} WHERE {known}'
            f" RETURNING {AT_LEISURE}, {sealed(session, table)}"
        )
        > 0
    )


def sealed(session: PostgreSQLSession, table: Table) -> str:
    """What lets the rest of the engine transaction run no users' code, or fails."""
    sealed = f"tique.guest_expect_own({quoted(storage_name(table))})"
    # In the application's own transaction the path stays its own.
    return sealed if session.is_held else f"{sealed}, {path_locked('TRUE')}"


def overwrite_cached(
    session: PostgreSQLSession, table: Table, after: int, until: int
) -> int:
    """Replace storage rows by their newest versions with ``after`` < cts ≤ ``until``.

    Return how many rows were written, nearly.
    """
    cache, storage = cache_name(table), storage_name(table)
    same = key_equality(table, table.primary_key, "_s.", "_v.")
    gone = session.change(
        f"DELETE FROM ONLY {storage} AS _s WHERE EXISTS (SELECT 1 FROM {cache} AS _v "
        f"WHERE _v._cts > {after} AND _v._cts <= {until} AND {same})"
    )
    there = session.change(
        f"INSERT INTO {storage} ({column_list(table)}) {_GIVEN} "
        f"SELECT {column_list(table, '_n.')} FROM {cache} AS _n "
        f"WHERE _n._cts > {after} AND _n._cts <= {until} AND NOT _n._deleted "
        f"AND {newest(table, cache, '_cts', '_n', until)}"
    )
    return max(gone, there)


def fold_keyless(
    session: PostgreSQLSession, table: Table, after: int, until: int
) -> None:
    """Remove one copy per tombstone, then add the inserted rows.

    Rows both inserted and deleted since cancel out: storage never had them.
    """
    cache, storage = cache_name(table), storage_name(table)
    columns = column_list(table)
    recent = f"{cache} WHERE _cts > {after} AND _cts <= {until}"
    inserted, deleted = f"{recent} AND NOT _deleted", f"{recent} AND _deleted"
    added = f"SELECT {columns} FROM {inserted}"
    # Python cannot hold all values, so none is asked for.
    if session.execute(f"SELECT 1 FROM {deleted} LIMIT 1").fetch_all():
        exact = images(table)
        alike = ", ".join([columns, *exact])
        # Rows are joined by their texts: of IS NOT DISTINCT FROM PostgreSQL makes a loop
        # over all pairs.
        every = range(len(table.columns))
        same = (
            f"{image(table, every, '_s.')} = {image(table, every, '_d.')} "
            f"AND {same_rows(table, every, '_s.', '_d.')}"
        )
        gone = difference(table, deleted, inserted, exact)
        session.change(
            f"DELETE FROM ONLY {storage} WHERE ctid = ANY (ARRAY(SELECT _s._place FROM "
            f"(SELECT *, ctid AS _place, row_number() OVER (PARTITION BY {alike}) "
            f"AS _copy FROM ONLY {storage}) AS _s JOIN (SELECT {columns}, "
            f"count(*) AS _copies FROM ({gone}) AS _g GROUP BY {alike}) AS _d "
            f"ON {same} WHERE _s._copy <= _d._copies))"
        )
        added = difference(table, inserted, deleted, exact)
    session.change(f"INSERT INTO {storage} ({columns}) {_GIVEN} {added}")


def store_rows(
    session: PostgreSQLSession,
    table: Table,
    rows: Mapping[Row, Row | None],
    new: Collection[Row],
) -> None:
    """Put rows in the place of those with their keys; None: in place of one, nothing.

    Storage has no rows with the keys ``new``. Rows of a table without UNIQUE keys are
    updated in place: PostgreSQL leaves the indexes alone then. With UNIQUE keys an
    update may meet a value that another row is about to give up.

    Raises
    ------
    UnstoredRowError
        Storage lacks a row that is known in part only.
    """
    if any(
        row is not None and is_partial(row) and key in new for key, row in rows.items()
    ):
        raise _unstored(table)
    if table.unique or table.computed_keys or _has_fixed(table):
        partial = [
            key for key, row in rows.items() if row is not None and is_partial(row)
        ]
        stored = session.read_rows(table, partial)
        if len(stored) < len(partial):
            raise _unstored(table)
        whole = {
            key: completed(row, stored[key])
            if row is not None and is_partial(row)
            else row
            for key, row in rows.items()
        }
        _delete(session, table, [key for key in whole if key not in new])
        _insert(session, table, [row for row in whole.values() if row is not None])
        return
    _delete(session, table, [key for key, row in rows.items() if row is None])
    _insert(session, table, [r for key, r in rows.items() if r and key in new])
    old = (row for key, row in rows.items() if row is not None and key not in new)
    for known, changed in by_columns(old).items():
        if len(known) == len(table.columns):
            _upsert(session, table, changed)
        else:
            _update(session, table, known, changed)


def _has_fixed(table: Table) -> bool:
    """Whether no UPDATE changes a column that other rows with the key may have otherwise."""
    return any(
        column.is_always and i not in table.primary_key
        for i, column in enumerate(table.columns)
    )


def _delete(session: PostgreSQLSession, table: Table, keys: Sequence[Row]) -> None:
    if not keys:
        return
    source = arrays(table, table.primary_key)
    names = ", ".join(f"_{i}" for i in table.primary_key)
    same = listed_equality(table, table.primary_key, "_r")
    session.change(
        f"DELETE FROM ONLY {storage_name(table)} AS _s USING {source} "
        f"AS _r({names}) WHERE {same}",
        array_parameters(table, table.primary_key, keys),
    )


def _insert(
    session: PostgreSQLSession, table: Table, rows: Sequence[Row], conflict: str = ""
) -> None:
    if not rows:
        return
    columns = range(len(table.columns))
    source = arrays(table, columns)
    session.change(
        f"INSERT INTO {storage_name(table)} ({column_list(table)}) {_GIVEN} "
        f"SELECT * FROM {source} AS _r{conflict}",
        array_parameters(table, columns, rows),
    )


def _upsert(session: PostgreSQLSession, table: Table, rows: Sequence[Row]) -> None:
    others = [
        quote(column.name)
        for i, column in enumerate(table.columns)
        if i not in table.primary_key or not is_exact(column.type)
    ]
    change = ", ".join(f"{name} = excluded.{name}" for name in others)
    action = f"UPDATE SET {change}" if others else "NOTHING"
    key = key_list(table, table.primary_key)
    _insert(session, table, rows, f" ON CONFLICT ({key}) DO {action}")


def _update(
    session: PostgreSQLSession,
    table: Table,
    columns: Sequence[int],
    rows: Sequence[Row],
) -> None:
    changed = [i for i in columns if i not in table.primary_key]
    if not changed:
        return
    source = arrays(table, columns)
    names = ", ".join(f"_{i}" for i in columns)
    values = ", ".join(f"{quote(table.columns[i].name)} = _r._{i}" for i in changed)
    same = listed_equality(table, table.primary_key, "_r")
    found = session.change(
        f"UPDATE ONLY {storage_name(table)} AS _s SET {values} "
        f"FROM {source} AS _r({names}) WHERE {same}",
        array_parameters(table, columns, rows),
    )
    if found < len(rows):
        raise _unstored(table)


def _unstored(table: Table) -> EngineError:
    return UnstoredRowError(
        ErrorKind.INTERNAL, f"{table.qualified_name} lacks a row that was to be changed"
    )


def versions_to_replay(
    session: PostgreSQLSession, table: Table, aside: Aside
) -> list[tuple[int, Row, bool]]:
    """The logged versions that the cache table lacks, whole."""
    ((folded,),) = session.execute(
        f'SELECT folded FROM tique."tables" WHERE id = {table.id} FOR UPDATE'
    ).fetch_all()
    entries = session.execute(
        f"SELECT cts, txid, commits FROM tique.log WHERE cts > {folded} ORDER BY cts"
    ).fetch_all()
    excluded = excluded_stamps(session, table)
    versions = list(versions_of(table, decoded(entries, aside), aside, excluded))
    if any(is_partial(row) for _, row, _ in versions):
        # It reads storage.
        session.execute(f"SELECT {sealed(session, table)}")
    return whole_versions(session, table, versions, aside)
