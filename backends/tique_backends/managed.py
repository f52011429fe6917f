"""The managed tables, whatever changes were made past tique (P4).

A table that was dropped, renamed or changed without tique, so that it cannot be
described any more, keeps no other table from being used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_backends.engine import FORMAT_OF_CACHES_BY_NAME
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.foreign_keys import attached
from tique_backends.names import cache_label, quote
from tique_rewriter.schema import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tique_backends.records import Row
    from tique_backends.session import Session

MANAGED = 'SELECT schema_name, table_name, id FROM tique."tables" ORDER BY id'

_FAULTS = (ErrorKind.PROGRAMMING, ErrorKind.UNSUPPORTED)

_STAMPS = 2
"""``_cts`` and ``_deleted``, behind the application's columns of a cache table."""


def number_caches(session: Session, found: int) -> None:
    """Name the cache tables by number, where the format ``found`` has tables' names."""
    if found > FORMAT_OF_CACHES_BY_NAME:
        return
    for schema, name, number in session.execute(MANAGED).fetch_all():
        before = f"tique.{quote(f'{schema}.{name}')}"
        session.execute(f"ALTER TABLE {before} RENAME TO {quote(cache_label(number))}")


def described(
    managed: Iterable[Row],
    layouts: Iterable[Row],
    describe: Callable[[str, str, int], Table],
    foreign_keys: Iterable[Row] = (),
) -> list[Table]:
    """Describe the managed tables; those for which that fails have a ``fault``.

    Parameters
    ----------
    managed
        The rows of ``MANAGED``.
    layouts
        The columns of tique's tables: table and column name, in order. Rows in cache
        tables and in the log have the columns that their table had.
    describe
        Describes one table by schema, name and number.
    foreign_keys
        The constraints that are kept, as :mod:`tique_backends.foreign_keys` reads them.
    """
    columns: dict[str, list[str]] = {}
    for cache, column in layouts:
        columns.setdefault(cache, []).append(column)
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
    return attached(tables, foreign_keys)


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
