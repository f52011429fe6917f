"""The verdicts on rw-register histories: known ones, and those of the definitions."""

import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jepsen import checker
from jepsen.checker import registers
from jepsen.checker.models import PROSCRIBED, Model
from jepsen.checker.registers import serial
from jepsen.history import MalformedHistory, Operation
from tests.jepsen import oracle
from tests.jepsen.simulation import (
    FAULTS,
    SERIALIZABLE_FAULTS,
    as_registers,
    simulate,
)

pytestmark = pytest.mark.engine_free

STRICT = Model.STRICT_SERIALIZABLE
OUTCOMES = {">": "ok", "!": "fail", "?": "info"}


def read(text):
    """Return the history that a line in Elle's short notation means.

    ``0:wx1ry_`` is process 0 that writes 1 to x and reads y, which has no value. It may be
    in two parts: ``0<wx1ry_`` begins it, ``0>`` ends it; ``0!`` and ``0?`` if it failed, or
    is in doubt.
    """
    lines, is_open = [], {}
    for process, how, words in re.findall(r"(\d)([:<>!?])(\S*)", text):
        if how in ":<":
            is_open[process] = tuple(
                (f, key, None if value == "_" else int(value))
                for f, key, value in re.findall(r"([rw])([xyz])(\d+|_)", words)
            )
            lines.append((process, "invoke", asked(is_open[process])))
        if how != "<":
            outcome = OUTCOMES.get(how, "ok")
            value = is_open.pop(process)
            lines.append((process, outcome, value if outcome == "ok" else asked(value)))
    return operations(lines)


def asked(value):
    """What an invocation knows of it."""
    return tuple((f, key, None if f == "r" else each) for f, key, each in value)


def operations(lines):
    return [
        Operation(index, index, int(process), kind, "txn", tuple(value))
        for index, (process, kind, value) in enumerate(lines)
    ]


KNOWN = {
    "serial": ("0:wx1 1:rx1 0:wx2 1:rx2", set()),
    "blind overwrites at the same time": ("0<wx1 1<wx2 0> 1> 2:rx1", set()),
    "in doubt and seen": ("0<wx1 0? 1:rx1 1:wx2 1:rx2", set()),
    "in doubt and late": ("0<wx1 0? 1:rx_ 1:rx1", set()),
    "in doubt and never seen": ("0<wx1 0? 1:rx_ 1:wx2 1:rx2", set()),
    "failed": ("0<wx1 0! 1:rx_ 1:wx2 1:rx2", set()),
    "own writes": ("1:wy1 0:ry1wx1rx1wx2rx2", set()),
    "read-only beside a skewless update": ("0<rx_ry_ 1:wx1wy1 0>", set()),
    "G0": ("0<rx1wx2wy2 1<ry2wy1wx1 0> 1>", {"G0"}),
    "G0 by the order of the clients": (
        "0:wx1wy2 1:wx2wy1 0:rx2 1:ry2",
        {"G-nonadjacent-item-process"},
    ),
    "G1a": ("0<wx1 0! 1:rx1", {"G1a"}),
    "G1b": ("0:wx1wx2 1:rx1", {"G1b"}),
    "G1c": ("0<wx1ry1 1<wy1rx1 0> 1>", {"G1c"}),
    "internal": ("1<wx1 2<wx2 0<rx1rx2 0> 1> 2>", {"internal"}),
    "stale after its own write": ("1:wx1 0:rx1wx2rx1", {"internal"}),
    "future read": ("0:rx1wx1 1:wx2", {"future-read"}),
    "initial state": ("0<rx_ry1 1<wy1wx2 1> 0>", {"G-single-item"}),
    "writes follow reads": ("2:wy1 0<ry1wx1wy2 1<rx1ry1 0> 1>", {"G-single-item"}),
    "lost update": ("2:wx9 0<rx9wx1 1<rx9wx2 0> 1>", {"lost-update", "G2-item"}),
    "lost update of no value": ("0<rx_wx1 1<rx_wx2 0> 1>", {"lost-update", "G2-item"}),
    "write skew": (
        "3:wx9wy9 0<rx9wy1 1<ry9wx2 0> 1>",
        {"G2-item-realtime", "no-serial-order"},
    ),
    "write skew of no values": ("0<rx_wy1 1<ry_wx2 0> 1>", {"G2-item"}),
    "stale read of one's own": ("0:wx1 0:wx2 0:rx1", {"G-single-item-process"}),
    "stale read": ("0:wx1 1:wx2 2:rx1", {"G-single-item-realtime"}),
    "lost write": ("0:wx1 1:rx_", {"G-single-item-realtime"}),
    "long fork": ("0<wx1 1<wy1 2<rx1ry_ 3<rx_ry1 0> 1> 2> 3>", {"G-nonadjacent-item"}),
    # Whichever came first, its other write was overwritten, and is read.
    "torn by blind writes": (
        "0<wx1wy1 1<wx2wy2 0> 1> 2:rx1ry2",
        {"G-nonadjacent-item-realtime", "no-serial-order"},
    ),
    "torn by blind writes, no order by the clock": (
        "2<rx1ry2 0<wx1wy1 1<wx2wy2 0> 1> 2>",
        {"no-serial-order", "no-serial-order-realtime"},
    ),
}


