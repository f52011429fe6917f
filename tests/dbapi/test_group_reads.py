"""Statements about the rows with one prefix of the key: from memory as from the engine."""

from __future__ import annotations

import random
from datetime import datetime
from decimal import Decimal

import pytest

from tests.portable import numbers
from tique.store.versions import TableVersions

PREFIX = (1, 7)

QUERIES = [
    "SELECT n, amount, note FROM line WHERE a = %s AND b = %s",
    "SELECT amount AS price, a FROM line WHERE b = %s AND a = %s",
    "SELECT * FROM line WHERE a = %s AND b = %s ORDER BY n DESC",
    "SELECT n FROM line WHERE a = %s AND b = %s ORDER BY done, n LIMIT 3",
    "SELECT n FROM line WHERE a = %s AND b = %s AND note = 'x' ORDER BY n",
    "SELECT note FROM line WHERE a = %s AND b = %s ORDER BY note, n LIMIT 5",
    "SELECT n FROM line WHERE a = %s AND b = %s ORDER BY label, n DESC",
    "SELECT SUM(amount), COUNT(*), COUNT(note), MIN(n), MAX(n), SUM(n), MAX(amount)"
    " FROM line WHERE a = %s AND b = %s",
    "SELECT SUM(amount) AS total FROM line WHERE a = %s AND b = %s AND note = 'none'",
    "SELECT COUNT(DISTINCT note) FROM line WHERE a = %s AND b = %s",
]


@pytest.fixture
def connection(engine):
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE line (a INTEGER, b INTEGER, n INTEGER, amount DECIMAL(6,2), "
        "note VARCHAR(10), done TIMESTAMP NOT NULL, label VARCHAR(10) NOT NULL, PRIMARY KEY (a, b, n))"
    )
    connection.cursor().executemany(
        "INSERT INTO line VALUES (%s, %s, %s, %s, %s, %s, %s)",
        [
            (
                a,
                b,
                n,
                None if n == 4 else Decimal(100 * a + 10 * b + n) / 4,
                ("x", None, "y")[n % 3],
                datetime(2026, 1, 1 + n % 2),
                ("é", "Z", "a", "🙂", "", "\uffff")[n % 6],
            )
            for a in (1, 2)
            for b in range(40)
            for n in range(1, 7)
        ],
    )
    connection.commit()
    connection.checkpoint()
    return connection


def parameters(sql):
    return PREFIX[::-1] if sql.index("b = %s") < sql.index("a = %s") else PREFIX


def answer(connection, sql):
    cursor = connection.execute(sql, parameters(sql))
    rows = cursor.fetchall()
    # MonetDB numbers results without a name.
    names = [name.rstrip("0123456789") for name, *_ in cursor.description]
    return names, rows if "ORDER" in sql else sorted(rows, key=repr)


def by_the_engine(connection, sql):
    """The same with a condition that makes it the engine's business."""
    return answer(connection, sql.replace("WHERE", "WHERE 1 = 1 AND"))


def test_the_engine_agrees(connection):
    """P1, P8: without versions, with own ones, with others', and after a fold."""

    def compare():
        for sql in QUERIES:
            expected = by_the_engine(connection, sql)
            for _ in range(4):
                assert answer(connection, sql) == expected

    compare()
    connection.execute("UPDATE line SET amount = 1.5 WHERE a = 1 AND b = 7 AND n = 3")
    connection.execute("DELETE FROM line WHERE a = 1 AND b = 7 AND n = 1")
    connection.execute(
        "INSERT INTO line VALUES (1, 7, 9, 3, 'x', %s, 'b')", (datetime(2030, 1, 1),)
    )
    compare()
    connection.commit()
    compare()
    connection.commit()
    connection.checkpoint()
    compare()


