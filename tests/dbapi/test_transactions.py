"""BEGIN, COMMIT, ROLLBACK in SQL and through the API; run_transaction()."""

from __future__ import annotations

import pytest

import tique

pytestmark = pytest.mark.fresh_tables

SERIALIZABLE = tique.IsolationLevel.SERIALIZABLE


@pytest.fixture
def connection(engine):
    connection = engine.connect()
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute("INSERT INTO t VALUES (1, 10), (2, 20)")
    connection.commit()
    return connection


def rows(connection):
    return connection.execute("SELECT id, v FROM t ORDER BY id").fetchall()


def committed(engine):
    other = engine.connect()
    found = rows(other)
    other.rollback()
    return dict(found)


def test_sql_and_api_mix(engine, connection):
    connection.execute("BEGIN TRANSACTION")
    connection.execute("UPDATE t SET v = 11 WHERE id = 1")
    connection.commit()
    connection.execute("UPDATE t SET v = 12 WHERE id = 1")
    connection.execute("COMMIT WORK")
    assert committed(engine) == {1: 12, 2: 20}
    connection.execute("DELETE FROM t")
    connection.execute("ROLLBACK")
    connection.execute("DELETE FROM t")
    connection.rollback()
    assert committed(engine) == {1: 12, 2: 20}


def test_begin_inside_a_transaction_is_refused(connection):
    connection.execute("UPDATE t SET v = 11 WHERE id = 1")
    with pytest.raises(tique.ProgrammingError, match="SAVEPOINT") as caught:
        connection.execute("BEGIN")
    assert caught.value.sqlstate == "25001"
    assert rows(connection) == [(1, 11), (2, 20)]


def test_commit_and_rollback_without_a_transaction(connection):
    connection.commit()
    connection.rollback()
    connection.execute("COMMIT")
    connection.execute("ROLLBACK")
    assert not connection.in_transaction


def test_commit_after_a_failed_statement_keeps_the_earlier_ones(engine, connection):
    """P8: a failed statement leaves no trace, and takes nothing with it."""
    connection.execute("INSERT INTO t VALUES (3, 30)")
    for wrong in (
        "INSERT INTO t VALUES (3, 31)",
        "SELECT * FROM nowhere",
        "SELEC",
        "SELECT CAST('x' AS INTEGER)",
        "UPDATE t SET v = v + 10000000000",
    ):
        with pytest.raises(tique.DatabaseError):
            connection.execute(wrong)
    connection.execute("UPDATE t SET v = 12 WHERE id = 1")
    connection.commit()
    assert committed(engine) == {1: 12, 2: 20, 3: 30}


def test_read_only(connection):
    connection.execute("BEGIN READ ONLY")
    assert rows(connection) == [(1, 10), (2, 20)]
    for change in (
        "INSERT INTO t VALUES (3, 30)",
        "INSERT INTO t SELECT id + 10, v FROM t",
        "UPDATE t SET v = 1 WHERE id = 1",
        "UPDATE t SET v = 1",
        "DELETE FROM t",
        "CREATE TABLE u (a INTEGER)",
        "DROP TABLE t",
    ):
        with pytest.raises(tique.OperationalError) as caught:
            connection.execute(change)
        assert caught.value.sqlstate == "25006"
    with pytest.raises(tique.OperationalError):
        connection.cursor().executemany("DELETE FROM t WHERE id = %s", [(1,)])
    connection.commit()
    connection.execute("UPDATE t SET v = 11 WHERE id = 1")
    assert rows(connection) == [(1, 11), (2, 20)]


@pytest.mark.never(
    ["duckdb"], raises=tique.NotSupportedError, reason="DuckDB has no AND CHAIN"
)
def test_another_transaction_follows(engine, connection):
    connection.autocommit = True
    connection.execute("START TRANSACTION")
    connection.execute("INSERT INTO t VALUES (3, 30)")
    connection.execute("COMMIT AND CHAIN")
    connection.execute("INSERT INTO t VALUES (4, 40)")
    assert committed(engine) == {1: 10, 2: 20, 3: 30}
    connection.execute("ROLLBACK AND CHAIN")
    connection.execute("INSERT INTO t VALUES (5, 50)")
    connection.execute("COMMIT AND NO CHAIN")
    assert not connection.in_transaction
    assert committed(engine) == {1: 10, 2: 20, 3: 30, 5: 50}


