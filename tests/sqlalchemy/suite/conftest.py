"""SQLAlchemy's plugin for its own suite, and what it has to know of the engines."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403

import tests.sqlalchemy.suite.provision  # noqa: E402, F401
from tests.sqlalchemy.suite.requirements import SKIPPED  # noqa: E402


def pytest_runtest_setup(item):
    from sqlalchemy.testing import config

    for beginning, reason in SKIPPED[config.db.dialect.name].items():
        if item.name.startswith(beginning):
            pytest.skip(reason)
