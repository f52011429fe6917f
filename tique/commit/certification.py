"""Certification: first committer wins (P3; paper, section 2.3.4).

A transaction may commit if no other transaction committed one of its keys after the
snapshot under which it wrote that key. Keys are primary keys and the UNIQUE keys of new
rows; a table without a primary key has none, there the deleted rows count.

:class:`QueryCertifier` asks the cache tables, and is the reference.
:class:`MemoryCertifier` asks the index of recent versions, and is the fast form;
for a table whose index is incomplete it asks the query. Both are called by the
leader of a group commit only, after every earlier commit has been published, so
that no commit can slip between the question and the append.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol

from tique.commit.lock_keys import MERGING
from tique.store.kept_keys import too_old
from tique.store.rows import Key, key_of
from tique.writes.tickets import Conflict
from tique_backends.names import key_list
from tique_backends.records import MISSING
from tique_rewriter.local.kernel import NotLocal, coercer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tique.store.catalog import ManagedCatalog
    from tique.store.versions import TableVersions
    from tique.writes.table import TableWrites, Write
    from tique_backends.forms import Forms
    from tique_backends.records import Row
    from tique_backends.session import Session
    from tique_rewriter.schema import ComputedKey, Table

KEYS_PER_QUERY = 200


class Certifier(Protocol):
    """Finds a committed transaction that wrote one of a table's written keys."""

    name: str

    def conflict(self, writes: TableWrites, session: Session) -> Conflict | None:
        """The first conflict, or None. Of staged writes all have the snapshot of the first."""


def written_keys(
    writes: TableWrites,
) -> Iterator[tuple[tuple[int, ...], list[tuple[Key, Write]]]]:
    """The write set: for each key (its columns), the values written under it."""
    table = writes.table
    if table.is_keyless:
        every_column = tuple(range(len(table.columns)))
        deleted = [(write.row, write) for write in writes.copies if write.deleted]
        if deleted:
            yield every_column, deleted
    elif writes.rows:
        yield table.primary_key, list(writes.rows.items())
    for positions in table.unique:
        values = [
            (key_of(positions, write.row), write)
            for _, write in writes.buffered()
            if not write.deleted
        ]
        yield positions, [entry for entry in values if None not in entry[0]]


def key_hashes(writes: TableWrites) -> list[bytes]:
    """The write set in hashes, against which other processes' commits are certified.

    With the merging keys of deleted rows (:mod:`tique.commit.server_locks`).
    """
    hashes = []
    for positions, entries in written_keys(writes):
        for key, write in entries:
            hashes.append(key_hash(writes.table.id, positions, key))
            if write.deleted and not writes.table.is_keyless:
                hashes.append(key_hash(writes.table.id, MERGING, key))
    return hashes


def key_hash(table_id: int, positions: tuple[int, ...], key: Sequence[object]) -> bytes:
    """The hash of a key's values in a table, of 16 bytes."""
    text = repr((table_id, positions, [canonical(v) for v in key]))
    return blake2b(text.encode(), digest_size=16).digest()


def canonical(value: object) -> object:
    """A text that is the same for equal values of a column's type."""
    if isinstance(value, Decimal):
        return format(value.normalize(), "f") if value else "0"
    if isinstance(value, float) and value == 0:
        return 0.0
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value


