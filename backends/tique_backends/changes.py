"""The SQL of what was changed between two versions of a table: pure text.

The life of a key is a sequence of *states*: its before-images in the history table, its row
in storage (or that there is none), and its versions in the cache table, without gaps. They
are put in order by a version at which each of them was the state of the key, its *place*. A
state begins where the one before it ends, and ends are known for certain: an image's is its
``_until``, that of any other is the next version's ``_cts``. So nothing relies on ``_from``
but that it is never too large.

One snapshot of the engine has to show all three tables: a fold moves versions between them.
A table without a key has no states: its versions are copies that came and went.

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

if TYPE_CHECKING:
    from tique_backends.forms import Forms
    from tique_rewriter.schema import Table

_NEVER = 1 << 62
"""The end of a state that goes on."""


def changes(forms: Forms, table: Table, since: int, until: int) -> str:
    """A query for the changes with ``since`` < cts ≤ ``until``, in the order of commits.

    A row begins with the cts. Those of one commit are in the order of their keys. Without a
    key a row has, in the place of all else, how many copies came, and their columns; less than
    none came if they went.
    """
    if table.is_keyless:
        columns = column_list(table)
        copies = "sum(CASE WHEN _deleted THEN -1 ELSE 1 END)"
        return (
            f"SELECT _cts, {copies} AS _copies, {columns} "
            f"FROM {_versions(table, since, until)} AS _v "
            f"GROUP BY {', '.join(['_cts', columns, *forms.images(table)])} "
            f"HAVING {copies} <> 0 ORDER BY _cts, _copies"
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
        f"lag(_there) {window} AS _was, {_beginning(window)} AS _cts "
        f"FROM {_states(forms, table, since, until)} AS _s) AS _c "
        f"WHERE _cts > {since} AND _cts <= {until} AND (_was OR _there) "
        f"ORDER BY _cts, {key}"
    )


def difference(forms: Forms, table: Table, since: int, until: int) -> str:
    """A query for the rows that differ between two versions, in any order."""
    numbers = range(len(table.columns))
    if table.is_keyless:
        versions = _versions(table, since, until)
        went = f"{versions} AS _w WHERE _deleted"
        came = f"{versions} AS _w WHERE NOT _deleted"
        images = forms.images(table)
        both = ", ".join(
            f"{key_list(table, [i])} AS {side}_{i}"
            for side in ("_old", "_new")
            for i in numbers
        )
        return " UNION ALL ".join(
            f"SELECT {was} AS _was, {there} AS _is, {both} "
            f"FROM ({differing(table, some, others, images)}) AS _d"
            for was, there, some, others in (
                ("TRUE", "FALSE", went, came),
                ("FALSE", "TRUE", came, went),
            )
        )
    key = key_list(table, table.primary_key)
    columns = [quote(column.name) for column in table.columns]
    window = f"OVER (PARTITION BY {key} ORDER BY _place)"
    begins, ends = _beginning(window), f"coalesce(_until, lead(_place) {window})"
    lives = (
        f"SELECT {column_list(table)}, _there, coalesce({begins}, 0) AS _begins, "
        f"coalesce({ends}, {_NEVER}) AS _ends "
        f"FROM {_states(forms, table, since, until)} AS _s"
    )
    same = forms.same_rows(table, numbers, "_o.", "_n.")
    items = [f"_o.{name} AS _old_{i}" for i, name in enumerate(columns)]
    items += [f"_n.{name} AS _new_{i}" for i, name in enumerate(columns)]
    return (
        forms.once("_lives", [*columns, "_there", "_begins", "_ends"], lives)
        + f" SELECT _o._there AS _was, _n._there AS _is, {', '.join(items)} "
        f"FROM _lives AS _o JOIN _lives AS _n "
        f"ON {key_equality(table, table.primary_key, '_o.', '_n.')} "
        f"WHERE _o._begins <= {since} AND _o._ends > {since} AND _o._ends <= {until} "
        f"AND _n._begins <= {until} AND _n._ends > {until} "
        f"AND (_o._there <> _n._there OR _n._there "
        f"AND CASE WHEN {same} THEN FALSE ELSE TRUE END)"
    )


def _beginning(window: str) -> str:
    """The version that a state begins with; NULL of the first, if it is no recent one."""
    return f"coalesce(_cts, lag(_until) {window})"


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
    return (
        f"(SELECT {columns}, _until AS _cts, _there AS _deleted "
        f"FROM {history_name(table)} WHERE _until > {since} AND _until <= {until} "
        f"UNION ALL SELECT {columns}, _cts, _deleted FROM {cache_name(table)} "
        f"WHERE _cts > {since} AND _cts <= {until})"
    )
