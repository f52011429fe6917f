"""Queries of all shapes through tique and natively, by an engine that may crash (P1)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.fuzz.shapes_child import STORED

COUNT = 40


@pytest.mark.slow
@pytest.mark.duckdb
@pytest.mark.parametrize("stored", STORED)
def test_shapes(tmp_path, stored):
    file = str(tmp_path / "shapes.duckdb")
    child = [sys.executable, "-m", "tests.fuzz.shapes_child"]
    done = subprocess.run(
        [*child, file, stored, "20230801", "0", str(COUNT)],
        capture_output=True,
        text=True,
        timeout=280,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (lines[-1], done.stderr)
    assert [line for line in lines if not line.startswith("@")] == []
    assert lines[-1] == f"@{COUNT - 1}"
