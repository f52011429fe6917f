"""The module that Django looks for: its wrapper of PostgreSQL, with tique's connections.

What Django asks psycopg for beyond PEP 249 is done here: quoting without a connection of libpq's,
JSON as text, naive times. Databases are made and dropped without tique, which a database
has to be there for.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import django.db.backends.postgresql.base as postgresql
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.base.schema import (
    BaseDatabaseSchemaEditor as BaseSchemaEditor,
)
from django.db.backends.postgresql.features import DatabaseFeatures as Features
from django.db.backends.postgresql.introspection import (
    DatabaseIntrospection as Introspection,
)
from django.db.backends.postgresql.operations import DatabaseOperations as Operations
from django.db.backends.postgresql.psycopg_any import IsolationLevel
from django.db.backends.postgresql.psycopg_any import sql as psycopg_sql
from django.db.backends.postgresql.schema import DatabaseSchemaEditor as SchemaEditor

import tique

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

_PSYCOPGS = {
    "assume_role",
    "context",
    "cursor_factory",
    "pool",
    "prepare_threshold",
    "server_side_binding",
}
"""Options that are psycopg's or its pool's."""


class DatabaseFeatures(Features):
    """What PostgreSQL can do, through tique."""

    # A column that a grouped key decides has to be grouped too.
    allows_group_by_selected_pks = False


class DatabaseIntrospection(Introspection):
    """Django's questions to the catalog, and tique's FOREIGN KEYs, which are not there."""

    def get_relations(self, cursor: Any, table_name: str) -> dict[str, Any]:
        """Columns that refer to another table's column."""
        return {
            column: (referred, key.referred_table)
            for key in self._foreign_keys(table_name)
            for column, referred in zip(key.columns, key.referred_columns, strict=True)
        }

    def get_constraints(self, cursor: Any, table_name: str) -> dict[str, Any]:
        """Constraints and indexes by their names."""
        found: dict[str, Any] = super().get_constraints(cursor, table_name)
        for key in self._foreign_keys(table_name):
            found[key.name] = {
                "columns": list(key.columns),
                "primary_key": False,
                "unique": False,
                "foreign_key": (key.referred_table, key.referred_columns[0]),
                "check": False,
                "index": False,
                "definition": None,
                "options": None,
            }
        return found

    def _foreign_keys(self, table_name: str) -> list[Any]:
        found = self.connection.connection.foreign_keys()
        return [key for key in found if key.table == table_name]


class DatabaseOperations(Operations):
    """SQL of Django's own."""

    def compose_sql(self, sql: str, params: Sequence[Any] | None) -> str:
        """A statement with its parameters as literals."""
        return sql % tuple(map(_literal, params)) if params else sql

    def sql_flush(
        self,
        style: Any,
        tables: Sequence[str],
        *,
        reset_sequences: bool = False,
        allow_cascade: bool = False,
    ) -> list[str]:
        """Statements that empty tables; numbers begin again one sequence after the other."""
        statements: list[str] = super().sql_flush(
            style, tables, reset_sequences=False, allow_cascade=allow_cascade
        )
        if not reset_sequences:
            return statements
        see = self.connection.introspection
        with self.connection.cursor() as cursor:
            sequences = [
                found for table in tables for found in see.get_sequences(cursor, table)
            ]
        statements += self.sequence_reset_by_name_sql(style, sequences)
        return statements

    def get_db_converters(self, expression: Any) -> list[Any]:
        """What makes Django's values of tique's."""
        converters: list[Any] = super().get_db_converters(expression)
        kind = expression.output_field.get_internal_type()
        if kind == "GenericIPAddressField":
            converters.append(_address_text)
        elif kind == "JSONField":
            converters.append(_json_text)
        elif kind == "DateTimeField" and not settings.USE_TZ:
            converters.append(_naive)
        return converters


