"""Names that are reserved, and those that differ in the case of their letters alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.errors import UnknownTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tique_rewriter.schema import Definitions, Table
    from tique_rewriter.text.source import Source


PRIVATE_SCHEMA = "tique"
"""The schema of tique's own tables: no statement may name it."""


def check_reserved(source: Source, schema: str, start: int) -> None:
    """Refuse a name in tique's own schema.

    Raises
    ------
    UnsupportedSQL
        The schema, named at ``start``, is that one.
    """
    if schema.lower() == PRIVATE_SCHEMA:
        raise source.unsupported(
            f'the schema "{PRIVATE_SCHEMA}"', start, "it is reserved"
        )


def check_not_attached(
    source: Source, catalog: Definitions, name: str, start: int
) -> None:
    """Refuse to write to another database, or to make a schema with its name.

    Raises
    ------
    UnsupportedSQL
        A database of that name is attached.
    """
    if name and catalog.attached(name) is not None:
        raise source.unsupported(
            f'a change in "{name}", a database that is attached,',
            start,
            "it is there to be read: connect() to it",
        )


def check_writable(source: Source, catalog: Definitions, name: str, start: int) -> None:
    """Refuse to write to a schema of tique's own, or to another database."""
    check_reserved(source, name, start)
    check_not_attached(source, catalog, name, start)


def unmanaged(source: Source, what: str, start: int) -> UnknownTable:
    """Return the complaint that a table, named at ``start``, is none of tique's."""
    return source.error(
        UnknownTable, what, start, "existing tables are taken in with `tique adopt`"
    )


def check_kind(
    source: Source, table: Table, start: int, *, is_materialized: bool = False
) -> None:
    """Refuse a materialized view in a table's place, or the reverse.

    Raises
    ------
    UnknownTable
        The table, named at ``start``, is of the other kind.
    """
    if table.is_materialized and not is_materialized:
        raise source.error(
            UnknownTable,
            f'"{table.name}" is a materialized view and no table',
            start,
            "REFRESH MATERIALIZED VIEW computes its rows anew",
        )
    if is_materialized and not table.is_materialized and table.fault is None:
        raise source.error(
            UnknownTable, f'"{table.name}" is a table and no materialized view', start
        )


def quote(name: str) -> str:
    """Return a name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def check_case(source: Source, tree: exp.Expr, tables: Iterable[Table]) -> None:
    """Refuse a statement in which two names differ in the case of their letters alone.

    The catalog and all of the rewriter look names up without regard to case. Where
    the engine tells ``"Id"`` from ``id``, that is right as long as no two names that
    could be meant differ in nothing else: neither two of the statement nor one of
    the statement and one of a table that it names. No condition can name the results
    of the outermost SELECT or of RETURNING.

    Parameters
    ----------
    tree
        The whole statement.
    tables
        The managed tables that it names.

    Raises
    ------
    UnsupportedSQL
        At the first name that differs so from one before it, or is a string.
    """
    if not source.rules.exact_quoted_names:
        return
    results = _results(tree)
    seen: dict[str, str] = {}
    for table in tables:
        for name in (table.schema, table.name, *table.names):
            if seen.setdefault(name.lower(), name) != name:
                raise refusal(source, name, seen[name.lower()], 0)
    for node in tree.find_all(exp.Identifier):
        start = int(node.meta.get("start") or 0)
        if source.text[start : start + 1] == "'":
            raise source.unsupported("a string in a name's place", start)
        if id(node) in results:
            continue
        if seen.setdefault(node.name.lower(), node.name) != node.name:
            raise refusal(source, node.name, seen[node.name.lower()], start)


def refusal(source: Source, name: str, other: str, start: int) -> Exception:
    """Return the refusal of a name beside another."""
    return source.unsupported(
        f'the name "{name}" beside "{other}"',
        start,
        f"{source.rules.engine} takes them for two names and tique does not",
    )


def expect_exact(source: Source, given: str, name: str, start: int) -> None:
    """Refuse a name that differs in case alone from the one that it would mean."""
    if source.rules.exact_quoted_names and given != name:
        raise refusal(source, given, name, start)


def _results(tree: exp.Expr | None) -> set[int]:
    """Return the aliases, by ``id``, that name the statement's results."""
    if isinstance(tree, exp.SetOperation):
        return _results(tree.this) | _results(tree.expression)
    if isinstance(tree, exp.DML):
        return _results(tree.args.get("returning"))
    if not isinstance(tree, exp.Select | exp.Returning):
        return set()
    aliases = [node for node in tree.expressions if isinstance(node, exp.Alias)]
    return {id(node.args["alias"]) for node in aliases}
