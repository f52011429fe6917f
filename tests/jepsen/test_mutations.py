"""The suite sees it when a promise is broken: P1, P2, P3, P4, P5 and P7 in turn, and SERIALIZABLE."""

from __future__ import annotations

import time
from itertools import count

import pytest

from jepsen import checker
from jepsen.checker.models import Model
from jepsen.mutations import PROTOCOL
from jepsen.runner import Request, Run
from jepsen.serializable_mutations import SERIALIZABLE, SHARED_SERIALIZABLE

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
    "passes-locked-rows": "jobs",
    "orphans": "unique",
    "leaves-lambda-early": "old-snapshot",
    "hands-over-undrained": "old-snapshot",
    "reads-memory-for-long": "old-snapshot",
    "lives-too-long": "time-travel",
    "images-of-the-last-fold": "time-travel",
    "prunes-by-lambda": "time-travel",
    "looks-at-new-images": "on-call",
    "looks-at-old-images": "on-call",
    "savepoints-take-back-what-was-seen": "on-call",
    "notes-no-rows": "list-append",
    "notes-no-predicates": "rw-register",
    "validates-without-the-batch": "on-call",
    "validates-too-early": "on-call",
}
"""Where it is another one than list-append, whose appends to texts merge.

Commits that insert a key conflict within their process, where orphans come from.
"""


STRICT = ("serializable", Model.STRICT_SERIALIZABLE)
LEVELS = {
    "keeps-what-was-overtaken": ("read committed", Model.STRONG_READ_COMMITTED),
    **dict.fromkeys(SERIALIZABLE | SHARED_SERIALIZABLE, STRICT),
}
"""Where it is another level than SNAPSHOT."""

PROCESSES = {"validates-without-the-batch": 1}
"""Where it is other than four: a process's commits are a batch."""

BULK = {"misses-bulk-commits": 0.3}
"""The share of transactions that commit in bulk, where there are any."""

BETWEEN_PROCESSES = pytest.mark.written_for(
    ["postgresql", "monetdb"], reason="an embedded engine has one process"
)


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.parametrize(
    "mutation",
    [
        *sorted(PROTOCOL | SERIALIZABLE),
        *(
            pytest.param(name, marks=BETWEEN_PROCESSES)
            for name in sorted(SHARED_SERIALIZABLE)
        ),
    ],
)
def test_it_is_found(engine, tmp_path, mutation):
    """A run of a few seconds has a history that the level's model forbids."""
    if engine.name == "monetdb" and WORKLOADS.get(mutation) == "old-snapshot":
        pytest.skip("no snapshot of MonetDB's is handed over")
    deadline = time.monotonic() + PATIENCE
    for seed in count():
        if time.monotonic() > deadline:
            pytest.fail(f"{seed} runs of {SECONDS} s look valid")
        workload = WORKLOADS.get(mutation, "list-append")
        verdict = judged(engine, tmp_path / str(seed), workload, seed, mutation)
        if verdict.valid(_level(mutation)[1]) is False:
            return


def _level(mutation):
    return LEVELS.get(mutation, ("snapshot", Model.STRONG_SNAPSHOT_ISOLATION))


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.parametrize("workload", sorted({"list-append", *WORKLOADS.values()}))
def test_nothing_is_found_without_one(engine, tmp_path, workload):
    """Else a mutation would be found that is none."""
    verdict = judged(engine, tmp_path, workload)
    assert verdict.valid(Model.STRONG_SNAPSHOT_ISOLATION), verdict


@pytest.mark.long_only
@pytest.mark.crash
@pytest.mark.parametrize("workload", ["list-append", "on-call", "rw-register"])
def test_nothing_is_found_without_one_at_serializable(engine, tmp_path, workload):
    level, model = STRICT
    verdict = judged(engine, tmp_path, workload, level=level)
    assert verdict.valid(model), verdict


@pytest.mark.crash
def test_snapshot_isolation_lets_write_skew_pass(engine, tmp_path):
    """Else the runs at SERIALIZABLE would say nothing."""
    deadline = time.monotonic() + PATIENCE
    for seed in count():
        if time.monotonic() > deadline:
            pytest.fail(f"{seed} runs of {SECONDS} s have no write skew")
        verdict = judged(engine, tmp_path / str(seed), "on-call", seed)
        assert verdict.valid(Model.STRONG_SNAPSHOT_ISOLATION), verdict
        if "write-skew" in verdict.counts:
            return


def judged(engine, folder, workload, seed=0, mutation=None, level=None):
    """The verdict on a run."""
    engine.begin_again()
    request = Request(
        engine.url,
        workload,
        ["checkpoint"],
        SECONDS,
        clients=8,
        processes=PROCESSES.get(mutation, 4),
        seed=seed,
        mutation=mutation,
        level=level or _level(mutation)[0],
        bulk=BULK.get(mutation, 0.0),
    )
    result = Run(request, folder).run()
    return checker.check(list(result.operations()), workload)
