"""A transaction's uncommitted writes to one table, and how to undo them.

Small writes are *buffered* here as typed rows. Writes that are large, or whose
types do not survive the way through Python, are *staged*: they stay in the
engine, in a staging table of the session. Both are logs of versions with the
number of the statement that wrote them (``sequence``), newest wins, so that the
snapshot query overlays either in the same way and a savepoint is a number.

A statement that scans the table needs buffered rows in the engine too:
:meth:`TableWrites.spill` copies those to the staging table that are not there yet.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, NamedTuple

from tique import errors
from tique.store.rows import completed
from tique_backends.records import Row, Versions

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from tique.store.rows import Key
    from tique_backends.session import Session
    from tique_rewriter.schema import Table


class Merge(NamedTuple):
    """How a written row is computed from another version of it.

    ``compute`` raises ``NotLocal`` if it cannot; ``columns`` are those that it changes.
    With a condition on more than the key it may find another version not to be changed.
    """

    compute: Callable[[Row], Row]
    columns: frozenset[int]
    has_condition: bool = False

    def after(self, earlier: Merge) -> Merge:
        """Both, one after the other."""
        first, second = earlier.compute, self.compute
        return Merge(
            lambda row: second(first(row)),
            self.columns | earlier.columns,
            self.has_condition or earlier.has_condition,
        )


class Write(NamedTuple):
    """One buffered version.

    A tombstone keeps the old row, so that the cache table can keep the
    application's NOT NULL and CHECK constraints. ``sts`` is the snapshot that the
    first statement that wrote the row read (they differ within a READ COMMITTED transaction).
    ``merge`` computes the row from another version of it than the one that the
    transaction saw, if that can be said (:mod:`tique.commit.mergeable`).
    """

    row: Row
    deleted: bool
    sequence: int
    sts: int
    merge: Merge | None = None


class _Put(NamedTuple):
    """A statement's version of a key, and the one that it took the place of.

    ``was_spilled`` says whether the staging table had the latter by then: each version is
    there once.
    """

    sequence: int
    key: Key
    before: Write | None
    was_spilled: bool


class TableWrites:
    """The writes of one transaction to one table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.rows: dict[Key, Write] = {}
        self.copies: list[Write] = []
        self.is_staged = False
        self.is_doubtful = False
        """Whether the engine has yet to check that buffered rows fit into storage."""
        self.staged_sts: int | None = None
        self.staged_count = 0
        self.staged_keys: frozenset[Key] | None = None
        """The keys of staged rows, at the commit; None: any."""
        self.only_inserts = True
        """Whether each statement added rows under new keys, and none changed or deleted one."""
        self._columns_set: frozenset[int] | None = frozenset()
        self.may_merge = False
        """Whether some of the rows can be computed from other versions."""
        self._has_stage = False
        self._is_guarded = False
        self._history: list[_Put] = []
        self._unspilled: dict[Key, None] = {}
        self._spilled_copies = 0

    def __bool__(self) -> bool:
        """Whether there is anything to overlay or to commit."""
        return bool(self.rows or self.copies or self.staged_count)

    def may_write(self, key: Key) -> bool:
        """Whether it has, or may have, a version under this key."""
        if self.is_staged:
            return self.staged_keys is None or key in self.staged_keys
        return key in self.rows

    def copy(self) -> TableWrites:
        """Return the same writes; what is staged is the session's, for both."""
        other = copy(self)
        other.rows = dict(self.rows)
        other.copies = list(self.copies)
        other._history = list(self._history)
        other._unspilled = dict(self._unspilled)
        return other

    @property
    def has_stage(self) -> bool:
        """Whether the session has a staging table for them."""
        return self._has_stage

    def put(self, key: Key, write: Write) -> None:
        """Buffer a row or tombstone under its primary key.

        A version over an own one is certified since the snapshot of that: it was made of it.
        """
        before = self.rows.get(key)
        if before is not None and before.sts < write.sts:
            write = write._replace(sts=before.sts)
        was_spilled = key not in self._unspilled
        self._history.append(_Put(write.sequence, key, before, was_spilled))
        self.rows[key] = write
        self._unspilled[key] = None

    def note_columns(self, columns: Collection[int] | None) -> None:
        """Note the columns that a statement sets; None: it does more than that."""
        if columns is None or self._columns_set is None:
            self._columns_set = None
        else:
            self._columns_set = self._columns_set.union(columns)

    @property
    def columns_set(self) -> frozenset[int] | None:
        """The columns that statements set, if all that they did was to set columns of rows.

        Empty if all of its rows are new; None: they did something else.
        """
        return frozenset() if self.only_inserts else self._columns_set or None

    def note_merges(self, merges: Mapping[Key, Merge]) -> None:
        """Note how rows that were put last can be computed from other versions."""
        left = dict(merges)
        self.may_merge = True
        for _, key, before, _ in reversed(self._history):
            if not left:
                return
            merge = left.pop(key, None)
            if merge is None:
                continue
            if before is None:
                self.rows[key] = self.rows[key]._replace(merge=merge)
            elif before.merge is not None:
                both = merge.after(before.merge)
                self.rows[key] = self.rows[key]._replace(merge=both)

    @property
    def merges(self) -> bool:
        """Whether all of them are rows that can be computed from other versions."""
        return (
            not self.is_staged
            and not self.copies
            and all(write.merge is not None for write in self.rows.values())
        )

    def written_after(self, sequence: int) -> Iterator[Key]:
        """The keys of buffered rows that statements after a number wrote, newest first."""
        for number, key, *_ in reversed(self._history):
            if number <= sequence:
                return
            yield key

    def versions_after(self, sequence: int) -> Iterator[tuple[Key, Row]]:
        """Each buffered version that statements after a number wrote, newest first."""
        older: dict[Key, Write] = {}
        for number, key, before, _ in reversed(self._history):
            if number <= sequence:
                return
            yield key, older.get(key, self.rows[key]).row
            if before is not None:
                older[key] = before

    def add(self, write: Write) -> None:
        """Buffer an inserted or deleted copy of a keyless table's row."""
        self.copies.append(write)

    def buffered(self) -> Iterator[tuple[Key, Write]]:
        """The buffered versions, newest per key, in order of first writing."""
        if self.table.is_keyless:
            return ((write.row, write) for write in self.copies)
        return iter(self.rows.items())

    def open_stage(self, session: Session) -> None:
        """Make sure that the session has a staging table for this table."""
        if not self._has_stage:
            session.create_stage(self.table)
            self._has_stage = True

    def guard(self, session: Session) -> None:
        """Make sure that the staging table refuses rows that storage could not take."""
        self.open_stage(session)
        if not self._is_guarded:
            session.guard_stage(self.table)
            self._is_guarded = True

    def spill(self, session: Session) -> None:
        """Copy buffered rows that the staging table lacks into it."""
        self.open_stage(session)
        if self.is_staged:
            return
        pending = (
            self.copies[self._spilled_copies :]
            if self.table.is_keyless
            else [self.rows[key] for key in self._unspilled if key in self.rows]
        )
        self._stage(session, pending)
        self._unspilled.clear()
        self._spilled_copies = len(self.copies)

    def switch_to_stage(self, session: Session) -> None:
        """Move the writes to the staging table, which holds them from now on.

        Earlier versions of buffered rows move too: a later ROLLBACK TO a
        savepoint brings them back by dropping the newer ones.
        """
        if self.is_staged:
            return
        if self.table.bounds:
            self.guard(session)
        self.spill(session)
        earlier = [put.before for put in self._history if not put.was_spilled]
        self._stage(session, [write for write in earlier if write is not None])
        sts = [write.sts for _, write in self.buffered()]
        self.staged_count = len(sts)
        self.staged_sts = min(sts, default=None)
        self.rows.clear()
        self.copies.clear()
        self._history.clear()
        self.is_staged = True

    def note_staged(self, count: int, sts: int) -> None:
        """Count rows that a statement staged under snapshot ``sts``."""
        self.staged_count += count
        self.staged_sts = sts if self.staged_sts is None else min(sts, self.staged_sts)

    def rollback_to(self, sequence: int, session: Session) -> None:
        """Undo the writes of statements after ``sequence``."""
        while self._history and self._history[-1][0] > sequence:
            _, key, before, was_spilled = self._history.pop()
            if before is None:
                del self.rows[key]
            else:
                self.rows[key] = before
            if was_spilled:
                self._unspilled.pop(key, None)
            else:
                self._unspilled[key] = None
        while self.copies and self.copies[-1].sequence > sequence:
            self.copies.pop()
        self._spilled_copies = min(self._spilled_copies, len(self.copies))
        self.is_doubtful = False
        if self._has_stage:
            session.unstage(self.table, sequence)

    def discard(self, session: Session) -> None:
        """Drop the staging table, if there is one."""
        if self._has_stage:
            session.drop_stage(self.table)
            self._has_stage = self._is_guarded = False

    def _stage(self, session: Session, writes: Sequence[Write]) -> None:
        if writes:
            rows = []
            for row in completed(session, self.table, [write.row for write in writes]):
                if row is None:
                    raise errors.SerializationError(
                        f"a row of {self.table.qualified_name} that this transaction "
                        "changed is gone",
                        table=self.table.qualified_name,
                    )
                rows.append(row)
            session.stage(
                Versions(
                    self.table,
                    rows,
                    [write.sequence for write in writes],
                    [write.deleted for write in writes],
                )
            )


def columns_set(writes: Iterable[TableWrites]) -> dict[int, Collection[int]]:
    """What a commit's record has of the columns that buffered writes set."""
    return {
        each.table.id: found
        for each in writes
        if not each.is_staged
        and not each.table.is_keyless
        and (found := each.columns_set) is not None
    }
