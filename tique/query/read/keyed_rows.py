"""Rows by their keys, as one transaction sees them.

A row is found in this order (P1, P8): the transaction's own writes, the newest
version with cts ≤ sts in the index of recent versions, the storage table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tique import errors
from tique.store.rows import columns_to_read, key_of, lacks, merged
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.names import cache_name, column_list, key_equality
from tique_backends.records import MISSING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tique.store.ranges import Address, KeyRange
    from tique.store.rows import Key
    from tique.store.versions import TableVersions
    from tique.writes.table import TableWrites
    from tique_backends.engine import Engine
    from tique_backends.records import Row
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_REMEMBERED_ROWS = 50_000
"""Rows read under one snapshot that a transaction keeps at the most."""
_ASKED_AT_ONCE = 500


class KeyedRows(ABC):
    """The part of a transaction that reads rows by key; those of storage are read once.

    The rest of it is :class:`~tique.query.transaction.transaction.Transaction`.
    """

    engine: Engine
    session: Session
    sts: int
    sequence: int
    writes: dict[int, TableWrites]

    def __init__(self) -> None:
        self._read: dict[tuple[int, Key], Row | None] = {}
        self._queried: dict[tuple[int, Key], Row | None] = {}

    @property
    @abstractmethod
    def has_one_snapshot(self) -> bool:
        """Whether all statements have the same snapshot."""

    @abstractmethod
    def versions(self, table: Table) -> TableVersions:
        """The recent versions of a table."""

    @abstractmethod
    def prepare_scan(
        self, table: Table, *, is_seen: bool = False
    ) -> TableWrites | None:
        """Bring into the engine the versions that a query over the table must see."""

    def knows(self, table: Table) -> bool:
        """Whether memory has all versions of a table, and this transaction's own writes."""
        writes = self.writes.get(table.id)
        return self.versions(table).is_complete and not (
            writes is not None and writes.is_staged
        )

    def _forget_rows(self) -> None:
        """Read rows again: those are of another snapshot."""
        self._read.clear()
        self._queried.clear()

    def row(
        self, table: Table, key: Key, needed: Sequence[int] | None = None
    ) -> Row | None:
        """Return the row that this transaction sees under a primary key.

        Columns other than ``needed`` (all by default) may be ``MISSING`` in it.
        """
        needed = self.needed_to_change(needed)
        read = columns_to_read(table, needed)
        writes = self.writes.get(table.id)
        if writes is not None:
            own = writes.rows.get(key)
            if own is not None:
                if own.deleted or not lacks(own.row, read):
                    return None if own.deleted else own.row
                whole = self._completed(table, own.row, read)
                if whole is None:
                    raise errors.SerializationError(
                        f"the row of {table.qualified_name} with the key {key} that this "
                        "transaction changed is gone",
                        table=table.qualified_name,
                        key=key,
                    )
                writes.rows[key] = own._replace(row=whole)
                return whole
            if writes.is_staged:
                return self._queried_row(table, key)
        versions = self.versions(table)
        if not versions.is_complete:
            return self._queried_row(table, key)
        version = versions.newest_visible(key, self.sts)
        if version is not None:
            cts, found, _ = version
            if found is None or not lacks(found, read):
                return found
            row = self._completed(table, found, read)
            if row is None:
                versions.set_aside(cts)
            else:
                versions.complete(key, version, row)
            return row
        return self._stored_row(table, key, needed, versions)

    def needed_to_change(self, needed: Sequence[int] | None) -> Sequence[int] | None:
        """The columns to read of a row, to make a new version of it from these."""
        if not self.has_one_snapshot:
            # The transaction's writes outlive the snapshot of their gaps.
            return None
        return needed

    def _completed(self, table: Table, row: Row, read: Sequence[int]) -> Row | None:
        """Fill a row's gaps in the columns ``read`` from storage; None: not there."""
        gaps = [i for i in read if row[i] is MISSING]
        key = tuple(row[i] for i in table.primary_key)
        stored = self._stored_row(table, key, gaps, self.versions(table))
        return None if stored is None else merged(row, stored)

    def _stored_row(
        self,
        table: Table,
        key: Key,
        needed: Sequence[int] | None,
        versions: TableVersions,
    ) -> Row | None:
        """The storage row, from memory if it is known there."""
        read = columns_to_read(table, needed)
        known, row = versions.storage_row(key, read)
        if known:
            return row
        found = self._read.get((table.id, key), self)
        if not isinstance(found, KeyedRows) and (
            found is None or not lacks(found, read)
        ):
            return found
        if needed is not None:
            read = columns_to_read(table, {*read, *versions.changed_columns})
        epoch = versions.epoch
        address = versions.range_to_read(key, read)
        part = None if address is None else self._read_range(versions, address)
        if part is not None:
            known, row = part.find(key, read)
        if not known:
            row = self.session.read_row(table, key, read)
        versions.remember(epoch, [(key, row)])
        self._remember(table, key, row)
        return row

    def _read_range(self, versions: TableVersions, address: Address) -> KeyRange | None:
        """Read a range from storage; None if it is not kept."""
        epoch = versions.epoch
        keys, limit = address[2:5], None if address.most is None else address.most + 1
        rows = None
        try:
            rows = self.session.read_range(
                versions.table, *keys, address.columns, limit=limit
            )
        except EngineError as error:
            # A value that columns of its type cannot hold: a NaN among decimals.
            if error.kind is not ErrorKind.DATA:
                raise
        return versions.remember_range(epoch, address, rows)

    def group_range(
        self,
        table: Table,
        prefix: Key,
        columns: Collection[int],
        *,
        as_rows: bool,
        beside: int = 1,
    ) -> KeyRange | None:
        """A range that has all storage rows with one prefix of the key, in memory.

        It is read when the group was missed some times; a miss counts for ``beside``
        groups. For the order in which it and the visible versions are read, see
        :mod:`tique.store.versions`.
        """
        versions = self.versions(table)
        part = versions.group_range(prefix, columns, as_rows=as_rows)
        if part is None:
            address = versions.range_to_read(prefix, columns, beside, as_rows=as_rows)
            if address is not None:
                part = self._read_range(versions, address)
        return part

    def expect_free(self, table: Table, key: Key) -> None:
        """Read the range of new keys from this one on, if that is worth it."""
        versions = self.versions(table)
        if not versions.storage_row(key)[0]:
            address = versions.tail_to_read(key)
            if address is not None:
                self._read_range(versions, address)

    def prefetch(
        self, table: Table, keys: Sequence[Key], needed: Sequence[int] | None = None
    ) -> None:
        """Read the rows that :meth:`row` would ask the engine for, in few statements."""
        versions = self.versions(table)
        writes = self.writes.get(table.id)
        own = writes.rows if writes is not None else {}
        if not self.knows(table):
            asked = [key for key in dict.fromkeys(keys) if key not in own]
            if len(asked) > 1 and not (writes is not None and writes.is_staged):
                self._query_rows(table, asked)
            return
        read = columns_to_read(table, needed)
        missing = [
            key
            for key in dict.fromkeys(keys)
            if key not in own
            and (table.id, key) not in self._read
            and versions.newest_visible(key, self.sts) is None
            and not versions.storage_row(key, read)[0]
        ]
        if len(missing) < 2:
            # A single row is read when it is asked for, perhaps with its page.
            return
        epoch = versions.epoch
        found = self.session.read_rows(table, missing, read)
        rows = [(key, found.get(key)) for key in missing]
        versions.remember(epoch, rows)
        for key, row in rows:
            self._remember(table, key, row)

    def _remember(self, table: Table, key: Key, row: Row | None) -> None:
        if len(self._read) >= _REMEMBERED_ROWS:
            self._read.clear()
        self._read[table.id, key] = row

    def _query_rows(self, table: Table, keys: Sequence[Key]) -> None:
        """Find what :meth:`_queried_row` would ask the engine for, key by key."""
        if len(self._queried) + len(keys) > _REMEMBERED_ROWS:
            self._queried.clear()
        self.versions(table).drain(self.session, self.sts)
        same = key_equality(table, table.primary_key, "_o.", "_n.")
        for start in range(0, len(keys), _ASKED_AT_ONCE):
            part = keys[start : start + _ASKED_AT_ONCE]
            wanted = self.engine.forms.constants(
                table, table.primary_key, {}, list(zip(*part, strict=True))
            )
            # Before storage, to which a fold may move them meanwhile.
            recent = self.session.rows_to_keep(
                f"SELECT _deleted, {column_list(table, '_o.')} FROM {cache_name(table)} "
                f"AS _o JOIN {wanted} AS _n ON {same} WHERE _cts <= {self.sts} "
                "ORDER BY _cts",
                of=table,
            )
            found: dict[Key, Row | None] = {**self.session.read_rows(table, part)}
            for deleted, *values in recent:
                row = tuple(values)
                found[key_of(table.primary_key, row)] = None if deleted else row
            self._queried |= {(table.id, key): found.get(key) for key in part}

    def _queried_row(self, table: Table, key: Key) -> Row | None:
        self.versions(table).drain(self.session, self.sts)
        writes = self.writes.get(table.id)
        if writes is not None and writes.is_staged:
            writes.spill(self.session)
        elif (table.id, key) in self._queried:
            return self._queried[table.id, key]
        else:
            # Rows in the buffer have other keys, and stay there: they may merge.
            writes = None
        source = self.engine.forms.point(
            table,
            self.sts,
            [f"${i + 1}" for i in range(len(key))],
            staged=self.sequence if writes else None,
        )
        rows = self.session.rows_to_keep(f"SELECT * FROM {source} AS _q", key, of=table)
        return rows[0] if rows else None
