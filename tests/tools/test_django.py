"""Django on ``tique.django``: migrations, the ORM, its own test runner (PostgreSQL)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugins.postgresql import empty

pytestmark = pytest.mark.postgresql

ROOT = Path(__file__).parent.parent.parent


def run(*command):
    return subprocess.run(
        [sys.executable, "-Werror", *command], cwd=ROOT, text=True, capture_output=True
    )


@pytest.mark.slow
def test_a_project(postgresql_cluster):
    empty(postgresql_cluster.socket_url)
    done = run("-m", "tests.tools.django_project", postgresql_cluster.socket_url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ran 13 tests" in done.stderr


def test_what_is_psycopgs_is_refused():
    code = (
        "from tests.tools.django_project.__main__ import configure\n"
        "configure('postgresql://u:p@localhost/d?pool=1')\n"
        "from django.db import connection\n"
        "connection.ensure_connection()\n"
    )
    done = run("-c", code)
    assert done.returncode == 1
    assert "OPTIONS have pool" in done.stderr
