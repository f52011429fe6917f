"""Rows come as they were written, where nothing sorts and a table was only appended to.

DuckDB promises that (its setting ``preserve_insertion_order``), and programs rely on it
(P12).
"""

from __future__ import annotations

import random

import pytest

pytestmark = [
    pytest.mark.written_for(["duckdb"], reason="no other engine promises an order"),
    pytest.mark.fresh_tables,
]

KEYS = random.Random(7).sample(range(100_000), 3000)  # neither rising nor falling


def values(keys, first=0):
    return ", ".join(f"({key}, {first + n})" for n, key in enumerate(keys))


def many(connection, keys):
    rows = [(key, n) for n, key in enumerate(keys)]
    connection.cursor().executemany("INSERT INTO t VALUES (%s, %s)", rows)


def by_one_statement(connection, keys):
    connection.execute(f"INSERT INTO t VALUES {values(keys)}")


def by_two_statements(connection, keys):
    connection.execute(f"INSERT INTO t VALUES {values(keys[:2500])}")
    connection.execute(f"INSERT INTO t VALUES {values(keys[2500:], 2500)}")


def a_few_and_then_many(connection, keys):
    connection.execute(f"INSERT INTO t VALUES {values(keys[:10])}")
    connection.execute(f"INSERT INTO t VALUES {values(keys[10:], 10)}")


def by_a_query(connection, keys):
    source = f"(VALUES {values(keys)}) AS v(id, n)"
    connection.execute(f"INSERT INTO t SELECT id, n FROM {source}")


def in_two_commits(connection, keys):
    connection.execute(f"INSERT INTO t VALUES {values(keys[:2500])}")
    connection.commit()
    by_one_statement(connection, keys[2500:] + [-key for key in keys[:2500] if key])


def one_by_one(connection, keys):
    for n, key in enumerate(keys[:200]):
        connection.execute("INSERT INTO t VALUES (%s, %s)", (key, n))


def in_small_commits(connection, keys):
    for n, key in enumerate(keys[:100]):
        connection.execute("INSERT INTO t VALUES (%s, %s)", (key, n))
        connection.commit()


WAYS = [
    many,
    by_one_statement,
    by_two_statements,
    a_few_and_then_many,
    by_a_query,
    in_two_commits,
    one_by_one,
    in_small_commits,
]
TABLES = ["id INTEGER PRIMARY KEY, n INTEGER", "id INTEGER, n INTEGER"]


def natively(engine, layout, write):
    connection = engine.native()

    class Cursor:
        def executemany(self, sql, rows):
            connection.executemany(sql.replace("%s", "?"), rows)

    class Connection:
        def execute(self, sql, parameters=()):
            return connection.execute(sql.replace("%s", "?"), parameters)

        def cursor(self):
            return Cursor()

        def commit(self):
            pass

    connection.execute(f"CREATE TABLE t ({layout})")
    write(Connection(), KEYS)
    rows = connection.execute("SELECT id FROM t").fetchall()
    connection.execute("DROP TABLE t")
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("layout", TABLES, ids=["key", "no key"])
@pytest.mark.parametrize("write", WAYS)
def test_rows_come_as_they_were_written(engine, layout, write):
    expected = natively(engine, layout, write)
    connection = engine.connect(checkpoint="manual")
    connection.execute(f"CREATE TABLE t ({layout})")
    connection.commit()

    def check(reader=connection):
        assert reader.execute("SELECT id FROM t").fetchall() == expected
        first = "SELECT id FROM t WHERE n >= 0 LIMIT 5"
        assert reader.execute(first).fetchall() == expected[:5]
        assert [row[:1] for row in reader.execute("FROM t LIMIT 5")] == expected[:5]

    write(connection, KEYS)
    check()
    connection.commit()
    check()
    check(engine.connect(checkpoint="manual"))
    connection.commit()
    connection.checkpoint()
    check()


@pytest.mark.slow
@pytest.mark.parametrize("layout", TABLES, ids=["key", "no key"])
def test_recent_rows_come_after_stored_ones(engine, layout):
    """Storage is large enough for several threads."""
    connection = engine.connect(checkpoint="manual")
    connection.execute(f"CREATE TABLE t ({layout})")
    connection.execute(
        "INSERT INTO t SELECT (i * 7919) % 400009 + 1000000, i FROM range(300000) AS r(i)"
    )
    connection.commit()
    connection.checkpoint()
    by_one_statement(connection, KEYS)
    expected = [((i * 7919) % 400009 + 1000000,) for i in range(300000)]
    expected += [(key,) for key in KEYS]
    for _ in range(3):
        assert connection.execute("SELECT id FROM t").fetchall() == expected
        connection.commit()
    connection.checkpoint()
    assert connection.execute("SELECT id FROM t").fetchall() == expected


@pytest.mark.slow
@pytest.mark.parametrize("layout", TABLES, ids=["key", "no key"])
def test_an_own_copy_of_a_wide_query_is_in_order(engine, layout):
    """A wide query reads recent rows in storage, in an uncommitted fold."""
    connection = engine.connect(checkpoint="manual", uncommitted_fold_rows=1)
    connection.execute(f"CREATE TABLE t ({layout})")
    connection.commit()
    by_one_statement(connection, KEYS)
    connection.commit()
    for _ in range(3):
        first = connection.execute("SELECT id FROM t LIMIT 50").fetchall()
        assert first == [(key,) for key in KEYS[:50]]
        connection.commit()


def test_a_table_that_is_opened_anew(engine):
    connection = engine.connect()
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    many(connection, KEYS)
    connection.commit()
    engine.close()
    engine.let_go()
    connection = engine.connect()
    expected = [(key,) for key in KEYS]
    assert connection.execute("SELECT id FROM t").fetchall() == expected


@pytest.mark.slow
def test_new_rows_beside_changed_ones_are_seen_once(engine):
    """P1: rows that only look appended. Each of these has its key in two versions."""
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    by_one_statement(connection, KEYS)
    connection.commit()
    gone = tuple(KEYS[:2100])
    connection.execute(f"DELETE FROM t WHERE id IN {gone}")
    by_one_statement(connection, KEYS[:2100])

    def content():
        return sorted(connection.execute("SELECT id FROM t").fetchall())

    assert content() == sorted((key,) for key in KEYS)
    connection.execute("UPDATE t SET n = n + 1")
    assert content() == sorted((key,) for key in KEYS)
    connection.commit()
    connection.execute(f"INSERT INTO t VALUES {values(range(200_000, 203_000))}")
    everything = sorted(
        [(key,) for key in KEYS] + [(k,) for k in range(200_000, 203_000)]
    )
    assert content() == everything
    connection.execute("SAVEPOINT s")
    connection.execute("DELETE FROM t WHERE id >= 200000")
    assert content() == sorted((key,) for key in KEYS)
    connection.execute("ROLLBACK TO s")
    assert content() == everything
    connection.commit()
    assert content() == everything
    connection.checkpoint()
    assert content() == everything
