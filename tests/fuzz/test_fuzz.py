"""Changed statements end in an answer or in an error of tique's, soon (P10, P11)."""

from __future__ import annotations

import os

import pytest

from tests.fuzz.runs import run

COUNT = int(os.environ.get("TIQUE_FUZZ_COUNT", "300"))
SEED = int(os.environ.get("TIQUE_FUZZ_SEED", "20230801"))


@pytest.fixture(
    params=[
        pytest.param("duckdb", marks=pytest.mark.duckdb),
        pytest.param("monetdb", marks=pytest.mark.monetdb),
        pytest.param("postgresql", marks=pytest.mark.postgresql),
    ]
)
def place(request, tmp_path):
    match request.param:
        case "duckdb":
            return "duckdb", str(tmp_path / "fuzz.duckdb")
        case "monetdb":
            return "monetdb", request.getfixturevalue("monetdb_server").url
    return "postgresql", request.getfixturevalue("postgresql_cluster").socket_url


@pytest.mark.slow
@pytest.mark.timeout(300 + COUNT)
def test_changed_statements(place):
    outcome = run(*place, SEED, 0, COUNT)
    assert outcome.findings == []
    assert outcome.done == COUNT
    # Otherwise it would be the parser that is tested.
    assert outcome.read > 0.5
    assert outcome.counts["done"] > COUNT / 10
