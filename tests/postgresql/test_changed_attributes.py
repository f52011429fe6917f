"""Composite types that are changed without tique, beside recent values of them (P1, P4).

In memory and in the log a value is its text, which has the attributes by their places.
"""

from __future__ import annotations

import re
from contextlib import closing

import psycopg
import pytest

import tique
from tests.plugins.postgresql import empty

FORMS = {
    "place": "ROW({0}, 'y')",
    "place[]": "ARRAY[ROW({0}, 'y')::place, NULL]",
    "spot": "ROW({0}, 'y')::place",
    "route": "ROW(ARRAY[ROW({0}, 'y')::place], ROW({0}, 'z'), 7)",
}
EVERY = "SELECT id, p::text FROM public.t ORDER BY id"


@pytest.fixture
def url(postgresql_cluster):
    empty(postgresql_cluster.socket_url)
    yield postgresql_cluster.socket_url
    empty(postgresql_cluster.socket_url)


@pytest.fixture
def native(url):
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        yield connection


@pytest.fixture(params=FORMS)
def changing(url, request):
    """Two connections, with a row in storage that has changed and a recent one."""
    value = FORMS[request.param].format
    connection = tique.connect(url, checkpoint="manual", autocommit=True)
    connection.execute("CREATE TYPE place AS (x INTEGER, y TEXT)")
    connection.execute("CREATE DOMAIN spot AS place")
    connection.execute("CREATE TYPE route AS (a place[], b spot, n INTEGER)")
    connection.execute(f"CREATE TABLE t (id INTEGER PRIMARY KEY, p {request.param})")
    connection.execute("CREATE TABLE u (id INTEGER)")
    connection.execute(f"INSERT INTO t VALUES (1, {value(1)}), (2, {value(2)})")
    connection.checkpoint()
    connection.execute(f"UPDATE t SET p = {value(10)} WHERE id = 1")
    connection.execute(f"INSERT INTO t VALUES (3, {value(3)})")
    connection.execute("INSERT INTO u VALUES (1)")
    other = tique.connect(url, checkpoint="manual", autocommit=True)
    yield connection, other
    connection.close()
    other.close()


def rows(*connections):
    """What all of them read."""
    (first, *others) = [each.execute(EVERY).fetchall() for each in connections]
    assert all(found == first for found in others)
    return first


def test_none_is_dropped(url, native, changing):
    """With another one in its place, values would be read as others."""
    before = rows(*changing)
    for drop in ("x", "y"):
        with pytest.raises(psycopg.errors.DependentObjectsStillExist, match=drop):
            native.execute(f"ALTER TYPE place DROP ATTRIBUTE {drop}")
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        native.execute("ALTER TYPE place ALTER ATTRIBUTE x TYPE TEXT")
    assert rows(*changing) == before
    changing[0].checkpoint()
    assert rows(native, *changing) == before


def test_they_get_other_names(native, changing):
    """Also each other's."""
    before = rows(*changing)
    for name, new in (("x", "w"), ("y", "x"), ("w", "y")):
        native.execute(f"ALTER TYPE place RENAME ATTRIBUTE {name} TO {new}")
    assert rows(*changing) == before
    changing[0].checkpoint()
    assert rows(native, *changing) == before


def test_one_more(url, native, changing):
    """P4: the table is stopped, and no other one, until it is taken back."""
    before, stored = rows(*changing), rows(native)
    native.execute("ALTER TYPE place ADD ATTRIBUTE z INTEGER")
    with tique.connect(url, checkpoint="manual", autocommit=True) as late:
        for each in (*changing, late):
            with pytest.raises(tique.DataError, match="malformed record"):
                each.execute(EVERY)
            assert each.execute("SELECT id FROM u").fetchall() == [(1,)]
        with pytest.raises(tique.DataError, match="t cannot be folded"):
            late.checkpoint()
        assert native.execute("SELECT id FROM public.u").fetchall() == [(1,)]
        native.execute("ALTER TYPE place DROP ATTRIBUTE z")
        assert rows(native) == stored
        assert rows(late, *changing) == before
        late.checkpoint()
    assert rows(native, *changing) == before


def test_one_more_beside_none_that_is_recent(native, changing):
    connection, other = changing
    connection.checkpoint()
    native.execute("ALTER TYPE place ADD ATTRIBUTE z INTEGER")
    assert len(rows(native, *changing)) == 3
    connection.execute("UPDATE t SET p = p WHERE id = 1")
    other.checkpoint()
    assert len(rows(native, *changing)) == 3


@pytest.mark.parametrize("changing", ["place"], indirect=True)
def test_rows_from_before_and_after(url, native, changing):
    """P4: one that has the new attribute goes by its key."""
    before = rows(*changing)
    native.execute("ALTER TYPE place ADD ATTRIBUTE z INTEGER")
    changing[0].execute("INSERT INTO t VALUES (4, ROW(4, 'y', 5))")
    native.execute("ALTER TYPE place DROP ATTRIBUTE z")
    with tique.connect(url, checkpoint="manual", autocommit=True) as late:
        for each in (*changing, late):
            with pytest.raises(tique.DataError, match="malformed record"):
                each.execute(EVERY)
        late.execute("DELETE FROM t WHERE id = 4")
        assert rows(late, *changing) == before
        late.checkpoint()
    assert rows(native, *changing) == before


def test_detached_for_it(url, native, changing):
    """What the documentation says to do."""
    before = rows(*changing)
    for each in changing:
        each.close()
    tique.detach(url, ["t"])
    native.execute("ALTER TYPE place DROP ATTRIBUTE y")
    native.execute("ALTER TYPE place ADD ATTRIBUTE y TEXT")
    tique.adopt(url, ["t"])
    with tique.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE t SET p = p")
        assert rows(connection) == rows(native)
        assert rows(connection) == [(i, re.sub("[yz]", "", p)) for i, p in before]
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        native.execute("ALTER TYPE place DROP ATTRIBUTE y")


def test_types_of_others_are_theirs(native, url):
    """Values of their types are not held as text, and nothing stands in their way."""
    native.execute("CREATE TABLE w (a INTEGER, b INTEGER)")
    with tique.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, p w)")
        connection.execute("INSERT INTO t VALUES (1, ROW(1, 2)::w)")
        native.execute("ALTER TABLE w DROP COLUMN a, ADD COLUMN c INTEGER")
        for _ in range(2):
            assert rows(connection) == [(1, "(2,)")]
            connection.checkpoint()


def test_a_database_of_before(database):
    """Its types are kept so when it is recovered."""
    connection = database.connect(autocommit=True)
    connection.execute("CREATE TYPE place AS (x INTEGER, y TEXT)")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, p place)")
    with closing(database.native()) as native:
        native.execute("ALTER TABLE tique.tique_cache_1 ALTER p DROP DEFAULT")
    database.restart()
    database.connect().close()
    with (
        closing(database.native()) as native,
        pytest.raises(psycopg.errors.DependentObjectsStillExist),
    ):
        native.execute("ALTER TYPE place DROP ATTRIBUTE x")
