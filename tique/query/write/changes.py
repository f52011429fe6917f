"""Rows that a statement writes: few are buffered, others staged.

Many rows, and rows that the driver cannot hold unchanged, are staged.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from tique import errors
from tique.query.write.constraints import (
    check_buffered,
    check_conditions,
    check_new_keys,
    check_not_null,
    check_staged_keys,
    check_unique,
    duplicate_key,
    is_doubtful,
    not_null_columns,
)
from tique.store.rows import Key, key_of
from tique_backends.names import column_list, key_list
from tique_backends.records import Row, Versions
from tique_rewriter.local.values import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from tique.query.transaction.transaction import Transaction
    from tique.writes.table import TableWrites
    from tique_rewriter.schema import Table

BUFFERED_ROWS = 2000
"""A statement that writes more rows stages them."""

EVERY_ROW = 1 << 30
"""More rows than a statement can bring into memory."""

_CLAMPED = frozenset({date.min, date.max, datetime.min, datetime.max})
"""Values in place of timestamps that Python cannot hold (infinity): not exact."""

Change = tuple[Row | None, Row | None]
"""A row before (None: it did not exist) and after (None: it is deleted)."""


class Written(NamedTuple):
    """A statement's writes; ``changes`` is None if it staged them."""

    rowcount: int
    changes: Sequence[Change] | None


class Computed(NamedTuple):
    """A statement's changes that are not written yet; ``changed`` as for write_changes."""

    changes: Sequence[Change]
    changed: Collection[int]
    rowcount: int


def not_held(what: str, advice: str) -> errors.NotSupportedError:
    """The error for changes whose rows the driver would have to hold, and cannot."""
    return errors.NotSupportedError(
        f"{what} is not supported where it has values that do not survive the way "
        f"through Python; {advice}"
    )


def _family(table: Table, position: int) -> str:
    kind = kind_of(table.columns[position].type)
    return kind.family if kind else ""


def dated_columns(table: Table) -> list[int]:
    """The columns whose values must be checked before a row is buffered."""
    return [
        i
        for i in range(len(table.columns))
        if _family(table, i) in ("date", "timestamp")
    ]


def exactness(table: Table) -> Callable[[Row], bool]:
    """A function that says whether a row from the engine can be buffered.

    Timestamps that Python cannot hold come as the nearest one or as text, and a
    NaN in a key is equal to itself in the engine but not here.
    """
    keys = {i for columns in (table.primary_key, *table.unique) for i in columns}
    dated = dated_columns(table)
    # Decimals have a NaN on PostgreSQL; values of unknown types may have one.
    numbers = [i for i in keys if _family(table, i) in ("double", "decimal", "")]
    if not dated and not numbers:
        return lambda row: True

    def is_exact(row: Row) -> bool:
        return all(
            not isinstance(row[i], str) and row[i] not in _CLAMPED for i in dated
        ) and all(row[i] == row[i] for i in numbers)

    return is_exact


def is_free(table: Table, changed: Collection[int]) -> bool:
    """Whether new values of these columns can break no constraint but NOT NULL."""
    together = [
        table.primary_key,
        *table.unique,
        *table.referenced,
        *[bound.columns for bound in table.bounds],
        *[key.columns for key in table.foreign_keys],
    ]
    return not table.judges_rows and all(
        set(columns).isdisjoint(changed) for columns in together
    )


def lacks_value(table: Table, row: Row, changed: Iterable[int]) -> bool:
    """Whether a NOT NULL column is NULL, one of those that changed."""
    return any(row[i] is None and table.columns[i].not_null for i in changed)


def few_rows(
    transaction: Transaction,
    table: Table,
    query: str,
    bound: Sequence[Any],
    *,
    wide: bool,
) -> list[Row] | None:
    """A query's rows, which are the table's; None if there are too many to buffer."""
    most = BUFFERED_ROWS + 1
    result = transaction.session.execute_some(query, bound, most, wide=wide, of=table)
    rows = result.fetch(most)
    result.close()
    return rows if len(rows) <= BUFFERED_ROWS else None


def write_changes(
    transaction: Transaction,
    table: Table,
    changes: Sequence[Change],
    changed: Collection[int],
) -> Written:
    """Write rows whose values are exactly of their columns' types.

    ``changes`` has each changed row once; ``changed`` are the positions of the columns
    that the statement set.
    """
    writes = transaction.writes_to(table)
    if not changes:
        return Written(0, changes)
    if writes.is_staged or len(changes) > BUFFERED_ROWS:
        _stage_changes(transaction, table, changes, changed)
        return Written(len(changes), None)
    buffer_changes(transaction, table, changes, changed)
    return Written(len(changes), changes)


