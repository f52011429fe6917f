"""URLs of SQLAlchemy's for the engines of tests."""

from __future__ import annotations

import pytest


@pytest.fixture
def url(engine):
    """The test's database, as SQLAlchemy's URL."""
    return engine.url.replace("://", "+tique://", 1)
