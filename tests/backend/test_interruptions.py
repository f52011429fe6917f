"""DuckDB's words for an interruption are the interruption itself (P6)."""

from __future__ import annotations

import pytest

from tique_backends.duckdb.errors import translated


class Signal(BaseException):
    """A signal handler's own exception."""


def stopped(cause=None):
    error = RuntimeError("Query interrupted")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (stopped(), KeyboardInterrupt),
        (stopped(KeyboardInterrupt()), KeyboardInterrupt),
        (stopped(stopped(KeyboardInterrupt())), KeyboardInterrupt),
        (stopped(stopped()), KeyboardInterrupt),
        (stopped(stopped(Signal())), Signal),
    ],
)
def test_a_query_that_a_signal_stopped(error, raised):
    with pytest.raises(raised):
        translated(error)
