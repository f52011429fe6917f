"""Snapshot queries: which form of each table a statement reads (paper 2.3.2).

A plan's text has a hole for every place where a managed table is read. A hole
is filled with one of

* *plain*: the storage table, if no version in the cache table can matter: the
  cache is empty, newer than the snapshot, or holds nothing under the key columns
  that the statement binds by equality;
* *point*: one constant row (or none), if the whole primary key is bound and the
  row was written recently or by this transaction;
* *scan*: storage without what the cache supersedes, plus the newest visible
  versions, own writes on top.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tique._transaction import Transaction
from tique._versions import Key, TableVersions
from tique_rewriter.kernel import NotLocal, coercer
from tique_rewriter.plan import Literal, Operand, Reference, Text
from tique_rewriter.schema import Table

Coercer = Callable[[Any], Any]


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
        What each is bound to.
    """

    def __init__(
        self, table: Table, positions: Sequence[int], operands: Sequence[Operand]
    ) -> None:
        self._parts: list[tuple[Operand, Coercer]] = [
            (operand, coercer(table.columns[position].type))
            for position, operand in zip(positions, operands, strict=True)
        ]

    def read(self, parameters: Sequence[Any]) -> Key:
        """The key, each value as the engine would store it.

        Raises
        ------
        NotLocal
            If a value is not exactly one of the column's type: the engine decides
            what it is equal to (``1`` and ``1.0`` and ``'1'`` are its business).
            NULL is equal to nothing.
        """
        values = tuple(
            coerce(operand_value(operand, parameters))
            for operand, coerce in self._parts
        )
        if None in values:
            raise NotLocal
        return values


class Source:
    """One reference of a plan, ready to be filled in for each execution."""

    def __init__(self, reference: Reference) -> None:
        self.reference = reference
        self.table = table = reference.table
        bound = tuple(i for i in table.primary_key if i in reference.binding)
        self._bound = bound
        self._is_point = bool(bound) and len(bound) == len(table.primary_key)
        self._keys = KeyReader(table, bound, [reference.binding[i] for i in bound])

    def fill(
        self, transaction: Transaction, parameters: list[Any], given: int
    ) -> str | None:
        """The text for the hole, or None for the plain form.

        ``parameters`` may grow; ``given`` is the statement's own number.
        """
        versions = transaction.versions(self.table)
        writes = transaction.writes.get(self.table.id)
        if not writes and (
            versions.is_empty
            or (versions.oldest is not None and versions.oldest > transaction.sts)
        ):
            return None
        if self._bound and versions.is_complete:
            try:
                key = self._keys.read(parameters[:given])
            except NotLocal:
                pass
            else:
                if self._is_point and not (writes and writes.is_staged):
                    return self._point(transaction, versions, key, parameters)
                if not (writes and writes.may_match(self._bound, key)) and (
                    not versions.may_match(self._bound, key)
                ):
                    return None
        return self._scan(transaction, versions)

    def _point(
        self,
        transaction: Transaction,
        versions: TableVersions,
        key: Key,
        parameters: list[Any],
    ) -> str | None:
        writes = transaction.writes.get(self.table.id)
        own = writes is not None and key in writes.rows
        if not own and versions.newest_visible(key, transaction.sts) is None:
            return None
        row = transaction.row(self.table, key)
        rows = [] if row is None else [row]
        placeholders = []
        for values in rows:
            start = len(parameters) + 1
            parameters.extend(values)
            placeholders.append([f"${start + i}" for i in range(len(values))])
        return transaction.database.engine.forms.inline(self.table, placeholders)

    def _scan(self, transaction: Transaction, versions: TableVersions) -> str:
        writes = transaction.prepare_scan(self.table)
        return transaction.database.engine.forms.scan(
            self.table,
            transaction.sts,
            staged=transaction.visible_sequence if writes else None,
            tombstones=versions.tombstones > 0
            or (writes is not None and writes.has_tombstones),
        )


class SnapshotText:
    """A plan's texts, made into engine SQL for one transaction's snapshot."""

    def __init__(self, references: Sequence[Reference]) -> None:
        self._sources = [Source(reference) for reference in references]

    @property
    def tables(self) -> list[Table]:
        """The tables that the statement reads."""
        return [source.table for source in self._sources]

    def fill(
        self, transaction: Transaction, parameters: Sequence[Any], *texts: Text
    ) -> tuple[list[str], list[Any]]:
        """The texts with all holes filled, and the parameters they need."""
        bound = list(parameters)
        given = len(bound)
        forms = transaction.database.engine.forms
        filled: dict[int, str] = {}

        def piece(index: int) -> str:
            if index not in filled:
                source = self._sources[index]
                text = source.fill(transaction, bound, given)
                if text is None:
                    text = forms.plain(source.table)
                filled[index] = text + source.reference.alias
            return filled[index]

        return [
            "".join(
                part if isinstance(part, str) else piece(part.index) for part in text
            )
            for text in texts
        ], bound
