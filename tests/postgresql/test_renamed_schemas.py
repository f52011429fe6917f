"""ALTER SCHEMA … RENAME TO, with the tables, views and types in the schema."""

from __future__ import annotations

from contextlib import closing

import pytest

import tique
from tests.plugins.engine import PostgreSQL
from tests.sharing.playing import Process
from tique.errors import ForeignKeyViolation


@pytest.fixture
def database(request):
    opened = PostgreSQL.fresh(request)
    yield opened
    opened.close()


@pytest.fixture
def one(database):
    connection = database.connect(checkpoint="manual")
    for sql in (
        "CREATE SCHEMA old",
        "CREATE TYPE old.mood AS ENUM ('sad', 'glad')",
        "CREATE TABLE old.p (id SERIAL PRIMARY KEY, m old.mood)",
        "CREATE TABLE old.c (id INTEGER PRIMARY KEY, p INTEGER REFERENCES old.p)",
        "CREATE TABLE out (id INTEGER PRIMARY KEY, p INTEGER REFERENCES old.p)",
        "CREATE VIEW old.v AS SELECT m FROM old.p",
        "INSERT INTO old.p (m) VALUES ('sad'), ('glad')",
        "INSERT INTO old.c VALUES (1, 1)",
        "INSERT INTO out VALUES (1, 2)",
    ):
        connection.execute(sql)
    connection.commit()
    return connection


RENAME = "ALTER SCHEMA old RENAME TO new"


def expect_renamed(connection):
    query = "SELECT p.id, p.m, c.id FROM new.p LEFT JOIN new.c ON c.p = p.id ORDER BY 1"
    assert connection.execute(query).fetchall() == [(1, "sad", 1), (2, "glad", None)]
    assert connection.execute("SELECT count(*) FROM new.v").fetchall() == [(2,)]
    with pytest.raises(tique.ProgrammingError, match="unknown table"):
        connection.execute("SELECT * FROM old.p")
    for sql in ("DELETE FROM new.p WHERE id = 1", "DELETE FROM new.p WHERE id = 2"):
        with pytest.raises(ForeignKeyViolation):
            connection.execute(sql)
    for sql in ("INSERT INTO new.c VALUES (2, 7)", "INSERT INTO out VALUES (2, 7)"):
        with pytest.raises(ForeignKeyViolation):
            connection.execute(sql)
    connection.execute("INSERT INTO new.p (m) VALUES ('glad')")
    connection.execute("INSERT INTO new.c SELECT 2, max(id) FROM new.p")
    connection.rollback()


def test_all_of_it_is_renamed(database, one):
    """P9: constraints, sequences and types follow, in every process and after opening."""
    other = Process(database.url)
    assert other.rows("SELECT count(*) FROM old.p") == [(2,)]
    one.execute(RENAME)
    one.commit()
    expect_renamed(one)
    expect_renamed(other.connection)
    other.close()
    one.checkpoint()
    database.close()
    with database.connect() as again:
        expect_renamed(again)
    assert sorted(tique.detach(database.url)) == ["new.c", "new.p", "public.out"]
    found = database.native().execute("SELECT count(*) FROM new.p").fetchall()
    assert found == [(2,)]


def test_inside_a_transaction(one):
    """P5: with own writes, before and after; a rollback takes all of it back."""
    one.execute("BEGIN")
    one.execute("UPDATE old.p SET m = 'glad' WHERE id = 1")
    one.execute(RENAME)
    assert one.execute("SELECT DISTINCT m FROM new.p").fetchall() == [("glad",)]
    one.rollback()
    assert one.execute("SELECT count(*) FROM old.p").fetchall() == [(2,)]
    one.rollback()
    one.execute("BEGIN")
    one.execute(RENAME)
    one.execute("CREATE SCHEMA old")
    one.execute("CREATE TABLE old.p (id INTEGER PRIMARY KEY)")
    one.commit()
    assert one.execute("SELECT count(*) FROM old.p").fetchall() == [(0,)]
    assert one.execute("SELECT count(*) FROM new.p").fetchall() == [(2,)]


