"""The current process's id, without a system call every time."""

from __future__ import annotations

import os
import threading
from typing import NoReturn

is_exiting = False
"""Whether the interpreter is about to end: set when databases begin to be closed."""

_current = os.getpid()


def current() -> int:
    """The process's id."""
    return _current


def _note_fork() -> None:
    global _current
    _current = os.getpid()


def park_if_exiting() -> None:
    """Never return, if this is a daemon thread that outlives the interpreter.

    Its connection is being closed under it, which is not an error of the application.
    It has to wait in Python: a thread that comes back from an engine's C++ code when
    the interpreter is gone is ended by an exception, and that code then calls abort().
    """
    main = threading.main_thread()
    if threading.current_thread() is not main and (is_exiting or not main.is_alive()):
        _park()


def _park() -> NoReturn:
    forever = threading.Lock()
    forever.acquire()
    while True:
        forever.acquire()


os.register_at_fork(after_in_child=_note_fork)
