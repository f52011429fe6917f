"""What interrupts calls of an engine."""

from __future__ import annotations

import signal

import pytest

from tests.crash.faults import watched_connect, watched_run
from tests.crash.interrupting import Interrupt
from tique_udfs.duckdb import Prepared


@pytest.fixture
def interrupt(engine, monkeypatch):
    """Interrupts calls of the engine, and the main thread by a signal, while it is armed."""
    planned = Interrupt(engine)
    connect = watched_connect(engine.driver, planned)
    monkeypatch.setattr(engine.driver, "connect", connect)
    monkeypatch.setattr(Prepared, "run", watched_run(planned))

    def handle(*_):
        if planned.is_armed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handle)
    yield planned
    planned.disarm()
    signal.signal(signal.SIGINT, before)
