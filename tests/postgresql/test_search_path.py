"""SET search_path: names without a schema mean what they mean to PostgreSQL."""

from __future__ import annotations

import psycopg
import pytest

import tique
from tests.plugins.engine import PostgreSQL

SCHEMAS = """
CREATE SCHEMA one; CREATE SCHEMA two; CREATE SCHEMA "odd ""Name, too";
"""
TABLES = [
    "CREATE TYPE {0}.mood AS ENUM ('{1}', 'both')",
    "CREATE SEQUENCE {0}.numbers START {2}",
    "CREATE FUNCTION {0}.label(a integer) RETURNS text LANGUAGE sql IMMUTABLE "
    "AS 'SELECT ''{1}'' || a'",
    "CREATE TABLE {0}.item (id INTEGER PRIMARY KEY DEFAULT nextval('{0}.numbers'), "
    "m {0}.mood, who TEXT DEFAULT '{1}')",
    "CREATE VIEW {0}.seen AS SELECT id, who FROM {0}.item",
]
PLACES = [("one", "a", 1), ("two", "b", 1001), ('"odd ""Name, too"', "c", 2001)]


@pytest.fixture
def database(request):
    opened = PostgreSQL.fresh(request)
    with psycopg.connect(opened.place, autocommit=True) as native:
        native.execute(SCHEMAS)
    yield opened
    opened.close()


@pytest.fixture
def connection(database):
    opened = database.connect(checkpoint="manual", autocommit=True)
    for place in PLACES:
        for statement in TABLES:
            opened.execute(statement.format(*place))
    opened.execute("CREATE TABLE public.common (id INTEGER PRIMARY KEY, place TEXT)")
    opened.execute("INSERT INTO public.common VALUES (1, 'public')")
    return opened


def rows(connection, query):
    try:
        return connection.execute(query).fetchall()
    except tique.Error as error:
        return error.sqlstate


STATEMENTS = [
    "SELECT current_schema(), current_schemas(false)::TEXT",
    "SHOW search_path",
    "INSERT INTO item DEFAULT VALUES RETURNING *",
    "INSERT INTO item (m) VALUES ('both'::mood) RETURNING id, who",
    "INSERT INTO item VALUES (nextval('numbers'), 'both', label(7)) RETURNING *",
    "SELECT count(*), min(who), max(who) FROM item WHERE m = 'both'::mood OR m IS NULL",
    "UPDATE item SET who = label(id) WHERE m = 'both'::mood RETURNING who",
    "SELECT * FROM seen ORDER BY id",
    "SELECT currval('numbers')",
    "SELECT place FROM common",
    "CREATE TABLE made (id INTEGER PRIMARY KEY, m mood, item INTEGER REFERENCES item)",
    "INSERT INTO made SELECT id, m, id FROM item",
    "CREATE INDEX ix_made ON made (m)",
    "CREATE VIEW made_too AS SELECT id, m FROM made WHERE m = 'both'",
    "SELECT count(*) FROM made_too",
    "ALTER TABLE made ADD COLUMN n INTEGER DEFAULT 5",
    "SELECT sum(n) FROM made",
    "SELECT table_schema FROM information_schema.tables WHERE table_name = 'made'",
    "DROP VIEW made_too",
    "DROP INDEX ix_made",
    "DROP TABLE made",
    "DELETE FROM item WHERE who = label(7)",
    "SELECT count(*) FROM item",
]
PATHS = [
    "SET search_path TO one, public",
    "SET search_path = 'two', 'public'",
    "SET search_path TO nowhere, two, one, public",
    'SET search_path TO "odd ""Name, too", public',
    "SELECT set_config('search_path', '\"odd \"\"Name, too\", public', false)",
    "SET SCHEMA 'one'",
    'SET search_path TO "$user", one',
    "SET search_path TO ''",
    "SELECT set_config('search_path', '', false)",
    "SET search_path TO pg_catalog, two",
]


def outcome(connection, statement):
    try:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else None
    except (tique.Error, psycopg.Error) as error:
        # The same, or a refusal where a name means nothing.
        return "an error" if error.sqlstate else str(error)


