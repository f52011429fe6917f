"""Values of PostgreSQL's own types: kept as they are, and compared as it compares them."""

from __future__ import annotations

import pytest

import tique

pytestmark = pytest.mark.written_for(["postgresql"], reason="the types are its own")

VALUES = {
    "NUMERIC": ["1.500", "NaN", "-0.00000000000000000001", "9" * 60 + ".5"],
    "NUMERIC(5,2)": ["1.5", "NaN", "-999.99"],
    "REAL": ["0.1", "NaN", "-Infinity", "-0"],
    "DOUBLE PRECISION": ["0.1", "NaN", "Infinity", "-0", "5e-324"],
    "DATE": ["infinity", "-infinity", "0044-03-15 BC", "9999-12-31", "12345-01-01"],
    "TIMESTAMP": ["infinity", "0044-03-15 12:00:00 BC", "2024-02-29 23:59:59.999999"],
    "TIMESTAMP(0)": ["2024-02-29 23:59:59.6", "-infinity"],
    "TIMESTAMPTZ": [
        "infinity",
        "0044-03-15 12:00:00+00 BC",
        "2024-02-29 12:00:00.1+02",
    ],
    "TIME": ["00:00:00", "24:00:00", "12:34:56.789"],
    "TIMETZ": ["12:00:00+02", "24:00:00-03"],
    "INTERVAL": ["1 month 30 days -5 seconds", "1 day", "24 hours", "-1 year"],
    "INTEGER[]": ["{1,NULL,3}", "{}", "{{1,2},{3,4}}", "[0:1]={7,8}"],
    "TEXT[]": ['{"a,b","it\'s","",NULL,"NULL"}', "{}"],
    "JSONB": ['{"a": [1.50, null]}', "null", '"\\u00e9"', "1e400"],
    "JSON": ['{"b" : 1, "b" : 2}', "null"],
    "INT4RANGE": ["[1,4]", "empty", "(,3)"],
    "TSTZRANGE": ["[2024-01-01 00:00+00,infinity)"],
    "INET": ["10.0.0.1/8", "::1"],
    "MACADDR": ["08:00:2b:01:02:03"],
    "BYTEA": ["\\x", "\\x00ff5c27"],
    "CHAR(4)": ["x", "", "é\U0001f600"],
    "VARCHAR(3)": ["abc", "", " a "],
    "BIT(3)": ["101"],
    "BIT VARYING": ["", "10101"],
    "POINT": ["(1,2.5)"],
    "TSVECTOR": ["'a':1 'b':2A"],
    "UUID": ["00000000-0000-0000-0000-000000000000"],
}
CONTENT = "SELECT n, CAST(x AS TEXT) FROM t ORDER BY n"


@pytest.mark.parametrize("type_name", VALUES)
def test_a_value_is_kept(engine, type_name):
    """P8, P10: in the buffer, the cache, storage and the bare engine, to the last digit."""
    native = engine.native()
    literals = [engine.literal(value) for value in VALUES[type_name]]
    expected = [
        (
            number,
            native.execute(f"SELECT CAST({text}::{type_name} AS TEXT)").fetchone()[0],
        )
        for number, text in enumerate(literals)
    ]
    connection = engine.connect(checkpoint="manual")
    connection.execute(f"CREATE TABLE t (n INTEGER PRIMARY KEY, x {type_name})")

    def check():
        assert connection.execute(CONTENT).fetchall() == expected
        for number, text in expected:
            query = "SELECT CAST(x AS TEXT) FROM t WHERE n = %s"
            assert connection.execute(query, (number,)).fetchall() == [(text,)]

    for number, text in enumerate(literals):
        connection.execute(f"INSERT INTO t VALUES ({number}, {text})")
    check()
    connection.commit()
    check()
    for number in range(len(literals)):
        connection.execute("UPDATE t SET n = n + 50 WHERE n = %s", (number,))
    connection.execute("UPDATE t SET n = n - 50")
    check()
    connection.commit()
    connection.checkpoint()
    check()
    for number, text in enumerate(literals):
        connection.execute("UPDATE t SET x = NULL WHERE n = %s", (number,))
        connection.execute(f"UPDATE t SET x = {text} WHERE n = {number}")
    check()
    connection.commit()
    connection.checkpoint()
    connection.close()
    assert engine.native().execute(CONTENT).fetchall() == expected


EQUAL = [
    ("NUMERIC", "1.5", "1.500"),
    ("NUMERIC", "NaN", "nan"),
    ("REAL", "0", "-0"),
    ("DOUBLE PRECISION", "0", "-0"),
    ("CHAR(4)", "x", "x  "),
    ("TIMESTAMPTZ", "2024-01-01 12:00+00", "2024-01-01 14:00+02"),
    ("TIMESTAMP", "infinity", "infinity"),
    ("INTERVAL", "1 month", "30 days"),
    ("JSONB", '{"a": 1, "b": 2}', '{"b": 2.0, "a": 1}'),
    ("INTEGER[]", "{1,2}", "[1:2]={1,2}"),
    ("NUMERIC[]", "{1.5}", "{1.50}"),
    ("INT4RANGE", "[1,5)", "[1,4]"),
    ("NUMRANGE", "[1.5,5)", "[1.50,5.0)"),
    ("INET", "10.0.0.1", "10.0.0.1/32"),
    ("BYTEA", "\\x41", "A"),
    ("BIT VARYING", "101", "101"),
]


@pytest.mark.parametrize(("type_name", "one", "other"), EQUAL)
def test_equal_values_are_one_key(engine, type_name, one, other):
    """P3, P9: however they are written; for concurrent transactions too."""
    connection = engine.connect(checkpoint="manual")
    connection.execute(f"CREATE TABLE t (x {type_name} PRIMARY KEY, n INTEGER)")
    insert = "INSERT INTO t VALUES ({}, {})".format
    one, other = engine.literal(one), engine.literal(other)
    rival = engine.connect()
    connection.execute(insert(one, 1))
    rival.execute(insert(other, 2))
    connection.commit()
    with pytest.raises(tique.SerializationError):
        rival.commit()
    for _ in range(2):
        with pytest.raises(tique.IntegrityError):
            connection.execute(insert(other, 2))
        found = connection.execute(f"SELECT n FROM t WHERE x = {other}").fetchall()
        assert found == [(1,)]
        connection.commit()
        connection.checkpoint()
    connection.execute(f"UPDATE t SET n = 5 WHERE x = {other}")
    rival.execute(f"DELETE FROM t WHERE x = {one}")
    connection.commit()
    with pytest.raises(tique.SerializationError):
        rival.commit()


@pytest.mark.parametrize("type_name", ["NUMERIC(9, 2)", "NUMERIC"])
def test_a_condition_on_nan_is_the_engines(engine, type_name):
    """P9: it is greater than every number there, and than none in Python."""
    with engine.connect(autocommit=True, checkpoint="manual") as connection:
        connection.execute(
            f"CREATE TABLE t (id INTEGER PRIMARY KEY, x {type_name}, n INTEGER)"
        )
        connection.execute("INSERT INTO t VALUES (1, 'NaN', 0)")
        for _ in range(2):
            for condition, count in (("x > 5", 1), ("x < 5", 0), ("x <> 5", 1)):
                sql = f"UPDATE t SET n = 1 WHERE id = 1 AND {condition}"
                assert connection.execute(sql).rowcount == count
            connection.checkpoint()
