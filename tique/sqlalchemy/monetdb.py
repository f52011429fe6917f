"""MonetDB: the SQL that it shares with PostgreSQL, and what it has of its own."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import sqlalchemy.types as sqltypes
from sqlalchemy import schema as sa_schema
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql.base import (
    PGDDLCompiler,
    PGDialect,
    PGIdentifierPreparer,
)
from sqlalchemy.engine import ObjectKind
from sqlalchemy.engine.default import DefaultExecutionContext
from sqlalchemy.engine.interfaces import BindTyping
from sqlalchemy.exc import CompileError
from sqlalchemy.sql.compiler import InsertmanyvaluesSentinelOpts

from tique.sqlalchemy.conflicts import ConflictCompiler
from tique.sqlalchemy.driver import TiqueDriver
from tique.sqlalchemy.reflection import (
    CatalogReflection,
    Key,
    Relation,
    asked,
    grouped,
)
from tique.sqlalchemy.types import EngineTypeCompiler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sqlalchemy.engine import Connection
    from sqlalchemy.engine.interfaces import DBAPICursor

    from tique.sqlalchemy.reflection import Columns

_TABLE = 0
_KEYS = {Key.PRIMARY_KEY: 0, Key.UNIQUE: 1}


class MonetDBExecutionContext(DefaultExecutionContext):
    """A statement's execution."""

    def create_server_side_cursor(self) -> DBAPICursor:
        """Any cursor: MonetDB keeps the rows of a long result."""
        return self._dbapi_connection.cursor()

    def fire_sequence(self, seq: Any, type_: Any) -> Any:
        """The next value of a sequence."""
        name = self.identifier_preparer.format_sequence(seq)
        return self._execute_scalar(f"SELECT NEXT VALUE FOR {name}", type_)


class MonetDBCompiler(ConflictCompiler):
    """Queries and changes."""

    def visit_sequence(self, seq: Any, **kw: Any) -> str:
        """The next value of a sequence."""
        return f"NEXT VALUE FOR {self.preparer.format_sequence(seq)}"

    def limit_clause(self, select: Any, **kw: Any) -> str:
        """OFFSET stands alone."""
        clause = ""
        if select._limit_clause is not None:
            clause += "\n LIMIT " + self.process(select._limit_clause, **kw)
        if select._offset_clause is not None:
            clause += "\n OFFSET " + self.process(select._offset_clause, **kw)
        return clause

    def fetch_clause(self, select: Any, **kw: Any) -> str:
        """LIMIT, which is all that MonetDB has.

        Raises
        ------
        CompileError
            PERCENT or WITH TIES is asked for.
        """
        options = select._fetch_clause_options
        if options["percent"] or options["with_ties"]:
            raise CompileError("MonetDB has neither FETCH … PERCENT nor WITH TIES")
        clause = "\n LIMIT " + self.process(select._fetch_clause, **kw)
        if select._offset_clause is not None:
            clause += "\n OFFSET " + self.process(select._offset_clause, **kw)
        return clause

    def visit_is_distinct_from_binary(
        self, binary: Any, operator: Any, **kw: Any
    ) -> str:
        """A CASE: there is no such operator."""
        return self._distinct(binary, "FALSE", "TRUE", **kw)

    def visit_is_not_distinct_from_binary(
        self, binary: Any, operator: Any, **kw: Any
    ) -> str:
        """A CASE: there is no such operator."""
        return self._distinct(binary, "TRUE", "FALSE", **kw)

    def _distinct(self, binary: Any, same: str, other: str, **kw: Any) -> str:
        left, right = self.process(binary.left, **kw), self.process(binary.right, **kw)
        return (
            f"CASE WHEN {left} = {right} OR ({left} IS NULL AND {right} IS NULL) "
            f"THEN {same} ELSE {other} END"
        )

    def visit_ne_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """The standard's operator; MonetDB has no other."""
        return (
            f"{self.process(binary.left, **kw)} <> {self.process(binary.right, **kw)}"
        )

    def visit_bitwise_xor_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """A function."""
        left, right = self.process(binary.left, **kw), self.process(binary.right, **kw)
        return f"bit_xor({left}, {right})"

    def visit_empty_set_expr(self, element_types: Any, **kw: Any) -> str:
        """No rows."""
        text: str = super().visit_empty_set_expr(element_types, **kw)
        return text.replace("1!=1", "1<>1")

    def visit_empty_set_op_expr(self, type_: Any, expand_op: Any, **kw: Any) -> str:
        """No rows."""
        text: str = super().visit_empty_set_op_expr(type_, expand_op, **kw)
        return text.replace("!=", "<>")

    def render_bind_cast(self, type_: Any, dbapi_type: Any, sqltext: str) -> str:
        """A cast of a literal."""
        kind = self.dialect.type_compiler_instance.process(dbapi_type)
        return f"CAST({sqltext} AS {kind})"

    def visit_json_getitem_op_binary(
        self, binary: Any, operator: Any, **kw: Any
    ) -> str:
        """Refuse a member of a JSON value.

        Raises
        ------
        CompileError
            In any case.
        """
        raise CompileError(
            "MonetDB has no operator for a member of a JSON value: json.filter() gives "
            "an array of what it finds; call that, or take the whole value"
        )

    visit_json_path_getitem_op_binary = visit_json_getitem_op_binary


