"""Temporary tables and views: of one connection, made by CREATE TEMPORARY TABLE and VIEW.

A temporary table is read and written like a managed one, so its name is a hole in a
statement's text and a managed table's name beside it is one too. Its definition is
planned as that of a table without the words that make it temporary. No other DDL
concerns it: other definitions are planned by a catalog that refuses its name
(:attr:`Catalog.refusing_temporaries`). A temporary view is a query in the place of its name,
as any view is; its own query reads what lasts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from tique_rewriter.kinds.define.create_as import CreateTableAs
from tique_rewriter.kinds.define.definition import read_head
from tique_rewriter.kinds.define.views import checked_header, plan_body
from tique_rewriter.plans.ddl_plans import (
    CreateTable,
    CreateTemporaryView,
    DropTemporaryViews,
)
from tique_rewriter.plans.plan import Plan, Select
from tique_rewriter.text.cursor import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.text.source import Source, Word


class OnCommit(Enum):
    """What becomes of a temporary table at the end of a transaction."""

    PRESERVE = "PRESERVE ROWS"
    DELETE = "DELETE ROWS"
    DROP = "DROP"


@dataclass(frozen=True)
class CreateTemporary(Plan):
    """CREATE TEMPORARY TABLE.

    ``layout`` is the text after the name, of a table with a list of columns. Else
    ``select`` is the query that it comes from, ``columns`` a list of names in brackets or
    nothing, and the table stays empty without ``has_rows``.
    """

    name: str
    layout: str
    on_commit: OnCommit
    if_not_exists: bool
    replaces: bool
    select: Select | None = None
    columns: str = ""
    has_rows: bool = False


def _as_lasting(source: Source) -> tuple[Source, Cursor]:
    """Return the statement as that of what lasts, and the cursor at the name in it.

    The words that make its table or view temporary are blanks, and so is the schema of
    temporary tables.
    """
    cursor = Cursor(source, number=1)
    cursor.accept("OR REPLACE")
    first = cursor.number
    cursor.accept("LOCAL")
    cursor.accept("TEMP", "TEMPORARY")
    kind = source.words[first : cursor.number]
    cursor.accept("TABLE", "VIEW")
    cursor.accept("IF NOT EXISTS")
    schema = cursor.rest[:2] if cursor.keywords[1:2] == ["."] else []
    if schema:
        _check_schema(source, schema[0])
    lasting = source.blanked(kind, schema)
    return lasting, Cursor(lasting, number=cursor.number - len(kind))


def _check_schema(source: Source, word: Word) -> None:
    if source.identifier(word).lower() != source.rules.temporary_schema:
        raise source.unsupported(
            "a temporary table or view in a schema", word.start, "leave the schema out"
        )
    if source.text[word.start] == '"':
        raise source.unsupported(
            "a quoted schema of a temporary table", word.start, "leave it out"
        )


def plan_create_temporary(
    source: Source, catalog: Catalog, plan: Callable[[Source], Plan]
) -> CreateTemporary:
    """Return the plan of CREATE TEMPORARY TABLE.

    Parameters
    ----------
    source, catalog
        The statement, and the tables that definitions may name.
    plan
        Returns the plan of CREATE TABLE.

    Raises
    ------
    UnsupportedSQL
        For a name with a schema other than that of temporary tables, a FOREIGN KEY, or an
        end of transactions that the engine does not have.
    """
    start = source.start
    source, on_commit = _without_commit(_as_lasting(source)[1])
    made = plan(source)
    head = read_head(source, catalog)
    _check_free(source, catalog, "table", head.name, source.words[head.end - 1])
    if isinstance(made, CreateTableAs):
        return CreateTemporary(
            made.parameters,
            made.references,
            head.name,
            "",
            on_commit,
            head.if_not_exists,
            head.replaces,
            made.select,
            made.columns,
            made.has_rows,
        )
    if not isinstance(made, CreateTable):
        raise source.unsupported("this form of CREATE TEMPORARY TABLE", start)
    if made.table.foreign_keys:
        raise source.unsupported("FOREIGN KEY of a temporary table", start)
    layout = source.words_text(source.words[head.end :])
    return CreateTemporary(
        0, (), head.name, layout, on_commit, head.if_not_exists, head.replaces
    )


def _check_free(
    source: Source, catalog: Catalog, kind: str, name: str, word: Word
) -> None:
    if catalog.named(None, name) or catalog.view(None, name):
        raise source.unsupported(
            f'a temporary {kind} with the name of "{name}", which is there already,',
            word.start,
            "give it another name",
        )


def plan_temporary_view(source: Source, catalog: Catalog) -> CreateTemporaryView:
    """Return the plan of CREATE TEMPORARY VIEW.

    Its query names what lasts: the engine knows no other name.

    Raises
    ------
    UnsupportedSQL
        For a name with a schema other than that of temporary tables.
    RewriteError
        As for its query as a statement of its own.
    """
    source, cursor = _as_lasting(source)
    word = source.words[-1] if cursor.is_done else cursor.word
    name = source.identifier(word)
    lasting = catalog.without_temporaries
    _check_free(source, lasting, "view", name, word)
    home = lasting.default_schema if source.rules.views_look_at_home else None
    header = checked_header(source, lasting)
    plan_body(header, replace(catalog.refusing_temporaries, home=home))
    layout = source.words_text(source.words[header.after :])
    return CreateTemporaryView(
        0, (), name, layout, header.if_not_exists, header.replaces
    )


def plan_drop_temporary_views(
    source: Source, catalog: Catalog
) -> DropTemporaryViews | None:
    """Return the plan of DROP VIEW of temporary views; None if it is of others.

    Raises
    ------
    UnsupportedSQL
        For views of both kinds.
    """
    cursor = Cursor(source, number=2)
    cursor.accept("IF EXISTS")
    views = [catalog.view(schema or None, name) for schema, name in cursor.names()]
    names = [view.table.name for view in views if view and view.table.is_temporary]
    if not names:
        return None
    if len(names) < len(views):
        raise source.unsupported(
            "DROP VIEW of temporary and of other views",
            source.start,
            "write a statement for each",
        )
    cursor.accept_last("CASCADE", "RESTRICT")
    if cursor.left:
        raise source.syntax("a name too many", cursor.start)
    return DropTemporaryViews(0, (), tuple(names))


def _without_commit(cursor: Cursor) -> tuple[Source, OnCommit]:
    """Return the statement without ON COMMIT …, and what that says."""
    source, ends = cursor.source, cursor.source.rules.ends_temporaries
    cursor.take_until({"ON"})
    while cursor.left and not cursor.follows("ON COMMIT"):
        cursor.take()
        cursor.take_until({"ON"})
    if not cursor.left:
        return source, OnCommit(ends[0])
    first, start = cursor.number, cursor.start
    cursor.accept("ON COMMIT")
    end = cursor.accept(*[each.value for each in OnCommit])
    if end not in ends:
        raise source.unsupported(
            "this form of ON COMMIT", start, f"there is {', '.join(ends)}"
        )
    return source.blanked(source.words[first : cursor.number]), OnCommit(end)
