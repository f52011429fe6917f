"""P1 to P5 while the coordinator, the workers and the clients die."""

from __future__ import annotations

import pytest

from benchmarks.targets.citus_cluster import is_installed
from jepsen import checker, history
from jepsen.checker.models import Model
from jepsen.recorder import count
from jepsen.runner import Request, Run
from jepsen.systems import Unusable

pytestmark = pytest.mark.skipif(
    not is_installed(), reason="the server has no Citus (make citus builds it)"
)


@pytest.mark.long_only
@pytest.mark.crash
@pytest.mark.timeout(600)
@pytest.mark.parametrize("workload", ["bank", "list-append"])
def test_every_nemesis_beside_bulk_commits(workload, tmp_path):
    request = Request("citus:", workload, ["all"], 40, seed=8, bulk=0.3)
    result = Run(request, tmp_path).run()
    assert result.problems == []
    verdict = checker.check(history.read(tmp_path / "history.edn"), workload)
    assert verdict.valid(Model.STRONG_SNAPSHOT_ISOLATION), verdict
    assert sum(row["ok"] for row in count(result.events).values()) > 20
    assert {fault.nemesis for fault in result.faults} >= {"server", "kill", "cut"}


@pytest.mark.parametrize(
    ("url", "workload", "why"),
    [
        ("citus:", "jobs", "bank, list-append"),
        ("citus://localhost/tique", "bank", "the run's own"),
    ],
)
def test_what_is_refused(url, workload, why, tmp_path):
    with pytest.raises(Unusable, match=why):
        Run(Request(url, workload), tmp_path).run()
