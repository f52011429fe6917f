"""Recovery: what happens between opening a database and serving it (paper 2.4.2).

The commit records decide. Versions without one are removed (P5). sts and cts
start at the greatest committed cts, so that no cts is used twice. Each opening
counts an epoch, durably and first of all, and txids start with it, so that no
txid is used twice even if the process died before it wrote anything else. As no
snapshot is open, λ = sts: everything is folded, and the index of recent versions
starts empty. What the log has and the cache tables lack is appended first.
Each step may be repeated: a crash here is a reason to run it again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tique import errors
from tique_backends.base import FORMAT_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tique._database import Database
    from tique_backends.base import Engine, Session
    from tique_rewriter.schema import Table

logger = logging.getLogger("tique")

TXIDS_PER_EPOCH = 1 << 40


def prepare(engine: Engine, session: Session) -> bool:
    """Make sure that the database holds tique's schema in this format.

    Returns
    -------
    bool
        Whether the schema had to be made.

    Raises
    ------
    OperationalError
        If the database was written by another version of tique.
    """
    if not engine.is_managed():
        engine.install(session)
        return True
    found = engine.format_version()
    if found != FORMAT_VERSION:
        raise errors.OperationalError(
            f"the database has tique's format {found}, this version reads format "
            f"{FORMAT_VERSION}; open it with the version of tique that wrote it and "
            "run 'tique detach', then 'tique adopt' with this one"
        )
    return False


def recover(database: Database, session: Session) -> None:
    """Bring a database of this process's own to a state in which it can run."""
    engine = database.engine
    database.epoch = engine.next_epoch(session)
    last = engine.last_commit(session)
    database.sequencer.recover(sts=last, txid=database.epoch * TXIDS_PER_EPOCH)
    database.reload(session)
    database.checkpointer.folded += restore(engine, session, database.catalog, last)


def restore(
    engine: Engine, session: Session, tables: Iterable[Table], last: int
) -> int:
    """Remove orphans and fold everything up to ``last``, the last commit.

    Returns
    -------
    int
        The number of versions that were folded.
    """
    moved = 0
    for table in tables:
        orphans = engine.remove_orphans(session, table)
        if orphans:
            logger.warning(
                "recovery removed %d versions of %s that were never committed",
                orphans,
                table.qualified_name,
            )
        if engine.replay(session, table) or engine.cached_rows(session, table):
            moved += engine.fold(session, table, last)
    return moved
