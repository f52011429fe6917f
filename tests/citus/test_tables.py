"""Tables of every kind, and statements on them, on a coordinator with two workers."""

from __future__ import annotations

import random
import re
from contextlib import closing

import psycopg
import pytest

import tique
from tests.citus.conftest import ROWS, one, run
from tique_backends.postgresql.citus.forms import CitusForms
from tique_backends.postgresql.citus.placement import Placement
from tique_rewriter.schema import Column, Table

_PROPAGATION = "options=-ccitus.enable_ddl_propagation%3Doff"


def test_kinds_of_tables(bank, connect):
    connection = connect()
    for table, change, query, expected in (
        ("account", "UPDATE account SET balance = 5 WHERE id = 3", "id = 3", (3, 5)),
        (
            "entry",
            "INSERT INTO entry VALUES (3, 2, 7)",
            "account = 3 AND number = 2",
            (3, 2, 7),
        ),
        (
            "currency",
            "UPDATE currency SET name = 'x' WHERE code = 'CHF'",
            "code = 'CHF'",
            ("CHF", "x"),
        ),
        ("setting", "DELETE FROM setting WHERE name = 'a'", "name = 'a'", None),
    ):
        run(connection, change)
        query = f"SELECT * FROM {table} WHERE {query}"
        assert one(connection, query) == expected
        assert one(connect(), query) == expected
        connection.checkpoint()
        assert one(connection, query) == expected
        assert bank.ask(query) == ([] if expected is None else [expected])


def test_where_versions_are(bank):
    """Beside their rows: each shard's cache is on the node of the shard."""
    kinds = dict(
        bank.ask(
            "SELECT table_name, (SELECT c.citus_table_type || coalesce(c.colocation_id::text, '') "
            "FROM citus_tables AS c WHERE c.table_name = ('tique.tique_cache_' || id)::regclass) "
            "FROM tique.tables"
        )
    )
    for table in ("account", "entry", "currency"):
        ((kind,),) = bank.ask(
            "SELECT citus_table_type || colocation_id::text FROM citus_tables "
            f"WHERE table_name = '{table}'::regclass"
        )
        assert kinds[table] == kind
    assert kinds["setting"] is None


def test_that_the_schema_is_the_coordinators_own(bank):
    for worker in bank.workers:
        assert bank.ask("SELECT to_regclass('tique.log')", worker) == [(None,)]


@pytest.mark.parametrize("seed", range(3))
def test_as_one_server_would_have_it(bank, connect, seed):
    """A random history, large statements in it, beside a plain table with the same."""
    chance = random.Random(seed)
    native = psycopg.connect(bank.url, autocommit=True)
    native.execute("CREATE TABLE model AS SELECT * FROM account")
    with closing(native):
        connection = connect()
        for _ in range(25):
            low, high = sorted(chance.choices(range(1, ROWS + 2000), k=2))
            if chance.random() < 0.5:
                high = low + 3
            statement = chance.choice(
                [
                    "UPDATE {} SET balance = balance + 1 WHERE id BETWEEN {} AND {}",
                    "DELETE FROM {} WHERE id BETWEEN {} AND {} AND id % 3 = 0",
                    "INSERT INTO {0} SELECT n, 7 FROM generate_series({1}, {2}) AS n "
                    "WHERE n NOT IN (SELECT id FROM {0})",
                ]
            )
            is_kept = chance.random() < 0.8
            with closing(connection.cursor()) as cursor:
                cursor.execute(statement.format("account", low, high))
                if is_kept:
                    native.execute(statement.format("model", low, high))
                    seen = cursor.execute(
                        "SELECT count(*), sum(balance) FROM account"
                    ).fetchone()
                    assert (
                        seen
                        == native.execute(
                            "SELECT count(*), sum(balance) FROM model"
                        ).fetchone()
                    )
            (connection.commit if is_kept else connection.rollback)()
            if chance.random() < 0.2:
                connection.checkpoint()
            with closing(connection.cursor()) as cursor:
                rows = cursor.execute("SELECT * FROM account ORDER BY id").fetchall()
            connection.rollback()
            assert rows == native.execute("SELECT * FROM model ORDER BY id").fetchall()


def test_conflicts(connect):
    """First committer wins, of small writes and of large ones (P3)."""
    first, second = connect(), connect()
    for change in (
        "UPDATE account SET balance = 8 WHERE id = 4",
        "UPDATE account SET balance = 8",
    ):
        one_cursor, other_cursor = first.cursor(), second.cursor()
        for cursor in (one_cursor, other_cursor):
            cursor.execute("SELECT balance FROM account WHERE id = 4").fetchall()
        one_cursor.execute("UPDATE account SET balance = 9 WHERE id = 4")
        other_cursor.execute(change)
        first.commit()
        with pytest.raises(tique.SerializationError):
            second.commit()
        second.rollback()


def test_definitions(bank, connect):
    connection = connect()
    run(connection, "UPDATE account SET balance = 1 WHERE id <= 500")
    run(connection, "ALTER TABLE account ADD COLUMN note TEXT DEFAULT 'n'")
    run(connection, "CREATE INDEX by_balance ON account (balance)")
    assert one(connection, "SELECT * FROM account WHERE id = 7") == (7, 1, "n")
    run(connection, "ALTER TABLE account DROP COLUMN note", "DROP TABLE setting")
    run(connection, "TRUNCATE entry")
    assert one(connect(), "SELECT count(*) FROM entry") == (0,)
    run(connection, "DROP TABLE entry")
    assert one(connection, "SELECT sum(balance) FROM account") == (500,)
    assert bank.ask("SELECT count(*) FROM tique.moves") == [(0,)]