class ComputedKeys:
    """Values of unique indexes on expressions, which the engine alone can compute.

    Parameters
    ----------
    catalog
        The managed tables.
    forms
        The engine's SQL.
    """

    def __init__(self, catalog: ManagedCatalog, forms: Forms) -> None:
        self._catalog = catalog
        self._forms = forms

    def conflict(self, writes: TableWrites, session: Session) -> Conflict | None:
        """The first value that a later commit than its snapshot wrote, or None."""
        table = writes.table
        for key in table.computed_keys:
            for write, _, winner in self.values(writes, key, session):
                if winner is not None:
                    return Conflict(table, key_of(key.columns, write.row), winner)
                expect_in_reach(self._catalog, table, write.sts, session)
        return None

    def hashes(self, writes: TableWrites, session: Session) -> list[bytes]:
        """The values of new rows in hashes, as :func:`key_hashes` has them of keys."""
        table = writes.table
        return [
            # No other key has no columns; an index may get another name.
            key_hash(table.id, (), (key.texts, value))
            for key in table.computed_keys
            for _, value, _ in self.values(writes, key, session)
        ]

    def values(
        self, writes: TableWrites, key: ComputedKey, session: Session
    ) -> Iterator[tuple[Write, int, int | None]]:
        """New rows with the hashes of their values, and the cts of a later one's."""
        table = writes.table
        new = [write for _, write in writes.buffered() if not write.deleted]
        if new:
            self._catalog.versions(table).drain(session)
        for start in range(0, len(new), KEYS_PER_QUERY):
            part = new[start : start + KEYS_PER_QUERY]
            rows = [(key_of(key.columns, write.row), write.sts) for write in part]
            sql = self._forms.computed_keys(table, key, rows)
            for number, value, winner in session.execute(sql).fetch_all():
                yield part[number], value, winner


def is_in_reach(
    catalog: ManagedCatalog, table: Table, sts: int, session: Session
) -> bool:
    """Whether all versions later than a snapshot are in the cache table, and in memory.

    λ passes a snapshot that the engine keeps. Asked *after* versions were looked for: a fold
    that moved them before that is in what the engine says.
    """
    if sts not in list(catalog.long_writers.values()):
        return True
    query = f'SELECT folded FROM tique."tables" WHERE id = {table.id}'
    ((folded,),) = session.execute(query).fetch_all()
    return bool(folded <= sts)


def expect_in_reach(
    catalog: ManagedCatalog, table: Table, sts: int, session: Session
) -> None:
    """Refuse a snapshot for which that is not so (SerializationError)."""
    if not is_in_reach(catalog, table, sts, session):
        raise too_old(table)


class QueryCertifier:
    """Certification computed by the engine over the cache tables."""

    name = "query"

    def __init__(self, catalog: ManagedCatalog, forms: Forms) -> None:
        self._catalog = catalog
        self._forms = forms
        self.computed = ComputedKeys(catalog, forms)

    def conflict(self, writes: TableWrites, session: Session) -> Conflict | None:
        """Ask the engine, a few hundred keys at a time."""
        if writes.is_staged:
            return self._staged_conflict(writes, session)
        for positions, entries in written_keys(writes):
            if entries:
                self._catalog.versions(writes.table).drain(session)
            for start in range(0, len(entries), KEYS_PER_QUERY):
                part = entries[start : start + KEYS_PER_QUERY]
                found = self._ask(writes.table, positions, part, session)
                if found is not None:
                    return found
            found = self._folded(
                writes.table, positions, [(k, w.sts) for k, w in entries], session
            )
            if found is not None:
                return found
        return self.computed.conflict(writes, session)

    def _staged_conflict(
        self, writes: TableWrites, session: Session
    ) -> Conflict | None:
        table, sts = writes.table, writes.staged_sts
        assert sts is not None
        self._catalog.versions(table).drain(session)
        keys = [table.primary_key or tuple(range(len(table.columns))), *table.unique]
        queries = [self._forms.staged_conflicts(table, key, sts) for key in keys]
        queries += [
            self._forms.staged_computed_conflicts(table, key, sts)
            for key in table.computed_keys
        ]
        for sql in queries:
            rows = session.execute(sql).fetch_all()
            if rows:
                return Conflict(table, rows[0][:-1], rows[0][-1])
        for key in keys:
            if not is_in_reach(self._catalog, table, sts, session):
                new = "" if key == keys[0] else " WHERE NOT _deleted"
                if table.is_keyless and key == keys[0]:
                    new = " WHERE _deleted LIMIT 1"
                staged = session.rows_to_keep(
                    f"SELECT {key_list(table, key)} FROM {self._forms.stage(table)}{new}"
                )
                found = self._folded(table, key, [(k, sts) for k in staged], session)
                if found is not None:
                    return found
        return None

    def _folded(
        self,
        table: Table,
        positions: tuple[int, ...],
        keys: Sequence[tuple[Key, int]],
        session: Session,
    ) -> Conflict | None:
        """The first of some keys, each with an sts, that has left the cache table since.

        Raises
        ------
        SerializationError
            It cannot be known.
        """
        late = {
            sts
            for sts in {sts for _, sts in keys}
            if not is_in_reach(self._catalog, table, sts, session)
        }
        if not late:
            return None
        versions = self._catalog.versions(table)
        coercers = [coercer(table.columns[i].type) for i in positions]
        is_primary = positions == table.primary_key
        if not is_primary and positions not in table.unique:
            raise too_old(table)
        for values, sts in keys:
            try:
                key = tuple([c(v) for c, v in zip(coercers, values, strict=True)])
            except NotLocal:
                raise too_old(table) from None
            winner = (
                versions.last_commit(key)
                if is_primary
                else versions.last_unique_commit(table.unique.index(positions), key)
            )
            if winner > sts:
                return Conflict(table, key, winner)
        if min(late) < versions.judges_since:
            raise too_old(table)
        return None

    def _ask(
        self,
        table: Table,
        positions: tuple[int, ...],
        entries: Sequence[tuple[Key, Write]],
        session: Session,
    ) -> Conflict | None:
        parameters = [value for key, write in entries for value in (*key, write.sts)]
        rows = session.execute(
            self._forms.conflicts(table, positions, len(entries)), parameters
        ).fetch_all()
        if not rows:
            return None
        ordinal, winner = min(rows)
        return Conflict(table, entries[ordinal][0], winner)