class DatabaseSchemaEditor(SchemaEditor):
    """DDL, without SET CONSTRAINTS in the same text.

    PostgreSQL alters no table that has checks of FOREIGN KEYs to be made; tique does.
    """

    sql_create_column_inline_fk = (
        "CONSTRAINT %(name)s REFERENCES %(to_table)s(%(to_column)s)%(deferrable)s"
    )
    sql_delete_fk = SchemaEditor.sql_delete_constraint
    sql_update_with_default = BaseSchemaEditor.sql_update_with_default

    def quote_value(self, value: Any) -> str:
        """A literal."""
        return _literal(value)


class DatabaseWrapper(postgresql.DatabaseWrapper):
    """A connection of Django's, over one of tique's."""

    Database = tique
    SchemaEditorClass = DatabaseSchemaEditor
    features_class = DatabaseFeatures
    introspection_class = DatabaseIntrospection
    ops_class = DatabaseOperations

    def get_connection_params(self) -> dict[str, Any]:
        """``tique.connect``'s arguments for Django's settings."""
        given = self.settings_dict
        options = dict(given["OPTIONS"])
        if psycopgs := _PSYCOPGS & options.keys():
            raise ImproperlyConfigured(
                f"OPTIONS have {', '.join(sorted(psycopgs))}, which tique does not know: "
                "leave them out"
            )
        level = options.pop("isolation_level", IsolationLevel.READ_COMMITTED)
        account = quote(given["USER"], safe="")
        if given["PASSWORD"]:
            account += ":" + quote(given["PASSWORD"], safe="")
        host = given["HOST"]
        if host.startswith("/"):
            options["host"], host = host, ""
        if given["PORT"] and not host:
            options["port"] = given["PORT"]
        place = f"{host}:{given['PORT']}" if given["PORT"] and host else host
        name = quote(given["NAME"] or "postgres", safe="")
        url = f"postgresql://{account}{'@' if account else ''}{place}/{name}"
        if options:
            url += "?" + urlencode(options, quote_via=quote)
        return {
            "database": url,
            "transactional_ddl": True,
            "isolation_level": IsolationLevel(level).name.replace("_", " "),
        }

    def get_new_connection(self, conn_params: dict[str, Any]) -> tique.Connection:
        """Connect."""
        params = dict(conn_params)
        return tique.connect(params.pop("database"), **params)

    def _configure_connection(self, connection: Any) -> bool:
        with connection.cursor() as cursor:
            cursor.execute(f"SET TIME ZONE {_literal(self.timezone_name)}")
        return True

    def ensure_timezone(self) -> bool:
        """Bring the connection's time zone to that of the settings."""
        return self.connection is not None and self._configure_connection(
            self.connection
        )

    @contextmanager
    def _nodb_cursor(self) -> Iterator[Any]:
        given = {**self.settings_dict, "NAME": None}
        native = postgresql.DatabaseWrapper(given, alias=NO_DB_ALIAS)
        try:
            with native.cursor() as cursor:
                yield cursor
        finally:
            native.close()

    def create_cursor(self, name: str | None = None) -> Any:
        """A cursor; with a name, one whose rows wait in the server."""
        return self.connection.cursor(name) if name else self.connection.cursor()

    def is_usable(self) -> bool:
        """Whether the connection still answers."""
        if self.connection is None:
            return False
        try:
            with self.connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        except tique.Error:
            return False
        return True

    @property
    def pg_version(self) -> int:
        """The server's version, as libpq has it."""
        with self.temporary_connection() as cursor:
            cursor.execute("SELECT current_setting('server_version_num')")
            return int(cursor.fetchone()[0])


def _literal(value: Any) -> str:
    return str(psycopg_sql.Literal(value).as_string(None)).strip()


def _address_text(value: Any, expression: Any, connection: Any) -> Any:
    return None if value is None else str(value)


def _json_text(value: Any, expression: Any, connection: Any) -> Any:
    """Django parses JSON by the decoder of the field."""
    return None if value is None else json.dumps(value)


def _naive(value: datetime | None, expression: Any, connection: Any) -> Any:
    if value is None or value.tzinfo is None:
        return value
    return value.astimezone(connection.timezone).replace(tzinfo=None)
