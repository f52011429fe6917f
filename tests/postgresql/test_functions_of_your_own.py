"""Functions of the application's own: which of them a statement may call (P1, P10, P11)."""

from __future__ import annotations

import psycopg
import pytest

import tique

REFUSED = "it might read or change what is in no snapshot"


@pytest.fixture
def connection(database):
    connection = database.connect(autocommit=True, checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, note TEXT)")
    connection.execute("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b')")
    connection.execute("CREATE SCHEMA s")
    return connection


def create(connection, body, name="f", head="(a integer) RETURNS integer LANGUAGE sql"):
    connection.execute(f"CREATE FUNCTION {name} {head} {body}")


def called(connection, call="f(v)"):
    return connection.execute(f"SELECT {call} FROM t ORDER BY id").fetchall()


EXPRESSIONS = {
    "AS 'SELECT a + 1'": 11,
    "AS 'select $1 * abs(-2); '": 20,
    "IMMUTABLE STRICT AS $$ SELECT CASE WHEN a > 5 THEN a ELSE 0 END $$": 10,
    "VOLATILE AS 'SELECT a'": 10,
    "RETURN a - 1": 9,
    "AS $$ SELECT pg_catalog.length(upper('x' || a::text)) $$": 3,
    "AS 'SELECT max(x) FROM unnest(ARRAY[a]) AS x'": 10,
}


@pytest.mark.parametrize("body", EXPRESSIONS)
def test_an_expression_may_be_called(connection, body):
    create(connection, body)
    expected = EXPRESSIONS[body]
    assert called(connection)[0] == (expected,)
    assert called(connection, "public.f(v)")[0] == (expected,)
    connection.execute("UPDATE t SET v = f(v) WHERE f(v) = %s", (expected,))
    assert called(connection, "v")[0] == (expected,)
    connection.execute("INSERT INTO t SELECT 9, f(10), 'c' ON CONFLICT DO NOTHING")
    connection.execute("CREATE VIEW w AS SELECT f(v) AS x FROM t")
    assert len(connection.execute("SELECT * FROM w").fetchall()) == 3


BEHIND = (
    "AS 'SELECT count(*)::integer FROM t'",
    "AS 'SELECT (SELECT v FROM public.t WHERE id = a)'",
    "AS 'SELECT 1 FROM pg_class'",
    "AS 'WITH x AS (SELECT 1) SELECT * FROM x'",
    "AS 'SELECT a; SELECT a'",
    "AS 'UPDATE t SET v = 0 RETURNING v'",
    "AS 'VALUES (1)'",
    "SET search_path = s AS 'SELECT a'",
    "AS $$ SELECT length(query_to_xml('SELECT * FROM t', true, true, '')::text) $$",
    "AS 'SELECT g(a)'",
    "AS 'SELECT (a.*).x'",
    "RETURN (SELECT max(v) FROM t)",
    "AS 'SELECT pg_sleep(0)::text::integer; DELETE FROM t'",
)


@pytest.mark.parametrize("body", BEHIND)
def test_what_may_read_tables_is_not_called(connection, body):
    """Its rows would be those of storage, and not of the snapshot (P1)."""
    connection.execute("SET client_min_messages = 'error'")
    create(connection, "AS 'SELECT (SELECT count(*)::integer FROM t)'", "g")
    try:
        create(connection, body)
    except tique.ProgrammingError:
        return
    for call in ("f(v)", "public.f(1)", "(SELECT f(1))"):
        with pytest.raises(tique.NotSupportedError, match=REFUSED):
            called(connection, call)
    with pytest.raises(tique.NotSupportedError, match=REFUSED):
        connection.execute("UPDATE t SET v = f(v)")


def test_defaults_of_arguments_are_a_part(connection):
    create(connection, "AS 'SELECT (SELECT 1 FROM t LIMIT 1)'", "g")
    head = "(a integer DEFAULT {}) RETURNS integer LANGUAGE sql"
    create(connection, "AS 'SELECT a'", "safe", head.format("1 + 2"))
    create(connection, "AS 'SELECT a'", "unsafe", head.format("g(1)"))
    assert called(connection, "safe()") == [(3,), (3,)]
    with pytest.raises(tique.NotSupportedError, match=REFUSED):
        called(connection, "unsafe()")


