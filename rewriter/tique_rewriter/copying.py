"""Plans of COPY.

What follows FROM or TO is the engine's own list of options, and reaches it as it
stands: it may name files, columns and constants, and nothing that reads a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.change_plans import CopyIn, CopyOut
from tique_rewriter.errors import DuplicateColumn, UnknownTable
from tique_rewriter.names import check_kind, check_not_attached, check_reserved, quote
from tique_rewriter.plan import Reference
from tique_rewriter.query import plan_query
from tique_rewriter.references import unknown_column
from tique_rewriter.scalars import split
from tique_rewriter.source import Source
from tique_rewriter.text import Hole

if TYPE_CHECKING:
    from tique_rewriter.schema import Catalog, Table
    from tique_rewriter.source import Word

_STREAMS = {"FROM": "STDIN", "TO": "STDOUT"}
_REFUSED_OPTIONS = frozenset(
    ["SELECT", "FROM", "TO", "TABLE", "VALUES", "WHERE", "FREEZE", "INTO"]
)
_LISTS = frozenset(
    ["FORCE_QUOTE", "FORCE_NULL", "FORCE_NOT_NULL", "PARTITION_BY", "ORDER_BY"]
)
"""Options before a list in brackets; another word there may be a function's name."""

_DEEPEST = 2


def plan_copy(source: Source, catalog: Catalog) -> CopyIn | CopyOut:
    """Return the plan of a COPY statement.

    Raises
    ------
    UnsupportedSQL
        For files of the server, and whatever the engine's COPY cannot do.
    """
    words = source.words
    if not source.rules.copies:
        raise source.unsupported(
            "COPY", words[0].start, "use cursor.append() or executemany()"
        )
    if source.lexed.arguments:
        raise source.unsupported(
            "a parameter in COPY",
            source.lexed.starts[0],
            "write the value as a literal",
        )
    if source.keywords(1)[:1] == ["("]:
        return _plan_query(source, catalog)
    number, table = _target(source, catalog)
    columns = tuple(range(len(table.columns)))
    is_listed = source.keywords(number)[:1] == ["("]
    if is_listed:
        end = number + source.closing(words[number:])
        columns = _columns(source, table, words[number + 1 : end])
        number = end + 1
    tail, is_stream = _tail(source, number, ("FROM", "TO"))
    if words[number].keyword == "FROM":
        return CopyIn(0, (), table, columns, tail, is_stream)
    names = ", ".join(quote(table.columns[i].name) for i in columns)
    used: frozenset[int] | None = frozenset(columns)
    if table.generated and not is_listed and source.rules.copies_generated:
        names, used = ", ".join(map(quote, table.names)), None
    reference = Reference(table, f" AS {quote(table.name)}", {}, used)
    text = ("COPY (SELECT ", names, " FROM ", Hole(0), f") {tail}")
    return CopyOut(0, (reference,), text, is_stream)


def _plan_query(source: Source, catalog: Catalog) -> CopyOut:
    words = source.words
    end = 1 + source.closing(words[1:])
    tail, is_stream = _tail(source, end + 1, ("TO",))
    inner = Source(
        source.lexed.part(words[1].end, words[end].start), source.rules, source.outer
    )
    first = inner.words[0]
    if first.keyword not in {"WITH", *source.rules.queries}:
        raise source.unsupported("COPY of anything but a query", first.start)
    query = plan_query(inner, catalog)
    return CopyOut(
        query.parameters,
        query.references,
        ("COPY (", *query.text, f") {tail}"),
        is_stream,
    )


def _target(source: Source, catalog: Catalog) -> tuple[int, Table]:
    """Return the number of the word after the table's name, and the table."""
    words = source.words
    start = words[min(1, len(words) - 1)].start
    parts = []
    number = 1
    while number < len(words):
        parts.append(source.identifier(words[number]))
        number += 1
        if source.keywords(number)[:1] != ["."]:
            break
        number += 1
    if not parts or number >= len(words):
        raise source.syntax("COPY ends too early", words[-1].start)
    if len(parts) > 2:
        raise source.unsupported(
            "a name with a database in it", start, "write schema.table"
        )
    schema = parts[0] if len(parts) == 2 else None
    check_reserved(source, schema or "", start)
    check_not_attached(source, catalog, schema or "", start)
    table = catalog.find(schema, parts[-1])
    if table is None:
        raise source.error(
            UnknownTable,
            f'unknown table "{".".join(parts)}"',
            start,
            "existing tables are taken in with `tique adopt`",
        )
    check_kind(source, table, start)
    return number, table


def _columns(source: Source, table: Table, words: list[Word]) -> tuple[int, ...]:
    columns: list[int] = []
    for piece in split(words):
        if len(piece) != 1:
            raise source.unsupported("this list of columns", source.words[0].start)
        name = source.identifier(piece[0])
        position = table.positions.get(name.lower())
        if position is None:
            raise unknown_column(source, table, name, piece[0].start)
        if position in columns:
            raise source.error(
                DuplicateColumn,
                f'the column "{name}" is given twice',
                piece[0].start,
            )
        columns.append(position)
    return tuple(columns)


def _tail(source: Source, number: int, directions: tuple[str, ...]) -> tuple[str, bool]:
    """Return the text from FROM or TO on, and whether it names the client's stream."""
    words = source.words
    if number >= len(words) or words[number].keyword not in directions:
        at = words[min(number, len(words) - 1)].start
        raise source.syntax(f"COPY without {' or '.join(directions)}", at)
    if number + 1 >= len(words):
        raise source.syntax("COPY ends too early", words[number].start)
    place = words[number + 1]
    is_stream = place.keyword == _STREAMS[words[number].keyword]
    is_file = not place.keyword and source.text[place.start] == "'"
    if is_stream and "stream" not in source.rules.copies:
        raise source.unsupported(
            f"COPY {words[number].keyword} {place.keyword}",
            place.start,
            f"{source.rules.engine} has none; name a file, or use cursor.append()",
        )
    if not is_stream and "file" not in source.rules.copies:
        raise source.unsupported(
            "COPY with a file or program of the server",
            place.start,
            "its files are not the application's; use cursor.copy() with "
            f"{_STREAMS[words[number].keyword]}",
        )
    if not is_stream and not is_file:
        raise source.unsupported(
            "this form of COPY", place.start, "name a file as a string literal"
        )
    _check_options(source, number + 2)
    return source.text[words[number].start : source.end], is_stream


def _check_options(source: Source, number: int) -> None:
    """Refuse options that could read a table."""
    before = ""
    for word in source.words[number:]:
        if word.keyword in _REFUSED_OPTIONS or word.depth > _DEEPEST:
            shown = source.raw(word)
            raise source.unsupported(f"{shown} in the options of COPY", word.start)
        if word.keyword == "(" and word.depth > 1 and before not in _LISTS:
            raise source.unsupported("an expression in the options of COPY", word.start)
        before = word.keyword
