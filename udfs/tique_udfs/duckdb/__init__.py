"""DuckDB's skin of the sequencer: SQL functions that read it."""

from __future__ import annotations

import logging
from threading import Lock
from typing import Protocol

from tique_udfs._interface import Sequencer, SequencerError
from tique_udfs._native import NativeSequencer

__all__ = ["Connection", "load"]

_logger = logging.getLogger("tique.sequencer")

# The announced handle is one per process: only one LOAD at a time may take it.
_loading = Lock()


class _Result(Protocol):
    def fetchone(self) -> tuple[int, ...] | None: ...


class Connection(Protocol):
    """The methods of a DuckDB connection that are used."""

    def execute(self, query: str, /) -> _Result:
        """Run a statement."""


def load(connection: Connection, sequencer: Sequencer) -> bool:
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
    if taken:
        return True
    row = connection.execute("SELECT tique_binding()").fetchone()
    if row is None or library.rebind(row[0], sequencer.handle) != 0:
        raise SequencerError(
            f"the DuckDB instance of {sequencer.name!r} already belongs to another "
            "sequencer that is still open; close that one first"
        )
    return True
