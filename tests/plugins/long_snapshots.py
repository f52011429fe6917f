"""A test's snapshots are short, however slow the machine is; some tests have them long."""

from __future__ import annotations

import pytest

from tique.database import settings


@pytest.fixture(autouse=True, scope="session")
def _short_snapshots() -> None:
    """Let none be handed to the engine in a test of something else."""
    settings._LONG_SNAPSHOT = 60.0
