"""The verdict that ``jepsen/README.md`` shows is what the checker prints."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from jepsen.cli import main
from tests.docs.blocks import ROOT

pytestmark = pytest.mark.engine_free

HISTORY = ROOT / "jepsen" / "histories" / "stale-snapshot.edn"


def test_it_is_printed():
    text = (ROOT / "jepsen" / "README.md").read_text()
    section = text.split("\n## A verdict\n")[1].split("\n## ")[0]
    shown = [line.strip() for line in section.splitlines() if line.startswith("    ")]
    command, *shown = shown
    assert command.startswith("python -m jepsen run ")
    result = CliRunner().invoke(main, ["check", str(HISTORY)], prog_name="jepsen")
    assert result.exit_code == 1
    there = HISTORY.read_text().splitlines() + result.output.splitlines()
    there = [line.strip() for line in there]
    assert [line for line in shown if line not in there] == []
