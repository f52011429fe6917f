"""P1: every process that folds a table writes its history, whoever has set it."""

from __future__ import annotations

import random

import pytest

from tests.isolation.test_history import CREATIONS, Model, table_of
from tests.sharing.playing import Process
from tique.history.retention import Retention
from tique.query.define.history import drop_history, set_history


@pytest.mark.slow
def test_processes_that_fold_in_turn(shared_engine):
    one, two = Process(shared_engine.url), Process(shared_engine.url)
    for creation in CREATIONS:
        one.commit(creation)
    model = Model(two.connection, random.Random(2))
    for _ in range(3):
        model.commit()
    # The other process has yet to follow this when it folds.
    set_history(one.database.changes, Retention.parse("1 hour"))
    two.connection.checkpoint()
    since = table_of(one.connection, "t").history.since
    model.note()
    for _ in range(12):
        model.connection = model.chance.choice([one, two]).connection
        model.commit()
        if model.chance.random() < 0.5:
            model.chance.choice([one, two]).connection.checkpoint()
    for process in (one, two):
        process.connection.rollback()
    model.check(since)
    drop_history(one.database.changes, ["t"])
    two.connection.checkpoint()
    model.connection = two.connection
    model.commit()
    one.rows("SELECT * FROM t")
    two.connection.checkpoint()
    keyed, _ = list(model.states.values())[-1]
    assert sorted(one.rows("SELECT * FROM t"), key=repr) == keyed
    for process in (one, two):
        assert process.database.checkpointer.last_error is None
        process.close()
