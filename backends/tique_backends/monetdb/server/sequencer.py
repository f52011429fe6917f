"""The sequencer inside the server: compiled, or in Python without a compiler."""

from __future__ import annotations

import ctypes
import logging
import os
from typing import TYPE_CHECKING

from tique_backends.monetdb.server.errors import ServerError
from tique_udfs import BuildError, PythonSequencer, sequencer_choice
from tique_udfs.build import build
from tique_udfs.monetdb import register

if TYPE_CHECKING:
    from tique_backends.monetdb.server.mserver import MServer

_logger = logging.getLogger("tique.sequencer")


def load_sequencer(monetdb: MServer) -> object:
    """Give MonetDB the module that tique's SQL functions call, before it starts.

    ``TIQUE_SEQUENCER`` chooses as it does for :func:`tique_udfs.open_sequencer`.

    Returns
    -------
    object
        References that must be kept for as long as the server runs.

    Raises
    ------
    ServerError
        If the sequencer in C is asked for and cannot be had.
    """
    try:
        choice = sequencer_choice()
        if choice != "python":
            return ctypes.CDLL(os.fspath(build("monetdb")), mode=ctypes.RTLD_GLOBAL)
    except ValueError as error:
        raise ServerError(str(error)) from error
    except (BuildError, OSError) as error:
        if choice == "c":
            raise ServerError(str(error)) from error
        _logger.warning("the server's sequencer is the slower one in Python: %s", error)
    sequencer = PythonSequencer("MonetDB")
    return register(sequencer, monetdb.interpreter, monetdb.kernel)
