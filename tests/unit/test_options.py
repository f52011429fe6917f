"""A type checker knows exactly the options of ``connect()``."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tique._connect import Options
from tique.database.settings import Settings

pytestmark = pytest.mark.engine_free


def test_options_are_the_settings():
    assert set(Options.__annotations__) == {field.name for field in fields(Settings)}
