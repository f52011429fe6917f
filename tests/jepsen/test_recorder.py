"""A history never claims more order in real time than the truth."""

from __future__ import annotations

import json

import pytest

from jepsen.recorder import Recorder, merge

pytestmark = pytest.mark.engine_free


def written(folder, client, life, lines):
    path = folder / f"client-{client:03}-{life:05}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def summary(events):
    return [(event.time, event.process, event.kind) for event in events]


def test_clients_are_merged_by_time(tmp_path):
    for client in (0, 1):
        recorder = Recorder(tmp_path, client, 0)
        recorder.invoke("read", None)
        recorder.complete("ok", "read", client)
        recorder.close()
    events = merge(tmp_path, 2)
    assert [(e.process, e.kind) for e in events] == [
        *((0, "invoke"), (0, "ok")),
        *((1, "invoke"), (1, "ok")),
    ]
    assert [event.value for event in events] == [None, 0, None, 1]


def test_of_equal_times_nothing_is_said_to_precede(tmp_path):
    written(tmp_path, 0, 0, [[1, "invoke", "f", 0, None], [5, "ok", "f", 0, None]])
    written(tmp_path, 1, 0, [[5, "invoke", "f", 0, None], [6, "ok", "f", 0, None]])
    assert summary(merge(tmp_path, 2)) == [
        *((1, 0, "invoke"), (5, 1, "invoke")),
        *((5, 0, "ok"), (6, 1, "ok")),
    ]


def test_a_killed_client_leaves_an_open_operation_until_the_end(tmp_path):
    path = written(tmp_path, 0, 0, [[1, "invoke", "f", 7, None]])
    with path.open("a") as file:
        file.write('[2, "ok", "f"')
    written(tmp_path, 0, 1, [[3, "invoke", "f", 8, None], [4, "ok", "f", 8, None]])
    written(tmp_path, 1, 0, [[2, "invoke", "f", 9, None], [9, "ok", "f", 9, None]])
    events = merge(tmp_path, 2)
    assert summary(events) == [
        *((1, 0, "invoke"), (2, 1, "invoke"), (3, 2, "invoke")),
        *((4, 2, "ok"), (9, 1, "ok"), (9, 0, "info")),
    ]
    assert events[-1].value == 7


def test_a_torn_invocation_never_began(tmp_path):
    path = written(
        tmp_path, 0, 0, [[1, "invoke", "f", 7, None], [2, "ok", "f", 7, None]]
    )
    with path.open("a") as file:
        file.write('[3, "inv')
    assert summary(merge(tmp_path, 1)) == [(1, 0, "invoke"), (2, 0, "ok")]


def test_nobody_goes_on_after_an_info(tmp_path):
    lines = [
        *([1, "invoke", "f", 1, None], [2, "info", "f", 1, "lost"]),
        *([3, "invoke", "f", 2, None], [4, "info", "f", 2, "lost"]),
        *([5, "invoke", "f", 3, None], [6, "ok", "f", 3, None]),
    ]
    written(tmp_path, 1, 0, lines)
    assert [event.process for event in merge(tmp_path, 2)] == [1, 1, 3, 3, 5, 5]
