"""Ranges of groups, and rows of another table by its key: as the engine finds them."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

import tique
from tests.portable import numbers

pytestmark = pytest.mark.fresh_tables

BELONGING = (
    "FROM line, item WHERE a = %s AND b >= %s AND b < %s AND shop = a AND code = n"
)
JOINED = "FROM line JOIN item ON code = line.n AND shop = 1 WHERE a = %s"

QUERIES = [
    "SELECT n, amount FROM line WHERE a = %s AND b = %s AND n > 2 AND %s >= n ORDER BY n",
    "SELECT b, n FROM line WHERE a = %s AND b BETWEEN %s AND %s ORDER BY b DESC, n",
    "SELECT COUNT(*), SUM(amount) FROM line WHERE a = %s AND b > %s AND b <= %s "
    "AND amount < 90.5",
    "SELECT COUNT(note), COUNT(DISTINCT rest), MIN(n) FROM line "
    "WHERE a = %s AND b >= %s AND %s > b AND rest >= 1",
    "SELECT MAX(n) FROM line WHERE a = %s AND b >= %s AND b <= %s AND note = 'x'",
    f"SELECT COUNT(DISTINCT code) {BELONGING} AND stock < 3",
    f"SELECT b, n, price, stock {BELONGING} ORDER BY n, b DESC",
    f"SELECT SUM(price), COUNT(*), COUNT(stock) {BELONGING} AND price >= 2",
    f"SELECT line.note, item.price {JOINED} AND b = %s AND n <= %s ORDER BY line.n",
    f"SELECT COUNT(*) {JOINED} AND b >= %s AND b < %s AND stock > 1 AND rest = 2",
    "SELECT COUNT(amount) FROM item, line "
    "WHERE a = %s AND b > %s AND b < %s AND code = rest AND shop = 2",
]

LINE = "INSERT INTO line VALUES (%s, %s, %s, %s, %s, %s)"
ITEM = "INSERT INTO item VALUES (%s, %s, %s, %s)"


@pytest.fixture
def connection(engine):
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE line (a INTEGER, b INTEGER, n INTEGER, amount DECIMAL(6,2), "
        "rest INTEGER, note VARCHAR(10), PRIMARY KEY (a, b, n))"
    )
    connection.execute(
        "CREATE TABLE item (shop INTEGER, code INTEGER, price DECIMAL(6,2), "
        "stock INTEGER, PRIMARY KEY (shop, code))"
    )
    cursor = connection.cursor()
    cursor.executemany(
        LINE,
        [
            (
                a,
                b,
                n,
                Decimal(100 * a + 10 * b + n) / 4,
                (None, 1, 2)[n % 3],
                "xy"[n % 2],
            )
            for a in (1, 2)
            for b in range(30)
            for n in range(1, 6)
        ],
    )
    cursor.executemany(
        ITEM,
        [
            (shop, code, Decimal(code * shop), (1, 2, 5, None)[code % 4])
            for shop in (1, 2)
            for code in (1, 2, 4, 5)
        ],
    )
    connection.commit()
    connection.checkpoint()
    return connection


def ask(connection, sql, parameters=(1, 3, 14)):
    return connection.execute(sql, parameters).fetchall()


def by_the_engine(connection, sql, parameters=(1, 3, 14)):
    """The same with a condition that makes it the engine's business."""
    return ask(connection, sql.replace("WHERE", "WHERE 1 = 1 AND"), parameters)


@pytest.mark.parametrize("sql", QUERIES)
def test_memory_answers_what_was_asked_before(statements, connection, sql):
    expected = by_the_engine(connection, sql)
    for _ in range(4):
        assert ask(connection, sql) == expected
    assert statements(connection, lambda: ask(connection, sql)) == 0


