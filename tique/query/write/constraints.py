"""Constraints of a statement's new rows (P9).

NOT NULL and primary keys are checked here, over rows that the driver has. The engine
checks CHECK and UNIQUE: buffered rows are spilled to the staging table, which has the
CHECK constraints, and one query looks for duplicate values among the rows that the
transaction would see. The engine also checks values that may not fit into storage: rows
beyond one of the table's bounds are spilled, and the staging table takes or refuses
them. All of it happens inside the statement, so that a violation undoes the statement
and nothing else; certification enforces keys against concurrent transactions.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from tique import errors
from tique._translation import concerning
from tique_backends.records import MISSING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import Any

    from tique.query.transaction.transaction import Transaction
    from tique.store.rows import Key
    from tique.writes.table import TableWrites
    from tique_backends.records import Row
    from tique_rewriter.schema import Bound, Check, Table


def not_null_columns(table: Table) -> list[tuple[int, str]]:
    """Position and name of every column that must not be NULL."""
    return [(i, c.name) for i, c in enumerate(table.columns) if c.not_null]


def check_not_null(table: Table, columns: Sequence[tuple[int, str]], row: Row) -> None:
    """Refuse NULL where the table does.

    Raises
    ------
    NotNullViolation
        If one of ``columns`` is NULL in ``row``.
    """
    for position, name in columns:
        if row[position] is None:
            raise _null(table, name)


def _null(table: Table, column: str) -> errors.NotNullViolation:
    return errors.NotNullViolation(
        f"NOT NULL constraint failed: {table.qualified_name}.{column}",
        diag=concerning(table, column_name=column),
    )


def _broken(table: Table, check: Check) -> errors.CheckViolation:
    name = f" {check.name}" if check.name else ""
    return errors.CheckViolation(
        f"CHECK constraint{name} failed: a row for {table.qualified_name} violates it",
        diag=concerning(table, constraint_name=check.name),
    )


def check_proposed(transaction: Transaction, table: Table, rows: Sequence[Row]) -> None:
    """Refuse rows that break NOT NULL or CHECK, whether they are to be written or not.

    Raises
    ------
    NotNullViolation, CheckViolation
        If a row does.
    """
    required = not_null_columns(table)
    for row in rows:
        check_not_null(table, required, row)
    if rows and (table.checks or table.domains or table.generated):
        values = list(zip(*rows, strict=True))
        every = range(len(table.columns))
        source = transaction.engine.forms.constants(table, every, {}, values)
        _check_relation(transaction, table, source, (), ())


def check_proposed_query(
    transaction: Transaction, table: Table, source: str, bound: Sequence[Any]
) -> None:
    """As :func:`check_proposed`, for the rows of a relation with the table's columns."""
    required = [name for _, name in not_null_columns(table)]
    _check_relation(transaction, table, source, bound, required)


def _check_relation(
    transaction: Transaction,
    table: Table,
    source: str,
    bound: Sequence[Any],
    required: Sequence[str],
) -> None:
    forms = transaction.engine.forms
    names = [*required, *(column.name for column in table.generated if column.not_null)]
    conditions: list[tuple[str, errors.IntegrityError]] = [
        (forms.has_value(forms.quote(name)), _null(table, name)) for name in names
    ]
    # PostgreSQL evaluates them in the order of their names.
    checks = sorted(table.checks, key=lambda each: each.name or "")
    conditions += [(check.expression, _broken(table, check)) for check in checks]
    # Computed even if nothing is said of them: that may be an error.
    items = [f"count({forms.quote(column.name)})" for column in table.generated]
    items += [f"count(CAST({forms.quote(c)} AS {d}))" for c, d in table.domains]
    if conditions:
        cases = [f"WHEN NOT ({sql}) THEN {n}" for n, (sql, _) in enumerate(conditions)]
        items.insert(0, f"min(CASE {' '.join(cases)} END)")
    if not items:
        return
    if table.generated:
        source = forms.computed(table, source)
    query = f"SELECT {', '.join(items)} FROM {source} AS _c"
    ((first, *_),) = transaction.session.execute(query, bound).fetch_all()
    if conditions and first is not None:
        raise conditions[first][1]


def check_conditions(
    transaction: Transaction,
    table: Table,
    changes: Sequence[tuple[Row | None, Row | None]] | None,
) -> None:
    """Refuse rows that a view with a CHECK OPTION would not have.

    They are the new ones of ``changes``; None: those that the statement staged.

    Raises
    ------
    WithCheckOptionViolation
        The condition is false or NULL for one of them.
    """
    if not table.conditions:
        return
    forms = transaction.engine.forms
    source = forms.staged(table, transaction.sequence)
    if changes is not None:
        rows = [new for _, new in changes if new is not None]
        if not rows:
            return
        values = list(zip(*rows, strict=True))
        source = forms.constants(table, range(len(table.columns)), {}, values)
    cases = [
        f"WHEN NOT coalesce(({transaction.default(each.expression)}), FALSE) THEN {n}"
        for n, each in enumerate(table.conditions)
    ]
    query = f"SELECT min(CASE {' '.join(cases)} END) FROM {source} AS _c"
    ((first,),) = transaction.session.execute(query).fetch_all()
    if first is not None:
        raise errors.WithCheckOptionViolation(
            f'new row violates check option for view "{table.conditions[first].name}"'
        )


