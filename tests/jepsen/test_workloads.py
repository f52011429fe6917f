"""The anomalies that each workload's checker finds, and histories that it accepts."""

import pytest

from jepsen import checker
from jepsen.checker.models import Model
from jepsen.history import MalformedHistory, Operation

pytestmark = pytest.mark.engine_free


def operations(*lines):
    """Return operations of (process, type, f, value)."""
    return [
        Operation(index, index, process, kind, f, value)
        for index, (process, kind, f, value) in enumerate(lines)
    ]


def done(f, value, outcome="ok", process=0, asked=None):
    """Return an operation with nothing beside it."""
    return [
        (process, "invoke", f, asked if f in READS else value),
        (process, outcome, f, value),
    ]


READS = {"read", "dequeue", "drain"}


def beside(first, second):
    """Return two operations that overlap; the second is of another process."""
    second = [(1, *line[1:]) for line in second]
    return [first[0], second[0], first[1], second[1]]


def move(source, target, amount):
    return {"from": source, "to": target, "amount": amount}


def held(slot, since, until, *, skips=True, seen=(3, 3)):
    times = {"since": since, "until": until}
    return {"slot": slot, "skips": skips, **times, "seen": [*seen]}


def add(amount, outcome="ok"):
    return done("add", {"key": 7, "amount": amount}, outcome)


def forked(one, other):
    return [
        *done("write", 1),
        *done("write", 2),
        *beside(done("read", one), done("read", other)),
    ]


