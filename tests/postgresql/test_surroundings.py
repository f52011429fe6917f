"""A database's settings: schemas of tables, order of text, results of sums."""

from __future__ import annotations

from decimal import Decimal

import psycopg
import pytest

import tique
from tests.plugins.engine import PostgreSQL


@pytest.fixture
def database(request):
    opened = PostgreSQL.fresh(request)
    yield opened
    opened.close()


def test_tables_are_looked_for_along_the_search_path(database):
    with psycopg.connect(database.place, autocommit=True) as native:
        native.execute("CREATE SCHEMA app")
        native.execute("CREATE TABLE public.second (id INTEGER PRIMARY KEY)")
    url = f"{database.url}&options=-csearch_path%3Dapp,public"
    with tique.connect(url) as connection:
        connection.execute("CREATE TABLE first (id INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO first VALUES (1)")
    tique.adopt(url, ["public.second"])
    with tique.connect(url) as connection:
        connection.execute("INSERT INTO second VALUES (1)")
        found = connection.execute("SELECT * FROM first JOIN second USING (id)")
        assert found.fetchall() == [(1,)]
        connection.commit()
        assert connection.execute("SELECT * FROM app.first").fetchall() == [(1,)]


def test_a_sum_is_of_the_engines_type_wherever_it_is_computed(database):
    connection = database.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE t (a INTEGER, b INTEGER, n INTEGER, big BIGINT, PRIMARY KEY (a, b))"
    )
    connection.execute("INSERT INTO t VALUES (1, 1, 2, 3), (1, 2, 4, 5)")
    connection.commit()
    connection.checkpoint()
    for _ in range(6):
        connection.execute("UPDATE t SET n = n WHERE a = 1 AND b = 1")
        connection.commit()
        query = "SELECT SUM(n), SUM(big), MAX(big) FROM t WHERE a = 1"
        found = connection.execute(query).fetchall()
        assert repr(found) == repr([(6, Decimal(8), 5)])
