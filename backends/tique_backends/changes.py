"""The SQL of what was changed between two versions of a table: pure text.

The life of a key is a sequence of *states*: its before-images in the history table, its row
in storage (or that there is none), and its versions in the cache table, without gaps. They
are put in order by a version at which each of them was the state of the key, its *place*. A
state begins where the one before it ends, and ends are known for certain: an image's is its
``_until``, that of any other is the next version's ``_cts``. So nothing relies on ``_from``
but that it is never too large.

One snapshot of the engine has to show all three tables: a fold moves versions between them.
A table without a key has no states: its versions are copies that came and went.

What differs between two versions needs no states: the table at a version is a relation, and
two of these are joined by the key. Only what has an image or a version that is later than the
earlier one can differ, so both are looked through for these keys alone: of a million rows
with a thousand changes DuckDB finds these in 0.1 to 0.3 seconds, where a join of the whole
relations takes 0.6 to 0.9. Without a key it is the copies that came and went between.

A row of a query has whether there was a row and whether there is one now, the columns of the
one and those of the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_backends.forms import difference as differing
from tique_backends.names import (
    cache_name,
    column_list,
    history_name,
    key_equality,
    key_list,
    quote,
    storage_name,
)
from tique_rewriter.plans.plan import IsNull, Junction, Literal, Negation

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tique_backends.forms import Forms
    from tique_rewriter.plans.plan import Condition
    from tique_rewriter.schema import Table


def changes(forms: Forms, table: Table, since: int, until: int) -> str:
    """A query for the changes with ``since`` < cts ≤ ``until``, in the order of commits.

    A row begins with the cts. Those of one commit are in the order of their keys. Without a
    key a row has, before all else, how many copies it stands for.
    """
    if table.is_keyless:
        columns = column_list(table)
        copies = "sum(CASE WHEN _deleted THEN -1 ELSE 1 END)"
        return (
            f"SELECT abs({copies}), _cts, {copies} < 0, {copies} > 0 AS _came, "
            f"{columns}, {columns} FROM {_versions(table, since, until)} AS _v "
            f"GROUP BY {', '.join(['_cts', columns, *forms.images(table)])} "
            f"HAVING {copies} <> 0 ORDER BY _cts, _came"
        )
    key, columns = key_list(table, table.primary_key), column_list(table)
    window = f"OVER (PARTITION BY {key} ORDER BY _place)"
    numbers = range(len(table.columns))
    old = ", ".join(
        f"lag({key_list(table, [i])}) {window} AS _old_{i}" for i in numbers
    )
    return (
        f"SELECT _cts, _was, _there, {', '.join(f'_old_{i}' for i in numbers)}, "
        f"{columns} FROM (SELECT {columns}, _there, {old}, "
        f"lag(_there) {window} AS _was, coalesce(_cts, lag(_until) {window}) AS _cts "
        f"FROM {_states(forms, table, since, until)} AS _s) AS _c "
        f"WHERE _cts > {since} AND _cts <= {until} AND (_was OR _there) "
        f"ORDER BY _cts, {key}"
    )


def difference(forms: Forms, table: Table, *relations: tuple[int, str]) -> str:
    """A query for the rows that differ between two versions, in any order.

    ``relations`` are these, each with the table at it, as FROM has it.
    """
    numbers = range(len(table.columns))
    first, last = sorted(version for version, _ in relations)
    if table.is_keyless:
        between = f"{_versions(table, first, last)} AS _v WHERE"
        parts = [f"{between} _deleted", f"{between} NOT _deleted"]
        went, came = parts if first == relations[0][0] else parts[::-1]
        both = ", ".join(_named(table, side, "") for side in ("_old", "_new"))
        images = forms.images(table)
        return " UNION ALL ".join(
            f"SELECT {was} AS _was, NOT {was} AS _is, {both} "
            f"FROM ({differing(table, some, others, images)}) AS _d"
            for was, some, others in (("TRUE", went, came), ("FALSE", came, went))
        )
    was, there = _are_there(forms, table)
    return (
        f"SELECT {was} AS _was, {there} AS _is, "
        f"{_named(table, '_old', '_old.')}, {_named(table, '_new', '_new.')} "
        f"FROM {_compared(table, first, *(each for _, each in relations))} WHERE "
        f"{_differ(forms, table, numbers)}"
    )


def seen_changes(
    forms: Forms,
    table: Table,
    predicate: tuple[Sequence[Condition], Collection[int] | None],
    *relations: tuple[int, str],
) -> str:
    """A query for one row if what a transaction has seen is another between two versions.

    The ``predicate`` has conditions with values, all of which are true of the rows, and the
    columns looked at (None: all). ``relations`` are the earlier version and the later
    one, each with the table at it, as FROM has it; nothing later than the earlier one is folded.
    """
    conditions, looked_at = predicate
    columns = range(len(table.columns)) if looked_at is None else sorted(looked_at)
    (first, old), (last, new) = relations
    if table.is_keyless:
        values = key_list(table, columns, "_v.")
        every = " AND ".join(
            [f"({_condition(forms, table, each, '_v.')})" for each in conditions]
        )
        return (
            f"SELECT 1 FROM {_versions(table, first, last)} AS _v"
            f"{f' WHERE {every}' if every else ''} GROUP BY {values} "
            "HAVING sum(CASE WHEN _deleted THEN -1 ELSE 1 END) <> 0 LIMIT 1"
        )
    sides = [
        " AND ".join(
            [is_there, *(f"({_condition(forms, table, c, side)})" for c in conditions)]
        )
        for is_there, side in zip(
            _are_there(forms, table), ("_old.", "_new."), strict=True
        )
    ]
    return (
        f"SELECT 1 FROM {_compared(table, first, old, new)} "
        f"WHERE ({sides[0]} OR {sides[1]}) AND "
        f"{_differ(forms, table, sorted({*columns, *table.primary_key}))} LIMIT 1"
    )


def _compared(table: Table, since: int, old: str, new: str) -> str:
    """Two relations, as FROM has them, side by side under keys that have changed since."""
    key = table.primary_key
    names = key_list(table, key)
    changed = f"SELECT {names} FROM {cache_name(table)} WHERE _cts > {since}"
    if table.history is not None:
        images = f"SELECT {names} FROM {history_name(table)} WHERE _until > {since}"
        changed = f"{images} UNION {changed}"
    else:
        changed = changed.replace("SELECT", "SELECT DISTINCT", 1)
    first, second = (
        f"(SELECT {column_list(table, '_r.')} FROM ({changed}) AS _k "
        f"JOIN {relation} AS _r ON {key_equality(table, key, '_k.', '_r.')})"
        for relation in (old, new)
    )
    return (
        f"{first} AS _old FULL JOIN {second} AS _new "
        f"ON {key_equality(table, key, '_old.', '_new.')}"
    )


def _are_there(forms: Forms, table: Table) -> tuple[str, str]:
    """Conditions: there is an old row, and there is a new one."""
    first = key_list(table, table.primary_key[:1])
    return forms.has_value(f"_old.{first}"), forms.has_value(f"_new.{first}")


def _differ(forms: Forms, table: Table, columns: Sequence[int]) -> str:
    """A condition: some of these columns are not the same in both."""
    same = forms.same_rows(table, columns, "_old.", "_new.")
    return f"CASE WHEN {same} THEN FALSE ELSE TRUE END"


def _condition(forms: Forms, table: Table, condition: Condition, side: str) -> str:
    """A condition, whose operands are values, on a row's columns."""
    if isinstance(condition, Negation):
        return f"NOT ({_condition(forms, table, condition.condition, side)})"
    if isinstance(condition, Junction):
        both = (condition.left, condition.right)
        return f" {condition.operator} ".join(
            [f"({_condition(forms, table, each, side)})" for each in both]
        )
    column = table.columns[condition.position]
    name = f"{side}{quote(column.name)}"
    if isinstance(condition, IsNull):
        return f"NOT ({forms.has_value(name)})"
    assert isinstance(condition.operand, Literal)
    equal = condition.operator == "="
    sign = column.equality if equal else condition.operator
    return f"{name} {sign} {forms.typed(condition.operand.value, column.type)}"


