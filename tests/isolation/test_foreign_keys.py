"""P9: FOREIGN KEY against concurrent transactions."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

import tique
from tests.isolation.parents import (
    CONFLICTS,
    NO_CONFLICTS,
    ORPHANS,
    PAIRS,
    SCHEMA,
    run,
    set_up,
)

pytestmark = pytest.mark.fresh_tables


@pytest.fixture(params=["memory", "query"])
def connect(request, engine):
    return lambda **options: engine.connect(certifier=request.param, **options)


def orphans(connection):
    ((found,),) = connection.execute(ORPHANS).fetchall()
    connection.rollback()
    return found


def open_snapshots(*connections):
    for connection in connections:
        connection.execute("SELECT count(*) FROM p").fetchall()


@pytest.mark.parametrize("order", ["one first", "two first"])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_two_transactions(connect, pair, order):
    one, two = connect(), connect()
    set_up(one, pair.action)
    open_snapshots(one, two)
    run(one, pair.one)
    run(two, pair.two)
    first, second = (one, two) if order == "one first" else (two, one)
    first.commit()
    if pair.conflict:
        with pytest.raises(tique.SerializationError):
            second.commit()
        second.rollback()
    else:
        second.commit()
    assert orphans(first) == 0


@pytest.mark.parametrize("pair", CONFLICTS, ids=lambda pair: pair.name)
def test_read_committed(connect, pair):
    """A later snapshot, and a fold up to it, hide nothing from certification."""
    level = "READ COMMITTED"
    one, two = connect(isolation_level=level), connect(isolation_level=level)
    one.lock_timeout = 0
    set_up(one, pair.action)
    run(two, pair.two)
    is_locked = False
    with suppress(tique.errors.OperationalError):
        is_locked = True
        run(one, pair.one)
        is_locked = False
    two.commit()
    if is_locked:
        # Both want one row, or a key: the second waits for the first, and sees it then.
        with suppress(tique.errors.ForeignKeyViolation):
            run(one, pair.one)
        one.commit()
    else:
        one.execute("SELECT count(*) FROM p").fetchall()
        two.checkpoint()
        with pytest.raises(tique.SerializationError):
            one.commit()
        one.rollback()
    assert orphans(two) == 0


def test_read_committed_sees_the_parent_go(connect):
    one, two = connect(isolation_level="READ COMMITTED"), connect()
    set_up(one, "")
    one.execute("SELECT 1").fetchall()
    two.execute("DELETE FROM p WHERE id = 2")
    two.commit()
    with pytest.raises(tique.errors.ForeignKeyViolation):
        one.execute("INSERT INTO k VALUES (7, 2, NULL, 0)")


@pytest.mark.parametrize("pair", NO_CONFLICTS, ids=lambda pair: pair.name)
def test_three_transactions(connect, pair):
    """Two that do not conflict with each other do with one that deletes the parents."""
    one, two, three = connect(), connect(), connect()
    set_up(one, "ON DELETE CASCADE ON UPDATE CASCADE")
    open_snapshots(one, two, three)
    run(three, "DELETE FROM p")
    run(one, pair.one)
    run(two, pair.two)
    one.commit()
    two.commit()
    with pytest.raises(tique.SerializationError):
        three.commit()
    three.rollback()
    assert orphans(one) == 0


def test_the_parent_comes_back(connect):
    """The key is there again, with another row: the child has to look anew."""
    one, two = connect(), connect()
    set_up(one, "")
    open_snapshots(one, two)
    one.execute("INSERT INTO k VALUES (7, 2, NULL, 0)")
    two.execute("DELETE FROM p WHERE id = 2")
    two.commit()
    two.execute("INSERT INTO p VALUES (2, 202, 0)")
    two.commit()
    with pytest.raises(tique.SerializationError) as caught:
        one.commit()
    assert caught.value.key == (2,)


def test_what_a_savepoint_undid_holds_nothing(connect):
    one, two = connect(), connect()
    set_up(one, "")
    open_snapshots(one, two)
    one.execute("INSERT INTO k VALUES (6, 3, NULL, 0)")
    one.execute("SAVEPOINT s")
    one.execute("INSERT INTO k VALUES (7, 2, NULL, 0)")
    one.execute("ROLLBACK TO s")
    two.execute("DELETE FROM p WHERE id = 2")
    two.commit()
    one.commit()
    assert orphans(one) == 0


def test_a_new_constraint_and_an_older_transaction(connect):
    """A transaction that deletes parents began before the child was created."""
    one, two = connect(), connect()
    one.execute(SCHEMA[0])
    one.execute(SCHEMA[2])
    one.commit()
    open_snapshots(two)
    two.execute("DELETE FROM p WHERE id = 2")
    one.execute(SCHEMA[1].format(action=""))
    one.execute("INSERT INTO k VALUES (7, 2, NULL, 0)")
    one.commit()
    with pytest.raises(tique.SerializationError, match="definition"):
        two.commit()
    two.rollback()
    assert orphans(one) == 0


@pytest.mark.slow
def test_commits_in_one_group(connect):
    """Of those that commit together, children and deletions of their parent exclude
    each other.
    """
    setup = connect()
    set_up(setup, "ON DELETE CASCADE ON UPDATE CASCADE")
    connections = [connect() for _ in range(6)]
    refused, start = [], threading.Barrier(6)

    def work(number, connection):
        start.wait()
        for turn in range(25):
            try:
                if number:
                    key = 100 * number + turn + 1000
                    connection.execute(f"INSERT INTO k VALUES ({key}, 2, NULL, 0)")
                else:
                    connection.execute("DELETE FROM p WHERE id = 2")
                    connection.execute("INSERT INTO p VALUES (2, NULL, 0)")
                connection.commit()
            except (tique.SerializationError, tique.errors.ForeignKeyViolation):
                connection.rollback()
                refused.append(number)

    threads = [
        threading.Thread(target=work, args=one) for one in enumerate(connections)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert orphans(setup) == 0
    assert len(refused) < 6 * 25
