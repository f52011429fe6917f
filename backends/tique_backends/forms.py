"""The pieces of SQL that differ between engines."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from tique_backends.names import (
    cache_name,
    collated,
    column_list,
    history_name,
    key_equality,
    key_list,
    quote,
    storage_name,
)
from tique_rewriter.schema import Column, Table

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tique_backends.records import Row
    from tique_rewriter.schema import ComputedKey, ForeignKey

STAGED_STAMPS = 1 << 62
"""Added to a staged row's sequence number: newer than every commit timestamp."""


def together(queries: Sequence[str]) -> str:
    """One relation of the rows of several, each of which can stand in FROM."""
    if len(queries) == 1:
        return queries[0]
    return f"({' UNION ALL '.join(queries)})"


def difference(table: Table, rows: str, gone: str, images: Sequence[str]) -> str:
    """A query for rows but for one copy of each of ``gone``, NULL being NULL's copy.

    Both are what follows FROM. ``images`` are expressions that differ between rows that
    are equal and not the same: EXCEPT ALL would give one of these for all of them.
    """
    columns = column_list(table)
    if not images:
        return f"SELECT {columns} FROM {rows} EXCEPT ALL SELECT {columns} FROM {gone}"
    named = (f"{image} AS _image_{i}" for i, image in enumerate(images))
    every = ", ".join([columns, *named])
    return (
        f"SELECT {columns} FROM (SELECT {every} FROM {rows} "
        f"EXCEPT ALL SELECT {every} FROM {gone}) AS _e"
    )


def computed_values(key: ComputedKey, source: str, *stamps: str) -> str:
    """A parenthesised query for a computed key's values of rows, with their stamps."""
    values = [
        f"({text}) AS {name}"
        for text, name in zip(key.texts, computed_names(key), strict=True)
    ]
    return f"(SELECT {', '.join([*values, *stamps])} FROM {source} AS _row)"


def computed_names(key: ComputedKey, prefix: str = "") -> list[str]:
    """The names of such a key's parts."""
    return [f"{prefix}_part{number}" for number in range(len(key.texts))]


def computed_equality(key: ComputedKey, left: str, right: str) -> str:
    """Equality of two values of such a key."""
    return " AND ".join(
        f"{left}{name} {equal} {right}{name}"
        for name, equal in zip(computed_names(key), key.equalities, strict=True)
    )


