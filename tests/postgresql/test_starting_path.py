"""A search path of the URL, the role or the database means what it means to PostgreSQL (P12)."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

import tique
from tests.plugins.engine import PostgreSQL


@pytest.fixture
def database(request):
    opened = PostgreSQL.fresh(request)
    yield opened
    opened.close()


def url_of(database, path):
    return f"{database.url}&options=-csearch_path%3D{path}"


def places(native, name):
    return {
        schema
        for (schema,) in native.execute(
            "SELECT schemaname FROM pg_tables WHERE tablename = %s "
            "AND schemaname <> 'tique'",
            [name],
        )
    }


@pytest.mark.slow
@pytest.mark.parametrize("is_tiques", [True, False], ids=["through", "natively"])
def test_a_schema_that_is_made_later(database, is_tiques):
    """Also where it comes from another program."""
    url = url_of(database, "app,public")
    with (
        tique.connect(url, autocommit=True) as connection,
        closing(psycopg.connect(database.place, autocommit=True)) as native,
    ):
        connection.execute("CREATE TABLE first (id INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO first VALUES (1)")
        assert connection.execute("SHOW search_path").fetchone() == ("app,public",)
        (connection if is_tiques else native).execute("CREATE SCHEMA app")
        connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO item VALUES (2)")
        assert places(native, "item") == {"app"}
        assert places(native, "first") == {"public"}
        connection.execute("CREATE TABLE first (id INTEGER PRIMARY KEY, n INTEGER)")
        assert connection.execute("SELECT * FROM first").fetchall() == []
        assert connection.execute("SELECT * FROM public.first").fetchall() == [(1,)]
        connection.execute("DROP TABLE app.first")
        assert connection.execute("SELECT * FROM first").fetchall() == [(1,)]
        connection.execute("DROP TABLE item")
        (connection if is_tiques else native).execute("DROP SCHEMA app")
        connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY)")
        assert places(native, "item") == {"public"}
        connection.execute("RESET search_path")
        connection.execute("SET search_path TO public")
        connection.execute("RESET search_path")
        assert connection.execute("SHOW search_path").fetchone() == ("app,public",)


@pytest.mark.slow
def test_other_connections_see_it_too(database):
    """Of one process and of another one, whose plans were made before."""
    url = url_of(database, "app,public")
    with (
        tique.connect(url, autocommit=True) as one,
        tique.connect(url, autocommit=True) as two,
        tique.connect(
            f"{url}&application_name=other", autocommit=True
        ) as other_process,
    ):
        one.execute("CREATE TABLE item (id INTEGER PRIMARY KEY)")
        one.execute("INSERT INTO item VALUES (1)")
        for each in (one, two, other_process):
            for _ in range(3):
                assert each.execute("SELECT id FROM item").fetchall() == [(1,)]
        one.execute("CREATE SCHEMA app")
        one.execute("CREATE TABLE app.item (id INTEGER PRIMARY KEY)")
        for each in (two, other_process):
            assert each.execute("SELECT id FROM item").fetchall() == []
            each.execute("UPDATE item SET id = 7 WHERE id = 1")
        assert one.execute("SELECT id FROM public.item").fetchall() == [(1,)]


def test_the_roles_own_schema_and_its_privileges(database):
    """``"$user"`` comes when it is made; a schema without USAGE is passed over."""
    with closing(psycopg.connect(database.place, autocommit=True)) as native:
        native.execute(
            "DROP ROLE IF EXISTS pathfinder; "
            "CREATE ROLE pathfinder LOGIN SUPERUSER PASSWORD 'x'"
        )
        try:
            url = f"{database.url}&user=pathfinder&password=x"
            with tique.connect(url, autocommit=True) as connection:
                connection.execute("CREATE TABLE a (id INTEGER PRIMARY KEY)")
                native.execute("CREATE SCHEMA pathfinder AUTHORIZATION pathfinder")
                connection.execute("CREATE TABLE b (id INTEGER PRIMARY KEY)")
                assert (places(native, "a"), places(native, "b")) == (
                    {"public"},
                    {"pathfinder"},
                )
                native.execute(
                    "ALTER SCHEMA pathfinder OWNER TO tique; "
                    "GRANT USAGE ON SCHEMA tique TO pathfinder; "
                    "GRANT ALL ON SCHEMA public TO PUBLIC"
                )
                connection.execute("DROP TABLE b")
                shown = connection.execute("SELECT current_schemas(false)::text")
                assert shown.fetchone() == ("{pathfinder,public}",)
        finally:
            native.execute("DROP OWNED BY pathfinder CASCADE; DROP ROLE pathfinder")


def test_no_schema_that_is_there(database):
    with tique.connect(url_of(database, "nowhere"), autocommit=True) as connection:
        with pytest.raises(tique.ProgrammingError) as caught:
            connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY)")
        assert caught.value.sqlstate == "3F000"
        connection.execute("CREATE TABLE public.item (id INTEGER PRIMARY KEY)")
        with pytest.raises(tique.ProgrammingError):
            connection.execute("SELECT * FROM item")


@pytest.mark.parametrize("path", ["tique", "public,tique", "pg_temp,public"])
def test_refused(database, path):
    """P11."""
    with pytest.raises(tique.NotSupportedError, match="search_path"):
        tique.connect(url_of(database, path))


def test_it_costs_no_statement_afterwards(database):
    """Nor does a blind update: it begins without a question."""
    with tique.connect(
        url_of(database, "app,public"), autocommit=True, checkpoint="manual"
    ) as connection:
        connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, n INTEGER)")
        connection.execute("INSERT INTO item VALUES (1, 0)")

        def cost(statement):
            before = connection.info.engine_statements
            connection.execute(statement)
            return connection.info.engine_statements - before

        for statement in (
            "SELECT n FROM item WHERE id = 1",
            "UPDATE item SET n = n + 1",
        ):
            assert min(cost(statement) for _ in range(5)) <= 2
        blind = "UPDATE item SET n = n + 1 WHERE id = 1"
        assert min(cost(blind) for _ in range(9)) == 1
