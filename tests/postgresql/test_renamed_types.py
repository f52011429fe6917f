"""ALTER TYPE … RENAME, with recent versions of rows that have values of the type (P1, P4)."""

from __future__ import annotations

from contextlib import closing, suppress

import psycopg
import pytest

import tique
from tests.plugins.postgresql import empty

ROWS = "INSERT INTO t VALUES (1, 'sad', '{sad,ok}'), (2, 'ok', '{}')"
EVERY = "SELECT id, m::text, l::text FROM t ORDER BY id"


@pytest.fixture
def url(postgresql_cluster):
    empty(postgresql_cluster.socket_url)
    yield postgresql_cluster.socket_url
    empty(postgresql_cluster.socket_url)


def made(url, **options):
    connection = tique.connect(url, checkpoint="manual", **options)
    connection.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, m mood DEFAULT 'sad', l mood[], "
        "CHECK (m <> 'ok' OR id > 1))"
    )
    connection.execute(ROWS)
    connection.commit()
    return connection


@pytest.mark.slow
@pytest.mark.parametrize("is_stored", [False, True])
def test_values_and_types_get_other_names(url, is_stored):
    connection, other = made(url), tique.connect(url)
    # Staging tables are the sessions' own affair.
    other.execute("INSERT INTO t SELECT 5, 'ok'::mood, '{}'")
    other.rollback()
    if is_stored:
        connection.checkpoint()
    assert len(other.execute(EVERY).fetchall()) == 2
    other.commit()
    connection.execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'it''s bad'")
    expected = [(1, "it's bad", '{"it\'s bad",ok}'), (2, "ok", "{}")]
    for each in (connection, other):
        assert each.execute(EVERY).fetchall() == expected
        each.commit()
    connection.execute("ALTER TYPE mood RENAME TO humour")
    connection.commit()
    other.execute("INSERT INTO t VALUES (3, DEFAULT, ARRAY['ok']::humour[])")
    other.execute("UPDATE t SET m = 'it''s bad', l = l || m WHERE id = 2")
    other.commit()
    connection.checkpoint()
    expected = [expected[0], (2, "it's bad", "{ok}"), (3, "it's bad", "{ok}")]
    for each in (connection, other):
        assert each.execute(EVERY).fetchall() == expected
        assert each.execute("SELECT id FROM t WHERE m > 'it''s bad'").fetchall() == []
        each.commit()
        with pytest.raises(tique.Error):
            each.execute("INSERT INTO t (id, m) VALUES (9, 'sad')")
        each.rollback()
    with pytest.raises(tique.errors.IntegrityError):
        connection.execute("INSERT INTO t (id, m) VALUES (0, 'ok')")
    connection.close()
    other.close()
    with tique.connect(url) as connection:
        assert connection.execute(EVERY).fetchall() == expected
    tique.detach(url)
    with closing(psycopg.connect(url)) as native:
        assert native.execute(EVERY.replace("FROM t", "FROM public.t")).fetchall() == (
            expected
        )


def test_values_are_changed_without_tique(url):
    """P4: what is recent has the names of before: no row is lost, and all are back with them."""
    connection, other = made(url), tique.connect(url)
    connection.execute("ALTER TABLE t ALTER l TYPE TEXT")
    connection.execute("UPDATE t SET m = 'sad' WHERE id = 2")
    connection.commit()
    with closing(psycopg.connect(url, autocommit=True)) as native:
        native.execute("ALTER TYPE mood ADD VALUE 'fair' BEFORE 'ok'")
        other.execute("INSERT INTO t VALUES (3, 'fair', '{fair}')")
        other.commit()
        native.execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'bad'")
        for statement in (
            "SELECT max(m) FROM t",
            "INSERT INTO t SELECT 4, max(m) FROM t",
        ):
            with suppress(tique.Error):
                other.execute(statement)
            other.rollback()
        with suppress(tique.Error):
            connection.checkpoint()
        native.execute("ALTER TYPE mood RENAME VALUE 'bad' TO 'sad'")
    expected = [(1, "sad", "{sad,ok}"), (2, "sad", "{}"), (3, "fair", "{fair}")]
    for each in (connection, other):
        assert each.execute(EVERY).fetchall() == expected
        each.rollback()
    connection.checkpoint()
    assert connection.execute(EVERY).fetchall() == expected
    connection.close()
    other.close()
    with tique.connect(url) as connection:
        assert connection.execute(EVERY).fetchall() == expected