@pytest.mark.parametrize(("line", "names"), KNOWN.values(), ids=KNOWN)
def test_verdict_is_the_known_one(line, names):
    verdict = checker.check(read(line))
    assert set(verdict.counts) == names
    for model in Model:
        assert verdict.valid(model) is names.isdisjoint(PROSCRIBED[model])
    assert all(anomaly.lines for anomaly in verdict.anomalies)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("0:wx1 1:wx1", "operation 2: writes 1 to key 'x', which no other write may"),
        ("0:wx_", "operation 0: writes None to key 'x'"),
        ("0:wx1 1:rx2", "operation 3: reads 2 of key 'x', which was never written"),
    ],
)
def test_malformed_history_is_refused(line, says):
    with pytest.raises(MalformedHistory, match=says):
        checker.check(read(line))


def test_completion_must_be_of_the_invocation():
    lines = [("0", "invoke", [("w", "x", 1)]), ("0", "ok", [("w", "x", 2)])]
    with pytest.raises(MalformedHistory, match="operation 1: completes another"):
        checker.check(operations(lines))


@pytest.mark.parametrize("line", ["0:wx1", "0:wx1rx1", "0<wx1 0! 1:rx_wx2"])
def test_history_that_nothing_could_contradict_is_unknown(line):
    verdict = checker.check(read(line))
    assert {verdict.valid(model) for model in Model} == {None}


def test_explanation_says_how_the_order_of_versions_is_known():
    (anomaly,) = checker.check(read(KNOWN["stale read"][0])).anomalies
    assert anomaly.lines == (
        'T1 = (index 5, process 2) [r "x" 1]',
        'T2 = (index 3, process 1) [w "x" 2]',
        'T1 came before T2: T1 read key "x" as 1, which T2 overwrote with 2 (rw): 1 was '
        "there at index 1, and the transaction that began later, at index 2, wrote 2",
        "but T2 came before T1: T2 was acknowledged at index 3, before T1 was invoked "
        "at index 4 (realtime)",
    )


def test_explanation_says_why_no_order_goes_on():
    line = KNOWN["torn by blind writes, no order by the clock"][0]
    anomaly = checker.check(read(line)).anomalies[0]
    assert anomaly.lines == (
        "no order of the transactions is explained by what they read; the longest "
        "beginning that is has 1 of them",
        'T1 = (index 4, process 1) [w "x" 2] [w "y" 2]',
        'T2 = (index 5, process 2) [r "x" 1] [r "y" 2]',
        'T1 cannot come next: it overwrites 1 of key "x", which T2 has yet to read',
    )


def anything(seed, *, is_blind=False):
    """Return transactions as the oracle takes them, right or wrong, and a history.

    Blind ones each write some keys without reading any, or read some, most at the same time.

    Reads show nothing or what may have been committed, and their own transaction's writes.
    """
    rng = random.Random(seed)
    count = rng.randint(3, 6) if is_blind else rng.randint(2, 4)
    keys = "xyz"[: rng.randint(1 + is_blind, 3)]
    outcomes = [rng.choice(["ok"] * 5 + ["info", "fail"]) for _ in range(count)]
    asked_of, possible, made = [], {key: [(None, None)] for key in keys}, 0
    for number in range(count):
        value = []
        kind = rng.choice("rw") if is_blind else None
        chosen = rng.choices(keys, k=rng.randint(1, 4))
        if is_blind:
            chosen = rng.sample(keys, rng.randint(2, len(keys)))
        for key in chosen:
            made += 1
            f = kind or rng.choice("rw")
            value.append(("r", key, None) if f == "r" else ("w", key, made))
        asked_of.append(value)
        if outcomes[number] != "fail":
            last = {key: each for f, key, each in value if f == "w"}
            for key, each in last.items():
                possible[key].append((number, each))
    lines, transactions, busy = [], [None] * count, {}
    begins = list(range(count))
    while begins or busy:
        process = rng.randrange(count if is_blind else 4)
        if process in busy:
            number, begun = busy.pop(process)
            value = asked_of[number]
            if outcomes[number] == "ok":
                value = results(rng, number, value, possible)
            where = (process, begun, len(lines), outcomes[number], value)
            transactions[number] = where
            lines.append((process, outcomes[number], value))
        elif begins:
            number = begins.pop(0)
            busy[process] = (number, len(lines))
            lines.append((process, "invoke", asked_of[number]))
    return transactions, operations(lines)


