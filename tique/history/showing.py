"""What is kept of the past of each table."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from tique.history.retention import Retention
from tique_backends.catalog import histories

if TYPE_CHECKING:
    from tique_backends.engine import Engine


class HistoryInfo(NamedTuple):
    """How far back a table can be read.

    Attributes
    ----------
    table : str
        Its qualified name.
    retention : str
        What it keeps, and for how long.
    version : int
        The oldest version that can be asked for.
    time : datetime or None
        When that was committed; None: nothing was committed since then.
    images : int
        How many states of rows are kept beside the table.
    bytes : int
        The space that these take, nearly.
    """

    table: str
    retention: str
    version: int
    time: datetime | None
    images: int
    bytes: int


def kept(engine: Engine) -> list[HistoryInfo]:
    """What is kept of each table that has a history, by name."""
    found = []
    with closing(engine.session()) as session:
        now = max(engine.clock(session), histories.newest(session))
        for table in engine.managed_tables(session):
            if table.history is None:
                continue
            retention, since = (
                Retention.parse(table.history.retention),
                table.history.since,
            )
            begin = now - retention.first * 10**6
            first = histories.version_at(session, begin)
            moments = histories.last_of_hours(session, begin)
            points = [first, *retention.points(moments, now)]
            version = max(since, min(points))
            time = histories.time_of(session, version)
            found.append(
                HistoryInfo(
                    table.qualified_name,
                    retention.text,
                    version,
                    None if time is None else datetime.fromtimestamp(time / 1e6, UTC),
                    histories.count(session, table),
                    engine.history_bytes(session, table),
                )
            )
    return sorted(found)
