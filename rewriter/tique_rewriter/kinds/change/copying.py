"""Plans of COPY.

What follows FROM or TO is the engine's own list of options, and reaches it as it
stands: it may name files, columns and constants, and nothing that reads a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.kinds.query.query import plan_query
from tique_rewriter.plans.change_plans import CopyIn, CopyOut
from tique_rewriter.plans.plan import Reference
from tique_rewriter.plans.text import Hole
from tique_rewriter.scope.targets import listed_columns
from tique_rewriter.text.cursor import Cursor
from tique_rewriter.text.names import check_kind, check_writable, quote, unmanaged
from tique_rewriter.text.source import Source

if TYPE_CHECKING:
    from tique_rewriter.schema import Table
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.text.source import Word

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
    cursor = Cursor(source, number=1)
    table = _target(cursor, catalog)
    columns = tuple(range(len(table.columns)))
    listed = cursor.brackets()
    if listed is not None:
        columns = listed_columns(source, table, listed, words[0].start)
    goes_in = cursor.follows("FROM")
    tail, is_stream = _tail(cursor, ("FROM", "TO"))
    if goes_in:
        return CopyIn(0, (), table, columns, tail, is_stream)
    names = ", ".join(quote(table.columns[i].name) for i in columns)
    used: frozenset[int] | None = frozenset(columns)
    if table.generated and listed is None and source.rules.copies_generated:
        names, used = ", ".join(map(quote, table.names)), None
    reference = Reference(table, f" AS {quote(table.name)}", {}, used)
    text = ("COPY (SELECT ", names, " FROM ", Hole(0), f") {tail}")
    return CopyOut(0, (reference,), text, is_stream)


def _plan_query(source: Source, catalog: Catalog) -> CopyOut:
    words = source.words
    cursor = Cursor(source, number=1)
    cursor.brackets()
    end = cursor.before.start
    tail, is_stream = _tail(cursor, ("TO",))
    inner = Source(source.lexed.part(words[1].end, end), source.rules, source.outer)
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


def _target(cursor: Cursor, catalog: Catalog) -> Table:
    source, start = cursor.source, cursor.start
    missing = "COPY ends too early"
    parts = cursor.parts(missing)
    if not cursor.left:
        raise source.syntax(missing, source.words[-1].start)
    if len(parts) > 2:
        raise source.unsupported(
            "a name with a database in it", start, "write schema.table"
        )
    schema = parts[0] if len(parts) == 2 else None
    check_writable(source, catalog, schema or "", start)
    table = catalog.find(schema, parts[-1])
    if table is None:
        raise unmanaged(source, f'unknown table "{".".join(parts)}"', start)
    check_kind(source, table, start)
    return table


def _tail(cursor: Cursor, directions: tuple[str, ...]) -> tuple[str, bool]:
    """Return the text from FROM or TO on, and whether it names the client's stream."""
    source, start = cursor.source, cursor.start
    direction = cursor.accept(*directions)
    if not direction:
        raise source.syntax(f"COPY without {' or '.join(directions)}", start)
    if not cursor.left:
        raise source.syntax("COPY ends too early", start)
    place = cursor.take()
    is_stream = place.keyword == _STREAMS[direction]
    is_file = not place.keyword and source.text[place.start] == "'"
    if is_stream and "stream" not in source.rules.copies:
        raise source.unsupported(
            f"COPY {direction} {place.keyword}",
            place.start,
            f"{source.rules.engine} has none; name a file, or use cursor.append()",
        )
    if not is_stream and "file" not in source.rules.copies:
        raise source.unsupported(
            "COPY with a file or program of the server",
            place.start,
            "its files are not the application's; use cursor.copy() with "
            f"{_STREAMS[direction]}",
        )
    if not is_stream and not is_file:
        raise source.unsupported(
            "this form of COPY", place.start, "name a file as a string literal"
        )
    _check_options(source, cursor.rest)
    return source.text[start : source.end], is_stream


def _check_options(source: Source, words: list[Word]) -> None:
    """Refuse options that could read a table."""
    before = ""
    for word in words:
        if word.keyword in _REFUSED_OPTIONS or word.depth > _DEEPEST:
            shown = source.raw(word)
            raise source.unsupported(f"{shown} in the options of COPY", word.start)
        if word.keyword == "(" and word.depth > 1 and before not in _LISTS:
            raise source.unsupported("an expression in the options of COPY", word.start)
        before = word.keyword
