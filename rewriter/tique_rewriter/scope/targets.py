"""The managed table that a statement names, found by its words, and its columns in lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.scope.references import column_position
from tique_rewriter.text.names import check_kind, expect_exact, unmanaged
from tique_rewriter.tree.scalars import split

if TYPE_CHECKING:
    from tique_rewriter.errors import RewriteError
    from tique_rewriter.schema import Table
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.text.cursor import Cursor
    from tique_rewriter.text.source import Source, Word


def named_table(
    cursor: Cursor, catalog: Catalog, *, is_materialized: bool = False
) -> Table | None:
    """Read a name, and return the table that has it.

    The materialized view, if it has to be one.

    Raises
    ------
    UnsupportedSQL
        It is in tique's own schema, or its name is written in another case.
    UnknownTable
        It is of the other kind.
    """
    source, first = cursor.source, cursor.number
    schema, name = cursor.writable(catalog)
    start, is_qualified = cursor.words[first].start, cursor.number > first + 1
    table = catalog.find(schema if is_qualified else None, name)
    if table is not None:
        check_kind(source, table, start, is_materialized=is_materialized)
        expect_exact(source, name, table.name, cursor.before.start)
        if is_qualified:
            expect_exact(source, schema, table.schema, start)
    return table


def unknown_name(cursor: Cursor, first: int) -> RewriteError:
    """Return the complaint about the words from number ``first`` on that name no table."""
    source, words = cursor.source, cursor.words[first : cursor.number]
    parts = [source.identifier(word) for word in words[::2]]
    return unmanaged(source, f'unknown table "{".".join(parts)}"', words[0].start)


def listed_columns(
    source: Source, table: Table, words: list[Word], start: int
) -> tuple[int, ...]:
    """Return the positions of the columns that a list names, which begins at ``start``.

    Raises
    ------
    UnsupportedSQL
        It is of more than names.
    UnknownColumn
        The table has none of a name.
    DuplicateColumn
        A column is given twice.
    """
    columns: list[int] = []
    for piece in split(words):
        if len(piece) != 1:
            raise source.unsupported("this list of columns", start)
        name = source.identifier(piece[0])
        columns.append(column_position(source, table, name, piece[0].start, columns))
    return tuple(columns)
