"""Bulk load of TPC-C into a DuckDB file, without tique."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from benchmarks.tpcc import schema
from benchmarks.tpcc.generate import generate

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.tpcc.rules import Scale

VERSION = 1
"""Goes up when the schema or the generator changes, so that no old file is reused."""


def load(path: Path, scale: Scale, seed: int) -> None:
    """Create a DuckDB file that holds a freshly generated TPC-C database.

    Parameters
    ----------
    path : pathlib.Path
        The file to create; it must not exist.
    scale : Scale
        Size of the database.
    seed : int
        Fixes every value.
    """
    with duckdb.connect(str(path)) as connection:
        for table in schema.KEYS:
            connection.execute(schema.create_table(table))
        for table, rows in generate(scale, seed):
            connection.register("rows", rows)
            connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM rows")
            connection.unregister("rows")
        connection.execute("CHECKPOINT")
