from __future__ import annotations

import pytest

from tests.rewriter.fixture_files import Case, read_cases
from tests.rewriter.rendering import render
from tests.rewriter.tables import Tables
from tique_rewriter import Rewriter

CASES = read_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_plan_is_as_written(case: Case):
    assert render(Rewriter(Tables()), case.sql) == list(case.expected)


def test_there_are_many():
    assert len(CASES) > 120
