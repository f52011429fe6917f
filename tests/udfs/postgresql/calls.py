"""Calling the sequencer's functions in a PostgreSQL server."""

import time
from contextlib import contextmanager

import psycopg
import pytest

A, B, C = (bytes([number]) * 16 for number in (1, 2, 3))
LONG = 600_000
GONE, UNRECOVERED, REFUSED = "TQ001", "TQ002", "TQ003"


def connect(url, **options):
    return psycopg.connect(url, autocommit=True, **options)


def ask(connection, function, *arguments):
    """Call a function of the sequencer; its result, a tuple if it has several."""
    places = ", ".join(["%s"] * len(arguments))
    row = connection.execute(
        f'SELECT * FROM tique."{function}"({places})', arguments
    ).fetchone()
    return row[0] if len(row) == 1 else row


def refused(state, match):
    """Expect an error of the sequencer's."""

    @contextmanager
    def expecting():
        with pytest.raises(psycopg.Error, match=match) as caught:
            yield
        assert caught.value.sqlstate == state
        assert caught.value.diag.message_hint

    return expecting()


def wait_until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
