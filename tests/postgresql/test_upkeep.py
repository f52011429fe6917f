"""GRANT and REVOKE, and statements that keep storage tidy (P1, P8, P10, P11)."""

from __future__ import annotations

import pytest

import tique
from tests.postgresql.privileges import denied

GRANTED = [(1, 10, "a"), (2, 20, "b")]


def test_privileges_are_given_and_taken(shop):
    """P11: they are those on the versions, from the next statement on."""
    reader = shop.process("reader")
    reader.connection.autocommit = True
    query = "SELECT * FROM closed ORDER BY id"
    with denied():
        reader.run(query)
    shop.owner.commit("GRANT SELECT ON TABLE closed TO reader")
    assert reader.rows(query) == GRANTED
    with denied():
        reader.run("UPDATE closed SET v = 1")
    shop.owner.commit("GRANT ALL ON ALL TABLES IN SCHEMA public TO reader")
    reader.run("UPDATE closed SET v = v WHERE id = 1")
    assert reader.rows(query) == GRANTED
    shop.owner.commit("REVOKE ALL ON closed, open FROM reader CASCADE")
    for table in ("closed", "open"):
        with denied():
            reader.run(f"SELECT v FROM {table} WHERE id = 1")


def test_columns_are_granted(shop):
    shop.owner.commit("GRANT SELECT (id, v), UPDATE (v) ON public.closed TO reader")
    reader = shop.process("reader")
    reader.connection.autocommit = True
    with denied():
        reader.run("SELECT note FROM closed")


def test_who_may_not_grant_does_not(shop):
    writer = shop.process("writer")
    writer.connection.autocommit = True
    with denied():
        writer.run("GRANT SELECT ON closed TO writer")
    with denied():
        writer.run("SELECT v FROM closed")


def test_the_use_of_a_database_is_granted(shop):
    """What a role needs to begin with, and nothing more of tique's."""
    shop.owner.commit("GRANT USAGE ON SCHEMA tique TO stranger")
    stranger = shop.process("stranger")
    with denied():
        stranger.run("SELECT v FROM open")
    for sql in (
        "GRANT CREATE ON SCHEMA tique TO stranger",
        "GRANT SELECT ON ALL TABLES IN SCHEMA tique TO stranger",
        'GRANT SELECT ON "tique".log TO stranger',
    ):
        with pytest.raises(tique.NotSupportedError, match="reserved"):
            shop.owner.run(sql)


def test_grants_are_ddl(database):
    """After BEGIN they are a part of the transaction, else not in one with writes."""
    connection = database.connect(autocommit=True)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    granted = (
        "SELECT count(*) FROM information_schema.table_privileges "
        "WHERE table_name = 't' AND grantee = 'PUBLIC'"
    )
    for end, count in (("ROLLBACK", 0), ("COMMIT", 1)):
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("GRANT SELECT ON t TO PUBLIC")
        connection.execute(end)
        assert connection.execute(granted).fetchall() == [(count,)]
    connection.autocommit = False
    connection.execute("INSERT INTO t VALUES (2)")
    with pytest.raises(tique.NotSupportedError, match="uncommitted writes"):
        connection.execute("GRANT SELECT ON t TO PUBLIC")
    connection.commit()
    connection.autocommit = True
    connection.execute("BEGIN READ ONLY")
    with pytest.raises(tique.OperationalError) as caught:
        connection.execute("GRANT SELECT ON t TO PUBLIC")
    assert caught.value.sqlstate == "25006"
    connection.execute("ROLLBACK")
    with pytest.raises(tique.ProgrammingError) as caught:
        connection.execute("GRANT SELECT ON t TO nobody_there")
    assert caught.value.sqlstate == "42704"


TIDYING = (
    "ANALYZE",
    "ANALYZE VERBOSE t (id)",
    "VACUUM",
    "VACUUM (ANALYZE, INDEX_CLEANUP off) t",
    "VACUUM FULL t",
    "REINDEX TABLE t",
    "REINDEX (VERBOSE) INDEX t_v_key",
    "REINDEX TABLE CONCURRENTLY t",
    "CLUSTER t USING t_pkey",
)


@pytest.mark.parametrize("sql", TIDYING)
def test_storage_is_tidied_beside_transactions(database, sql):
    """P1, P7: snapshots, recent versions and later folds are what they were."""
    connection = database.connect(checkpoint="manual", autocommit=True)
    older = database.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER UNIQUE)")
    connection.execute("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")
    connection.checkpoint()
    older.execute("SELECT 1 FROM t").fetchall()
    connection.execute("UPDATE t SET v = 11 WHERE id = 1")
    connection.execute("DELETE FROM t WHERE id = 2")
    connection.execute(sql)
    rows = "SELECT * FROM t ORDER BY id"
    assert connection.execute(rows).fetchall() == [(1, 11), (3, 30)]
    assert older.execute(rows).fetchall() == [(1, 10), (2, 20), (3, 30)]
    older.rollback()
    with pytest.raises(tique.IntegrityError):
        connection.execute("INSERT INTO t VALUES (5, 11)")
    connection.checkpoint()
    connection.execute(sql)
    assert older.execute(rows).fetchall() == [(1, 11), (3, 30)]


def test_statistics_are_storage_s(database):
    connection = database.connect(autocommit=True)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO t SELECT * FROM generate_series(1, 500)")
    connection.checkpoint()
    connection.execute("ANALYZE t")
    found = connection.execute("SELECT reltuples FROM pg_class WHERE relname = 't'")
    assert found.fetchall() == [(500.0,)]


def test_inside_a_transaction(pair):
    """ANALYZE may be, the others may not."""
    for statement in ("VACUUM t", "REINDEX SCHEMA public"):

        def body(connection, statement=statement):
            connection.execute("SELECT 1 FROM t").fetchall()
            try:
                connection.execute(statement)
            except Exception as error:
                return error.sqlstate

        assert pair.same(body) == "25001"
    pair.same(lambda c: c.execute("ANALYZE t").rowcount)


@pytest.mark.parametrize("sql", ["ANALYZE nowhere", "VACUUM (NOPE) t", "REINDEX t"])
def test_what_the_engine_refuses(database, pair, sql):
    native, _ = pair.both(lambda c: c.execute(sql))
    connection = database.connect(autocommit=True)
    with pytest.raises(tique.ProgrammingError) as caught:
        connection.execute(sql)
    assert caught.value.sqlstate == native.sqlstate or native.sqlstate == "25001"