class MonetDBTypeCompiler(EngineTypeCompiler):
    """Names of types."""

    single = "REAL"

    def visit_INTERVAL(self, type_: Any, **kw: Any) -> str:
        """Of seconds and fractions, in days too: one of months is another type."""
        return f"INTERVAL {type_.fields or 'SECOND'}"

    def visit_VARCHAR(self, type_: Any, **kw: Any) -> str:
        """A text without a length is a CLOB."""
        return "CLOB" if type_.length is None else f"VARCHAR({type_.length})"

    def visit_TEXT(self, type_: Any, **kw: Any) -> str:
        """MonetDB's name."""
        return "CLOB"

    def visit_TIME(self, type_: Any, **kw: Any) -> str:
        """Of microseconds, which a TIME without digits has not."""
        return "TIME(6) WITH TIME ZONE" if type_.timezone else "TIME(6)"


class MonetDBDDLCompiler(PGDDLCompiler):
    """DDL."""

    def visit_identity_column(self, identity: Any, **kw: Any) -> str:
        """An identity, which takes other values too, whatever it is called."""
        options = self.get_identity_options(identity)
        return "GENERATED ALWAYS AS IDENTITY" + (f" ({options})" if options else "")

    def visit_create_index(self, create: Any, **kw: Any) -> str:
        """A unique index is a constraint: MonetDB's own lets duplicates in."""
        index = create.element
        if not index.unique:
            text: str = super().visit_create_index(create, **kw)
            return text
        columns = ", ".join(
            self.sql_compiler.process(column, include_table=False, literal_binds=True)
            for column in index.expressions
        )
        table = self.preparer.format_table(index.table)
        name = self._prepared_index_name(index, include_schema=False)
        return f"ALTER TABLE {table} ADD CONSTRAINT {name} UNIQUE ({columns})"

    def visit_drop_index(self, drop: Any, **kw: Any) -> str:
        """The same."""
        index = drop.element
        if not index.unique:
            text: str = super().visit_drop_index(drop, **kw)
            return text
        table = self.preparer.format_table(index.table)
        name = self._prepared_index_name(index, include_schema=False)
        return f"ALTER TABLE {table} DROP CONSTRAINT {name}"

    def get_identity_options(self, identity_options: Any) -> str:
        """Options of a sequence; NO MINVALUE and NO MAXVALUE are those without a word."""
        options: str = super().get_identity_options(identity_options)
        return re.sub(r"\s*\bNO (MINVALUE|MAXVALUE)\b", "", options).strip()

    def get_column_specification(self, column: Any, **kwargs: Any) -> str:
        """A column; one that counts is MonetDB's AUTO_INCREMENT."""
        if not _counts(column):
            text: str = super().get_column_specification(column, **kwargs)
            return text
        kind: str = self.dialect.type_compiler_instance.process(
            column.type, type_expression=column, identifier_preparer=self.preparer
        )
        null = "" if column.nullable else " NOT NULL"
        return f"{self.preparer.format_column(column)} {kind} AUTO_INCREMENT{null}"


