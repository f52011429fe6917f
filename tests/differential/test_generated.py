"""Random schemas, changes, queries and DDL, through tique and natively (P1, P7 to P10).

``python -m tests.differential`` runs any number of them.
"""

from __future__ import annotations

import os

import pytest

from tests.differential.runs import places_of, run
from tests.effort import effort

COUNT = int(os.environ.get("TIQUE_DIFFERENTIAL_COUNT", effort(1_000, 20_000)))
"""Statements per engine."""

SEED = int(os.environ.get("TIQUE_DIFFERENTIAL_SEED", "20230803"))
PARTS = effort(1, 5)
LENGTH = 200
"""Statements of an episode: a new database and its tables take as long as 20 to 35."""


@pytest.mark.slow
@pytest.mark.every_engine
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(
    "name",
    [
        # DuckDB 1.5 takes -0.0 for 0.0 where a table without a key is folded.
        pytest.param(name, marks=[getattr(pytest.mark, name), pytest.mark.one_duckdb])
        for name in ("duckdb", "monetdb", "postgresql")
    ],
)
@pytest.mark.timeout(600 + COUNT // 5)
def test_generated_statements(name, part):
    episodes = max(1, COUNT // PARTS // LENGTH)
    with places_of(name) as place:
        outcome = run(
            name, place, SEED, part * episodes, episodes * LENGTH, length=LENGTH
        )
    assert outcome.findings == []
    assert outcome.done == episodes
    # Otherwise it would be the errors that are compared.
    assert outcome.counts["rows"] > outcome.counts["error"]
    assert outcome.counts["count"] > outcome.counts["error"]
