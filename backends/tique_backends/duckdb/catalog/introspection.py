"""Schemas of tables, and views, read from DuckDB's catalog.

*DEFAULT expressions, with the schema written before names of the table's own.*
DuckDB keeps their text, and looks for the sequences and macros in it in the table's schema
before it does along the session's path. A statement of tique's has the text without the
table: there the schema has to be written.

*Collations of DuckDB's columns, which decide which of their values are equal.*
So a column's collation is a part of its type here (``VARCHAR COLLATE nocase``): no value of
such a type is compared in memory. DuckDB's catalog shows a collation in the text of CREATE
TABLE alone; a plan has it with the type.

*No keys (P3).* DuckDB's indexes call equal what has the same letters, its comparisons what
the collation says. A row under ``'a'`` and one under ``'A'`` are two for the one and one
row for the other, so neither can be meant by a key. Nor can the rows of a table without a
key be told apart.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tique_backends.catalog.relations import Relations, expect_free
from tique_backends.duckdb.catalog.generated import generated_columns
from tique_backends.duckdb.catalog.paths import split_path
from tique_backends.duckdb.catalog.purity import KNOWN, asked, nodes
from tique_backends.duckdb.catalog.unique_indexes import (
    INDEXES_OF_TABLES,
    fallible,
    with_keys,
)
from tique_backends.duckdb.values.literals import is_collated
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.names import quote
from tique_rewriter.schema import Check, Column, Table, View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tique_backends.records import Row
    from tique_backends.session import Session
    from tique_rewriter.schema import Generated


_TABLES = """
SELECT schema_name, table_name, database_name, sql FROM duckdb_tables()
WHERE database_name = current_database() AND NOT internal AND NOT temporary
  AND schema_name <> 'tique'"""

_CONSTRAINTS = """
SELECT schema_name, table_name, constraint_type, constraint_column_names, expression,
  constraint_name
FROM duckdb_constraints()
WHERE database_name = current_database() AND schema_name <> 'tique'
ORDER BY constraint_index"""

_REFERENCED = """
SELECT DISTINCT schema_name, referenced_table FROM duckdb_constraints()
WHERE database_name = current_database() AND referenced_table IS NOT NULL"""

# A macro of the application's may be called lower.
_SPELLED = f"""
SELECT schema_name, table_name FROM ({_TABLES}) AS t
WHERE system.main.lower(schema_name) = system.main.lower($1)
  AND system.main.lower(table_name) = system.main.lower($2)"""

_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")

USER_TABLES = """
SELECT schema_name, table_name FROM duckdb_tables()
WHERE database_name = current_database() AND NOT internal AND NOT temporary
  AND schema_name <> 'tique'
ORDER BY 1, 2"""

_VIEWS = """
SELECT view_oid, database_name, schema_name, view_name, sql FROM duckdb_views()
WHERE database_name = current_database() AND NOT internal AND NOT temporary
  AND schema_name <> 'tique'
ORDER BY view_oid"""

LAYOUTS = """
SELECT table_name, column_name FROM duckdb_columns()
WHERE database_name = current_database() AND schema_name = 'tique'
ORDER BY table_oid, column_index"""
"""A query for the columns of tique's tables: table and column name, in order."""


class Descriptions:
    """The schemas of tables. DuckDB goes through its catalog as a whole in any case."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._relations = Relations(session, width=2)

    def describe(self, schema: str, name: str, table_id: int = 0) -> Table:
        """Return a table's schema; the names are matched without regard to case.

        Raises
        ------
        EngineError
            PROGRAMMING if there is no such table, UNSUPPORTED if it has something
            whose promises tique cannot keep.
        """
        found = (schema, name)
        if not self._relations.rows(_TABLES, *found):
            spelled = self._session.execute(_SPELLED, found).fetch_all()
            if not spelled:
                raise EngineError(
                    ErrorKind.PROGRAMMING, f"there is no table {schema}.{name}"
                )
            found = spelled[0]
        return _described(self._session, self._relations.rows, found, table_id)


def describe(session: Session, schema: str, name: str) -> Table:
    """Read one table's schema, as :meth:`Descriptions.describe` does."""
    return Descriptions(session).describe(schema, name)


def _described(
    session: Session,
    ask: Callable[..., list[Row]],
    found: tuple[str, str],
    table_id: int,
) -> Table:
    schema, name = found
    ((database, definition),) = ask(_TABLES, *found)
    label = f"{schema}.{name}"
    # duckdb_columns() would go through those of every table and view there is.
    described = session.execute(
        f"DESCRIBE {quote(database)}.{quote(schema)}.{quote(name)}"
    ).fetch_all()
    words = _QUOTED.sub("", definition).upper()
    generated: tuple[Generated, ...] = ()
    if "GENERATED ALWAYS AS" in words:
        generated = generated_columns(session, schema, name, described)
    computed = {column.name for column in generated}
    place = f"{quote(database)}.{quote(schema)}.{quote(name)}"
    collated = {}
    if may_have_collations(words, [row[1] for row in described]):
        collated = collations(session, place)
    columns = tuple(
        Column(
            column,
            f"{type_name} COLLATE {collated[column]}"
            if column in collated
            else type_name,
            nullable == "NO",
            default and at_home(default, schema, ask),
        )
        for column, type_name, nullable, _, default, _ in described
        if column not in computed
    )
    # A constraint's names are as they were written there, in whichever case.
    positions = {column.name.lower(): i for i, column in enumerate(columns)}
    for column in columns:
        expect_free(label, column.name)
    if ask(_REFERENCED, *found):
        raise EngineError(
            ErrorKind.UNSUPPORTED,
            f"table {label} is referenced by another table's FOREIGN KEY constraint",
        )
    primary_key: tuple[int, ...] = ()
    unique: list[tuple[int, ...]] = []
    checks: list[Check] = []
    key_names = []
    for kind, names, expression, constraint in ask(_CONSTRAINTS, *found):
        if kind in ("PRIMARY KEY", "UNIQUE"):
            key = tuple([positions[n.lower()] for n in names])
            key_names.append((constraint, key))
        if kind == "PRIMARY KEY":
            primary_key = key
        elif kind == "UNIQUE":
            unique.append(key)
        elif kind == "CHECK":
            checks.append(Check(expression, constraint))
        elif kind == "FOREIGN KEY":
            raise EngineError(
                ErrorKind.UNSUPPORTED, f"table {label} has a FOREIGN KEY constraint"
            )
    indexes = ask(INDEXES_OF_TABLES, *found)
    table = Table(
        schema,
        name,
        columns,
        primary_key,
        tuple(unique),
        tuple(checks),
        table_id,
        key_names=tuple(key_names),
        generated=generated,
        indexed=fallible(indexes),
    )
    table = with_keys(session, table, indexes)
    check_collations(table)
    return table


