"""Recovery, between opening a database and serving it (paper 2.4.2).

The commit records decide. Versions without one are removed (P5). sts and cts
start beyond the greatest committed cts, so that no cts is used twice: not even one
that was aborted after it, for that may have been the version that a reader, or a
replica, was shown (:func:`beyond`). Each opening
counts an epoch, durably and first of all, and txids start with it, so that no
txid is used twice even if the process died before it wrote anything else. An epoch
is a million txids; a process that has begun so many counts another one. There are
8,796,093,022,207 epochs: ten openings in a second use them up in 27,000 years. As no
snapshot is open, λ = sts: everything is folded, and the index of recent versions
starts empty. Versions that the log has and the cache tables lack are appended first.
Each step may be repeated: a crash here is a reason to run it again.

A table that cannot be folded stops no other (P4): its versions are served from its
cache table. If the cache table cannot even be brought up to the log, statements that
use that table are refused until a checkpoint has done it, and all else is served.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from tique import errors
from tique._log import fields
from tique_backends.engine import (
    FORMAT_OF_OWNERS_CODE,
    FORMAT_VERSION,
)
from tique_backends.errors import ConnectionLostError, EngineError, ErrorKind
from tique_udfs import LARGEST_TXID

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique.store.catalog import ManagedCatalog
    from tique_backends.engine import Engine
    from tique_backends.session import Session
    from tique_rewriter.schema import Table
    from tique_udfs import Sequencer

logger = logging.getLogger("tique.recovery")

_UNUSED = 1000
"""Timestamps behind the last commit's that no other commit gets."""

TXIDS_PER_EPOCH = 1 << 20

_MOST_EPOCHS = LARGEST_TXID // TXIDS_PER_EPOCH


def txids_of(epoch: int) -> range:
    """The transaction ids of an epoch, and before them a number that is not an id.

    Raises
    ------
    OperationalError
        There is no such epoch: all of them are used up.
    """
    if epoch >= _MOST_EPOCHS:
        raise errors.OperationalError(
            f"the transaction ids of this database are used up, {_MOST_EPOCHS:,} times "
            f"{TXIDS_PER_EPOCH:,}: copy its tables, which are ordinary tables, into a "
            "new database",
            sqlstate="54000",
        )
    return range(epoch * TXIDS_PER_EPOCH, (epoch + 1) * TXIDS_PER_EPOCH)


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
    if FORMAT_OF_OWNERS_CODE <= found < FORMAT_VERSION:
        engine.renew_format(session)
        logger.info(
            "the database was taken from tique's format %d to %d",
            found,
            FORMAT_VERSION,
            extra=fields("format_renewed", before=found, after=FORMAT_VERSION),
        )
    elif found != FORMAT_VERSION:
        raise errors.OperationalError(
            f"the database has tique's format {found}, this version reads format "
            f"{FORMAT_VERSION}; open it with the version of tique that wrote it and "
            "run 'tique detach', then 'tique adopt' with this one"
        )
    return False


def beyond(last: int) -> int:
    """A timestamp up to which all were handed out, if this was the last commit's.

    It is a guess where more than that many were aborted in a row, with no commit between.
    """
    return last and last + _UNUSED


def recover(
    engine: Engine,
    catalog: ManagedCatalog,
    sequencer: Sequencer,
    session: Session,
    first_txid: int,
) -> Restored:
    """Bring a database of this process's own to a state in which it can run.

    Its epoch is counted: ``first_txid`` begins it.
    """
    engine.upgrade(session)
    last = engine.last_commit(session)
    sequencer.recover(sts=beyond(last), txid=first_txid)
    catalog.reload(session)
    restored = restore(engine, session, catalog, last)
    for failure in restored.failures:
        versions = catalog.known_versions(failure.table)
        if failure.is_behind:
            versions.is_behind = True
        else:
            versions.restore(engine.cached_commits(session, failure.table))
    return restored


class Failure(NamedTuple):
    """A table that could not be folded.

    If it ``is_behind``, its cache table may lack versions, or have some too many.
    """

    table: Table
    error: EngineError
    is_behind: bool


class Restored(NamedTuple):
    """How many versions were folded, and which tables could not be."""

    moved: int
    failures: Sequence[Failure]


def bring_back(engine: Engine, session: Session, table: Table) -> int:
    """Remove orphans from a cache table, append missing versions; return their number.

    Raises
    ------
    EngineError
        PROGRAMMING if the table was changed without tique.
    """
    if table.fault is not None:
        raise EngineError(ErrorKind.PROGRAMMING, table.fault)
    orphans = engine.remove_orphans(session, table)
    if orphans:
        logger.warning(
            "recovery removed %d versions of %s that were never committed",
            orphans,
            table.qualified_name,
            extra=fields(
                "orphans_removed", table=table.qualified_name, versions=orphans
            ),
        )
    return engine.replay(session, table)


def restore(
    engine: Engine, session: Session, tables: Iterable[Table], last: int
) -> Restored:
    """Remove orphans and fold everything up to ``last``, the last commit."""
    moved = 0
    failures: list[Failure] = []
    for table in tables:
        is_behind = True
        try:
            added = bring_back(engine, session, table)
            is_behind = False
            if added or engine.cached_commits(session, table):
                moved += engine.fold(session, table, last)
        except ConnectionLostError:
            raise
        except EngineError as error:
            failures.append(Failure(table, error, is_behind))
    return Restored(moved, failures)


def prunable(
    engine: Engine, session: Session, failures: Iterable[Failure], until: int
) -> int:
    """The cts up to which the log is not needed any more, at most ``until``."""
    for failure in failures:
        commits = engine.cached_commits(session, failure.table)
        if failure.is_behind or not commits:
            return 0
        until = min(until, commits[0][0] - 1)
    return until
