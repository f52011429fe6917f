"""P1, P3: columns with the same values in another order, which MonetDB takes for one another.

``SELECT * FROM (VALUES (1, 2), (2, 1)) AS v`` has the rows (1, 1) and (2, 2) there.
"""

from __future__ import annotations

from itertools import product

import pytest

import tique

pytestmark = pytest.mark.monetdb

KINDS = {
    "number": ("TINYINT", "INTEGER", "BIGINT", "DECIMAL(18,0)", "DECIMAL(9,2)"),
    "text": ("VARCHAR(20)", "CHAR(3)", "CLOB"),
    "time": ("TIMESTAMP", "TIMESTAMP(3)"),
    "day": ("DATE",),
    "zone": ("TIMESTAMP WITH TIME ZONE",),
    "float": ("REAL", "DOUBLE"),
    "uuid": ("UUID",),
}
VALUES = {
    "number": ("5", "6"),
    "text": ("'x'", "'é'"),
    "time": ("TIMESTAMP '2020-01-05 00:00:00'", "TIMESTAMP '2020-01-06 00:00:00'"),
    "day": ("DATE '2020-01-05'", "DATE '2020-01-06'"),
    "zone": ("'2020-01-05 00:00:00+00:00'", "'2020-01-05 00:00:00+01:00'"),
    "float": ("0.5", "5e10"),
    "uuid": (
        "'00000000-0000-0000-0000-00000000000a'",
        "'00000000-0000-0000-0000-00000000000b'",
    ),
}
PAIRS = [
    (kind, *pair) for kind, types in KINDS.items() for pair in product(types, repeat=2)
]


@pytest.mark.parametrize("second", ["other", "NULL"])
def test_recent_rows(home, second):
    """Every pair of types, in one table for the pairs of a kind."""
    with tique.connect(home.url, checkpoint="manual") as connection:
        for number, (kind, one, other) in enumerate(PAIRS):
            table = f"t{number}"
            connection.execute(
                f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, a {one}, b {other})"
            )
            x, y = VALUES[kind]
            z = "NULL" if second == "NULL" else y
            rows = [(1, x, z), (2, z, x)]
            expected = []
            for row in rows:
                connection.execute(
                    f"INSERT INTO {table} VALUES ({', '.join(map(str, row))})"
                )
            for id, a, b in rows:
                query = f"SELECT {id}, CAST({a} AS {one}), CAST({b} AS {other})"
                expected += connection.execute(query).fetchall()
            for _ in range(2):
                query = f"SELECT * FROM {table} ORDER BY id"
                found = connection.execute(query).fetchall()
                assert found == expected, (one, other)
                assert [list(map(type, row)) for row in found] == [
                    list(map(type, row)) for row in expected
                ], (one, other)
                connection.commit()


@pytest.mark.parametrize(
    ("one", "other", "value"),
    [
        ("INTEGER", "DECIMAL(9,2)", "1.5"),
        ("DECIMAL(9,2)", "INTEGER", "7"),
        ("DECIMAL(9,1)", "DECIMAL(9,2)", "1.25"),
        ("BIGINT", "INTERVAL SECOND", "INTERVAL '90' SECOND"),
        ("INTERVAL DAY", "DECIMAL(18,3)", "-0.125"),
        ("VARCHAR(3)", "CLOB", "'a long text'"),
    ],
)
@pytest.mark.parametrize("further", [0, 1, 30])
def test_a_row_with_nulls_leaves_the_types(home, one, other, value, further):
    """P1: ``VALUES (NULL, NULL)`` has the first one's type twice there."""
    with tique.connect(home.url, checkpoint="manual") as connection:
        connection.execute(
            f"CREATE TABLE t (id INTEGER PRIMARY KEY, a {one}, b {other}, s SMALLINT)"
        )
        # (As id and s are alike, each row stands by itself.)
        connection.execute("INSERT INTO t (id, s) VALUES (0, 0)")
        query = "SELECT a, b FROM t WHERE s <> 1 ORDER BY id"
        empty = connection.execute(query)
        for id in range(2, 2 + further):
            connection.execute(f"INSERT INTO t (id, s, b) VALUES ({id}, {id}, {value})")
        connection.execute(f"INSERT INTO t (id, s, b) VALUES (99, 99, {value})")
        found = connection.execute(query)
        assert found.description == empty.description
        native = connection.execute(f"SELECT CAST({value} AS {other})")
        assert found.description[1].type_code == native.description[0].type_code
        (expected,) = native.fetchone()
        assert found.fetchall() == [(None, None)] + [(None, expected)] * (further + 1)
        assert empty.fetchall() == [(None, None)]


@pytest.mark.parametrize("certifier", ["memory", "query"])
@pytest.mark.parametrize(
    ("one", "other"),
    [("INTEGER", "INTEGER"), ("VARCHAR(9)", "CLOB"), ("BIGINT", "DECIMAL(18,0)")],
)
def test_a_lost_update_of_a_composite_key(home, certifier, one, other):
    with (
        tique.connect(home.url, certifier=certifier) as winner,
        tique.connect(home.url, certifier=certifier) as loser,
    ):
        winner.execute(
            f"CREATE TABLE t (x {one}, y {other}, n INTEGER, PRIMARY KEY (x, y))"
        )
        winner.execute(
            "INSERT INTO t VALUES ('1', '2', 0), ('2', '1', 0), ('5', '6', 0)"
        )
        winner.commit()
        for connection in (winner, loser):
            assert connection.execute("SELECT sum(n) FROM t").fetchone() == (0,)
        winner.execute("UPDATE t SET n = 7 WHERE x = '2' AND y = '1'")
        winner.commit()
        loser.execute("UPDATE t SET n = n + 1 WHERE x < '4'")
        with pytest.raises(tique.SerializationError):
            loser.commit()
        assert winner.execute("SELECT sum(n) FROM t").fetchone() == (7,)


@pytest.mark.parametrize("kind", ["DOUBLE", "REAL", "DECIMAL(9,2)", "TINYINT", "DATE"])
def test_keys_of_one_column(home, kind):
    """P3: their values are bound later, where many are certified by a query."""
    with tique.connect(home.url, certifier="query") as connection:
        connection.execute(f"CREATE TABLE t (x {kind} PRIMARY KEY, n INTEGER)")
        value = "DATE '2020-01-0{}'" if kind == "DATE" else "{}"
        rows = ", ".join(f"({value.format(n)}, 0)" for n in (1, 2, 3))
        connection.execute(f"INSERT INTO t VALUES {rows}")
        connection.commit()
        connection.execute("UPDATE t SET n = n + 1")
        connection.commit()
        assert connection.execute("SELECT sum(n) FROM t").fetchone() == (3,)
