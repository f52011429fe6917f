"""PostgreSQL: SQLAlchemy's own dialect, over tique instead of a driver of PostgreSQL's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy.types as sqltypes
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import ranges
from sqlalchemy.dialects.postgresql.base import (
    PGCompiler,
    PGDialect,
    PGExecutionContext,
)
from sqlalchemy.dialects.postgresql.pg_catalog import (
    INT2VECTOR,
    OIDVECTOR,
    _SpaceVector,
)
from sqlalchemy.dialects.postgresql.psycopg import (
    _PGJSONIntIndexType,
    _PGJSONPathType,
    _PGJSONStrIndexType,
)
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import BindParameter, ColumnClause

from tique.sqlalchemy.driver import TiqueDriver
from tique.sqlalchemy.reflection import foreign_keys
from tique.sqlalchemy.types import (
    BoundMultirange,
    BoundRange,
    ParsedJSON,
    ParsedJSONB,
    cast_when_bound,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy.engine import Connection
    from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor

_COMPARISONS = (
    operators.eq,
    operators.ne,
    operators.lt,
    operators.le,
    operators.gt,
    operators.ge,
)


class _Int2Vector(_SpaceVector, INT2VECTOR):
    """Numbers of a catalog's, which are a text."""


class _OidVector(_SpaceVector, OIDVECTOR):
    """The same."""


class PostgreSQLExecutionContext(PGExecutionContext):
    """A statement's execution."""

    def create_server_side_cursor(self) -> DBAPICursor:
        """Any cursor: tique sends the rows of a long result as they are asked for."""
        return self._dbapi_connection.cursor()


class PostgreSQLCompiler(PGCompiler):
    """Queries and changes.

    A parameter is cast to its type where nothing else says of which it is. One that is compared
    with a column, or is a column's new value, is of the column's type: without a cast
    the driver knows which row is meant, and needs no engine for it. An array that is
    compared has its cast: PostgreSQL compares none of two types, and ``[1, 2]`` could be
    of several.
    """

    def visit_binary(self, binary: Any, *args: Any, **kw: Any) -> str:
        """Compare without a cast."""
        sides = binary.left, binary.right
        if binary.operator in _COMPARISONS and any(
            isinstance(one, ColumnClause)
            and isinstance(other, BindParameter)
            and other.type._type_affinity is not sqltypes.ARRAY
            for one, other in (sides, sides[::-1])
        ):
            kw["is_typed"] = True
        text: str = super().visit_binary(binary, *args, **kw)
        return text

    def visit_bindparam(self, bindparam: Any, *args: Any, **kw: Any) -> str:
        """A parameter that is a column's new value has no cast."""
        kw["is_typed"] = kw.get("is_typed") or getattr(bindparam, "_is_crud", False)
        text: str = super().visit_bindparam(bindparam, *args, **kw)
        return text

    def limit_clause(self, select: Any, **kw: Any) -> str:
        """A number of rows is a number."""
        limits = select._limit_clause, select._offset_clause
        if all(isinstance(limit, BindParameter | None) for limit in limits):
            kw["is_typed"] = True
        text: str = super().limit_clause(select, **kw)
        return text

    def visit_current_setting_func(self, fn: Any, **kw: Any) -> str:
        """The driver has to know which setting is asked for."""
        kw["literal_binds"] = True
        return f"current_setting{self.function_argspec(fn, **kw)}"

    def bindparam_string(
        self, name: str, *args: Any, is_typed: bool = False, **kw: Any
    ) -> str:
        """The placeholder."""
        if is_typed and not kw.get("post_compile"):
            kw["bindparam_type"] = None
        text: str = super().bindparam_string(name, *args, **kw)
        return text


class PostgreSQLDialect(TiqueDriver, PGDialect):
    """``postgresql+tique://``."""

    name = "postgresql"
    supports_statement_cache = True
    supports_constraint_comments = False
    execution_ctx_cls = PostgreSQLExecutionContext
    statement_compiler = PostgreSQLCompiler
    colspecs = {  # noqa: RUF012 - as SQLAlchemy has it
        **PGDialect.colspecs,
        **TiqueDriver.tique_colspecs,
        **cast_when_bound(
            sqltypes.String,
            sqltypes.Date,
            sqltypes.DateTime,
            sqltypes.Time,
            sqltypes.SmallInteger,
            sqltypes.Integer,
            sqltypes.BigInteger,
            sqltypes.ARRAY,
            postgresql.INTERVAL,
        ),
        sqltypes.ARRAY: cast_when_bound(postgresql.ARRAY)[postgresql.ARRAY],
        sqltypes.Interval: cast_when_bound(postgresql.INTERVAL)[postgresql.INTERVAL],
        INT2VECTOR: _Int2Vector,
        OIDVECTOR: _OidVector,
        sqltypes.JSON: ParsedJSON,
        postgresql.JSON: ParsedJSON,
        postgresql.JSONB: ParsedJSONB,
        ranges.AbstractSingleRange: BoundRange,
        ranges.AbstractMultiRange: BoundMultirange,
        sqltypes.JSON.JSONPathType: _PGJSONPathType,
        sqltypes.JSON.JSONIntIndexType: _PGJSONIntIndexType,
        sqltypes.JSON.JSONStrIndexType: _PGJSONStrIndexType,
    }

    def get_multi_foreign_keys(
        self, connection: Connection, *, schema: str | None, **kw: Any
    ) -> Iterable[Any]:
        """FOREIGN KEYs, which tique keeps."""
        found = foreign_keys(connection, schema, self.default_schema_name)
        shown = super().get_multi_foreign_keys(connection, schema=schema, **kw)
        return [(key, found.get(key[1], keys)) for key, keys in shown]

    def set_readonly(self, connection: DBAPIConnection, value: bool) -> None:
        """Make the transactions to come read-only, or not."""
        connection.read_only = value

    def get_readonly(self, connection: DBAPIConnection) -> bool:
        """Whether the transactions to come are read-only."""
        return bool(connection.read_only)

    def set_deferrable(self, connection: DBAPIConnection, value: bool) -> None:
        """Nothing: what only reads is never aborted, so it waits for nothing."""

    def get_deferrable(self, connection: DBAPIConnection) -> bool:
        """No transaction is."""
        return False

    # tique has no COMMENT ON CONSTRAINT, so there are no comments to tell.

    def get_multi_pk_constraint(self, *args: Any, **kw: Any) -> Iterable[Any]:
        """PRIMARY KEYs."""
        found = super().get_multi_pk_constraint(*args, **kw)
        return [(key, _without_comment(constraint)) for key, constraint in found]

    def get_multi_unique_constraints(self, *args: Any, **kw: Any) -> Iterable[Any]:
        """UNIQUE constraints."""
        found = super().get_multi_unique_constraints(*args, **kw)
        return [(key, [*map(_without_comment, each)]) for key, each in found]

    def get_multi_check_constraints(self, *args: Any, **kw: Any) -> Iterable[Any]:
        """CHECK constraints."""
        found = super().get_multi_check_constraints(*args, **kw)
        return [(key, [*map(_without_comment, each)]) for key, each in found]


def _without_comment(constraint: Any) -> Any:
    return {name: value for name, value in constraint.items() if name != "comment"}
