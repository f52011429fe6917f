"""P6: an opening that is interrupted leaves nothing open."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from tique.database import database as databases

pytestmark = pytest.mark.one_duckdb


def test_what_was_opened_for_an_interrupted_caller_is_released(engine, monkeypatch):
    acquire = databases._acquire

    def acquire_slowly(*arguments, **options):
        opened = acquire(*arguments, **options)
        time.sleep(1)
        return opened

    monkeypatch.setattr(databases, "_acquire", acquire_slowly)
    opened_before = set(databases._registry)  # by modules that keep one open
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            engine.connect()
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert set(databases._registry) == opened_before
    monkeypatch.undo()
    with engine.connect() as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
