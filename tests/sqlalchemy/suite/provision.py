"""What the suite asks of an engine beside requirements."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CheckConstraint, Table, event, inspect
from sqlalchemy.dialects import postgresql
from sqlalchemy.testing import provision


@provision.temp_table_keyword_args.for_db("duckdb", "monetdb", "postgresql")
def temporary(cfg: Any, eng: Any) -> dict[str, Any]:
    return {"prefixes": ["TEMPORARY"]}


@provision.upsert.for_db("duckdb", "monetdb", "postgresql")
def upsert(
    cfg: Any,
    table: Any,
    returning: Any,
    *,
    set_lambda: Any = None,
    sort_by_parameter_order: bool = False,
    index_elements: Any = None,
) -> Any:
    statement = postgresql.insert(table)
    if set_lambda:
        if index_elements is None:
            index_elements = inspect(table).selectable.primary_key
        statement = statement.on_conflict_do_update(
            index_elements=index_elements, set_=set_lambda(statement.excluded)
        )
    else:
        statement = statement.on_conflict_do_nothing()
    return statement.returning(
        *returning, sort_by_parameter_order=sort_by_parameter_order
    )


@provision.drop_all_schema_objects_post_tables.for_db("duckdb", "postgresql")
def drop_types(cfg: Any, eng: Any) -> None:
    with eng.begin() as connection:
        for enum in inspect(connection).get_enums("*"):
            connection.execute(
                postgresql.DropEnumType(
                    postgresql.ENUM(name=enum["name"], schema=enum["schema"])
                )
            )


@provision.is_preferred_driver.for_db("duckdb", "monetdb", "postgresql")
def is_preferred(cfg: Any, engine: Any) -> bool:
    return True


@event.listens_for(Table, "before_create")
def without_checks(table: Table, connection: Any, **kw: Any) -> None:
    """The suite makes tables with CHECK whatever is closed, and MonetDB 11.41 has none."""
    if connection.dialect.name == "monetdb":
        for constraint in list(table.constraints):
            if isinstance(constraint, CheckConstraint):
                table.constraints.discard(constraint)
