"""What the three dialects have in common: how they use tique as a driver.

SQLAlchemy never sends BEGIN: a transaction begins with its first statement (PEP 249).
Connections have ``transactional_ddl``, so that DDL is a part of it on every engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

import sqlalchemy.types as sqltypes
from sqlalchemy.engine.characteristics import ConnectionCharacteristic
from sqlalchemy.engine.default import DefaultDialect

import tique
from tique.sqlalchemy.types import Float, Numeric

if TYPE_CHECKING:
    from types import ModuleType

    from sqlalchemy.engine import URL
    from sqlalchemy.engine.interfaces import (
        ConnectArgsType,
        DBAPIConnection,
        DBAPICursor,
        Dialect,
        IsolationLevel,
    )
    from sqlalchemy.pool import PoolProxiedConnection

AUTOCOMMIT = "AUTOCOMMIT"
_LOST = ("08", "57P")
"""Classes of SQLSTATEs after which a connection is of no use."""


def _level(name: str) -> Any:
    """A level by its own name; what is none is left to SQLAlchemy."""
    try:
        return tique.IsolationLevel.parse(name).value
    except tique.NotSupportedError:
        return name


class AsOf(ConnectionCharacteristic):
    """The execution option ``tique_as_of``: a connection reads as of a version or a time."""

    transactional = True

    def reset_characteristic(
        self, dialect: Dialect, dbapi_conn: DBAPIConnection
    ) -> None:
        """Read the present."""
        dbapi_conn.as_of = None

    def set_characteristic(
        self, dialect: Dialect, dbapi_conn: DBAPIConnection, value: Any
    ) -> None:
        """Read the past."""
        dbapi_conn.as_of = value

    def get_characteristic(self, dialect: Dialect, dbapi_conn: DBAPIConnection) -> Any:
        """The version or the time."""
        return dbapi_conn.as_of


class TiqueDriver(DefaultDialect):
    """A dialect's half that talks to tique; the other half is the engine's SQL."""

    driver = "tique"
    default_paramstyle = "pyformat"
    supports_statement_cache = True
    supports_server_side_cursors = True
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = True
    supports_native_decimal = True
    tique_colspecs: ClassVar[dict[Any, Any]] = {
        sqltypes.Numeric: Numeric,
        sqltypes.Float: Float,
    }

    def __init__(self, isolation_level: str | None = None, **kw: Any) -> None:
        if isolation_level is not None:
            isolation_level = _level(isolation_level)
        super().__init__(isolation_level=isolation_level, **kw)  # type: ignore[arg-type]
        known = self.connection_characteristics
        self.connection_characteristics = known.union({"tique_as_of": AsOf()})

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """The driver."""
        return tique

    def create_connect_args(self, url: URL) -> ConnectArgsType:
        """``tique.connect``'s arguments for SQLAlchemy's URL."""
        return [database_url(url)], {"transactional_ddl": True}

    # Transactions

    def get_isolation_level_values(
        self, dbapi_conn: DBAPIConnection
    ) -> list[IsolationLevel]:
        """The levels of tique, and its autocommit."""
        own = [level.value for level in tique.IsolationLevel]
        return [*own, AUTOCOMMIT]  # type: ignore[list-item]

    def _assert_and_set_isolation_level(
        self, dbapi_conn: DBAPIConnection, level: IsolationLevel
    ) -> None:
        super()._assert_and_set_isolation_level(dbapi_conn, _level(level))

    def set_isolation_level(
        self, dbapi_connection: DBAPIConnection, level: IsolationLevel
    ) -> None:
        """Set the level of the transactions to come."""
        connection = dbapi_connection
        if level == AUTOCOMMIT:
            connection.autocommit = True
        else:
            connection.autocommit = False
            connection.isolation_level = level

    def get_isolation_level(self, dbapi_connection: DBAPIConnection) -> IsolationLevel:
        """The level of the transactions to come."""
        if dbapi_connection.autocommit:
            return "AUTOCOMMIT"
        level: IsolationLevel = dbapi_connection.isolation_level
        return level

    def get_default_isolation_level(
        self, dbapi_conn: DBAPIConnection
    ) -> IsolationLevel:
        """The level of a new connection."""
        return self.get_isolation_level(dbapi_conn)

    def detect_autocommit_setting(self, dbapi_conn: DBAPIConnection) -> bool:
        """Whether every statement is a transaction of its own."""
        return bool(dbapi_conn.autocommit)

    # The connection's state

    def do_ping(self, dbapi_connection: DBAPIConnection) -> bool:
        """Ask the engine for an answer; errors say that there is none."""
        cursor = dbapi_connection.cursor()
        try:
            cursor.execute("SELECT 1")
            cursor.fetchone()
        finally:
            cursor.close()
            if not dbapi_connection.autocommit:
                dbapi_connection.rollback()
        return True

    def is_disconnect(
        self,
        e: Exception,
        connection: PoolProxiedConnection | DBAPIConnection | None,
        cursor: DBAPICursor | None,
    ) -> bool:
        """Whether the connection, and with it the pool's others, are of no use."""
        if connection is not None and getattr(connection, "closed", False):
            return True
        return isinstance(e, tique.Error) and (e.sqlstate or "").startswith(_LOST)


def database_url(url: URL) -> str:
    """The URL that ``tique.connect`` takes.

    SQLAlchemy's own text of it has ``+`` for blanks in options, which no driver reads so.
    """
    account = ""
    if url.username is not None:
        account = quote(url.username, safe="")
        if url.password is not None:
            account += ":" + quote(str(url.password), safe="")
        account += "@"
    host = url.host or ""
    if ":" in host:
        host = f"[{host}]"
    port = "" if url.port is None else f":{url.port}"
    options = "&".join(
        f"{quote(name, safe='')}={quote(value, safe='')}"
        for name, values in url.normalized_query.items()
        for value in values
    )
    path = quote(url.database or "", safe="/:")
    place = f"{url.get_backend_name()}://{account}{host}{port}/{path}"
    return f"{place}?{options}" if options else place