def buffer_changes(
    transaction: Transaction,
    table: Table,
    changes: Sequence[Change],
    changed: Collection[int],
    *,
    check: bool = True,
) -> None:
    """As :func:`write_changes`, always through the buffer.

    Without ``check``, the caller has the engine check CHECK and UNIQUE later.
    """
    writes = transaction.writes_to(table)
    writes.only_inserts &= all(old is None for old, _ in changes)
    writes.note_columns(changed if _only_set_columns(table, changes, changed) else None)
    required = [(i, name) for i, name in not_null_columns(table) if i in changed]
    for _, new in changes:
        if new is not None:
            check_not_null(table, required, new)
    if table.is_keyless:
        for old, new in changes:
            if old is not None:
                writes.add(transaction.version_of(old, deleted=True))
            if new is not None:
                writes.add(transaction.version_of(new))
    else:
        _buffer_keyed(transaction, writes, changes)
    transaction.note_unchecked(table, changes, changed)
    if table.bounds and is_doubtful(table, (new for _, new in changes), changed):
        writes.is_doubtful = True
    if check:
        check_buffered(transaction, writes, changed)
    check_conditions(transaction, table, changes)


def _only_set_columns(
    table: Table, changes: Sequence[Change], changed: Collection[int]
) -> bool:
    """Whether each row was there before, and stays, under its key."""
    for old, new in changes:
        if old is None or new is None:
            return False
    return set(table.primary_key).isdisjoint(changed)


def _buffer_keyed(
    transaction: Transaction, writes: TableWrites, changes: Sequence[Change]
) -> None:
    """Write one version per key: a row, or a tombstone if no row takes its place."""
    table = writes.table
    primary_key = table.primary_key
    given_up: dict[Key, Row] = {}
    taken: dict[Key, Row] = {}
    for old, new in changes:
        if new is not None:
            key = key_of(primary_key, new)
            if old is not None and key_of(primary_key, old) == key:
                writes.put(key, transaction.version_of(new))
                continue
            if key in taken:
                raise duplicate_key(table, primary_key)
            taken[key] = new
        if old is not None:
            given_up[key_of(primary_key, old)] = old
    if taken:
        check_new_keys(transaction, table, [k for k in taken if k not in given_up])
    for key, row in given_up.items():
        if key not in taken:
            writes.put(key, transaction.version_of(row, deleted=True))
    for key, row in taken.items():
        writes.put(key, transaction.version_of(row))


def _stage_changes(
    transaction: Transaction,
    table: Table,
    changes: Sequence[Change],
    changed: Collection[int],
) -> None:
    transaction.writes_to(table).switch_to_stage(transaction.session)
    old = [row for row, _ in changes if row is not None]
    new = [row for _, row in changes if row is not None]
    number = transaction.sequence
    transaction.session.stage(
        Versions(
            table,
            [*old, *new],
            [number - 1] * len(old) + [number] * len(new),
            [True] * len(old) + [False] * len(new),
        )
    )
    finish_staged(
        transaction,
        table,
        len(changes),
        changed,
        new_keys=True,
        only_inserts=not old,
        only_sets=_only_set_columns(table, changes, changed),
    )
    check_conditions(transaction, table, changes)
    transaction.note_unchecked(table, changes, changed)


def finish_staged(
    transaction: Transaction,
    table: Table,
    count: int,
    changed: Collection[int],
    *,
    new_keys: bool,
    only_inserts: bool = False,
    only_sets: bool = False,
) -> None:
    """Account for staged rows and check their keys.

    ``only_sets`` if the statement did nothing but set ``changed`` of rows, outside the key.
    """
    writes = transaction.writes_to(table)
    writes.note_staged(count, transaction.sts)
    writes.only_inserts &= only_inserts
    writes.note_columns(changed if only_sets else None)
    with transaction.session.planned_apart():
        if new_keys:
            check_staged_keys(transaction, table)
        check_unique(transaction, table, changed)


def stage_query(
    transaction: Transaction, table: Table, query: str, bound: Sequence[Any]
) -> Written:
    """Insert a query's rows (all columns, in order) without moving them."""
    transaction.writes_to(table).switch_to_stage(transaction.session)
    sql = transaction.engine.forms.stage_query(
        ["*"], f" FROM ({query}) AS _q", transaction.sequence, deleted=False
    )
    every_column = range(len(table.columns))
    return stage_text(transaction, table, sql, bound, every_column, inserts=True)


