"""Plans of DROP TABLE, CREATE INDEX and DROP INDEX."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.kinds.define.foreign_keys import kept_text
from tique_rewriter.plans.ddl_plans import CreateIndex, DropIndex, DropTable
from tique_rewriter.safety.token_checks import check_calls
from tique_rewriter.scope.references import (
    check_private,
    find_table,
    unknown_column,
    unknown_table,
)
from tique_rewriter.text.cursor import refuse_placeholders
from tique_rewriter.text.names import check_case, check_kind, check_not_attached
from tique_rewriter.tree.shape import has_only, starts_at

if TYPE_CHECKING:
    from tique_rewriter.schema import Table
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.text.source import Source

_DROP_PARTS = frozenset({"exists", "tables", "kind", "restrict"})
_NAME = frozenset({"this", "db", "catalog"})
_DROP_TABLE_PARTS = _DROP_PARTS | {"cascade", "materialized"}


def plan_drop_table(source: Source, catalog: Catalog, kind: str = "TABLE") -> DropTable:
    """Return the plan of DROP TABLE [IF EXISTS] … [RESTRICT | CASCADE].

    Or of DROP MATERIALIZED VIEW.
    """
    tree = _drop(source, _DROP_TABLE_PARTS)
    found: list[Table] = []
    missing: list[str] = []
    for node in _tables(source, tree):
        for name in (node.catalog, node.db):
            check_not_attached(source, catalog, name, starts_at(node))
        check_private(source, node)
        table = catalog.named(node.db or None, node.name)
        if table is not None:
            if table.fault is None:
                is_materialized = kind != "TABLE"
                start = starts_at(node)
                check_kind(source, table, start, is_materialized=is_materialized)
            found.append(table)
        elif tree.args.get("exists"):
            missing.append(".".join(part.name for part in node.parts))
        else:
            raise unknown_table(source, node)
    check_case(source, tree, found)
    cascade = bool(tree.args.get("cascade"))
    return DropTable(0, (), tuple(found), tuple(missing), kind, cascade)


def plan_drop_index(source: Source) -> DropIndex:
    """Return the plan of DROP INDEX."""
    tree = _drop(source, _DROP_PARTS | {"concurrently"})
    nodes = _tables(source, tree)
    text = _kept_text(source, tree)
    for node in nodes:
        check_private(source, node)
    names = tuple([(node.db or None, node.name) for node in nodes])
    return DropIndex(0, (), text, names)


def _kept_text(source: Source, tree: exp.Expr) -> str:
    """The statement about an index, without CONCURRENTLY.

    It is run alone in any case, and in an engine transaction.
    """
    left_out = set()
    if tree.args.get("concurrently"):
        place = source.find("CONCURRENTLY")
        if "concurrently" not in source.rules.indexes:
            raise source.unsupported("CONCURRENTLY", place)
        left_out.add(place)
    return kept_text(source, source.words, left_out)


def _drop(source: Source, parts: frozenset[str]) -> exp.Drop:
    tree = source.parse()
    if not isinstance(tree, exp.Drop):
        raise source.unsupported("this form of DROP", source.start)
    for part, value in tree.args.items():
        if value and part not in parts:
            word = part.strip("_").upper()
            raise source.unsupported(word, source.find(word))
    return tree


def _tables(source: Source, tree: exp.Drop) -> list[exp.Table]:
    nodes = tree.args.get("tables") or []
    tables = [
        node
        for node in nodes
        if isinstance(node, exp.Table)
        and isinstance(node.this, exp.Identifier)
        and has_only(node, _NAME)
    ]
    if not tables or len(tables) != len(nodes):
        raise source.unsupported("this form of DROP", source.start)
    return tables


def plan_create_index(source: Source, catalog: Catalog) -> CreateIndex:
    """Return the plan of CREATE [UNIQUE] INDEX on a managed table."""
    is_unique, forms = source.words[1].keyword == "UNIQUE", source.rules.indexes
    if is_unique and "unique" not in forms:
        raise source.unsupported(
            "CREATE UNIQUE INDEX",
            source.start,
            f"{source.rules.engine}'s lets duplicates in; write ALTER TABLE … ADD "
            "CONSTRAINT … UNIQUE (…)",
        )
    tree = source.parse()
    index = tree.this if isinstance(tree, exp.Create) else None
    if not isinstance(index, exp.Index) or not isinstance(
        index.args.get("table"), exp.Table
    ):
        raise source.unsupported("this form of CREATE INDEX", source.start)
    table = find_table(source, index.args["table"], catalog, takes_views=True)
    check_case(source, tree, [table])
    parameters = index.args.get("params")
    parts = parameters.args if parameters is not None else {}
    columns = parts.get("columns") or []
    used = {part for part, value in parts.items() if value}
    if "using" in used and f"using {parts['using'].name.lower()}" in forms:
        used.remove("using")
    if not columns or used - {"columns", *forms}:
        raise source.unsupported("this form of CREATE INDEX", source.start)
    text = _kept_text(source, tree)
    is_computed = "where" in used
    for node in columns:
        column = node.this if isinstance(node, exp.Ordered) else node
        if isinstance(column, exp.Opclass) and "classes" in forms:
            column = column.this
        if not isinstance(column, exp.Column):
            if "expressions" in forms:
                is_computed = True
                continue
            raise source.unsupported(
                "an index on an expression", source.find("("), "index a column"
            )
        known = table.positions if is_unique else table.spellings
        if column.name.lower() not in known:
            raise unknown_column(
                source, table, column.name, column.this.meta.get("start", 0)
            )
    if is_computed:
        _check_computed(source)
    unless = index.name if is_unique and tree.args.get("exists") else None
    name = index.name if is_unique else None
    return CreateIndex(0, (), table, text, is_computed, is_unique, unless, name)


def _check_computed(source: Source) -> None:
    """Refuse placeholders, and what an index's expressions may not call."""
    refuse_placeholders(source, "CREATE INDEX")
    keywords = [word.keyword for word in source.words]
    inside = source.words[keywords.index("(") :] if "(" in keywords else []
    # Outside of brackets neither is the name of a function.
    clauses = [
        w.start for w in inside if not w.depth and w.keyword in ("INCLUDE", "WHERE")
    ]
    check_calls(source, inside, clauses)
