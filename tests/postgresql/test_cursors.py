"""DECLARE, FETCH, MOVE and CLOSE: as natively, over the snapshot (P1, P8)."""

from __future__ import annotations

import pytest

import tique

SCRIPTS = {
    "forward": [
        "DECLARE c CURSOR FOR SELECT id, i FROM t ORDER BY id",
        *("FETCH c", "FETCH NEXT FROM c", "FETCH 0 FROM c", "FETCH 5 IN c", "FETCH c"),
        *("FETCH ALL FROM c", "CLOSE c", "FETCH c"),
    ],
    "moves": [
        "DECLARE c NO SCROLL CURSOR WITHOUT HOLD FOR SELECT id FROM t ORDER BY id",
        *("MOVE 2 IN c", "FETCH FORWARD c", "MOVE ALL FROM c", "FETCH FORWARD ALL c"),
    ],
    "only forward": [
        "DECLARE c NO SCROLL CURSOR FOR SELECT id FROM t ORDER BY id",
        *("FETCH c", "FETCH PRIOR FROM c"),
    ],
    "scrolling": [
        "DECLARE c INSENSITIVE SCROLL CURSOR FOR SELECT id FROM t ORDER BY id",
        *("FETCH PRIOR FROM c", "FETCH 2 FROM c", "FETCH PRIOR FROM c"),
        *("FETCH LAST FROM c", "FETCH NEXT FROM c", "FETCH BACKWARD 2 FROM c"),
        *("FETCH FIRST FROM c", "FETCH ABSOLUTE -2 FROM c", "FETCH RELATIVE -1 FROM c"),
        *("FETCH RELATIVE 0 FROM c", "FETCH ABSOLUTE 9 FROM c", "FETCH -2 FROM c"),
        *("MOVE BACKWARD ALL IN c", "FETCH ALL IN c", "FETCH BACKWARD ALL IN c"),
        *("MOVE ABSOLUTE 0 IN c", "FETCH BACKWARD c", "FETCH c", "FETCH FORWARD 0 c"),
    ],
    "snapshot": [
        "DECLARE c CURSOR FOR SELECT id, words FROM t ORDER BY id",
        "FETCH c",
        "UPDATE t SET words = 'later'",
        "DELETE FROM t WHERE id = 3",
        *("FETCH ALL FROM c", "SELECT id, words FROM t ORDER BY id"),
    ],
    "own writes": [
        "UPDATE t SET words = 'own' WHERE id = 2",
        "DECLARE c CURSOR FOR SELECT id, words FROM t ORDER BY id",
        "FETCH ALL FROM c",
    ],
    "end": ["DECLARE c CURSOR FOR SELECT 1", "COMMIT", "FETCH c"],
    "held": [
        "DECLARE c CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY id",
        *("FETCH c", "COMMIT", "FETCH c", "ROLLBACK", "FETCH PRIOR FROM c", "CLOSE ALL"),
        "FETCH c",
    ],
    "held and rolled back": [
        "DECLARE c CURSOR WITH HOLD FOR SELECT id FROM t",
        *("ROLLBACK", "FETCH c"),
    ],
    "undone": [
        "DECLARE a CURSOR FOR SELECT id FROM t ORDER BY id",
        "SAVEPOINT s",
        "DECLARE b CURSOR FOR SELECT id FROM t ORDER BY id",
        *("FETCH b", "ROLLBACK TO s", "FETCH a", "FETCH b"),
    ],
    "twice": ["DECLARE c CURSOR FOR SELECT 1", "DECLARE c CURSOR FOR SELECT 2"],
    "names": [
        'DECLARE "C" CURSOR FOR SELECT 1',
        'DECLARE next CURSOR FOR SELECT 2',
        *('FETCH "C"', "FETCH next", "CLOSE NEXT", "FETCH c"),
    ],
    "no such": ["CLOSE nope"],
    "nothing there": ["DECLARE c CURSOR FOR SELECT * FROM nowhere"],
    "discarded": ["DECLARE c CURSOR WITH HOLD FOR SELECT 1", "COMMIT", "FETCH c"],
}  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_as_natively(pair, script):
    def body(connection):
        results = []
        for statement in script:
            try:
                cursor = connection.execute(statement)
            except Exception as error:
                results.append(error.sqlstate)
                break
            results.append(cursor.fetchall() if cursor.description else None)
        connection.rollback()
        connection.execute("CLOSE ALL")
        return results

    pair.same(body)


def test_parameters(pair):
    def body(connection):
        connection.execute(
            "DECLARE c CURSOR FOR SELECT id, %s::text FROM t WHERE id > %s", ["x", 1]
        )
        return sorted(connection.execute("FETCH ALL FROM c").fetchall())

    pair.same(body)


def test_in_autocommit(pair):
    for connection in (pair.native, pair.ours):
        connection.autocommit = True
    try:
        for failure in pair.both(lambda c: c.execute("DECLARE c CURSOR FOR SELECT 1")):
            assert failure.sqlstate == "25P01"

        def body(connection):
            connection.execute(
                "DECLARE c CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY id"
            )
            connection.execute("UPDATE t SET i = i")
            found = connection.execute("FETCH 2 FROM c").fetchall()
            connection.execute("DISCARD ALL")
            try:
                connection.execute("FETCH c")
            except Exception as error:
                return found, error.sqlstate

        pair.same(body)
    finally:
        for connection in (pair.native, pair.ours):
            connection.autocommit = False


def test_rows_are_read_as_they_are_fetched(pair):
    """Other statements of the connection go between; rows that nobody wants are dropped."""

    def body(connection):
        connection.execute("DECLARE c CURSOR FOR SELECT generate_series(1, 50000)")
        found = [connection.execute("FETCH 2 FROM c").fetchall()]
        found.append(connection.execute("SELECT count(*) FROM t").fetchall())
        found.append(connection.execute("FETCH 2 FROM c").fetchall())
        connection.execute("CLOSE c")
        found.append(connection.execute("SELECT 1").fetchall())
        return found

    pair.same(body)


def test_what_is_refused(pair):
    pair.ours.execute("DECLARE c CURSOR FOR SELECT id FROM t")
    for sql in (
        "FETCH PRIOR FROM c",
        "FETCH ABSOLUTE 1 FROM c",
        "DECLARE d BINARY CURSOR FOR SELECT 1",
        "DECLARE d CURSOR FOR SELECT id FROM t FOR UPDATE",
        "DECLARE d CURSOR FOR DELETE FROM t",
        "UPDATE t SET i = 1 WHERE CURRENT OF c",
    ):
        with pytest.raises(tique.NotSupportedError):
            pair.ours.execute(sql)
    pair.ours.rollback()
