"""A MonetDB server for one round, with the workload's tables in it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import duckdb
import pymonetdb

from tique_backends.monetdb.server import MonetDBServer

if TYPE_CHECKING:
    from pathlib import Path


class LoadedServer:
    """A server in the round's folder, loaded from the workload's DuckDB file."""

    def __init__(self, path: Path) -> None:
        self._server = MonetDBServer(path.parent / "monetdb")
        self.url = self._server.start()
        if path.exists():
            self._load(path)

    def stop(self) -> None:
        """Stop the server."""
        self._server.stop()

    def _load(self, path: Path) -> None:
        """Copy the schema, keys included, and rows, which go through a CSV file."""
        with (
            duckdb.connect(str(path), read_only=True) as source,
            closing(connect_natively(self.url, autocommit=True)) as connection,
        ):
            cursor = connection.cursor()
            for (table,) in source.execute(
                "SELECT table_name FROM duckdb_tables() WHERE NOT internal"
            ).fetchall():
                cursor.execute(_definition(source, table))
                rows = path.parent.absolute() / f"{table}.csv"
                source.execute(
                    f"COPY {table} TO '{rows}' (HEADER false, DELIMITER ',', QUOTE '\"')"
                )
                cursor.execute(
                    f"COPY INTO {table} FROM R'{rows}' ON SERVER "
                    "USING DELIMITERS ',', E'\\n', '\"' NULL AS ''"
                )
                rows.unlink()


def connect_natively(url: str, *, autocommit: bool = False) -> Any:
    """Return a connection of pymonetdb's own."""
    parts = urlsplit(url)
    return pymonetdb.connect(
        parts.path.removeprefix("/"),
        hostname=parts.hostname,
        port=parts.port,
        username=parts.username,
        password=parts.password,
        autocommit=autocommit,
    )


def _definition(source: duckdb.DuckDBPyConnection, table: str) -> str:
    """CREATE TABLE in MonetDB's words."""
    columns = source.execute(
        "SELECT column_name, data_type, is_nullable FROM duckdb_columns() "
        "WHERE table_name = ? ORDER BY column_index",
        [table],
    ).fetchall()
    items = [
        f"{name} {'TEXT' if kind == 'VARCHAR' else kind}"
        f"{'' if is_nullable else ' NOT NULL'}"
        for name, kind, is_nullable in columns
    ]
    keys = source.execute(
        "SELECT constraint_column_names FROM duckdb_constraints() "
        "WHERE table_name = ? AND constraint_type = 'PRIMARY KEY'",
        [table],
    ).fetchall()
    items += [f"PRIMARY KEY ({', '.join(names)})" for (names,) in keys]
    return f"CREATE TABLE {table} ({', '.join(items)})"