def test_every_function_of_a_name_counts(connection):
    """The engine chooses by the arguments' types, and by the search path."""
    create(connection, "AS 'SELECT a'")
    assert called(connection) == [(10,), (20,)]
    create(connection, "AS 'SELECT count(*)::integer FROM t'", "s.f")
    with pytest.raises(tique.NotSupportedError, match=REFUSED):
        called(connection)
    assert called(connection, "public.f(v)") == [(10,), (20,)]
    connection.execute("DROP FUNCTION s.f(integer)")
    head = "(a bigint) RETURNS integer LANGUAGE plpgsql"
    create(connection, "AS 'BEGIN RETURN 1; END'", "f", head)
    for call in ("f(v)", "public.f(v)"):
        with pytest.raises(tique.NotSupportedError, match=REFUSED):
            called(connection, call)


def test_a_function_that_is_replaced_is_looked_at_again(connection):
    create(connection, "AS 'SELECT a'")
    assert called(connection) == [(10,), (20,)]
    head = "f (a integer) RETURNS integer LANGUAGE sql AS"
    connection.execute(f"CREATE OR REPLACE FUNCTION {head} 'SELECT v FROM t LIMIT 1'")
    with pytest.raises(tique.NotSupportedError, match=REFUSED):
        called(connection)
    connection.execute(f"CREATE OR REPLACE FUNCTION {head} 'SELECT 5'")
    assert called(connection) == [(5,), (5,)]


def test_names_of_the_engines_own_are_not_taken(database, connection):
    """Neither by tique, nor where they are there already: which is meant is not known."""
    for name in ("lower", "public.coalesce", "tique.f", "pg_catalog.f", "row"):
        with pytest.raises(tique.NotSupportedError):
            create(connection, "AS 'SELECT a'", name)
    url = database.url.partition("&sequencer")[0]
    with psycopg.connect(url, autocommit=True) as native:
        native.execute(
            "CREATE FUNCTION public.query_to_xml(text, boolean, boolean, text) RETURNS text "
            "LANGUAGE sql AS 'SELECT $1'"
        )
        native.execute(
            "CREATE FUNCTION public.guest_log(a integer) RETURNS integer LANGUAGE sql AS 'SELECT a'"
        )
    create(connection, "AS 'SELECT a'")
    for call in ("query_to_xml('SELECT 1', true, true, '')", "guest_log(0)"):
        with pytest.raises(tique.NotSupportedError, match=REFUSED):
            called(connection, call)


def test_functions_stay_out_of_definitions(connection):
    """A CHECK or a DEFAULT is judged again when the function is another one (P4)."""
    create(connection, "IMMUTABLE AS 'SELECT a'")
    for column in ("a INTEGER CHECK (f(a) > 1)", "a INTEGER DEFAULT f(1)"):
        with pytest.raises(tique.NotSupportedError, match=REFUSED):
            connection.execute(f"CREATE TABLE u ({column})")


PLPGSQL = "(a integer) RETURNS integer LANGUAGE plpgsql"


def test_a_trusted_function(database, connection):
    create(connection, "STABLE AS 'BEGIN RETURN a * 2; END'", "f", PLPGSQL)
    with pytest.raises(tique.NotSupportedError, match=REFUSED):
        called(connection)
    connection.trust_function("public.f")
    assert called(connection) == [(20,), (40,)]
    assert database.connect().execute("SELECT f(4)").fetchall() == [(8,)]
    connection.execute("CREATE TABLE u (id INTEGER PRIMARY KEY)")
    assert called(connection, "public.f(v)") == [(20,), (40,)]


def test_trust_ends_when_the_function_changes(connection):
    create(connection, "STABLE AS 'BEGIN RETURN a * 2; END'", "f", PLPGSQL)
    connection.trust_function("public.f(integer)")
    connection.execute(
        f"CREATE OR REPLACE FUNCTION f {PLPGSQL} STABLE AS 'BEGIN RETURN a; END'"
    )
    with pytest.raises(tique.NotSupportedError, match=REFUSED):
        called(connection)
    connection.trust_function("public.f(integer)")
    assert called(connection) == [(10,), (20,)]


def test_trust_ends_when_its_text_is_a_table_s_name(connection):
    create(
        connection,
        "STABLE AS 'BEGIN RETURN (SELECT count(*) FROM later); END'",
        "f",
        PLPGSQL,
    )
    connection.trust_function("public.f")
    connection.execute("CREATE TABLE later (id INTEGER PRIMARY KEY)")
    with pytest.raises(tique.NotSupportedError, match=REFUSED):
        called(connection)


UNTRUSTED = {
    "STABLE AS 'BEGIN RETURN (SELECT count(*) FROM T); END'": "names t",
    "STABLE AS $$ BEGIN EXECUTE 'SELECT 1'; RETURN 1; END $$": "execute",
    "AS 'BEGIN RETURN 1; END'": "VOLATILE",
    "STABLE SET work_mem = '8MB' AS 'BEGIN RETURN 1; END'": "settings",
}


