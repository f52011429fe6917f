"""Retentions: what they keep."""

from __future__ import annotations

import pytest

import tique
from tique.history.retention import Retention

HOUR = 3600 * 10**6
NOW = 1_000_000 * HOUR + 1
"""A full hour, 16:00, and a microsecond."""


def every(hours):
    """A commit ten minutes before each full hour: its version is the hour's number."""
    return [(1_000_000 - n, (1_000_000 - n) * HOUR - HOUR // 6) for n in hours]


def test_every_state_alone():
    retention = Retention.parse(" 90  Minutes ")
    assert (retention.text, retention.first, retention.tiers) == (
        "90 minutes",
        5400,
        (),
    )
    assert retention.points(every(range(10, -1, -1)), NOW) == []
    assert retention.longest == 5400


def test_points():
    retention = Retention.parse("2 hours; hourly for 5 hours; daily for 3 days")
    points = retention.points(every(range(100, -1, -1)), NOW)
    days = [1_000_000 - 16 - 24 * n for n in (2, 1, 0)]
    assert points == [*days, *(1_000_000 - n for n in (4, 3, 2))]
    assert retention.longest == 3 * 86400


def test_points_where_nothing_was_committed():
    """The last commit before a full hour is its state, however old it is."""
    retention = Retention.parse("1 hour; hourly for 4 hours")
    assert retention.points(every([50, 2]), NOW) == [1_000_000 - 50, 1_000_000 - 2]
    assert retention.points([], NOW) == []


def test_a_commit_at_a_full_hour_belongs_to_it():
    retention = Retention.parse("1 hour; hourly for 3 hours")
    hours = [1_000_000 - 2, 1_000_000 - 1]
    assert retention.points([(n, n * HOUR) for n in hours], NOW) == hours
    late = [(n, n * HOUR + 1) for n in hours]
    assert retention.points(late, NOW) == hours[:1]


def test_a_clock_that_went_back():
    """The state at a time is that of the newest commit up to then."""
    retention = Retention.parse("1 hour; hourly for 4 hours")
    back = [(7, (1_000_000 - 2) * HOUR), (9, (1_000_000 - 3) * HOUR)]
    assert retention.points(back, NOW) == [9]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2",
        "hours",
        "0 hours",
        "2 hours;",
        "2 hours; weekly for 3 weeks",
        "-1 hour",
        "hourly for 2 days",
        "2 hours, hourly for 2 days",
        "2 months",
    ],
)
def test_what_is_none(text):
    with pytest.raises(tique.InterfaceError, match="is no retention") as refusal:
        Retention.parse(text)
    assert refusal.value.sqlstate == "22023"


@pytest.mark.parametrize(
    ("before", "after", "seconds"),
    [
        ("2 hours", "1 hour", None),
        ("2 hours", "3 hours", 7200),
        ("2 hours", "1 hour; hourly for 2 hours", 7200),
        ("2 hours; daily for 2 days", "2 hours; daily for 3 days", 2 * 86400),
        ("2 hours; daily for 2 days", "1 hour; daily for 1 day", None),
        (
            "2 hours; daily for 2 days",
            "2 hours; hourly for 1 day; daily for 1 day",
            7200,
        ),
    ],
)
def test_what_another_one_covers(before, after, seconds):
    assert Retention.parse(before).covers(Retention.parse(after)) == seconds
