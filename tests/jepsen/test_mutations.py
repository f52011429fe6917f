"""The suite sees it when a promise is broken: P1, P2, P3, P4, P5 and P7 in turn."""

from __future__ import annotations

import time
from itertools import count

import pytest

from jepsen import checker
from jepsen.checker.models import Model
from jepsen.mutations import PROTOCOL
from jepsen.runner import Request, Run

pytestmark = pytest.mark.one_duckdb

SECONDS = 3
PATIENCE = 100
"""Seconds in which it must be found: two minutes, with the time of the last run."""

WORKLOADS = {
    "merges-what-was-seen": "counter",
    "merges-without-condition": "bank",
    "moves-past-what-was-seen": "bank",
    "takes-locked-rows": "jobs",
    "locks-outlive-their-owners": "jobs",
}
"""Where it is another one than list-append, which appends to texts."""


@pytest.mark.crash
@pytest.mark.parametrize("mutation", PROTOCOL)
def test_it_is_found(engine, tmp_path, mutation):
    """A run of a few seconds has a history that strong snapshot isolation forbids."""
    workload = WORKLOADS.get(mutation, "list-append")
    deadline = time.monotonic() + PATIENCE
    for seed in count():
        if time.monotonic() > deadline:
            pytest.fail(f"{seed} runs of {SECONDS} s look valid")
        engine.begin_again()
        request = Request(
            engine.url,
            workload,
            ["checkpoint"],
            SECONDS,
            clients=8,
            # Processes of a MonetDB server do not see each other's row locks.
            processes=1 if workload == "jobs" else 4,
            seed=seed,
            mutation=mutation,
        )
        result = Run(request, tmp_path / str(seed)).run()
        verdict = checker.check(list(result.operations()), workload)
        if verdict.valid(Model.STRONG_SNAPSHOT_ISOLATION) is False:
            return
