"""ON CONFLICT: inserts proposed rows; updates, or leaves, existing rows in their way.

The engine is not asked to do it: the row of a key in storage says nothing of the one in
a snapshot. Proposed rows come to the driver, which looks up the existing rows under
their keys, decides row by row, and writes the outcome like any other changes. So a
proposed row without an existing one is an insert, which is certified against other
transactions.

All proposed rows go through Python, however many: 100,000 take 1.3 to 2.4 seconds
on DuckDB, in 90 MB, and 1.8 to 4.6 on MonetDB. Rows that do not survive that stay in the
engine (:mod:`tique.query.write.staged_conflict`), which does not take every clause.

NOT NULL and CHECK are checked for the rows that are written, as DuckDB does; on PostgreSQL,
before that, for every proposed row (:attr:`Capabilities.checks_proposed_rows`).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tique import errors
from tique.query.read.sources import Source, looked_up
from tique.query.write.assigning import Assigned, compiled, with_values
from tique.query.write.changes import (
    Computed,
    exactness,
    is_free,
    lacks_value,
    write_changes,
)
from tique.query.write.constraints import check_proposed
from tique.query.write.staged_conflict import StagedConflict, met_twice, pairs_of
from tique.store.rows import key_of, lacks, merged
from tique.writes.table import Merge
from tique_rewriter.local.kernel import NotLocal
from tique_rewriter.plans.change_plans import PROPOSED
from tique_rewriter.plans.plan import ColumnValue, Reference
from tique_rewriter.schema import Column, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from tique.query.read.snapshot import SnapshotText
    from tique.query.transaction.transaction import Transaction
    from tique.query.write.changes import Written
    from tique.store.rows import Key
    from tique.writes.table import TableWrites
    from tique_backends.records import Row
    from tique_rewriter.plans.change_plans import Conflict, ConflictUpdate
    from tique_rewriter.schema import ComputedKey

_AT_ONCE = 1000
"""So many rows are looked up, or computed, in one engine statement."""

_NUMBER = f"{PROPOSED}number"


@dataclass(eq=False, slots=True)
class _Present:
    """An existing row.

    ``old`` is the row before the statement, ``changed_by`` the number of the parameters
    that wrote ``new``: None for an unchanged row. ``updates`` are the proposed rows that
    met it, each with its parameters.
    """

    old: Row | None
    new: Row
    changed_by: int | None = None
    updates: list[tuple[Row, Sequence[Any]]] = field(default_factory=list)


class ConflictClause:
    """ON CONFLICT, ready to be applied to proposed rows."""

    def __init__(
        self, plan: Conflict, table: Table, text: SnapshotText, *, returns: bool
    ) -> None:
        self._table = table
        self._keys = plan.keys
        self._computed_keys = plan.computed
        self.in_engine = StagedConflict(plan, table, text)
        """The same for rows that Python cannot hold."""
        self._stored = Source(Reference(table, " AS _o", {}))
        self._update = None
        if plan.update is not None:
            self._update = _Update(plan.update, table, text)
        self._can_be_merged = (
            self._update is not None
            and self._update.can_be_merged
            and self._keys == (table.primary_key,)
            and not returns
        )
        # A row that is updated is certified; one that stays as it is shows why.
        stays = plan.update is not None and plan.update.where
        self._has_condition = bool(stays)
        self._seen = range(len(table.columns)) if stays else ()

    def write(
        self,
        transaction: Transaction,
        proposals: Sequence[tuple[Sequence[Any], Sequence[Row]]],
    ) -> Written:
        """Write the outcome of proposed rows: as :meth:`changes` has it.

        Raises
        ------
        NotLocal
            If one of the rows cannot be held; nothing is written then.
        """
        changed, count = self._changed(transaction, proposals)
        computed = self._computed(changed, count)
        written = write_changes(
            transaction, self._table, computed.changes, computed.changed
        )
        writes = transaction.writes_to(self._table)
        if self._can_be_merged and not writes.is_staged:
            self._note_merges(writes, changed)
        return written._replace(rowcount=count)

    def _note_merges(self, writes: TableWrites, changed: Iterable[_Present]) -> None:
        """Note how updated rows can be computed on newer versions (tique.commit.mergeable)."""
        assert self._update is not None
        writes.note_merges(
            {
                key_of(self._table.primary_key, found.old): Merge(
                    partial(self._update.merged, found.old, found.updates),
                    frozenset(self._update.changed),
                    self._has_condition,
                )
                for found in changed
                if found.old is not None
            }
        )

    def changes(
        self,
        transaction: Transaction,
        proposals: Sequence[tuple[Sequence[Any], Sequence[Row]]],
    ) -> Computed:
        """Return the outcome of proposed rows.

        Parameters
        ----------
        transaction
            The transaction.
        proposals
            Each set of parameters, and the rows that it proposes. A set sees the
            changes of those before it.

        Raises
        ------
        CardinalityViolation
            If two rows of one set would change the same row.
        """
        return self._computed(*self._changed(transaction, proposals))

    def _computed(self, changed: Iterable[_Present], count: int) -> Computed:
        positions = range(len(self._table.columns))
        return Computed([(row.old, row.new) for row in changed], positions, count)

    def _changed(
        self,
        transaction: Transaction,
        proposals: Sequence[tuple[Sequence[Any], Sequence[Row]]],
    ) -> tuple[list[_Present], int]:
        """The rows that are new or changed, and how often some row was."""
        rows = [row for _, proposed in proposals for row in proposed]
        present = self._find(transaction, rows)
        # A single row that is in conflict with none is checked when it is written.
        if transaction.engine.capabilities.checks_proposed_rows and (
            present or len(rows) > 1
        ):
            for start in range(0, len(rows), _AT_ONCE):
                check_proposed(transaction, self._table, rows[start : start + _AT_ONCE])
        self._expect_same_values(len(rows))
        changed: list[_Present] = []
        count = 0
        places = itertools.count()
        for number, (parameters, proposed) in enumerate(proposals):
            met: list[tuple[_Present, Row]] = []
            for row, place in zip(proposed, places, strict=False):
                found = present.under(row, place)
                if found is None:
                    found = _Present(None, row, number)
                    present.put(found, place)
                    changed.append(found)
                    count += 1
                elif self._update is not None:
                    self._check_once(found, number)
                    met.append((found, row))
                elif found.old is not None:
                    key = key_of(self._table.primary_key, found.old)
                    transaction.met.add((self._table.id, key))
            if self._update is None or not met:
                continue
            updated = self._update.rows(transaction, parameters, met)
            for (found, proposed_row), new in zip(met, updated, strict=True):
                self._check_once(found, number)
                if new is None:
                    continue
                if found.changed_by is None:
                    changed.append(found)
                present.replace(found, new, number)
                found.updates.append((proposed_row, parameters))
                count += 1
        return changed, count

    def _expect_same_values(self, proposed: int) -> None:
        """Refuse to change what the engine has computed a key's values of.

        Of a single proposed row the new value does not matter, and those of the proposed row
        give the same.
        """
        if self._update is None or proposed < 2:
            return
        for key in self._computed_keys:
            changed = {*key.columns} & {*self._update.changed}
            if changed and not self._update.are_proposed(key.columns):
                raise errors.NotSupportedError(
                    f"ON CONFLICT DO UPDATE of many rows which changes columns of the index "
                    f"{key.name} on {self._table.qualified_name} is not supported; propose "
                    "one row at a time"
                )

    def _check_once(self, found: _Present, number: int) -> None:
        if found.changed_by == number:
            raise met_twice(self._table)

    def _find(self, transaction: Transaction, proposed: Sequence[Row]) -> _PresentRows:
        """The rows that the transaction sees under the proposed rows' keys."""
        found = _PresentRows()
        for positions in self._keys:
            known = _known_key(positions)
            every = dict.fromkeys(key_of(positions, row) for row in proposed)
            keys = [key for key in every if None not in key]
            for start in range(0, len(keys), _AT_ONCE):
                part = keys[start : start + _AT_ONCE]
                for row in self._look_up(transaction, positions, part):
                    known.put(_Present(row, row))
            found.keys.append(known)
        for key in self._computed_keys:
            found.keys.append(self._look_up_computed(transaction, key, proposed))
        return found

    def _look_up_computed(
        self, transaction: Transaction, key: ComputedKey, proposed: Sequence[Row]
    ) -> _PresentKey:
        """The rows under values that the engine computes of the proposed rows.

        It ranks the values: rows with one value share a rank. An update leaves them as they are.
        """
        table, forms = self._table, transaction.engine.forms
        columns = [table.columns[i] for i in key.columns]
        pairs = Table("", "", (*columns, Column(_NUMBER, "BIGINT")))
        values = [(*key_of(key.columns, row), n) for n, row in enumerate(proposed)]
        wanted = forms.constants(
            pairs, range(len(pairs.columns)), {}, list(zip(*values, strict=True))
        )
        stored = self._stored.text(transaction, ())
        sql = forms.computed_matches(table, key, wanted, forms.quote(_NUMBER), stored)
        ranks: dict[int | None, int] = {}
        ranked = _PresentKey(lambda row, place: ranks.get(place))
        for number, rank, is_there, *row in transaction.session.rows_to_keep(
            sql, of=table
        ):
            ranks[number] = rank
            if is_there:
                ranked.rows.setdefault(rank, _Present(tuple(row), tuple(row)))
        return ranked

    def _look_up(
        self, transaction: Transaction, positions: Sequence[int], keys: Sequence[Key]
    ) -> Iterator[Row]:
        """The rows under values of one key; whole ones if they may be updated."""
        table = self._table
        if positions != table.primary_key or not transaction.knows(table):
            yield from self._query(transaction, positions, keys)
            return
        needed = () if self._update is None else None
        transaction.prefetch(table, keys, needed)
        for key in keys:
            row = transaction.row_to_change(table, key, needed)
            if row is not None:
                transaction.see_row(table, key, row, self._seen)
                yield row

    def _query(
        self, transaction: Transaction, positions: Sequence[int], keys: Sequence[Key]
    ) -> list[Row]:
        table = self._table
        forms = transaction.engine.forms
        names = [forms.quote(column.name) for column in table.columns]
        wanted = forms.constants(table, positions, {}, list(zip(*keys, strict=True)))
        stored = looked_up(table, positions, keys)
        same = " AND ".join(
            f"_o.{names[i]} {table.columns[i].equality} _n.{names[i]}"
            for i in positions
        )
        return transaction.session.rows_to_keep(
            f"SELECT {', '.join(f'_o.{name}' for name in names)} "
            f"FROM {stored.text(transaction, ())} JOIN {wanted} AS _n ON {same}",
            of=table,
        )


