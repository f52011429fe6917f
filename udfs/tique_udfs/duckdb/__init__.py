"""DuckDB's skin of the sequencer: SQL functions that read it."""

from __future__ import annotations

import ctypes
import logging
import os
import weakref
from threading import Lock
from typing import Protocol

from tique_udfs._interface import Sequencer, SequencerError
from tique_udfs._native import Library, NativeSequencer

__all__ = ["Connection", "Prepared", "PreparedError", "load", "prepared"]

_FAILED = -4
"""TIQUE_UNKNOWN."""
_MESSAGE_BYTES = 4096

_logger = logging.getLogger("tique.sequencer")

# The announced handle is one per process: only one LOAD at a time may take it.
_loading = Lock()


class _Result(Protocol):
    def fetchall(self) -> list[tuple[int, ...]]: ...


class Connection(Protocol):
    """The methods of a DuckDB connection that are used."""

    def execute(self, query: str, /) -> _Result:
        """Run a statement."""


def load(
    connection: Connection, sequencer: Sequencer, *, for_prepared: bool = False
) -> bool:
    """Give a DuckDB instance SQL functions that read its sequencer.

    ``tique_sts()``, ``tique_cts()``, ``tique_lambda()`` and ``tique_active()``
    (the number of active transactions) answer in every connection to the
    instance, with the numbers that the sequencer's methods give, and with an
    error once it is closed. They move nothing.

    Parameters
    ----------
    connection
        A connection outside a transaction, to an instance that was opened with
        ``allow_unsigned_extensions``.
    sequencer
        The sequencer of that instance.
    for_prepared
        Whether :func:`prepared` is called next: DuckDB lets an extension connect to the
        instance only now.

    Returns
    -------
    bool
        Whether the functions are there. They are not for a sequencer in Python,
        nor when DuckDB refuses the extension, which the log ("tique") tells.

    Raises
    ------
    SequencerError
        The instance belongs to another sequencer that is still open.
    """
    if not isinstance(sequencer, NativeSequencer):
        return False
    library = sequencer.library
    path = str(library.path).replace("'", "''")
    with _loading:
        library.announce(sequencer.handle)
        try:
            connection.execute(f"LOAD '{path}'")
        except Exception as error:  # any DB-API module's, and none is imported here
            _logger.warning(
                "DuckDB cannot load %s, so SQL functions such as tique_sts() are "
                "missing from %r: %s",
                library.path,
                sequencer.name,
                error,
            )
            return False
        finally:
            taken = library.announce(0) == 0
    number = _number(connection)
    if taken:
        if not for_prepared:
            library.disconnect(number)
        return True
    if library.rebind(number, sequencer.handle) != 0:
        raise SequencerError(
            f"the DuckDB instance of {sequencer.name!r} already belongs to another "
            "sequencer that is still open; close that one first"
        )
    return True


class PreparedError(Exception):
    """DuckDB's message when a prepared statement failed."""


class Prepared:
    """A statement that DuckDB plans once, in a connection of its own to an instance.

    Parameters
    ----------
    library
        The library that was loaded into the instance.
    number
        The instance's.
    sql
        A statement with three parameters: two of BIGINT, one of VARCHAR. All prepared
        statements of an instance are the same.
    """

    def __init__(self, library: Library, number: int, sql: str) -> None:
        self._library = library
        self._number = number
        self.sql = sql
        self._encoded = sql.encode()
        # At the end of the process, too: DuckDB's own end of the instance, which brings
        # the write-ahead log into the file, must not be held up.
        self._finalizer = weakref.finalize(
            self, _disconnect, library, number, os.getpid()
        )

    def run(self, first: int, second: int, text: str) -> bool:
        """Run it, in a transaction of its own; one thread at a time.

        Returns
        -------
        bool
            Whether there is a connection to run it in: one that was given up is not
            made anew.

        Raises
        ------
        PreparedError
            The statement failed.
        """
        encoded = text.encode()
        message = ctypes.create_string_buffer(_MESSAGE_BYTES)
        status = self._library.run(
            *(self._number, self._encoded, first, second),
            *(encoded, len(encoded), message, _MESSAGE_BYTES),
        )
        if status == _FAILED:
            raise PreparedError(message.value.decode(errors="replace"))
        return bool(status == 0)

    def close(self) -> None:
        """Give the connection up; idempotent."""
        self._finalizer()


def _disconnect(library: Library, number: int, process: int) -> None:
    # That of the process that this one was forked from is left to it.
    if os.getpid() == process:
        library.disconnect(number)


def prepared(connection: Connection, sequencer: Sequencer, sql: str) -> Prepared | None:
    """Return a prepared statement of an instance; None without the functions.

    Until it is closed, the instance stays open.

    Parameters
    ----------
    connection, sequencer
        As for :func:`load`, which has succeeded, for a prepared statement.
    sql
        As for :class:`Prepared`.
    """
    if not isinstance(sequencer, NativeSequencer):
        return None
    return Prepared(sequencer.library, _number(connection), sql)


def _number(connection: Connection) -> int:
    """The number of the instance among those of the process."""
    # A result that is not read to its end would leave its transaction open.
    ((number,),) = connection.execute("SELECT tique_binding()").fetchall()
    return number