@pytest.mark.parametrize(
    "parameters", [(1, 14, 3), (1, 100, 120), (3, 3, 14), (1, 2.5, 14), (1, "3", 14)]
)
@pytest.mark.parametrize("sql", QUERIES)
def test_values_of_any_kind(connection, sql, parameters):
    """P8: values that are in no range, and values that the engine must compare."""
    ask(connection, sql)
    try:
        expected = by_the_engine(connection, sql, parameters)
    except tique.Error as error:
        connection.rollback()
        with pytest.raises(type(error)):
            ask(connection, sql, parameters)
    else:
        assert ask(connection, sql, parameters) == expected
    connection.rollback()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_in_every_snapshot(connection, engine, seed):
    """P1, P7, P8: with own versions, others' versions, and rows that folds move."""
    chance = random.Random(seed)
    snapshots = []

    def compare(reader):
        for sql in QUERIES:
            assert ask(reader, sql) == by_the_engine(reader, sql)

    def change():
        b, n = chance.randrange(2, 16), chance.randrange(1, 7)
        price = Decimal(chance.randrange(100))
        stock = chance.choice([None, 0, 2, 9])
        if chance.random() < 0.5:
            where, key, insert = "a = 1 AND b = %s AND n = %s", (b, n), LINE
            table, values = "line", (1, b, n, price, stock, "x")
        else:
            where, key, insert = (
                "shop = %s AND code = %s",
                (chance.choice([1, 2]), n),
                ITEM,
            )
            table, values = "item", (*key, price, stock)
        if not ask(connection, f"SELECT 1 FROM {table} WHERE {where}", key):
            connection.execute(insert, values)
        elif chance.random() < 0.3:
            connection.execute(f"DELETE FROM {table} WHERE {where}", key)
        else:
            columns = (
                "amount = %s, rest = %s"
                if table == "line"
                else "price = %s, stock = %s"
            )
            connection.execute(
                f"UPDATE {table} SET {columns} WHERE {where}", (price, stock, *key)
            )

    compare(connection)
    for _ in range(12):
        for _ in range(chance.randrange(1, 5)):
            change()
        compare(connection)
        connection.rollback() if chance.random() < 0.2 else connection.commit()
        if chance.random() < 0.4:
            snapshots.append(engine.connect())
            ask(snapshots[-1], QUERIES[0])
        if chance.random() < 0.3 and snapshots:
            snapshots.pop(chance.randrange(len(snapshots))).close()
        if chance.random() < 0.4:
            connection.checkpoint()
        for reader in snapshots:
            compare(reader)


def test_what_is_too_much_is_for_the_engine(statements, connection):
    """So many groups, or rows of the other table, and none of them is read."""
    connection.execute(f"INSERT INTO item SELECT 3, number, 1, 1 FROM {numbers(3000)}")
    connection.execute(
        f"INSERT INTO line SELECT 3, 1, number, 1, 1, 'x' FROM {numbers(1500)}"
    )
    connection.commit()
    connection.checkpoint()
    many = f"SELECT COUNT(*) {BELONGING}"
    groups = "SELECT COUNT(*) FROM line WHERE a = %s AND b >= %s AND b < %s"
    for _ in range(4):
        assert ask(connection, many, (3, 1, 2)) == [(1500,)]
        assert ask(connection, groups, (1, 0, 100)) == [(150,)]
    assert statements(connection, lambda: ask(connection, many, (3, 1, 2))) > 0
    assert statements(connection, lambda: ask(connection, groups, (1, 0, 100))) > 0


