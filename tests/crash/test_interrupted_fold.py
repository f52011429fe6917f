"""P1, P4: a fold that is interrupted, done or not, and the next one leave each image once.

Ctrl-C comes at each call of the engine, before it and when it has taken effect: then the process
does not know whether the fold happened.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

import tique
from tests.crash.interrupting import STRIDES, signalled
from tests.isolation.test_history import as_of, images, version
from tests.staging import stage_above

ROWS = 6


def change(connection, states):
    """A few commits; what the table had after each."""
    for sql in (
        "UPDATE t SET v = v + 1 WHERE id = 1",
        "UPDATE t SET v = v + 1 WHERE id = 2",
        "DELETE FROM t WHERE id = 2",
        "INSERT INTO t VALUES (2, 0, 'two', 1, 2, 3, 4)",
        "UPDATE t SET v = v + 1, a = 7 WHERE id = 2",
        "UPDATE t SET v = v + 1 WHERE id = 1",
    ):
        connection.execute(sql)
        connection.commit()
        rows = connection.execute("SELECT * FROM t").fetchall()
        connection.rollback()
        states[version(connection)] = sorted(map(tuple, rows), key=repr)


def fold_from_memory(connection):
    connection.checkpoint()


def fold_by_sql(connection):
    """What a reader has drained is in the cache table, too."""
    connection.execute("SELECT sum(v), count(DISTINCT note) FROM t").fetchall()
    connection.rollback()
    connection.execute(
        "INSERT INTO t SELECT id + 90, v, note, a, b, c, d FROM t WHERE id = 5"
    )
    connection.commit()
    connection.execute("DELETE FROM t WHERE id = 95")
    connection.commit()
    connection.checkpoint()


@pytest.mark.crash
@pytest.mark.parametrize("again", [fold_from_memory, fold_by_sql])
def test_each_image_once(engine, interrupt, again):
    connection = engine.connect(history="1 hour", checkpoint="manual")
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, note TEXT, a INTEGER, "
        "b INTEGER, c INTEGER, d INTEGER)"
    )
    rows = ", ".join(f"({number}, 0, 'a', 1, 2, 3, 4)" for number in range(ROWS))
    connection.execute(f"INSERT INTO t VALUES {rows}")
    connection.commit()
    connection.checkpoint()
    states = {}

    def fold(point=0, when="before"):
        change(connection, states)
        interrupt.arm(point, when, signalled)
        with suppress(KeyboardInterrupt, tique.Error):
            connection.checkpoint()
        interrupt.disarm()
        return len(interrupt.seen)

    for _ in range(2):
        calls = fold()
    for point in range(1, calls + 1, STRIDES[engine.name]):
        for when in ("before", "after"):
            fold(point, when)
            change(connection, states)
            again(connection)
            for sts, rows in states.items():
                seen = as_of(connection, "t", sts)
                assert seen == rows, (interrupt.seen[point - 1 : point], when)
            states.clear()
    lives = [(row[0], *row[-3:-1]) for row in images(connection, "t")]
    assert len(lives) == len({(key, until) for key, _, until in lives})


def insert(connection, number):
    connection.execute(f"INSERT INTO t VALUES ({number}, 1, 'new', 1, 2, 3, 4)")
    connection.commit()


def replace(connection, number):
    """Versions that are known in part, of a row that storage loses in the same fold."""
    insert(connection, number)
    for sql in (
        "UPDATE t SET v = v + 1 WHERE id = 1",
        "UPDATE t SET v = v + 1 WHERE id = 2",
        "DELETE FROM t WHERE id = 2",
    ):
        connection.execute(sql)
        connection.commit()


def counted(rows):
    return len(rows), len({row[0] for row in rows}), sum(row[1] for row in rows)


def counted_by_the_engine(connection):
    """Behind a staged write it reads the table, when the cache table has all versions."""
    with pytest.MonkeyPatch.context() as patch:
        stage_above(0, patch.setattr)
        connection.execute("INSERT INTO t VALUES (-1, 0, 'own', 0, 0, 0, 0)")
    query = "SELECT count(*) - 1, count(DISTINCT id) - 1, sum(v) FROM t"
    found = connection.execute(query).fetchone()
    connection.rollback()
    return tuple(map(int, found))


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.parametrize("write", [insert, replace])
def test_a_reader_comes_before_the_next_round(engine, interrupt, write):
    """P1: it drains no version that storage has already."""
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, note TEXT, a INTEGER, "
        "b INTEGER, c INTEGER, d INTEGER)"
    )
    connection.execute("INSERT INTO t VALUES (1, 0, 'a', 1, 2, 3, 4)")
    connection.commit()
    connection.checkpoint()
    number = 10

    def fold(point=0, when="before"):
        nonlocal connection, number
        connection.execute("DELETE FROM t WHERE id = 2")
        connection.execute("INSERT INTO t VALUES (2, 0, 'b', 1, 2, 3, 4)")
        connection.commit()
        connection.checkpoint()
        connection.close()
        # Nothing is in memory: of a row the columns are read that a statement needs.
        connection = engine.connect(checkpoint="manual")
        number += 1
        write(connection, number)
        rows = connection.execute("SELECT * FROM t").fetchall()
        connection.rollback()
        interrupt.arm(point, when, signalled)
        with suppress(KeyboardInterrupt, tique.Error):
            connection.checkpoint()
        interrupt.disarm()
        for _ in range(2):
            found = counted_by_the_engine(connection)
            assert found == counted(rows), (interrupt.seen[point - 1 : point], when)
            connection.checkpoint()
        return len(interrupt.seen)

    for _ in range(2):
        calls = fold()
    for point in range(1, calls + 1, STRIDES[engine.name]):
        for when in ("before", "after"):
            fold(point, when)
