"""Which syntax trees of queries are understood; everything else is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

if TYPE_CHECKING:
    from collections.abc import Container

    from tique_rewriter.text.source import Source, Word

_QUERY_TAIL = {"with_", "order", "limit", "offset"}

_PARTS: dict[type[exp.Expr], set[str]] = {
    exp.Select: {
        *_QUERY_TAIL,
        "expressions",
        "distinct",
        "from_",
        "joins",
        "laterals",
        "where",
        "group",
        "having",
        "qualify",
        "windows",
    },
    exp.SetOperation: {*_QUERY_TAIL, "this", "expression", "distinct", "by_name"},
    exp.Subquery: {*_QUERY_TAIL, "this", "alias", "joins"},
    exp.Values: {*_QUERY_TAIL, "expressions", "alias"},
    exp.Table: {"this", "db", "alias", "joins", "ordinality", "when", "version"},
    exp.Join: {"this", "side", "kind", "method", "on", "using"},
    exp.Lateral: {"this", "alias", "ordinality"},
    exp.With: {"expressions", "recursive"},
    exp.CTE: {"this", "alias", "materialized"},
    exp.Pivot: {
        *("this", "alias", "with_", "expressions", "fields", "using", "group"),
        *("unpivot", "into", "include_nulls", "default_on_null", "columns"),
        *("identify_pivot_strings", "prefixed_pivot_columns", "pivot_column_naming"),
        "value_columns_first",
    },
    exp.TableSample: {"method", "size", "percent"},
}

RESHAPING = (exp.Pivot, exp.TableSample)
"""Rows of these depend on all rows that they read, and on columns that they do not name."""

_PART_WORDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "sample": ("TABLESAMPLE", ("TABLESAMPLE", "SAMPLE")),
    "pivots": ("PIVOT", ("PIVOT", "UNPIVOT")),
    "when": ("AT (time travel)", ("AT",)),
    "version": ("AT (time travel)", ("AT", "FOR")),
    "locks": ("FOR UPDATE or FOR SHARE", ("FOR",)),
    "into": ("SELECT INTO", ("INTO",)),
    "catalog": ("a name with a database in it", ()),
    "only": ("ONLY", ("ONLY",)),
    "key_expressions": ("USING KEY", ("USING",)),
    "seed": ("REPEATABLE", ("REPEATABLE",)),
}

_ADVICE: dict[str, str] = {
    "sample": "the engine samples tables, and not the rows of a snapshot; filter by a "
    "column instead",
    "seed": "the rows of a snapshot are in no order that stays",
    "pivots": "write the aggregates out, with FILTER",
    "locks": "a conflicting change is found when you commit",
    "into": "use CREATE TABLE and INSERT … SELECT",
    "catalog": "write schema.table",
}

_PART_OF_KIND: dict[type[exp.Expr], str] = {
    exp.TableSample: "sample",
    exp.Pivot: "pivots",
    exp.Lock: "locks",
}
"""The part of another node that a refused kind of node is; there is the same advice."""

_REFUSED: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Command: ("this statement", ()),
    exp.Describe: ("DESCRIBE", ("DESCRIBE", "DESC")),
    exp.Summarize: ("SUMMARIZE", ("SUMMARIZE",)),
    exp.Show: ("SHOW", ("SHOW",)),
    exp.Pragma: ("PRAGMA", ("PRAGMA",)),
    exp.Pivot: ("PIVOT", ("PIVOT", "UNPIVOT")),
    exp.TableSample: ("TABLESAMPLE", ("TABLESAMPLE", "SAMPLE")),
    exp.Lock: ("FOR UPDATE or FOR SHARE", ("FOR",)),
    exp.Into: ("SELECT INTO", ("INTO",)),
    exp.Insert: ("INSERT inside a query", ("INSERT",)),
    exp.Update: ("UPDATE inside a query", ("UPDATE",)),
    exp.Delete: ("DELETE inside a query", ("DELETE",)),
    exp.Merge: ("MERGE inside a query", ("MERGE",)),
    exp.MatchRecognize: ("MATCH_RECOGNIZE", ("MATCH_RECOGNIZE",)),
    exp.SessionParameter: ("a session parameter", ()),
}


_SORTS_OR_GROUPS = (exp.Ordered, exp.Group, exp.Rollup, exp.Cube, exp.GroupingSets)


def has_only(node: exp.Expr, parts: Container[str]) -> bool:
    """Whether a node has no parts but these."""
    return all(part in parts for part, value in node.args.items() if value)


def starts_at(node: exp.Expr, default: int = 0) -> int:
    """Return the offset of the first part of ``node`` with a known place."""
    starts = [n.meta["start"] for n in node.walk() if n.meta.get("start") is not None]
    return min(starts, default=default)


def place_of(name: exp.Table | exp.Column) -> tuple[int, int] | None:
    """Return start and end of a (qualified) name in the text; None if they are not known."""
    first, last = name.parts[0].meta, name.parts[-1].meta
    if first.get("start") is None or last.get("end") is None:
        return None
    return first["start"], last["end"] + 1


def clause_words(
    source: Source, tree: exp.Expr, *keywords: str
) -> list[tuple[int, Word]]:
    """Return number and word of these keywords outside brackets, but for names."""
    names = {name.meta.get("start") for name in tree.find_all(exp.Identifier)}
    return [
        (number, word)
        for number, word in enumerate(source.words)
        if word.depth == 0 and word.keyword in keywords and word.start not in names
    ]


def function_name(node: exp.Expr) -> str:
    """Return the folded name of a function call, as the parser knows it."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    if isinstance(node, exp.ExplodingGenerateSeries | exp.GenerateSeries):
        return "generate_series"
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


