"""A snapshot that the engine keeps, while other processes commit and fold."""

from __future__ import annotations

import time

import pytest

import tique

QUERIES = (
    "SELECT id, v, note FROM t ORDER BY id",
    "SELECT count(*), sum(v) FROM t WHERE note <> 'c'",
    "SELECT v FROM t WHERE id = 11",
)


def ask(connection):
    return [connection.execute(query).fetchall() for query in QUERIES]


def hold(connection):
    with connection._execution.guarded():
        connection._execution.transaction.hold()


def fold(folding, *others):
    """Fold what λ allows, in one process, when all have told how far they are."""
    for process in (folding, *others):
        process.database.timeline.advance()
    folding.connection.checkpoint()
    for process in others:
        process.database.timeline.note_folds()


@pytest.mark.slow
@pytest.mark.every_engine
def test_another_process_folds(filled):
    """P1, P3, P7: its folds pass the snapshot, which stays; folded keys are certified."""
    first, second = filled
    first.commit("UPDATE t SET v = 1 WHERE id < 100")
    ends = {
        "UPDATE t SET v = v + 1 WHERE id = 11": False,
        "INSERT INTO t VALUES (9999, 1, '')": False,
        "UPDATE t SET v = v + 1 WHERE id = 200": True,
        f"INSERT INTO t SELECT id + 20000, 0, 'x' FROM t WHERE id < {2800}": True,
        f"INSERT INTO t SELECT id + 8000, 0, 'x' FROM t WHERE id < {2800}": False,
    }
    for statement, wins in ends.items():
        second.commit("DELETE FROM t WHERE id > 9000")
        with first.another() as old:
            before = ask(old)
            hold(old)
            for number in range(3):
                second.commit("UPDATE t SET v = v + 1 WHERE id < 100")
                second.commit("DELETE FROM t WHERE id = %s", (3000 - number,))
                second.commit("INSERT INTO t VALUES (%s, 0, '')", (9999 - number,))
                fold(second, first)
            versions = second.database.catalog.all_versions()
            assert all(each.is_empty for each in versions)
            assert all(v.is_empty for v in first.database.catalog.all_versions())
            assert ask(old) == before
            if wins:
                old.execute(statement)
                old.commit()
            else:
                with pytest.raises(tique.SerializationError):
                    commit(old, statement)


def commit(connection, statement):
    connection.execute(statement)
    connection.commit()


@pytest.mark.every_engine
def test_the_process_is_stopped(process, filled):
    """P1, P6: it is given up with its lease, as any; what it would read then is refused."""
    first, second = filled
    third = process(lease=1.0)
    before = ask(third.connection)
    hold(third.connection)
    assert ask(third.connection) == before
    # No heartbeat any more.
    third.database.timeline._stopping.set()
    second.commit("UPDATE t SET v = 5")
    deadline = time.monotonic() + 20
    while not all(v.is_empty for v in second.database.catalog.all_versions()):
        assert time.monotonic() < deadline
        fold(second, first)
    with pytest.raises(tique.OperationalError) as refused:
        ask(third.connection)
    assert refused.value.sqlstate == "08006"
