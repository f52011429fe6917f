"""The sequencer: transaction ids, timestamps, active snapshots.

It is written in C (``core/``), with one thin skin per engine, and once more in
Python for machines without a C compiler. Both do exactly the same.
"""

from __future__ import annotations

import logging
import os

from ._interface import (
    EXCLUSIVE_PREFIX,
    KEYS_PER_CALL,
    LARGEST_TXID,
    RING_CAPACITY,
    SHARED_PREFIX,
    ActiveSnapshot,
    DeadlockError,
    FencedError,
    InterruptedWaitError,
    KeyConflictError,
    KeysLockedError,
    RingFullError,
    Sequencer,
    SequencerClosedError,
    SequencerError,
    lock_number,
)
from ._native import NativeSequencer
from ._python import PythonSequencer
from .build import BuildError

__all__ = [
    "EXCLUSIVE_PREFIX",
    "KEYS_PER_CALL",
    "LARGEST_TXID",
    "RING_CAPACITY",
    "SHARED_PREFIX",
    "ActiveSnapshot",
    "BuildError",
    "DeadlockError",
    "FencedError",
    "InterruptedWaitError",
    "KeyConflictError",
    "KeysLockedError",
    "PythonSequencer",
    "RingFullError",
    "Sequencer",
    "SequencerClosedError",
    "SequencerError",
    "lock_number",
    "open_sequencer",
    "sequencer_choice",
]

_logger = logging.getLogger("tique.sequencer")


def sequencer_choice() -> str:
    """Return the choice in ``TIQUE_SEQUENCER``: ``auto``, ``c`` or ``python``.

    Raises
    ------
    ValueError
        It has any other value.
    """
    choice = os.environ.get("TIQUE_SEQUENCER") or "auto"
    if choice not in {"auto", "c", "python"}:
        raise ValueError(
            f"TIQUE_SEQUENCER must be 'auto', 'c' or 'python', not {choice!r}"
        )
    return choice


def open_sequencer(name: str) -> Sequencer:
    """Open a new sequencer: in C, or in Python where that cannot be had.

    The environment variable ``TIQUE_SEQUENCER`` decides: ``python`` and ``c`` ask
    for one of them, ``auto`` (the default) takes the Python one with a warning in
    the log ("tique") when the C one cannot be compiled or loaded. The log also tells, as
    information, which one runs.

    Parameters
    ----------
    name
        The name of its database, for messages. Two sequencers are independent of each
        other even when they have the same name.

    Raises
    ------
    BuildError
        ``TIQUE_SEQUENCER=c`` and the C sequencer cannot be had.
    ValueError
        ``TIQUE_SEQUENCER`` has any other value.
    """
    choice = sequencer_choice()
    if choice == "python":
        _logger.info(
            "the sequencer of %r runs in Python, as TIQUE_SEQUENCER says", name
        )
        return PythonSequencer(name)
    try:
        sequencer = NativeSequencer(name)
    except BuildError as error:
        if choice == "c":
            raise
        _logger.warning(
            "using the Python sequencer for %r; SQL functions such as tique_sts() are "
            "missing from it: %s\nInstall a C compiler and run 'tique udf build', or "
            "set TIQUE_SEQUENCER=python to have it so without this warning",
            name,
            error,
        )
        return PythonSequencer(name)
    _logger.info("the sequencer of %r runs in C: %s", name, sequencer.library.path)
    return sequencer
