"""What a replica refuses, before anything is done."""

from __future__ import annotations

from contextlib import closing

import pyarrow
import pytest

import tique
from tests.replica.test_replication import caught_up, rows


def test_every_way_to_write(shared_engine, source, replicate, reading, target):
    """One place refuses all of them, with SQLSTATE 25006."""
    replicate()
    copy, table = reading(), f"{shared_engine.schema}.account"
    more = pyarrow.table({"id": [9], "owner": ["x"], "balance": [1]})
    ways = [
        lambda: copy.execute(f"INSERT INTO {table} VALUES (9, 'x', 1)"),
        lambda: copy.execute(f"UPDATE {table} SET balance = 0"),
        lambda: copy.execute(f"DELETE FROM {table} WHERE id = 1"),
        lambda: copy.execute(f"TRUNCATE TABLE {table}"),
        lambda: copy.execute(
            f"INSERT INTO {table} SELECT id + 50, owner, 1 FROM {table}"
        ),
        lambda: copy.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)"),
        lambda: copy.execute(f"CREATE TABLE t AS SELECT * FROM {table}"),
        lambda: copy.execute(f"DROP TABLE {table}"),
        lambda: copy.execute(f"ALTER TABLE {table} ADD COLUMN c INTEGER"),
        lambda: copy.execute("CREATE SCHEMA s"),
        lambda: copy.execute(f"CREATE VIEW w AS SELECT * FROM {table}"),
        lambda: copy.execute("CREATE SEQUENCE s"),
        lambda: copy.execute(f"SELECT * FROM {table} FOR UPDATE"),
        lambda: copy.cursor().append("account", more, schema=shared_engine.schema),
        lambda: tique.set_history(target, "1 day"),
        lambda: tique.drop_history(target),
        lambda: tique.adopt(target),
        lambda: tique.detach(target),
    ]
    for way in ways:
        with pytest.raises(tique.OperationalError) as raised:
            way()
        assert raised.value.sqlstate == "25006", raised.value
        copy.rollback()
    assert rows(copy, f"SELECT count(*) FROM {table}") == [(2,)]


def test_what_reads_works(shared_engine, source, replicate, reading):
    """A checkpoint is a fold, and a temporary table is the connection's own."""
    replication = replicate()
    source.execute("UPDATE account SET balance = 5 WHERE id = 1")
    caught_up(replication, source)
    copy = reading()
    copy.checkpoint()
    assert replication.status().durable == replication.status().applied


def test_targets(shared_engine, source, replicate, tmp_path):
    """A file with tables stays what it is, and so does a replica of another source."""
    with pytest.raises(tique.NotSupportedError, match="DuckDB file"):
        replicate(target="duckdb://")
    with pytest.raises(tique.NotSupportedError, match="DuckDB file"):
        replicate(target=shared_engine.url)
    with pytest.raises(tique.NotSupportedError, match="one process"):
        replicate(source=f"duckdb:///{tmp_path / 'source.duckdb'}")
    mine = f"duckdb:///{tmp_path / 'mine.duckdb'}"
    with closing(tique.connect(mine)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        connection.commit()
    with pytest.raises(tique.OperationalError, match="has tables") as raised:
        replicate(target=mine)
    assert raised.value.sqlstate == "55000"
    with closing(tique.connect(mine)) as connection:
        assert rows(connection, "SELECT count(*) FROM t") == [(0,)]


def test_two_replications(source, replicate):
    """A replica has one."""
    replicate()
    with pytest.raises(tique.OperationalError, match="already") as raised:
        replicate()
    assert raised.value.sqlstate == "55006"


@pytest.mark.slow
def test_names(shared_engine, source, replicate):
    """Tables that are not there, and those whose names would be the same."""
    with pytest.raises(tique.ProgrammingError, match="nowhere"):
        replicate(tables=["nowhere"])
    source.execute("CREATE SCHEMA more")
    source.execute("CREATE TABLE more.account (id INTEGER PRIMARY KEY)")
    source.commit()
    schemas = {"more": shared_engine.schema}
    with pytest.raises(tique.NotSupportedError, match=r"more\.account"):
        replicate(schemas=schemas)
    replicate(tables=[f"{shared_engine.schema}.account"], schemas=schemas)


@pytest.mark.parametrize(
    "option", [{"epoch": 0}, {"epoch": float("nan")}, {"keep": -1.0}]
)
def test_no_times(source, replicate, option):
    """P8: refused before anything is opened or made."""
    with pytest.raises(tique.InterfaceError, match="no time"):
        replicate(**option)


def test_a_wait_for_something_else(source):
    """P8: nothing is committed."""
    source.execute("UPDATE account SET balance = 0 WHERE id = 1")
    with pytest.raises(tique.InterfaceError, match="wait_for"):
        source.commit(wait_for="standby")
    source.rollback()
    found = source.execute("SELECT balance FROM account WHERE id = 1").fetchall()
    assert found == [(10,)]
