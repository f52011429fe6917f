"""Adopting existing tables, and detaching them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique.database.administration import administer

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from tique.database.database import Database


def adopt(
    url: str | os.PathLike[str], tables: Sequence[str] | None = None
) -> list[str]:
    """Take existing tables under tique's management without moving a row.

    Parameters
    ----------
    url
        The database's URL.
    tables
        ``table`` or ``schema.table``; None adopts all that are not managed yet.

    Returns
    -------
    list of str
        The qualified names of the tables that were adopted.

    Raises
    ------
    NotSupportedError
        If a table has a feature whose guarantees tique cannot keep (foreign keys on
        DuckDB, or to tables that are not adopted with it, keys with generated columns, keys with
        collations by which different texts are equal, unique indexes with a condition or (on PostgreSQL) on expressions, a CHECK that depends on more than
        the row); then none is adopted.
    ProgrammingError
        If a table does not exist or is managed already.
    """

    def work(database: Database) -> list[str]:
        try:
            return database.ddl.adopt(tables)
        except BaseException:
            if database.is_new and not list(database.catalog):
                # A refused adoption leaves no trace.
                database.ddl.detach()
            raise

    return administer(url, work)


def detach(
    url: str | os.PathLike[str], tables: Sequence[str] | None = None
) -> list[str]:
    """Release tables from tique's management; all of them leaves no trace of it.

    Parameters
    ----------
    url
        The database's URL.
    tables
        As for :func:`adopt`; None releases all and drops tique's schema.

    Returns
    -------
    list of str
        The qualified names of the tables that were released.

    Raises
    ------
    OperationalError
        If an open transaction still needs a table's recent versions, or they cannot be
        folded (SQLSTATE 55000), or a FOREIGN KEY links it with a table that stays
        (2BP01).
    NotSupportedError
        If a table has a FOREIGN KEY that the engine cannot add to it (DuckDB).
    """
    return administer(url, lambda database: database.ddl.detach(tables))
