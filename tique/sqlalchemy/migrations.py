"""Alembic on DuckDB and MonetDB: it knows SQLAlchemy's own dialects alone.

Alembic (1.18 and later) loads this by its entry point ``alembic.plugins``, before it looks for a
dialect's implementation, so that an application's ``env.py`` needs no line about it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from alembic.ddl.base import ColumnComment
from alembic.ddl.impl import DefaultImpl
from sqlalchemy import Column, MetaData, Table
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import SetColumnComment

from tique.sqlalchemy import duckdb, monetdb

if TYPE_CHECKING:
    from alembic.runtime.plugins import Plugin
    from sqlalchemy import Index, UniqueConstraint
    from sqlalchemy.sql.compiler import DDLCompiler

_NOW = ("now", "get_current_timestamp")
_BOOLEAN = re.compile(r"cast\('([tf])' as boolean\)")
_CAST = re.compile(r"cast\((.*) as [^()]+(\([^()]*\))?\)")


class TiqueImpl(DefaultImpl):
    """Migrations by the standard's ALTER TABLE, in transactions."""

    transactional_ddl = True
    own_sequence: str
    """The default of a column that counts, as the engine shows it."""

    def autogen_column_reflect(
        self, inspector: Any, table: Any, column_info: dict[str, Any]
    ) -> None:
        """Take a sequence that is made with its column for a part of the column."""
        own = self.own_sequence.format(
            table=re.escape(table.name), column=re.escape(column_info["name"])
        )
        if re.fullmatch(own, column_info["default"] or ""):
            column_info["default"] = None
            self.memo[table.schema, table.name, column_info["name"]] = True

    def _compare_identity_default(
        self, metadata_identity: Any, inspector_identity: Any
    ) -> Any:
        """Take such a column for one with an identity of any options."""
        column = getattr(metadata_identity, "column", None)
        if column is not None and inspector_identity is None:
            table = column.table
            if (table.schema, table.name, column.name) in self.memo:
                return set(), set(), False
        return super()._compare_identity_default(metadata_identity, inspector_identity)

    def compare_server_default(
        self,
        inspector_column: Any,
        metadata_column: Any,
        rendered_metadata_default: str | None,
        rendered_inspector_default: str | None,
    ) -> bool:
        """Whether two defaults differ by more than the engine's way to write them."""
        return _canonical(rendered_metadata_default) != _canonical(
            rendered_inspector_default
        )

    def correct_for_autogen_constraints(
        self,
        conn_uniques: set[UniqueConstraint],
        conn_indexes: set[Index],
        metadata_unique_constraints: set[UniqueConstraint],
        metadata_indexes: set[Index],
    ) -> None:
        """An index of a UNIQUE constraint is a part of that."""
        conn_indexes -= {
            index for index in conn_indexes if index.info.get("duplicates_constraint")
        }


class DuckDBImpl(TiqueImpl):
    """Migrations on DuckDB."""

    __dialect__ = "duckdb"
    type_synonyms = (*TiqueImpl.type_synonyms, {"VARCHAR", "TEXT"}, {"FLOAT", "REAL"})
    own_sequence = duckdb.OWN_SEQUENCE

    def correct_for_autogen_constraints(
        self,
        conn_uniques: set[UniqueConstraint],
        conn_indexes: set[Index],
        metadata_unique_constraints: set[UniqueConstraint],
        metadata_indexes: set[Index],
    ) -> None:
        """Find UNIQUE constraints by their columns: DuckDB keeps no names of them."""
        names = {
            _columns(unique): unique.name for unique in metadata_unique_constraints
        }
        for unique in conn_uniques:
            unique.name = names.get(_columns(unique), unique.name)


class MonetDBImpl(TiqueImpl):
    """Migrations on MonetDB."""

    __dialect__ = "monetdb"
    own_sequence = monetdb.OWN_SEQUENCE


@compiles(ColumnComment, "duckdb", "monetdb")
def _comment(change: ColumnComment, compiler: DDLCompiler, **kw: Any) -> str:
    """SQLAlchemy's own DDL for it."""
    column: Column[Any] = Column(change.column_name, comment=change.comment)
    Table(change.table_name, MetaData(), column, schema=change.schema)
    return compiler.process(SetColumnComment(column), **kw)


def _columns(unique: UniqueConstraint) -> tuple[str, ...]:
    return tuple(column.name for column in unique.columns)


def _canonical(default: str | None) -> str | None:
    """A default in one form, whether a program or the engine has written it."""
    if default is None:
        return None
    text = default.strip()
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    if found := _BOOLEAN.fullmatch(text.lower()):
        return "true" if found[1] == "t" else "false"
    if found := _CAST.fullmatch(text.lower()):
        text = text[found.start(1) : found.end(1)]
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    text = text.replace('"', "").lower().removesuffix("()")
    if text in _NOW:
        return "current_timestamp"
    return text


def setup(plugin: Plugin) -> None:
    """Alembic's call to a plugin: the classes above are known by being there."""
