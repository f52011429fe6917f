"""Connections to an engine that a forked process has from its parent.

Invariant: whatever becomes of them in the child, in its garbage collection or at its end,
their server, their file and the parent's use of them do not notice:

* each is kept for ever, so that none is finalized: DuckDB would bring its log into the
  parent's file, and end threads that are not there;
* in place of a socket the child has ``/dev/null``, so that nothing that a client's library
  sends, such as its farewell, reaches the server, and the server learns of the parent's end
  though the child lives.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakSet

_Opened = TypeVar("_Opened")

_opened: WeakSet[Any] = WeakSet()


def noted(connection: _Opened) -> _Opened:
    """Return a client's connection, or its socket, which a fork leaves to the parent."""
    _opened.add(connection)
    return connection


def _leave() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for connection in _opened:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        # DuckDB's has no socket, and a closed one none any more.
        with suppress(Exception):
            os.dup2(nowhere, connection.fileno(), inheritable=False)
    os.close(nowhere)
    _opened.clear()


os.register_at_fork(after_in_child=_leave)
