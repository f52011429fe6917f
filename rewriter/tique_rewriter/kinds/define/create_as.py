"""CREATE TABLE … AS: a definition that comes from a query, with the query's rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tique_rewriter.kinds.define.definition import Head, read_head
from tique_rewriter.kinds.query.table_queries import is_table_query, written_as_select
from tique_rewriter.plans.change_plans import ChangingWith
from tique_rewriter.plans.plan import Plan, Select
from tique_rewriter.scope.past import expect_present
from tique_rewriter.text.cursor import Cursor
from tique_rewriter.text.names import check_reserved
from tique_rewriter.text.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.text.placeholders import Lexed
    from tique_rewriter.text.source import Word

_BY_INSERT = "in CREATE TABLE … AS", "create the table, then INSERT … SELECT"
_AFTER_INTO = frozenset({"FROM", "WHERE", "GROUP", "UNION", "INTERSECT", "EXCEPT"})


@dataclass(frozen=True)
class CreateTableAs(Plan):
    """CREATE TABLE … AS.

    ``columns`` is the text of a list of names in brackets, or empty. Without
    ``has_rows`` the table stays empty.
    """

    may_read_given = True

    head: Head
    columns: str
    select: Select
    has_rows: bool


def is_from_query(source: Source) -> bool:
    """Whether CREATE TABLE has a query, before which a list of names may stand."""
    return any(word.keyword == "AS" and not word.depth for word in source.words)


def plan_create_as(
    source: Source,
    catalog: Catalog,
    part: Callable[[Source, int, int], Lexed],
    plan: Callable[[Source], Plan],
) -> CreateTableAs:
    """Return the plan of CREATE TABLE … AS.

    Parameters
    ----------
    source, catalog
        The statement, and the managed tables.
    part
        Returns a part of the statement's text as a statement of its own.
    plan
        Returns the plan of such a statement.
    """
    head = read_head(source, catalog)
    cursor = Cursor(source, number=head.end)
    cursor.listed_names()
    columns = cursor.text_from(head.end)
    if not cursor.accept("AS"):
        raise cursor.unexpected("in CREATE TABLE … AS")
    body, has_rows = before_data_clause(cursor.rest)
    if not body:
        raise source.syntax("a query is expected", source.words[-1].start)
    if body[0].keyword not in {"WITH", *source.rules.queries}:
        raise source.unsupported(
            f"CREATE TABLE … AS {source.raw(body[0])}", body[0].start
        )
    inner = Source(
        part(source, body[0].start, body[-1].end), source.rules, source.outer
    )
    if is_table_query(inner):
        inner = written_as_select(inner)
    made = plan(inner)
    if isinstance(made, ChangingWith) or not isinstance(made, Select):
        raise source.unsupported("CREATE TABLE … AS of a change", body[0].start)
    expect_present(source, made, *_BY_INSERT)
    return CreateTableAs(
        made.parameters, made.references, head, columns, made, has_rows
    )


def before_data_clause(words: list[Word]) -> tuple[list[Word], bool]:
    """The words before WITH [NO] DATA, and whether rows are wanted."""
    keywords = [word.keyword for word in words[-3:]]
    if keywords == ["WITH", "NO", "DATA"]:
        return words[:-3], False
    if keywords[-2:] == ["WITH", "DATA"]:
        return words[:-2], True
    return words, True


def into_of(source: Source) -> int | None:
    """The number of the word INTO in a query that makes a table of its rows, if it is one."""
    words = source.words
    if "select into" not in source.rules.extra_syntax or words[0].keyword != "SELECT":
        return None
    for number, word in enumerate(words[1:], start=1):
        if word.depth:
            continue
        if word.keyword == "INTO":
            return number
        if word.keyword in _AFTER_INTO:
            return None
    return None


def plan_select_into(
    source: Source, catalog: Catalog, number: int, plan: Callable[[Source], Plan]
) -> CreateTableAs:
    """Return the plan of SELECT … INTO a new table: that of CREATE TABLE … AS.

    Raises
    ------
    UnsupportedSQL
        For a temporary table.
    """
    cursor = Cursor(source, number=number)
    into = cursor.take()
    if kind := cursor.follows("TEMP", "TEMPORARY", "LOCAL"):
        raise source.unsupported(f"SELECT INTO {kind}", into.start)
    cursor.accept("UNLOGGED")
    cursor.accept("TABLE")
    schema, name = cursor.qualified(catalog.default_schema)
    check_reserved(source, schema, into.start)
    made = plan(source.blanked(source.words[number : cursor.number]))
    if not isinstance(made, Select):
        raise source.unsupported("SELECT INTO", into.start)
    expect_present(source, made, *_BY_INSERT)
    head = Head(schema, name, if_not_exists=False, replaces=False, end=cursor.number)
    return CreateTableAs(
        made.parameters, made.references, head, "", made, has_rows=True
    )
