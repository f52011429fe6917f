"""The managed table that a statement names, found by its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.attaching import check_not_attached
from tique_rewriter.definition import qualified_name
from tique_rewriter.errors import UnknownTable
from tique_rewriter.names import check_kind, check_reserved, refusal

if TYPE_CHECKING:
    from tique_rewriter.errors import RewriteError
    from tique_rewriter.schema import Catalog, Table
    from tique_rewriter.source import Source, Word


def named_table(
    source: Source, number: int, catalog: Catalog, *, is_materialized: bool = False
) -> tuple[Table | None, int]:
    """Return the table that word ``number`` begins to name, and the number after that.

    The materialized view, if it has to be one.

    Raises
    ------
    UnsupportedSQL
        It is in tique's own schema, or its name is written in another case.
    UnknownTable
        It is of the other kind.
    """
    words = source.words
    first = number
    schema, name, number = qualified_name(source, number, catalog.default_schema)
    check_reserved(source, schema, words[first].start)
    check_not_attached(source, catalog, schema, words[first].start)
    is_qualified = number > first + 1
    table = catalog.find(schema if is_qualified else None, name)
    if table is not None:
        check_kind(source, table, words[first].start, is_materialized=is_materialized)
        expect_exact(source, name, table.name, words[number - 1])
        if is_qualified:
            expect_exact(source, schema, table.schema, words[first])
    return table, number


def unknown_name(source: Source, first: int, number: int) -> RewriteError:
    """Return the complaint about words, up to word ``number``, that name no table."""
    parts = [source.identifier(word) for word in source.words[first:number:2]]
    return source.error(
        UnknownTable,
        f'unknown table "{".".join(parts)}"',
        source.words[first].start,
        "existing tables are taken in with `tique adopt`",
    )


def expect_exact(source: Source, given: str, name: str, word: Word) -> None:
    """Refuse a name that differs in case alone from the one that it would mean."""
    if source.rules.exact_quoted_names and given != name:
        raise refusal(source, given, name, word.start)
