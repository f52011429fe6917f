"""P6: the counter of hot keys is bounded, keeps the hot ones, and seldom warns."""

from __future__ import annotations

import logging

import pytest

from tique.commit import hot_keys
from tique.commit.hot_keys import HotKey, HotKeys

pytestmark = pytest.mark.engine_free


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def counted(clock):
    return HotKeys(clock)


def test_a_hot_key_stays_among_many_cold_ones(counted, monkeypatch):
    monkeypatch.setattr(hot_keys, "_MOST", 8)
    for number in range(1000):
        counted.note_conflict("main.t", (number + 100,))
        if number % 4 == 0:
            counted.note_merge("main.t", (1,))
    assert counted.hottest(1) == (HotKey("main.t", (1,), 0, 250),)
    assert len(counted.hottest(100)) == 8


def test_tables_have_keys_of_their_own(counted):
    counted.note_conflict("main.a", (1,))
    counted.note_conflict("main.b", (1,))
    counted.note_conflict("main.b", (1,))
    assert counted.hottest() == (
        HotKey("main.b", (1,), 2, 0),
        HotKey("main.a", (1,), 1, 0),
    )


def conflict(counted, clock, *, times, apart):
    for _ in range(times):
        counted.note_conflict("main.t", ("secret",))
        clock.now += apart


def test_a_long_series_of_conflicts_is_warned_of_once(counted, clock, caplog):
    caplog.set_level(logging.WARNING, logger="tique")
    conflict(counted, clock, times=80, apart=0.5)
    (record,) = caplog.records
    assert "main.t" in record.getMessage()
    assert "secret" not in record.getMessage()
    conflict(counted, clock, times=80, apart=0.5)
    assert len(caplog.records) == 2


@pytest.mark.parametrize(("times", "apart"), [(200, 0.01), (15, 1.0), (40, 3.0)])
def test_short_or_rare_conflicts_are_not_warned_of(
    counted, clock, caplog, times, apart
):
    conflict(counted, clock, times=times, apart=apart)
    assert not caplog.records