def is_doubtful(
    table: Table, rows: Iterable[Row | None], changed: Collection[int]
) -> bool:
    """Whether one of the rows may not fit into storage; its ``changed`` are new."""
    bounds = [
        bound for bound in table.bounds if not set(changed).isdisjoint(bound.columns)
    ]
    return bool(bounds) and any(
        _passes(bound, row) for row in rows if row is not None for bound in bounds
    )


def _passes(bound: Bound, row: Row) -> bool:
    weight = 0
    for position, factor in zip(bound.columns, bound.weights, strict=True):
        value = row[position]
        if isinstance(value, str):
            weight += len(value) * (1 if value.isascii() else 4) * factor
        elif isinstance(value, bytes):
            weight += len(value) * factor
        elif isinstance(value, Decimal):
            weight += len(value.as_tuple().digits) * factor
        elif value is MISSING:
            return True
    return weight > bound.most


def check_new_keys(transaction: Transaction, table: Table, keys: Sequence[Key]) -> None:
    """Refuse primary keys, each given once, that exist already.

    Raises
    ------
    UniqueViolation
        If a key is not free.
    """
    if not keys:
        return
    transaction.expect_free(table, keys[0])
    transaction.prefetch(table, keys, ())
    for key in keys:
        row = transaction.row_to_change(table, key, ())
        if row is not None:
            transaction.see_row(table, key, row)
            transaction.met.add((table.id, key))
            raise duplicate_key(table, table.primary_key)


def check_buffered(
    transaction: Transaction,
    writes: TableWrites,
    changed: Collection[int],
    first: int | None = None,
) -> None:
    """Have the engine check the statement's buffered rows: CHECK, UNIQUE, bounds.

    ``changed`` are the positions of the columns that the statement set, ``first``
    the first sequence number that it used, if it used several.
    """
    table = writes.table
    unique = any(set(columns) & set(changed) for columns in _unique(table))
    if writes.is_doubtful:
        writes.guard(transaction.session)
    if unique or (table.judges_rows and changed) or writes.is_doubtful:
        writes.is_doubtful = False
        writes.spill(transaction.session)
        check_unique(transaction, table, changed, first)


def _unique(table: Table) -> list[tuple[int, ...]]:
    """The columns of each UNIQUE key, computed ones too."""
    return [*table.unique, *(key.columns for key in table.computed_keys)]


def check_staged_keys(transaction: Transaction, table: Table) -> None:
    """Refuse primary keys of rows that the statement staged, as for buffered ones."""
    if table.is_keyless:
        return
    transaction.prepare_scan(table, is_seen=True)
    sql = transaction.engine.forms.staged_duplicate(
        table, transaction.sts, transaction.sequence
    )
    if _has_rows(transaction, table, sql):
        raise duplicate_key(table, table.primary_key)


def check_unique(
    transaction: Transaction,
    table: Table,
    changed: Collection[int],
    first: int | None = None,
) -> None:
    """Refuse duplicate UNIQUE values among staged and visible rows."""
    forms = transaction.engine.forms
    sequence = transaction.sequence
    numbers = transaction.sts, sequence if first is None else first, sequence
    for columns in table.unique:
        if set(columns) & set(changed):
            transaction.prepare_scan(table, is_seen=True)
            sql = forms.unique_duplicate(table, columns, *numbers)
            if _has_rows(transaction, table, sql):
                raise duplicate_key(table, columns)
    for key in table.computed_keys:
        if set(key.columns) & set(changed):
            transaction.prepare_scan(table, is_seen=True)
            sql = forms.computed_duplicate(table, key, *numbers)
            if _has_rows(transaction, table, sql):
                raise _duplicate(table, f"UNIQUE ({', '.join(key.parts)})", key.name)


def _has_rows(transaction: Transaction, table: Table, sql: str) -> bool:
    """Whether a query for duplicates has rows, whose values Python may not be able to hold.

    The application learns of these; that there are none is certified with its new rows.
    """
    query = f"SELECT 1 FROM ({sql}) AS _found"
    found = bool(transaction.session.execute(query).fetch_all())
    if found:
        transaction.see_table(table)
    return found


def duplicate_key(table: Table, columns: tuple[int, ...]) -> errors.UniqueViolation:
    """Return the error for a second row with the same PRIMARY KEY or UNIQUE key."""
    names = ", ".join(table.columns[i].name for i in columns)
    kind = "PRIMARY KEY" if columns == table.primary_key else f"UNIQUE ({names})"
    return _duplicate(table, kind, table.key_name(columns))


def _duplicate(table: Table, kind: str, name: str | None) -> errors.UniqueViolation:
    violates = "" if name is None else f' violates unique constraint "{name}"'
    return errors.UniqueViolation(
        f"duplicate key value{violates}: {table.qualified_name} has a row with this "
        f"{kind} already",
        diag=concerning(table, constraint_name=name),
    )
