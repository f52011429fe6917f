"""Row locks as PostgreSQL's advisory locks of one number (:mod:`tique_backends.row_locks`).

While a session has row locks it has another lock, shared, that says so: a commit tries for
that one first, and looks for each of its keys only if it does not get it. Two commits
that try at once look for nothing.

A session that waits for a lock does not notice by itself that its client is gone, and would keep
its other locks: it looks for its client every second.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from typing_extensions import override

from tique_backends.errors import ConnectionLostError, EngineError, ErrorKind
from tique_backends.postgresql.presence import LOCKED_ROWS, LOCKS
from tique_backends.row_locks import RowLocks, RowsLockedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.pool import Pool
    from tique_backends.postgresql.connection import Connection

_BEGIN = (
    "SELECT set_config('lock_timeout', '5s', FALSE), "
    "(SELECT set_config(name, '1s', FALSE) FROM pg_catalog.pg_settings "
    "WHERE name = 'client_connection_check_interval'), "
    f"pg_advisory_lock_shared({LOCKS}, {LOCKED_ROWS})"
)
_END = "SELECT pg_advisory_unlock_all()"

_LOOK = (
    "CASE WHEN NOT pg_try_advisory_lock({locks}, {flag}) THEN CAST(coalesce((SELECT "
    "'locked ' || string_agg(CAST(_n AS TEXT), ' ') FROM unnest(CAST({numbers} AS BIGINT[])) "
    "AS _n WHERE NOT CASE WHEN pg_try_advisory_lock(_n) THEN pg_advisory_unlock(_n) "
    "ELSE FALSE END), '0') AS INTEGER) "
    "WHEN pg_advisory_unlock({locks}, {flag}) THEN 0 END"
)

_LOCKED = re.compile(r"locked((?: -?[0-9]{1,20})+)\b")
_INVALID_TEXT = "22P02"


def expect_free(numbers: str) -> str:
    """An expression that fails if one of the numbers is locked.

    SQL has no other way to fail than by a value that cannot be converted: the text names
    the numbers that are locked. A function of tique's own would have to be put into
    every database that there is.
    """
    return _LOOK.format(locks=LOCKS, flag=LOCKED_ROWS, numbers=numbers)


def locked_rows(error: EngineError) -> RowsLockedError | None:
    """The error for one of :func:`expect_free`."""
    found = _LOCKED.search(str(error)) if error.sqlstate == _INVALID_TEXT else None
    if found is None:
        return None
    return RowsLockedError(frozenset(map(int, found[1].split())))


class AdvisoryLocks(RowLocks):
    """A session that has locks; from a pool, to which it goes back without any."""

    def __init__(self, pool: Pool[Connection]) -> None:
        super().__init__()
        self._pool = pool
        self._connection = pool.take()
        try:
            try:
                self._connection.ask(_BEGIN)
            except ConnectionLostError:
                # It was lost while it was idle.
                self._connection.close()
                self._connection = pool.take()
                self._connection.ask(_BEGIN)
        except BaseException:
            self._connection.close()
            raise

    def _ask(self, sql: str, parameters: Sequence[object]) -> list[tuple[object, ...]]:
        if not self._connection.is_open:
            raise ConnectionLostError(
                ErrorKind.OPERATIONAL, "the session that had the row locks is lost"
            )
        return self._connection.ask(sql, parameters, prepare=True)

    @override
    def try_lock(self, numbers: Sequence[int], *, shared: bool) -> int:
        self._expect_room(len(numbers))
        kind = "_shared" if shared else ""
        rows = self._ask(
            f"SELECT pg_try_advisory_lock{kind}(_n) FROM unnest(CAST($1 AS BIGINT[])) "
            "WITH ORDINALITY AS _u(_n, _i) ORDER BY _i",
            [list(numbers)],
        )
        got = [bool(is_locked) for (is_locked,) in rows]
        first = got.index(False) if False in got else len(got)
        self._count += sum(got)
        self.unlock(
            [
                (number, shared)
                for number, is_locked in zip(numbers[first:], got[first:], strict=True)
                if is_locked
            ]
        )
        return first

    @override
    def lock(self, number: int, *, shared: bool, patience: float | None) -> None:
        self._expect_room(1)
        kind = "_shared" if shared else ""
        limit = 0 if patience is None else max(1, int(patience * 1000))
        self._ask("SELECT set_config('lock_timeout', $1, FALSE)", [f"{limit}ms"])
        self._ask(f"SELECT pg_advisory_lock{kind}($1)", [number])
        self._count += 1

    @override
    def unlock(self, numbers: Sequence[tuple[int, bool]]) -> None:
        if numbers:
            self._ask(
                "SELECT CASE WHEN _s THEN pg_advisory_unlock_shared(_n) "
                "ELSE pg_advisory_unlock(_n) END "
                "FROM unnest(CAST($1 AS BIGINT[]), CAST($2 AS BOOLEAN[])) AS _u(_n, _s)",
                [[number for number, _ in numbers], [shared for _, shared in numbers]],
            )
            self._count -= len(numbers)

    @override
    def are_there(self) -> bool:
        try:
            self._ask("SELECT 1", [])
        except ConnectionLostError:
            return False
        return True

    @override
    def may_have_ended(self) -> bool:
        return self._connection.has_word

    @override
    def interrupt(self) -> None:
        self._connection.interrupt()

    @override
    def close(self) -> None:
        try:
            if self._connection.is_open:
                self._ask(_END, [])
                self._pool.give_back(self._connection)
                return
        except EngineError:
            pass
        # Its locks go with it.
        self._connection.close()