def turn(doctor, on_call, process=0):
    value = {"shift": doctor // 4, "doctor": doctor}
    asked, found = value | {"on_call": None}, value | {"on_call": on_call}
    return [(process, "invoke", "turn", asked), (process, "ok", "turn", found)]


def rows(above, selected, everything):
    return done("read", {"above": above, "rows": selected, "all": everything})


def family(parents, children):
    return done("read", {"parents": parents, "children": children})


FINE = {
    "bank": [
        *done("read", {1: 10, 2: 10}),
        *done("transfer", move(1, 2, 4)),
        *done("transfer", move(1, 2, 99), "fail"),
        *done("read", {1: 6, 2: 14}),
    ],
    "bank in doubt": [
        *done("read", {1: 10, 2: 10}),
        *done("transfer", move(1, 2, 4), "info"),
        *done("read", {1: 6, 2: 14}, process=1),
    ],
    "bank with old snapshots": [
        *done("read", {1: 10, 2: 10}),
        *beside(
            done("watch", {"reads": [{1: 10, 2: 10}, {1: 10, 2: 10}]}),
            done("transfer", move(1, 2, 4)),
        ),
        *done(
            "late-transfer",
            move(2, 1, 3) | {"reads": [{1: 6, 2: 14}] * 2, "after": {1: 9, 2: 11}},
        ),
        *done("read", {1: 9, 2: 11}),
    ],
    "time travel": [
        *done("note", {"version": 3, "accounts": {1: 10, 2: 10}}),
        *done("move", move(1, 2, 4)),
        *done("note", {"version": 5, "accounts": {1: 6, 2: 14}}),
        *done("recall", {"version": 3, "accounts": {1: 10, 2: 10}}),
        *done("replay", {"version": 5, "accounts": {1: 6, 2: 14}}),
    ],
    "counter": [
        *add(1),
        *beside(add(2), done("read", {7: 3})),
        *add(4, "info"),
        *done("read", {7: 3}, process=2),
        *done("read", {7: 7}, process=2),
    ],
    "counter that takes away": [
        *add(5),
        *beside(add(-2), done("read", {7: 3})),
        *done("read", {7: 3}),
    ],
    "queue": [
        *done("enqueue", "a"),
        *done("enqueue", "b"),
        *done("enqueue", "c", "fail"),
        *done("dequeue", "a"),
        *done("dequeue", None),
        *done("drain", ["b"]),
    ],
    "queue with a dequeue in doubt": [
        *done("enqueue", 1),
        *done("enqueue", 2),
        *done("dequeue", None, "info"),
        *done("drain", [2], process=1),
    ],
    "jobs": [
        *done("submit", 1),
        *done("submit", 2),
        *done("take", 1),
        *beside(done("hold", held(0, 1, 5)), done("hold", held(0, 5, 9))),
        *beside(done("hold", held(1, 1, 5)), done("hold", held(1, 2, 3), "fail")),
        *done("hold", held(None, 1, 5, skips=False, seen=())),
        *beside(done("hold", held(1, 5, 9)), done("touch", 1)),
        *done("collect", [2]),
    ],
    "jobs beside as many owners as there are slots": [
        *done("submit", 1),
        *(
            line
            for process in range(2, 18)
            for line in done("hold", held(process, 1, 2), "info", process=process)
        ),
        *done("hold", held(None, 1, 5)),
        *done("take", 1),
        *done("collect", []),
    ],
    "unique": [
        *beside(done("insert", [1, "a"]), done("insert", [1, "b"], "fail")),
        *done("read", [[1, "a"]]),
    ],
    "unique beside a read": beside(done("insert", [1, "a"]), done("read", [])),
    "unique in doubt": [
        *done("insert", [1, "a"], "info"),
        *done("read", [[1, "a"]], process=1),
    ],
    "parent-child": [
        *done("insert-parent", 1),
        *done("insert-child", ["c", 1]),
        *done("delete-parent", 1, "fail"),
        *family([1], [["c", 1]]),
    ],
    "parent-child with families": [
        *done("insert-parent", 1),
        *done("insert-child", ["c", 1]),
        *beside(done("insert-child", ["d", 1], "info"), done("delete-family", 1)),
        *family([], []),
        *done("insert-parent", 1),
        *family([1], [["d", 1]]),
    ],
    "long-fork": forked({1: 1, 2: 1}, {1: 1, 2: 1}),
    "long-fork beside the writes": beside(done("write", 1), done("read", {1: 0, 2: 0})),
    "write-skew": [
        *done("read", {1: [5, 5]}),
        *done("withdraw", {"pair": 1, "account": 0, "amount": 8}),
        *done("read", {1: [-3, 5]}),
    ],
    "write-skew of accounts that nobody had read": [
        *done("read", {1: [5, 5]}),
        *done("withdraw", {"pair": 2, "account": 0, "amount": 8}),
        *done("read", {2: [92, 100]}),
    ],
    "on-call": [
        *done("look", {1: [4, 5]}),
        *turn(4, [4, 5]),
        *turn(6, [5]),
        *done("look", {1: [5, 6]}),
    ],
    "predicate": [
        *done("insert", {"id": 1, "value": 5}),
        *done("update", {"id": 1, "value": 9}, "fail"),
        *rows(4, [[1, 5], [2, 7]], [[1, 5], [2, 7], [3, 4]]),
    ],
}


@pytest.mark.parametrize("lines", FINE.values(), ids=FINE)
def test_what_is_right_is_valid(lines):
    verdict = checker.check(operations(*lines))
    assert not verdict.counts
    assert all(verdict.valid(model) for model in Model)


SI, STRONG = Model.SNAPSHOT_ISOLATION, Model.STRONG_SNAPSHOT_ISOLATION
STRONG_RC = Model.STRONG_READ_COMMITTED

# The history, the anomalies in it, and the weakest model that proscribes it.
WRONG = {
    "total changes": (
        [
            *done("read", {1: 10, 2: 10}),
            *done("transfer", move(1, 2, 4)),
            *done("read", {1: 6, 2: 10}),
        ],
        {"wrong-total", "lost-change"},
        SI,
    ),
    "snapshot moves": (
        [
            *beside(
                done("watch", {"reads": [{1: 10, 2: 10}, {1: 6, 2: 14}]}),
                done("transfer", move(1, 2, 4)),
            ),
        ],
        {"moved-snapshot"},
        SI,
    ),
    "own transfer is not seen": (
        [
            *done(
                "late-transfer",
                move(1, 2, 4) | {"reads": [{1: 10, 2: 10}], "after": {1: 10, 2: 10}},
            ),
        ],
        {"internal"},
        Model.READ_COMMITTED,
    ),
    "past changes": (
        [
            *done("note", {"version": 3, "accounts": {1: 10, 2: 10}}),
            *done("move", move(1, 2, 4)),
            *done("recall", {"version": 3, "accounts": {1: 6, 2: 14}}),
        ],
        {"changed-past"},
        SI,
    ),
    "replay misses a change": (
        [
            *done("note", {"version": 5, "accounts": {1: 6, 2: 14}}),
            *done("move", move(1, 2, 4)),
            *done("replay", {"version": 5, "accounts": {1: 6, 2: 10}}),
        ],
        {"changed-past", "wrong-total"},
        SI,
    ),
    "version goes back": (
        [
            *done("note", {"version": 5, "accounts": {1: 6, 2: 14}}),
            *done("move", move(1, 2, 4)),
            *done("recall", {"version": 5, "accounts": {1: 6, 2: 14}}),
            *done("note", {"version": 4, "accounts": {1: 6, 2: 14}}, process=1),
        ],
        {"stale-read"},
        STRONG,
    ),
    "account is overdrawn": (
        [
            *done("read", {1: 10, 2: 10}),
            *done("transfer", move(1, 2, 12)),
            *done("read", {1: -2, 2: 22}),
        ],
        {"overdrawn"},
        SI,
    ),
    "account is missing": (
        [
            *done("read", {1: 10, 2: 10}),
            *done("transfer", move(1, 2, 4)),
            *done("read", {1: 20}),
        ],
        {"unexpected-accounts", "lost-change"},
        SI,
    ),
    "withdrawal is lost": (
        [
            *done("read", {1: [5, 5]}),
            *done("withdraw", {"pair": 2, "account": 0, "amount": 8}),
            *done("read", {2: [92, 100]}),
            *done("withdraw", {"pair": 2, "account": 1, "amount": 8}),
            *done("read", {2: [92, 100]}),
        ],
        {"lost-change"},
        STRONG,
    ),
    "transfer is lost": (
        [
            *done("read", {1: 10, 2: 10}),
            *done("transfer", move(1, 2, 4)),
            *done("read", {1: 10, 2: 10}),
        ],
        {"lost-change"},
        STRONG,
    ),
    "increment is lost": (
        [*add(1), *add(1), *done("read", {7: 1})],
        {"count-out-of-bounds"},
        STRONG,
    ),
    "increment is counted before it is made": (
        [*done("read", {7: 1}), *add(1)],
        {"count-out-of-bounds"},
        STRONG,
    ),
    "increment is counted twice": (
        [*add(1), *add(1, "fail"), *done("read", {7: 2})],
        {"impossible-count"},
        SI,
    ),
    "element comes out twice": (
        [
            *done("enqueue", 1),
            *beside(done("dequeue", 1), done("dequeue", 1)),
            *done("drain", []),
        ],
        {"duplicate-dequeue"},
        SI,
    ),
    "element is lost": (
        [
            *done("enqueue", 1),
            *done("enqueue", 2),
            *done("dequeue", 1),
            *done("drain", []),
        ],
        {"lost-element"},
        STRONG,
    ),
    "job is taken twice": (
        [
            *done("submit", 1),
            *beside(done("take", 1), done("take", 1)),
            *done("collect", []),
        ],
        {"duplicate-dequeue"},
        SI,
    ),
    "slot has two owners": (
        [
            *done("submit", 1),
            *beside(done("hold", held(0, 1, 5)), done("hold", held(0, 4, 9))),
            *done("collect", [1]),
        ],
        {"two-owners"},
        STRONG,
    ),
    "slot is changed while it is held": (
        [
            *done("submit", 1),
            *beside(done("hold", held(0, 1, 5, seen=(3, 4))), done("touch", 0)),
            *done("collect", [1]),
        ],
        {"locked-row-changed"},
        STRONG,
    ),
    "free slot is skipped": (
        [
            *done("submit", 1),
            *done("hold", held(0, 1, 5)),
            *done("hold", held(None, 6, 7)),
            *done("collect", [1]),
        ],
        {"free-row-skipped"},
        STRONG,
    ),
    "element of a failed enqueue comes out": (
        [*done("enqueue", 1, "fail"), *done("drain", [1])],
        {"G1a"},
        Model.READ_COMMITTED,
    ),
    "two own a key": (
        [
            *beside(done("insert", [1, "a"]), done("insert", [1, "b"])),
            *done("read", [[1, "b"]]),
        ],
        {"duplicate-key", "contradictory-rows", "lost-row"},
        Model.READ_COMMITTED,
    ),
    "key is there twice": (
        [
            *done("insert", [1, "a"]),
            *done("insert", [1, "b"], "info"),
            *done("read", [[1, "a"], [1, "b"]], process=1),
        ],
        {"duplicate-key", "contradictory-rows"},
        Model.READ_COMMITTED,
    ),
    "row is lost": (
        [*done("insert", [1, "a"]), *done("read", [])],
        {"lost-row"},
        STRONG_RC,
    ),
    "child has no parent": (
        [
            *done("insert-parent", 1),
            *beside(done("insert-child", ["c", 1]), done("delete-parent", 1)),
            *family([], [["c", 1]]),
        ],
        {"orphan"},
        Model.READ_COMMITTED,
    ),
    "child survives its family": (
        [
            *done("insert-parent", 1),
            *done("insert-child", ["c", 1]),
            *done("delete-family", 1),
            *done("insert-parent", 1),
            *family([1], [["c", 1]]),
        ],
        {"lost-change"},
        STRONG,
    ),
    "child is lost": (
        [
            *done("insert-parent", 1),
            *done("insert-child", ["c", 1]),
            *family([1], []),
        ],
        {"lost-row"},
        STRONG_RC,
    ),
    "reads disagree": (
        [
            (0, "invoke", "write", 1),
            (1, "invoke", "write", 2),
            *done("read", {1: 1, 2: 0}, process=2),
            *done("read", {1: 0, 2: 1}, process=3),
            (0, "ok", "write", 1),
            (1, "ok", "write", 2),
        ],
        {"long-fork"},
        SI,
    ),
    "write is not seen": (
        forked({1: 1, 2: 0}, {1: 1, 2: 1}),
        {"stale-read"},
        STRONG,
    ),
    "together less than nothing": (
        [
            *done("read", {1: [5, 5]}),
            *beside(
                done("withdraw", {"pair": 1, "account": 0, "amount": 8}),
                done("withdraw", {"pair": 1, "account": 1, "amount": 8}),
            ),
            *done("read", {1: [-3, -3]}),
        ],
        {"write-skew"},
        Model.SERIALIZABLE,
    ),
    "nobody is on call": (
        [
            *done("look", {1: [4, 5]}),
            *beside(turn(4, [4, 5]), turn(5, [4, 5])),
            *done("look", {1: []}),
        ],
        {"write-skew"},
        Model.SERIALIZABLE,
    ),
    "everybody was on call": (
        [
            *done("look", {1: [4, 5]}),
            *beside(turn(6, [4, 5]), turn(7, [4, 5])),
            *turn(4, [4, 5, 6, 7]),
        ],
        {"write-skew"},
        Model.SERIALIZABLE,
    ),
    "doctor is still on call": (
        [
            *done("look", {1: [4, 5]}),
            *turn(4, [4, 5]),
            *done("look", {1: [4, 5]}),
        ],
        {"lost-change"},
        STRONG,
    ),
    "predicate misses a row": (
        [*done("insert", {"id": 1, "value": 5}), *rows(4, [], [[1, 5]])],
        {"phantom"},
        SI,
    ),
    "predicate selects a row that is not there": (
        [*done("insert", {"id": 1, "value": 5}), *rows(4, [[1, 5]], [])],
        {"phantom"},
        SI,
    ),
    "row of a failed update": (
        [
            *done("insert", {"id": 1, "value": 5}),
            *done("update", {"id": 1, "value": 9}, "fail"),
            *rows(4, [[1, 9]], [[1, 9]]),
        ],
        {"G1a"},
        Model.READ_COMMITTED,
    ),
}

WEAKER = {
    Model.READ_COMMITTED: set(),
    SI: {Model.READ_COMMITTED, STRONG_RC},
    STRONG_RC: set(Model) - {STRONG_RC, STRONG, Model.STRICT_SERIALIZABLE},
    Model.SERIALIZABLE: set(Model) - {Model.SERIALIZABLE, Model.STRICT_SERIALIZABLE},
    STRONG: set(Model) - {STRONG, Model.STRICT_SERIALIZABLE},
}


@pytest.mark.parametrize(("lines", "names", "weakest"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_found(lines, names, weakest):
    verdict = checker.check(operations(*lines))
    assert set(verdict.counts) == names
    valid = {model for model in Model if verdict.valid(model)}
    assert valid == WEAKER[weakest]
    assert all(anomaly.lines for anomaly in verdict.anomalies)


UNKNOWN = {
    "bank without reads": done("transfer", move(1, 2, 4)),
    "bank without transfers": done("read", {1: 10})
    + done("transfer", move(1, 2, 4), "fail"),
    "counter": add(1),
    "queue without a drain": done("enqueue", 1) + done("dequeue", 1),
    "queue with a drain beside an enqueue": beside(
        done("drain", []), done("enqueue", 1)
    ),
    "unique": done("insert", [1, "a"]),
    "predicate": done("insert", {"id": 1, "value": 1}),
}


@pytest.mark.parametrize("lines", UNKNOWN.values(), ids=UNKNOWN)
def test_what_says_nothing_is_unknown(lines):
    verdict = checker.check(operations(*lines))
    assert {verdict.valid(model) for model in Model} == {None}


MALFORMED = {
    "nothing": ([], "no operations"),
    "reads only": (done("read", {}), "cannot tell the workload"),
    "two workloads": (add(1) + done("transfer", move(1, 2, 4)), "cannot tell"),
    "value of another shape": (
        done("transfer", 3) + done("read", {1: 1}),
        "not those of bank",
    ),
    "element that nobody enqueued": (done("drain", [1]), "1 was never enqueued"),
    "row that nobody inserted": (
        done("insert", [1, "a"]) + done("read", [[1, "b"]]),
        "was not inserted",
    ),
    "key that nobody wrote": (
        done("write", 1) + done("read", {1: 1, 2: 1}),
        "key 2 was never written",
    ),
}


@pytest.mark.parametrize(("lines", "says"), MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_history_of_a_workload_is_refused(lines, says):
    with pytest.raises(MalformedHistory, match=says):
        checker.check(operations(*lines))
