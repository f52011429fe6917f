"""A PostgreSQL server for one round, with the workload's tables in it."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import duckdb
import psycopg

from benchmarks.targets.cluster import Cluster
from benchmarks.targets.distance import distant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# PostgreSQL's words for DuckDB's types; all others are the same in both.
_TYPES = {"VARCHAR": "TEXT", "DOUBLE": "DOUBLE PRECISION"}

_SETTINGS = (
    "server_version",
    "synchronous_commit",
    "fsync",
    "full_page_writes",
    "wal_sync_method",
    "shared_buffers",
    "max_wal_size",
    "autovacuum",
    "deadlock_timeout",
)

_SIZES = (
    "SELECT CASE WHEN relnamespace IS DISTINCT FROM to_regnamespace('tique') THEN 'tables' "
    "WHEN relname LIKE 'tique_cache_%' THEN 'cache' ELSE 'log' END, "
    "sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND "
    "relnamespace IN (to_regnamespace('public'), to_regnamespace('tique')) "
    "GROUP BY 1 ORDER BY 1"
)


class LoadedServer:
    """A server in a folder of its own, loaded from the workload's DuckDB file.

    The folder is a temporary one: root's servers run as another account, which cannot
    reach every work directory, and the path of a Unix socket must be short.

    Parameters
    ----------
    path : pathlib.Path
        The file; the server is empty if there is none.
    distance : float
        Milliseconds that a round trip to it takes longer than over the socket.
    extension : bool
        Whether it has tique's extension.
    """

    shown: ClassVar[tuple[str, ...]] = _SETTINGS
    """The settings that decide its figures."""

    def __init__(
        self, path: Path, distance: float = 0.0, *, extension: bool = False
    ) -> None:
        self._parent = Path(tempfile.mkdtemp(prefix="tique-bench-"))
        self._parent.chmod(0o755)
        self._cluster = self._make(distance, extension=extension)
        try:
            self._start()
            self.url = self._cluster.socket_url
            if path.exists():
                self._load(path)
        except BaseException:
            self.stop()
            raise

    def _make(self, distance: float, *, extension: bool) -> Cluster:
        """Return the server that clients connect to, not started yet."""
        return Cluster(
            self._parent / "server",
            environment=distant(distance, self._parent) if distance else None,
            extension=extension,
        )

    def _start(self) -> None:
        self._cluster.start()

    @property
    def nodes(self) -> Sequence[Cluster]:
        """All servers that have rows; clients connect to the first."""
        return [self._cluster]

    @contextmanager
    def standby(self) -> Iterator[str]:
        """Have a hot standby of the server; its URL."""
        standby = self._cluster.standby(self._parent / "standby")
        try:
            standby.start()
            yield standby.socket_url
        finally:
            standby.stop()
            shutil.rmtree(standby.folder)

    def stop(self) -> None:
        """Stop the server and remove its data."""
        self._cluster.stop()
        shutil.rmtree(self._parent)

    def settings(self) -> dict[str, str]:
        """Return its version and the settings that decide its figures."""
        with closing(connect_natively(self.url)) as connection:
            rows = connection.execute(
                "SELECT name, current_setting(name) FROM unnest(%s::text[]) AS name",
                [list(self.shown)],
            )
            return dict(rows.fetchall())

    def sizes(self) -> dict[str, int]:
        """Return the bytes of the tables, and of tique's own, with their indexes."""
        with closing(connect_natively(self.url)) as connection:
            rows = connection.execute(_SIZES)
            return {name: int(size) for name, size in rows.fetchall()}

    def _load(self, path: Path) -> None:
        """Copy rows, which go through a CSV file, and then create their keys."""
        with (
            duckdb.connect(str(path), read_only=True) as source,
            closing(connect_natively(self.url, autocommit=True)) as connection,
        ):
            for (table,) in source.execute(
                "SELECT table_name FROM duckdb_tables() WHERE NOT internal"
            ).fetchall():
                connection.execute(_definition(source, table))
                keys = _keys(source, table)
                self._place(connection, table, keys)
                # The server's account reads files that this process writes there.
                rows = self._cluster.folder / f"{table}.csv"
                source.execute(f"COPY {table} TO '{rows}' (FORMAT csv, HEADER false)")
                connection.execute(f"COPY {table} FROM '{rows}' (FORMAT csv)")
                rows.unlink()
                for columns in keys:
                    connection.execute(
                        f"ALTER TABLE {table} ADD PRIMARY KEY ({columns})"
                    )
        # The first transactions would pay for work that loading leaves undone.
        for node in self.nodes:
            with closing(connect_natively(node.url, autocommit=True)) as connection:
                connection.execute("VACUUM (ANALYZE)")
                connection.execute("CHECKPOINT")

    def _place(
        self, connection: psycopg.Connection[Any], table: str, keys: Sequence[str]
    ) -> None:
        """Say where an empty table's rows are to be."""


def connect_natively(
    url: str, *, autocommit: bool = False
) -> psycopg.Connection[tuple[Any, ...]]:
    """Return a connection of psycopg's own."""
    return psycopg.connect(url, autocommit=autocommit)


def _definition(source: duckdb.DuckDBPyConnection, table: str) -> str:
    """CREATE TABLE in PostgreSQL's words, without keys."""
    columns = source.execute(
        "SELECT column_name, data_type, is_nullable FROM duckdb_columns() "
        "WHERE table_name = ? ORDER BY column_index",
        [table],
    ).fetchall()
    items = (
        f"{name} {_TYPES.get(kind, kind)}{'' if is_nullable else ' NOT NULL'}"
        for name, kind, is_nullable in columns
    )
    return f"CREATE TABLE {table} ({', '.join(items)})"


def _keys(source: duckdb.DuckDBPyConnection, table: str) -> list[str]:
    """The columns of its primary key, if it has one."""
    keys = source.execute(
        "SELECT constraint_column_names FROM duckdb_constraints() "
        "WHERE table_name = ? AND constraint_type = 'PRIMARY KEY'",
        [table],
    ).fetchall()
    return [", ".join(names) for (names,) in keys]