def test_beside_an_older_snapshot(database, one):
    """P1: of another process, which knows the tables by their old names."""
    one.checkpoint()
    other = Process(database.url)
    other.run("SELECT 1 FROM out")
    one.execute(RENAME)
    one.execute("CREATE SCHEMA old")
    one.execute("CREATE TABLE old.p (id INTEGER PRIMARY KEY, m TEXT)")
    one.execute("INSERT INTO old.p VALUES (9, 'x')")
    one.commit()
    with pytest.raises((tique.SerializationError, tique.ProgrammingError)):
        other.run("SELECT * FROM old.p")
    other.connection.rollback()
    assert other.rows("SELECT * FROM old.p") == [(9, "x")]
    other.close()


@pytest.mark.parametrize(
    ("change", "table"),
    [(RENAME, "new.k"), ("ALTER TYPE old.mood RENAME VALUE 'sad' TO 'blue'", "old.k")],
)
def test_a_table_that_is_newer_than_a_snapshot(database, one, change, table):
    """P1: its rows are so after the change too."""
    one.checkpoint()
    other = database.connect()
    other.execute("SELECT 1 FROM out")
    one.execute("UPDATE out SET p = 1")
    one.commit()
    one.execute(
        "CREATE TABLE old.k AS SELECT p, CAST('glad' AS old.mood) AS m FROM out"
    )
    one.execute(change)
    with pytest.raises(tique.SerializationError, match="after this transaction began"):
        other.execute(f"SELECT * FROM {table}")
    other.rollback()
    assert other.execute(f"SELECT * FROM {table}").fetchall() == [(1, "glad")]


def test_what_is_refused(database, one):
    with pytest.raises(tique.NotSupportedError, match="looked for in it"):
        one.execute("ALTER SCHEMA public RENAME TO new")
    one.rollback()
    for sql in (
        "ALTER SCHEMA tique RENAME TO new",
        "ALTER SCHEMA old RENAME TO tique",
        "ALTER SCHEMA old OWNER TO pg_monitor",
    ):
        with pytest.raises(tique.NotSupportedError):
            one.execute(sql)
        one.rollback()
    with pytest.raises(tique.DatabaseError):
        one.execute("ALTER SCHEMA old RENAME TO public")
    one.rollback()
    two = database.connect()
    two.execute("SELECT * FROM old.p")
    with pytest.raises(tique.OperationalError) as refusal:
        one.execute(RENAME)
    assert refusal.value.sqlstate == "55006"
    one.rollback()
    two.rollback()
    one.execute("CREATE TABLE elsewhere (id INTEGER PRIMARY KEY, m old.mood)")
    with pytest.raises(tique.NotSupportedError, match="elsewhere"):
        one.execute(RENAME)
    one.rollback()
    assert one.execute("SELECT count(*) FROM old.c").fetchall() == [(1,)]


def test_a_new_table_that_could_not_be_used_for_a_while(database, one):
    """P1: its rows are newer than the snapshot when it can be used again, too."""
    one.checkpoint()
    other = database.connect()
    other.execute("SELECT 1 FROM out")
    one.execute("UPDATE out SET p = 1")
    one.commit()
    one.execute("CREATE TABLE k AS SELECT p FROM out")
    one.commit()

    def change(text):
        with closing(database._connect_natively()) as native:
            native.execute(f"ALTER TABLE k {text}")
        # The catalog is read again.
        one.execute("CREATE TABLE l (id INTEGER PRIMARY KEY)")
        one.execute("DROP TABLE l")
        one.commit()

    change("ADD COLUMN z INTEGER")
    with pytest.raises(tique.Error, match="has the columns p, z"):
        other.execute("SELECT * FROM k")
    change("DROP COLUMN z")
    one.checkpoint()
    with pytest.raises(tique.SerializationError, match="after this transaction began"):
        other.execute("SELECT * FROM k")
    other.rollback()
    assert other.execute("SELECT * FROM k").fetchall() == [(1,)]
