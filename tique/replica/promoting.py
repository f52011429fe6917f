"""Making a replica an ordinary database.

Argument
--------
*One writer.* The file is opened, so no other process has it open, and no replication or
other connection of this one may be there.

*A state of the source.* The replica is at its position, which must have reached ``ready_at``. One engine
transaction makes it an ordinary database: a crash leaves a replica or that. No timestamp up to the
position, and no transaction id of the source's, is used again: the position is recorded as a
commit, and the epoch is counted beyond theirs.

*The source*, if it can be reached, is asked before for what it has committed since, and told
afterwards that no replica needs its log; if the process dies in between, it keeps that for a while.
"""

from __future__ import annotations

import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING, NamedTuple

from tique import errors
from tique._translation import translating
from tique.database.database import acquire, release
from tique.replica.source import Source
from tique.timeline.recovery import TXIDS_PER_EPOCH
from tique_backends.catalog import replicas

if TYPE_CHECKING:
    from tique.database.database import Database

_KEEP = 60.0


class Promoted(NamedTuple):
    """The outcome of :func:`tique.promote`.

    Attributes
    ----------
    cts : int
        The version of the source that the database has.
    lost : int or None
        How many commits to its tables the source has after that; None: it cannot be asked.
    """

    cts: int
    lost: int | None


def promote(target: str, *, source: str | None = None) -> Promoted:
    """Make a replica an ordinary database, in which one may write, at its last fold.

    Parameters
    ----------
    target
        The replica's URL.
    source
        The source's URL, if that needs a password to be asked for what is lost.

    Raises
    ------
    OperationalError
        It is no replica, or not a state of its source (SQLSTATE 55000), or it is in use (55006).
    """
    with translating():
        database = acquire(target, {})
        try:
            return _promoted(database, source)
        finally:
            release(database)


def _promoted(database: Database, url: str | None) -> Promoted:
    replica, path = database.replica, database.url.path
    if replica is None:
        raise errors.OperationalError(f"{path} is no replica", sqlstate="55000")
    if database.connections > 1:
        raise errors.OperationalError(
            f"{path} is open in this process: stop its replication and close its "
            "connections first",
            sqlstate="55006",
        )
    if replica.durable < replica.ready_at:
        raise errors.OperationalError(
            f"{path} is no state of its source: some of its tables are newer than others, "
            "or not there yet; run `tique replicate` once more",
            sqlstate="55000",
        )
    engine, position = database.engine, replica.durable
    asked = lost = None
    with closing(engine.session()) as session:
        tables = replicas.sources(session).keys()
        with suppress(errors.Error):
            asked = Source(url or replica.source, replica.slot, keep=_KEEP)
            asked.resume(position)
            later = asked.poll().commits
            lost = sum(not tables.isdisjoint(commit.writes) for commit in later)

        def make_ordinary() -> None:
            replicas.record(session, [(position, 0, time.time_ns() // 1000)])
            ((newest,),) = session.execute(
                "SELECT max(txid) FROM tique.outcomes"
            ).fetch_all()
            epoch = newest // TXIDS_PER_EPOCH + 1
            session.execute(
                f"UPDATE tique.format SET epoch = {epoch} WHERE epoch < {epoch}"
            )
            session.execute("DROP TABLE tique.replicated")
            session.execute("DROP TABLE tique.replica")

        session.transact(make_ordinary)
    if asked is not None:
        with suppress(errors.Error):
            asked.drop()
        asked.close()
    return Promoted(position, lost)
