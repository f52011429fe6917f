"""The committer's session, whose append to the log DuckDB has prepared.

DuckDB's Python module plans a statement whenever it runs; through
:class:`tique_udfs.duckdb.Prepared` it is planned once. Each append is a transaction of its
own, on the disk when the call returns: as by :meth:`DuckDBSession.log`, which is there
without the library, or after it has given its connection up.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import duckdb
from typing_extensions import override

from tique_backends.duckdb.errors import translated
from tique_backends.duckdb.log import encode_commits
from tique_backends.duckdb.sessions.session import DuckDBSession
from tique_udfs.duckdb import PreparedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.duckdb.values.zones import Zones
    from tique_backends.records import CommitRecord, Statistics
    from tique_udfs.duckdb import Prepared


class LogSession(DuckDBSession):
    """A session that does nothing but append to the log."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        statistics: Statistics,
        zones: Zones,
        append: Prepared | None,
    ) -> None:
        super().__init__(connection, statistics, zones)
        # There is nothing to optimise; trying takes a tenth of the statement.
        connection.execute("PRAGMA disable_optimizer")
        self._append = append

    @override
    def log(self, commits: Sequence[CommitRecord]) -> None:
        if self._append is None or not self._run_prepared(self._append, commits):
            super().log(commits)

    def _run_prepared(self, append: Prepared, commits: Sequence[CommitRecord]) -> bool:
        """Append; whether the library has a connection for it."""
        entry = encode_commits(commits)
        started = time.perf_counter()
        try:
            is_done = append.run(commits[-1].cts, time.time_ns() // 1000, entry)
        except PreparedError as error:
            raise translated(duckdb.OperationalError(str(error))) from error
        finally:
            statistics = self._statistics
            statistics.statements += 1
            statistics.seconds += time.perf_counter() - started
        return is_done