class MemoryCertifier:
    """Certification over the index of recent versions."""

    name = "memory"

    def __init__(self, catalog: ManagedCatalog, query: QueryCertifier) -> None:
        self._catalog = catalog
        self._query = query

    def conflict(self, writes: TableWrites, session: Session) -> Conflict | None:
        """Look every key up; ask the engine for keyless tables, after bulk commits."""
        table = writes.table
        versions = self._catalog.versions(table)
        # The table's owner may have made a unique index without tique.
        is_known = versions.is_complete and versions.table.unique == table.unique
        if table.is_keyless or writes.is_staged or not is_known:
            return self._query.conflict(writes, session)
        for key, write in writes.rows.items():
            winner = versions.last_commit(key)
            if winner > write.sts:
                columns = _changed_columns(versions, table, key, write.sts)
                return Conflict(table, key, winner, columns)
        for constraint, positions in enumerate(table.unique):
            for write in writes.rows.values():
                if write.deleted:
                    continue
                values = key_of(positions, write.row)
                winner = versions.last_unique_commit(constraint, values)
                if winner > write.sts and None not in values:
                    return Conflict(table, values, winner)
        # Last: what a fold drops meanwhile is said here before it is.
        since = versions.judges_since
        for write in writes.rows.values():
            if write.sts < since:
                raise too_old(table)
        if table.computed_keys and any(
            versions.last_cts > write.sts for write in writes.rows.values()
        ):
            return self._query.computed.conflict(writes, session)
        return None


def _changed_columns(
    versions: TableVersions, table: Table, key: Key, sts: int
) -> tuple[str, ...]:
    """The names of the columns that the newest version changed since a snapshot."""
    newest, seen = versions.newest(key), versions.newest_visible(key, sts)
    old = versions.storage_row(key)[1] if seen is None else seen[1]
    return differing(table, None if newest is None else newest[1], old)


def differing(table: Table, new: Row | None, old: Row | None) -> tuple[str, ...]:
    """The names of the columns in which two rows differ, where both are known."""
    if new is None or old is None:
        return ()
    return tuple(
        [
            column.name
            for column, one, other in zip(table.columns, new, old, strict=True)
            if one is not MISSING and other is not MISSING and one != other
        ]
    )