def test_memory_answers_what_was_asked_before(statements, connection):
    """Neighbours of small groups are in memory then, and the rows that folds bring."""
    sql = "SELECT SUM(amount) FROM line WHERE a = %s AND b = %s"

    def ask():
        return [connection.execute(sql, (1, b)).fetchall() for b in range(32, 40)]

    first = [ask() for _ in range(2)]
    assert first[0] == first[1]
    assert statements(connection, ask) == 0
    update = "UPDATE line SET amount = amount + 1, done = %s WHERE a = %s AND b = %s"
    work = [(datetime(2027, 1, 1), 1, b) for b in range(32, 40)]

    def change():
        connection.cursor().executemany(update, work)

    # It looks at more columns: they are read once, for which MonetDB prepares.
    assert statements(connection, change) <= 4
    assert statements(connection, change) == 0
    connection.commit()
    assert ask() == [[(total + 10,)] for ((total,),) in first[0]]
    connection.checkpoint()
    assert statements(connection, ask) == 0
    assert ask() == [[(total + 10,)] for ((total,),) in first[0]]
    sql = "SELECT COUNT(*) FROM line WHERE a = %s AND b = %s AND done = %s"
    for parameters in ((1, 33, datetime(2027, 1, 1)), (1, 3, datetime(2027, 1, 1))):
        rows = connection.execute(sql, parameters).fetchall()
        assert rows == [(6 if parameters[1] == 33 else 0,)]


def test_changes_by_prefix(connection):
    """P8: rows that are partly known keep the values of their other columns."""
    update = "UPDATE line SET amount = amount + %s WHERE a = %s AND b = %s"
    before = connection.execute(
        "SELECT * FROM line WHERE a = 1 AND b = 5 ORDER BY n"
    ).fetchall()
    for _ in range(5):
        assert connection.execute(update, (Decimal(1), 1, 5)).rowcount == 6
        connection.commit()
        connection.checkpoint()
    assert connection.execute(
        "SELECT * FROM line WHERE a = 1 AND b = 5 ORDER BY n"
    ).fetchall() == [
        (*row[:3], None if row[3] is None else row[3] + 5, *row[4:]) for row in before
    ]
    for b in (5, 6, 8):
        gone = connection.execute("DELETE FROM line WHERE a = 1 AND b = %s", (b,))
        assert gone.rowcount == 6
        count = "SELECT COUNT(*) FROM line WHERE a = 1 AND b = %s"
        assert connection.execute(count, (b,)).fetchone() == (0,)
        connection.commit()
        connection.checkpoint()
        assert connection.execute(count, (b,)).fetchone() == (0,)


def test_rows_are_counted_before_any_column_is_read(engine):
    """P1, P10: a group may be wanted for its rows' being there only."""
    with engine.connect(checkpoint="manual") as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
        connection.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
        connection.commit()
        connection.checkpoint()
    connection = engine.connect(checkpoint="manual")
    for statement in ("INSERT INTO t VALUES (3, 3)", "DELETE FROM t WHERE id = 3"):
        connection.execute("SELECT count(*) FROM t").fetchone()
        connection.commit()
        connection.execute(statement)
        connection.commit()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (2,)


