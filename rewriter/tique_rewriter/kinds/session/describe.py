"""Plans of DESCRIBE, SHOW, SUMMARIZE, PRAGMA and CALL, where an engine has them.

They are queries in other words. One that is about a table's definition asks the
storage table, which has exactly the application's; one that is about rows or about a
query's results becomes a query of the snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tique_rewriter.errors import UnknownTable
from tique_rewriter.kinds.query.query import plan_query
from tique_rewriter.kinds.session.session import (
    SetSetting,
    ShowSetting,
    finish,
    plan_assignment,
    refused,
    rest_of,
    unread,
)
from tique_rewriter.plans.plan import Plan, Select
from tique_rewriter.text.cursor import Cursor
from tique_rewriter.text.names import PRIVATE_SCHEMA, quote
from tique_rewriter.text.placeholders import number_placeholders
from tique_rewriter.text.source import Source

if TYPE_CHECKING:
    from tique_rewriter.schema import Catalog, Table
    from tique_rewriter.text.source import Word


@dataclass(frozen=True)
class Described(Plan):
    """DESCRIBE or SUMMARIZE of a query: ``verb`` goes before it."""

    verb: str
    statement: Select

    @property
    def reads_rows(self) -> bool:
        """Whether the query is run."""
        return self.verb == "SUMMARIZE"


@dataclass(frozen=True)
class SetVariable(Plan):
    """SET VARIABLE: its name, and a query for its one value."""

    name: str
    statement: Select


_TABLES = (
    'SELECT table_name AS "name" FROM duckdb_tables() '
    "WHERE in_search_path(database_name, schema_name) UNION ALL "
    "SELECT view_name FROM duckdb_views() "
    "WHERE in_search_path(database_name, schema_name) AND NOT internal ORDER BY 1"
)
_ALL_TABLES = (
    "SELECT * FROM (SHOW ALL TABLES) WHERE \"schema\" <> 'tique' AND NOT "
    "(temporary AND starts_with(\"name\", 'tique_')) ORDER BY ALL"
)
_SHOWN = {
    (): _ALL_TABLES,
    ("ALL",): _ALL_TABLES,
    ("ALL", "TABLES"): _ALL_TABLES,
    ("DATABASES",): "SHOW DATABASES",
    (
        "SCHEMAS",
    ): "SELECT * FROM (SHOW SCHEMAS) WHERE schema_name <> 'tique' ORDER BY ALL",
}
_PRAGMAS = {
    "show_tables": _TABLES,
    "show_tables_expanded": _ALL_TABLES,
    "show_databases": "SHOW DATABASES",
    **{
        name: f"FROM pragma_{name}()"
        for name in ("version", "platform", "database_size", "user_agent", "collations")
    },
    "database_list": "FROM pragma_database_list",
}
_SWITCHES = {
    "enable_progress_bar": ("enable_progress_bar", "true"),
    "disable_progress_bar": ("enable_progress_bar", "false"),
    "enable_print_progress_bar": ("enable_progress_bar_print", "true"),
    "disable_print_progress_bar": ("enable_progress_bar_print", "false"),
    "enable_object_cache": ("enable_object_cache", "true"),
    "disable_object_cache": ("enable_object_cache", "false"),
}
"""Pragmas that set a setting."""


def plan_description(source: Source, catalog: Catalog) -> Plan:
    """Return the plan of DESCRIBE, SHOW, SUMMARIZE, PRAGMA or CALL.

    Raises
    ------
    UnsupportedSQL
        For a pragma that is not on the list, or a call that is no allowed query.
    """
    verb = source.words[0].keyword
    if verb in ("PRAGMA", "CALL"):
        rest = rest_of(source)
        return _pragma(rest, catalog) if verb == "PRAGMA" else _called(source, catalog)
    words = (
        source.keywords()[1:] if len(source.words) == 1 else rest_of(source).keywords()
    )
    if verb != "SUMMARIZE":
        if tuple(words) in _SHOWN:
            return _fixed(_SHOWN[tuple(words)])
        if verb == "SHOW" and words == ["TABLES"]:
            return _planned(source, _TABLES, catalog)
    rest = rest_of(source)
    if _begins_query(rest):
        inner = plan_query(Source(rest.lexed, rest.rules), catalog)
        return _described(verb, inner)
    return _of_name(source, rest, verb, catalog)


def plan_variable(source: Source, catalog: Catalog) -> Plan:
    """Return the plan of SET VARIABLE and RESET VARIABLE: the session's own values.

    Raises
    ------
    UnsupportedSQL
        For what no query may do.
    """
    rest = rest_of(rest_of(source))
    name = rest.identifier(rest.words[0])
    if source.words[0].keyword == "RESET":
        finish(Cursor(rest, number=1))
        return _fixed(f"RESET VARIABLE {quote(name)}")
    if rest.keywords(1)[:1] not in (["="], ["TO"]) or len(rest.words) < 3:
        raise unread(rest, rest.syntax("= and a value are missing", rest.start))
    lexed = source.lexed.with_word("SELECT", rest.words[2].start)
    inner = Source(lexed, source.rules)
    plan = plan_query(inner, catalog)
    tree = inner.parse()
    if len(tree.args.get("expressions") or ()) != 1 or tree.args.get("from_"):
        raise source.unsupported(
            "this value", rest.words[2].start, "put it in brackets"
        )
    return SetVariable(plan.parameters, plan.references, name, plan)


def _described(verb: str, inner: Select) -> Described:
    verb = "SUMMARIZE" if verb == "SUMMARIZE" else "DESCRIBE"
    return Described(inner.parameters, inner.references, verb, inner)


def _begins_query(rest: Source) -> bool:
    first, second = (*rest.keywords(), "")[:2]
    if first == "TABLE":
        return False
    return first == "WITH" or (first in rest.rules.queries and second not in ("", "."))


def _of_name(source: Source, rest: Source, verb: str, catalog: Catalog) -> Plan:
    """Return the plan of DESCRIBE, SHOW or SUMMARIZE of one relation."""
    if rest.words[0].keyword == "TABLE" and len(rest.words) > 1:
        rest = rest_of(rest)
    schema, name = _relation(rest)
    finish(Cursor(rest, number=3 if schema else 1))
    if verb != "SUMMARIZE":
        table = _definition(catalog, schema or None, name)
        if table is not None:
            place = f"{quote(table.schema)}.{quote(table.name)}"
            return _fixed(f"DESCRIBE {place}")
    start = rest.start
    lexed = source.lexed.with_word("FROM", start)
    try:
        inner = plan_query(Source(lexed, source.rules), catalog)
    except UnknownTable:
        if verb != "SHOW" or schema:
            raise
        return ShowSetting(0, (), name.lower())
    return _described(verb, inner)


def _definition(catalog: Catalog, schema: str | None, name: str) -> Table | None:
    """Return a table, or the names and columns of a view."""
    table, view = catalog.find(schema, name), catalog.view(schema, name)
    return view.table if view is not None else table


def _relation(rest: Source) -> tuple[str, str]:
    """Return the schema, if there is one, and the name of a relation."""
    parts = [_part(rest, rest.words[0])]
    if rest.keywords(1)[:1] == ["."] and len(rest.words) > 2:
        parts.append(_part(rest, rest.words[2]))
    schema, name = parts if len(parts) == 2 else ("", parts[0])
    if schema.lower() == PRIVATE_SCHEMA or name.lower().startswith(
        f"{PRIVATE_SCHEMA}_"
    ):
        raise rest.unsupported(f'the name "{name}"', rest.start, "it is reserved")
    return schema, name


def _part(rest: Source, word: Word) -> str:
    raw = rest.text[word.start : word.end]
    if raw.startswith("'"):
        raise rest.unsupported("a name in single quotes", word.start, "leave them out")
    return rest.identifier(word)


def _called(source: Source, catalog: Catalog) -> Select:
    """CALL f(…) is FROM f(…)."""
    lexed = source.lexed.with_word("FROM", rest_of(source).start)
    return plan_query(Source(lexed, source.rules), catalog)


def _pragma(rest: Source, catalog: Catalog) -> Plan:
    first = rest.words[0]
    name = rest.identifier(first).lower()
    following = rest.keywords(1)
    if following[:1] == ["="]:
        return plan_assignment(rest)
    if following in ([], ["(", ")"]) and name in _SWITCHES:
        setting, value = _SWITCHES[name]
        return SetSetting(0, (), setting, (value,))
    if following in ([], ["(", ")"]) and name in _PRAGMAS:
        return _planned(rest, _PRAGMAS[name], catalog)
    if name == "table_info" and len(following) == 3 and following[::2] == ["(", ")"]:
        return _table_info(rest, catalog)
    advice = "it is not known to change nothing"
    raise refused(rest, f"PRAGMA {name}", first.start, advice)


def _table_info(rest: Source, catalog: Catalog) -> Select:
    word = rest.words[2]
    raw = rest.text[word.start : word.end]
    name = raw[1:-1].replace("''", "'") if raw[0] == "'" else rest.identifier(word)
    schema, _, bare = name.rpartition(".")
    table = _definition(catalog, schema or None, bare)
    table = table or _definition(catalog, None, name)
    if table is None:
        raise rest.error(UnknownTable, f'the table "{name}" does not exist', word.start)
    place = f"{quote(table.schema)}.{quote(table.name)}".replace("'", "''")
    return _fixed(f"FROM pragma_table_info('{place}')")


def _planned(source: Source, text: str, catalog: Catalog) -> Select:
    """Plan a query of ours, in which the engine's relations show no part of tique."""
    if "(SHOW " in text or text.startswith("SHOW "):
        return _fixed(text)
    lexed = number_placeholders(text, "qmark", lexicon=source.rules.lexicon)
    return plan_query(Source(lexed, source.rules), catalog)


def _fixed(text: str) -> Select:
    return Select(0, (), (text,))
