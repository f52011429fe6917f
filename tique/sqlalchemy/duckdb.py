"""DuckDB: the SQL that it shares with PostgreSQL, and what it has of its own."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import sqlalchemy.types as sqltypes
from sqlalchemy import cast as sa_cast
from sqlalchemy import event, schema
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql.base import (
    PGDDLCompiler,
    PGDialect,
    PGIdentifierPreparer,
)
from sqlalchemy.engine import ObjectKind
from sqlalchemy.sql import ddl

from tique.sqlalchemy.conflicts import ConflictCompiler
from tique.sqlalchemy.driver import TiqueDriver
from tique.sqlalchemy.postgresql import PostgreSQLExecutionContext
from tique.sqlalchemy.reflection import (
    CatalogReflection,
    Key,
    Relation,
    asked,
    grouped,
)
from tique.sqlalchemy.types import EngineTypeCompiler

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from tique.sqlalchemy.reflection import Columns


_WORDS = (
    "anti asof at by collation concurrently describe glob lambda lateral pivot "
    "pivot_longer pivot_wider positional qualify semi show summarize tablesample "
    "unpack unpivot"
)
"""Words that are no names without quotes, though PostgreSQL has them as such."""


class DuckDBIdentifierPreparer(PGIdentifierPreparer):
    """Names."""

    reserved_words = PGIdentifierPreparer.reserved_words | set(_WORDS.split())


class DuckDBCompiler(ConflictCompiler):
    """Queries and changes."""

    def visit_json_getitem_op_binary(
        self, binary: Any, operator: Any, _cast_applied: bool = False, **kw: Any
    ) -> str:
        """A member of an object, an element of an array, or what is at the end of a path."""
        if not _cast_applied and binary.type._type_affinity is not sqltypes.JSON:
            return self.process(sa_cast(binary, binary.type), _cast_applied=True, **kw)
        arrow = " ->> " if _cast_applied else " -> "
        text: str = self._generate_generic_binary(
            binary, arrow, **{**kw, "eager_grouping": True}
        )
        return text

    visit_json_path_getitem_op_binary = visit_json_getitem_op_binary

    def visit_bitwise_xor_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """A function."""
        left, right = self.process(binary.left, **kw), self.process(binary.right, **kw)
        return f"xor({left}, {right})"


class Interval(postgresql.INTERVAL):
    """An interval."""

    @classmethod
    def adapt_emulated_to_native(cls, interval: Any, **kw: Any) -> Interval:
        """DuckDB's, for SQLAlchemy's."""
        return cls()

    def literal_processor(self, dialect: Any) -> Any:
        """A call that makes one."""
        return lambda value: f"to_microseconds({value // timedelta(microseconds=1)})"


class JSONPath(sqltypes.JSON.JSONPathType):
    """A path in JSON, as DuckDB writes it: ``$."a"[0]``."""

    def _written(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        return "$" + "".join(
            f"[{part}]" if isinstance(part, int) else f'."{part}"' for part in value
        )

    def bind_processor(self, dialect: Any) -> Any:
        """Its text."""
        return self._written

    def literal_processor(self, dialect: Any) -> Any:
        """Its text in quotes."""
        quoted = sqltypes.String().literal_processor(dialect)
        return lambda value: quoted(self._written(value))


class DuckDBTypeCompiler(EngineTypeCompiler):
    """Names of types."""

    single = "FLOAT"

    def visit_TIME(self, type_: Any, **kw: Any) -> str:
        """Of microseconds, always."""
        return "TIME WITH TIME ZONE" if type_.timezone else "TIME"

    def visit_INTERVAL(self, type_: Any, **kw: Any) -> str:
        """Without fields and precision."""
        return "INTERVAL"

    def visit_BIT(self, type_: Any, **kw: Any) -> str:
        """Of any length."""
        return "BIT"

    def visit_ENUM(self, type_: Any, *args: Any, **kw: Any) -> str:
        """By its labels, if it was made in its column and has no name."""
        if type_.name is None:
            label = sqltypes.String().literal_processor(self.dialect)
            return f"ENUM({', '.join(map(label, type_.enums))})"
        name: str = super().visit_ENUM(type_, *args, **kw)
        return name


class DuckDBDDLCompiler(PGDDLCompiler):
    """DDL."""

    def get_column_specification(self, column: Any, **kwargs: Any) -> str:
        """A column; one that counts has a sequence of its own as its default."""
        sequence = own_sequence(column)
        if sequence is None:
            text: str = super().get_column_specification(column, **kwargs)
            return text
        kind: str = self.dialect.type_compiler_instance.process(
            column.type, type_expression=column, identifier_preparer=self.preparer
        )
        preparer: Any = self.preparer
        name = preparer._format_sequence_string_literal(sequence)
        column_name = preparer.format_column(column)
        null = " NOT NULL" if not column.nullable else ""
        return f"{column_name} {kind} DEFAULT nextval({name}){null}"


OWN_SEQUENCE = r"""nextval\('"?(\w+"?\.)?"?{table}_{column}_seq"?'\)"""
"""The default of a column that counts, as DuckDB shows it."""


def _is_own(default: Any, column: Any) -> bool:
    """Whether a default was reflected of the column's own sequence."""
    own = OWN_SEQUENCE.format(
        table=re.escape(column.table.name), column=re.escape(column.name)
    )
    text = getattr(getattr(default, "arg", None), "text", "")
    return re.fullmatch(own, text) is not None


