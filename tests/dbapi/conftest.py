from __future__ import annotations

import pytest

from tests.staging import stage_above


@pytest.fixture
def _staged(monkeypatch):
    """Stage whatever a statement writes."""
    stage_above(0, monkeypatch.setattr)