@pytest.fixture
def native(database):
    """PostgreSQL itself, with the same schemas in a database of its own."""
    with psycopg.connect(database.place, autocommit=True) as first:
        first.execute("DROP DATABASE IF EXISTS paths_natively")
        first.execute("CREATE DATABASE paths_natively")
        with psycopg.connect(
            database.place, dbname="paths_natively", autocommit=True
        ) as opened:
            opened.prepare_threshold = None
            opened.execute(SCHEMAS)
            for place in PLACES:
                for statement in TABLES:
                    opened.execute(statement.format(*place))
            opened.execute(
                "CREATE TABLE public.common (id INTEGER PRIMARY KEY, place TEXT); "
                "INSERT INTO public.common VALUES (1, 'public')"
            )
            yield opened
        first.execute("DROP DATABASE paths_natively")


@pytest.mark.slow
@pytest.mark.parametrize("level", ["recent", "stored"])
def test_as_natively(connection, native, level):
    """The same answers as PostgreSQL's own, along every path, with and without versions."""
    for path in PATHS:
        native.execute(path)
        connection.execute(path)
        for statement in STATEMENTS:
            if level == "stored":
                connection.checkpoint()
            if "$user" in path and statement.startswith("SHOW"):
                # The tests' role is called tique: its schema is left out.
                continue
            expected = outcome(native, statement)
            assert outcome(connection, statement) == expected, (path, statement)
        native.execute("RESET search_path")
        connection.execute("RESET search_path")


def test_connections_have_their_own(database, connection):
    """Plans are kept by path: one text, two connections, two tables."""
    other = database.connect(checkpoint="manual", autocommit=True)
    connection.execute("SET search_path TO one")
    other.execute("SET search_path TO two")
    for _ in range(3):
        connection.execute("INSERT INTO item (who) VALUES ('mine')")
        other.execute("INSERT INTO item (who) VALUES ('yours')")
    for each, who in ((connection, "mine"), (other, "yours")):
        assert rows(each, "SELECT DISTINCT who FROM item") == [(who,)]
        assert rows(each, "SELECT count(*) FROM item") == [(3,)]
    connection.execute("SET search_path TO two, one")
    assert rows(connection, "SELECT DISTINCT who FROM item") == [("yours",)]
    assert rows(connection, "SELECT DISTINCT who FROM one.item") == [("mine",)]
    cursor = connection.cursor()
    cursor.execute("PREPARE p AS SELECT min(who) FROM item")
    assert rows(connection, "EXECUTE p") == [("yours",)]
    connection.execute("SET search_path TO one")
    assert rows(connection, "EXECUTE p") == [("mine",)]
    connection.execute("BEGIN")
    connection.execute("DECLARE c CURSOR FOR SELECT who FROM item")
    assert rows(connection, "FETCH c") == [("mine",)]
    connection.execute("COMMIT")
    connection.execute("RESET search_path")
    assert rows(connection, "SELECT * FROM item") == "42P01"


def test_transactions_take_it_back(database, connection):
    """SET LOCAL, ROLLBACK and ROLLBACK TO, also with DDL, whose engine session rolls back."""
    connection.execute("SET search_path TO one")
    where = "SELECT current_schema()"
    for ddl in ("SELECT 1", "CREATE TABLE public.t (id INTEGER)"):
        connection.execute("BEGIN")
        connection.execute(ddl)
        connection.execute("SET LOCAL search_path TO two")
        assert rows(connection, where) == [("two",)]
        connection.execute("INSERT INTO item (id) VALUES (77)")
        connection.execute("SAVEPOINT s")
        connection.execute("SET search_path TO public")
        connection.execute("CREATE TABLE u (id INTEGER)")
        assert rows(connection, "SELECT * FROM item") == "42P01"
        connection.rollback()
        assert rows(connection, where) == [("one",)]
        assert rows(connection, "SELECT count(*) FROM item") == [(0,)]
        connection.execute("BEGIN")
        connection.execute("SET LOCAL search_path TO two")
        connection.execute("SAVEPOINT s")
        connection.execute("SET search_path TO public")
        assert rows(connection, "SELECT place FROM common") == [("public",)]
        connection.execute("ROLLBACK TO s")
        connection.execute("INSERT INTO item (id) VALUES (77)")
        connection.execute("COMMIT")
        assert rows(connection, where) == [("one",)]
        assert rows(connection, "SELECT id FROM two.item") == [(77,)]
        connection.execute("DELETE FROM two.item")


