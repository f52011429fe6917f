"""P1 to P7: the long runs whose histories are kept, for Elle and for sceptics."""

from __future__ import annotations

from pathlib import Path

import pytest

from jepsen import checker, history
from jepsen.checker.models import Model

pytestmark = pytest.mark.engine_free

KEPT = Path(__file__).parents[2] / "jepsen" / "histories"


@pytest.mark.parametrize("engine", ["duckdb", "monetdb", "postgresql"])
def test_it_is_what_strong_snapshot_isolation_allows(engine):
    operations = history.read(KEPT / f"{engine}.edn.gz")
    assert sum(operation.type == "invoke" for operation in operations) >= 100_000
    assert sum(operation.type == "ok" for operation in operations) >= 50_000
    verdict = checker.check(operations, "list-append")
    assert verdict.valid(Model.STRONG_SNAPSHOT_ISOLATION), verdict
    # It is no serial execution: transactions did meet.
    assert verdict.valid(Model.SERIALIZABLE) is False
