"""Which syntax trees of queries are understood; everything else is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

if TYPE_CHECKING:
    from tique_rewriter.source import Source

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
    exp.Table: {"this", "db", "alias", "joins", "ordinality"},
    exp.Join: {"this", "side", "kind", "method", "on", "using"},
    exp.Lateral: {"this", "alias", "ordinality"},
    exp.With: {"expressions", "recursive"},
    exp.CTE: {"this", "alias", "materialized"},
}

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
}

_ADVICE: dict[str, str] = {
    "sample": "a sample of a snapshot is not defined; filter by a column instead",
    "pivots": "write the aggregates out, with FILTER",
    "locks": "a conflicting change is found when you commit",
    "into": "use CREATE TABLE and INSERT … SELECT",
    "catalog": "write schema.table",
}

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

_TABLE_FUNCTIONS = frozenset(
    [
        "generate_series",
        "range",
        "unnest",
        "repeat",
        "repeat_row",
        "generate_subscripts",
        "glob",
        "read_csv",
        "read_csv_auto",
        "read_parquet",
        "parquet_scan",
        "read_json",
        "read_json_auto",
        "read_json_objects",
        "read_json_objects_auto",
        "read_ndjson",
        "read_ndjson_auto",
        "read_ndjson_objects",
        "read_text",
        "read_blob",
        "read_xlsx",
        "sniff_csv",
        "parquet_metadata",
        "parquet_schema",
        "parquet_file_metadata",
        "parquet_kv_metadata",
        "json_each",
        "json_tree",
        "regexp_split_to_table",
        "string_split_to_table",
        "pg_timezone_names",
        "icu_calendar_names",
        "sql_auto_complete",
        "test_all_types",
        "pragma_version",
        "pragma_platform",
        "pragma_database_size",
        "pragma_user_agent",
        "pragma_collations",
    ]
)

_REFUSED_FUNCTIONS = frozenset(
    [
        "query",
        "query_table",
        "checkpoint",
        "force_checkpoint",
        "json_execute_serialized_sql",
        "pragma_table_info",
        "pragma_storage_info",
        "pragma_show",
        "from_substrait",
        "from_substrait_json",
        "currval",
        "setval",
    ]
)


def starts_at(node: exp.Expr, default: int = 0) -> int:
    """Return the offset of the first thing in ``node`` whose place is known."""
    starts = [n.meta["start"] for n in node.walk() if n.meta.get("start") is not None]
    return min(starts, default=default)


def function_name(node: exp.Expr) -> str:
    """Return the folded name of a function call, as the parser knows it."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    if isinstance(node, exp.ExplodingGenerateSeries | exp.GenerateSeries):
        return "generate_series"
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


def check_query(source: Source, tree: exp.Expr) -> None:
    """Refuse whatever in ``tree`` this rewriter does not fully understand.

    Raises
    ------
    UnsupportedSQL
        Naming the construct and its place.
    """
    for node in tree.walk():
        _check_kind(source, node)
        _check_parts(source, node)
        if isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier):
            _check_table_function(source, node)
        if isinstance(node, exp.Anonymous) and node.name.lower() in _REFUSED_FUNCTIONS:
            raise source.unsupported(
                f"the function {node.name.lower()}()",
                source.find(node.name.upper()),
            )


def _check_kind(source: Source, node: exp.Expr) -> None:
    for kind, (construct, keywords) in _REFUSED.items():
        if isinstance(node, kind):
            raise source.unsupported(
                construct, source.find(*keywords), _advice_of(kind)
            )
    if isinstance(node, exp.DDL | exp.Query) and not isinstance(node, tuple(_PARTS)):
        raise source.unsupported(node.key.upper(), starts_at(node))


def _advice_of(kind: type) -> str:
    part: dict[type, str] = {
        exp.TableSample: "sample",
        exp.Pivot: "pivots",
        exp.Lock: "locks",
    }
    return _ADVICE.get(part.get(kind, ""), "")


def _check_parts(source: Source, node: exp.Expr) -> None:
    allowed = next((p for k, p in _PARTS.items() if isinstance(node, k)), None)
    if allowed is None:
        return
    for part, value in node.args.items():
        if value and part not in allowed:
            construct, keywords = _PART_WORDS.get(
                part, (part.strip("_").replace("_", " ").upper(), ())
            )
            start = starts_at(node)
            if keywords:
                start = source.find(*keywords)
            raise source.unsupported(construct, start, _ADVICE.get(part, ""))


def _check_table_function(source: Source, table: exp.Table) -> None:
    name = function_name(table.this)
    if isinstance(table.this, exp.ReadCSV | exp.ReadParquet):
        return
    if name in _TABLE_FUNCTIONS or name.startswith("duckdb_"):
        return
    shown = f"the table function {name}()" if name else "this table function"
    raise source.unsupported(shown, source.find(name.upper()))