class _PresentKey:
    """The existing rows by the values of a key, kept up to date.

    ``value_of`` gives the value of a row, proposed at a place or updated at none; None: it
    is equal to none.
    """

    def __init__(self, value_of: Callable[[Row, int | None], Hashable]) -> None:
        self.value_of = value_of
        self.rows: dict[Hashable, _Present] = {}

    def put(self, present: _Present, place: int | None = None) -> None:
        """Note a row."""
        value = self.value_of(present.new, place)
        if value is not None:
            self.rows[value] = present


def _known_key(positions: Sequence[int]) -> _PresentKey:
    """Those by the values of columns, of which NULL is equal to none."""

    def value_of(row: Row, place: int | None) -> Key | None:
        key = key_of(positions, row)
        return None if None in key else key

    return _PresentKey(value_of)


class _PresentRows:
    """The existing rows by each of the clause's keys."""

    def __init__(self) -> None:
        self.keys: list[_PresentKey] = []

    def __bool__(self) -> bool:
        """Whether there is any."""
        return any(key.rows for key in self.keys)

    def under(self, proposed: Row, place: int) -> _Present | None:
        """The row that a proposed one, at this place of all, is in conflict with."""
        for key in self.keys:
            found = key.rows.get(key.value_of(proposed, place))
            if found is not None:
                return found
        return None

    def put(self, present: _Present, place: int) -> None:
        """Note an inserted row."""
        for key in self.keys:
            key.put(present, place)

    def replace(self, present: _Present, new: Row, number: int) -> None:
        """Note an update."""
        values = [key.value_of(present.new, None) for key in self.keys]
        present.new, present.changed_by = new, number
        for key, value in zip(self.keys, values, strict=True):
            key.rows.pop(value, None)
            key.put(present)


