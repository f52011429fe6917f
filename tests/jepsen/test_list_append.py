"""The verdicts on list-append histories are Elle's, and those of the definitions."""

import json
import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jepsen import history
from jepsen.checker import list_append
from jepsen.checker.models import Model
from jepsen.history import MalformedHistory, Operation
from tests.jepsen import oracle
from tests.jepsen.simulation import FAULTS, SERIALIZABLE_FAULTS, simulate

pytestmark = pytest.mark.engine_free

HISTORIES = Path(__file__).parent / "histories"
INDEX = json.loads((HISTORIES / "index.json").read_text())

# Beside Elle's names: ours for an append that is gone at the end, and the stale read in
# the same history that Elle leaves out beside the lost update.
OURS = {"lost-append"}
ALSO = {"lost-update-overwritten": {"G-single-item-realtime"}}


ELSEWHERE = set(Model) - {Model.STRONG_READ_COMMITTED}
"""The models of which the kept verdicts tell."""


def verdicts(verdict):
    return {str(model): verdict.valid(model) for model in Model if model in ELSEWHERE}


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry["name"])
def test_verdict_is_the_expected_one(entry):
    name = entry["name"]
    verdict = list_append.check(history.read(HISTORIES / f"{name}.edn"))
    assert verdicts(verdict) == entry["expected"]
    named = {each for each in entry["anomalies"] if not each.startswith("(")}
    by_elle = {each for model in entry["elle"].values() for each in model["anomalies"]}
    assert named <= set(verdict.counts)
    assert set(verdict.counts) <= named | by_elle | OURS | ALSO.get(name, set())
    assert {each.name for each in verdict.anomalies} == set(verdict.counts)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "completion-without-invoke",
            "operation 0: process 0 completes an operation that it did not",
        ),
        (
            "double-invoke",
            "operation 1: process 0 invokes while its operation 0 is open",
        ),
        (
            "duplicate-append",
            "operation 2: appends 1 to key 1, to which it was appended",
        ),
        ("empty", "no operations"),
        ("unknown-micro-op", "operation 0: unknown micro-operation 'incr'"),
        (
            "unwritten-element",
            "operation 3: reads 99 of key 1, which was never appended",
        ),
    ],
)
def test_malformed_history_is_refused(name, says):
    operations = history.read(HISTORIES / "malformed" / f"{name}.edn")
    with pytest.raises(MalformedHistory, match=says):
        list_append.check(operations)


def operations(*lines):
    """Return operations of (process, type, micro-operations)."""
    return [
        Operation(index, index, process, kind, "txn", tuple(value))
        for index, (process, kind, *value) in enumerate(lines)
    ]


def test_index_must_ascend():
    first, second = operations((0, "invoke"), (1, "invoke"))
    with pytest.raises(MalformedHistory, match="operation 0: comes after operation 1"):
        list_append.check([second, first])


def test_completion_must_be_of_the_invocation():
    mixed = operations((0, "invoke", ("append", 1, 1)), (0, "ok", ("append", 1, 2)))
    with pytest.raises(MalformedHistory, match="operation 1: completes another"):
        list_append.check(mixed)


@pytest.mark.parametrize(
    "lines",
    [
        [(0, "invoke", ("append", 1, 1)), (0, "ok", ("append", 1, 1))],
        [(0, "invoke", ("r", 1, None)), (0, "ok", ("r", 1, None))],
        [
            (0, "invoke", ("append", 1, 1)),
            (0, "fail", ("append", 1, 1)),
            (1, "invoke", ("r", 1, None)),
            (1, "ok", ("r", 1, None)),
        ],
        [
            (0, "invoke", ("r", 1, None), ("append", 1, 1)),
            (0, "ok", ("r", 1, None), ("append", 1, 1)),
        ],
    ],
    ids=["no reads", "no appends", "only failed appends", "only its own"],
)
def test_history_that_nothing_could_contradict_is_unknown(lines):
    assert set(verdicts(list_append.check(operations(*lines))).values()) == {None}


def test_anomaly_is_told_however_little_else_there_is():
    lines = [(0, "invoke", ("append", 1, 1), ("r", 1, None))]
    lines += [(0, "ok", ("append", 1, 1), ("r", 1, None))]
    verdict = list_append.check(operations(*lines))
    assert verdict.valid(Model.READ_COMMITTED) is None
    assert verdict.valid(Model.SNAPSHOT_ISOLATION) is False


def test_explanation_names_transactions_keys_and_elements():
    verdict = list_append.check(history.read(HISTORIES / "G-single.edn"))
    (anomaly,) = verdict.anomalies
    assert anomaly.lines == (
        "T1 = (index 2, process 0) [r 1 []] [r 2 [1]]",
        "T2 = (index 3, process 1) [append 1 1] [append 2 1]",
        "T1 came before T2: T1 read key 1 as [], without 1 that T2 appended (rw)",
        "but T2 came before T1: T1 read 1 of key 2, which T2 appended (wr)",
    )