def test_set_transaction(connection):
    connection.execute("SET TRANSACTION READ ONLY")
    with pytest.raises(tique.OperationalError, match="read-only"):
        connection.execute("DELETE FROM t")
    with pytest.raises(tique.ProgrammingError, match="first statement"):
        connection.execute("SET TRANSACTION READ WRITE")
    connection.rollback()
    connection.execute("SET TRANSACTION READ WRITE, ISOLATION LEVEL READ COMMITTED")
    connection.execute("DELETE FROM t")
    connection.rollback()
    with pytest.raises(tique.NotSupportedError, match="READ UNCOMMITTED"):
        connection.execute("BEGIN ISOLATION LEVEL READ UNCOMMITTED")
    assert not connection.in_transaction


@pytest.mark.parametrize(
    "begin",
    [
        "BEGIN ISOLATION LEVEL SERIALIZABLE",
        "START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE",
        "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE",
        "SET TRANSACTION NOT DEFERRABLE, ISOLATION LEVEL SERIALIZABLE",
    ],
)
def test_one_serializable_transaction(connection, begin):
    """The level is that of the transaction which is begun, and of no later one."""
    connection.execute(begin)
    assert rows(connection) == [(1, 10), (2, 20)]
    assert connection._execution.transaction.isolation is SERIALIZABLE
    connection.commit()
    assert connection.isolation_level == "SNAPSHOT"
    assert rows(connection) == [(1, 10), (2, 20)]
    assert connection._execution.transaction.isolation is tique.IsolationLevel.SNAPSHOT


@pytest.mark.never(
    ["duckdb"], raises=tique.NotSupportedError, reason="DuckDB has no AND CHAIN"
)
def test_a_serializable_transaction_has_one_like_it_in_its_chain(connection):
    connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
    rows(connection)
    connection.execute("COMMIT AND CHAIN")
    rows(connection)
    assert connection._execution.transaction.isolation is SERIALIZABLE


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_serializable_transactions_of_a_connection(engine, ends):
    """P12: of all kinds, in a block, of DDL, and in autocommit."""
    connection = engine.connect(isolation_level="SERIALIZABLE", transactional_ddl=True)
    transaction = connection._execution
    connection.execute("CREATE TABLE u (id INTEGER PRIMARY KEY)")
    assert transaction.transaction.isolation is SERIALIZABLE
    getattr(connection, ends)()
    with connection.transaction():
        connection.execute("SELECT 1")
        assert transaction.transaction.isolation is SERIALIZABLE
    connection.autocommit = True
    assert connection.isolation_level == "SERIALIZABLE"


def test_the_level_of_one_transaction(engine, connection):
    other = engine.connect()
    connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    assert rows(connection) == [(1, 10), (2, 20)]
    other.execute("UPDATE t SET v = 11 WHERE id = 1")
    other.commit()
    assert rows(connection) == [(1, 11), (2, 20)]
    connection.commit()
    assert rows(connection) == [(1, 11), (2, 20)]
    other.execute("UPDATE t SET v = 12 WHERE id = 1")
    other.commit()
    assert rows(connection) == [(1, 11), (2, 20)]


def test_transaction_block(engine, connection):
    with connection.transaction():
        connection.execute("UPDATE t SET v = 11 WHERE id = 1")
        assert connection.in_transaction
    assert committed(engine) == {1: 11, 2: 20}
    with pytest.raises(KeyError), connection.transaction():  # noqa: PT012
        connection.execute("UPDATE t SET v = 12 WHERE id = 1")
        raise KeyError
    assert not connection.in_transaction
    assert committed(engine) == {1: 11, 2: 20}


@pytest.mark.parametrize("autocommit", [False, True])
def test_transaction_blocks_nest(engine, connection, autocommit):
    connection.autocommit = autocommit
    with connection.transaction():
        connection.execute("UPDATE t SET v = 11 WHERE id = 1")
        with pytest.raises(KeyError), connection.transaction():  # noqa: PT012
            connection.execute("UPDATE t SET v = 12 WHERE id = 1")
            with connection.transaction():
                connection.execute("DELETE FROM t WHERE id = 2")
            assert rows(connection) == [(1, 12)]
            raise KeyError
        assert rows(connection) == [(1, 11), (2, 20)]
        with connection.transaction():
            connection.execute("UPDATE t SET v = 21 WHERE id = 2")
    assert committed(engine) == {1: 11, 2: 21}


