"""CHECKPOINT, ANALYZE, VACUUM and LOAD as statements: they change no row (P1, P10)."""

from __future__ import annotations

import pytest

import tique

pytestmark = pytest.mark.fresh_tables
DUCKDB = pytest.mark.written_for(["duckdb"], reason="its statements")


@pytest.fixture
def connection(engine):
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER)")
    connection.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    connection.commit()
    return connection


def rows(connection):
    return connection.execute("SELECT id, a FROM t ORDER BY id").fetchall()


@DUCKDB
def test_a_checkpoint_folds(connection):
    """P7: as Connection.checkpoint() does, and own writes stay the transaction's."""
    assert connection.status().tables[0].cached_rows
    connection.execute("UPDATE t SET a = 5 WHERE id = 2")
    connection.execute("CHECKPOINT")
    assert rows(connection) == [(1, 1), (2, 5)]
    connection.rollback()
    connection.execute("FORCE CHECKPOINT")
    assert not connection.status().tables[0].cached_rows
    assert rows(connection) == [(1, 1), (2, 2)]


@DUCKDB
@pytest.mark.parametrize(
    "sql",
    [
        "ANALYZE",
        "ANALYZE t (a)",
        "VACUUM",
        "VACUUM main.t",
        "VACUUM ANALYZE t",
        "LOAD json",
    ],
)
def test_statistics_may_be_gathered_at_any_time(engine, connection, sql):
    """P1: neither a snapshot nor own writes notice."""
    other = engine.connect(checkpoint="manual")
    assert rows(other) == [(1, 1), (2, 2)]
    connection.execute("UPDATE t SET a = a + 1")
    connection.execute(sql)
    assert rows(connection) == [(1, 2), (2, 3)]
    connection.commit()
    connection.execute(sql)
    assert rows(other) == [(1, 1), (2, 2)]
    other.commit()
    assert rows(other) == [(1, 2), (2, 3)]


@DUCKDB
@pytest.mark.parametrize(
    "sql",
    ["LOAD httpfs", "VACUUM tique.log", 'ANALYZE "tique"."main.t"', "CHECKPOINT other"],
)
def test_tiques_own_and_code_of_others_are_refused(connection, sql):
    """P10, P11."""
    with pytest.raises(tique.NotSupportedError):
        connection.execute(sql)


@pytest.mark.written_for(["monetdb"], reason="its statement")
def test_monetdb_analyzes_one_table(connection):
    """P1, P10: a name is a table's; a schema would stand for all of tique's too."""
    connection.execute("UPDATE t SET a = a + 1")
    connection.execute("ANALYZE t")
    connection.execute('ANALYZE sys.t ("a")')
    assert rows(connection) == [(1, 2), (2, 3)]
    connection.commit()
    for sql in ("ANALYZE sys", "ANALYZE tique.log"):
        with pytest.raises(tique.Error):
            connection.execute(sql)
    with pytest.raises(tique.NotSupportedError):
        connection.execute("ANALYZE t MINMAX")
