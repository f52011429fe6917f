"""The SQL that the servers, MonetDB and PostgreSQL, have in common: pure text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from tique_backends.forms import Forms, difference, together
from tique_backends.names import (
    cache_name,
    column_list,
    key_equality,
    quote,
    storage_name,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_rewriter.schema import Table


def newest(
    table: Table, source: str, stamp: str, alias: str, until: int | None = None
) -> str:
    """A condition: no row of ``source`` has the key of ``alias`` and a later stamp."""
    same = key_equality(table, table.primary_key, f"{alias}.", "_l.")
    bound = "" if until is None else f" AND _l.{stamp} <= {until}"
    return (
        f"NOT EXISTS (SELECT 1 FROM {source} AS _l WHERE {same} "
        f"AND _l.{stamp} > {alias}.{stamp}{bound})"
    )


def appending_staged(table: Table, stage: str, cts: int) -> str:
    """The statement of :meth:`Session.append_staged`, for this staging table."""
    return f"INSERT INTO {cache_name(table)} {newest_staged(table, stage, cts)}"


def newest_staged(table: Table, stage: str, cts: int) -> str:
    """A query for the rows that it appends."""
    latest = ""
    if not table.is_keyless:
        latest = f" WHERE {newest(table, stage, '_sequence', '_n')}"
    return (
        f"SELECT {column_list(table, '_n.')}, "
        f"CAST({cts} AS BIGINT), _n._deleted FROM {stage} AS _n{latest}"
    )


def listed_equality(table: Table, positions: Sequence[int], alias: str = "_x") -> str:
    """Equality of ``_s`` and of rows whose columns are called by position."""
    columns = [(i, table.columns[i]) for i in positions]
    return " AND ".join(
        f"_s.{quote(each.name)} {each.equality} {alias}._{i}" for i, each in columns
    )


class ServerForms(Forms):
    """Forms with NOT EXISTS, which these engines plan as an anti-join."""

    storage_first = True
    """Whether storage rows come before the versions that are added to them."""

    @override
    def scan(
        self,
        table: Table,
        sts: int,
        *,
        staged: int | None,
        appended: bool = False,
        flat: bool = False,
        past: bool = False,
        folded: int = 0,
    ) -> tuple[str, ...]:
        versions = (
            self._past_versions(table, sts, folded, flat=flat)
            if past
            else self._versions(table, sts, staged, folded)
        )
        if table.is_keyless:
            return self._seen(*self._keyless(table, versions, appended=appended))
        parts = self._kept(table, versions), self._current(table, versions, flat=flat)
        return self._seen(*(parts if self.storage_first else parts[::-1]))

    def _keyless(
        self, table: Table, versions: str, *, appended: bool
    ) -> tuple[str, ...]:
        columns = column_list(table)
        added = f"(SELECT {columns} FROM {versions} AS _i WHERE NOT _deleted)"
        rows = (added, f"(SELECT {columns} FROM {storage_name(table)})")
        if appended:
            return rows
        there, gone = f"{together(rows)} AS _p", f"{versions} AS _d WHERE _deleted"
        return (f"({difference(table, there, gone, self.images(table))})",)

    def _current(self, table: Table, versions: str, *, flat: bool) -> str:
        """The newest version of each key that has one and was not deleted."""
        query = (
            f"SELECT {column_list(table, '_c.')} FROM {versions} AS _c "
            "WHERE NOT _c._deleted"
        )
        if not flat:
            query += f" AND {newest(table, versions, '_cts', '_c')}"
        return f"({query})"

    def _kept(self, table: Table, versions: str) -> str:
        """The storage rows of which there is no version."""
        same = key_equality(table, table.primary_key, "_s.", "_v.")
        return (
            f"(SELECT {self.stored_list(table, range(len(table.columns)), '_s.')} "
            f"FROM {storage_name(table)} AS _s "
            f"WHERE NOT EXISTS (SELECT 1 FROM {versions} AS _v WHERE {same}))"
        )
