"""P9: FOREIGN KEY among several processes on one server."""

from __future__ import annotations

import threading

import pytest

import tique
from tests.isolation.parents import ORPHANS, PAIRS, run, set_up
from tests.sharing.playing import expect_nothing_unfinished, waiting


def orphans(process):
    ((found,),) = process.rows(ORPHANS)
    return found


@pytest.mark.parametrize("order", ["one first", "two first"])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_two_transactions(process, pair, order):
    one, two = process(), process()
    set_up(one.connection, pair.action)
    for each in (one, two):
        each.rows("SELECT count(*) FROM p")
    run(one.connection, pair.one)
    run(two.connection, pair.two)
    first, second = (one, two) if order == "one first" else (two, one)
    first.connection.commit()
    if pair.conflict:
        with pytest.raises(tique.SerializationError):
            second.connection.commit()
        second.connection.rollback()
    else:
        second.connection.commit()
    assert orphans(first) == orphans(second) == 0
    expect_nothing_unfinished(one)


SMALL = [pair for pair in PAIRS if "bulk" not in pair.name]


@pytest.mark.parametrize("order", ["one first", "two first"])
@pytest.mark.parametrize("pair", SMALL, ids=lambda pair: pair.name)
def test_one_commits_while_the_other_is_certified(
    process, pool, monkeypatch, pair, order
):
    """Its process does not know that commit: the shared sequencer does."""
    one, two = process(), process()
    set_up(one.connection, pair.action)
    for each in (one, two):
        each.rows("SELECT count(*) FROM p")
    run(one.connection, pair.one)
    run(two.connection, pair.two)
    first, second = (one, two) if order == "one first" else (two, one)
    shared = second.database.engine.shared
    step = "append" if hasattr(shared, "append") else "certify"
    with waiting(monkeypatch, shared, step) as (arrived, go_on):
        commit = pool.submit(second.connection.commit)
        assert arrived.wait(20)
        first.connection.commit()
        go_on.set()
        if pair.conflict:
            with pytest.raises(tique.SerializationError):
                commit.result(20)
            second.connection.rollback()
        else:
            commit.result(20)
    assert orphans(first) == orphans(second) == 0
    expect_nothing_unfinished(one)


def test_a_constraint_of_another_process(process):
    """A process that has planned its statements learns of a constraint, and that it goes."""
    one, two = process(), process()
    set_up(one.connection, "")
    insert = "INSERT INTO k VALUES (%s, %s, NULL, 0)"
    two.commit(insert, (7, 1))
    with pytest.raises(tique.errors.ForeignKeyViolation):
        two.run(insert, (8, 9))
    two.connection.rollback()
    with pytest.raises(tique.errors.ForeignKeyViolation):
        two.run("DELETE FROM p WHERE id = 1")
    two.connection.rollback()
    one.commit("DROP TABLE p CASCADE")
    two.commit(insert, (8, 9))


def test_the_older_transaction_of_another_process(process):
    """It deletes parents under a definition in which nothing references them."""
    one, two = process(), process()
    one.commit("CREATE TABLE p (id INTEGER PRIMARY KEY)")
    one.commit("INSERT INTO p VALUES (1), (2)")
    two.run("DELETE FROM p WHERE id = 2")
    one.commit("CREATE TABLE k (id INTEGER PRIMARY KEY, ref INTEGER REFERENCES p)")
    one.commit("INSERT INTO k VALUES (1, 2)")
    with pytest.raises(tique.SerializationError):
        two.connection.commit()
    two.connection.rollback()
    assert one.rows("SELECT id FROM p ORDER BY id") == [(1,), (2,)]


@pytest.mark.slow
def test_commits_at_the_same_time(process):
    """Children of one parent from several processes, while another deletes it."""
    processes = [process() for _ in range(3)]
    set_up(processes[0].connection, "ON DELETE CASCADE ON UPDATE CASCADE")
    outcomes, start = [], threading.Barrier(3)

    def work(number, connection):
        start.wait()
        for turn in range(20):
            key = 1000 * (number + 1) + turn
            try:
                if number == 2 and turn % 5 == 4:
                    connection.execute("DELETE FROM p WHERE id = 2")
                    connection.execute("INSERT INTO p VALUES (2, NULL, 0)")
                else:
                    connection.execute(f"INSERT INTO k VALUES ({key}, 2, NULL, 0)")
                connection.commit()
                outcomes.append("committed")
            except (tique.SerializationError, tique.errors.ForeignKeyViolation):
                connection.rollback()
                outcomes.append("refused")

    threads = [
        threading.Thread(target=work, args=(number, each.connection))
        for number, each in enumerate(processes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 60
    assert outcomes.count("committed") > 20
    assert [orphans(each) for each in processes] == [0, 0, 0]


@pytest.mark.slow
def test_children_of_one_parent_do_not_meet(process):
    """Commits that only share keys are never refused, though they are at one moment."""
    processes = [process() for _ in range(3)]
    set_up(processes[0].connection, "")
    refused, start = [], threading.Barrier(3)

    def work(number, connection):
        start.wait()
        for turn in range(30):
            key = 1000 * (number + 1) + turn
            try:
                connection.execute(f"INSERT INTO k VALUES ({key}, 2, 102, 0)")
                connection.commit()
            except tique.SerializationError as error:
                connection.rollback()
                refused.append(error)

    threads = [
        threading.Thread(target=work, args=(number, each.connection))
        for number, each in enumerate(processes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == []
    assert processes[0].rows("SELECT count(*) FROM k") == [(92,)]
