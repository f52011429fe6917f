"""SERIALIZABLE: random transactions are as if they had run one after the other (P1, P3).

In an order that respects real time: who began after another one's commit comes after it. The
order is that of the commits, and who wrote nothing is where it began.
"""

from __future__ import annotations

from contextlib import closing
from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.effort import effort
from tests.isolation.serial_orders import (
    ROLLBACK_TO,
    SAVEPOINT,
    Statement,
    Table,
    described,
    explanations,
    programs,
    replay,
)

pytestmark = pytest.mark.every_engine

FIXTURES = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
SHARE = {"duckdb": 1.0, "monetdb": 0.1, "postgresql": 0.1}


@pytest.fixture(params=["memory", "query"])
def table(request, engine):
    with closing(Table(engine.url, certifier=request.param)) as table:
        yield table


def check(table, many, interleaving, *, folds=False):
    first = table.fill(folds=folds)
    outcomes = table.run(many, interleaving, first)
    last = table.state()
    orders = list(explanations(outcomes, first, last))
    assert orders, described(outcomes, last)
    assert any(map(is_that_of_commits, orders)), described(outcomes, last)


def is_that_of_commits(writers):
    ends = [outcome.ended for outcome in writers]
    return ends == sorted(ends)


def examples(engine, short, long):
    return max(1, int(effort(short, long) * SHARE[engine.name]))


def test_random_transactions(engine, table):
    @settings(max_examples=examples(engine, 150, 5_000), suppress_health_check=FIXTURES)
    @given(st.data())
    def run(data):
        many = data.draw(st.lists(programs(3), min_size=2, max_size=4))
        steps = st.integers(0, len(many) - 1)
        interleaving = data.draw(st.lists(steps, max_size=5 * len(many)))
        check(table, many, interleaving, folds=data.draw(st.booleans()))

    run()
    print(f"{table.refused} refused, {table.needlessly} of them needlessly")


def test_every_interleaving_of_two(engine, table):
    @settings(max_examples=examples(engine, 12, 300), suppress_health_check=FIXTURES)
    @given(programs(2), programs(2))
    def run(one, other):
        count = len(one) + len(other) + 2
        for places in combinations(range(count), len(one) + 1):
            check(table, [one, other], [place not in places for place in range(count)])

    run()


def test_the_model_replays_savepoints():
    """What it takes for the truth is right."""

    def add(state):
        state[9] = 0, 0
        return 1

    insert = Statement("", add)
    results, state = replay([SAVEPOINT, insert, ROLLBACK_TO], {1: (0, 0)})
    assert (results, state) == ([None, 1, None], {1: (0, 0)})
