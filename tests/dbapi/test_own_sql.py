"""What MonetDB writes in its own way: draws, samples, plans, functions of bits (P1, P8, P10)."""

from __future__ import annotations

import pytest

import tique

pytestmark = [
    pytest.mark.fresh_tables,
    pytest.mark.written_for(["monetdb"], reason="its SQL"),
]


@pytest.fixture
def connection(engine):
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER)")
    connection.execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4)")
    connection.commit()
    return connection


def rows(connection, query="SELECT id, a FROM t ORDER BY id"):
    return connection.execute(query).fetchall()


@pytest.mark.parametrize("name", ["q1", "sys.q2", '"Q 3"', 'sys."Q 4"'])
def test_a_sequence_is_drawn_from_in_any_statement(connection, name):
    """P8: once for each row, as by next_value_for()."""
    connection.execute(f"CREATE SEQUENCE {name} AS INTEGER START WITH 5")
    assert rows(connection, f"SELECT NEXT VALUE FOR {name}") == [(5,)]
    connection.execute(
        f"INSERT INTO t VALUES (NEXT VALUE FOR {name}, 0), (next value for {name}, 1)"
    )
    connection.execute(f"INSERT INTO t SELECT NEXT VALUE FOR {name}, 2")
    connection.execute(f"UPDATE t SET a = NEXT VALUE FOR {name} + 10 WHERE id < 3")
    connection.commit()
    found = rows(connection)
    assert found[2:] == [(3, 3), (4, 4), (6, 0), (7, 1), (8, 2)]
    assert sorted(a for _, a in found[:2]) == [19, 20]


@pytest.mark.parametrize("folded", [False, True])
def test_a_sample_is_of_the_snapshot(connection, folded):
    """P1: own writes and recent versions may be in it, deleted rows are not."""
    if folded:
        connection.checkpoint()
    connection.execute("DELETE FROM t WHERE id < 3")
    connection.execute("UPDATE t SET a = 9 WHERE id = 3")
    assert sorted(rows(connection, "SELECT id, a FROM t SAMPLE 10")) == [(3, 9), (4, 4)]
    assert len(rows(connection, "SELECT id FROM t WHERE id > 0 SAMPLE 1")) == 1
    connection.commit()
    query = "SELECT count(*) FROM (SELECT id FROM t SAMPLE 1) AS s"
    assert rows(connection, query) == [(1,)]


def test_queries_before_a_change(connection):
    """P1, P8."""
    connection.execute(
        "WITH x AS (SELECT max(id) AS n FROM t) "
        "UPDATE t SET a = (SELECT n FROM x) + 1 WHERE id IN (SELECT n FROM x)"
    )
    connection.execute(
        "WITH x (n) AS (SELECT id FROM t), y AS (SELECT n FROM x WHERE n < 3) "
        "DELETE FROM t WHERE id IN (SELECT n FROM y)"
    )
    assert rows(connection) == [(3, 3), (4, 5)]
    with pytest.raises(tique.NotSupportedError):
        connection.execute(
            "WITH x AS (DELETE FROM t RETURNING id) DELETE FROM t WHERE id = 1"
        )


def test_functions_of_bits(connection):
    query = "SELECT bit_and(id, 2), bit_or(a, 8), bit_xor(id, 1) FROM t WHERE id = 3"
    assert rows(connection, query) == [(2, 11, 2)]


def test_a_plan_is_of_the_snapshots_query(connection):
    found = dict(rows(connection, "PLAN SELECT a FROM t WHERE a > 2"))
    assert found["rewritten statement"].startswith("SELECT a FROM ")
    assert found["plan"]


def test_the_servers_environment(connection):
    query = "SELECT count(*) FROM sys.env() WHERE name = 'monet_release'"
    assert rows(connection, query) == rows(
        connection, query.replace("env()", "environment")
    )
