"""Which tables have a history, and the commits that stand for a full hour.

A *before-image*, a row of a history table, is the state that a key had from commit
timestamp ``_from`` until ``_until``, exclusive: the application's columns, and whether
there was a row (``_there``). If not, only the key counts. In a table without a key a row
of it is a copy that was there until ``_until``, or was not there until then.

Argument
--------
*Without gaps (P1).* An image is written in the engine transaction of the fold that moves
its successor to storage, so that the images of a key, its state in storage and its versions
in the cache table are its whole life since the table has a history. A table gets its number
with its history: a process that folds it by what it knows of the number knows that it has one.

*Without overlaps.* Storage's state is from the greatest ``_until`` of the key's images on, or
from the beginning; every other state is from its version on. If images were pruned that is
too early, but no version in between can be asked for.

*The past.* A state at ``s`` is read in one engine transaction: storage, the versions up to
``s``, and the images of that moment. A table that is folded beyond ``s`` has no such
versions, and one that is not has no such images. So it is right before and after any fold.

*Another definition.* The images of a table are of its columns. A table that gets others, and
so another number, has a new history; one that keeps them goes on with the one before, since
storage has all versions then.

*Moments.* Commit records are kept as long as any table's every state. Of those that go then,
the last one of each full hour is kept: it is the state at that hour, as long as no other
commit comes. A hour may have several until the next pruning; the last one counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tique_backends.names import history_name
from tique_rewriter.schema import History

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from tique_backends.session import Session
    from tique_rewriter.schema import Table

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS tique.history (id BIGINT NOT NULL, since BIGINT NOT NULL, "
    "retention TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS tique.moments (cts BIGINT NOT NULL, "
    "committed_at BIGINT NOT NULL)",
)

STAMPS = ("_from BIGINT", "_until BIGINT NOT NULL", "_there BOOLEAN NOT NULL")
"""The columns of a history table behind the application's."""

_HOUR = 3_600_000_000

LAST_OF_HOURS = (
    "SELECT max(cts) AS cts, max(committed_at) AS committed_at FROM ({commits}) AS _c "
    # The commit at a full hour belongs to it.
    f"GROUP BY committed_at - 1 - (committed_at - 1) % {_HOUR}"
)
"""A query for the last commit at or before each full hour since the one before it."""

KEEPING_MOMENTS = (
    "INSERT INTO tique.moments "
    + LAST_OF_HOURS
    + " HAVING (SELECT count(*) FROM tique.history) > 0"
)
"""What is kept of commit records that are about to go."""

_OF_COMMITS = ("moments", "outcomes", "log")

COMMITS = " UNION ALL ".join(
    f"SELECT cts, committed_at FROM tique.{name}" for name in _OF_COMMITS
)
"""A query for the commits that have a time; of those that were logged at once, the last."""


def read(session: Session) -> dict[int, History]:
    """The histories that there are, by their tables' numbers."""
    rows = session.execute("SELECT id, since, retention FROM tique.history").fetch_all()
    return {int(number): History(int(since), text) for number, since, text in rows}


def attached(session: Session, tables: Iterable[Table]) -> list[Table]:
    """The managed tables, with their histories."""
    known = read(session)
    return [replace(table, history=known.get(table.id)) for table in tables]


def keep(session: Session, table: Table) -> None:
    """Register a table's history, in the place of the one before."""
    assert table.history is not None
    session.execute(f"DELETE FROM tique.history WHERE id = {table.id}")
    session.execute(
        "INSERT INTO tique.history VALUES ($1, $2, $3)",
        [table.id, table.history.since, table.history.retention],
    )


def begin(session: Session, numbers: Collection[int], since: int) -> None:
    """Have the histories of new tables begin with the commit that makes these known."""
    listed = ", ".join(map(str, numbers))
    session.execute(f"UPDATE tique.history SET since = {since} WHERE id IN ({listed})")


def forget(session: Session, table: Table, *, drops: bool = True) -> None:
    """Drop a table's history, if it has one, or its registration alone."""
    which = f"FROM tique.history WHERE id = {table.id}"
    if session.execute(f"SELECT id {which}").fetch_all():
        if drops:
            session.execute(f"DROP TABLE {history_name(table)}")
        session.execute(f"DELETE {which}")


def newest(session: Session) -> int:
    """The latest time of a commit, in microseconds."""
    return _greatest(session, "committed_at")


def time_of(session: Session, version: int) -> int | None:
    """When the first commit from a version on was made that has a record, if there is one."""
    rows = session.execute(
        f"SELECT committed_at FROM ({COMMITS}) AS _c WHERE cts >= {version} "
        "ORDER BY cts LIMIT 1"
    ).fetch_all()
    return int(rows[0][0]) if rows else None


def count(session: Session, table: Table) -> int:
    """How many images of a table there are."""
    rows = session.execute(f"SELECT count(*) FROM {history_name(table)}").fetch_all()
    return int(rows[0][0])


def version_at(session: Session, time: int) -> int:
    """The last commit at or before a time, in microseconds; 0: none is known."""
    return _greatest(session, "cts", f" WHERE committed_at <= {time}")


def _greatest(session: Session, column: str, which: str = "") -> int:
    """The greatest of something of all commits; of each table an index may know it."""
    of_each = " UNION ALL ".join(
        f"SELECT max({column}) AS found FROM tique.{name}{which}"
        for name in _OF_COMMITS
    )
    ((found,),) = session.execute(
        f"SELECT coalesce(max(found), 0) FROM ({of_each}) AS _c"
    ).fetch_all()
    return int(found)


def last_of_hours(session: Session) -> list[tuple[int, int]]:
    """The last commit at or before each full hour, and its time."""
    rows = session.execute(LAST_OF_HOURS.format(commits=COMMITS)).fetch_all()
    return [(int(cts), int(time)) for cts, time in rows]


def prune_moments(session: Session, oldest: int) -> None:
    """Forget what happened before a version, and all but one commit of an hour."""
    kept = LAST_OF_HOURS.format(commits="SELECT * FROM tique.moments")
    session.change(
        f"DELETE FROM tique.moments WHERE cts < {oldest} "
        f"OR cts NOT IN (SELECT cts FROM ({kept}) AS _k)"
    )


def prune(
    session: Session, table: Table, until: int, points: Sequence[int] = ()
) -> int:
    """Delete images of which no version can be asked for; their number.

    These are the versions from ``until`` on, and ``points``, ascending, before. In a table
    without a key an image tells apart what was before its commit and what came after.
    """
    if table.is_keyless:
        until = min([until, *points])
        return session.change(
            f"DELETE FROM {history_name(table)} WHERE _until <= {until}"
        )
    # The last point before it ended.
    cases = " ".join(f"WHEN _until > {point} THEN {point}" for point in points[::-1])
    last = f"CASE {cases} ELSE -1 END" if points else "-1"
    return session.change(
        f"DELETE FROM {history_name(table)} WHERE _until <= {until} AND _from > {last}"
    )
