"""Which process this is, without a system call for every question."""

from __future__ import annotations

import os

_current = os.getpid()


def current() -> int:
    """The process's id."""
    return _current


def _note_fork() -> None:
    global _current
    _current = os.getpid()


os.register_at_fork(after_in_child=_note_fork)