def own_sequence(column: Any) -> schema.Sequence | None:
    """The sequence of a column that counts, as PostgreSQL makes for SERIAL and IDENTITY."""
    table, identity = column.table, column.identity
    name = f"{table.name}_{column.name}_seq"
    if identity is not None:
        options = {
            option: getattr(identity, option)
            for option in ("start", "increment", "minvalue", "maxvalue", "cycle")
        }
        return schema.Sequence(name, schema=table.schema, **options)
    if (
        not column.primary_key
        or column is not table._autoincrement_column
        or not (column.server_default is None or _is_own(column.server_default, column))
        or not (
            column.default is None
            or (isinstance(column.default, schema.Sequence) and column.default.optional)
        )
    ):
        return None
    return schema.Sequence(name, schema=table.schema)


def _is_ours(connection: Connection | None) -> bool:
    """Whether it is one to DuckDB; without one there is nothing to run."""
    return connection is not None and isinstance(connection.dialect, DuckDBDialect)


@event.listens_for(schema.Table, "before_create")
def _create_sequences(table: schema.Table, connection: Connection, **kw: Any) -> None:
    if _is_ours(connection):
        for sequence in filter(None, map(own_sequence, table.columns)):
            connection.execute(ddl.CreateSequence(sequence, if_not_exists=True))


@event.listens_for(schema.Table, "after_drop")
def _drop_sequences(table: schema.Table, connection: Connection, **kw: Any) -> None:
    if _is_ours(connection):
        for sequence in filter(None, map(own_sequence, table.columns)):
            connection.execute(ddl.DropSequence(sequence, if_exists=True))


_TYPES: dict[str, Any] = {
    "BIGINT": sqltypes.BIGINT,
    "BIT": postgresql.BIT,
    "BLOB": sqltypes.BLOB,
    "BOOLEAN": sqltypes.BOOLEAN,
    "DATE": sqltypes.DATE,
    "DOUBLE": sqltypes.DOUBLE,
    "FLOAT": sqltypes.REAL,
    "HUGEINT": sqltypes.NUMERIC,
    "INTEGER": sqltypes.INTEGER,
    "INTERVAL": postgresql.INTERVAL,
    "JSON": postgresql.JSON,
    "SMALLINT": sqltypes.SMALLINT,
    "TIME": sqltypes.TIME,
    "TIMESTAMP": sqltypes.TIMESTAMP,
    "TINYINT": sqltypes.SMALLINT,
    "UBIGINT": sqltypes.BIGINT,
    "UINTEGER": sqltypes.BIGINT,
    "USMALLINT": sqltypes.INTEGER,
    "UTINYINT": sqltypes.SMALLINT,
    "UUID": sqltypes.UUID,
    "VARCHAR": sqltypes.VARCHAR,
}


Enums = dict[tuple[str, ...], tuple[str, str | None]]
"""The name and schema of the type that was created with these labels."""


