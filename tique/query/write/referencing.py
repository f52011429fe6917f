"""Both sides of a FOREIGN KEY in a transaction's snapshot: parents' keys, referencing rows.

Own writes are included. Keys that are found are held until the commit
(:mod:`tique.writes.references`); :mod:`tique.query.write.foreign_keys` says when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique import errors
from tique.query.read.sources import Source, looked_up
from tique.writes.references import HeldKey
from tique_rewriter.kinds.define.foreign_keys import are_comparable
from tique_rewriter.local.kernel import NotLocal, coercer
from tique_rewriter.plans.plan import Literal, Reference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tique.query.transaction.transaction import Transaction
    from tique.store.rows import Key
    from tique_backends.records import Row
    from tique_rewriter.plans.plan import Operand
    from tique_rewriter.schema import ForeignKey, Table

_AT_ONCE = 1000
"""So many keys are looked up in one engine statement."""


def held_key(
    transaction: Transaction,
    table: Table,
    key: tuple[int, ...],
    values: Key,
    row: Key | None,
) -> HeldKey:
    """A key of a row, as the transaction's references note it."""
    return HeldKey(table, key, values, row, transaction.sts, transaction.sequence)


def expect_privilege(transaction: Transaction, table: Table, name: str) -> None:
    """Refuse what the role may not do, which memory would not notice (P11)."""
    shared = transaction.engine.shared
    if shared is not None:
        shared.expect_privileges([(table, name)])


def expect_comparable(child: Table, parent: Table, key: ForeignKey) -> None:
    """Refuse a constraint over types that are not one, as the engine's catalog has them.

    Raises
    ------
    NotSupportedError
        Values of two types may be equal without being the same.
    """
    for i, j in zip(key.columns, key.key, strict=True):
        mine, other = child.columns[i], parent.columns[j]
        if not are_comparable(mine, other, {}):
            raise errors.NotSupportedError(
                f"a FOREIGN KEY of {mine.type} that references {other.type} is not "
                f"supported: {key.name} of {child.qualified_name}; give both "
                "columns one type"
            )


def orphans(
    transaction: Transaction,
    child: Table,
    key: ForeignKey,
    *,
    before: int | None = None,
) -> str:
    """A query for the rows whose reference is not there, own writes included.

    With ``before`` it was there among the writes up to that number.
    """
    parent = transaction.catalog.parent(key)
    expect_privilege(transaction, parent, "SELECT")
    overlays = [
        transaction.sequence if transaction.prepare_scan(table) else None
        for table in (child, parent)
    ]
    return transaction.engine.forms.orphans(
        child,
        parent,
        key,
        transaction.sts,
        staged=(overlays[0], overlays[1]),
        before=before,
    )


def taken_over(
    transaction: Transaction, child: Table, key: ForeignKey, sequence: int
) -> str:
    """A query for the rows whose reference goes to another row since a staged UPDATE.

    It has staged the parents that it changed under the number before its own.
    """
    parent = transaction.catalog.parent(key)
    forms = transaction.engine.forms
    transaction.visible_sequence = transaction.sequence
    joins = []
    for name, number in (("_g", sequence - 1), ("_t", sequence)):
        same = forms.referenced(child, parent, key, "_o.", f"{name}.")
        joins.append(f"JOIN {forms.staged(parent, number)} AS {name} ON {same}")
    source = Source(Reference(child, " AS _o", {}))
    columns = ", ".join(f"_o.{forms.quote(column.name)}" for column in child.columns)
    return f"SELECT {columns} FROM {source.text(transaction, ())} {' '.join(joins)}"


def children(
    transaction: Transaction, child: Table, key: ForeignKey, values: Sequence[Key]
) -> Iterator[Row]:
    """The rows that reference any of these keys, own writes included."""
    for query in children_queries(transaction, child, key, values):
        yield from transaction.session.rows_to_keep(query, of=child)


def children_queries(
    transaction: Transaction, child: Table, key: ForeignKey, values: Sequence[Key]
) -> Iterator[str]:
    """Queries for the rows that reference any of these keys."""
    parent = transaction.catalog.parent(key)
    forms = transaction.engine.forms
    transaction.visible_sequence = transaction.sequence
    binding: dict[int, Operand] = {}
    if len(values) == 1:
        binding = dict(zip(key.columns, map(Literal, values[0]), strict=True))
    columns = ", ".join(f"_o.{forms.quote(column.name)}" for column in child.columns)
    same = forms.same_as_wanted(child, key.columns, "_o.", (parent, key.key))
    for start in range(0, len(values), _AT_ONCE):
        part = values[start : start + _AT_ONCE]
        source = looked_up(child, key.columns, part, binding)
        yield (
            f"SELECT {columns} FROM {source.text(transaction, ())} "
            f"JOIN {forms.wanted(parent, key.key, part)} AS _n ON {same}"
        )


def missing_parents(
    transaction: Transaction, child: Table, key: ForeignKey, values: Sequence[Key]
) -> list[Key]:
    """Which of these keys no row of the parent has; the others are held."""
    parent = transaction.catalog.parent(key)
    expect_privilege(transaction, parent, "SELECT")
    is_local = (
        key.key == parent.primary_key
        and transaction.catalog.buffers(parent)
        and transaction.knows(parent)
    )
    if not is_local:
        return _missing_by_query(transaction, child, parent, key, values)
    coercers = [coercer(parent.columns[i].type) for i in key.key]
    try:
        keys = [
            tuple([c(v) for c, v in zip(coercers, given, strict=True)])
            for given in values
        ]
    except NotLocal:
        return _missing_by_query(transaction, child, parent, key, values)
    if len(keys) > 1:
        transaction.prefetch(parent, keys, ())
    missing = []
    writes = transaction.writes.get(parent.id)
    own = {} if writes is None else writes.rows
    for given, wanted in zip(values, keys, strict=True):
        row = transaction.row(parent, wanted, ())
        if row is None or transaction.is_validated:
            # (What a savepoint takes back is certified no more.)
            transaction.see_row(parent, wanted, row)
        if row is None:
            missing.append(given)
        elif wanted not in own:
            transaction.references.share(
                held_key(transaction, parent, key.key, wanted, wanted)
            )
    return missing


def _missing_by_query(
    transaction: Transaction,
    child: Table,
    parent: Table,
    key: ForeignKey,
    values: Sequence[Key],
) -> list[Key]:
    forms = transaction.engine.forms
    transaction.visible_sequence = transaction.sequence
    same = forms.same_as_wanted(parent, key.key, "_o.")
    columns = ", ".join(
        f"_o.{forms.quote(parent.columns[i].name)}"
        for i in (*key.key, *parent.primary_key)
    )
    missing = []
    writes = transaction.writes.get(parent.id)
    own = {} if writes is None else writes.rows
    for start in range(0, len(values), _AT_ONCE):
        part = values[start : start + _AT_ONCE]
        source = looked_up(parent, key.key, part)
        found = transaction.session.rows_to_keep(
            f"SELECT _n._number, {columns} FROM {source.text(transaction, ())} "
            f"JOIN {forms.wanted(child, key.columns, part)} AS _n ON {same}"
        )
        there = set()
        width = len(key.key)
        for number, *row in found:
            there.add(number)
            primary = tuple(row[width:]) if parent.primary_key else None
            if primary not in own:
                held = held_key(
                    transaction, parent, key.key, tuple(row[:width]), primary
                )
                transaction.references.share(held)
        missing += [given for n, given in enumerate(part) if n not in there]
    return missing
