"""Generated columns of DuckDB's tables, all of which are virtual.

DuckDB computes one whenever it is read, and checks at INSERT that this is no error. Its
catalog has the expression, with a cast to the column's type, in the place of the default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tique_backends.duckdb.catalog.purity import asked, nodes
from tique_rewriter.schema import Generated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.records import Row
    from tique_backends.session import Session

_EXPRESSIONS = """
SELECT column_name, column_default FROM duckdb_columns()
WHERE database_name = current_database() AND schema_name = $1 AND table_name = $2"""


def generated_columns(
    session: Session, schema: str, name: str, described: Sequence[Row]
) -> tuple[Generated, ...]:
    """Return a table's generated columns, each behind those that it names.

    ``described`` are the rows of DESCRIBE, which shows the defaults of other columns only.
    """
    found = session.execute(_EXPRESSIONS, [schema, name]).fetch_all()
    expressions: dict[str, str | None] = dict(found)
    left = {
        column: Generated(column, type_name, expression, place)
        for place, (column, type_name, _, _, default, _) in enumerate(described)
        if default is None and (expression := expressions[column]) is not None
    }
    named = {
        column: names_in(parsed_expression(session, each.expression))
        for column, each in left.items()
    }
    ordered: list[Generated] = []
    while left:
        # DuckDB lets none depend on itself.
        waiting = {column.lower() for column in left}
        ready = [column for column in left if waiting.isdisjoint(named[column])]
        ordered += [left.pop(column) for column in ready]
    return tuple(ordered)


def parsed_expression(session: Session, expression: str) -> Any:
    """DuckDB's tree of an expression."""
    return asked(session, "json_serialize_sql", f"SELECT ({expression})")


def names_in(parsed: Any) -> set[str]:
    """The names of columns in such a tree, in small letters, with all that qualifies them."""
    return {
        str(name).lower()
        for node in nodes(parsed)
        if node.get("class") == "COLUMN_REF"
        for name in node["column_names"]
    }
