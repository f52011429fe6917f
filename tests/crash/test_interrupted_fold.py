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
