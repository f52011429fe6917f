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
    after_verb,
    finish,
    plan_assignment,
    refused,
    unread,
)
from tique_rewriter.plans.plan import Plan, Select
from tique_rewriter.scope.descriptions import definition
from tique_rewriter.text.cursor import Cursor
from tique_rewriter.text.names import PRIVATE_SCHEMA, quote
from tique_rewriter.text.source import Source
from tique_rewriter.tree.shape import advice_about

if TYPE_CHECKING:
    from tique_rewriter.scope.catalog import Catalog
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


_SHOWN = {
    (): "SHOW ALL TABLES",
    ("ALL",): "SHOW ALL TABLES",
    ("ALL", "TABLES"): "SHOW ALL TABLES",
    ("DATABASES",): "SHOW DATABASES",
    ("SCHEMAS",): "SHOW SCHEMAS",
}
"""What DESCRIBE and SHOW list, by the words after them."""
_PRAGMAS = {
    "show_tables": "SHOW TABLES",
    "show_tables_expanded": "SHOW ALL TABLES",
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
    verb, words = source.words[0].keyword, tuple(source.keywords(1))
    if verb == "PRAGMA":
        return _pragma(after_verb(source), catalog)
    if verb == "CALL":
        return _as_query("FROM", after_verb(source), catalog)
    if verb != "SUMMARIZE":
        if words in _SHOWN:
            return _fixed(source.rules.listings[_SHOWN[words]])
        if verb == "SHOW" and words == ("TABLES",):
            return _fixed(source.rules.listings["SHOW TABLES"])
    cursor = after_verb(source)
    if _begins_query(cursor):
        lexed = source.lexed.after(cursor.before.end)
        return _described(verb, plan_query(Source(lexed, source.rules), catalog))
    return _of_name(cursor, verb, catalog)


def plan_variable(source: Source, catalog: Catalog) -> Plan:
    """Return the plan of SET VARIABLE and RESET VARIABLE: the session's own values.

    Raises
    ------
    UnsupportedSQL
        For what no query may do.
    """
    cursor = Cursor(source, number=2)
    start, name = cursor.start, cursor.name()
    if source.words[0].keyword == "RESET":
        finish(cursor)
        return _fixed(f"RESET VARIABLE {quote(name)}")
    if not cursor.accept("=", "TO") or cursor.is_done:
        raise unread(source, source.syntax("= and a value are missing", start))
    inner = Source(source.lexed.with_word("SELECT", cursor.start), source.rules)
    plan = plan_query(inner, catalog)
    tree = inner.parse()
    if len(tree.args.get("expressions") or ()) != 1 or tree.args.get("from_"):
        raise source.unsupported("this value", cursor.start, "put it in brackets")
    return SetVariable(plan.parameters, plan.references, name, plan)


def _described(verb: str, inner: Select) -> Described:
    verb = "SUMMARIZE" if verb == "SUMMARIZE" else "DESCRIBE"
    return Described(inner.parameters, inner.references, verb, inner)


def _begins_query(cursor: Cursor) -> bool:
    first, second = (*cursor.keywords, "")[:2]
    if first == "TABLE":
        return False
    queries = cursor.source.rules.queries
    return first == "WITH" or (first in queries and second not in ("", "."))


def _of_name(cursor: Cursor, verb: str, catalog: Catalog) -> Plan:
    """Return the plan of DESCRIBE, SHOW or SUMMARIZE of one relation."""
    if cursor.left > 1:
        cursor.accept("TABLE")
    source = cursor.source
    relation = Cursor(source, number=cursor.number)
    schema, name = _relation(cursor)
    finish(cursor)
    if verb != "SUMMARIZE":
        start = relation.start
        place = definition(source, catalog, schema or None, name, start)
        if place:
            return _fixed(f"DESCRIBE {place}")
    try:
        return _described(verb, _as_query("FROM", relation, catalog))
    except UnknownTable:
        if verb != "SHOW" or schema:
            raise
        return ShowSetting(0, (), name.lower())


def _relation(cursor: Cursor) -> tuple[str, str]:
    """Read the schema, if there is one, and the name of a relation."""
    source, start = cursor.source, cursor.start
    schema, name = "", _part(cursor)
    if cursor.left > 1 and cursor.accept("."):
        schema, name = name, _part(cursor)
    if schema.lower() == PRIVATE_SCHEMA or name.lower().startswith(
        f"{PRIVATE_SCHEMA}_"
    ):
        raise source.unsupported(f'the name "{name}"', start, "it is reserved")
    return schema, name


def _part(cursor: Cursor) -> str:
    source, start = cursor.source, cursor.start
    if source.text[start] == "'":
        raise source.unsupported("a name in single quotes", start, "leave them out")
    return cursor.name()


def _as_query(word: str, cursor: Cursor, catalog: Catalog) -> Select:
    """Plan the rest of a statement with this word before it: CALL f(…) is FROM f(…)."""
    source = cursor.source
    lexed = source.lexed.with_word(word, cursor.start)
    return plan_query(Source(lexed, source.rules), catalog)


def _pragma(cursor: Cursor, catalog: Catalog) -> Plan:
    source, start = cursor.source, cursor.start
    name = source.identifier(cursor.word).lower()
    following = cursor.keywords[1:]
    if following[:1] == ["="]:
        return plan_assignment(cursor)
    if following in ([], ["(", ")"]) and name in _SWITCHES:
        setting, value = _SWITCHES[name]
        return SetSetting(0, (), setting, (value,))
    if following in ([], ["(", ")"]) and name in _PRAGMAS:
        return _listed(source, _PRAGMAS[name], catalog)
    if name == "table_info" and len(following) == 3 and following[::2] == ["(", ")"]:
        return _table_info(source, cursor.rest[2], catalog)
    advice = advice_about(source, name) or "it is not known to change nothing"
    raise refused(source, f"PRAGMA {name}", start, advice)


def _table_info(source: Source, word: Word, catalog: Catalog) -> Select:
    raw = source.raw(word)
    name = raw[1:-1].replace("''", "'") if raw[0] == "'" else source.identifier(word)
    schema, _, bare = name.rpartition(".")
    if schema.lower().startswith(f"{catalog.database.lower()}."):
        schema = schema[len(catalog.database) + 1 :]
    start = word.start
    place = definition(source, catalog, schema or None, bare, start)
    place = place or definition(source, catalog, None, name, start)
    if not place:
        what = f'the table "{name}" does not exist'
        raise source.error(UnknownTable, what, start)
    quoted = place.replace("'", "''")
    return _fixed(f"FROM pragma_table_info('{quoted}')")


def _listed(source: Source, text: str, catalog: Catalog) -> Select:
    """Return what a pragma lists, in which there is no part of tique."""
    if text in source.rules.listings:
        return _fixed(source.rules.listings[text])
    return plan_query(Source.of_text(text, source.rules), catalog)


def _fixed(text: str) -> Select:
    return Select(0, (), (text,))
