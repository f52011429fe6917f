"""Temporary tables in the engine: a storage table of the session, and an empty cache table.

An application's temporary table is read and written like a managed one, but its rows have
no timestamps and nothing of it is in the log. So its cache table is empty between two
statements, and the staging table's rows move to storage when the transaction commits.
Neither table has a key: a statement has been checked when its rows are staged.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tique_backends.errors import EngineError
from tique_backends.forms import together
from tique_backends.names import (
    cache_name,
    collated,
    column_list,
    key_equality,
    quote,
    storage_name,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tique_backends.forms import Forms
    from tique_backends.session import Session
    from tique_rewriter.schema import Table


def create(
    session: Session, table: Table, query: tuple[str, Sequence[Any]] | None
) -> int:
    """Create a temporary table, with the rows of a query and its parameters.

    Returns
    -------
    int
        The number of these rows; -1 without a query.
    """
    columns = [
        f"{quote(column.name)} {column.type}{collated(column)}"
        f"{' NOT NULL' if column.not_null else ''}"
        for column in table.columns
    ]
    checks = [f"CHECK ({check.expression})" for check in table.checks]
    stamps = ["_cts BIGINT", "_deleted BOOLEAN"]

    # Each by itself: MonetDB's rollback of what has made one spoils the session (README.md).
    try:
        session.create_temporary(storage_name(table), ", ".join(columns + checks))
        session.create_temporary(cache_name(table), ", ".join(columns + stamps))
        if query is not None:
            sql, bound = query
            text = f"INSERT INTO {storage_name(table)} {sql}"
            rows = session.transact(lambda: session.execute(text, bound).fetch_all())
            return int(rows[0][0])
    except BaseException:
        # In a transaction that is held it goes with that.
        with suppress(EngineError):
            drop(session, table)
        raise
    return -1


def drop(session: Session, table: Table) -> None:
    """Drop a temporary table; idempotent."""
    for place in (storage_name(table), cache_name(table)):
        session.drop_temporary(place)


def empty(session: Session, table: Table) -> None:
    """Delete all rows of a temporary table that are not staged."""
    session.execute(f"DELETE FROM {storage_name(table)}")


def keep(
    session: Session, forms: Forms, table: Table, sequence: int, *, tombstones: bool
) -> None:
    """Move the staged rows up to a sequence number into a temporary table.

    ``tombstones`` says whether those of a keyless table contain any.
    """
    storage, cache, stage = storage_name(table), cache_name(table), forms.stage(table)
    columns = column_list(table)

    def move() -> None:
        if table.is_keyless and not tombstones:
            session.execute(
                f"INSERT INTO {storage} SELECT {columns} FROM {stage} "
                f"WHERE _sequence <= {sequence}"
            )
            return
        # No snapshot sees the rows that wait in the cache table.
        rows = together(forms.scan(table, 0, staged=sequence))
        among = ""
        if not table.is_keyless:
            same = key_equality(table, table.primary_key, "_s.", "_v.")
            among = f" WHERE EXISTS (SELECT 1 FROM {stage} AS _v WHERE {same})"
        session.execute(
            f"INSERT INTO {cache} SELECT {column_list(table, '_s.')}, 1, FALSE "
            f"FROM {rows} AS _s{among}"
        )
        session.execute(f"DELETE FROM {storage} AS _s{among}")
        session.execute(f"INSERT INTO {storage} SELECT {columns} FROM {cache}")
        session.execute(f"DELETE FROM {cache}")

    session.transact(move)
