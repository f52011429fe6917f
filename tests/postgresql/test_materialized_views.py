"""Materialized views: the engine's own, with the rows of a snapshot (P1, P9, P10)."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import tique
from tests.effort import effort
from tests.plugins.engine import PostgreSQL
from tests.postgresql.privileges import denied
from tests.sharing.playing import Process
from tique.errors import SerializationError

VIEW = "CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM t GROUP BY v"
REFRESH = "REFRESH MATERIALIZED VIEW m"
ROWS = "SELECT v, n FROM m ORDER BY v"


@pytest.fixture
def database(request):
    opened = PostgreSQL.fresh(request)
    yield opened
    opened.close()


@pytest.fixture
def one(database):
    """With a row in storage, one in memory, and one that is gone there."""
    connection = database.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute("INSERT INTO t VALUES (1, 10), (2, 10), (3, 30)")
    connection.commit()
    connection.checkpoint()
    connection.execute("DELETE FROM t WHERE id = 3")
    connection.execute("INSERT INTO t VALUES (4, 40)")
    connection.commit()
    return connection


@pytest.fixture
def two(database, one):
    return database.connect()


def rows(connection, query=ROWS):
    found = connection.execute(query).fetchall()
    connection.rollback()
    return found


def run(connection, *statements):
    for statement in statements:
        connection.execute(statement)
    connection.commit()


def test_it_has_the_rows_of_a_snapshot_until_it_is_refreshed(database, one, two):
    """P1, P9, P10: in every process, after opening again, and without tique."""
    first, second = [(10, 2), (40, 1)], [(10, 1), (40, 1), (50, 1)]
    run(one, VIEW)
    assert one.execute(REFRESH).statusmessage == "REFRESH MATERIALIZED VIEW"
    one.commit()
    run(two, "UPDATE t SET v = 50 WHERE id = 2")
    other = Process(database.url)
    for each in (one, two, other.connection):
        assert rows(each) == first
    run(one, REFRESH)
    for each in (one, two, other.connection):
        assert rows(each) == second
        joined = "SELECT count(*) FROM m JOIN t ON m.v = t.v"
        assert rows(each, joined) == [(3,)]
    other.close()
    one.checkpoint()
    database.close()
    assert rows(database.connect()) == second
    listed = (
        "SELECT matviewname, ispopulated FROM pg_matviews WHERE schemaname = 'public'"
    )
    tables = "SELECT count(*) FROM information_schema.tables WHERE table_name = 'm'"
    assert rows(database.connect(), listed) == [("m", True)]
    assert rows(database.connect(), tables) == [(0,)]
    database.close()
    assert database.native().execute(ROWS).fetchall() == second
    assert sorted(tique.detach(database.url)) == ["public.m", "public.t"]
    assert database.native().execute(listed).fetchall() == [("m", True)]


def test_an_older_snapshot(database, one, two):
    """P1: it does not see the rows of a refresh, in another process neither."""
    run(one, VIEW)
    other = Process(database.url)
    for each in (two, other.connection):
        assert each.execute("SELECT count(*) FROM t").fetchall() == [(3,)]
    one.execute(REFRESH)
    one.commit()
    run(one, "CREATE MATERIALIZED VIEW w AS SELECT 1 AS a")
    for each in (two, other.connection):
        for name in ("m", "w"):
            with pytest.raises(
                (SerializationError, tique.ProgrammingError),
                match=r"after this transaction began|changed meanwhile|unknown table",
            ):
                each.execute(f"SELECT * FROM {name}")
        each.rollback()
        assert rows(each) == [(10, 2), (40, 1)]
    other.close()


def test_a_transaction_that_reads_it(one, two):
    """P1, P6: nothing changes under it, and it does not hold up the refresh."""
    run(one, VIEW)
    run(one, "UPDATE t SET v = 50 WHERE id = 2")
    assert two.execute(ROWS).fetchall() == [(10, 2), (40, 1)]
    assert two.execute("SELECT v FROM t WHERE id = 2").fetchall() == [(50,)]
    run(one, REFRESH)
    with pytest.raises(SerializationError, match="after this transaction began"):
        two.execute(ROWS)
    two.rollback()
    assert rows(two) == [(10, 1), (40, 1), (50, 1)]


def test_an_old_snapshot_that_needs_recent_versions(one, two):
    """P1: storage is not what the refresh would have to see."""
    run(one, VIEW)
    two.execute("SELECT count(*) FROM t").fetchall()
    run(one, "UPDATE t SET v = 50 WHERE id = 2")
    with pytest.raises(tique.OperationalError, match="older snapshot") as caught:
        one.execute(REFRESH)
    assert caught.value.sqlstate == "55006"
    one.rollback()
    two.rollback()
    assert rows(two) == [(10, 2), (40, 1)]


def test_commits_go_on_beside_it(one, two):
    """P1: it has the rows of its snapshot, and no newer ones."""
    run(one, VIEW)
    one.execute("BEGIN")
    one.execute(REFRESH)
    run(two, "INSERT INTO t VALUES (5, 50)")
    one.execute(REFRESH)
    assert one.execute(ROWS).fetchall() == [(10, 2), (40, 1)]
    one.commit()
    assert rows(two) == [(10, 2), (40, 1)]
    run(one, REFRESH)
    assert rows(two) == [(10, 2), (40, 1), (50, 1)]


def test_beside_writers(database, one):
    """P1, P6: rows of one snapshot each time, however many commit beside it."""
    run(one, "CREATE TABLE a (id INTEGER PRIMARY KEY, b INTEGER)")
    run(one, "INSERT INTO a SELECT n, 100 FROM generate_series(1, 9) AS n")
    run(one, "CREATE MATERIALIZED VIEW s AS SELECT sum(b) AS b, max(id) AS i FROM a")
    over = threading.Event()

    def move(number):
        with database.connect() as connection:
            while not over.is_set():
                for id_, by in ((number, -1), (number + 3, 1)):
                    connection.execute(
                        "UPDATE a SET b = b + %s WHERE id = %s", (by, id_)
                    )
                connection.commit()

    with ThreadPoolExecutor(3) as pool:
        moving = [pool.submit(move, number) for number in (1, 2, 3)]
        try:
            for _ in range(effort(5, 100)):
                run(one, "REFRESH MATERIALIZED VIEW s")
                assert rows(one, "SELECT * FROM s") == [(900, 9)]
        finally:
            over.set()
        assert [each.result() for each in moving] == [None] * 3


def test_one_that_fails(one):
    """P8: it leaves the rows that were there."""
    run(one, "CREATE MATERIALIZED VIEW m AS SELECT 100 / v AS v, 1 AS n FROM t")
    before = rows(one)
    run(one, "UPDATE t SET v = 0 WHERE id = 1")
    with pytest.raises(tique.DataError, match="division by zero"):
        one.execute(REFRESH)
    one.rollback()
    assert rows(one) == before


def test_in_a_transaction(one, two):
    """P5: with DDL and rows, or nothing of it."""
    run(one, VIEW)
    for end in ("ROLLBACK", "COMMIT"):
        one.execute("BEGIN")
        one.execute("CREATE TABLE u (a INTEGER)")
        one.execute("INSERT INTO u VALUES (7)")
        with pytest.raises(tique.NotSupportedError, match="has written to") as caught:
            one.execute("CREATE MATERIALIZED VIEW w AS SELECT a FROM u")
        assert caught.value.sqlstate == "25001"
        one.rollback()
        one.execute("BEGIN")
        one.execute("CREATE TABLE u AS SELECT 7 AS a")
        one.execute("CREATE MATERIALIZED VIEW w AS SELECT a FROM u")
        one.execute("UPDATE t SET v = 0")
        assert one.execute("SELECT * FROM w").fetchall() == [(7,)]
        assert two.execute(ROWS).fetchall() == [(10, 2), (40, 1)]
        two.rollback()
        one.execute(end)
    assert rows(two, "SELECT * FROM w") == [(7,)]
    assert rows(two, "SELECT sum(v) FROM t") == [(0,)]


def test_without_rows(one):
    run(one, f"{VIEW} WITH NO DATA")
    for _ in range(2):
        with pytest.raises(tique.DatabaseError, match="has not been populated"):
            one.execute(ROWS)
        one.rollback()
        run(one, f"{REFRESH} WITH DATA")
        assert rows(one) == [(10, 2), (40, 1)]
        run(one, f"{REFRESH} WITH NO DATA")


def test_through_views_and_other_materialized_views(one, two):
    run(
        one,
        "CREATE VIEW big AS SELECT * FROM t WHERE v > 10",
        "CREATE MATERIALIZED VIEW IF NOT EXISTS w (a) AS SELECT id FROM big",
        "CREATE MATERIALIZED VIEW IF NOT EXISTS w (a) AS SELECT 1",
        "CREATE VIEW x AS SELECT a + 1 AS b FROM w",
        "CREATE MATERIALIZED VIEW y AS SELECT b FROM x",
        "INSERT INTO t VALUES (5, 50)",
    )
    assert rows(two, "SELECT * FROM y, w") == [(5, 4)]
    run(one, "REFRESH MATERIALIZED VIEW w")
    assert rows(two, "SELECT b FROM x ORDER BY b") == [(5,), (6,)]
    assert rows(two, "SELECT b FROM y") == [(5,)]


def test_indexes_and_other_names(one, two):
    run(
        one,
        VIEW,
        "CREATE UNIQUE INDEX sole ON m (v)",
        "CREATE INDEX other ON m (n) WHERE n > 1",
        "COMMENT ON MATERIALIZED VIEW m IS 'counts'",
        "INSERT INTO t VALUES (5, 50)",
    )
    run(
        one,
        "REFRESH MATERIALIZED VIEW CONCURRENTLY m",
        "CREATE SCHEMA s",
        "ALTER MATERIALIZED VIEW m SET SCHEMA s",
        "ALTER MATERIALIZED VIEW s.m RENAME TO k",
        "ALTER MATERIALIZED VIEW s.k RENAME COLUMN n TO many",
        "DROP INDEX s.sole",
    )
    found = rows(two, "SELECT v, many FROM s.k ORDER BY v")
    assert found == [(10, 2), (40, 1), (50, 1)]
    comment = "SELECT obj_description('s.k'::regclass, 'pg_class')"
    assert rows(one, comment) == [("counts",)]
    with pytest.raises(tique.ProgrammingError, match="unknown table"):
        two.execute(ROWS)


@pytest.mark.parametrize(
    "drop",
    [
        "DROP MATERIALIZED VIEW m",
        "DROP MATERIALIZED VIEW IF EXISTS m, missing RESTRICT",
        "DROP TABLE t CASCADE",
        "ALTER TABLE t DROP COLUMN v CASCADE",
        "DROP SCHEMA public CASCADE",
    ],
)
def test_it_is_dropped(one, two, drop):
    """P9: with a table that it reads, too."""
    run(one, VIEW)
    run(one, "CREATE SCHEMA s", "CREATE MATERIALIZED VIEW s.w AS SELECT v FROM m")
    if "CASCADE" not in drop:
        with pytest.raises(tique.DatabaseError, match="depend"):
            one.execute(drop)
        one.rollback()
        run(one, "DROP MATERIALIZED VIEW s.w")
    run(one, drop)
    for name in ("m", "s.w"):
        with pytest.raises(tique.ProgrammingError, match="unknown table"):
            two.execute(f"SELECT * FROM {name}")
    two.rollback()
    run(one, "CREATE MATERIALIZED VIEW s.w AS SELECT 1 AS a")
    assert rows(two, "SELECT * FROM s.w") == [(1,)]


REFUSED = [
    "INSERT INTO m VALUES (1, 1)",
    "UPDATE m SET n = 0",
    "DELETE FROM m",
    "MERGE INTO m USING t ON m.v = t.v WHEN MATCHED THEN DELETE",
    "TRUNCATE m",
    "COPY m FROM STDIN",
    "ALTER TABLE m ADD COLUMN x INTEGER",
    "DROP TABLE m",
    "REFRESH MATERIALIZED VIEW t",
    "DROP MATERIALIZED VIEW t",
    "REFRESH MATERIALIZED VIEW missing",
    VIEW,
    "CREATE TABLE m (a INTEGER)",
    "CREATE TABLE c (a INTEGER REFERENCES m)",
    "SELECT * FROM m FOR UPDATE",
    "CREATE MATERIALIZED VIEW w AS SELECT relname FROM pg_class",
    "CREATE MATERIALIZED VIEW w AS SELECT pg_read_file('x')",
    "CREATE MATERIALIZED VIEW w AS SELECT * FROM missing",
    "CREATE MATERIALIZED VIEW tique.w AS SELECT 1",
    "CREATE MATERIALIZED VIEW w AS DELETE FROM t RETURNING id",
    "EXPLAIN REFRESH MATERIALIZED VIEW m",
    "ALTER MATERIALIZED VIEW m SET (fillfactor = 10)",
    "ALTER MATERIALIZED VIEW m OWNER TO pg_monitor",
]


def test_what_is_refused(one):
    """P10: by name, and nothing has changed."""
    run(one, VIEW)
    for statement in REFUSED:
        with pytest.raises((tique.ProgrammingError, tique.NotSupportedError)):
            one.execute(statement)
        one.rollback()
    assert rows(one) == [(10, 2), (40, 1)]


def test_those_that_are_there_are_adopted(database):
    """P1: with their rows, which the engine has committed."""
    with database.native() as native:
        native.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
        native.execute("INSERT INTO t VALUES (1, 10)")
        native.execute(VIEW)
        native.execute("CREATE UNIQUE INDEX sole ON m ((v + 1))")
    assert sorted(tique.adopt(database.url)) == ["public.m", "public.t"]
    with database.connect() as connection:
        run(connection, "INSERT INTO t VALUES (2, 20)")
        assert rows(connection) == [(10, 1)]
        run(connection, REFRESH)
        assert rows(connection) == [(10, 1), (20, 1)]


def test_privileges(shop):
    """P11: those on the view, not on the tables that it reads."""
    shop.owner.commit("CREATE MATERIALIZED VIEW m AS SELECT id, v FROM closed")
    reader = shop.process("reader")
    expected = shop.owner.rows("SELECT id, v FROM closed ORDER BY id")
    query = "SELECT * FROM m ORDER BY id"
    for granted in (False, True):
        for statement in (query, "SELECT * FROM closed", REFRESH, "DROP TABLE closed"):
            if granted and statement == query:
                assert reader.rows(query) == expected
                continue
            with denied("permission denied|only the owner of schema tique"):
                reader.commit(statement)
            reader.connection.rollback()
        shop.owner.commit("GRANT SELECT ON m TO reader")
    shop.owner.commit("UPDATE closed SET v = 0")
    shop.owner.commit(REFRESH)
    assert {v for _, v in reader.rows(query)} == {0}
