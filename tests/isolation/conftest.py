from __future__ import annotations

import pytest

from tests.crash.faults import Faults, watched_connect


@pytest.fixture
def faults(engine, monkeypatch):
    """Errors at the engine's calls, planned by the test; the engine is real."""
    planned = Faults()
    monkeypatch.setattr(
        engine.driver, "connect", watched_connect(engine.driver, planned)
    )
    yield planned
    planned.clear()