@pytest.mark.parametrize("seed", range(6))
def test_rows_in_every_snapshot(connection, engine, seed):
    """P1, P7: rows that folds move, and values that no version has."""
    chance = random.Random(seed)
    group = "SELECT n, amount FROM line WHERE a = %s AND b = %s ORDER BY n"
    sql = "SELECT n, amount FROM line WHERE a = %s AND b = %s AND note = %s ORDER BY n"
    everything = "SELECT n, amount, note FROM line WHERE a = 1 AND b = 7"
    model = {n: (amount, note) for n, amount, note in connection.execute(everything)}
    connection.commit()
    snapshots = []

    def change():
        n, note = chance.randrange(1, 12), chance.choice(["x", "y", None])
        kind = chance.choice(["amount", "note", "delete"])
        if n not in model:
            insert = "INSERT INTO line VALUES (1, 7, %s, 0, %s, %s, '')"
            connection.execute(insert, (n, note, datetime(2026, 1, 1)))
            model[n] = (Decimal(0), note)
        elif kind == "delete":
            connection.execute(
                "DELETE FROM line WHERE a = 1 AND b = 7 AND n = %s", (n,)
            )
            del model[n]
        elif kind == "note":
            update = "UPDATE line SET note = %s WHERE a = 1 AND b = 7 AND n = %s"
            connection.execute(update, (note, n))
            model[n] = (model[n][0], note)
        else:
            update = "UPDATE line SET amount = %s WHERE a = 1 AND b = 7 AND n = %s"
            connection.execute(update, (Decimal(n), n))
            model[n] = (Decimal(n), model[n][1])

    def compare(reader, rows):
        for note in ("x", "y"):
            found = reader.execute(sql, (*PREFIX, note)).fetchall()
            assert found == sorted(
                (n, amount) for n, (amount, found) in rows.items() if found == note
            )
        found = reader.execute(group, PREFIX).fetchall()
        assert found == sorted((n, amount) for n, (amount, _) in rows.items())

    for _ in range(40):
        for _ in range(chance.randrange(1, 4)):
            change()
            compare(connection, model)
        if chance.random() < 0.2:
            connection.rollback()
            model = {n: rest for n, *rest in connection.execute(everything)}
            connection.rollback()
            continue
        connection.commit()
        if chance.random() < 0.3:
            reader = engine.connect()
            reader.execute(everything).fetchall()
            snapshots.append((reader, dict(model)))
        if chance.random() < 0.3 and snapshots:
            snapshots.pop(chance.randrange(len(snapshots)))[0].close()
        if chance.random() < 0.3:
            connection.checkpoint()
        for reader, rows in snapshots:
            compare(reader, rows)


def test_a_group_that_made_room_meanwhile(statements, connection, engine, monkeypatch):
    """P1, P7: rows folded after its eviction are neither in it nor in any version."""
    sql = "SELECT n FROM line WHERE a = %s AND b = %s AND note = %s ORDER BY n"
    for _ in range(4):
        before = connection.execute(sql, (*PREFIX, "x")).fetchall()
    assert statements(connection, lambda: connection.execute(sql, (*PREFIX, "x"))) == 0
    ((number,), *rest) = before
    connection.commit()
    connection.execute(
        "UPDATE line SET note = 'y' WHERE a = 1 AND b = 7 AND n = %s", (number,)
    )
    connection.commit()
    other = engine.connect(checkpoint="manual")
    matching = TableVersions.matching

    def forgetting(versions, positions, values):
        found = matching(versions, positions, values)
        monkeypatch.undo()
        versions.forget_storage()
        other.checkpoint()
        return found

    monkeypatch.setattr(TableVersions, "matching", forgetting)
    assert connection.execute(sql, (*PREFIX, "x")).fetchall() == rest
    assert TableVersions.matching is matching


def test_few_rows_of_a_large_group(statements, engine):
    """P1, P7: found by a value; and so many that the engine had better find them."""
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE big (a INTEGER, n INTEGER, kind INTEGER, same INTEGER, note TEXT, "
        "PRIMARY KEY (a, n))"
    )
    connection.execute(
        f"INSERT INTO big SELECT 1, number, number % 500, 7, 'é' FROM {numbers(5000)}"
    )
    connection.commit()
    connection.checkpoint()
    few = "SELECT n, note FROM big WHERE a = 1 AND kind = %s ORDER BY n"
    many = "SELECT n, note FROM big WHERE a = 1 AND same = %s ORDER BY n"

    def compare(*counts):
        for sql, value, count in zip((few, few, many), (3, 4, 7), counts, strict=True):
            by_engine = sql.replace("WHERE", "WHERE 1 = 1 AND")
            expected = connection.execute(by_engine, (value,)).fetchall()
            assert len(expected) == count
            for _ in range(4):
                assert connection.execute(sql, (value,)).fetchall() == expected

    compare(10, 10, 5000)
    assert statements(connection, lambda: connection.execute(few, (200,))) == 0
    connection.execute("UPDATE big SET kind = 4, note = 'x' WHERE a = 1 AND n = 503")
    connection.execute("DELETE FROM big WHERE a = 1 AND n = 1003")
    connection.execute("INSERT INTO big VALUES (1, 9000, 3, 7, NULL)")
    compare(9, 11, 5000)
    connection.commit()
    compare(9, 11, 5000)
    connection.commit()
    connection.checkpoint()
    compare(9, 11, 5000)
