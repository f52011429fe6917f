"""``connect()``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, overload

from typing_extensions import Unpack

from tique import errors
from tique._translation import translating
from tique.commit.locks import LOCK_TIMEOUT
from tique.connection.connection import Connection
from tique.connection.execution import ExecutionOptions
from tique.connection.routing.options import routing_options
from tique.database.database import acquire, release
from tique.database.url import DatabaseURL, parse_url
from tique.query.transaction.isolation import IsolationLevel
from tique.rows import RowFactory, TupleRow, tuple_row
from tique_rewriter import PARAMSTYLES

if TYPE_CHECKING:
    import os

RowT = TypeVar("RowT")


class Options(TypedDict, total=False):
    """The settings of a database; the first connection of a process decides.

    They are the fields of :class:`tique.database.settings.Settings`.
    """

    certifier: Literal["memory", "query"]
    concurrency: Literal["optimistic", "locking", "ssn"]
    checkpoint: Literal["auto", "manual"]
    checkpoint_rows: int
    checkpoint_age: float
    row_cache: int
    page_cache: int
    uncommitted_fold_rows: int | None
    long_snapshot: float | None
    retention: float
    lease: float
    history: str | None


class ConnectionOptions(Options, total=False):
    """The same, and the options of one connection."""

    isolation_level: str | IsolationLevel
    autocommit: bool
    conflicts: Literal["column", "row"]
    lock_timeout: float | None
    python_variables: bool
    paramstyle: Literal["pyformat", "qmark"]
    transactional_ddl: bool
    replica: str | os.PathLike[str] | None
    freshness: float | Literal["own", "off"] | None
    on_stale: Literal["source", "wait", "error"]


@overload
def connect(
    url: str | os.PathLike[str], **options: Unpack[ConnectionOptions]
) -> Connection[TupleRow]: ...


@overload
def connect(
    url: str | os.PathLike[str],
    *,
    row_factory: RowFactory[RowT],
    **options: Unpack[ConnectionOptions],
) -> Connection[RowT]: ...


def connect(
    url: str | os.PathLike[str],
    *,
    isolation_level: str | IsolationLevel | None = None,
    autocommit: bool = False,
    conflicts: str = "column",
    lock_timeout: float | None = LOCK_TIMEOUT,
    python_variables: bool = True,
    paramstyle: str = "pyformat",
    row_factory: RowFactory[Any] = tuple_row,
    transactional_ddl: bool = False,
    replica: str | os.PathLike[str] | None = None,
    freshness: float | str | None = None,
    on_stale: str | None = None,
    **options: Unpack[Options],
) -> Connection[Any]:
    """Open a connection.

    Connections of one process to one file share an engine instance, a sequencer
    and a checkpointer.

    Parameters
    ----------
    url
        ``duckdb:///relative/path``, ``duckdb:////absolute/path`` or
        ``duckdb:///:memory:``; options of the engine follow as in ``?threads=4``.
        ``monetdb://user:password@host:port/database``; ``?sock=/path`` for a Unix
        socket.
    isolation_level
        ``"SNAPSHOT"``, ``"READ COMMITTED"`` or ``"SERIALIZABLE"``; also as
        ``?isolation_level=`` in the URL.
        Without either it is that which the URL's ``options``, the role, the database or
        the server's files set on PostgreSQL, else SNAPSHOT.
    autocommit
        Whether every statement is a transaction of its own.
    conflicts
        ``"column"``: an UPDATE by key, whose new values are functions of the row alone,
        is computed again at the commit if another transaction changed the row first,
        but nothing that this one has seen. ``"row"``: it fails then.
    lock_timeout
        Seconds that a wait for a row that another transaction has locked by FOR UPDATE
        or FOR SHARE may take (then OperationalError, SQLSTATE 55P03); 0: none waits;
        None: as long as it takes. On PostgreSQL the role's own may take the place of the
        usual 30.
    python_variables
        Whether, on DuckDB, a name that nothing in the database has may be that of a variable
        of the calling function or its module: a data frame of pandas or polars, or an
        Arrow table. It is read once, when the statement begins.
    paramstyle
        ``"pyformat"`` (``%s``, ``%(name)s``) or ``"qmark"`` (``?``).
    row_factory
        Makes the fetched rows: see :mod:`tique.rows`.
    transactional_ddl
        Whether DDL is a part of a transaction that no BEGIN has opened, too; else it takes
        effect at once there.
    replica
        ``duckdb:///replica.duckdb``: a replica of the database, into which this process
        replicates (:func:`tique.replicate`), and where queries may run.
        These three are options of the URL, too.
    freshness
        How old a state a query may see that is a transaction of its own, or in a read-only one:
        seconds; or ``"own"``, at least this connection's commits and all that it
        was shown, which holds of seconds, too. None or ``"off"``: queries run in the database.
        ``SET tique.freshness`` changes it.
    on_stale
        Where such a query runs if the replica is older: in the database (``"source"``); or
        it waits for the replica, for ``lock_timeout`` at most (``"wait"``), or fails
        (``"error"``), with OperationalError, SQLSTATE 55000. ``SET tique.on_stale`` changes it.
    **options
        The database's settings; the first connection decides: ``certifier``
        (``"memory"`` or ``"query"``), ``concurrency`` (how SERIALIZABLE transactions are
        kept apart: ``"optimistic"``, ``"locking"`` or, where one process has the database,
        ``"ssn"``), ``checkpoint`` (``"auto"`` or ``"manual"``),
        ``checkpoint_rows``, ``checkpoint_age`` (seconds), ``row_cache`` (rows per
        table), ``page_cache`` (bytes), ``uncommitted_fold_rows`` (storage rows; None:
        none), ``long_snapshot`` (seconds; None: never), ``retention`` and ``lease``
        (seconds), ``history`` (the retention of tables that have none: see
        :func:`tique.set_history`).

    Raises
    ------
    InterfaceError
        If the URL or an option is not valid.
    DatabaseLocked
        If another process has the database open.
    OperationalError
        If the database cannot be opened, is read-only, or was written by a version
        of tique with another format.
    """
    with translating():
        location = url if isinstance(url, DatabaseURL) else parse_url(url)
    asked = location.isolation_level if isolation_level is None else isolation_level
    level = None if asked is None else IsolationLevel.parse(asked)
    if paramstyle not in PARAMSTYLES:
        raise errors.InterfaceError(
            f"paramstyle {paramstyle!r} is not one of {', '.join(PARAMSTYLES)}"
        )
    if conflicts not in ("column", "row"):
        raise errors.InterfaceError(f"conflicts={conflicts!r} is not column or row")
    with translating():
        routing = routing_options(location.routing, replica, freshness, on_stale)
        database = acquire(location, options)
        try:
            ways = ExecutionOptions(
                isolation=level,
                autocommit=autocommit,
                merges=conflicts == "column",
                lock_timeout=lock_timeout,
                python_variables=python_variables,
                paramstyle=paramstyle,
                transactional_ddl=transactional_ddl,
                routing=routing,
            )
            return Connection(database, ways, row_factory)
        except BaseException:
            release(database)
            raise