def test_definitions_are_compared_without_it(connection):
    """A path along which types have short names makes no other definitions of them."""
    connection.execute("SET search_path TO one, public")
    # It must change no table that it leaves.
    connection.execute("DROP SCHEMA two CASCADE")
    # The child's column is of the type of the parent's.
    connection.execute("CREATE TABLE feeling (m mood PRIMARY KEY)")
    connection.execute("CREATE TABLE felt (m mood REFERENCES feeling)")
    connection.execute("INSERT INTO feeling VALUES ('both')")
    connection.execute("INSERT INTO felt SELECT m FROM feeling")
    assert rows(connection, "SELECT m::TEXT FROM felt") == [("both",)]
    assert rows(connection, "SELECT * FROM two.item") == "42P01"


def test_schemas_that_are_made_later(database, connection):
    """A schema of the path is looked in as soon as it is there, and before others."""
    connection.execute("SET search_path TO later, one")
    connection.execute("INSERT INTO item (who) VALUES ('one')")
    other = database.connect(checkpoint="manual", autocommit=True)
    other.execute("CREATE SCHEMA later")
    other.execute("CREATE TABLE later.item (who TEXT)")
    other.execute("INSERT INTO later.item VALUES ('later')")
    assert rows(connection, "SELECT who FROM item") == [("later",)]
    connection.execute("CREATE TABLE new (id INTEGER)")
    assert rows(other, "SELECT * FROM later.new") == []
    other.execute("DROP SCHEMA later CASCADE")
    assert rows(connection, "SELECT who FROM item") == [("one",)]


def test_what_is_not_managed_hides_what_is(database, connection):
    """P10: never the table behind the one that PostgreSQL would take."""
    with psycopg.connect(database.place, autocommit=True) as native:
        native.execute("CREATE SCHEMA front")
        native.execute("CREATE TABLE front.common (id INTEGER, place TEXT)")
    other = database.connect(checkpoint="manual", autocommit=True)
    other.execute("SET search_path TO front, public")
    for statement in (
        "SELECT * FROM common",
        "INSERT INTO common VALUES (2, 'x')",
        "DROP TABLE common",
    ):
        with pytest.raises(tique.Error) as caught:
            other.execute(statement)
        assert caught.value.sqlstate in ("42P01", "0A000")
    assert rows(other, "SELECT place FROM public.common") == [("public",)]


@pytest.mark.parametrize(
    "path",
    [
        "SET search_path TO tique",
        "SET search_path TO public, tique",
        "SET search_path TO 'TIQUE'",
        "SET SCHEMA 'tique'",
        "SELECT set_config('search_path', 'public,tique', false)",
        "SELECT set_config('search_path', '\"tique\"', true)",
        "SET search_path TO public, pg_catalog",
        "SET search_path TO pg_temp, public",
        "SET search_path TO pg_toast",
    ],
)
def test_refused(connection, path):
    """P11: tique's own tables have no names without their schema, nor has pg_temp."""
    with pytest.raises(tique.NotSupportedError, match="search_path"):
        connection.execute(path)
    assert rows(connection, "SELECT current_schema()") == [("public",)]


@pytest.mark.parametrize("text", ["a b", "a,", ",", '"a', 'a"b"', "a;b", "1a", "'a'"])
def test_no_list_of_names(connection, text):
    """P11: what set_config() is given is read as PostgreSQL reads it, or is an error."""
    assert rows(connection, "SELECT current_schema()") == [("public",)]
    with pytest.raises(tique.ProgrammingError) as caught:
        connection.execute("SELECT set_config('search_path', %s, false)", [text])
    assert caught.value.sqlstate == "22023"
    assert rows(connection, "SELECT current_schema()") == [("public",)]