class _Update:
    """DO UPDATE, computed here if it is simple, else by the engine."""

    def __init__(self, plan: ConflictUpdate, table: Table, text: SnapshotText) -> None:
        self._plan = plan
        self._table = table
        self._text = text
        self._is_exact = exactness(table)
        self._assigned = Assigned(table)
        self._kernels = None
        if not plan.where:
            self._kernels = compiled(plan.assignments, table.types, table.types * 2)
        self.changed = [position for position, _ in plan.assignments]
        self.can_be_merged = self._kernels is not None and is_free(table, self.changed)
        """Whether an update can be computed on any version of its row."""
        self._pairs = pairs_of(table, _NUMBER)

    def are_proposed(self, columns: Iterable[int]) -> bool:
        """Whether all these columns get the values of the proposed row."""
        width = len(self._table.columns)
        assigned = dict(self._plan.assignments)
        return all(
            i in assigned and assigned[i].kernel == ColumnValue(width + i)
            for i in columns
        )

    def rows(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        met: Sequence[tuple[_Present, Row]],
    ) -> list[Row | None]:
        """The new rows in place of the existing ones; None for one that stays."""
        pairs = [(present.new, proposed) for present, proposed in met]
        self._check_exact([row for row, _ in pairs])
        if self._kernels is not None:
            try:
                return [self._local(row, new, parameters) for row, new in pairs]
            except NotLocal:
                pass
        return self._queried(transaction, parameters, pairs)

    def merged(
        self, seen: Row, updates: Iterable[tuple[Row, Sequence[Any]]], row: Row
    ) -> Row:
        """The updated row, of a newer version ``row`` than the one that was ``seen``."""
        # What the newer version has as a gap has not changed since the other one.
        row = merged(row, seen)
        if lacks(row, range(len(row))) or not self._is_exact(row):
            raise NotLocal
        for proposed, parameters in updates:
            row = self._local(row, proposed, parameters)
        if lacks_value(self._table, row, self.changed):
            raise NotLocal
        return row

    def _local(self, row: Row, proposed: Row, parameters: Sequence[Any]) -> Row:
        """The updated row, computed here; raises NotLocal if the engine must say."""
        if self._kernels is None:
            raise NotLocal
        pair = row + proposed
        values = [kernel(pair, parameters) for kernel in self._kernels]
        return with_values(row, self.changed, values)

    def _check_exact(self, rows: Sequence[Row]) -> None:
        if not all(map(self._is_exact, rows)):
            raise NotLocal

    def _queried(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        pairs: Sequence[tuple[Row, Row]],
    ) -> list[Row | None]:
        plan = self._plan
        forms = transaction.engine.forms
        (where, *texts), _ = self._text.fill(
            transaction, parameters, plan.where, *[e.text for _, e in plan.assignments]
        )
        items = [forms.quote(_NUMBER)]
        for (position, _), text in zip(plan.assignments, texts, strict=True):
            items.append(forms.cast(f"({text})", self._table.columns[position].type))
        condition = f" WHERE ({where})" if where else ""
        updated: list[Row | None] = [None] * len(pairs)
        for start in range(0, len(pairs), _AT_ONCE):
            part = pairs[start : start + _AT_ONCE]
            rows = [(*row, *new, start + i) for i, (row, new) in enumerate(part)]
            source = forms.constants(
                self._pairs, range(len(rows[0])), {}, list(zip(*rows, strict=True))
            )
            if self._pairs.generated:
                source = forms.computed(self._pairs, source)
            relation = f"FROM {source} AS {plan.qualifier}"
            query = f"SELECT {', '.join(texts)} {relation}"
            bound = plan.bound(parameters)
            self._assigned.check(transaction, parameters, self.changed, query, bound)
            found = transaction.session.rows_to_keep(
                f"SELECT {', '.join(items)} {relation}{condition}",
                bound,
                of=self._table,
            )
            for number, *values in found:
                updated[number] = with_values(pairs[number][0], self.changed, values)
        self._check_exact([row for row in updated if row is not None])
        return updated
