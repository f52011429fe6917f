"""Points of the past: the version at a time, and whether a table can be read as of it.

A time stands for the last commit at or before it, by the clock that the log has: the
server's, or that of the process whose database it is. If that clock was put back, a later commit may
have an earlier time than one before it. Then it is the last one in the order of commits of
those whose time is not later, and what was committed before that one is a part of it.

*Which points there are* is up to the table's retention: all since the beginning of its first
term, and before that those at full hours or days. Of the commits between these there is neither an
image nor a record. So a time between them stands for nothing, unless nothing was committed
from one to the next; and a version is one of those at them, or it is refused.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tique import errors
from tique.history.retention import Retention
from tique_backends.catalog.histories import last_of_hours, newest, read, version_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.engine import Engine
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Point:
    """A version of the past.

    ``time`` is the one that it stands for, if it was not asked for itself, ``now`` when it was
    asked for; both are in microseconds since 1970.
    """

    version: int
    now: int
    time: int | None = None


def now_of(engine: Engine, session: Session) -> int:
    """The time by which it is judged what was pruned (:mod:`tique.history.pruning`)."""
    return max(engine.clock(session), newest(session))


def point_of(
    engine: Engine, session: Session, asked: int | datetime, sts: int
) -> Point:
    """Return what is asked for as a point, in an engine transaction that has a snapshot.

    Raises
    ------
    ProgrammingError
        It is in the future (SQLSTATE 22023).
    OperationalError
        No commit is known that was so early (72000).
    """
    now = now_of(engine, session)
    if not isinstance(asked, datetime):
        if not 0 <= asked <= sts:
            raise errors.ProgrammingError(
                f"there is no version {asked}: the newest is {sts}", sqlstate="22023"
            )
        return Point(asked, now)
    time = (asked - _EPOCH) // _MICROSECOND
    if time > now:
        raise errors.ProgrammingError(
            f"{_shown(time)} is in the future: it is {_shown(now)}", sqlstate="22023"
        )
    version = version_at(session, time)
    if not version:
        raise _not_kept(f"no commit is known at or before {_shown(time)}")
    # (A later commit may be under way.)
    return Point(min(version, sts), now, time)


def expect_kept(session: Session, table: Table, point: Point) -> None:
    """Refuse a table that cannot be read as of a point.

    Raises
    ------
    ProgrammingError
        It has no history (SQLSTATE 55000).
    OperationalError
        Its history begins later, or has no such point any more (72000).
    """
    name, history = table.qualified_name, read(session).get(table.id)
    if history is None:
        raise errors.ProgrammingError(
            f"{name} has no history: `tique history set` gives it one, from then on",
            sqlstate="55000",
        )
    if point.version < history.since:
        raise _not_kept(
            f"the history of {name} has no version {point.version}: it begins with "
            f"version {history.since}"
        )
    retention = Retention.parse(history.retention)
    begin = point.now - retention.first * 10**6
    near: list[str] = []
    if point.time is None:
        near = _near_version(session, point, retention, begin)
    elif point.time < begin:
        places = sorted({*retention.places(point.now), begin})
        near = _near_time(session, point.time, places, history.since)
    if near:
        what = f"version {point.version}" if point.time is None else _shown(point.time)
        raise _not_kept(
            f"the history of {name} has no {what} any more; nearest to it: "
            + " and ".join(near)
        )


def _near_version(
    session: Session, point: Point, retention: Retention, begin: int
) -> list[str]:
    """The points beside a version that is none, before the first term."""
    first = version_at(session, begin)
    if point.version >= first:
        return []
    versions = [*retention.points(last_of_hours(session), point.now), first]
    if point.version in versions:
        return []
    place = bisect_right(versions, point.version)
    return [f"version {each}" for each in versions[max(place - 1, 0) : place + 1]]


def _near_time(
    session: Session, time: int, places: Sequence[int], since: int
) -> list[str]:
    """The points beside a time that is none, before the first term."""
    place = bisect_right(places, time)
    if place and places[place - 1] == time:
        return []
    beside = places[max(place - 1, 0) : place + 1]
    versions = [version_at(session, each) for each in beside]
    if len({*versions}) < len(versions):
        # Nothing was committed from one to the next.
        return []
    return [
        f"{_shown(at)} (version {version})"
        for at, version in zip(beside, versions, strict=True)
        if version >= since
    ]


def _shown(time: int) -> str:
    return (_EPOCH + time * _MICROSECOND).isoformat(" ")


def _not_kept(message: str) -> errors.OperationalError:
    return errors.OperationalError(message, sqlstate="72000")
