"""The sessions that hold what a statement of tique's did not get in its time (P6).

*Invariant.* Every wait for another session's lock has an end, and its error names the
sessions that may be in the way as ``pg_stat_activity`` shows them, with what an administrator
can do. They are asked for when the wait has failed, over the engine's own connection, and
never before. A session that cannot be had as all connections are taken is not waited for: that
error names those that have them.

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


FULL = "53300"
"""The SQLSTATE when all connections are taken."""

TAKEN = (
    "SELECT usename, coalesce(application_name, ''), count(*) AS taken FROM "
    "pg_catalog.pg_stat_activity WHERE usesysid IS NOT NULL AND (("
    "SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE usesysid IS NOT NULL"
    ") >= (SELECT sum(CASE name WHEN 'max_connections' THEN 1 ELSE -1 END "
    "* CAST(setting AS INTEGER)) FROM pg_catalog.pg_settings WHERE name IN "
    "('max_connections', 'superuser_reserved_connections', 'reserved_connections')) "
    "OR usename = session_user AND (SELECT rolconnlimit FROM pg_catalog.pg_roles "
    "WHERE rolname = session_user) BETWEEN 0 AND (SELECT count(*) FROM "
    "pg_catalog.pg_stat_activity WHERE usename = session_user)) "
    "GROUP BY 1, 2 ORDER BY taken DESC LIMIT 3"
)
"""A query for the sessions that have the connections, if the server's or the role's are all taken."""


def naming_takers(error: EngineError, takers: Sequence[Row]) -> EngineError:
    """The error of a connection that cannot be had, with the sessions that have them all."""
    if not takers:
        return error
    named = ", ".join(
        f"{count} of role {role}, application {application!r}"
        for role, application, count in takers
    )
    return type(error)(
        error.kind,
        f"{error} (connections are taken: {named}; end some, or SELECT "
        "pg_terminate_backend(pid), or let the server or the role have more)",
        FULL,
    )


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
