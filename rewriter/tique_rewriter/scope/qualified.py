"""Names with more parts than the rest of the rewriter reads.

``shop.app.account``: the database's own name in front of a relation's schema says nothing,
and is blanked before anything else reads the statement. Where three parts could be a
column's too, the parser's tree tells them apart; a definition names its relation or schema
behind a word like ``TABLE``. The name of another database stays, and is refused unless that
one is attached (:mod:`tique_rewriter.safety.attaching`).

``app.account.id``: the text that fills a table's hole has the table's name as its alias, and
no schema. So the schema in front of such a column is blanked, where the column means the same
without it: where the nearest relation that the rest of its name could mean is the one that the
whole name means. Where tables of one name in two schemas are in the way of that, each gets an
alias first, ``"app.account"``, but the table that a statement changes. All others stay, and
are refused (:mod:`tique_rewriter.scope.references`).
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING

from sqlglot import expressions as exp
from sqlglot.tokenizer_core import TokenType

from tique_rewriter.errors import RewriteError
from tique_rewriter.scope.relations import relations_of, seen_from, with_joins
from tique_rewriter.text.names import quote
from tique_rewriter.text.placeholders import Lexed
from tique_rewriter.text.source import Source
from tique_rewriter.tree.shape import has_only, starts_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tique_rewriter.schema import Definitions
    from tique_rewriter.text.source import Word

_ASSIGNING = (exp.Update, exp.OnConflict, exp.When)
_CHANGES = (exp.Update, exp.Delete, exp.Insert, exp.Merge)
_TARGETS = (*_CHANGES, exp.Schema)
_PLAIN_TABLE = frozenset({"this", "db", "joins"})
_TELLING = frozenset({"DESCRIBE", "SHOW", "SUMMARIZE", "ANALYZE", "VACUUM"})
_DEFINING = _TELLING | {"ALTER", "COMMENT", "CREATE", "DROP"}
"""The first words of statements that the parser may not read."""
_BEFORE_SCHEMAS = frozenset({"SCHEMA", "EXISTS"})
_BEFORE_RELATIONS = _TELLING | {
    *("TABLE", "VIEW", "EXISTS", "INDEX", "SEQUENCE", "TYPE")
}
"""What stands before the name that such a statement is about."""


def without_database(source: Source, catalog: Definitions) -> Source:
    """Return the statement with blanks for the database's own name; places stay."""
    own, words = catalog.database, source.words
    if not own:
        return source
    named = [
        number
        for number, (word, dot) in enumerate(pairwise(words))
        if dot.keyword == "."
        and (number == 0 or words[number - 1].keyword != ".")
        and _is_name(source, word, own)
    ]
    if not named:
        return source
    starts = _names_with_databases(source, own)
    spans = [
        (words[number].start, words[number + 2].start)
        for number in named
        if number + 2 < len(words)
        and (words[number].start in starts or _is_defined(source, number))
    ]
    return _blanked(source, spans)


def _blanked(source: Source, spans: list[tuple[int, int]]) -> Source:
    if not spans:
        return source
    return Source(source.lexed.blanked(spans), source.rules, source.outer)


def _is_name(source: Source, word: Word, name: str) -> bool:
    try:
        found = source.identifier(word)
    except RewriteError:
        return False
    return source.rules.same(found) == source.rules.same(name)


def _names_with_databases(source: Source, own: str) -> set[int]:
    """Return where names of relations and columns begin that have a database in front."""
    try:
        tree = source.parse()
    except RewriteError:
        return set()
    kinds: tuple[type[exp.Expr], ...] = (exp.Table, exp.Column)
    relations = tree.find_all(exp.Table, exp.Subquery, exp.CTE)
    if any(each.alias_or_name.lower() == own.lower() for each in relations):
        # What looks like one could be a field of a column.
        kinds = (exp.Table,)
    named = [name for name in tree.find_all(*kinds) if name.args.get("catalog")]
    return {starts_at(name, -1) for name in named}


def _is_defined(source: Source, number: int) -> bool:
    """Whether the name at this word is that of what a definition is about."""
    keywords = source.keywords()
    if keywords[0] not in _DEFINING or number == 0:
        return False
    before = keywords[number - 1]
    if "SCHEMA" in keywords[:number]:
        return before in _BEFORE_SCHEMAS
    has_schema = keywords[number + 3 : number + 4] == ["."]
    owns = keywords[number - 2 : number] == ["OWNED", "BY"]
    return has_schema and (owns or before in _BEFORE_RELATIONS)


def without_schemas(source: Source) -> Source:
    """Return the statement with blanks for schemas in front of columns; places stay."""
    dots = [t.token_type is TokenType.DOT for t in source.tokens]
    if not any(a and b for a, b in zip(dots, islice(dots, 2, None), strict=False)):
        return source
    try:
        tree = source.parse()
    except RewriteError:
        # It is complained about where the statement is planned.
        return source
    columns = [each for each in tree.find_all(exp.Column) if each.args.get("db")]
    spans = sorted(_blank(each) for each in columns if _is_plain(source, each))
    if len(spans) < len(columns) and (pieces := _with_aliases(source, tree)):
        lexed = source.lexed.spliced(pieces)
        return without_schemas(Source(lexed, source.rules, source.outer))
    return _blanked(source, spans)


