"""Random schemas, changes, queries and DDL, through tique and natively (P1, P7 to P10).

``python -m tests.differential`` runs any number of them.
"""

from __future__ import annotations

import os

import pytest

from tests.differential.runs import places_of, run
from tests.differential.statements import STEPS
from tests.effort import effort

# As many as take 20 s on an idle machine.
COUNTS = {
    "duckdb": effort(600, 20_000),
    "monetdb": effort(200, 5_000),
    "postgresql": effort(500, 20_000),
}
SEED = int(os.environ.get("TIQUE_DIFFERENTIAL_SEED", "20230803"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        # DuckDB 1.5 takes -0.0 for 0.0 where a table without a key is folded.
        pytest.param(name, marks=[getattr(pytest.mark, name), pytest.mark.one_duckdb])
        for name in ("duckdb", "monetdb", "postgresql")
    ],
)
@pytest.mark.timeout(600 + COUNTS["duckdb"] // 2)
def test_generated_statements(name):
    count = int(os.environ.get("TIQUE_DIFFERENTIAL_COUNT", COUNTS[name]))
    with places_of(name) as place:
        outcome = run(name, place, SEED, 0, count)
    assert outcome.findings == []
    assert outcome.done == max(1, count // STEPS)
    # Otherwise it would be the errors that are compared.
    assert outcome.counts["rows"] > outcome.counts["error"]
    assert outcome.counts["count"] > outcome.counts["error"]
