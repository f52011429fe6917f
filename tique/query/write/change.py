"""UPDATE and DELETE.

With the whole primary key bound, the row is usually known or one index lookup
away, and simple assignments are computed here. Everything else is a query over
the snapshot for the old rows and the new values; few rows are buffered, many
are staged by the same query.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique import errors
from tique.commit.turns import Habit
from tique.query.base import Outcome
from tique.query.read.comparing import Compared
from tique.query.read.sources import KeyReader
from tique.query.transaction.contested import wait_for_turn
from tique.query.write.assigning import Assigned, compiled, with_values
from tique.query.write.changes import (
    EVERY_ROW,
    Computed,
    Written,
    buffer_changes,
    dated_columns,
    few_rows,
    is_free,
    lacks_value,
    not_held,
    stage_old,
    stage_text,
    write_changes,
)
from tique.query.write.constraints import check_buffered
from tique.query.write.writing import WritingStatement
from tique.store.rows import columns_to_read, lacks, merged
from tique.writes.table import Merge
from tique_rewriter.local.kernel import NotLocal
from tique_rewriter.plans.change_plans import Delete, Update
from tique_rewriter.plans.plan import ROW_NUMBER, kernel_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tique.query.transaction.transaction import Transaction
    from tique.query.write.changes import Change
    from tique_backends.records import Row
    from tique_rewriter.plans.text import Text


class ChangeStatement(WritingStatement):
    """The common base of UPDATE and DELETE."""

    def __init__(self, plan: Update | Delete) -> None:
        super().__init__(plan, plan.returning, plan.joined_returning)
        table = self._table
        self._source = plan.source
        self._is_bound = plan.is_bound
        self._is_joined = plan.is_joined
        self._qualifier = plan.qualifier
        self._assignments: Sequence[tuple[int, Text]] = ()
        """The assigned columns' positions and expressions."""
        self._changed: tuple[int, ...] = ()
        self._assigned = Assigned(table)
        self._changes_key = False
        self._needed: Sequence[int] | None = None
        """The columns of an old row that a change by key looks at; None: all."""
        self._keys = (
            None if plan.key is None else KeyReader(table, table.primary_key, plan.key)
        )
        self._compared = [
            Compared(comparison, table.columns) for comparison in plan.comparisons
        ]
        if not all(compared.is_possible for compared in self._compared):
            self._keys = None
        self._can_be_merged = False
        """Whether a change by key can be computed on any version of its row."""
        self._merged_columns: frozenset[int] = frozenset()
        self._habit = Habit()

    @abstractmethod
    def _local_change(self, row: Row, parameters: Sequence[Any]) -> Row | None:
        """The changed row (None: deleted); raises NotLocal if the engine must say."""

    def _merged(self, parameters: Sequence[Any], seen: Row, row: Row) -> Row:
        """The changed row, of a newer version ``row`` than the one that was ``seen``."""
        raise NotImplementedError

    def _partial(self, columns: Iterable[int]) -> Sequence[int] | None:
        """The columns to read of a row; None: all."""
        if (
            self._table.judges_rows
            or self._table.unique
            or self._changes_key
            or self._returning
        ):
            return None
        changed = set(self._changed)
        together = [b.columns for b in self._table.bounds if changed & set(b.columns)]
        together += [
            key.columns
            for key in self._table.foreign_keys
            if changed & set(key.columns)
        ]
        together.append(tuple(compared.position for compared in self._compared))
        return [*columns, *dated_columns(self._table), *chain.from_iterable(together)]

    @override
    def _write_many(
        self, transaction: Transaction, parameter_rows: Sequence[Sequence[Any]]
    ) -> int:
        """Change rows for every row of parameters.

        The rows of keyed changes are read in one engine statement; later changes see
        the earlier ones.
        """
        if self._keys is not None:
            keys = []
            for parameters in parameter_rows:
                try:
                    keys.append(self._keys.read(parameters))
                except NotLocal:
                    continue
            transaction.prefetch(self._table, keys, self._needed)
        changed = 0
        first = transaction.sequence
        for parameters in parameter_rows:
            transaction.visible_sequence = transaction.sequence
            changed += self._write(transaction, parameters, check=False).rowcount
            transaction.sequence += 2
        writes = transaction.writes_to(self._table)
        check_buffered(transaction, writes, self._changed, first)
        return changed

    @override
    def _write(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        *,
        check: bool = True,
    ) -> Written:
        """Change the rows that the WHERE clause finds in the snapshot.

        Without ``check``, the caller has the engine check CHECK and UNIQUE later.
        """
        writes = transaction.writes_to(self._table)
        if (
            self._keys is not None
            and not writes.is_staged
            and transaction.catalog.buffers(self._table)
        ):
            try:
                key = self._keys.read(parameters)
                comparisons = [each.bound(parameters) for each in self._compared]
                if not self._can_be_merged:
                    place = self._table.primary_key, key
                    wait_for_turn(transaction, self._table, place, None, self._habit)
                if self._needed is not None:
                    versions = transaction.versions(self._table)
                    if not versions.changed_columns.issuperset(self._needed):
                        versions.changed_columns |= frozenset(self._needed)
                row = transaction.row_to_change(self._table, key, self._needed)
                if row is None:
                    transaction.see_row(self._table, key, None)
                    return Written(0, ())
                if self._is_exact(row):
                    if not all(each.holds(row) for each in comparisons):
                        columns = {each.position for each in comparisons}
                        transaction.see_row(self._table, key, row, columns)
                        return Written(0, ())
                    new = self._local_change(row, parameters)
                    written = self._buffer(transaction, [(row, new)], check=check)
                    if self._can_be_merged:
                        compute = partial(self._merged, parameters, row)
                        merge = Merge(compute, self._merged_columns, bool(comparisons))
                        writes.note_merges({key: merge})
                    return written
            except NotLocal:
                pass
        if self._is_bound:
            try:
                changes = self._group_changes(transaction, parameters)
            except NotLocal:
                changes = None
            if changes is not None:
                return self._buffer(transaction, changes, check=check)
        return self._change_by_query(transaction, parameters, check=check)

    def _group_changes(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> list[Change] | None:
        """The changes of rows with one prefix of the key, if memory has the rows."""
        needed = transaction.needed_to_change(self._needed)
        columns = columns_to_read(self._table, needed)
        (source,) = self.text.sources
        rows = source.rows(transaction, parameters, columns)
        if rows is None or not self._are_exact(rows):
            return None
        return [(row, self._local_change(row, parameters)) for row in rows]

    # By a query over the snapshot

    def _change_by_query(
        self, transaction: Transaction, parameters: Sequence[Any], *, check: bool
    ) -> Written:
        table = self._table
        if transaction.catalog.buffers(table) and not (
            transaction.writes_to(table).is_staged
        ):
            sql, bound = self.query(transaction, parameters)
            found = few_rows(transaction, table, sql, bound, wide=self.text.is_wide)
            if found is not None:
                changes = [self._split(row) for row in found]
                if all(self._are_exact(change) for change in changes):
                    return self._buffer(transaction, changes, check=check)
        return self._stage(transaction, parameters)

    def query(
        self, transaction: Transaction, parameters: Sequence[Any], *more: str
    ) -> tuple[str, Sequence[Any]]:
        """The query for old rows, new values and ``more`` items."""
        items, source, bound = self._items(transaction, parameters)
        values = [items[position] for position in self._changed]
        every = [*self._old_items(transaction), *values, *more]
        return f"SELECT {', '.join(every)}{source}", bound

    def _old_items(self, transaction: Transaction) -> list[str]:
        """The old row's items, where the source is as :meth:`_items` returns it."""
        if self._is_joined:
            return [f"_u._o{i}" for i in range(len(self._table.columns))]
        return self._columns_of(transaction)

    def _columns_of(self, transaction: Transaction) -> list[str]:
        quote = transaction.engine.forms.quote
        return [f"{self._qualifier}.{quote(c.name)}" for c in self._table.columns]

    def _items(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> tuple[list[str], str, Sequence[Any]]:
        """The new row's items, the `` FROM …`` part, and the parameters."""
        expressions = [text for _, text in self._assignments]
        (source, *texts), bound = self.text.fill(
            transaction, parameters, self._source, *expressions
        )
        if texts:
            query = f"SELECT {', '.join(texts)}{source}"
            self._assigned.check(transaction, parameters, self._changed, query, bound)
        cast = transaction.engine.forms.cast
        items = self._old_items(transaction)
        values = {
            position: cast(f"({text})", self._table.columns[position].type)
            for position, text in zip(self._changed, texts, strict=True)
        }
        if self._is_joined:
            source = self._once(transaction, values, source, bound)
            values = {position: f"_u._n{position}" for position in values}
        for position, value in values.items():
            items[position] = value
        return items, source, bound

    @override
    def _execute(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        joined = self._joined
        if joined is None:
            return super()._execute(transaction, parameters)
        transaction.writes_to(self._table)
        items = joined.items(transaction, parameters)
        sql, _ = self.query(transaction, parameters, items)
        bound = joined.bound(parameters)
        changes, others = self._found(transaction, sql, bound)
        if changes is None:
            raise not_held(
                "RETURNING of joined columns beside changes of "
                f"{self._table.qualified_name}",
                "return columns of the changed table",
            )
        write_changes(transaction, self._table, changes, self._changed)
        return others

    @override
    def compute(self, transaction: Transaction, parameters: Sequence[Any]) -> Computed:
        changes = None
        if self._joined is None:
            sql, bound = self.query(transaction, parameters)
            changes, _ = self._found(transaction, sql, bound)
        if changes is None:
            raise self._not_beside_others()
        return Computed(changes, self._changed, len(changes))

    def _found(
        self, transaction: Transaction, sql: str, bound: Sequence[Any]
    ) -> tuple[list[Change] | None, Outcome]:
        """All changes, None if the driver cannot hold them, and what else a query gives."""
        table, session = self._table, transaction.session
        result = session.execute_some(sql, bound, EVERY_ROW, of=table)
        found = result.fetch_all()
        width = len(table.columns) + len(self._changed)
        changes = [self._split(row[:width]) for row in found]
        is_held = transaction.catalog.buffers(table)
        is_held = is_held and all(self._are_exact(change) for change in changes)
        columns = result.columns[width:]
        rows = session.shown_results(columns, [row[width:] for row in found])
        return changes if is_held else None, Outcome(len(rows), columns, rows)

    def _once(
        self,
        transaction: Transaction,
        values: Mapping[int, str],
        source: str,
        bound: Sequence[Any],
    ) -> str:
        """The source with each row of the table once, whatever else it is joined with.

        Raises
        ------
        CardinalityViolation
            If a row is joined with several, and the engine does not choose one of them.
        """
        columns = self._columns_of(transaction)
        named = [f"{column} AS _o{i}" for i, column in enumerate(columns)]
        named += [f"{value} AS _n{position}" for position, value in values.items()]
        relations = ""
        if self._joined is not None:
            named += self._joined.carried
            relations = self._joined.relations(transaction, list(values))
        key = ", ".join([columns[i] for i in self._table.primary_key])
        key = key or f"{self._qualifier}.{ROW_NUMBER}"
        joined = (
            f" FROM (SELECT {', '.join(named)}, "
            f"row_number() OVER (PARTITION BY {key}) AS _nth{source}) AS _u{relations} "
            "WHERE _u._nth = "
        )
        if not transaction.engine.capabilities.picks_joined_row:
            twice = f"SELECT count(*){joined}2"
            if transaction.session.execute(twice, bound).fetch_all() != [(0,)]:
                raise errors.CardinalityViolation(
                    f"a row of {self._table.qualified_name} is joined with several rows, "
                    "and it is not said which of them changes it; use a subquery"
                )
        return f"{joined}1"

    def _split(self, found: Row) -> Change:
        width = len(self._table.columns)
        old = found[:width]
        return old, with_values(old, self._changed, found[width:])

    def _stage(self, transaction: Transaction, parameters: Sequence[Any]) -> Written:
        """Let the engine compute the versions and keep them."""
        table = self._table
        transaction.writes_to(table).switch_to_stage(transaction.session)
        items, source, bound = self._items(transaction, parameters)
        is_delete = isinstance(self.plan, Delete)
        if is_delete or not (self._changes_key or table.is_keyless):
            sql = transaction.engine.forms.stage_query(
                items, source, transaction.sequence, deleted=is_delete
            )
            return stage_text(
                transaction, table, sql, bound, self._changed, deletes=is_delete
            )
        found = [*self._old_items(transaction), *[items[i] for i in self._changed]]
        query = f"SELECT {', '.join(found)}{source}"
        new = [f"_{i}" for i in range(len(table.columns))]
        for n, i in enumerate(self._changed, len(new)):
            new[i] = f"_{n}"
        return stage_old(
            transaction, table, query, bound, len(found), new, self._changed
        )

    def _buffer(
        self, transaction: Transaction, changes: Sequence[Change], *, check: bool
    ) -> Written:
        buffer_changes(transaction, self._table, changes, self._changed, check=check)
        return Written(len(changes), changes)


class UpdateStatement(ChangeStatement):
    """UPDATE."""

    privileges = ("UPDATE",)

    def __init__(self, plan: Update) -> None:
        super().__init__(plan)
        self._assignments = [(i, expression.text) for i, expression in plan.assignments]
        self._changed = tuple(i for i, _ in plan.assignments)
        self._changes_key = plan.changes_key
        types = self._table.types
        self._kernels = compiled(plan.assignments, types, types)
        self._needed = self._partial(
            column
            for _, expression in plan.assignments
            if expression.kernel is not None
            for column in kernel_columns(expression.kernel)
        )
        self._looked_at = columns_to_read(self._table, self._needed)
        self._can_be_merged = (
            self._keys is not None
            and self._kernels is not None
            and not self._returns
            and is_free(self._table, self._changed)
        )
        self._merged_columns = frozenset(self._changed)
        self.may_begin_blindly = self._can_be_merged and not self._table.is_temporary

    @override
    def _merged(self, parameters: Sequence[Any], seen: Row, row: Row) -> Row:
        # What the newer version has as a gap has not changed since the other one.
        row = merged(row, seen)
        if lacks(row, self._looked_at) or not self._is_exact(row):
            raise NotLocal
        if not all(each.bound(parameters).holds(row) for each in self._compared):
            # The application was told that the row was changed.
            raise NotLocal
        new = self._local_change(row, parameters)
        assert new is not None
        if lacks_value(self._table, new, self._changed):
            raise NotLocal
        return new

    @override
    def _write(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        *,
        check: bool = True,
    ) -> Written:
        if self._kernels is None and not self._assigned.is_known(
            transaction, parameters
        ):
            # Checked even if there is no row to change.
            self._items(transaction, parameters)
        return super()._write(transaction, parameters, check=check)

    @override
    def _local_change(self, row: Row, parameters: Sequence[Any]) -> Row | None:
        if self._kernels is None:
            raise NotLocal
        values = [kernel(row, parameters) for kernel in self._kernels]
        return with_values(row, self._changed, values)


class DeleteStatement(ChangeStatement):
    """DELETE."""

    privileges = ("DELETE",)

    def __init__(self, plan: Delete) -> None:
        super().__init__(plan)
        self._needed = self._partial(())

    @override
    def _local_change(self, row: Row, parameters: Sequence[Any]) -> Row | None:
        return None

    @override
    def _split(self, found: Row) -> Change:
        return found, None
