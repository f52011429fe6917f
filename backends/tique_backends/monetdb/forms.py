"""MonetDB's SQL for snapshots, certification and constraints: pure text.

Measured on 11.41.14, two cores, 1,000,000 stored and 10,000 cached rows (milliseconds,
median of 7; count and sum over all, filter on a column without an index, one key):

========================================  =====  ======  =====
storage / newest cached version             all  filter  point
========================================  =====  ======  =====
native, no versions                         2.5     1.7    1.1
NOT EXISTS / NOT EXISTS of a newer one      7.6     2.3    2.2
NOT EXISTS / max(_cts) per key              8.1     3.6    3.2
NOT EXISTS / row_number()                   9.3     3.9    4.1
LEFT JOIN IS NULL / NOT EXISTS             12.5     3.4    2.3
NOT IN / NOT EXISTS                        14.2     1.8    1.9
EXCEPT / NOT EXISTS                         153     159    131
========================================  =====  ======  =====

Filters are pushed below NOT EXISTS, but not below a window or EXCEPT. One VALUES of
many rows costs the square of their number (1000 rows 48 ms, 10,000 rows 2.5 s), many
small ones put together are linear (1000 rows 22 ms, 3000 rows 83 ms); NOT IN over
1000 integers takes 6 ms.

*Apart:* forms that MonetDB does not mix with a statement's own subqueries. Beside IN, ANY, ALL and LATERAL, 11.41 takes a NOT EXISTS that it finds in a table of
FROM for EXISTS, and a correlated NOT IN loses rows of any UNION ALL that it reads. LEFT
JOINs come out right, and nothing is moved across a LIMIT. Beside EXISTS and scalar
subqueries no fault was found. A window that is ordered by an expression has no result
over a UNION ALL (README.md).

*Reading storage rows by their key:* the text of the queries, and the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique_backends.forms import together
from tique_backends.monetdb.names import comparable, same_rows, stage_name
from tique_backends.monetdb.values.literals import quoted, typed
from tique_backends.monetdb.values.types import INTEGERS, is_text, text_length
from tique_backends.names import (
    cache_name,
    column_list,
    key_equality,
    key_list,
    quote,
    storage_name,
)
from tique_backends.servers.server_forms import ServerForms, listed_equality

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique_backends.records import Row
    from tique_rewriter.schema import Table


_VALUES_ROWS = 25
"""Rows per VALUES."""
_NULLS = frozenset({"NULL"})


def known_rows(
    table: Table, positions: Sequence[int], rows: Iterable[Sequence[Any]], alias: str
) -> str:
    """A source of rows that are known, of at least one.

    Its columns are called ``_0``, ``_1`` … by position and have the table's types.
    """
    types = [table.columns[i].type for i in positions]
    names = [f"_{i}" for i in positions]
    texts = [list(map(typed, row, types)) for row in rows]
    return f"({listed_rows(texts, names)}) AS {alias}"


def listed_rows(
    rows: Sequence[Sequence[str]], names: Sequence[str], *, apart: bool = False
) -> str:
    """A query for rows of SQL text, of at least one; ``apart``: each by itself."""
    most = 1 if apart else _VALUES_ROWS
    pieces = [
        piece
        for at in range(0, len(rows), most)
        for piece in _told_apart(rows[at : at + most])
    ]
    return " UNION ALL ".join(_listed(piece, names) for piece in pieces)


def _listed(rows: Sequence[Sequence[str]], names: Sequence[str]) -> str:
    if len(rows) == 1:
        # Of VALUES with one row MonetDB takes columns that are NULL for one another, if they are
        # kept alike: a DECIMAL(9, 2) is an INTEGER then, and so it is in the parts behind.
        (row,) = rows
        items = zip(row, names, strict=True)
        return "SELECT " + ", ".join(f"{value} AS {name}" for value, name in items)
    columns = ", ".join(names)
    values = ", ".join(f"({', '.join(row)})" for row in rows)
    return f"SELECT {columns} FROM (VALUES {values}) AS _l({columns})"


def _told_apart(rows: Sequence[Sequence[str]]) -> Sequence[Sequence[Sequence[str]]]:
    """The rows, in pieces whose columns MonetDB does not take for one another.

    Of two columns of one VALUES that have the same values in another order it reads the
    first twice: VALUES (1, 2), (2, 1) are (1, 1), (2, 2). It does so too if their types are
    different but kept alike, as VARCHAR and CLOB, or BIGINT and DECIMAL(18, 0).
    """
    if len(rows) == 1:
        return [rows]
    columns = set(zip(*rows, strict=True))
    kept = {column: frozenset(map(_kept, column)) for column in columns}
    values = [found for found in kept.values() if found != _NULLS]
    if len(set(values)) == len(values):
        return [rows]
    return [[row] for row in rows]


def _kept(text: str) -> str:
    """What MonetDB keeps of a literal.

    It may be the same of different values: only rows are told apart then for nothing. It is the
    same of equal ones of which there are several texts (``5`` and ``5.0``).
    """
    value, _, type_name = text.removeprefix("CAST(").rpartition(" AS ")
    type_name = type_name.removesuffix(")")
    while value.startswith("CAST("):
        value = value.removeprefix("CAST(").rpartition(" AS ")[0]
    if not value or value == "NULL" or is_text(type_name):
        return value or text
    value = value.strip("R'()")
    if type_name in ("REAL", "DOUBLE") and "$" not in value:
        return repr(float(value))
    if type_name.startswith((*INTEGERS, "DECIMAL", "INTERVAL")):
        # Without the scale.
        return "".join([c for c in value if c in "-0123456789"]).strip("0")
    if type_name.endswith("WITH TIME ZONE"):
        return type_name
    kind = type_name.partition("(")[0]
    return f"{value.rstrip('0.') if kind.startswith('TIME') else value.lower()} {kind}"


class MonetDBForms(ServerForms):
    """The forms that measured fastest on MonetDB.

    Parameters
    ----------
    hides_keys
        Whether MonetDB must not know which columns of a table are unique.
    """

    # MonetDB appends the second part to the first: the other way round it copies storage
    # twice.
    storage_first = False
    integers = INTEGERS
    stage = staticmethod(stage_name)
    typed = staticmethod(typed)
    same_rows = staticmethod(same_rows)

    def __init__(self, *, hides_keys: bool = False) -> None:
        super().__init__()
        self._hides_keys = hides_keys

    @override
    def stored(self, table: Table) -> str:
        if table.is_temporary:
            return storage_name(table)
        head, _ = self._guarding(table)
        columns = self.stored_list(table, range(len(table.columns)))
        return f"({head}SELECT {columns} FROM {storage_name(table)})"

    @override
    def _guarding(self, table: Table) -> tuple[str, list[str]]:
        # MonetDB looks the names in WITH up, and plans nothing of it unless it is read: so
        # it costs the query nothing.
        if table.is_temporary:
            return "", []
        return f"WITH _there AS (SELECT _cts FROM {cache_name(table)}) ", []

    @override
    def stored_list(
        self, table: Table, columns: Sequence[int], prefix: str = ""
    ) -> str:
        # Of two subqueries that are joined by the first column of an index, as that of a
        # composite key, MonetDB makes a semijoin, as if it were unique (README.md); and so it
        # does in a join of three, in which a unique one is not unique any more. It does not
        # look through this.
        keys = (table.primary_key, *table.unique)
        heads = table.heads.union(
            key[0] for key in keys if len(key) > 1 or (key and self._hides_keys)
        )
        names = [(i in heads, quote(table.columns[i].name)) for i in columns]
        return ", ".join(
            f"ifthenelse(TRUE, {prefix}{name}, {prefix}{name}) AS {name}"
            if is_first
            else f"{prefix}{name}"
            for is_first, name in names
        )

    @override
    def point(
        self, table: Table, sts: int, key: Sequence[str], *, staged: int | None
    ) -> str:
        types = [table.columns[i].type for i in table.primary_key]
        compared = list(map(comparable, key, types))
        return super().point(table, sts, compared, staged=staged)

    @override
    def joins_in_parts(self, parts: int, others: int, *, wide: bool) -> bool:
        # MonetDB itself joins in parts, if only one of them does.
        return wide and parts > 1 and others > 1

    @override
    def known_rows(
        self,
        table: Table,
        positions: Sequence[int],
        values: Sequence[Sequence[Any]],
        alias: str,
    ) -> str:
        return known_rows(table, positions, zip(*values, strict=True), alias)

    @override
    def _unlike(
        self, table: Table, positions: Sequence[int], values: Sequence[Sequence[Any]]
    ) -> tuple[str, list[str]]:
        excluded = self.known_rows(table, positions, values, "_x")
        same = listed_equality(table, positions)
        return "", [f"NOT EXISTS (SELECT 1 FROM {excluded} WHERE {same})"]

    @override
    def cast(self, text: str, type_name: str) -> str:
        length = text_length(type_name)
        if length is None:
            return f"CAST({text} AS {type_name})"
        # MonetDB's own CAST cuts long values; an assignment refuses them. There is
        # no function that raises: so the length is a text that is no number.
        whole = f"CAST({text} AS CLOB)"
        refusal = quoted(f"value too long for {type_name}")
        return (
            f'CAST("left"({whole}, CAST(CASE WHEN length({whole}) > {length} '
            f"THEN {refusal} ELSE R'{length}' END AS INTEGER)) AS {type_name})"
        )

    @override
    def once(self, name: str, columns: Sequence[str], query: str) -> str:
        # MonetDB does not copy it to the places where it is named.
        return f"WITH {name}({', '.join(columns)}) AS ({query})"

    @override
    def stage_query(
        self, items: Sequence[str], source: str, sequence: int, *, deleted: bool
    ) -> str:
        # MonetDB inserts no two columns of one name, such as a column and its copy.
        names = [
            item if item == "*" else f"{item} AS _{i}" for i, item in enumerate(items)
        ]
        return f"SELECT {', '.join(names)}, {sequence}, {str(deleted).upper()}{source}"

    @override
    def conflicts(self, table: Table, columns: Sequence[int], rows: int) -> str:
        width = len(columns) + 1
        types = [table.columns[i].type for i in columns]
        keys = [
            [
                str(ordinal),
                *(
                    comparable(f"${ordinal * width + i + 1}", type_name)
                    for i, type_name in enumerate(types)
                ),
                f"CAST(${ordinal * width + width} AS BIGINT)",
            ]
            for ordinal in range(rows)
        ]
        aliases = ["_ordinal", *(quote(table.columns[i].name) for i in columns), "_sts"]
        # The values may make columns alike, and are not known yet.
        apart = len(columns) > 1 or types[0] in ("TINYINT", "BIGINT")
        relation = f"({listed_rows(keys, aliases, apart=apart)}) AS _k"
        return self._conflicts(table, columns, relation, cache_name(table))


_ALL = 1 << 62


class ApartForms(MonetDBForms):
    """The forms for statements with IN, ANY or ALL of a subquery, LATERAL, or such windows."""

    @override
    def _seen(self, *queries: str, several: bool = True) -> tuple[str, ...]:
        return (f"(SELECT * FROM {together(queries)} AS _u LIMIT {_ALL})",)

    @override
    def _current(self, table: Table, versions: str, *, flat: bool) -> str:
        if flat:
            return super()._current(table, versions, flat=flat)
        same = key_equality(table, table.primary_key, "_c.", "_l.")
        return (
            f"(SELECT {column_list(table, '_c.')} FROM {versions} AS _c "
            f"LEFT JOIN {versions} AS _l ON {same} AND _l._cts > _c._cts "
            "WHERE NOT _c._deleted AND _l._cts IS NULL)"
        )

    @override
    def _kept(self, table: Table, versions: str) -> str:
        same = key_equality(table, table.primary_key, "_s.", "_v.")
        return (
            f"(SELECT {column_list(table, '_s.')} FROM {storage_name(table)} AS _s "
            f"LEFT JOIN {versions} AS _v ON {same} WHERE _v._cts IS NULL)"
        )

    @override
    def _unlike(
        self, table: Table, positions: Sequence[int], values: Sequence[Sequence[Any]]
    ) -> tuple[str, list[str]]:
        excluded = self.known_rows(table, positions, values, "_x")
        same = listed_equality(table, positions)
        return f" LEFT JOIN {excluded} ON {same}", [f"_x._{positions[0]} IS NULL"]


def storage_query(table: Table, read: Sequence[int], condition: str) -> str:
    """A query for some columns of the storage rows that match."""
    return (
        f"SELECT {key_list(table, read)} FROM {storage_name(table)} "
        f"WHERE {condition}{still_there(table)}"
    )


def still_there(table: Table) -> str:
    """A condition that is TRUE, in a statement that fails when the table is gone.

    A prepared statement finds its tables by their names whenever it is executed, those
    that are in its plan: a WITH that nothing reads is not. It costs 10 µs.
    """
    if table.is_temporary:
        return ""
    return f" AND NOT EXISTS (SELECT 1 FROM {cache_name(table)} WHERE FALSE)"


def key_literals(table: Table, key: Row) -> list[str]:
    """A key's first values, as literals of its columns' types."""
    types = [table.columns[i].type for i in table.primary_key]
    return [
        typed(value, type_name) for value, type_name in zip(key, types, strict=False)
    ]


def key_condition(
    table: Table, key: Sequence[str], between: tuple[object, object] | None = None
) -> str:
    """A condition on the key's first columns, and on the range of the one after them."""
    names = [key_list(table, [i]) for i in table.primary_key]
    terms = [f"{name} = {text}" for name, text in zip(names, key, strict=False)]
    if between:
        terms.append(f"{names[len(key)]} BETWEEN {between[0]} AND {between[1]}")
    return " AND ".join(terms)
