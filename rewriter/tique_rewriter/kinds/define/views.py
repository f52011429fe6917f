"""Views: queries in the place of a name.

A view is the engine's own, so that its listings and tools without tique have it. It
reads the storage tables; so a statement of the application never reads the view itself,
but its query, in which every managed table is a hole like any other. That query is
planned apart from the statement, in a scope of names of its own, and under the same
rules: a view that has been there before, or was made without tique, may hold anything.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.dialects import rules_of
from tique_rewriter.errors import UnknownTable, UnsupportedSQL
from tique_rewriter.kinds.define.create_as import before_data_clause
from tique_rewriter.kinds.query.query import plan_query
from tique_rewriter.plans.ddl_plans import DefineViews
from tique_rewriter.plans.plan import Select, ViewQuery
from tique_rewriter.safety.hidden_calls import check_hidden
from tique_rewriter.safety.token_checks import OF_SEQUENCES
from tique_rewriter.schema import Table
from tique_rewriter.scope.catalog import Catalog
from tique_rewriter.scope.descriptions import DESCRIPTIONS
from tique_rewriter.scope.past import expect_present
from tique_rewriter.scope.qualified import without_schemas
from tique_rewriter.scope.relations import common_table
from tique_rewriter.text.cursor import Cursor, refuse_placeholders
from tique_rewriter.text.names import check_reserved, check_writable, expect_exact
from tique_rewriter.text.source import Source

if TYPE_CHECKING:
    from tique_rewriter.dialects import Rules
    from tique_rewriter.schema import Definitions, View
    from tique_rewriter.scope.catalog import SearchPath, Temporaries

_MOST_TABLES = 1000
"""How many places that read tables a view's query may have, with those of its views."""


def catalog_of(
    definitions: Definitions,
    dialect: str,
    search_path: SearchPath | None = None,
    temporaries: Temporaries | None = None,
) -> Catalog:
    """Return the tables and views as the statements of a session see them."""
    plan_view = partial(_plan_view, rules_of(dialect))
    return Catalog(definitions, plan_view, search_path, temporaries)


def _plan_view(rules: Rules, view: View, catalog: Catalog) -> ViewQuery:
    """Return the query that is read in a view's place, by the statements of a catalog."""
    table = view.table
    if table.fault is not None:
        raise UnknownTable(table.fault)
    if table.id in catalog.above:
        raise UnknownTable("it reads itself")
    inside = inside_view(catalog, rules, table.schema, table.id)
    header = _definition(view, inside, rules)
    select = plan_body(header, inside)
    names = header.columns
    if view.has_its_columns:
        names = tuple([column.name for column in table.columns])
    found = ViewQuery(select, names, _bare_names(header, select, inside))
    if _weight(found) > _MOST_TABLES:
        raise UnsupportedSQL(f"it reads tables in more than {_MOST_TABLES} places")
    if rules.views_look_at_home:
        _expect_functions_of_the_path(header, table.schema, catalog)
    _expect_one_meaning(header, table, select, catalog)
    return found


def inside_view(catalog: Catalog, rules: Rules, schema: str, *above: int) -> Catalog:
    """Return the catalog as the query of a view in that schema sees it."""
    return catalog.inside(schema if rules.views_look_at_home else None, *above)


def _expect_functions_of_the_path(header: Header, home: str, catalog: Catalog) -> None:
    """Refuse a function that the view has from its own schema, and the text has not."""
    if home.lower() == catalog.default_schema.lower():
        return
    for node in _body(header).parse().find_all(exp.Anonymous):
        name = node.name.lower()
        if not isinstance(node.parent, exp.Dot) and catalog.may_call(
            home.lower(), name
        ):
            raise UnsupportedSQL(
                f"it calls {name}() of its own schema: write the schema in the view"
            )


def _expect_one_meaning(
    header: Header, table: Table, found: Select, catalog: Catalog
) -> None:
    """Refuse a view whose query means something else along another path.

    Engines differ in where they look when the view's own schema has not the name.

    Raises
    ------
    UnsupportedSQL
        It does.
    """
    if catalog.search_path is None or not header.source.rules.views_look_at_home:
        return
    others = [catalog.default_path.inside(table.schema, table.id)]
    if table.is_temporary:
        others.append(catalog.inside(None, table.id))
    is_first = table.schema.lower() == catalog.default_schema.lower()
    is_first = is_first and not table.is_temporary
    with suppress(UnknownTable):
        if all(found == plan_body(header, other) for other in others) and (
            is_first or not _names_more_than_tables(_body(header))
        ):
            return
    raise UnsupportedSQL(
        "a name in it that has no schema means something else along this search "
        "path: write the schema in the view, or take the path back"
    )