@pytest.mark.slow
def test_a_type_that_no_table_has(url):
    with tique.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('a')")
        connection.execute("ALTER TYPE mood RENAME VALUE 'a' TO 'b'")
        connection.execute("ALTER TYPE public.mood RENAME TO other")
        assert connection.execute("SELECT 'b'::other::text").fetchall() == [("b",)]
        connection.execute("CREATE DOMAIN d AS INTEGER")
        connection.execute("ALTER DOMAIN d RENAME TO e")
        assert connection.execute("SELECT 1::e").fetchall() == [(1,)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "others",
    [
        ["CREATE TABLE u (m mood)"],
        ["CREATE DOMAIN mild AS mood", "CREATE TABLE u (m mild[])"],
        ["CREATE TYPE pair AS (a integer, b mood)", "CREATE TABLE u (m pair)"],
        ["CREATE TYPE span AS RANGE (SUBTYPE = mood)", "CREATE TABLE u (m span)"],
    ],
    ids=["plain", "domain", "composite", "range"],
)
def test_several_tables(url, others):
    """P1, P4: also where the type is inside another one."""
    connection, other = made(url, autocommit=True), tique.connect(url, autocommit=True)
    values = {"u (m mood)": "'ok'", "m mild[]": "'{ok}'", "m pair": "'(1,ok)'"}
    value = next((v for k, v in values.items() if k in others[-1]), "'[ok,ok]'")
    for statement in others:
        connection.execute(statement)
    connection.execute(f"INSERT INTO u VALUES ({value})")
    before = other.execute("SELECT m::text FROM u").fetchall()
    connection.execute("ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'")
    connection.execute("ALTER TYPE mood RENAME TO humour")
    after = [(text.replace("ok", "fine"),) for (text,) in before]
    for _ in range(2):
        for each in (connection, other):
            assert each.execute("SELECT m::text FROM u").fetchall() == after
            assert each.execute("SELECT id FROM t WHERE m = 'fine'").fetchall() == [
                (2,)
            ]
        connection.checkpoint()
    other.execute("INSERT INTO u SELECT * FROM u")
    other.execute("UPDATE t SET m = 'fine' WHERE id = 2")
    assert connection.execute("SELECT count(*) FROM u").fetchall() == [(2,)]
    connection.close()
    other.close()


@pytest.mark.slow
def test_several_tables_keep_their_foreign_keys(url):
    """P9."""
    connection = tique.connect(url, checkpoint="manual", autocommit=True)
    connection.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    connection.execute("CREATE TABLE p (id INTEGER PRIMARY KEY, m mood)")
    connection.execute("CREATE TABLE c (m mood, p INTEGER REFERENCES p)")
    connection.execute("CREATE TABLE d (p INTEGER REFERENCES p ON DELETE CASCADE)")
    connection.execute("INSERT INTO p VALUES (1, 'ok'), (2, 'ok')")
    connection.execute("INSERT INTO c VALUES ('sad', 1)")
    connection.execute("INSERT INTO d VALUES (2)")
    connection.execute("ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'")
    with pytest.raises(tique.errors.ForeignKeyViolation):
        connection.execute("INSERT INTO c VALUES ('fine', 3)")
    with pytest.raises(tique.errors.IntegrityError):
        connection.execute("DELETE FROM p WHERE id = 1")
    connection.execute("DELETE FROM p WHERE id = 2")
    assert connection.execute("SELECT * FROM d").fetchall() == []
    connection.close()


@pytest.mark.slow
def test_a_temporary_table_of_the_type(url):
    """P10: it is no managed table."""
    connection = made(url, autocommit=True)
    rename = "ALTER TYPE mood RENAME VALUE 'sad' TO 'bad'"
    connection.execute("CREATE TEMPORARY TABLE u (m mood)")
    with pytest.raises(tique.NotSupportedError, match="not managed"):
        connection.execute(rename)
    connection.execute("DROP TABLE u")
    connection.execute(rename)
    connection.close()


@pytest.mark.slow
def test_beside_transactions_that_use_the_table(url):
    """P1, P3: they keep it from happening, or run again."""
    connection, other = made(url), tique.connect(url)
    other.execute(EVERY).fetchall()
    with pytest.raises(tique.OperationalError) as refused:
        connection.execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'bad'")
    assert refused.value.sqlstate == "55006"
    other.rollback()
    connection.rollback()
    connection.execute("BEGIN")
    connection.execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'bad'")
    connection.execute("UPDATE t SET m = 'bad' WHERE id = 2")
    connection.execute("ROLLBACK")
    rows = connection.execute("SELECT m::text FROM t ORDER BY id").fetchall()
    assert rows == [("sad",), ("ok",)]
    connection.close()
    other.close()