def views(session: Session) -> list[View]:
    """The application's views.

    DuckDB keeps one whose tables are gone or have changed, and may be unable to read it.
    """
    found = []
    for number, database, schema, name, definition in session.execute(
        _VIEWS
    ).fetch_all():
        place = f"{quote(database)}.{quote(schema)}.{quote(name)}"
        columns: tuple[Column, ...] = ()
        fault = None
        try:
            described = session.execute(f"DESCRIBE {place}").fetch_all()
        except EngineError as error:
            fault = str(error)
        else:
            columns = tuple([Column(row[0], row[1]) for row in described])
        table = Table(schema, name, columns, id=-number, fault=fault)
        found.append(View(table, definition))
    return found


_SEQUENCES = """
SELECT schema_name, system.main.lower(sequence_name) FROM duckdb_sequences()
WHERE database_name = current_database()"""
_MACROS = """
SELECT schema_name, system.main.lower(function_name) FROM duckdb_functions()
WHERE NOT internal AND database_name = current_database()"""

_NEXT = re.compile(r"\b(nextval|currval)\('((?:[^']|'')*)'\)")
_CALL = re.compile(r"""('(?:[^']|'')*')|(?<![\w."])(\w+|"(?:[^"]|"")*")(?=\()""")
_USUAL = KNOWN | {
    "nextval",
    "currval",
    "now",
    "uuid",
    "random",
    "get_current_timestamp",
}


def at_home(text: str, schema: str, ask: Callable[..., list[Row]]) -> str:
    """The text of a DEFAULT of a table in that schema, as it is meant everywhere.

    ``ask`` gives the rows of a query that begin with two values.
    """

    def sequence(found: re.Match[str]) -> str:
        ((*above, name),) = split_path(found[2].replace("''", "'"))
        if above or not ask(_SEQUENCES, schema, name.lower()):
            return found[0]
        place = f"{quote(schema)}.{quote(name)}".replace("'", "''")
        return f"{found[1]}('{place}')"

    def call(found: re.Match[str]) -> str:
        name = found[2]
        if name is None or name.lower() in _USUAL:
            return found[0]
        bare = name.strip('"').replace('""', '"').lower()
        return f"{quote(schema)}.{name}" if ask(_MACROS, schema, bare) else name

    return _CALL.sub(call, _NEXT.sub(sequence, text))


_NAME = re.compile(r"[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)*", re.IGNORECASE)


def collations(session: Session, place: str) -> dict[str, str]:
    """The collations of a table's columns, by name, of those that have one.

    ``place`` is the table's qualified name in SQL.
    """
    plan = asked(session, "json_serialize_plan", f"SELECT * FROM {place}")
    read = next((n for n in nodes(plan) if n.get("type") == "LOGICAL_GET"), None)
    if read is None:
        raise EngineError(
            ErrorKind.UNSUPPORTED, f"the collations of {place} cannot be examined"
        )
    found = {}
    for name, kind in zip(read["names"], read["returned_types"], strict=True):
        collation = (kind["type_info"] or {}).get("collation", "")
        every = {node["collation"] for node in nodes(kind) if node.get("collation")}
        if every - {collation} or (collation and not _NAME.fullmatch(collation)):
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                f"{place} has a column with a collation that no type shows, {name}",
            )
        if collation:
            found[name] = collation
    return found


def may_have_collations(definition: str, type_names: Iterable[str]) -> bool:
    """Whether a table may have columns with collations; a nested one is not shown.

    ``definition`` is the text of CREATE TABLE without what is in quotes.
    """
    return " COLLATE " in definition or any(
        "VARCHAR" in name and name.endswith((")", "]")) for name in type_names
    )


def check_collations(table: Table) -> None:
    """Refuse a table whose columns with a collation would have to tell rows apart.

    Raises
    ------
    EngineError
        UNSUPPORTED.
    """
    collated = {i for i, column in enumerate(table.columns) if is_collated(column.type)}
    if not collated:
        return
    keys = (table.primary_key, *table.unique, *(k.columns for k in table.computed_keys))
    reason = ""
    if table.is_keyless:
        reason = "and no primary key, so that nothing tells its rows apart"
    elif any(not collated.isdisjoint(key) for key in keys):
        reason = "in a key, whose index calls other values equal than a comparison does"
    elif table.generated:
        reason = "beside a generated column, which might be compared by it"
    if reason:
        name = table.columns[min(collated)].name
        raise EngineError(
            ErrorKind.UNSUPPORTED,
            f"table {table.qualified_name} has a column with a collation, {name}, {reason}",
        )