def results(rng, number, value, possible):
    """Return a transaction's operations with results for its reads."""
    state, done = {}, []
    for f, key, each in value:
        if f == "r" and key not in state:
            others = [one for writer, one in possible[key] if writer != number]
            state[key] = rng.choice(others)
        elif f == "w":
            state[key] = each
        done.append((f, key, state[key]))
    return done


NAMES = {"G0": "G0", "G1c": "G1c", "SI": "G-single-item", "G2": "G2-item"}


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_verdict_follows_from_the_definitions(seed):
    """Nothing is proscribed that some order of the versions permits.

    What is valid at the two strongest models has a serial order, and no other history has.
    """
    transactions, lines = anything(seed)
    verdict = registers.check(lines)
    proscribed = {
        model for model in Model if not PROSCRIBED[model].isdisjoint(verdict.counts)
    }
    for kinds in oracle.registers(transactions) if proscribed else ():
        found = {f"{NAMES[kind]}{suffix}" for kind, suffix in kinds}
        permitted = {model for model in Model if PROSCRIBED[model].isdisjoint(found)}
        assert permitted.isdisjoint(proscribed), permitted & proscribed
    serial = oracle.has_serial_order(transactions, in_real_time=False)
    assert (Model.SERIALIZABLE not in proscribed) is serial
    strict = oracle.has_serial_order(transactions, in_real_time=True)
    assert (STRICT not in proscribed) is strict


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_blind_writes_have_a_serial_order_or_none(seed):
    """The order of versions is mostly unknown here, and all orders have to be tried."""
    transactions, lines = anything(seed, is_blind=True)
    verdict = registers.check(lines)
    for model, in_real_time in ((Model.SERIALIZABLE, False), (STRICT, True)):
        is_right = PROSCRIBED[model].isdisjoint(verdict.counts)
        assert is_right is oracle.has_serial_order(
            transactions, in_real_time=in_real_time
        )


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    clients=st.integers(2, 12),
    keys=st.integers(1, 8),
    appends=st.integers(2, 60),
    in_doubt=st.sampled_from([0, 0.05, 0.4]),
    aborted=st.sampled_from([0, 0.2]),
)
def test_serializable_store_is_found_valid(seed, **options):
    operations = as_registers(simulate(seed, 150, serializable=True, **options))
    verdict = registers.check(operations)
    assert verdict.valid(STRICT), verdict


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), keys=st.integers(1, 8))
def test_snapshot_isolation_is_found_valid(seed, keys):
    verdict = registers.check(as_registers(simulate(seed, 150, keys=keys)))
    assert verdict.valid(Model.STRONG_SNAPSHOT_ISOLATION), verdict


# A register shows one element, and that once.
UNSEEN = {"doubled commit"}


@pytest.mark.parametrize("fault", sorted(FAULTS.keys() - UNSEEN))
@pytest.mark.parametrize("seed", range(2))
def test_fault_is_found(fault, seed):
    options = {"serializable": True, "fault": fault}
    verdict = registers.check(as_registers(simulate(seed, 1500, **options)))
    assert verdict.valid(STRICT) is False


@pytest.mark.parametrize("fault", SERIALIZABLE_FAULTS)
@pytest.mark.parametrize("seed", range(2))
def test_fault_of_a_serializable_store_is_found(fault, seed):
    options = {"serializable": True, "fault": fault}
    verdict = registers.check(as_registers(simulate(seed, 1500, **options)))
    assert SERIALIZABLE_FAULTS[fault] in verdict.counts
    assert verdict.valid(Model.STRONG_SNAPSHOT_ISOLATION)


def test_search_that_takes_too_long_is_a_doubt(monkeypatch):
    monkeypatch.setattr(serial, "EFFORT", 0)
    verdict = registers.check(read(KNOWN["blind overwrites at the same time"][0]))
    assert verdict.valid(STRICT) is None
    assert verdict.valid(Model.SERIALIZABLE) is None
    assert verdict.valid(Model.STRONG_SNAPSHOT_ISOLATION)


@pytest.mark.slow
def test_large_history_takes_seconds():
    operations = as_registers(
        simulate(1, 20_000, keys=50, clients=16, serializable=True)
    )
    begun = time.process_time()
    verdict = registers.check(operations)
    assert time.process_time() - begun < 30
    assert verdict.valid(STRICT)