def check_query(source: Source, tree: exp.Expr) -> None:
    """Refuse every construct in ``tree`` that this rewriter does not fully understand.

    Raises
    ------
    UnsupportedSQL
        Naming the construct and its place.
    """
    for node in tree.walk():
        _check_missing(source, node)
        if isinstance(node, exp.Parameter):
            _check_place(source, node)
        _check_kind(source, node)
        _check_parts(source, node)
        if isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier):
            _check_table_function(source, node.this, node.db)
        if isinstance(node, exp.Lateral) and not isinstance(node.this, exp.Subquery):
            _check_table_function(source, node.this, "")
        if (
            isinstance(node, exp.Anonymous)
            and node.name.lower() in source.rules.refused_functions
        ):
            raise source.unsupported(
                f"the function {node.name.lower()}()",
                source.find(node.name.upper()),
                advice_about(source, node.name),
            )
        if isinstance(node, exp.Alias) and node.alias.lower() in source.rules.suffixes:
            _check_alias(source, node)


def advice_about(source: Source, function: str) -> str:
    """Return why a function or a pragma is refused, if it is for what it tells."""
    if function.lower() not in source.rules.of_storage:
        return ""
    return "it tells of rows in storage, which are not the snapshot's"


def _check_alias(source: Source, node: exp.Alias) -> None:
    """Refuse a word that belongs to the call before it, and is no alias."""
    alias = node.args["alias"]
    start = starts_at(alias)
    if not alias.quoted and source.words[source.number(start) - 1].keyword != "AS":
        what = f"{alias.name.upper()} of an aggregate"
        raise source.unsupported(what, start, "read its value")


def _check_kind(source: Source, node: exp.Expr) -> None:
    for kind, (construct, keywords) in _REFUSED.items():
        if isinstance(node, kind) and kind not in source.rules.allowed_kinds:
            advice = _ADVICE.get(_PART_OF_KIND.get(kind, ""), "")
            raise source.unsupported(construct, source.find(*keywords), advice)
    if isinstance(node, exp.DDL | exp.Query) and not isinstance(node, tuple(_PARTS)):
        raise source.unsupported(node.key.upper(), starts_at(node))


def _check_parts(source: Source, node: exp.Expr) -> None:
    allowed = next((p for k, p in _PARTS.items() if isinstance(node, k)), None)
    if allowed is None:
        return
    for part, value in node.args.items():
        if value and part not in allowed and part not in source.rules.allowed_parts:
            construct, keywords = _PART_WORDS.get(
                part, (part.strip("_").replace("_", " ").upper(), ())
            )
            start = starts_at(node)
            if keywords:
                start = source.find(*keywords)
            raise source.unsupported(construct, start, _ADVICE.get(part, ""))


def _check_place(source: Source, placeholder: exp.Parameter) -> None:
    """Refuse a placeholder where a literal would not be just a value.

    A number in ORDER BY or GROUP BY is a column's position, a string after a word or
    a string belongs to it. (A parser that knows ``$1`` as a placeholder makes another
    kind of node: such an engine is given the value apart from the text.)
    """
    start = starts_at(placeholder, 1) - 1
    parent = placeholder.parent
    while isinstance(parent, exp.Paren | exp.Tuple):
        parent = parent.parent
    if isinstance(parent, _SORTS_OR_GROUPS):
        raise source.unsupported(
            "a placeholder that rows are sorted or grouped by", start
        )
    names = isinstance(parent, exp.Alias) and placeholder.arg_key == "alias"
    if names or isinstance(parent, exp.TableAlias):
        raise source.unsupported("a placeholder in a name's place", start)


def _check_missing(source: Source, node: exp.Expr) -> None:
    """Refuse constructs that the parser reads and the engine does not have."""
    rules = source.rules
    for kind, (construct, keywords) in rules.refused_kinds.items():
        if isinstance(node, kind):
            raise source.unsupported(construct, source.find(*keywords))
    for kind, parts in rules.refused_parts.items():
        if isinstance(node, kind):
            for part, (construct, keywords) in parts.items():
                if node.args.get(part):
                    raise source.unsupported(construct, source.find(*keywords))
    function = isinstance(node, exp.Lateral) and not isinstance(node.this, exp.Subquery)
    if function and not rules.lateral_functions:
        raise source.unsupported("LATERAL of a function", source.find("LATERAL"))
    crashes = rules.lateral_selects_only and isinstance(node, exp.Lateral)
    if crashes and not isinstance(node.this.unnest(), exp.Select):
        raise source.unsupported(
            "LATERAL of anything but one SELECT",
            source.find("LATERAL"),
            f"put it into a SELECT: {rules.engine} crashes",
        )
    if isinstance(node, exp.Join):
        for word in (node.method.upper(), node.kind.upper(), node.side.upper()):
            if word in rules.refused_joins:
                raise source.unsupported(f"{word} JOIN", source.find(word))


def _check_table_function(source: Source, function: exp.Expr, schema: str) -> None:
    name = function_name(function)
    schemas = source.rules.function_schemas
    known = schemas is None or schema.lower() in schemas
    if known and source.rules.table_functions.fullmatch(name):
        return
    shown = f"the table function {name}()" if name else "this table function"
    advice = advice_about(source, name)
    raise source.unsupported(shown, source.find(name.upper()), advice)
