"""Snapshot-isolated transactions for analytical databases (PEP 249).

The query engine does the transactional work: statements are rewritten so that
reads become snapshot queries, writes become versions in cache tables, and a commit
is a certification and one atomic append.

>>> import tique
>>> with tique.connect("duckdb:///shop.duckdb") as conn:
...     conn.execute("UPDATE account SET balance = balance - %s WHERE id = %s", (10, 1))
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tique import errors
from tique._version import __version__
from tique.errors import (
    DatabaseError,
    DatabaseLocked,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    OutcomeUnknown,
    ProgrammingError,
    Rollback,
    SerializationError,
    Warning,
)
from tique.rows import dict_row, namedtuple_row, tuple_row
from tique.types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

if TYPE_CHECKING:
    from tique._adoption import adopt, detach
    from tique._connect import connect
    from tique._retry import run_transaction
    from tique.aio.connection import AsyncConnection
    from tique.aio.cursor import AsyncCursor
    from tique.aio.retry import run_transaction_async
    from tique.connection.connection import Connection
    from tique.connection.connection_info import ConnectionInfo, ForeignKey
    from tique.connection.cursor import Cursor
    from tique.connection.feed import Feed
    from tique.connection.notices import Notice
    from tique.database.status import Status
    from tique.history.feed import Change, Difference
    from tique.query.transaction.isolation import IsolationLevel
    from tique.replica.promoting import Promoted, promote
    from tique.replica.replication import Replication, replicate
    from tique.timeline.replica import ReplicationStatus

_HOMES = {
    "AsyncConnection": "aio.connection",
    "AsyncCursor": "aio.cursor",
    "Change": "history.feed",
    "Connection": "connection.connection",
    "ConnectionInfo": "connection.connection_info",
    "Cursor": "connection.cursor",
    "Difference": "history.feed",
    "Feed": "connection.feed",
    "ForeignKey": "connection.connection_info",
    "IsolationLevel": "query.transaction.isolation",
    "Notice": "connection.notices",
    "Promoted": "replica.promoting",
    "Replication": "replica.replication",
    "ReplicationStatus": "timeline.replica",
    "Status": "database.status",
    "HistoryInfo": "history.showing",
    "adopt": "_adoption",
    "connect": "_connect",
    "detach": "_adoption",
    "drop_history": "_history",
    "histories": "_history",
    "promote": "replica.promoting",
    "replicate": "replica.replication",
    "run_transaction": "_retry",
    "run_transaction_async": "aio.retry",
    "set_history": "_history",
}
"""Names and the modules that define them. They need the SQL parser, which takes longer to
load than the rest of tique: they are loaded on first use."""

apilevel = "2.0"
threadsafety = 2
paramstyle = "pyformat"

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "AsyncConnection",
    "AsyncCursor",
    "Binary",
    "Change",
    "Connection",
    "ConnectionInfo",
    "Cursor",
    "DataError",
    "DatabaseError",
    "DatabaseLocked",
    "Date",
    "DateFromTicks",
    "Difference",
    "Error",
    "Feed",
    "ForeignKey",
    "HistoryInfo",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "IsolationLevel",
    "NotSupportedError",
    "Notice",
    "OperationalError",
    "OutcomeUnknown",
    "ProgrammingError",
    "Promoted",
    "Replication",
    "ReplicationStatus",
    "Rollback",
    "SerializationError",
    "Status",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "__version__",
    "adopt",
    "apilevel",
    "connect",
    "detach",
    "dict_row",
    "drop_history",
    "errors",
    "histories",
    "namedtuple_row",
    "paramstyle",
    "promote",
    "replicate",
    "run_transaction",
    "run_transaction_async",
    "set_history",
    "threadsafety",
    "tuple_row",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tique_backends.concurrency.undisturbed import undisturbed

    # An import that Ctrl-C cuts short leaves half a package, for good.
    module = undisturbed(partial(import_module, f"{__name__}.{home}"))
    found = getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
