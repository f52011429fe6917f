"""One PostgreSQL connection, used by one thread at a time: its work on tables.

How it runs statements is in :mod:`tique_backends.postgresql.sessions.statements`, its settings
and engine transactions are in :mod:`tique_backends.postgresql.sessions.transactions`.

*Rows that an index of storage could not take are refused when they are staged (P4).*
A row that is acknowledged and that an index refuses when it is folded would stop every
checkpoint. So the table that rows reach first gets the same indexes, and a CHECK where an
index's inner rows hold the values of two.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique_backends.errors import (
    ConnectionLostError,
    EngineError,
    ErrorKind,
    speaking_of,
)
from tique_backends.names import cache_name, column_list, key_list, storage_name
from tique_backends.postgresql.forms import range_query, row_query, rows_query
from tique_backends.postgresql.log import NOW, encode_content
from tique_backends.postgresql.names import stage_name
from tique_backends.postgresql.sessions.results import TextRows
from tique_backends.postgresql.sessions.transactions import TransactionSession
from tique_backends.postgresql.values.bounds import INDEXES, STORED
from tique_backends.postgresql.values.literals import quoted
from tique_backends.rows.gaps import widened
from tique_backends.servers.server_forms import appending_staged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tique_backends.postgresql.sessions.connection import Connection
    from tique_backends.postgresql.sessions.presence import Presence
    from tique_backends.records import CommitRecord, Row, Versions
    from tique_backends.rows.ranges import RangeRows
    from tique_rewriter.schema import Table


_MISMATCH = "42804"

_INCOMING = "tique_incoming"


class PostgreSQLSession(TransactionSession):
    """A connection with its own engine transaction and its own staging tables."""

    def __init__(self, connection: Connection, presence: Presence) -> None:
        super().__init__(connection, presence)
        self.guards = IndexGuards(self._ask, self._run)

    @override
    def check_assigned(
        self,
        table: Table,
        columns: Sequence[int],
        query: str,
        parameters: Sequence[Any] = (),
    ) -> None:
        names = key_list(table, columns)
        try:
            self._run(
                f"EXPLAIN INSERT INTO {storage_name(table)} ({names}) "
                f"OVERRIDING SYSTEM VALUE {query}",
                parameters,
                prepare=False,
            )
        except ConnectionLostError:
            raise
        except EngineError as error:
            # The statement itself reports any other error better.
            if error.sqlstate == _MISMATCH or error.kind is ErrorKind.INTERRUPTED:
                raise

    @override
    def read_row(
        self, table: Table, key: Row, columns: Sequence[int] | None = None
    ) -> Row | None:
        read = tuple(range(len(table.columns)) if columns is None else columns)
        # A row may be wanted for its being there only.
        read = read or table.primary_key
        sql, parameters = row_query(table, read, key)
        rows = self._ask(sql, parameters, prepare=True)
        return widened(table, read, rows[0]) if rows else None

    @override
    def _stored_rows(
        self, table: Table, keys: Sequence[Row], read: Sequence[int]
    ) -> Sequence[Row]:
        sql, parameters = rows_query(table, read, keys)
        return self._ask(sql, parameters, prepare=True)

    @override
    def read_range(
        self,
        table: Table,
        prefix: Row,
        first: int,
        last: int,
        columns: Sequence[int],
        limit: int | None = None,
    ) -> RangeRows:
        sql, parameters = range_query(table, columns, prefix, first, last)
        end = "" if limit is None else f" LIMIT {limit}"
        cursor = self._run(sql + end, parameters, prepare=True, keeping=True)
        assert cursor.pgresult is not None
        return TextRows(cursor.pgresult, cursor)

    @override
    def append(self, versions: Versions) -> None:
        table = versions.table
        if versions.rows and table.domains:
            # Their CHECKs are evaluated as the texts are read, with this role's rights.
            place = quoted(storage_name(table))
            self._ask(f"SELECT tique.guest_expect_own({place})::TEXT")
        if versions.rows:
            self._append(versions, cache_name(table), "_cts")

    def _append(self, versions: Versions, target: str, stamp: str) -> None:
        stamped = zip(versions.rows, versions.stamps, versions.deleted, strict=True)
        # Of one row too it is the fastest way.
        self._run(
            f"COPY {target} ({column_list(versions.table)}, {stamp}, _deleted) FROM STDIN",
            rows=((*row, stamp, bool(deleted)) for row, stamp, deleted in stamped),
        )

    @override
    def newest_version(self, table: Table) -> int:
        # The caller may have lost the connection over which it appended.
        self._presence.await_lost()
        return super().newest_version(table)

    @override
    def append_staged(self, table: Table, cts: int) -> int:
        return self.change(appending_staged(table, stage_name(table), cts))

    @override
    def log(self, commits: Sequence[CommitRecord]) -> None:
        self._run(
            f"INSERT INTO tique.log SELECT _c, _t, {NOW}, _e FROM unnest("
            "CAST($1 AS BIGINT[]), CAST($2 AS BIGINT[]), CAST($3 AS TEXT[])) "
            "AS _n(_c, _t, _e)",
            [
                [commit.cts for commit in commits],
                [commit.txid for commit in commits],
                [encode_content(commit) for commit in commits],
            ],
        )

    @override
    def create_stage(self, table: Table) -> None:
        # NOT NULL and CHECK are the engine's: a statement that breaks them fails here.
        # There may be one whose removal was interrupted.
        stage = stage_name(table)
        self._run(
            f"DROP TABLE IF EXISTS {stage}; "
            f"CREATE TEMPORARY TABLE {stage.partition('.')[2]} "
            f"(LIKE {storage_name(table)} INCLUDING CONSTRAINTS INCLUDING GENERATED "
            f"{STORED}, "
            "_sequence BIGINT NOT NULL, _deleted BOOLEAN NOT NULL)",
            prepare=False,
        )

    @override
    def create_incoming(self, table: Table) -> str:
        self.drop_incoming()
        self._run(
            f"CREATE TEMPORARY TABLE {_INCOMING} "
            f"(LIKE {storage_name(table)} INCLUDING DEFAULTS INCLUDING GENERATED)"
        )
        return f"pg_temp.{_INCOMING}"

    @override
    def drop_incoming(self) -> None:
        self._run(f"DROP TABLE IF EXISTS pg_temp.{_INCOMING}")

    @override
    def guard_stage(self, table: Table) -> None:
        self.guards.add(table, stage_name(table))

    @override
    def stage(self, versions: Versions) -> None:
        if versions.rows:
            place = stage_name(versions.table)
            with self.guards.named(versions.table, place):
                self._append(versions, place, "_sequence")

    @override
    def stage_query(self, table: Table, query: str, parameters: Sequence[Any]) -> int:
        place = stage_name(table)
        with self.guards.named(table, place):
            columns = f"{column_list(table)}, _sequence, _deleted"
            return self.change(f"INSERT INTO {place} ({columns}) {query}", parameters)

    @override
    def unstage(self, table: Table, after: int) -> None:
        with self.unhurried():
            self._run(f"DELETE FROM {stage_name(table)} WHERE _sequence > {after}")

    @override
    def drop_stage(self, table: Table) -> None:
        with self.unhurried():
            self._run(f"DROP TABLE IF EXISTS {stage_name(table)}")


_TOO_LARGE = "54000"
_GUARD = re.compile(r'"(_i\d+)"')


class IndexGuards:
    """The indexes that one session's tables for versions have as storage does.

    Parameters
    ----------
    ask, run : callable
        Execute a statement in the session, with and without rows as its result.
    """

    def __init__(
        self, ask: Callable[[str, list[str]], list[Row]], run: Callable[[str], object]
    ) -> None:
        self._ask = ask
        self._run = run
        self.names: dict[str, str] = {}
        """The names of storage's indexes, by those of a guard."""

    def add(self, table: Table, target: str) -> None:
        """Let a table for versions refuse rows that storage's indexes cannot take."""
        with self.named(table, target):
            for there, name, shape, condition in self._guarding(table):
                self.names[there] = name
                if condition is None:
                    self._run(f"CREATE INDEX IF NOT EXISTS {there} ON {target} {shape}")
                else:
                    self._run(
                        f"ALTER TABLE {target} DROP CONSTRAINT IF EXISTS {there}, "
                        f"ADD CONSTRAINT {there} CHECK ({condition})"
                    )

    def remove(self, table: Table, target: str) -> None:
        """Undo that."""
        schema = target.partition(".")[0]
        for there, _, _, condition in self._guarding(table):
            if condition is None:
                self._run(f"DROP INDEX {schema}.{there}")
            else:
                self._run(f"ALTER TABLE {target} DROP CONSTRAINT {there}")

    def _guarding(self, table: Table) -> list[Row]:
        return self._ask(INDEXES, [storage_name(table)])

    @contextmanager
    def named(self, table: Table, place: str) -> Iterator[None]:
        """Let errors of a staging table speak of the table and its own indexes."""
        try:
            with speaking_of(table, place):
                yield
        except EngineError as error:
            found = _GUARD.search(str(error))
            if found is None or found[1] not in self.names:
                raise
            name = self.names[found[1]]
            message = str(error).replace(found[0], f'"{name}"')
            if error.kind is ErrorKind.CHECK:
                message = (
                    f'a row is too large for index "{name}", whose inner rows hold the '
                    "values of two: tique takes 2700 bytes there"
                )
            raise EngineError(ErrorKind.OPERATIONAL, message, _TOO_LARGE) from error