@dataclass(frozen=True)
class Header:
    """A definition: the view's names, its listed columns, and the place of its query.

    ``after`` is the number of the word after the name.
    """

    source: Source
    after: int
    name: tuple[str, str]
    columns: tuple[str, ...]
    replaces: bool
    if_not_exists: bool
    start: int
    end: int
    has_rows: bool = True
    """Of a materialized view: without WITH NO DATA."""


def plan_create_view(source: Source, catalog: Catalog) -> DefineViews:
    """Return the plan of CREATE [OR REPLACE] VIEW.

    Raises
    ------
    RewriteError
        As for its query as a statement of its own.
    """
    header = checked_header(source, catalog)
    inside = inside_view(catalog, source.rules, header.name[0])
    select = plan_body(header, inside)
    _expect_one_meaning(header, Table(*header.name, ()), select, catalog)
    text = source.words_text(source.words)
    body = _body(header).text
    if len(body) == header.end:
        # As it is planned: MonetDB knows no column by schema and table.
        first = source.start
        text = source.text[first : header.start] + body[header.start :]
        text += source.text[header.end : source.end]
    return DefineViews(0, (), text, (header.name,), creates=True)


def checked_header(source: Source, catalog: Catalog) -> Header:
    """Read CREATE VIEW; its names are checked, its query is not."""
    header = _read_header(source, catalog)
    check_writable(source, catalog, header.name[0], source.start)
    refuse_placeholders(source, "CREATE VIEW")
    _check_name(source, header.name, catalog)
    return header


def _check_name(source: Source, name: tuple[str, str], catalog: Definitions) -> None:
    """Refuse a name that differs from another's in case alone."""
    view = catalog.view(*name)
    found = catalog.named(*name) if view is None else view.table
    if found is not None:
        expect_exact(source, name[0], found.schema, source.find("VIEW"))
        expect_exact(source, name[1], found.name, source.find("VIEW"))


def plan_drop_view(source: Source, catalog: Definitions) -> DefineViews:
    """Return the plan of DROP VIEW [IF EXISTS] … [RESTRICT | CASCADE]."""
    cursor = Cursor(source, number=2)
    cursor.accept("IF EXISTS")
    names = cursor.list_of(lambda: _view_name(cursor, catalog))
    cursor.accept_last("CASCADE", "RESTRICT")
    if cursor.left:
        shown = source.raw(cursor.word)
        raise source.syntax(f'"{shown}" in DROP VIEW', cursor.start)
    return DefineViews(0, (), cursor.statement, tuple(names), creates=False)


def _view_name(cursor: Cursor, catalog: Definitions) -> tuple[str, str]:
    """Read a view's name; return it as the catalog has it."""
    schema, name = cursor.writable(catalog)
    view = catalog.view(schema, name) or catalog.view(None, name)
    return (schema, name) if view is None else (view.table.schema, view.table.name)


def plan_alter_view(source: Source, catalog: Definitions) -> DefineViews:
    """Return the plan of ALTER VIEW [IF EXISTS] … RENAME, SET SCHEMA or SET (check_option).

    The engine changes the view; what it makes of it is read and checked like a new one.

    Raises
    ------
    UnsupportedSQL
        For any other change.
    """
    forms, cursor = source.rules.alterations, Cursor(source, number=2)
    cursor.accept("IF EXISTS")
    place = _view_name(cursor, catalog)
    match cursor.keywords:
        case ["RENAME", "TO", _] if "view name" in forms:
            new = (place[0], source.identifier(cursor.rest[2]))
        case ["SET", "SCHEMA", _] if "view schema" in forms:
            new = (source.identifier(cursor.rest[2]), place[1])
        case ["RENAME", "COLUMN", _, "TO", _] | [
            "RENAME",
            _,
            "TO",
            _,
        ] if "view column" in forms:
            new = place
        case ["SET", "(", "CHECK_OPTION", "=", "LOCAL" | "CASCADED", ")"] | [
            "RESET",
            "(",
            "CHECK_OPTION",
            ")",
        ] if source.rules.changes_views:
            new = place
        case _:
            raise source.unsupported(
                "this form of ALTER VIEW", source.start, "use CREATE OR REPLACE VIEW"
            )
    check_reserved(source, new[0], source.words[-1].start)
    if new != place:
        _check_name(source, new, catalog)
    return DefineViews(0, (), cursor.statement, tuple({place: 0, new: 0}), creates=True)


