"""SERIALIZABLE: random transactions are as if they had run one after the other (P1, P3).

In an order that respects real time: who began after another one's commit comes after it. The
order is that of the commits, and who wrote nothing is where it began. An episode is a
function of a seed and a number.
"""

from __future__ import annotations

from contextlib import closing
from itertools import combinations
from random import Random

import pytest

from tests.effort import effort
from tests.isolation.serial_orders import (
    ROLLBACK_TO,
    SAVEPOINT,
    Statement,
    Table,
    described,
    explanations,
    interleaved,
    program,
    replay,
)

pytestmark = pytest.mark.every_engine

SEED = 41
SHARE = {"duckdb": 1.0, "monetdb": 0.2, "postgresql": 0.2}


@pytest.fixture(params=["memory", "query"])
def table(request, engine):
    with closing(Table(engine.url, certifier=request.param)) as table:
        yield table


def fault(table, many, interleaving, *, folds):
    """What happened, if no order explains it, or not that of the commits; else None."""
    first = table.fill(folds=folds)
    outcomes = table.run(many, interleaving, first)
    last = table.state()
    for writers in explanations(outcomes, first, last):
        ends = [outcome.ended for outcome in writers]
        if ends == sorted(ends):
            return None
    return described(outcomes, last)


def episodes(engine, short, long):
    return range(max(1, int(effort(short, long) * SHARE[engine.name])))


@pytest.mark.slow
def test_random_transactions(engine, table):
    for number in episodes(engine, 150, 10_000):
        chance = Random(f"{SEED} {number}")
        many = [program(chance, 3) for _ in range(chance.randint(2, 4))]
        found = fault(
            table, many, interleaved(chance, many), folds=chance.random() < 0.2
        )
        assert found is None, f"number {number}:\n{found}"
    print(f"{table.refused} refused, {table.needlessly} of them needlessly")
    assert table.refused


@pytest.mark.slow
def test_every_interleaving_of_two(engine, table):
    for number in episodes(engine, 10, 500):
        chance = Random(f"{SEED} {number}")
        one, other = program(chance, 2), program(chance, 2)
        count = len(one) + len(other) + 2
        for places in combinations(range(count), len(one) + 1):
            interleaving = [place not in places for place in range(count)]
            found = fault(table, [one, other], interleaving, folds=False)
            assert found is None, f"number {number}:\n{found}"


def test_the_model_replays_savepoints():
    """What it takes for the truth is right."""

    def add(state):
        state[9] = 0, 0
        return 1

    insert = Statement("", add)
    results, state = replay([SAVEPOINT, insert, ROLLBACK_TO], {1: (0, 0)})
    assert (results, state) == ([None, 1, None], {1: (0, 0)})