def test_the_first_functions_are_postgresqls(database, connection):
    """P11: a schema's own lower() and operator take no part in tique's statements."""
    with psycopg.connect(database.place, autocommit=True) as native:
        native.execute(
            "CREATE SCHEMA evil; "
            "CREATE FUNCTION evil.lower(text) RETURNS text LANGUAGE sql "
            "AS 'SELECT ''evil''::text'; "
            "CREATE FUNCTION evil.format_type(oid, integer) RETURNS text LANGUAGE sql "
            "AS 'SELECT ''evil''::text'; "
            "CREATE FUNCTION evil.equal(integer, integer) RETURNS boolean LANGUAGE sql "
            "AS 'SELECT true'; "
            "CREATE OPERATOR evil.= (LEFTARG = integer, RIGHTARG = integer, "
            "FUNCTION = evil.equal); "
            "CREATE TYPE evil.\"integer\" AS ENUM ('x'); "
            "CREATE DOMAIN evil.text AS integer"
        )
    other = database.connect(checkpoint="manual", autocommit=True)
    other.execute("SET search_path TO evil, one")
    other.execute("CREATE TABLE made (id INTEGER PRIMARY KEY, t VARCHAR(9))")
    other.execute("INSERT INTO made VALUES (1, 'A'), (2, 'B')")
    for _ in range(2):
        assert rows(other, "SELECT t FROM made WHERE id = 2") == [("B",)]
        assert rows(other, "DELETE FROM made WHERE id = 3 RETURNING *") == []
        other.checkpoint()
    other.execute("ALTER TABLE made ADD COLUMN n INTEGER")
    assert rows(other, "SELECT count(*) FROM made WHERE id = 1") == [(1,)]


def test_temporary_tables_and_appending(database, connection):
    pyarrow = pytest.importorskip("pyarrow")
    connection.execute("SET search_path TO two, public")
    connection.execute("CREATE TEMPORARY TABLE t AS SELECT who FROM seen")
    connection.execute("CREATE TEMPORARY VIEW v AS SELECT who FROM item")
    connection.cursor().append("item", pyarrow.table({"who": ["x", "y"]}))
    assert rows(connection, "SELECT count(*) FROM v") == [(2,)]
    connection.execute("SET search_path TO one, public")
    assert rows(connection, "SELECT count(*) FROM v") == [(2,)]
    assert rows(connection, "SELECT count(*) FROM item") == [(0,)]
    assert rows(connection, "SELECT count(*) FROM t") == [(0,)]


def test_a_new_session_has_it(database, connection):
    """A session of the server's that was lost takes nothing along."""
    connection.execute("SET search_path TO two")
    with psycopg.connect(database.place, autocommit=True) as native:
        pid = connection.execute("SELECT pg_backend_pid()").fetchall()[0][0]
        native.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    assert rows(connection, "SELECT pg_backend_pid()") != [(pid,)]
    assert rows(connection, "SELECT current_schema()") == [("two",)]
    connection.execute("INSERT INTO item DEFAULT VALUES")
    assert rows(connection, "SELECT who FROM two.item") == [("b",)]


def test_a_foreign_keys_type_is_that_which_the_path_leads_to(connection):
    """Two types of one name are two types; nothing is left of what is refused."""
    connection.execute("CREATE TABLE one.parent (m one.mood PRIMARY KEY)")
    connection.execute("INSERT INTO one.parent VALUES ('a')")
    connection.execute("SET search_path = two, public")
    child = "CREATE TABLE child (m mood REFERENCES one.parent)"
    with pytest.raises(tique.NotSupportedError, match=r"two\.mood .*one\.mood"):
        connection.execute(child)
    with pytest.raises(tique.ProgrammingError, match="child"):
        connection.execute("SELECT * FROM child")
    connection.execute("SET search_path = one, public")
    connection.execute(child)
    connection.execute("INSERT INTO child VALUES ('a')")
    with pytest.raises(tique.IntegrityError):
        connection.execute("INSERT INTO child VALUES ('both')")
