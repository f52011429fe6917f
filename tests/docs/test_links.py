"""Links of the README lead somewhere; those of ``docs/`` are checked by ``make docs``."""

from __future__ import annotations

import re

import pytest

from tests.docs.blocks import ROOT

pytestmark = pytest.mark.engine_free


def anchors(text):
    """The names that a site gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-")
        for heading in headings
    }


def test_the_readme_links_to_what_is_there():
    found = re.findall(r"\]\(([^()\s]+)\)", (ROOT / "README.md").read_text())
    assert len(found) > 20
    for target in found:
        path, _, fragment = target.partition("#")
        assert (ROOT / path).exists(), target
        assert not fragment or fragment in anchors((ROOT / path).read_text()), target
