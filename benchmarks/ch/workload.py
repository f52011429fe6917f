"""CH-benCHmark's database: that of TPC-C, and three tables more."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import duckdb
from typing_extensions import override

from benchmarks.ch import relations
from benchmarks.tpcc.workload import TpccWorkload

if TYPE_CHECKING:
    from pathlib import Path

VERSION = 1
"""Goes up when the three tables or their generator change."""


class ChWorkload(TpccWorkload):
    """TPC-C's transactions beside what the queries read."""

    name: ClassVar[str] = "ch"

    @property
    @override
    def label(self) -> str:
        """The name of the loaded database."""
        return f"ch-v{VERSION}-{super().label}"

    @override
    def load(self, path: Path) -> None:
        """Generate and load the database."""
        super().load(path)
        with duckdb.connect(str(path)) as connection:
            for table, rows in relations.generate(self.seed):
                connection.execute(relations.TABLES[table])
                connection.register("rows", rows)
                connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM rows")
                connection.unregister("rows")
            connection.execute("CHECKPOINT")