OWN_SEQUENCE = r'next value for "\w+"\."seq_\d+"'
"""The default of a column that counts, as MonetDB shows it: its sequence goes with it."""


def _counts(column: Any) -> bool:
    default, in_server = column.default, column.server_default
    if column.identity is not None:
        return False
    if in_server is not None:
        text = getattr(getattr(in_server, "arg", None), "text", "")
        return re.fullmatch(OWN_SEQUENCE, text) is not None
    return bool(
        column.primary_key
        and column is column.table._autoincrement_column
        and (
            default is None
            or (isinstance(default, sa_schema.Sequence) and default.optional)
        )
    )


_WORDS = (
    "add alter always anti any auto_increment begin between by call cast commit "
    "constraint lateral continue copy corresponding cross cube current_date current_time current_timestamp "
    "current_user cache cycle declare delete drop escape every except external extract "
    "for full function generated grouping if ilike import index insert into is join "
    "key left like limit local localtime localtimestamp loader match merge minvalue "
    "maxvalue natural no nocycle nomaxvalue nominvalue offset on or order others over "
    "partition path position preserve privileges procedure public replace reference "
    "references remote rename replica restart restrict return returns revoke right role "
    "rollback rollup sample savepoint schema sequence sets split start statement temp "
    "temporary then timestamp to trace transaction truncate type unbounded union unlogged "
    "update using value values view when where while with work year month day hour "
    "minute second zone data share boolean date time interval blob"
)


class MonetDBIdentifierPreparer(PGIdentifierPreparer):
    """Names."""

    reserved_words = PGIdentifierPreparer.reserved_words | set(_WORDS.split())
    illegal_initial_characters = {  # noqa: RUF012 - as SQLAlchemy has it
        *"0123456789$_"
    }


_PLAIN = re.compile(r'^"(\w+)"(?:\(\))?$')
"""A default that is a word, such as ``"current_timestamp"()``."""

_TYPES: dict[str, Any] = {
    "bigint": sqltypes.BIGINT,
    "blob": sqltypes.BLOB,
    "boolean": sqltypes.BOOLEAN,
    "clob": sqltypes.TEXT,
    "date": sqltypes.DATE,
    "double": sqltypes.DOUBLE,
    "hugeint": sqltypes.NUMERIC,
    "int": sqltypes.INTEGER,
    "json": sqltypes.JSON,
    "oid": sqltypes.BIGINT,
    "real": sqltypes.REAL,
    "smallint": sqltypes.SMALLINT,
    "time": sqltypes.TIME,
    "timestamp": sqltypes.TIMESTAMP,
    "tinyint": sqltypes.SMALLINT,
    "uuid": sqltypes.UUID,
}


_FIELDS = (
    *("YEAR", "YEAR TO MONTH", "MONTH", "DAY", "DAY TO HOUR", "DAY TO MINUTE"),
    *("DAY TO SECOND", "HOUR", "HOUR TO MINUTE", "HOUR TO SECOND", "MINUTE"),
    *("MINUTE TO SECOND", "SECOND"),
)
"""The fields of intervals, by MonetDB's numbers of them, which begin with 1."""