def type_of(name: str, enums: Enums) -> Any:
    """SQLAlchemy's type for DuckDB's name of one."""
    if name.endswith("[]"):
        return postgresql.ARRAY(type_of(name[:-2], enums))
    if name == "TIMESTAMP WITH TIME ZONE":
        return sqltypes.TIMESTAMP(timezone=True)
    if name == "TIME WITH TIME ZONE":
        return sqltypes.TIME(timezone=True)
    if found := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", name):
        return sqltypes.DECIMAL(int(found[1]), int(found[2]))
    if name.startswith("ENUM("):
        labels = re.findall(r"'((?:[^']|'')*)'", name)
        texts = tuple(label.replace("''", "'") for label in labels)
        if texts in enums:
            own, schema = enums[texts]
            return postgresql.ENUM(*texts, name=own, schema=schema)
        return postgresql.ENUM(*texts, create_type=False)
    return _TYPES.get(name, sqltypes.NullType)()


class DuckDBDialect(TiqueDriver, CatalogReflection, PGDialect):
    """``duckdb+tique:///``."""

    name = "duckdb"
    supports_statement_cache = True
    supports_identity_columns = False
    statement_compiler = DuckDBCompiler
    ddl_compiler = DuckDBDDLCompiler
    preparer = DuckDBIdentifierPreparer
    type_compiler_cls = DuckDBTypeCompiler
    execution_ctx_cls = PostgreSQLExecutionContext
    colspecs = {  # noqa: RUF012 - as SQLAlchemy has it
        **PGDialect.colspecs,
        **TiqueDriver.tique_colspecs,
        sqltypes.JSON.JSONPathType: JSONPath,
        sqltypes.Interval: Interval,
        postgresql.INTERVAL: Interval,
    }
    div_is_floordiv = False
    supports_constraint_comments = False

    def _get_server_version_info(self, connection: Connection) -> tuple[int, ...]:
        version = connection.exec_driver_sql("SELECT version()").scalar_one()
        return tuple(map(int, re.findall(r"\d+", version)[:3]))

    def _get_default_schema_name(self, connection: Connection) -> str:
        name: str = connection.exec_driver_sql("SELECT current_schema()").scalar_one()
        return name

    # Reflection

    def schemas(self, connection: Connection) -> list[str]:
        """The application's schemas."""
        found = connection.exec_driver_sql(
            "SELECT schema_name FROM duckdb_schemas() WHERE database_name = "
            "current_database() AND (NOT internal OR schema_name = 'main') ORDER BY schema_name"
        )
        return list(found.scalars())

    def sequences(self, connection: Connection, schema: str) -> list[str]:
        """The sequences of a schema."""
        found = asked(
            connection,
            "SELECT sequence_name FROM duckdb_sequences() "
            "WHERE schema_name = :schema AND database_name = current_database() AND NOT temporary ORDER BY 1",
            schema=schema,
        )
        return list(found.scalars())

    def relations(self, connection: Connection, schema: str) -> list[Relation]:
        """Tables and views of a schema."""
        rows = asked(
            connection,
            "SELECT table_name, true, comment, NULL FROM duckdb_tables() "
            "WHERE schema_name = :schema AND database_name = current_database() AND NOT internal "
            "UNION ALL SELECT view_name, false, comment, sql FROM duckdb_views() "
            "WHERE schema_name = :schema AND database_name = current_database() AND NOT internal ORDER BY 1",
            schema=schema,
        )
        return [
            Relation(
                name,
                ObjectKind.TABLE if is_table else ObjectKind.VIEW,
                comment=comment,
                definition=definition,
            )
            for name, is_table, comment, definition in rows
        ]

    def columns(self, connection: Connection, schema: str) -> dict[str, list[Any]]:
        """Columns of a schema's tables and views."""
        # DuckDB 1.5 does not say which columns are generated.
        tells = self.server_version_info and self.server_version_info >= (2,)
        generated = "is_generated" if tells else "false"
        rows = asked(
            connection,
            "SELECT table_name, column_name, data_type, is_nullable, column_default, "
            f"comment, {generated} FROM duckdb_columns() "
            "WHERE schema_name = :schema AND database_name = current_database() AND NOT internal ORDER BY column_index",
            schema=schema,
        )
        found = grouped(rows)
        enums = self._enums(connection)
        return {
            table: [_column(enums, *column) for column in columns]
            for table, columns in found.items()
        }

    def _enums(self, connection: Connection) -> Enums:
        """Types with labels: a column shows the labels of its own, and not its name."""
        rows = asked(
            connection,
            "SELECT labels, type_name, nullif(schema_name, :schema) FROM duckdb_types() "
            "WHERE database_name = current_database() AND NOT internal AND labels IS NOT NULL "
            "ORDER BY 3 DESC NULLS FIRST, 2 DESC",
            schema=self.default_schema_name,
        )
        return {tuple(labels): (name, schema) for labels, name, schema in rows}

    def _constraints(
        self, connection: Connection, schema: str, kind: str
    ) -> dict[str, list[Any]]:
        rows = asked(
            connection,
            "SELECT table_name, constraint_name, constraint_column_names, expression "
            "FROM duckdb_constraints() WHERE schema_name = :schema AND database_name = current_database() "
            "AND constraint_type = :kind ORDER BY constraint_index",
            schema=schema,
            kind=kind,
        )
        return grouped(rows)

    def keys(
        self, connection: Connection, schema: str, kind: Key
    ) -> dict[str, Columns]:
        """Keys of a schema's tables."""
        found = self._constraints(connection, schema, kind.value)
        return {
            table: [(name, columns) for name, columns, _ in constraints]
            for table, constraints in found.items()
        }

    def checks(self, connection: Connection, schema: str) -> dict[str, list[Any]]:
        """CHECK constraints of a schema's tables."""
        found = self._constraints(connection, schema, "CHECK")
        return {
            table: [
                {"name": name, "sqltext": expression}
                for name, _, expression in constraints
            ]
            for table, constraints in found.items()
        }

    def indexes(self, connection: Connection, schema: str) -> dict[str, list[Any]]:
        """Indexes of a schema's tables."""
        rows = asked(
            connection,
            "SELECT table_name, index_name, is_unique, sql "
            "FROM duckdb_indexes() WHERE schema_name = :schema AND database_name = current_database() ORDER BY index_name",
            schema=schema,
        )
        return {
            table: [
                {
                    "name": name,
                    "unique": is_unique,
                    **indexed(definition),
                    "dialect_options": {},
                }
                for name, is_unique, definition in indexes
            ]
            for table, indexes in grouped(rows).items()
        }