def test_a_block_in_an_implicit_transaction_is_a_savepoint(engine, connection):
    connection.execute("UPDATE t SET v = 11 WHERE id = 1")
    with connection.transaction():
        connection.execute("UPDATE t SET v = 21 WHERE id = 2")
    assert committed(engine) == {1: 10, 2: 20}
    connection.commit()
    assert committed(engine) == {1: 11, 2: 21}


def test_a_conflict_ends_the_transaction(engine, connection):
    """P3: the loser is rolled back, all of it, and can begin again."""
    other = engine.connect()
    connection.execute("SELECT v FROM t WHERE id = 1").fetchall()
    connection.execute("UPDATE t SET v = 11 WHERE id = 1")
    connection.execute("INSERT INTO t VALUES (3, 30)")
    other.execute("UPDATE t SET v = 99 WHERE id = 1")
    other.commit()
    with pytest.raises(tique.SerializationError):
        connection.commit()
    assert not connection.in_transaction
    assert rows(connection) == [(1, 99), (2, 20)]


def test_a_conflict_in_autocommit(engine, connection):
    connection.autocommit = True
    for value in range(5):
        connection.execute("UPDATE t SET v = %s WHERE id = 1", (value,))
    assert committed(engine) == {1: 4, 2: 20}


def test_run_transaction_retries(engine, connection):
    other = engine.connect()
    attempts = []

    def work(conn):
        attempts.append(1)
        (value,) = conn.execute("SELECT v FROM t WHERE id = 1").fetchone()
        if len(attempts) < 3:
            other.execute("UPDATE t SET v = v + 100 WHERE id = 1")
            other.commit()
        conn.execute("UPDATE t SET v = %s WHERE id = 1", (value + 1,))
        return value

    assert tique.run_transaction(connection, work) == 210
    assert len(attempts) == 3
    assert committed(engine) == {1: 211, 2: 20}


def test_run_transaction_gives_up(engine, connection):
    other = engine.connect()

    def work(conn):
        conn.execute("SELECT v FROM t WHERE id = 1").fetchall()
        conn.execute("UPDATE t SET v = 0 WHERE id = 1")
        other.execute("UPDATE t SET v = v + 1 WHERE id = 1")
        other.commit()

    with pytest.raises(tique.SerializationError):
        tique.run_transaction(connection, work, attempts=3)
    assert committed(engine) == {1: 13, 2: 20}
    assert not connection.in_transaction


def test_run_transaction_passes_other_errors_on(engine, connection):
    def work(conn):
        conn.execute("DELETE FROM t")
        raise KeyError

    with pytest.raises(KeyError):
        tique.run_transaction(connection, work)
    assert committed(engine) == {1: 10, 2: 20}
    connection.execute("SELECT 1")
    with pytest.raises(tique.ProgrammingError, match="commit or roll back first"):
        tique.run_transaction(connection, work)
    connection.rollback()
    with pytest.raises(tique.ProgrammingError, match="attempts"):
        tique.run_transaction(connection, work, attempts=0)


def test_definitions_take_effect_at_once(engine, connection):
    connection.execute("CREATE TABLE u (a INTEGER)")
    connection.rollback()
    engine.connect().execute("SELECT * FROM u")
    connection.execute("INSERT INTO u VALUES (1)")
    with pytest.raises(tique.NotSupportedError, match="uncommitted writes"):
        connection.execute("CREATE TABLE w (a INTEGER)")
    assert connection.execute("SELECT * FROM u").fetchall() == [(1,)]


def test_dropping_a_table_that_is_in_use_is_refused(engine, connection):
    other = engine.connect()
    rows(other)
    with pytest.raises(
        tique.OperationalError, match=rf"{engine.schema}\.t.*open transaction"
    ):
        connection.execute("DROP TABLE t")
    other.rollback()
    connection.execute("DROP TABLE t")
    with pytest.raises(tique.ProgrammingError):
        other.execute("SELECT * FROM t")