def type_of(name: str, digits: int, scale: int) -> Any:
    """SQLAlchemy's type for MonetDB's description of one."""
    match name:
        case "varchar":
            return sqltypes.VARCHAR(digits) if digits else sqltypes.TEXT()
        case "char":
            return sqltypes.CHAR(digits)
        case "decimal":
            return sqltypes.DECIMAL(digits, scale)
        case "timestamptz":
            return sqltypes.TIMESTAMP(timezone=True)
        case "timetz":
            return sqltypes.TIME(timezone=True)
        case "month_interval" | "day_interval" | "sec_interval":
            return Interval(fields=_FIELDS[digits - 1])
    return _TYPES.get(name, sqltypes.NullType)()


class Interval(postgresql.INTERVAL):
    """A span of time."""

    @classmethod
    def adapt_emulated_to_native(cls, interval: Any, **kw: Any) -> Interval:
        """The same, which MonetDB has."""
        return cls()

    def literal_processor(self, dialect: Any) -> Callable[[timedelta], str]:
        """A literal of seconds, without a fraction of zeros."""

        def literal(value: timedelta) -> str:
            seconds = Decimal(value // timedelta(milliseconds=1)) / 1000
            return f"INTERVAL '{seconds:f}' SECOND"

        return literal


class MonetDBDialect(TiqueDriver, CatalogReflection, PGDialect):
    """``monetdb+tique://``."""

    name = "monetdb"
    supports_statement_cache = True
    supports_constraint_comments = False
    bind_typing = BindTyping.NONE
    supports_native_enum = False
    _backslash_escapes = True
    preexecute_autoincrement_sequences = False
    supports_smallserial = True
    insertmanyvalues_implicit_sentinel = InsertmanyvaluesSentinelOpts.ANY_AUTOINCREMENT
    max_identifier_length = 1024
    statement_compiler = MonetDBCompiler
    ddl_compiler = MonetDBDDLCompiler
    type_compiler_cls = MonetDBTypeCompiler
    preparer = MonetDBIdentifierPreparer
    execution_ctx_cls = MonetDBExecutionContext
    colspecs = {  # noqa: RUF012 - as SQLAlchemy has it
        **TiqueDriver.tique_colspecs,
        sqltypes.Interval: Interval,
        sqltypes.Uuid: postgresql.base.PGUuid,
    }

    def _get_server_version_info(self, connection: Connection) -> tuple[int, ...]:
        version = connection.exec_driver_sql(
            "SELECT value FROM sys.environment WHERE name = 'monet_version'"
        ).scalar()
        return tuple(map(int, re.findall(r"\d+", version or "")[:3]))

    def _get_default_schema_name(self, connection: Connection) -> str:
        name: str = connection.exec_driver_sql("SELECT CURRENT_SCHEMA").scalar_one()
        return name

    # Reflection

    def schemas(self, connection: Connection) -> list[str]:
        """The application's schemas."""
        found = connection.exec_driver_sql(
            "SELECT name FROM sys.schemas WHERE NOT system OR name = 'sys' "
            "ORDER BY name"
        )
        return list(found.scalars())

    def sequences(self, connection: Connection, schema: str) -> list[str]:
        """The sequences of a schema, but for those of columns."""
        found = asked(
            connection,
            "SELECT q.name FROM sys.sequences AS q "
            "JOIN sys.schemas AS s ON s.id = q.schema_id "
            "WHERE s.name = :schema ORDER BY q.name",
            schema=schema,
        )
        return [name for name in found.scalars() if not name.startswith("seq_")]

    def relations(self, connection: Connection, schema: str) -> list[Relation]:
        """Tables and views of a schema."""
        rows = asked(
            connection,
            "SELECT t.name, t.type, c.remark, t.query FROM sys.tables AS t "
            "JOIN sys.schemas AS s ON s.id = t.schema_id "
            "LEFT JOIN sys.comments AS c ON c.id = t.id "
            "WHERE s.name = :schema AND NOT t.system AND t.type IN (0, 1) "
            "ORDER BY t.name",
            schema=schema,
        )
        return [
            Relation(
                name,
                ObjectKind.TABLE if kind == _TABLE else ObjectKind.VIEW,
                comment=comment,
                definition=definition,
            )
            for name, kind, comment, definition in rows
        ]

    def columns(self, connection: Connection, schema: str) -> dict[str, list[Any]]:
        """Columns of a schema's tables and views."""
        rows = asked(
            connection,
            "SELECT t.name, c.name, c.type, c.type_digits, c.type_scale, "
            'c."null", c."default", m.remark FROM sys.columns AS c '
            "JOIN sys.tables AS t ON t.id = c.table_id "
            "JOIN sys.schemas AS s ON s.id = t.schema_id "
            "LEFT JOIN sys.comments AS m ON m.id = c.id "
            "WHERE s.name = :schema AND NOT t.system ORDER BY t.name, c.number",
            schema=schema,
        )
        return {
            table: [
                {
                    "name": name,
                    "type": type_of(kind, digits, scale),
                    "nullable": nullable,
                    "default": _PLAIN.sub(r"\1", default or "") or None,
                    "autoincrement": (default or "").startswith("next value for"),
                    "comment": comment,
                }
                for name, kind, digits, scale, nullable, default, comment in columns
            ]
            for table, columns in grouped(rows).items()
        }

    def keys(
        self, connection: Connection, schema: str, kind: Key
    ) -> dict[str, Columns]:
        """Keys of a schema's tables."""
        rows = asked(
            connection,
            "SELECT t.name, k.name, o.name FROM sys.keys AS k "
            "JOIN sys.objects AS o ON o.id = k.id "
            "JOIN sys.tables AS t ON t.id = k.table_id "
            "JOIN sys.schemas AS s ON s.id = t.schema_id "
            "WHERE s.name = :schema AND k.type = :kind ORDER BY t.name, k.name, o.nr",
            schema=schema,
            kind=_KEYS[kind],
        )
        return _by_name(rows)

    def checks(self, connection: Connection, schema: str) -> dict[str, list[Any]]:
        """None: MonetDB 11.41 has no CHECK."""
        return {}

    def indexes(self, connection: Connection, schema: str) -> dict[str, list[Any]]:
        """Indexes of a schema's tables, but for those of keys."""
        rows = asked(
            connection,
            "SELECT t.name, i.name, o.name FROM sys.idxs AS i "
            "JOIN sys.objects AS o ON o.id = i.id "
            "JOIN sys.tables AS t ON t.id = i.table_id "
            "JOIN sys.schemas AS s ON s.id = t.schema_id "
            # 11.41's NOT IN drops the tables without a key.
            "WHERE s.name = :schema AND NOT EXISTS (SELECT 1 FROM sys.keys AS k "
            "WHERE k.table_id = i.table_id AND k.name = i.name) "
            "ORDER BY t.name, i.name, o.nr",
            schema=schema,
        )
        shown = {
            table: [_index(name, columns) for name, columns in indexes]
            for table, indexes in _by_name(rows).items()
        }
        for table, keys in self.keys(connection, schema, Key.UNIQUE).items():
            shown.setdefault(table, []).extend(
                {**_index(name, columns), "unique": True, "duplicates_constraint": name}
                for name, columns in keys
            )
        for indexes in shown.values():
            indexes.sort(key=lambda index: str(index["name"]))
        return shown


def _by_name(rows: Iterable[Any]) -> dict[str, Columns]:
    """Columns by their table, and by the key or index that has them."""
    found: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for table, name, column in rows:
        found[table].setdefault(name, []).append(column)
    return {table: list(named.items()) for table, named in found.items()}


def _index(name: str, columns: list[str]) -> dict[str, Any]:
    return {
        "name": name,
        "unique": False,
        "column_names": columns,
        "include_columns": [],
        "dialect_options": {},
    }
