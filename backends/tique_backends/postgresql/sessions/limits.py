"""The time for which a guest role may keep other processes waiting (P6, P11)."""

from __future__ import annotations

LIMIT = 1200
"""Milliseconds.

A timestamp that such a role takes is in doubt then, and a transaction with one, or with a
lock that others' calls need, is ended. So others wait for less than two seconds, the fence
included.
"""

OVERDUE = "TQ004"
"""The sequencer's SQLSTATE for a timestamp that was taken away by then."""

TOO_SLOW = (
    "the commit is aborted: it had more rows than were written in the time for which a role "
    "that does not own schema tique may keep all others from committing "
    f"({LIMIT / 1000:g} s); write fewer rows in a transaction, or connect as a member of the "
    "role that owns the schema"
)