def stage_old(
    transaction: Transaction,
    table: Table,
    query: str,
    bound: Sequence[Any],
    count: int,
    new: Sequence[str] | None,
    changed: Collection[int],
) -> Written:
    """Write changes of a query's rows without moving them.

    The query is run once, so that a volatile one finds the same rows for all versions.

    Parameters
    ----------
    transaction, table, changed
        As for :func:`write_changes`.
    query, bound
        A query for old rows, each once, and perhaps for further values; its parameters.
    count
        The number of its columns, which get the names ``_0``, ``_1`` …
    new
        The new row's items over these names; None: the rows are deleted.
    """
    forms, number = transaction.engine.forms, transaction.sequence
    transaction.writes_to(table).switch_to_stage(transaction.session)
    names = [f"_{i}" for i in range(count)]
    old, gone = names[: len(table.columns)], number if new is None else number - 1
    parts = [forms.stage_query(old, " FROM _o", gone, deleted=True)]
    if new is not None:
        parts.append(forms.stage_query(new, " FROM _o", number, deleted=False))
    sql = f"{forms.once('_o', names, query)} {' UNION ALL '.join(parts)}"
    return stage_text(
        transaction, table, sql, bound, changed, versions=len(parts), deletes=not new
    )


def stage_text(
    transaction: Transaction,
    table: Table,
    sql: str,
    bound: Sequence[Any],
    changed: Collection[int],
    *,
    versions: int = 1,
    deletes: bool = False,
    inserts: bool = False,
) -> Written:
    """Stage the versions that a query gives, so many for each row that is changed."""
    count = transaction.session.stage_query(table, sql, bound) // versions
    if count:
        new_keys = not set(changed).isdisjoint(table.primary_key)
        finish_staged(
            transaction,
            table,
            count,
            changed,
            new_keys=new_keys,
            only_inserts=inserts,
            only_sets=not (new_keys or deletes or inserts),
        )
        check_conditions(transaction, table, None)
        updated = () if inserts else None
        transaction.note_unchecked(
            table, None, changed, updated=updated, deletes=deletes
        )
    return Written(count, None)


class Staging(NamedTuple):
    """A query for changes that stay in the engine.

    Its rows are the number of an action, an old row and a new one, each of all columns in
    their order. ``updates``, ``deletes`` and ``inserts`` are the numbers that have these
    effects; rows with other numbers have none.
    """

    query: str
    updates: Sequence[int] = ()
    deletes: Sequence[int] = ()
    inserts: Sequence[int] = ()


def stage_computed(
    transaction: Transaction,
    table: Table,
    staging: Staging,
    bound: Sequence[Any],
    changed: Collection[int],
    updated: Collection[int],
) -> Written:
    """Write changes that a query computes, without moving them.

    ``changed`` is as for :func:`write_changes`, ``updated`` what updates among them set.

    Old rows are staged under numbers that nothing sees yet, so that the engine computes
    all of it once and they can be told apart; then they become tombstones.

    Raises
    ------
    CardinalityViolation
        If an old row is there twice.
    """
    forms, session = transaction.engine.forms, transaction.session
    number = transaction.sequence
    for_update, for_delete = number + 1, number + 2
    width = range(len(table.columns))
    old, new = [f"_o{i}" for i in width], [f"_n{i}" for i in width]
    parts = [
        forms.stage_query(
            items,
            f" FROM _m WHERE _a IN ({', '.join(map(str, actions))})",
            stamp,
            deleted=items is old,
        )
        for items, actions, stamp in (
            (old, staging.updates, for_update),
            (old, staging.deletes, for_delete),
            (new, [*staging.updates, *staging.inserts], number),
        )
        if actions
    ]
    if not parts:
        return Written(0, ())
    once = forms.once("_m", ["_a", *old, *new], staging.query)
    count = session.stage_query(table, f"{once} {' UNION ALL '.join(parts)}", bound)
    if staging.updates or staging.deletes:
        gone = f"{forms.stage(table)} WHERE _sequence > {number}"
        if not table.is_keyless:
            key = key_list(table, table.primary_key)
            twice = f"SELECT 1 FROM {gone} GROUP BY {key} HAVING count(*) > 1"
            if session.execute(twice).fetch_all():
                raise errors.CardinalityViolation(
                    f"the statement cannot change a row of {table.qualified_name} a "
                    "second time"
                )
        ((removed,),) = session.execute(
            f"SELECT count(*) FROM {gone} AND _sequence = {for_delete}"
        ).fetch_all()
        tombstones = forms.stage_query(
            [column_list(table)], f" FROM {gone}", number - 1, deleted=True
        )
        count += removed - session.stage_query(table, tombstones, ())
        session.unstage(table, number)
    finish_staged(transaction, table, count, changed, new_keys=True)
    transaction.note_unchecked(
        table, None, changed, updated=updated, deletes=bool(staging.deletes)
    )
    return Written(count, None)
