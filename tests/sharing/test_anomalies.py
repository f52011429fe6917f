"""P1, P3: the named anomalies, with each transaction in a process of its own."""

from __future__ import annotations

import pytest

from tests.isolation.anomalies import LEVELS, OCCURRING, PREVENTED
from tests.isolation.histories import fill, play

TRANSACTIONS = 4


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_between_processes_it_is_as_within_one(process, level):
    keeper = process().connection
    keeper.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    others = [process(isolation_level=level).connection for _ in range(TRANSACTIONS)]
    for anomaly in (*PREVENTED, *OCCURRING):
        if anomaly.level == level:
            fill(keeper)
            play(anomaly.history, lambda number: others[number - 1])
            for connection in others:
                connection.rollback()