def _read_header(source: Source, catalog: Definitions) -> Header:
    words, cursor = source.words, Cursor(source, number=1)
    replaces = bool(cursor.accept("OR REPLACE"))
    is_materialized = cursor.accept("MATERIALIZED")
    if not cursor.accept("VIEW"):
        kind = " ".join(cursor.keywords[:2])
        raise source.unsupported(f"CREATE {kind}", cursor.start)
    if_not_exists = bool(cursor.accept("IF NOT EXISTS"))
    name = cursor.qualified(catalog.default_schema)
    after, columns = cursor.number, cursor.listed_names()
    if not cursor.follows("AS") or cursor.left == 1:
        raise cursor.unexpected("in CREATE VIEW")
    cursor.take()
    last, has_rows = len(words), True
    if is_materialized:
        query, has_rows = before_data_clause(cursor.rest)
        last = cursor.number + len(query)
    elif source.keywords(last - 2) == ["CHECK", "OPTION"]:
        # It is about changes through the view, which ask the catalog for it.
        last -= 4 if words[last - 3].keyword in ("LOCAL", "CASCADED") else 3
    return Header(
        source,
        after,
        name,
        tuple(columns),
        replaces,
        if_not_exists,
        cursor.start,
        words[last - 1].end,
        has_rows,
    )


def _definition(view: View, inside: Catalog, rules: Rules) -> Header:
    return _read_header(Source.of_text(view.definition, rules), inside)


def _names_more_than_tables(source: Source) -> bool:
    """Whether a query names a type or a sequence without its schema."""
    return any(
        isinstance(node, exp.NextValueFor)
        or (
            isinstance(node, exp.DataType)
            and node.this is exp.DataType.Type.USERDEFINED
            and "." not in str(node.args.get("kind"))
            and bool(source.rules.definable_types)
        )
        or (isinstance(node, exp.Anonymous) and node.name.lower() in OF_SEQUENCES)
        for node in source.parse().walk()
    )


def body_of(view: View, inside: Catalog, rules: Rules) -> Source:
    """Return the query of a view, as the engine keeps it."""
    return _body(_definition(view, inside, rules))


def _body(header: Header) -> Source:
    """Return a view's query; all places stay as they are in the definition."""
    text, rules = header.source.text, header.source.rules
    blank = re.sub(r"[^\n]", " ", text[: header.start])
    text = blank + text[header.start : header.end]
    return without_schemas(Source.of_text(text, rules))


def plan_body(header: Header, catalog: Catalog) -> Select:
    """Return the plan of a view's query.

    Raises
    ------
    RewriteError
        As for the query as a statement of its own.
    """
    source = _body(header)
    keyword = source.words[0].keyword
    if keyword not in {"WITH", *source.rules.queries}:
        raise source.unsupported(f"{keyword} as a view", source.start)
    check_hidden(source, catalog)
    if source.parse().find(*DESCRIPTIONS) is not None:
        raise source.unsupported("DESCRIBE in a view", source.start)
    select = plan_query(source, catalog)
    expect_present(source, select, "in a view")
    return select


def _bare_names(header: Header, select: Select, catalog: Catalog) -> frozenset[str]:
    """Return the folded names without a schema that stay in the text of a query.

    Those of its own WITH are not among them: these mean in a statement what they mean
    here. The WITH of a statement would take the others for its own.
    """
    source = _body(header)
    found = {
        node.name.lower()
        for node in source.parse().find_all(exp.Table)
        if isinstance(node.this, exp.Identifier)
        and not node.db
        and common_table(source, node, node.name.lower()) is None
        and catalog.named(None, node.name) is None
        and catalog.view(None, node.name) is None
    }
    below = [r.view.bare_names for r in select.references if r.view is not None]
    return frozenset(found).union(*below)


def _weight(query: ViewQuery) -> int:
    return sum(
        1 if reference.view is None else _weight(reference.view)
        for reference in query.select.references
    )


def check_view(definitions: Definitions, dialect: str, view: View) -> None:
    """Refuse a view that no statement can read.

    Raises
    ------
    RewriteError
        One of its subclasses, which says why.
    """
    catalog_of(definitions, dialect).query_of(view)
