"""Images of which no version can be asked for are pruned.

Argument
--------
*By the time of the newest commit*, which the database knows. A reader that asks for a version
begins its engine transaction first, and then takes the later one of that time and the clock's.
So what was pruned before is out of its reach, also if the clock was set back, and what is pruned
afterwards is there in its engine transaction.

*A shorter retention that another process has set since* prunes less than there is to prune;
with a longer one ``since`` begins where the one before ended.

A crash leaves an image or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique.history.retention import Retention
from tique_backends.catalog import histories

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tique_backends.engine import Engine
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_SPARE = 60.0
"""Seconds for which commit records are kept beyond a first term."""


class Pruning:
    """Prunes the histories of one database.

    Parameters
    ----------
    engine
        The database's engine.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def kept(self, tables: Iterable[Table]) -> float:
        """For how many seconds every commit's record is needed."""
        histories = (table.history for table in tables)
        terms = [Retention.parse(h.retention).first + _SPARE for h in histories if h]
        return max(terms, default=0.0)

    def prune(self, session: Session, tables: Iterable[Table]) -> int:
        """Delete images of which no version can be asked for; their number."""
        if all(table.history is None for table in tables):
            return 0
        engine, pruned = self._engine, 0
        now, known = histories.newest(session), histories.read(session)
        moments = histories.last_of_hours(session)
        longest = 0
        for table in tables:
            history = known.get(table.id)
            if history is None:
                continue
            retention = Retention.parse(history.retention)
            longest = max(longest, retention.longest)
            until = histories.version_at(session, now - retention.first * 10**6)
            until = max(until, history.since)
            points = [
                point
                for point in retention.points(moments, now)
                if history.since <= point < until
            ]
            pruned += engine.prune_history(session, table, until, points)
        oldest = histories.version_at(session, now - longest * 10**6)
        engine.prune_moments(session, oldest)
        return pruned
