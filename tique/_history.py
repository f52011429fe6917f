"""For how long the past of tables is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique.database.administration import administer
from tique.history import showing
from tique.history.retention import Retention
from tique.query.define import history as setting

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from tique.history.showing import HistoryInfo


def set_history(
    url: str | os.PathLike[str],
    retention: str,
    tables: Sequence[str] | None = None,
) -> list[str]:
    """Keep the past of tables, so that they can be read as they were.

    Parameters
    ----------
    url
        The database's URL.
    retention
        For how long, and in which detail: ``"2 hours; hourly for 2 days; daily for 30
        days"`` keeps every state of the last two hours, then those at full hours and days
        (UTC).
    tables
        ``table`` or ``schema.table``; None: all tables.

    Returns
    -------
    list of str
        The qualified names of the tables whose retention is another one than before.

    Raises
    ------
    InterfaceError
        If the retention is none.
    ProgrammingError
        If there is no such table.
    OperationalError
        If an open transaction uses a table that had no history, or needs its recent
        versions (SQLSTATE 55006).
    """
    wanted = Retention.parse(retention)
    return administer(
        url, lambda database: setting.set_history(database.changes, wanted, tables)
    )


def drop_history(
    url: str | os.PathLike[str], tables: Sequence[str] | None = None
) -> list[str]:
    """Forget the past of tables, and keep none from now on.

    Parameters
    ----------
    url
        The database's URL.
    tables
        As for :func:`set_history`.

    Returns
    -------
    list of str
        The qualified names of the tables that had a history.
    """
    return administer(
        url, lambda database: setting.drop_history(database.changes, tables)
    )


def histories(url: str | os.PathLike[str]) -> list[HistoryInfo]:
    """Tell what is kept of the past of each table, if anything is."""
    return administer(url, lambda database: showing.kept(database.engine))
