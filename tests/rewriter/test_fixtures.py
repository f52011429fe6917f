from __future__ import annotations

import pytest

from tests.rewriter.fixture_files import (
    MONETDB_FOLDER,
    POSTGRESQL_FOLDER,
    Case,
    read_cases,
)
from tests.rewriter.monetdb_tables import MonetDBTables
from tests.rewriter.postgresql_tables import PostgreSQLTables
from tests.rewriter.rendering import render
from tests.rewriter.tables import Tables
from tique_rewriter import Rewriter

CASES = read_cases()
MONETDB_CASES = read_cases(folder=MONETDB_FOLDER)
POSTGRESQL_CASES = read_cases(folder=POSTGRESQL_FOLDER)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_plan_is_as_written(case: Case):
    assert render(Rewriter(Tables()), case.sql) == list(case.expected)


@pytest.mark.parametrize("case", MONETDB_CASES, ids=lambda case: case.name)
def test_plan_is_as_written_for_monetdb(case: Case):
    rewriter = Rewriter(MonetDBTables(), dialect="monetdb")
    assert render(rewriter, case.sql) == list(case.expected)


@pytest.mark.parametrize("case", POSTGRESQL_CASES, ids=lambda case: case.name)
def test_plan_is_as_written_for_postgresql(case: Case):
    rewriter = Rewriter(PostgreSQLTables(), dialect="postgresql")
    assert render(rewriter, case.sql) == list(case.expected)


def test_there_are_many():
    assert len(CASES) > 120
    assert len(MONETDB_CASES) > 100
    assert len(POSTGRESQL_CASES) > 300
