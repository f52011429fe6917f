"""The promises that the code names by number are those of ``docs/isolation.md``."""

from __future__ import annotations

import re

import pytest

from tests.docs.blocks import ROOT

pytestmark = pytest.mark.engine_free

PACKAGES = ("tique", "rewriter", "backends", "udfs", "jepsen")
TEXT = (ROOT / "docs" / "isolation.md").read_text()
PROMISES = dict(re.findall(r"^\| (P\d+) \| (.*) \|$", TEXT, re.MULTILINE))


def test_they_are_numbered():
    assert list(PROMISES) == [f"P{number}" for number in range(1, 13)]


@pytest.mark.parametrize("promise", PROMISES)
def test_its_tests_are_there(promise):
    paths = re.findall(r"`([^`]+)`", PROMISES[promise].rpartition(" | ")[2])
    assert paths
    for path in paths:
        assert (ROOT / "tests" / path).exists(), path


def test_the_code_names_no_other():
    named = {
        number
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        for group in re.findall(r"\((P\d+(?:, P\d+)*)\)", file.read_text())
        for number in group.split(", ")
    }
    assert named
    assert named <= set(PROMISES)