def _named(table: Table, side: str, prefix: str) -> str:
    """The columns of one side, with their names in the result."""
    return ", ".join(
        f"{prefix}{quote(column.name)} AS {side}_{i}"
        for i, column in enumerate(table.columns)
    )


def _states(forms: Forms, table: Table, since: int, until: int) -> str:
    """The states of keys from ``since`` to ``until``, of keys that have several.

    ``_until`` is an image's end, ``_cts`` a recent version's begin.
    """
    columns, key = column_list(table), key_list(table, table.primary_key)
    images = f"FROM {history_name(table)} WHERE _until > {since} AND _from <= {until}"
    versions = f"FROM {cache_name(table)} WHERE _cts <= {until}"
    nothing = "CAST(NULL AS BIGINT)"
    first = key_list(table, table.primary_key[:1])
    stored = ", ".join(
        f"{'_k' if i in table.primary_key else '_s'}.{quote(column.name)}"
        for i, column in enumerate(table.columns)
    )
    rows = forms.stored_list(table, range(len(table.columns)))
    return (
        f"(SELECT {columns}, _there, _until - 1 AS _place, {nothing} AS _cts, _until "
        f"{images} UNION ALL "
        f"SELECT {stored}, {forms.has_value(f'_s.{first}')}, _k._place, {nothing}, "
        f"{nothing} FROM (SELECT {key}, max(_last) AS _place FROM ("
        f"SELECT {key}, _until AS _last {images} UNION ALL "
        f"SELECT {key}, CAST(0 AS BIGINT) {versions}) AS _b GROUP BY {key}) AS _k "
        f"LEFT JOIN (SELECT {rows} FROM {forms.only}{storage_name(table)}) AS _s "
        f"ON {key_equality(table, table.primary_key, '_k.', '_s.')} UNION ALL "
        f"SELECT {columns}, NOT _deleted, _cts, _cts, {nothing} {versions})"
    )


def _versions(table: Table, since: int, until: int) -> str:
    """The copies of rows that came, or went, between two versions."""
    columns = column_list(table)
    recent = (
        f"SELECT {columns}, _cts, _deleted FROM {cache_name(table)} "
        f"WHERE _cts > {since} AND _cts <= {until}"
    )
    if table.history is None:
        return f"({recent})"
    return (
        f"(SELECT {columns}, _until AS _cts, _there AS _deleted "
        f"FROM {history_name(table)} WHERE _until > {since} AND _until <= {until} "
        f"UNION ALL {recent})"
    )