@pytest.mark.parametrize("body", UNTRUSTED)
def test_a_function_that_cannot_be_trusted(connection, body):
    create(connection, body, "f", PLPGSQL)
    with pytest.raises(tique.NotSupportedError, match=UNTRUSTED[body]):
        connection.trust_function("public.f")
    with pytest.raises(tique.NotSupportedError, match=REFUSED):
        called(connection)


def test_a_function_that_is_not_there(connection):
    for name in ("public.nope", "f", "pg_catalog.lower", "tique.guest", "'"):
        with pytest.raises(tique.ProgrammingError) as caught:
            connection.trust_function(name)
        assert caught.value.sqlstate == "42883"


EXTENSIONS = {
    "citext": "'A'::citext = 'a'",
    "pgcrypto": "length(encode(digest('a', 'sha256'), 'hex')) = 64",
    '"uuid-ossp"': "uuid_generate_v4() IS NOT NULL",
    "pg_trgm": "similarity('hammer', 'hamer') > 0.4",
    "hstore": "hstore('a', 'b') -> 'a' = 'b'",
    "unaccent": "unaccent('é') = 'e'",
    "fuzzystrmatch": "levenshtein('a', 'b') = 1",
}


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_extensions(connection, extension):
    connection.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}")
    assert called(connection, EXTENSIONS[extension]) == [(True,), (True,)]
    if extension == "pg_trgm":
        with pytest.raises(tique.NotSupportedError, match=REFUSED):
            called(connection, "set_limit(0.5)")
    connection.execute(f"DROP EXTENSION {extension}")
    with pytest.raises(tique.Error):
        called(connection, EXTENSIONS[extension])


def test_other_extensions_are_refused(connection):
    for name in ("dblink", "tablefunc", "postgres_fdw", "xml2", "tique"):
        with pytest.raises(tique.NotSupportedError, match="extension"):
            connection.execute(f"CREATE EXTENSION {name}")


def test_procedures_are_made_and_not_called(connection):
    connection.execute("CREATE PROCEDURE p() LANGUAGE sql AS 'DELETE FROM t'")
    with pytest.raises(tique.NotSupportedError):
        connection.execute("CALL p()")
    connection.execute("DROP PROCEDURE p()")
    assert len(called(connection, "v")) == 2


def test_types_of_extensions_are_compared_as_they_are(database, connection):
    """P3, P9: by the engine's own equality, also between transactions."""
    connection.execute("CREATE EXTENSION IF NOT EXISTS citext")
    connection.execute("CREATE TABLE u (k citext PRIMARY KEY, n INTEGER)")
    connection.execute("INSERT INTO u VALUES ('Ada', 1)")
    for _ in range(2):
        with pytest.raises(tique.IntegrityError):
            connection.execute("INSERT INTO u VALUES ('ADA', 2)")
        connection.execute("UPDATE u SET n = n + 1 WHERE k = 'aDA'")
        connection.checkpoint()
    assert connection.execute("SELECT * FROM u").fetchall() == [("Ada", 3)]
    one, two = database.connect(), database.connect()
    one.execute("INSERT INTO u VALUES ('bob', 1)")
    two.execute("INSERT INTO u VALUES ('BOB', 2)")
    one.commit()
    with pytest.raises(tique.Error):
        two.commit()
    assert connection.execute("SELECT k FROM u ORDER BY k").fetchall() == [
        ("Ada",),
        ("bob",),
    ]
    connection.execute("DROP TABLE u")
    connection.execute("DROP EXTENSION citext")


def test_aggregates_are_created_and_not_called(connection):
    """P1, P10: their functions run in the server; one may share a function's name."""
    connection.execute(
        "CREATE AGGREGATE total (integer) (sfunc = int4pl, stype = integer)"
    )
    connection.execute(
        "CREATE OR REPLACE AGGREGATE s.total (integer) (sfunc = int4mi, stype = integer)"
    )
    for call in ("total(v)", "s.total(v)", "total(v) OVER ()"):
        with pytest.raises(tique.NotSupportedError, match=REFUSED):
            connection.execute(f"SELECT {call} FROM t")
    create(connection, "AS 'SELECT a + 1'")
    assert called(connection)[0] == (11,)
    connection.execute("CREATE AGGREGATE f (text) (sfunc = textcat, stype = text)")
    with pytest.raises(tique.NotSupportedError, match=REFUSED):
        called(connection, "f(v)")
    connection.execute("DROP AGGREGATE f (text), total (integer)")
    assert called(connection)[0] == (11,)
    with pytest.raises(tique.ProgrammingError):
        connection.execute("DROP AGGREGATE total (integer)")
