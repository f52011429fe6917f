"""The managed tables, whatever changes were made past tique (P4).

A table that was dropped, renamed or changed without tique, so that it cannot be
described any more, keeps no other table from being used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_backends.catalog import histories
from tique_backends.catalog.foreign_keys import attached, read
from tique_backends.engine import FORMAT_VERSION
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.names import cache_label
from tique_rewriter.schema import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tique_backends.session import Session

MANAGED = 'SELECT schema_name, table_name, id FROM tique."tables" ORDER BY id'

_FAULTS = (ErrorKind.PROGRAMMING, ErrorKind.UNSUPPORTED)

_STAMPS = 2
"""``_cts`` and ``_deleted``, behind the application's columns of a cache table."""


def renew(session: Session) -> None:
    """Make the format before this one."""
    for statement in histories.SCHEMA:
        session.execute(statement)
    session.execute(
        f"UPDATE tique.format SET version = {FORMAT_VERSION}, epoch = epoch + 1"
    )


def managed_tables(
    session: Session,
    layouts: str,
    describing: Callable[[Sequence[tuple[str, str]]], Callable[[str, str, int], Table]],
) -> list[Table]:
    """Describe the managed tables; those for which that fails have a ``fault``.

    Parameters
    ----------
    session
        The session to ask over.
    layouts
        A query for the columns of tique's tables: table and column name, in order. Rows
        in cache tables and in the log have the columns that their table had.
    describing
        Takes schema and name of each table; the result describes one table by schema,
        name and number.
    """
    columns: dict[str, list[str]] = {}
    laid_out = session.execute(layouts).fetch_all()
    for cache, column in laid_out:
        columns.setdefault(cache, []).append(column)
    managed = session.execute(MANAGED).fetch_all()
    describe = describing([(schema, name) for schema, name, _ in managed])
    tables = [
        _described(
            schema,
            name,
            number,
            columns.get(cache_label(number), [])[:-_STAMPS],
            describe,
        )
        for schema, name, number in managed
    ]
    tables = histories.attached(session, tables)
    return attached(tables, read(session, laid_out))


def _described(
    schema: str,
    name: str,
    number: int,
    before: list[str],
    describe: Callable[[str, str, int], Table],
) -> Table:
    try:
        found = describe(schema, name, number)
    except EngineError as error:
        if error.kind not in _FAULTS:
            raise
        return Table(schema, name, (), id=number, fault=str(error))
    now = [column.name for column in found.columns]
    if now == before:
        return found
    fault = f"it has the columns {', '.join(now)}; before, {', '.join(before)}"
    return Table(schema, name, (), id=number, fault=fault)