def _with_aliases(source: Source, tree: exp.Expr) -> list[tuple[int, int, Lexed]]:
    """Aliases for tables of one name in several schemas, there and in front of columns."""
    fold = source.rules.same
    relations = defaultdict(list)
    for each in tree.find_all(exp.Table, exp.Subquery, exp.CTE):
        relations[fold(each.alias_or_name)].append(each)
    shared = {
        name: tables
        for name, tables in relations.items()
        if len(tables) > 1 and all(t.text("db") and not t.alias for t in tables)
    }
    written = {quote(each.name) for each in tree.find_all(exp.Identifier)}
    aliases, found = {}, []
    for table in chain(*shared.values()):
        alias = quote(f"{table.text('db')}.{table.name}")
        is_target = table.arg_key == "this" and isinstance(table.parent, _TARGETS)
        if is_target or not has_only(table, _PLAIN_TABLE) or alias in written:
            continue
        end = table.this.meta["end"] + 1
        aliases[id(table)] = alias
        found.append((end, end, f" AS {alias}"))
    for column in tree.find_all(exp.Column):
        if fold(column.table or column.name) not in shared:
            continue
        relation = _relation_of(source, column)
        is_named = source.rules.names_by_text and _is_in_unnamed_result(column)
        if relation is None or is_named:
            # With aliases it could mean another one.
            return []
        if id(relation) in aliases:
            first, last = column.parts[0].meta, column.parts[-2].meta
            text = aliases[id(relation)]
            found.append((first["start"], last["end"] + 1, text))
    return [(start, end, _lexed(text)) for start, end, text in sorted(found)]


def _lexed(text: str) -> Lexed:
    """Return a text that ends in a quoted name."""
    return Lexed(text, text, (), (), (), ((text.index('"'), len(text)),), ())


def _relation_of(source: Source, column: exp.Column) -> exp.Expr | None:
    """The relation whose name is in front of a column; None in doubt."""
    if column.args.get("catalog") or any("start" not in p.meta for p in column.parts):
        return None
    fold = source.rules.same
    seen = {id(select) for select in seen_from(column)}
    for scope, relations in _scopes(column):
        named = [r for r in relations if fold(r.alias_or_name) == fold(column.table)]
        if column.db:
            if any(fold(r.alias_or_name) == fold(column.db) for r in relations):
                # It could be a field of a column.
                return None
            named = [
                r
                for r in named
                if not r.alias and fold(r.text("db")) == fold(column.db)
            ]
        if named:
            is_seen = not isinstance(scope, exp.Select) or id(scope) in seen
            return named[0] if len(named) == 1 and is_seen else None
    return None


def _blank(column: exp.Column) -> tuple[int, int]:
    """The schema and the dot after it."""
    schema, table = column.parts[0].meta, column.parts[1].meta
    return schema["start"], table["start"]


def _is_plain(source: Source, column: exp.Column) -> bool:
    """Whether the column means the same without the schema."""
    if not column.args.get("db") or column.args.get("catalog"):
        return False
    if any("start" not in part.meta for part in column.parts[:2]):
        return False
    if source.rules.names_by_text and _is_in_unnamed_result(column):
        return False
    assigned = column.parent
    if (
        isinstance(assigned, exp.EQ)
        and assigned.this is column
        and isinstance(assigned.parent, _ASSIGNING)
    ):
        # What SET assigns to, perhaps.
        return False
    fold = source.rules.same
    schema, table = fold(column.db), fold(column.table)
    seen = {id(select) for select in seen_from(column)}
    for scope, relations in _scopes(column):
        names = [fold(relation.alias_or_name) for relation in relations]
        if schema in names:
            # It could be a field of a column.
            return False
        if table not in names:
            continue
        relation = relations[names.index(table)]
        return (
            names.count(table) == 1
            and isinstance(relation, exp.Table)
            and not relation.alias
            and fold(relation.db) == schema
            and (not isinstance(scope, exp.Select) or id(scope) in seen)
        )
    return False


def _scopes(column: exp.Column) -> Iterator[tuple[exp.Expr, list[exp.Expr]]]:
    """The queries and the change around a column, each with its relations."""
    node = column.parent
    while node is not None:
        if isinstance(node, exp.Select):
            yield node, relations_of(node)
        elif isinstance(node, _CHANGES):
            target = node.this.this if isinstance(node.this, exp.Schema) else node.this
            # (MERGE has the target of its actions.)
            targets = [] if target is None else [target]
            using = node.args.get("using") or []
            using = using if isinstance(using, list) else [using]
            yield node, with_joins([*targets, *relations_of(node), *using])
        node = node.parent


def _is_in_unnamed_result(column: exp.Column) -> bool:
    """Whether the engine would call a result by the text in which the column is."""
    below: exp.Expr = column
    node = column.parent
    while node is not None:
        is_result = below.arg_key == "expressions"
        is_result = is_result and isinstance(node, exp.Select | exp.Returning)
        is_named = below is column or isinstance(below, exp.Alias)
        if is_result and not is_named:
            return True
        below, node = node, node.parent
    return False