def test_way_through_the_barriers_is_one_step():
    lines = [(0, "invoke", ("append", 1, 1)), (0, "ok", ("append", 1, 1))]
    for process in range(1, 30):
        lines += [(process, "invoke", ("append", 2, process))]
        lines += [(process, "ok", ("append", 2, process))]
    lines += [(50, "invoke", ("r", 1, None)), (50, "ok", ("r", 1, None))]
    lines += [(51, "invoke", ("r", 1, None)), (51, "ok", ("r", 1, (1,)))]
    verdict = list_append.check(operations(*lines))
    (anomaly,) = (e for e in verdict.anomalies if e.name == "G-single-item-realtime")
    assert anomaly.lines[2:] == (
        "T1 came before T2: T1 read key 1 as [], without 1 that T2 appended (rw)",
        "but T2 came before T1: T2 was acknowledged at index 1, before T1 was invoked "
        "at index 60 (realtime)",
    )


def test_append_is_not_lost_that_a_read_beside_the_last_one_shows():
    lines = [(0, "invoke", ("append", 1, 1)), (0, "ok", ("append", 1, 1))]
    lines += [(1, "invoke", ("r", 1, None)), (2, "invoke", ("r", 1, None))]
    lines += [(2, "ok", ("r", 1, None)), (1, "ok", ("r", 1, (1,)))]
    verdict = list_append.check(operations(*lines))
    assert set(verdict.counts) == {"G-single-item-realtime"}


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    clients=st.integers(2, 12),
    keys=st.integers(1, 8),
    appends=st.integers(2, 60),
    in_doubt=st.sampled_from([0, 0.05, 0.4]),
    aborted=st.sampled_from([0, 0.2]),
)
def test_snapshot_isolation_is_found_valid(seed, **options):
    verdict = list_append.check(simulate(seed, 150, **options))
    assert verdict.valid(Model.STRONG_SNAPSHOT_ISOLATION), verdict.anomalies
    assert set(verdict.counts) <= {"G2-item", "G2-item-process", "G2-item-realtime"}


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), keys=st.integers(1, 8))
def test_serializable_store_is_found_valid(seed, keys):
    verdict = list_append.check(simulate(seed, 150, keys=keys, serializable=True))
    assert verdict.valid(Model.STRICT_SERIALIZABLE), verdict.anomalies


@pytest.mark.parametrize("fault", SERIALIZABLE_FAULTS)
def test_fault_of_a_serializable_store_is_found(fault):
    verdict = list_append.check(simulate(1, 1500, serializable=True, fault=fault))
    assert SERIALIZABLE_FAULTS[fault] in verdict.counts
    assert verdict.valid(Model.STRONG_SNAPSHOT_ISOLATION)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("seed", range(2))
def test_fault_is_found(fault, seed):
    verdict = list_append.check(simulate(seed, 1500, fault=fault))
    assert FAULTS[fault] in verdict.counts
    assert verdict.valid(Model.STRONG_SNAPSHOT_ISOLATION) is False


def anything(seed):
    """Return transactions as the oracle takes them, right or wrong, and a history."""
    rng = random.Random(seed)
    count, keys = rng.randint(2, 5), rng.randint(1, 3)
    values, appended = [], {key: [] for key in range(keys)}
    for _ in range(count):
        value = []
        for key in rng.sample(range(keys), rng.randint(1, keys)):
            kind = rng.choice(["read", "append", "update"])
            if kind != "append":
                value.append(("r", key, None))
            if kind != "read":
                appended[key].append(len(appended[key]) + 1)
                value.append(("append", key, appended[key][-1]))
        values.append(value)
    outcomes = [rng.choice(["ok", "ok", "ok", "info", "fail"]) for _ in values]
    order = {}
    for key, elements in appended.items():
        order[key] = [each for each in elements if rng.random() < 0.8]
        rng.shuffle(order[key])
    lines, transactions, busy = [], [None] * count, {}
    begins = list(range(count))
    while begins or busy:
        process = rng.randrange(3)
        if process in busy:
            number, begun = busy.pop(process)
            value = values[number]
            if outcomes[number] == "ok":
                value = [
                    (
                        f,
                        key,
                        tuple(order[key][: rng.randint(0, len(order[key]))]) or None,
                    )
                    if f == "r"
                    else (f, key, argument)
                    for f, key, argument in value
                ]
            where = (process, begun, len(lines), outcomes[number], value)
            transactions[number] = where
            lines.append((process, outcomes[number], *value))
        elif begins:
            number = begins.pop(0)
            busy[process] = (number, len(lines))
            lines.append((process, "invoke", *values[number]))
    return transactions, operations(*lines)


CYCLES = {"G0": "G0", "G1c": "G1c", "G2-item": "G2"}


@settings(max_examples=400, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_cycles_are_those_of_the_definitions(seed):
    transactions, lines = anything(seed)
    found = set()
    for name in list_append.check(lines).counts:
        base, level = name, ""
        for suffix in ("-process", "-realtime"):
            if name.endswith(suffix):
                base, level = name.removesuffix(suffix), suffix
        if base[0] == "G" and base not in ("G1a", "G1b"):
            kind = oracle.KINDS.index(CYCLES.get(base, "SI"))
            place = oracle.LEVELS.index(level)
            found |= {
                (each, suffix)
                for each in oracle.KINDS[kind:]
                for suffix in oracle.LEVELS[place:]
            }
    assert found == oracle.cycles(transactions)


@pytest.mark.slow
def test_large_history_takes_seconds(tmp_path):
    path = tmp_path / "large.edn"
    history.write(path, simulate(1, 100_000, keys=50, clients=16))
    begun = time.process_time()
    verdict = list_append.check(history.read(path))
    assert time.process_time() - begun < 15
    assert verdict.valid(Model.STRONG_SNAPSHOT_ISOLATION)
