"""P1, P7: rows that are equal and not the same, such as those with 1.5 and with 1.50.

In a table without a key a deleted row goes, and not another that is equal to it. In a
table with one the last row of a key counts, to the last digit.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import duckdb
import pytest

import tique

pytestmark = [
    pytest.mark.fresh_tables,
    pytest.mark.every_engine,
    pytest.mark.written_for(
        ["duckdb", "postgresql"], reason="MonetDB makes one of 0 and -0 at times"
    ),
]

KINDS = {
    "postgresql": {
        "NUMERIC": ("7", "1.5", "1.50", "1.500"),
        "INTERVAL": ("1 day", "30 days", "720:00:00", "1 mon"),
        "DOUBLE PRECISION": ("NaN", "0", "-0"),
        "REAL": ("NaN", "0", "-0"),
        "JSONB": ("{}", '{"a": 1.0}', '{"a": 1.00}'),
        "BPCHAR": ("b", "a", "a "),
        "CITEXT": ("b", "A", "a"),
        "NUMERIC[]": ("{}", "{1.5,NULL}", "{1.50,NULL}"),
        "INTERVAL[]": ("{}", '{"1 mon"}', '{"30 days"}'),
        "NUMRANGE": ("empty", "[1.5,2)", "[1.50,2)"),
        "exact_pair": ("(7,x)", "(1.5,)", "(1.50,)"),
        "amount": ("7", "1.5", "1.50"),
    },
    "duckdb": {
        "DOUBLE": ("nan", "0.0", "-0.0"),
        "REAL": ("nan", "0.0", "-0.0"),
        "INTERVAL": ("1 day", "30 days", "720:00:00", "1 month"),
        "DOUBLE[]": ("[]", "[0.0, NULL]", "[-0.0, NULL]"),
        "STRUCT(a INTERVAL, b VARCHAR)": (
            "{'a': NULL, 'b': NULL}",
            "{'a': 1 month, 'b': x}",
            "{'a': 30 days, 'b': x}",
        ),
    },
}
"""By type the text of a value, and the texts of some that are equal to each other."""

KEEPS_ZEROS = duckdb.__version__ >= "2"
"""In DuckDB 1.5 a CHECKPOINT makes one of 0.0 and -0.0."""

if not KEEPS_ZEROS:
    for kind in ("DOUBLE", "REAL", "DOUBLE[]"):
        del KINDS["duckdb"][kind]

TEXT = {
    "postgresql": "concat({})",
    "duckdb": "CAST({} AS VARCHAR)",
}
"""The text of a value, to the last digit."""

SETUP = {
    "postgresql": (
        "CREATE EXTENSION IF NOT EXISTS citext",
        "CREATE TYPE exact_pair AS (a NUMERIC, b TEXT)",
        "CREATE DOMAIN amount AS NUMERIC",
    ),
}


def value(text, kind):
    literal = text.replace("'", "''")
    return f"CAST('{literal}' AS {kind})"


def rows_of(connection, engine, table):
    text = TEXT[engine.name].format("v")
    query = f"SELECT n, {text} FROM {table} WHERE n < 9"
    return Counter(connection.execute(query).fetchall())


@pytest.fixture(params=["folded", "recent"])
def filled(request, engine):
    """A connection; and for each type its table, with two rows of each value."""
    native = engine.native()
    for statement in SETUP.get(engine.name, ()):
        native.execute(statement)
    connection = engine.connect(checkpoint="manual", retention=0.0)
    tables = {}
    for number, (kind, (other, *texts)) in enumerate(KINDS[engine.name].items()):
        table = f"b{number}"
        connection.execute(f"CREATE TABLE {table} (n INTEGER, v {kind})")
        # DuckDB keeps one value of a column in which all are equal.
        connection.execute(f"INSERT INTO {table} VALUES (9, {value(other, kind)})")
        for text in texts * 2:
            connection.execute(f"INSERT INTO {table} VALUES (0, {value(text, kind)})")
        connection.commit()
        tables[table] = kind, texts
    if request.param == "folded":
        connection.checkpoint()
    return connection, tables


@pytest.mark.slow
def test_a_row_goes_and_its_equals_stay(engine, filled):
    connection, tables = filled
    text = TEXT[engine.name].format("v")
    first = {
        table: Counter({(0, t): 2 for t in texts})
        for table, (_, texts) in tables.items()
    }
    now = {table: Counter(rows) for table, rows in first.items()}
    old = engine.connect()

    def read(reader):
        return {table: rows_of(reader, engine, table) for table in tables}

    def delete(table, kind, texts):
        del now[table][0, texts[-1]]
        return f"DELETE FROM {table} WHERE {text} = {engine.literal(texts[-1])}"

    def update(table, kind, texts):
        now[table][1, texts[0]] = now[table].pop((0, texts[0]))
        return f"UPDATE {table} SET n = 1 WHERE {text} = {engine.literal(texts[0])}"

    def insert(table, kind, texts):
        now[table][1, texts[-1]] = 1
        return f"INSERT INTO {table} VALUES (1, {value(texts[-1], kind)})"

    def delete_others(table, kind, texts):
        del now[table][1, texts[0]]
        return (
            f"DELETE FROM {table} WHERE n = 1 AND {text} = {engine.literal(texts[0])}"
        )

    def update_equals(table, kind, texts):
        now[table] = Counter([(2, t) for _, t in now[table].elements()])
        return f"UPDATE {table} SET n = 2 WHERE v = {value(texts[-1], kind)}"

    assert read(old) == read(connection) == first
    for step in (delete, update, insert, delete_others, update_equals):
        for table, (kind, texts) in tables.items():
            connection.execute(step(table, kind, texts))
        assert read(connection) == now
        connection.commit()
        assert read(connection) == now
        connection.rollback()
        connection.checkpoint()
        assert read(connection) == now
        connection.rollback()
        assert read(old) == first
    old.close()
    connection.close()
    connection = engine.connect(checkpoint="manual", retention=0.0)
    assert read(connection) == now
    connection.rollback()
    connection.checkpoint()
    assert read(connection) == now
    connection.close()
    assert read(engine.native()) == now


KEYS = {
    "postgresql": set(KINDS["postgresql"]),
    "duckdb": KINDS["duckdb"].keys() & {"DOUBLE", "REAL"},
}


@pytest.mark.slow
@pytest.mark.parametrize("folds", [True, False], ids=["folded", "recent"])
def test_a_key_changes_to_its_equal(engine, folds):
    """P1, P8, P9: it is the same key, and the row has the new value."""
    for statement in SETUP.get(engine.name, ()):
        engine.native().execute(statement)
    connection = engine.connect(checkpoint="manual", retention=0.0)
    text = TEXT[engine.name].format("v")
    tables = {}
    for number, (kind, (_, *texts)) in enumerate(KINDS[engine.name].items()):
        if kind in KEYS[engine.name]:
            table = f"k{number}"
            tables[table] = texts
            values = [value(each, kind) for each in texts]
            connection.execute(
                f"CREATE TABLE {table} (v {kind} PRIMARY KEY, n INTEGER)"
            )
            connection.execute(f"INSERT INTO {table} VALUES ({values[0]}, 0)")
            connection.commit()
            if folds:
                connection.checkpoint()
            reader = engine.connect()
            for n, (old, new) in enumerate(pairwise(texts), 1):
                row, query = [(n, new)], f"SELECT n, {text} FROM {table}"
                found = f"{query} WHERE v = {value(old, kind)}"
                assert reader.execute(query).fetchall() == [(n - 1, old)]
                for change in (f"v = {value(new, kind)}", f"n = {n}"):
                    connection.execute(
                        f"UPDATE {table} SET {change} WHERE v = {values[0]}"
                    )
                assert connection.execute(query).fetchall() == row
                assert connection.execute(found).fetchall() == row
                connection.commit()
                with pytest.raises(tique.errors.UniqueViolation):
                    connection.execute(f"INSERT INTO {table} VALUES ({values[0]}, 9)")
                connection.rollback()
                assert reader.execute(query).fetchall() == [(n - 1, old)]
                reader.rollback()
                if folds:
                    connection.checkpoint()
                assert connection.execute(query).fetchall() == row
                assert connection.execute(found).fetchall() == row
                connection.rollback()
            reader.close()
    connection.checkpoint()
    connection.close()
    native = engine.native()
    for table, texts in tables.items():
        rows = native.execute(f"SELECT {text}, n FROM {table}").fetchall()
        assert rows == [(texts[-1], len(texts) - 1)], table


@pytest.mark.parametrize("folds", [True, False], ids=["folded", "recent"])
def test_rows_that_are_found_by_an_equal_key(engine, folds):
    """P1: a group of rows, by a part of their key, comes with its own zeros."""
    connection = engine.connect(checkpoint="manual", retention=0.0)
    connection.execute(
        "CREATE TABLE g (a DOUBLE PRECISION, b INTEGER, n INTEGER, PRIMARY KEY (a, b))"
    )
    negative = -0.0 if engine.name != "duckdb" or KEEPS_ZEROS else 0.0
    rows = [(negative, 1, 0), (0.0, 2, 0), (negative, 3, 0), (7.0, 4, 0)]
    for row in rows:
        connection.execute("INSERT INTO g VALUES (%s, %s, %s)", row)
    connection.commit()
    if folds:
        connection.checkpoint()
    query = "SELECT a, b, n FROM g WHERE a = %s ORDER BY b"
    for n in (1, 2, 3):
        for zero in (0.0, -0.0):
            found = connection.execute(query, (zero,)).fetchall()
            assert repr(found) == repr([(a, b, n - 1) for a, b, _ in rows[:3]])
        connection.execute("UPDATE g SET n = %s WHERE a = %s AND b = 1", (n, 0.0))
        connection.execute("UPDATE g SET n = %s WHERE a = %s", (n, 0.0))
        connection.commit()


@pytest.mark.written_for(["postgresql"], reason="it has extensions")
@pytest.mark.parametrize("kind", ["citext", "hstore", "little"])
@pytest.mark.parametrize("key", ["PRIMARY KEY", ""], ids=["key", "no key"])
def test_folds_know_an_extensions_equality(engine, kind, key):
    """P1, P11: operators that are not on the path of tique's own work."""
    native = engine.native()
    for statement in (
        "CREATE SCHEMA kept",
        "CREATE EXTENSION citext SCHEMA kept",
        "CREATE EXTENSION hstore SCHEMA kept",
        "CREATE DOMAIN kept.little AS kept.citext",
    ):
        native.execute(statement)
    values = ('"a"=>"1"', '"a"=>"1"', '"b"=>"2"') if kind == "hstore" else "aAb"
    one, same, two = values
    connection = engine.connect(checkpoint="manual", retention=0.0)
    connection.execute(f"CREATE TABLE t (v kept.{kind} {key}, n INTEGER)")
    connection.execute("INSERT INTO t VALUES (%s, 1), (%s, 2)", (one, two))
    connection.commit()
    connection.checkpoint()
    connection.execute("UPDATE t SET v = %s, n = 3 WHERE n = 1", (same,))
    connection.execute("DELETE FROM t WHERE n = 2")
    connection.commit()
    connection.checkpoint()
    native = engine.native()
    rows = native.execute("SELECT CAST(v AS TEXT), n FROM t").fetchall()
    assert rows == [(same, 3)]