def test_detaching(bank):
    with tique.connect(bank.url) as connection:
        run(connection, "UPDATE account SET balance = 2 WHERE id <= 50")
    tique.detach(bank.url)
    assert bank.ask("SELECT sum(balance) FROM account") == [(100,)]
    assert bank.ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'tique'") == [
        (0,)
    ]
    tique.adopt(bank.url)


def test_refusals(bank, connect):
    bank.ask("CREATE TABLE public.loose (id INTEGER)")
    bank.ask("SELECT create_distributed_table('public.loose', 'id')")
    with pytest.raises(
        tique.NotSupportedError, match=r"public\.loose.* no primary key"
    ):
        tique.adopt(bank.url)
    bank.ask("DROP TABLE public.loose")
    with pytest.raises(tique.NotSupportedError, match="cannot have a history"):
        tique.set_history(bank.url, "1 hour", ["account"])
    with pytest.raises(tique.NotSupportedError, match="enable_ddl_propagation is off"):
        tique.connect(f"{bank.url}?{_PROPAGATION}")
    with pytest.raises(tique.NotSupportedError, match="connect to the coordinator"):
        tique.connect(bank.workers[0].url)
    cursor = connect(autocommit=True).cursor()
    cursor.execute("BEGIN")
    cursor.execute("UPDATE account SET balance = 1")
    with pytest.raises(tique.NotSupportedError, match="commit first"):
        cursor.execute("ALTER TABLE account ADD COLUMN note TEXT")


def test_a_schema_of_a_tenant(empty):
    empty.ask("CREATE SCHEMA tenant")
    try:
        empty.ask("SELECT citus_schema_distribute('tenant')")
        empty.ask("CREATE TABLE tenant.t (id INTEGER PRIMARY KEY)")
        with pytest.raises(tique.NotSupportedError, match="in a distributed schema"):
            tique.adopt(empty.url)
    finally:
        empty.ask("DROP SCHEMA tenant CASCADE")


@pytest.mark.parametrize(
    ("table", "statement"),
    [
        ("account", "SELECT undistribute_table('account')"),
        ("setting", "SELECT create_distributed_table('setting', 'name')"),
        (
            "entry",
            "SELECT alter_distributed_table('entry', shard_count => 4, cascade_to_colocated => false)",
        ),
    ],
)
def test_a_table_that_is_distributed_otherwise(bank, connect, table, statement):
    connection = connect()
    column = {
        "account": "balance = 3",
        "setting": "value = '3'",
        "entry": "amount = 3",
    }[table]
    run(connection, f"UPDATE {table} SET {column}")
    bank.ask(statement)
    for attempt in (
        connection.checkpoint,
        lambda: one(connection, f"SELECT count(*) FROM {table} WHERE {column}"),
    ):
        with pytest.raises(tique.Error, match="otherwise since it was adopted"):
            attempt()
        connection.rollback()


def test_that_statements_are_pushed_down(bank, connect):
    """Each shard's task has its versions and its rows (the argument of moves.py)."""
    connection = connect()
    run(
        connection,
        "INSERT INTO entry SELECT n, 2, 1 FROM generate_series(1, 11000) AS n",
    )
    for query in (
        "SELECT sum(amount), count(*) FROM entry",
        "SELECT account, sum(amount) FROM entry WHERE number > 1 GROUP BY account",
        "SELECT count(*) FROM account AS a JOIN entry AS e ON a.id = e.account",
        "SELECT count(*) FROM entry JOIN currency ON code = CAST(amount AS TEXT)",
    ):
        with closing(connection.cursor()) as cursor:
            (rewritten,) = [
                row[1]
                for row in cursor.execute(f"EXPLAIN {query}").fetchall()
                if row[0] == "rewritten statement"
            ]
        connection.rollback()
        plan = "\n".join(line for (line,) in bank.ask(f"EXPLAIN {rewritten}"))
        assert "tique_cache" in plan
        assert "Distributed Subplan" not in plan
        assert "Task Count: 8" in plan


def test_that_staged_rows_are_not_put_between(bank):
    """Storage and cache table stay in one task beside a transaction's own large writes."""
    ((number,),) = bank.ask("SELECT id FROM tique.tables WHERE table_name = 'account'")
    columns = (Column("id", "INTEGER"), Column("balance", "INTEGER"))
    table = Table("public", "account", columns, primary_key=(0,), id=number)
    (query,) = CitusForms({number: Placement("h", "id", 1)}).scan(table, 5, staged=7)
    with closing(psycopg.connect(bank.url, autocommit=True)) as native:
        native.execute(
            f"CREATE TEMPORARY TABLE tique_stage_{number} (id INTEGER, balance INTEGER, "
            "_sequence BIGINT, _deleted BOOLEAN)"
        )
        plan = [
            line for (line,) in native.execute(f"EXPLAIN SELECT * FROM {query} AS t")
        ]
    tasks = "\n".join(plan).split("->  Task")
    (task,) = [each for each in tasks if re.search(r"on account_\d+", each)]
    assert re.search(rf"on tique_cache_{number}_\d+", task)
    assert len([each for each in tasks if "tique_cache" in each]) == 1