def test_ranges_without_an_end(engine):
    """Of numbers that a range in Python cannot have."""
    connection = engine.connect()
    connection.execute(
        "CREATE TABLE wide (a BIGINT, b BIGINT, n INTEGER, PRIMARY KEY (a, b, n))"
    )
    connection.execute("INSERT INTO wide VALUES (1, 2, 3), (1, 5, 4), (2, 2, 5)")
    connection.commit()
    for sql, expected in (
        ("SELECT COUNT(*) FROM wide WHERE a = 1", 2),
        ("SELECT COUNT(*) FROM wide WHERE a = 1 AND b > 2", 1),
        ("SELECT COUNT(*) FROM wide WHERE a = 1 AND b < 5 AND n > 1", 1),
        ("SELECT COUNT(*) FROM wide WHERE a = 1 AND b > 5 AND b < 2", 0),
    ):
        for _ in range(3):
            assert ask(connection, sql, ()) == [(expected,)]


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("TIMESTAMPTZ", "2026-01-02 03:04:05+00"),
        ("JSONB", '{"a": [1]}'),
        ("UUID", "0" * 31 + "7"),
    ],
)
@pytest.mark.written_for(["postgresql"], reason="types of its own, kept as texts")
def test_values_of_the_other_table_are_shown(connection, type_name, value):
    """P8: as the engine gives them, however the driver keeps them."""
    connection.execute(f"CREATE TABLE detail (code INTEGER PRIMARY KEY, v {type_name})")
    connection.execute(
        f"INSERT INTO detail VALUES (1, CAST('{value}' AS {type_name})), (2, NULL)"
    )
    connection.commit()
    sql = (
        "SELECT n, v FROM line, detail WHERE a = %s AND b >= %s AND b < %s "
        "AND code = n ORDER BY n"
    )
    expected = by_the_engine(connection, sql)
    assert type(expected[0][1]) is not str
    for _ in range(5):
        assert sorted(map(repr, ask(connection, sql))) == sorted(map(repr, expected))
    connection.checkpoint()
    assert sorted(map(repr, ask(connection, sql))) == sorted(map(repr, expected))


def test_a_bulk_change_of_the_other_table(connection):
    """P1: its versions are in the cache table only."""
    sql = QUERIES[6]
    for _ in range(4):
        before = ask(connection, sql)
    connection.execute(f"INSERT INTO item SELECT 9, number, 1, 1 FROM {numbers(3000)}")
    connection.execute("UPDATE item SET price = price + 1")
    assert ask(connection, sql) == [(b, n, price + 1, s) for b, n, price, s in before]
    connection.commit()
    assert ask(connection, sql) == by_the_engine(connection, sql) != before
    connection.checkpoint()
    assert ask(connection, sql) == by_the_engine(connection, sql) != before


LAST_KEYS = {
    "UUID": "CAST('00000000-0000-0000-0000-00000000000{}' AS UUID)",
    "<huge>": "{}",
    "DECIMAL(20,0)": "{}",
    "DOUBLE PRECISION": "{}.5",
    "TIMESTAMP": "TIMESTAMP '2024-01-0{} 00:00:00'",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP WITH TIME ZONE '2024-01-0{} 00:00:00+00:00'",
    "TIME": "TIME '00:00:0{}'",
    "DATE": "DATE '2024-01-0{}'",
    "VARCHAR(10)": "'{}'",
    "<binary>": "CAST('0{}' AS <binary>)",
}


@pytest.mark.parametrize("type_name", LAST_KEYS)
def test_a_key_of_two_columns(engine, type_name):
    """P7: a row that is deleted beside new keys with its first column stays away.

    The new keys let the driver read which keys follow them, from storage as columns.
    """
    value = LAST_KEYS[type_name].replace("<binary>", engine.binary)
    type_name = type_name.replace("<huge>", engine.huge).replace(
        "<binary>", engine.binary
    )
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        f"CREATE TABLE t (a INTEGER, b {type_name}, v INTEGER, PRIMARY KEY (a, b))"
    )
    rows = ", ".join(f"({n}, {value.format(n)}, {n})" for n in range(1, 5))
    connection.execute(f"INSERT INTO t VALUES {rows}")
    connection.commit()
    connection.checkpoint()
    connection.close()
    # Nothing of storage is in memory.
    engine.let_go()
    connection = engine.connect(checkpoint="manual")
    connection.execute("DELETE FROM t WHERE v >= 3")
    for b in range(5, 9):
        connection.execute(f"INSERT INTO t VALUES (3, {value.format(b)}, {b})")
    expected = [(1, 1), (2, 2), *((3, b) for b in range(5, 9))]
    for _ in range(2):
        found = connection.execute("SELECT a, v FROM t ORDER BY v").fetchall()
        assert found == expected
        connection.commit()
        connection.checkpoint()
