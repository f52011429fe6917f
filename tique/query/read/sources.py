"""Sources: which form of each table a snapshot query reads (paper 2.3.2).

A plan's text has a hole for every place where a managed table is read. A hole
is filled with one of

* *plain*: the storage table, if no version in the cache table can matter: the
  cache is empty, newer than the snapshot, or holds nothing under the key columns
  that the statement binds by equality;
* *point*: a constant row (or none), if the whole primary key is bound and the row
  was written recently or by this transaction;
* *group*: constant rows, if all key columns but the last are bound and the storage
  rows there are in memory;
* *overlay*: storage with a few rows replaced by constants, if the versions that
  can matter are few;
* *scan*: storage without the rows that the cache supersedes (an anti-join), plus the
  newest visible versions, own writes on top. A join of two such tables is asked for in
  parts, where the plan says how;
* *history*: the same as of a version of the past (:mod:`tique.query.read.past`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tique.query.read.forms import Choice, Form
from tique.query.read.group_rows import GroupRows, may_match
from tique.query.read.past import folded_until, point_at
from tique.store.rows import lacks
from tique.writes.predicates import Predicate
from tique_backends.forms import together
from tique_rewriter.local.kernel import NotLocal
from tique_rewriter.local.local_expressions import joined
from tique_rewriter.local.values import key_coercer
from tique_rewriter.plans.past import Past
from tique_rewriter.plans.plan import (
    ROW_NUMBER,
    Comparison,
    Literal,
    Operand,
    Parameter,
    Reference,
)

if TYPE_CHECKING:
    from datetime import datetime

    from tique.history.moments import Point
    from tique.query.transaction.transaction import Transaction
    from tique.store.rows import Key
    from tique.store.versions import TableVersions
    from tique_backends.forms import Forms
    from tique_backends.records import Row
    from tique_rewriter.schema import Table

Coercer = Callable[[Any], Any]

_MOST_LOOKED_UP = 200
"""Keys in one condition, which the driver may have to evaluate."""

_NOTHING_RECENT = "its snapshot has no recent version"
_NOTHING_ASKED_FOR = "no recent version has the values that are asked for"
_ROW_IN_MEMORY = "the key is bound, and its row is recent"
_ROWS_IN_MEMORY = "all but the last column of the key are bound, and the rows in memory"
_OVERWRITTEN = "the recent versions are in storage, in an engine transaction of its own"


def operand_value(operand: Operand, parameters: Sequence[Any]) -> Any:
    """The value of a literal or of a bound parameter."""
    if isinstance(operand, Literal):
        return operand.value
    return parameters[operand.number - 1]


class KeyReader:
    """Finds the values of bound columns for a set of parameters.

    Parameters
    ----------
    table
        The table whose columns are bound.
    positions
        The bound columns' positions.
    operands
        The operand to which each is bound.
    """

    def __init__(
        self, table: Table, positions: Sequence[int], operands: Sequence[Operand]
    ) -> None:
        self._parts: list[tuple[Operand, Coercer]] = [
            (operand, key_coercer(table.columns[position].type))
            for position, operand in zip(positions, operands, strict=True)
        ]
        self._only: tuple[int, Coercer] | None = None
        """Of one value that is a parameter: its index, and its coercer."""
        if len(self._parts) == 1 and not isinstance(operands[0], Literal):
            self._only = operands[0].number - 1, self._parts[0][1]

    def read(self, parameters: Sequence[Any]) -> Key:
        """The key, each value as the engine would store it.

        Raises
        ------
        NotLocal
            If a value is not exactly one of the column's type: the engine decides
            which values equal it (as for ``1``, ``1.0`` and ``'1'``). NULL equals none.
        """
        if self._only is not None:
            index, coerce = self._only
            value = coerce(parameters[index])
            if value is None:
                raise NotLocal
            return (value,)
        values = tuple(
            [
                coerce(operand_value(operand, parameters))
                for operand, coerce in self._parts
            ]
        )
        if None in values:
            raise NotLocal
        return values


class Source:
    """One reference of a plan, ready to be filled in for each execution."""

    def __init__(self, reference: Reference) -> None:
        self.reference = reference
        self.table = table = reference.table
        key = table.primary_key
        bound = tuple(i for i in key if i in reference.binding)
        others = tuple(i for i in reference.binding if i not in key)
        self._bound, self._others = bound, others
        self._is_point = bool(bound) and len(bound) == len(key)
        self.is_group = bool(key) and bound == key[:-1]
        """Whether the statement reads all rows with one prefix of the key."""
        self.is_range = len(key) > 1 and bound == key[:-2]
        """Whether it would do so if one more column were bound."""
        self.is_narrow = bool(bound)
        self._groups = GroupRows(table)
        self._keys = KeyReader(table, bound, [reference.binding[i] for i in bound])
        self._filters = KeyReader(table, others, [reference.binding[i] for i in others])
        used = reference.columns
        self._columns = tuple(
            i
            for i in range(len(table.columns))
            if used is None or i in used or i in key
        )
        self._free = tuple(i for i in self._columns if i not in bound)
        conditions = (
            *[Comparison(i, "=", value) for i, value in reference.binding.items()],
            *reference.conditions,
        )
        self._predicate = Predicate(table, conditions)
        self._seen = None if used is None else used | self._predicate.columns
        self._plain: tuple[str, ...] | None = None
        self._company: Sequence[Table] = (table,)
        self._computes = bool(table.generated) and used is None

    @property
    def tables(self) -> list[Table]:
        """The managed tables that are read in the reference's place."""
        return [self.table]

    def text(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        *,
        in_storage: bool = False,
    ) -> str:
        """The text in place of the reference; ``in_storage`` is the snapshot, or not."""
        queries = self.queries(transaction, parameters, in_storage=in_storage)
        return self.relation(queries)

    def plain(self, transaction: Transaction) -> str:
        """The text in its place over the storage table, or the engine's view, itself."""
        return self.relation([transaction.engine.forms.plain(self.table)])

    def relation(self, queries: Sequence[str]) -> str:
        """The text in place of the reference, for some of its queries."""
        rows = together(queries)
        if self.reference.is_numbered:
            # MonetDB would join the parts of a UNION ALL first, and number each (its README).
            rows = (
                f"(SELECT *, row_number() OVER () AS {ROW_NUMBER} FROM {rows} AS _f "
                "OFFSET 0)"
            )
        return rows + self.reference.alias

    def queries(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        *,
        in_storage: bool = False,
    ) -> tuple[str, ...]:
        """Queries that together return the reference's rows in the snapshot."""
        point = self.point(transaction, parameters)
        if point is not None:
            return self._past(transaction, point)
        self._see(transaction, parameters, self._seen)
        if in_storage:
            self._note_in_storage(transaction)
            # No other process drops it meanwhile: its name is enough.
            return (transaction.engine.forms.plain(self.table),)
        forms = transaction.engine.forms
        form = self._form(transaction, parameters)
        if form is None:
            if self._plain is None:
                self._plain = (self._forms(transaction).stored(self.table),)
            if not transaction.engine.capabilities.computes_deleted_rows:
                # It is the snapshot, and a statement may need to know the table's key.
                return self._plain
            form = self._plain
        elif self._computes:
            form = tuple([forms.computed(self.table, query) for query in form])
        return (forms.fenced(form),) if transaction.is_fenced else form

    def point(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> Point | None:
        """The point of the past that is read; None: the transaction's snapshot."""
        past = self.reference.past
        if past is None:
            return None if self.table.is_temporary else transaction.past
        return point_at(transaction, past.point(parameters))

    def _past(self, transaction: Transaction, point: Point) -> tuple[str, ...]:
        """The history form."""
        folded = folded_until(transaction, self.table, point)
        version = point.version
        if transaction.choices is not None:
            why = f"as of version {version:,}; storage is at {folded:,}"
            self._note(transaction, Form.HISTORY, why)
        forms = self._forms(transaction)
        found = forms.scan(
            self.table,
            version,
            staged=None,
            flat=folded >= version,
            past=True,
            folded=folded,
        )
        if self._computes:
            found = tuple([forms.computed(self.table, query) for query in found])
        return (forms.fenced(found),) if transaction.is_fenced else found

    def _form(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> tuple[str, ...] | None:
        """The form that the snapshot needs, or None for the plain one."""
        versions = transaction.versions(self.table)
        writes = transaction.writes.get(self.table.id)
        if not writes and (
            versions.is_empty
            or (versions.oldest is not None and versions.oldest > transaction.sts)
        ):
            self._note(transaction, Form.STORAGE, _NOTHING_RECENT)
            if transaction.engine.capabilities.computes_deleted_rows:
                transaction.needs_fence = True
            return None
        transaction.needs_fence = True
        if transaction.is_fenced or not self.is_known(transaction):
            return self._scan(transaction, versions)
        bound = _bound_values(self._bound, self._keys, parameters)
        others = _bound_values(self._others, self._filters, parameters)
        is_group = self.is_group and len(bound) == len(self._bound)
        if is_group and others:
            rows = self._groups.matching(transaction, bound, others, self._free)
            text = self._group(transaction, bound, rows)
            if text is not None:
                return (text,)
        most = transaction.engine.capabilities.overlay_values
        limit = most // len(self._columns)
        replaced = self._groups.replaced(transaction, bound, limit)
        if replaced is None:
            return self._scan(transaction, versions)
        if is_group and replaced and not others:
            rows = self._groups.merged(transaction, bound, replaced, self._free)
            text = self._group(transaction, bound, rows)
            if text is not None:
                return (text,)
        if others:
            replaced = {
                key: row
                for key, row in replaced.items()
                if self._matters(transaction, versions, key, row, others)
            }
        if not replaced:
            self._note(transaction, Form.STORAGE, _NOTHING_ASKED_FOR)
            return None
        if not transaction.engine.overlays(self.table, bound):
            return self._scan(transaction, versions)
        self._complete(transaction, replaced)
        return self._overlay(transaction, bound, replaced)

    def accompany(self, tables: Sequence[Table]) -> None:
        """Take note of the tables that the statement reads."""
        self._company = tables

    def place(self, parameters: Sequence[Any]) -> tuple[tuple[int, ...], Key]:
        """The key columns that the statement binds, and their values.

        Raises
        ------
        NotLocal
            If the engine must say which values some value equals.
        """
        return self._bound, self._keys.read(parameters)

    def rows(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        columns: Collection[int],
        numbers: Collection[int] | None = None,
        *,
        is_seen: bool = False,
    ) -> list[Row] | None:
        """The rows with the values that the statement binds, if they are in memory.

        They have at least these columns, and may have gaps elsewhere. If the last key
        column but one is not bound (``is_range``), it has any of ``numbers``. ``is_seen`` says that
        the caller notes what the application learns of them.

        Raises
        ------
        NotLocal
            If the engine must say which values some value equals.
        """
        if not (self.is_group or numbers is not None) or not self.is_known(transaction):
            return None
        values = dict(zip(self._bound, self._keys.read(parameters), strict=True))
        others = dict(zip(self._others, self._filters.read(parameters), strict=True))
        if not is_seen:
            self._see(transaction, parameters, self._predicate.columns.union(columns))
        if numbers is None:
            return self._groups.rows(transaction, values, others, columns, beside=1)
        rows: list[Row] = []
        position = self.table.primary_key[-2]
        for number in numbers:
            found = self._groups.rows(
                transaction,
                {**values, position: number},
                others,
                columns,
                beside=len(numbers),
            )
            if found is None:
                return None
            rows += found
        return rows

    def _see(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        columns: frozenset[int] | None,
    ) -> None:
        """Note that the application learns of these columns of the rows that matter."""
        transaction.see_rows(self._predicate, parameters, columns)

    def up_to(self, position: int, operator: str, number: int) -> Predicate:
        """The rows that matter as far as one of them, by a column's order.

        Placeholder ``number`` has the value of that one.
        """
        last = Comparison(position, operator, Parameter(number))
        return Predicate(self.table, [*self._predicate.conditions, last])

    def is_known(self, transaction: Transaction) -> bool:
        """Whether memory has all versions and the transaction's own writes."""
        return (
            not self.table.is_keyless
            and transaction.knows(self.table)
            and transaction.catalog.buffers(self.table)
        )

    def _matters(
        self,
        transaction: Transaction,
        versions: TableVersions,
        key: Key,
        row: Row | None,
        filters: Mapping[int, Any],
    ) -> bool:
        """Whether a row under the key can be in the result.

        A fold may bring any visible version to storage before the engine looks there,
        so all of them count, and the row that storage has now.
        """
        recent = list(versions.visible_rows(key, transaction.sts))
        known, stored = versions.storage_row(key, list(filters))
        return not known or any(
            candidate is not None and may_match(candidate, filters)
            for candidate in (row, stored, *recent)
        )

    def _group(
        self, transaction: Transaction, bound: Mapping[int, Any], rows: list[Row] | None
    ) -> str | None:
        """The group form; None if the rows are not known, or too many."""
        if rows is None or (
            len(rows) * len(self._free) > transaction.catalog.policy.constant_values
        ):
            return None
        self._note(transaction, Form.ROWS, _ROWS_IN_MEMORY)
        values = [[row[i] for row in rows] for i in self._free]
        forms = self._forms(transaction)
        return forms.constants(self.table, self._columns, bound, values)

    def _complete(
        self, transaction: Transaction, replaced: dict[Key, Row | None]
    ) -> None:
        """Fill the gaps that the statement would see."""
        for key, row in replaced.items():
            if row is not None and lacks(row, self._columns):
                replaced[key] = transaction.row(self.table, key, self._columns)

    def _overlay(
        self,
        transaction: Transaction,
        bound: Mapping[int, Any],
        replaced: Mapping[Key, Row | None],
    ) -> tuple[str, ...]:
        forms = self._forms(transaction)
        rows = [row for row in replaced.values() if row is not None]
        if self._is_point and bound:
            row = rows[0] if rows else None
            self._note(transaction, Form.ROW, _ROW_IN_MEMORY)
            return (forms.constant(self.table, self._columns, row),)
        if transaction.choices is not None:
            why = f"recent rows ({len(replaced)}) stand in the statement"
            self._note(transaction, Form.OVERLAY, why)
        return forms.overlay(self.table, self._columns, bound, list(replaced), rows)

    def _note(self, transaction: Transaction, form: Form, why: str) -> None:
        """Note the form for EXPLAIN."""
        if transaction.choices is not None:
            transaction.choices.append(Choice(self.table, form, why))

    def _note_in_storage(self, transaction: Transaction) -> None:
        versions = transaction.versions(self.table)
        if versions.oldest is None or versions.oldest > transaction.sts:
            self._note(transaction, Form.STORAGE, _NOTHING_RECENT)
        else:
            self._note(transaction, Form.UNCOMMITTED_FOLD, _OVERWRITTEN)

    def _why_scan(self, transaction: Transaction, versions: TableVersions) -> str:
        """The reason why the engine reads versions from tables of tique's."""
        writes = transaction.writes.get(self.table.id)
        if self.table.is_keyless:
            why = "of a table without a primary key"
        elif writes is not None and writes.is_staged:
            why = (
                "and many of this transaction's own rows, which are in a staging table"
            )
        elif transaction.is_held:
            why = "in the snapshot that the engine keeps"
        elif not versions.is_complete:
            why = "some of which are in the cache table alone, from a large statement"
        elif not transaction.catalog.buffers(self.table):
            why = "with values of a type that the driver does not hold"
        elif not transaction.engine.overlays(self.table, self._bound):
            why = "which each shard reads beside its rows"
        else:
            why = "too many to stand in the statement"
        return f"recent versions ({versions.rows:,}), {why}"

    def _forms(self, transaction: Transaction) -> Forms:
        engine = transaction.engine
        # Behind a fence it is alone.
        company = (self.table,) if transaction.is_fenced else self._company
        return engine.forms_beside(self.reference.beside, company)

    def _scan(
        self, transaction: Transaction, versions: TableVersions
    ) -> tuple[str, ...]:
        writes = transaction.prepare_scan(self.table, is_seen=True)
        # A later snapshot of READ COMMITTED may show a row under an inserted row's key.
        is_alone = self.table.is_keyless or transaction.has_one_snapshot
        appended = versions.is_appended and (
            not writes or (writes.only_inserts and is_alone)
        )
        if transaction.choices is not None:
            is_union = (
                appended and transaction.engine.capabilities.keeps_insertion_order
            )
            union = is_union or self.table.is_keyless
            form = Form.UNION if union else Form.ANTI_JOIN
            self._note(transaction, form, self._why_scan(transaction, versions))
        return self._forms(transaction).scan(
            self.table,
            transaction.sts,
            staged=transaction.visible_sequence if writes else None,
            appended=appended,
            flat=not writes and versions.is_flat,
            folded=versions.folded_until,
        )


def at(
    transaction: Transaction, table: Table, asked: int | datetime | None
) -> tuple[int, str]:
    """A table at a version, or in the snapshot (None): that version, and the relation.

    Generated columns are not in it.
    """
    past = None if asked is None else Past(Literal(asked))
    source = Source(
        Reference(table, "", {}, frozenset(range(len(table.columns))), past=past)
    )
    point = source.point(transaction, ())
    version = transaction.sts if point is None else point.version
    return version, source.text(transaction, ())


def looked_up(
    table: Table,
    positions: Sequence[int],
    keys: Sequence[Key],
    binding: dict[int, Operand] | None = None,
) -> Source:
    """A table that a query joins, as ``_o``, with some values of these columns."""
    rows = [
        joined(
            "AND",
            [
                Comparison(position, "=", Literal(value))
                for position, value in zip(positions, key, strict=True)
            ],
        )
        for key in (keys if len(keys) <= _MOST_LOOKED_UP else ())
    ]
    conditions = (joined("OR", rows),) if rows else ()
    return Source(Reference(table, " AS _o", binding or {}, conditions=conditions))


def _bound_values(
    positions: Sequence[int], keys: KeyReader, parameters: Sequence[Any]
) -> dict[int, Any]:
    """The values of bound columns; none if the engine must compare one of them."""
    if not positions:
        return {}
    try:
        return dict(zip(positions, keys.read(parameters), strict=True))
    except NotLocal:
        return {}