def _column(
    enums: Enums,
    name: str,
    kind: str,
    nullable: bool,
    default: Any,
    comment: Any,
    computed: bool,
) -> dict[str, Any]:
    found = {
        "name": name,
        "type": type_of(kind, enums),
        "nullable": nullable,
        "default": default,
        "autoincrement": default is not None and "nextval(" in default,
        "comment": comment,
    }
    if computed:
        expression = re.sub(
            r"(?s)^CAST\((.*) AS [^()]+(\([^()]*\))?\)$", r"\1", default
        )
        found |= {"default": None, "computed": {"sqltext": expression}}
    return found


_PARTS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[(),]|[^'"(),]+""")
_NAME = re.compile(r'"((?:[^"]|"")*)"|([A-Za-z_][A-Za-z0-9_]*)')


def indexed(definition: str) -> dict[str, Any]:
    """What an index is on, from its CREATE INDEX: columns, and expressions if there are some."""
    depth = 0
    items: list[str] = []
    for part in _PARTS.findall(definition):
        if part == ")":
            depth -= 1
        if depth == 1 and part == ",":
            items.append("")
        elif depth:
            items[-1] += part
        if part == "(":
            depth += 1
            if depth == 1:
                items = [""]
    columns: list[str | None] = []
    expressions: list[str] = []
    for item in map(str.strip, items):
        while item.startswith("(") and item.endswith(")"):
            item = item[1:-1]
        name = _NAME.fullmatch(item)
        column = None
        if name is not None:
            column = name[2] or name[1].replace('""', '"')
        columns.append(column)
        expressions.append(column or item)
    found: dict[str, Any] = {"column_names": columns}
    if None in columns:
        found["expressions"] = expressions
    return found
