"""Who holds what a statement of tique's did not get in its time (P6).

*Invariant.* Every wait for another session's lock has an end, and its error names the
sessions that may be in the way as ``pg_stat_activity`` shows them, with what an administrator
can do. They are asked for when the wait has failed, over the engine's own connection, and
never before.

PostgreSQL does not say for which lock a statement waited, once it has given up: so these are the
sessions that have had locks of tables for longer than a moment, the strongest first, each with
its table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.errors import EngineError
    from tique_backends.records import Row

TIMED_OUT = "55P03"
"""The SQLSTATE of a wait for a lock that has taken its time."""

HOLDERS = (
    "SELECT pid, usename, application_name, mode, place FROM ("
    "SELECT DISTINCT ON (pid) pid, usename, coalesce(application_name, '') "
    "AS application_name, mode, CAST(CAST(relation AS regclass) AS TEXT) AS place, "
    "array_position(ARRAY['AccessExclusiveLock', 'ExclusiveLock', "
    "'ShareRowExclusiveLock', 'ShareLock', 'ShareUpdateExclusiveLock', "
    "'RowExclusiveLock', 'RowShareLock', 'AccessShareLock'], mode) AS rank, xact_start "
    "FROM pg_catalog.pg_locks JOIN pg_catalog.pg_stat_activity USING (pid) "
    "WHERE locktype = 'relation' AND granted AND relation >= 16384 AND database = "
    "(SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()) "
    "AND pid NOT IN ($1, pg_backend_pid()) AND coalesce(xact_start, '-infinity') "
    "< clock_timestamp() - interval '50 ms' ORDER BY pid, rank"
    ") AS _held ORDER BY rank, xact_start LIMIT 3"
)
"""A query for the sessions that hold locks of tables, but that with a process id."""


def naming(error: EngineError, holders: Sequence[Row]) -> EngineError:
    """The error of a wait, with the sessions that may be in its way."""
    if not holders:
        return error
    named = "; ".join(
        f"pid {pid}, role {role}, application {application!r} has {mode} on {place}"
        for pid, role, application, mode, place in holders
    )
    return type(error)(
        error.kind,
        f"{error} (sessions that hold locks: {named}; end that transaction, or "
        "SELECT pg_terminate_backend(pid))",
        error.sqlstate,
    )