class Forms(ABC):
    """An engine's SQL for snapshots, certification and constraints (pure text)."""

    integers: Collection[str] = ()
    """The types whose values are told from others by a list of literals."""
    most_listed = math.inf
    """Up to so many of them such a list is the fastest form."""
    overlays_in_parts = False
    """Whether the rows that an overlay adds are a part of their own."""
    no_rows = "WHERE FALSE"
    """The end of a query that has no rows."""
    keeps_dead_rows = False
    """Whether an open snapshot keeps rows that were deleted where others have to pass them."""
    only = ""
    """Before a storage table's name: it has no rows of tables that inherit from it."""

    def quote(self, identifier: str) -> str:
        """Quote an identifier."""
        return quote(identifier)

    def has_value(self, expression: str) -> str:
        """A condition: it is not NULL."""
        return f"{expression} IS NOT NULL"

    def fenced(self, queries: Sequence[str]) -> str:
        """One relation of the rows of several; the engine finds them before all else.

        No engine here moves a condition to before an OFFSET, though there may be an error
        in it.
        """
        return f"(SELECT * FROM {together(queries)} AS _f OFFSET 0)"

    def plain(self, table: Table) -> str:
        """The storage table's qualified name."""
        return storage_name(table)

    def stored(self, table: Table) -> str:
        """The rows of the storage table, of this very table, as a relation in FROM.

        Where another process may drop the table and make one of its name, the engine
        refuses the statement then (:mod:`tique.query.define.redefinition`).
        """
        return self.plain(table)

    @abstractmethod
    def stage(self, table: Table) -> str:
        """The qualified name of the session's staging table."""

    @abstractmethod
    def scan(
        self,
        table: Table,
        sts: int,
        *,
        staged: int | None,
        appended: bool = False,
        flat: bool = False,
        past: bool = False,
        folded: int = 0,
    ) -> tuple[str, ...]:
        """Return parenthesised queries that together yield the table as of ``sts``.

        ``staged`` overlays the rows of the session's staging table up to that
        sequence number. ``appended`` promises that no visible version takes a row's
        place: all are rows under new keys, without tombstones. ``flat`` promises that no
        key has two versions. ``past`` reads a table with a history, at a version that it may be
        folded beyond; then ``flat`` promises that it is. The table is ``folded`` so far at
        least, as the statement sees it.
        """

    def point(
        self, table: Table, sts: int, key: Sequence[str], *, staged: int | None
    ) -> str:
        """A parenthesised query for at most one row by primary key.

        ``key`` is SQL text per key column (placeholders).
        """
        columns = column_list(table)
        match = " AND ".join(
            f"{self.quote(table.columns[i].name)} {table.columns[i].equality} {text}"
            for i, text in zip(table.primary_key, key, strict=True)
        )
        return (
            f"(SELECT {columns} FROM (SELECT * FROM ("
            f"SELECT {columns}, CAST(-1 AS BIGINT) AS _cts, FALSE AS _deleted "
            f"FROM {storage_name(table)} WHERE {match} UNION ALL "
            f"SELECT * FROM {self._versions(table, sts, staged)} AS _v WHERE {match}"
            ") AS _u ORDER BY _cts DESC LIMIT 1) AS _n WHERE NOT _deleted)"
        )

    @abstractmethod
    def typed(self, value: Any, type_name: str) -> str:
        """A literal of a value, of exactly that type."""

    def carried(self, name: str, column: Column) -> str:
        """A value of the column's type, which a column of :meth:`known_rows` has."""
        return name

    @abstractmethod
    def known_rows(
        self,
        table: Table,
        positions: Sequence[int],
        values: Sequence[Sequence[Any]],
        alias: str,
    ) -> str:
        """A source of rows whose columns at ``positions`` have these ``values``.

        Its columns are called ``_0``, ``_1`` … by position.
        """

    def stored_list(
        self, table: Table, columns: Sequence[int], prefix: str = ""
    ) -> str:
        """Columns of the storage table, as another subquery may be joined with them."""
        return key_list(table, columns, prefix)

    def _seen(self, *queries: str, several: bool = True) -> tuple[str, ...]:
        """Parenthesised queries, as a statement reads their rows.

        ``several`` if they may have rows of several sources.
        """
        return queries

    def constant(self, table: Table, columns: Sequence[int], row: Row | None) -> str:
        """A parenthesised query of one constant row, or of no row (None).

        It has the columns at ``columns``, which the row knows.
        """
        if row is None:
            names = key_list(table, columns)
            return f"(SELECT {names} FROM {storage_name(table)} {self.no_rows})"
        items = ", ".join(
            self._item(table, i, self.typed(row[i], table.columns[i].type))
            for i in columns
        )
        return f"(SELECT {items})"

    def _item(self, table: Table, position: int, text: str) -> str:
        column = table.columns[position]
        return f"{text}{collated(column)} AS {quote(column.name)}"

    def overlay(
        self,
        table: Table,
        columns: Sequence[int],
        bound: Mapping[int, Any],
        keys: Sequence[Row],
        rows: Sequence[Row],
    ) -> tuple[str, ...]:
        """Parenthesised queries for the storage table with some rows replaced.

        Only rows with the values ``bound`` to key columns are asked for. Storage rows
        with one of ``keys`` are left out, ``rows`` are added: all of them
        have the bound values and know the columns at ``columns``, of which at least one
        is not bound.
        """
        head, guards = self._guarding(table)
        conditions = [self._equality(table, i, value) for i, value in bound.items()]
        conditions += guards
        join = ""
        if keys:
            join, excluded = self._excluded(table, bound, keys)
            conditions += excluded
        kept = (
            f"{head}SELECT {self.stored_list(table, columns, '_s.')} "
            f"FROM {storage_name(table)} AS _s{join}"
            f"{' WHERE ' if conditions else ''}{' AND '.join(conditions)}"
        )
        if not rows:
            return self._seen(f"({kept})", several=False)
        free = [i for i in columns if i not in bound]
        values = [[row[i] for row in rows] for i in free]
        added = self._constants(table, columns, bound, values)
        if self.overlays_in_parts:
            return self._seen(f"({kept})", f"({added})")
        return self._seen(f"({kept} UNION ALL {added})")

    def _guarding(self, table: Table) -> tuple[str, list[str]]:
        """The head and conditions of a query that fails when its table is gone."""
        return "", []

    def _equality(self, table: Table, position: int, value: Any) -> str:
        """A condition: the column of ``_s`` has a value, which is exactly of its type."""
        column = table.columns[position]
        value = self.typed(value, column.type)
        return f"_s.{quote(column.name)} {column.equality} {value}"

    def _excluded(
        self, table: Table, bound: Mapping[int, Any], keys: Sequence[Row]
    ) -> tuple[str, list[str]]:
        """A join and conditions by which the key of ``_s`` is none of ``keys``.

        The columns in ``bound`` are the same in all of them and need no comparing.
        """
        free = [n for n, i in enumerate(table.primary_key) if i not in bound]
        if not free:
            return "", ["FALSE"]
        positions = [table.primary_key[n] for n in free]
        first = table.columns[positions[0]]
        is_listed = (
            first.type in self.integers
            and first.domain is None
            and len(keys) <= self.most_listed
        )
        if len(free) == 1 and is_listed:
            items = ", ".join(str(int(key[free[0]])) for key in keys)
            return "", [f"_s.{quote(first.name)} NOT IN ({items})"]
        return self._unlike(table, positions, [[key[n] for key in keys] for n in free])

    @abstractmethod
    def _unlike(
        self, table: Table, positions: Sequence[int], values: Sequence[Sequence[Any]]
    ) -> tuple[str, list[str]]:
        """A join and conditions by which ``_s`` has none of these values there."""

    def joins_in_parts(self, parts: int, others: int, *, wide: bool) -> bool:
        """Whether a join of two tables that come in so many parts is made of theirs.

        ``wide`` if some table is read with no column of its key bound.
        """
        return False

    def constants(
        self,
        table: Table,
        columns: Sequence[int],
        bound: Mapping[int, Any],
        values: Sequence[Sequence[Any]],
    ) -> str:
        """A parenthesised query for rows that are known.

        All of them have the values ``bound``; ``values`` has a sequence for each of
        the other ``columns``, of which there is at least one.
        """
        query = self.constant(table, columns, None)
        if values[0]:
            query = f"({self._constants(table, columns, bound, values)})"
        (found,) = self._seen(query, several=False)
        return found

    def _constants(
        self,
        table: Table,
        columns: Sequence[int],
        bound: Mapping[int, Any],
        values: Sequence[Sequence[Any]],
    ) -> str:
        """The same for at least one row, without parentheses."""
        items = ", ".join(
            self._item(
                table,
                i,
                self.typed(bound[i], table.columns[i].type)
                if i in bound
                else self.carried(f"_x._{i}", table.columns[i]),
            )
            for i in columns
        )
        free = [i for i in columns if i not in bound]
        return f"SELECT {items} FROM {self.known_rows(table, free, values, '_x')}"

    @abstractmethod
    def cast(self, text: str, type_name: str) -> str:
        """``text`` converted as on assignment to a column of that type."""

    def once(self, name: str, columns: Sequence[str], query: str) -> str:
        """A WITH clause of one query, which is run once however often it is named."""
        return f"WITH {name}({', '.join(columns)}) AS MATERIALIZED ({query})"

    def stage_query(
        self, items: Sequence[str], source: str, sequence: int, *, deleted: bool
    ) -> str:
        """A query for :meth:`Session.stage_query`: ``items`` of `` FROM …``."""
        return f"SELECT {', '.join(items)}, {sequence}, {str(deleted).upper()}{source}"

    def computed(self, table: Table, relation: str) -> str:
        """A parenthesised query for a relation's rows with the generated columns, too.

        The relation has all columns of values. Where DuckDB's generated columns name
        others, these come before them in the list.
        """
        values = [
            self.cast(f"({each.expression})", each.type)
            + f"{collated(each)} AS {self.quote(each.name)}"
            for each in table.generated
        ]
        every = ", ".join(map(self.quote, table.names))
        items = ", ".join([column_list(table), *values])
        return f"(SELECT {every} FROM (SELECT {items} FROM {relation} AS _row) AS _all)"

    def staged(self, table: Table, sequence: int) -> str:
        """A parenthesised query for the rows that were staged under a number."""
        return (
            f"(SELECT {column_list(table)} FROM {self.stage(table)} "
            f"WHERE _sequence = {sequence})"
        )

    @abstractmethod
    def same_rows(
        self, table: Table, columns: Sequence[int], left: str, right: str
    ) -> str:
        """Equality of columns; NULL is the same as NULL."""

    def before_images(
        self, table: Table, after: int, until: int, *, appended: bool = False
    ) -> str:
        """A query for the images that a fold from ``after`` to ``until`` leaves in history.

        It is asked before the fold, in its engine transaction, and ordered as they are
        kept. ``appended`` is a promise, as of :meth:`scan`.
        """
        columns, cache = (
            column_list(table),
            f"{cache_name(table)} WHERE _cts > {after} AND _cts <= {until}",
        )
        if table.is_keyless:
            return (
                f"SELECT {columns}, CAST(NULL AS BIGINT), _cts, _deleted FROM {cache} "
                "ORDER BY _cts"
            )
        first = key_list(table, table.primary_key)
        ended = f"SELECT {first}, min(_cts) AS _until FROM {cache} GROUP BY {first}"
        stored = self.ended_images(table, ended, appended=appended)
        if appended:
            return f"{stored} ORDER BY _until"
        replaced = (
            f"SELECT {columns}, _cts AS _from, lead(_cts) OVER (PARTITION BY {first} "
            f"ORDER BY _cts) AS _until, NOT _deleted AS _there FROM {cache}"
        )
        return (
            f"SELECT * FROM ({stored} UNION ALL SELECT * FROM ({replaced}) AS _r "
            "WHERE _until IS NOT NULL) AS _i ORDER BY _until"
        )

    def ended_images(self, table: Table, ended: str, *, appended: bool = False) -> str:
        """A query for the images of what storage has, or has not, under some keys.

        ``ended`` is a query for the keys, each once, and for where it ends, ``_until``.
        ``appended`` is a promise that it has no row.
        """
        key, names = table.primary_key, key_list(table, table.primary_key, "_e.")
        same = key_equality(table, key, "_e.", "_h.")
        lives = (
            f"SELECT {names}, _e._until, coalesce(max(_h._until), 0) AS _from "
            f"FROM ({ended}) AS _e LEFT JOIN {history_name(table)} AS _h ON {same} "
            f"GROUP BY {names}, _e._until"
        )
        if appended:
            items = self._image(table, "_b.{0}", "CAST(NULL AS {1})")
            return f"SELECT {items}, _from, _until, FALSE FROM ({lives}) AS _b"
        items = self._image(table, "coalesce(_s.{0}, _b.{0})", "_s.{0}")
        same = key_equality(table, key, "_b.", "_s.")
        there = self.has_value(f"_s.{key_list(table, key[:1])}")
        return (
            f"SELECT {items}, _b._from, _b._until, {there} AS _there FROM ({lives}) AS _b "
            f"LEFT JOIN {self.stored_with_keys(table, f'({ended})')} AS _s ON {same}"
        )

    def stored_with_keys(self, table: Table, keys: str) -> str:
        """What storage has under such keys, or more than that, as a relation.

        ``keys`` is a relation of keys, each once.
        """
        return f"{self.only}{storage_name(table)}"

    def _image(self, table: Table, key: str, other: str) -> str:
        """The columns of an image, of such texts with each one's name and type."""
        items = []
        for position, column in enumerate(table.columns):
            text = key if position in table.primary_key else other
            name = self.quote(column.name)
            items.append(f"{text.format(name, column.type)} AS {name}")
        return ", ".join(items)

    def images(self, table: Table) -> list[str]:
        """Expressions that differ between rows that are equal and not the same.

        There are none if rows that are equal are taken for the same.
        """
        return []

    def _versions(
        self, table: Table, sts: int, staged: int | None, folded: int = 0
    ) -> str:
        """The versions that ``sts`` and ``staged`` show, with stamps and tombstones."""
        columns = column_list(table)
        visible = (
            f"SELECT {columns}, _cts, _deleted FROM {cache_name(table)} "
            f"WHERE {self._since(folded)}_cts <= {sts}"
        )
        if staged is not None:
            visible += (
                f" UNION ALL SELECT {columns}, _sequence + {STAGED_STAMPS}, _deleted "
                f"FROM {self.stage(table)} WHERE _sequence <= {staged}"
            )
        return f"({visible})"

    def _since(self, folded: int) -> str:
        """A condition that is true of all versions, where it saves something."""
        return f"_cts > {folded} AND " if folded and self.keeps_dead_rows else ""

    def _past_versions(self, table: Table, sts: int, folded: int, *, flat: bool) -> str:
        """The versions by which storage differs from the table as of ``sts``.

        ``flat`` promises that the table is folded beyond that.
        """
        lived = "" if table.is_keyless else f"_from <= {sts} AND "
        images = (
            f"SELECT {column_list(table)}, _until AS _cts, NOT _there AS _deleted "
            f"FROM {history_name(table)} WHERE {lived}_until > {sts}"
        )
        if flat:
            return f"({images})"
        recent = self._versions(table, sts, None, folded)
        return f"({images} UNION ALL SELECT * FROM {recent} AS _v)"

    def _is_whole_row(self, table: Table, columns: Sequence[int]) -> bool:
        """Whether ``columns`` are a keyless table's whole row, rather than a key."""
        return (
            table.is_keyless
            and len(columns) == len(table.columns)
            and tuple(columns) not in table.unique
        )

    def staged_duplicate(self, table: Table, sts: int, sequence: int) -> str:
        """A query for one key that statement ``sequence`` staged wrongly.

        Wrongly means twice, or although a row with that primary key was visible
        before the statement and is not among those that it deletes (staged with
        ``sequence - 1``).
        """
        names = key_list(table, table.primary_key)
        staged = self.stage(table)
        before = together(self.scan(table, sts, staged=sequence - 2))
        old = key_equality(table, table.primary_key, "_n.", "_o.")
        gone = key_equality(table, table.primary_key, "_n.", "_g.")
        return self.first_of(
            f"SELECT {names} FROM (SELECT {names} FROM {staged} "
            f"WHERE _sequence = {sequence} "
            f"GROUP BY {names} HAVING count(*) > 1 UNION ALL "
            f"SELECT {key_list(table, table.primary_key, '_n.')} FROM {staged} AS _n "
            f"WHERE _n._sequence = {sequence} "
            f"AND EXISTS (SELECT 1 FROM {before} AS _o WHERE {old}) "
            f"AND NOT EXISTS (SELECT 1 FROM {staged} AS _g "
            f"WHERE _g._sequence = {sequence - 1} AND {gone})) AS _w"
        )

    def unique_duplicate(
        self, table: Table, columns: Sequence[int], sts: int, first: int, sequence: int
    ) -> str:
        """A query for one value of a UNIQUE key that is seen twice.

        Only values that were staged under ``first`` to ``sequence`` are looked at.
        """
        names = key_list(table, columns, "_a.")
        after = together(self.scan(table, sts, staged=sequence))
        same = key_equality(table, columns, "_a.", "_n.")
        return self.first_of(
            f"SELECT {names} FROM {after} AS _a WHERE EXISTS (SELECT 1 FROM "
            f"{self.stage(table)} AS _n WHERE _n._sequence >= {first} "
            f"AND NOT _n._deleted AND {same}) "
            f"GROUP BY {names} HAVING count(*) > 1"
        )

    def computed_duplicate(
        self, table: Table, key: ComputedKey, sts: int, first: int, sequence: int
    ) -> str:
        """As :meth:`unique_duplicate` for a key whose values the engine computes."""
        after = together(self.scan(table, sts, staged=sequence))
        staged = computed_values(key, self.stage(table), "_sequence", "_deleted")
        names = ", ".join(computed_names(key, "_a."))
        return self.first_of(
            f"SELECT {names} FROM {computed_values(key, after)} AS _a WHERE EXISTS "
            f"(SELECT 1 FROM {staged} AS _n WHERE _n._sequence >= {first} "
            f"AND NOT _n._deleted AND {computed_equality(key, '_a.', '_n.')}) "
            f"GROUP BY {names} HAVING count(*) > 1"
        )

    def computed_keys(
        self, table: Table, key: ComputedKey, rows: Sequence[tuple[Row, int]]
    ) -> str:
        """A query for the values of such a key of some rows, and their certification.

        Each of ``rows`` is the values of the key's columns, and an sts. The result has
        ``(number, hash, cts)`` for each (counted from 0) whose value is not NULL: equal
        values have the same hash; ``cts`` is that of a version with the value that is
        later than the sts, or NULL.
        """
        stamps = (Column("_sequence", "BIGINT"), Column("_cts", "BIGINT"))
        known = Table("", "", (*(table.columns[i] for i in key.columns), *stamps))
        every = [(*row, number, sts) for number, (row, sts) in enumerate(rows)]
        source = self.constants(
            known, range(len(known.columns)), {}, list(zip(*every, strict=True))
        )
        names = computed_names(key, "_k.")
        given = " AND ".join(f"{name} IS NOT NULL" for name in names)
        return (
            f"SELECT _k._sequence, {self.hashed(names)}, max(_v._cts) "
            f"FROM {computed_values(key, source, '_sequence', '_cts')} AS _k "
            f"LEFT JOIN {computed_values(key, cache_name(table), '_cts')} AS _v "
            f"ON {computed_equality(key, '_k.', '_v.')} AND _v._cts > _k._cts "
            f"WHERE {given} GROUP BY 1, 2"
        )

    def computed_matches(
        self, table: Table, key: ComputedKey, proposed: str, number: str, stored: str
    ) -> str:
        """A query for the rows that have the values of such a key of proposed rows.

        ``proposed`` are the key's columns, and a ``number``; ``stored`` is what follows FROM.
        The result has a row for each whose value is not NULL, and for each row that has it:
        the number, a number that equal values share, whether there is a row, and its columns.
        """
        names = computed_names(key)
        parts = [
            f"({text}) AS {name}" for text, name in zip(key.texts, names, strict=True)
        ]
        columns = column_list(table)
        given = " AND ".join(f"_k.{name} IS NOT NULL" for name in names)
        order = ", ".join(computed_names(key, "_k."))
        return (
            f"SELECT _k.{number}, dense_rank() OVER (ORDER BY {order}), "
            f"_o.{names[0]} IS NOT NULL, {column_list(table, '_o.')} "
            f"FROM {computed_values(key, proposed, number)} AS _k "
            f"LEFT JOIN (SELECT {', '.join(parts)}, {columns} FROM {stored}) AS _o "
            f"ON {computed_equality(key, '_o.', '_k.')} WHERE {given}"
        )

    def hashed(self, values: Sequence[str]) -> str:
        """A number that is the same for equal values."""
        raise NotImplementedError

    def staged_computed_conflicts(
        self, table: Table, key: ComputedKey, sts: int
    ) -> str:
        """As :meth:`staged_conflicts` for such a key: rows ``(values…, cts)``."""
        names = ", ".join(computed_names(key, "_k."))
        return (
            f"SELECT {names}, max(_v._cts) "
            f"FROM {computed_values(key, self.stage(table))} AS _k "
            f"JOIN {computed_values(key, cache_name(table), '_cts')} AS _v "
            f"ON {computed_equality(key, '_k.', '_v.')} AND _v._cts > {sts} "
            f"GROUP BY {names} LIMIT 1"
        )

    def wanted(self, table: Table, columns: Sequence[int], keys: Sequence[Row]) -> str:
        """A parenthesised query of at least one key, with its number (from 0).

        Its columns are called ``_k0``, ``_k1`` … and are of the types of ``columns``; the
        number is ``_number``.
        """
        every = [Column(f"_k{n}", table.columns[i].type) for n, i in enumerate(columns)]
        pairs = Table("", "", (*every, Column("_number", "BIGINT")))
        values = [*zip(*keys, strict=True), range(len(keys))]
        return self.constants(pairs, range(len(values)), {}, values)

    def orphans(
        self,
        child: Table,
        parent: Table,
        key: ForeignKey,
        sts: int,
        *,
        staged: tuple[int | None, int | None],
        before: int | None = None,
    ) -> str:
        """A query for the rows of ``child`` whose reference is not there.

        ``staged`` are the overlays of both tables, as :meth:`scan` takes them. With
        ``before``, an earlier overlay of the parent, the reference was there in that.
        """
        children = together(self.scan(child, sts, staged=staged[0]))
        parents = together(self.scan(parent, sts, staged=staged[1]))
        given = " AND ".join(
            self.has_value(f"_c.{self.quote(child.columns[i].name)}")
            for i in key.columns
        )
        same = self.referenced(child, parent, key, "_c.", "_p.")
        query = (
            f"SELECT {column_list(child, '_c.')} FROM {children} AS _c WHERE {given} "
            f"AND NOT EXISTS (SELECT 1 FROM {parents} AS _p WHERE {same})"
        )
        if before is None:
            return query
        earlier = together(self.scan(parent, sts, staged=before))
        return f"{query} AND EXISTS (SELECT 1 FROM {earlier} AS _p WHERE {same})"

    def first_of(self, query: str) -> str:
        """A query for a row of another query, if that has any: mostly it has none."""
        return f"{query} LIMIT 1"

    def referenced(
        self, child: Table, parent: Table, key: ForeignKey, left: str, right: str
    ) -> str:
        """Equality of a reference and the key that it references, by that one's type."""
        return " AND ".join(
            f"{left}{self.quote(child.columns[i].name)} {parent.columns[j].equality} "
            f"{right}{self.quote(parent.columns[j].name)}"
            for i, j in zip(key.columns, key.key, strict=True)
        )

    def later_removals(
        self, table: Table, key: Sequence[int], held: Sequence[tuple[Row, Row, int]]
    ) -> str:
        """A query for keys of which a version later than an sts says that they are gone.

        ``held`` has, for each key, the row's primary key (its values again, if there is
        none), the values, and the sts. The result has rows ``(number, cts)``.
        """
        by_row = table.primary_key or tuple(key)
        every = (*by_row, *key)
        wanted = self.wanted(table, every, [row + values for row, values, _ in held])
        same = self.same_as_wanted(table, by_row, "_v.")
        gone = "_v._deleted"
        if table.primary_key and tuple(key) != table.primary_key:
            kept = self.same_as_wanted(table, key, "_v.", first=len(by_row))
            gone = f"({gone} OR CASE WHEN {kept} THEN FALSE ELSE TRUE END)"
        return self._later(table, wanted, same, gone, [sts for _, _, sts in held])

    def later_references(
        self,
        child: Table,
        parent: Table,
        key: ForeignKey,
        held: Sequence[tuple[Row, int]],
    ) -> str:
        """A query for keys that versions later than an sts reference: as above."""
        wanted = self.wanted(parent, key.key, [values for values, _ in held])
        same = self.same_as_wanted(child, key.columns, "_v.", (parent, key.key))
        return self._later(
            child, wanted, same, "NOT _v._deleted", [sts for _, sts in held]
        )

    def same_as_wanted(
        self,
        table: Table,
        columns: Sequence[int],
        prefix: str,
        key: tuple[Table, Sequence[int]] | None = None,
        first: int = 0,
    ) -> str:
        """Equality of columns and a key ``_n`` of :meth:`wanted`, from its ``first`` on.

        ``key`` is the one that they reference: its types say what is equal.
        """
        owner, positions = key or (table, columns)
        return " AND ".join(
            f"{prefix}{self.quote(table.columns[i].name)} {owner.columns[j].equality} "
            f"_n._k{n}"
            for n, (i, j) in enumerate(zip(columns, positions, strict=True), first)
        )

    def _later(
        self, table: Table, wanted: str, same: str, which: str, stamps: Sequence[int]
    ) -> str:
        # Mostly one snapshot; a READ COMMITTED transaction may have several.
        since = [f"_n._number = {n} AND _v._cts > {s}" for n, s in enumerate(stamps)]
        later = f"_v._cts > {stamps[0]}"
        if len(set(stamps)) > 1:
            later = f"({' OR '.join(since)})"
        return (
            f"SELECT _n._number, _v._cts FROM {wanted} AS _n "
            f"JOIN {cache_name(table)} AS _v ON {same} "
            f"WHERE {later} AND {which} LIMIT 1"
        )

    @abstractmethod
    def conflicts(self, table: Table, columns: Sequence[int], rows: int) -> str:
        """Certification as a query (paper 2.3.4), for ``rows`` keys at once.

        Parameters per key, in order: the columns' values, then the sts. The
        result has a row ``(ordinal, cts)`` for every key (counted from 0) that a
        version with a later cts has.
        """

    def _conflicts(
        self, table: Table, columns: Sequence[int], keys: str, versions: str
    ) -> str:
        """The rows of :meth:`conflicts`, of keys and versions that two relations have."""
        return (
            f"SELECT _k._ordinal, max(_v._cts) FROM {keys} "
            f"JOIN {versions} AS _v "
            f"ON {self._same(table, columns, '_k.', '_v.')} AND _v._cts > _k._sts "
            f"{'AND _v._deleted ' if self._is_whole_row(table, columns) else ''}"
            "GROUP BY _k._ordinal"
        )

    def staged_conflicts(self, table: Table, columns: Sequence[int], sts: int) -> str:
        """As :meth:`conflicts` for all staged keys: rows ``(columns…, cts)``."""
        whole_row = self._is_whole_row(table, columns)
        return (
            f"SELECT {key_list(table, columns, '_k.')}, max(_v._cts) "
            f"FROM {self.stage(table)} AS _k JOIN {cache_name(table)} AS _v "
            f"ON {self._same(table, columns, '_k.', '_v.')} AND _v._cts > {sts} "
            f"{'WHERE _k._deleted AND _v._deleted ' if whole_row else ''}"
            f"GROUP BY {key_list(table, columns, '_k.')} LIMIT 1"
        )

    def _same(self, table: Table, columns: Sequence[int], left: str, right: str) -> str:
        """Equality of keys; of whole rows, NULLs included, where there is none."""
        if self._is_whole_row(table, columns):
            return self.same_rows(table, columns, left, right)
        return key_equality(table, columns, left, right)
