"""P1, P10: no statement calls an application's function that no text names.

What it reads is in no snapshot, and what it writes in no transaction of tique's.
"""

from __future__ import annotations

import psycopg
import pytest

import tique
from tests.plugins.engine import PostgreSQL

REFUSED = "might read or change what is in no snapshot"


def spying(
    name, arguments, returns="INTEGER", result="(SELECT count(*) FROM public.t)"
):
    return (
        f"CREATE FUNCTION public.{name}({arguments}) RETURNS {returns} LANGUAGE plpgsql "
        "VOLATILE AS $$ BEGIN INSERT INTO public.loot VALUES (1); "
        f"RETURN {result}; END $$"
    )


TABLES = (
    "CREATE TABLE loot (x INTEGER)",
    "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, note TEXT)",
    "INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b')",
)
OBJECTS = (
    *TABLES,
    "CREATE TYPE mood AS ENUM ('x', 'y')",
    "CREATE TYPE pair AS (x INTEGER, y INTEGER)",
    "CREATE TABLE moods (id INTEGER PRIMARY KEY, m mood)",
    "CREATE TABLE pairs (id INTEGER PRIMARY KEY, p pair)",
    spying("two", "a INTEGER, b INTEGER"),
    spying("text_two", "a TEXT, b INTEGER"),
    spying("one", "a INTEGER"),
    spying("yes", "a INTEGER", "BOOLEAN", "TRUE"),
    spying("to_pair", "a INTEGER", "pair", "ROW(a, a)::pair"),
    spying("of_mood", "a mood"),
    spying("abs", "a TEXT"),
    spying("folded", "a INTEGER, b TEXT"),
    spying("filling", ""),
    "CREATE OPERATOR <-> (LEFTARG=INTEGER, RIGHTARG=INTEGER, FUNCTION=two)",
    "CREATE OPERATOR |/ (RIGHTARG=INTEGER, FUNCTION=one)",
    "CREATE OPERATOR + (LEFTARG=TEXT, RIGHTARG=INTEGER, FUNCTION=text_two)",
    "CREATE AGGREGATE sum(TEXT) (SFUNC = folded, STYPE = INTEGER)",
    "CREATE CAST (mood AS INTEGER) WITH FUNCTION of_mood(mood)",
    "CREATE DOMAIN d AS INTEGER CHECK (yes(VALUE))",
    "CREATE DOMAIN tinyint AS INTEGER CHECK (yes(VALUE))",
    "CREATE DOMAIN by_operator AS INTEGER CHECK (VALUE <-> 1 > 0)",
    "CREATE DOMAIN filled_in AS INTEGER DEFAULT filling()",
    "CREATE DOMAIN asking AS INTEGER CHECK (query_to_xml("
    "'INSERT INTO loot VALUES (1) RETURNING 1', true, true, '') IS NOT NULL)",
    "CREATE DOMAIN of_domain AS d",
    "CREATE TYPE range_of AS RANGE (SUBTYPE = d)",
    "CREATE TYPE row_of AS (x d)",
    "CREATE FUNCTION takes(a pair) RETURNS INTEGER LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION casts(a INTEGER) RETURNS INTEGER LANGUAGE sql AS 'SELECT a::d'",
    "CREATE FUNCTION calls(a TEXT) RETURNS INTEGER LANGUAGE sql AS 'SELECT abs(a)'",
    "CREATE TABLE u (id INTEGER PRIMARY KEY, a INTEGER DEFAULT filling())",
    "CREATE TABLE w (id INTEGER PRIMARY KEY, a INTEGER DEFAULT (1 <-> 2))",
    "CREATE CAST (INTEGER AS pair) WITH FUNCTION to_pair(INTEGER) AS IMPLICIT",
    "CREATE VIEW seen AS SELECT v::d::INTEGER AS v FROM t",
)

ATTACKS = {
    "SELECT v <-> 1 FROM t": "the operator public.<->",
    "SELECT |/ v FROM t": "the operator public.|/",
    "SELECT note + v FROM t": "the operator public.+",
    "SELECT v /* <-> */ <->/**/1 FROM t": "the operator public.<->",
    "WITH x AS (SELECT v <-> 1 FROM t) TABLE x": "the operator public.<->",
    "UPDATE t SET v = v <-> 1": "the operator public.<->",
    "DELETE FROM t WHERE v <-> 1 > 7": "the operator public.<->",
    "INSERT INTO t VALUES (9, 1 <-> 1, 'z')": "the operator public.<->",
    "INSERT INTO t VALUES (1, 1, 'z') ON CONFLICT (id) DO UPDATE SET v = t.v <-> 1": "<->",
    "CREATE TABLE n AS SELECT v <-> 1 AS a FROM t": "the operator public.<->",
    "CREATE TABLE n (a INTEGER DEFAULT 1 <-> 1)": "the operator public.<->",
    "CREATE TEMPORARY TABLE n AS SELECT v::d FROM t": "the type d",
    "ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 1 <-> 1": "the operator public.<->",
    "CREATE VIEW n AS SELECT v <-> 1 AS a FROM t": "the operator public.<->",
    "COPY (SELECT v <-> 1 FROM t) TO STDOUT": "the operator public.<->",
    "EXPLAIN ANALYZE SELECT v <-> 1 FROM t": "the operator public.<->",
    "DECLARE c CURSOR FOR SELECT v <-> 1 FROM t": "the operator public.<->",
    "PREPARE p AS SELECT v <-> 1 FROM t": "the operator public.<->",
    "PREPARE p (d) AS SELECT $1 FROM t": "the type d",
    "SELECT CAST('x'::mood AS INTEGER) FROM t": "the cast from mood to integer",
    "SELECT m::INTEGER FROM moods": "the cast from mood to integer",
    'SELECT v::"pair" FROM t': "the cast from integer to pair",
    'SELECT v::U&"\\0070air" FROM t': "the cast from integer to pair",
    "SELECT ARRAY[v]::pair[] FROM t": "the cast from integer to pair",
    "SELECT takes(v) FROM t": "the cast from integer to pair",
    "INSERT INTO pairs VALUES (1, 2)": "the cast from integer to pair",
    "INSERT INTO pairs SELECT id, v FROM t": "the cast from integer to pair",
    "SELECT v::d FROM t": "the type d",
    "SELECT CAST(v AS public.D) FROM t": "the type d",
    "SELECT '{5}'::d[]": "the type d",
    "SELECT '[1,5]'::range_of": "the type d",
    "SELECT '(5)'::row_of": "the type d",
    "SELECT v::of_domain FROM t": "the type d",
    "SELECT v::by_operator FROM t": "the type by_operator",
    "SELECT v::asking FROM t": "it calls query_to_xml,",
    "CREATE TABLE n (id INTEGER PRIMARY KEY, a filled_in)": "the type filled_in",
    "SELECT CAST(v AS tinyint) FROM t": "the type tinyint",
    "SELECT v FROM seen": 'the view "seen" \\(the type d',
    "SELECT abs(note) FROM t": "it calls public.abs\\(text\\), which .*write pg_catalog.abs",
    'SELECT "abs" (note) FROM t': "the function abs\\(\\)",
    "SELECT sum(note) FROM t": "it calls public.sum\\(text\\)",
    "SELECT casts(v) FROM t": "the function casts\\(\\)",
    "SELECT calls(note) FROM t": "the function calls\\(\\)",
    "INSERT INTO u (id) VALUES (1)": 'the DEFAULT of the column "a" .* public.filling.*value$',
    "INSERT INTO u VALUES (1, DEFAULT)": "the DEFAULT",
    "INSERT INTO u DEFAULT VALUES": "the DEFAULT",
    "INSERT INTO u (id) SELECT id FROM t": "the DEFAULT",
    "UPDATE u SET a = DEFAULT": "the DEFAULT",
    "MERGE INTO u USING t ON u.id = t.id WHEN NOT MATCHED THEN INSERT (id) VALUES (t.id)": (
        "the DEFAULT"
    ),
    "COPY u (id) FROM STDIN": "the DEFAULT",
    "INSERT INTO w (id) VALUES (1)": "the DEFAULT",
}

USUAL = (
    "SELECT pg_catalog.abs(v), '<->', 'd'  FROM t -- <->",
    "UPDATE t SET v = v * 2, note = '(d) |/'",
    "INSERT INTO u VALUES (1, 1)",
    "SELECT max(a), min(id) FROM u",
    "CREATE TABLE n (id INTEGER PRIMARY KEY)",
)


class Native:
    """A database of PostgreSQL's alone, before tique comes and beside it."""

    def __init__(self, request, *statements):
        self.database = PostgreSQL.fresh(request)
        self.url = self.database.url.partition("&sequencer")[0]
        self.run(*statements)

    def run(self, *statements):
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall() if cursor.description else None

    def adopted(self):
        """All tables under tique's management, and a connection."""
        found = self.run(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = "
            "'public'::regnamespace AND relname <> 'loot'"
        )
        tique.adopt(self.database.url, [f"public.{name}" for (name,) in found])
        self.run("DELETE FROM loot")
        return self.database.connect(autocommit=True)

    @property
    def loot(self):
        return self.run("SELECT * FROM loot")


@pytest.fixture(scope="class")
def hostile(request):
    native = Native(request, *OBJECTS)
    native.connection = native.adopted()
    yield native
    native.database.close()


class TestAttacks:
    @pytest.mark.parametrize("attack", ATTACKS)
    def test_what_calls_an_unsafe_function_is_refused(self, hostile, attack):
        with pytest.raises(tique.NotSupportedError, match=ATTACKS[attack]) as caught:
            hostile.connection.execute(attack)
        assert REFUSED in str(caught.value)
        assert hostile.loot == []

    @pytest.mark.parametrize("usual", USUAL)
    def test_what_calls_none_is_not(self, hostile, usual):
        hostile.connection.execute(usual)
        assert hostile.loot == []


@pytest.fixture
def native(request):
    native = Native(request, *TABLES)
    yield native
    native.database.close()


def refused(connection, sql, match=REFUSED):
    with pytest.raises(tique.NotSupportedError, match=match) as caught:
        connection.execute(sql)
    return str(caught.value)


def compared(symbol, left, right):
    returned = spying("alike", f"a {left}, b {right}", "BOOLEAN", "TRUE")
    pair = f"LEFTARG={left}, RIGHTARG={right}, FUNCTION=alike"
    return returned, f"CREATE OPERATOR {symbol} ({pair})"


EVERYWHERE = {
    "a comparison": (
        *compared("=", "mood", "mood"),
        "SELECT * FROM moods AS a JOIN moods AS b USING (m)",
    ),
    "LIKE": (*compared("~~", "INTEGER", "TEXT"), "SELECT * FROM t WHERE v LIKE '1'"),
    "a cast of PostgreSQL's types": (
        spying("to_inet", "a INTEGER", "INET", "'::1'::inet"),
        "CREATE CAST (INTEGER AS INET) WITH FUNCTION to_inet(INTEGER) AS ASSIGNMENT",
        "INSERT INTO hosts VALUES (1, 2)",
    ),
    "an order": (
        spying("order_of", "a point, b point", "INTEGER", "0"),
        *(
            f"CREATE OPERATOR {symbol}# (LEFTARG=point, RIGHTARG=point, FUNCTION=point_eq)"
            for symbol in "<=>"
        ),
        "CREATE OPERATOR CLASS orders DEFAULT FOR TYPE point USING btree AS OPERATOR 1 <#, "
        "OPERATOR 3 =#, OPERATOR 5 >#, FUNCTION 1 order_of(point, point)",
        "SELECT * FROM places ORDER BY p",
    ),
}


@pytest.mark.parametrize("what", EVERYWHERE)
def test_what_every_statement_may_call(native, what):
    """Nothing but what drops it is left."""
    *statements, attack = EVERYWHERE[what]
    native.run(
        "CREATE TYPE mood AS ENUM ('x', 'y')",
        "CREATE TABLE moods (id INTEGER PRIMARY KEY, m mood)",
        "CREATE TABLE hosts (id INTEGER PRIMARY KEY, h INET)",
        "CREATE TABLE places (id INTEGER PRIMARY KEY, p point)",
        "INSERT INTO places VALUES (1, '(1,2)'), (2, '(3,4)')",
        *statements,
    )
    connection = native.adopted()
    refused(connection, attack)
    refused(connection, "SELECT 1")
    assert native.loot == []
    connection.execute("SET TIME ZONE 'UTC'")
    connection.execute("DROP TABLE hosts")


def test_an_operator_that_is_trusted(native):
    """The refusal says what calls which function, and what to do."""
    native.run(
        "CREATE FUNCTION close_to(a INTEGER, b INTEGER) RETURNS BOOLEAN LANGUAGE plpgsql "
        "VOLATILE AS 'BEGIN RETURN abs(a - b) < 2; END'",
        "CREATE OPERATOR <-> (LEFTARG=INTEGER, RIGHTARG=INTEGER, FUNCTION=close_to)",
    )
    connection = native.adopted()
    query = "SELECT v <-> 11 FROM t"
    assert refused(connection, query) == (
        "the operator public.<-> (integer, integer) at line 1, column 10 is not supported; "
        "it calls public.close_to(integer, integer), which might read or change what is in no "
        "snapshot; it is VOLATILE and may write; declare it STABLE or IMMUTABLE, then call "
        "Connection.trust_function('public.close_to(integer, integer)')"
    )
    native.run("ALTER FUNCTION close_to(INTEGER, INTEGER) IMMUTABLE")
    connection.trust_function("public.close_to(integer, integer)")
    assert connection.execute(query).fetchall() == [(True,), (False,)]
    connection.execute("CREATE TABLE n (id INTEGER PRIMARY KEY)")
    assert connection.execute(query).fetchall() == [(True,), (False,)]
    with native.database.connect() as other:
        assert other.execute(query).fetchall() == [(True,), (False,)]


def test_expressions_may_be_called(native):
    native.run(
        "CREATE FUNCTION round(a DOUBLE PRECISION, b INTEGER) RETURNS NUMERIC LANGUAGE sql "
        "AS 'SELECT round(a::NUMERIC, b)'",
        "CREATE FUNCTION close_to(a INTEGER, b INTEGER) RETURNS BOOLEAN LANGUAGE sql "
        "AS 'SELECT abs(a - b) < 2'",
        "CREATE OPERATOR <-> (LEFTARG=INTEGER, RIGHTARG=INTEGER, FUNCTION=close_to)",
        "CREATE OPERATOR @@ (LEFTARG=INTEGER, RIGHTARG=INTEGER, FUNCTION=int4eq)",
        "CREATE DOMAIN small AS INTEGER CHECK (VALUE < 100) CHECK (VALUE <-> VALUE)",
        "CREATE DOMAIN recent AS TIMESTAMPTZ DEFAULT now() CHECK (VALUE > '2001-01-01')",
    )
    connection = native.adopted()
    query = (
        "SELECT round(v / 3.0::FLOAT, 1), v <-> 11, v @@ 10, v::small, "
        "now()::recent IS NULL FROM t WHERE id = 1"
    )
    ((*found,),) = connection.execute(query).fetchall()
    assert [float(found[0]), *found[1:]] == [3.3, True, True, 10, False]


def test_what_extensions_have(native):
    for extension in ("citext", "hstore", "seg", "pgcrypto", "isn"):
        native.run(f"CREATE EXTENSION {extension}")
    native.run(
        "CREATE TABLE c (k CITEXT PRIMARY KEY, h HSTORE, weak BOOLEAN DEFAULT isn_weak())",
        "CREATE TABLE books (isbn ISBN PRIMARY KEY, salt TEXT DEFAULT gen_salt('md5'))",
    )
    connection = native.adopted()
    connection.execute("INSERT INTO c (k, h) VALUES ('Ada', 'a=>1'), ('ada2', NULL)")
    query = "SELECT max(k), replace('aXa', 'x'::citext, 'y') FROM c WHERE k = 'ADA'"
    assert connection.execute(query).fetchall() == [("Ada", "aya")]
    query = "SELECT h -> 'a', k LIKE 'A%', '1..2'::seg < '3' FROM c WHERE h ? 'a'"
    assert connection.execute(query).fetchall() == [("1", True, True)]
    connection.execute("INSERT INTO books VALUES ('0-306-40615-2')")
    query = "SELECT count(gen_random_uuid()) FROM books WHERE isbn = '0-306-40615-2'"
    assert connection.execute(query).fetchall() == [(1,)]


def test_a_schema_beside_the_path_does_not_matter(native):
    """P6: a role that has a schema of its own keeps no other from anything."""
    with psycopg.connect(native.url, autocommit=True) as hostile:
        hostile.execute("CREATE SCHEMA lair")
        hostile.execute("SET search_path = lair, public")
        for statement in (
            *compared("=", "TEXT", "INTEGER"),
            spying("abs", "a TEXT"),
            spying("yes", "a INTEGER", "BOOLEAN", "TRUE"),
            "CREATE DOMAIN v AS INTEGER CHECK (yes(VALUE))",
        ):
            hostile.execute(statement.replace("FUNCTION public.", "FUNCTION lair."))
    # A cast from a type of one's own to that of another role.
    native.run(
        "CREATE TYPE lair.mine AS (x INTEGER)",
        "CREATE TYPE mood AS ENUM ('x')",
        spying("to_mood", "a lair.mine", "mood", "'x'").replace("public.to", "lair.to"),
        "CREATE CAST (lair.mine AS mood) WITH FUNCTION lair.to_mood AS IMPLICIT",
        "ALTER TYPE lair.mine OWNER TO pg_monitor",
        "ALTER FUNCTION lair.to_mood OWNER TO pg_monitor",
        "CREATE TABLE moods (id INTEGER PRIMARY KEY, m mood)",
    )
    connection = native.adopted()
    connection.execute("INSERT INTO moods VALUES (1, 'x')")
    refused(
        connection, "SELECT m FROM moods WHERE m = ROW(1)::lair.mine", "the cast from"
    )
    query = "SELECT abs(v) FROM t WHERE id = 1"
    assert connection.execute(query).fetchall() == [(10,)]
    refused(connection, "SELECT 5::lair.v", "the type lair.v")
    refused(connection, "SELECT lair.abs(note) FROM t")
    connection.execute("SET search_path = public, lair")
    refused(connection, query, "the operator lair.=")
    assert native.loot == []


def test_what_a_type_in_a_safe_function_calls(native):
    """A function is called by its schema, whatever the path."""
    native.run(
        "CREATE SCHEMA s",
        "CREATE TYPE pair AS (x INTEGER, y INTEGER)",
        "CREATE FUNCTION s.takes(a pair) RETURNS INTEGER LANGUAGE sql AS 'SELECT 1'",
        spying("to_pair", "a INTEGER", "pair", "ROW(a, a)::pair"),
        "CREATE CAST (INTEGER AS pair) WITH FUNCTION to_pair(INTEGER) AS IMPLICIT",
    )
    connection = native.adopted()
    for call in ("s.takes(v)", 's . "takes" (v)', '"s"./**/takes(v)'):
        refused(connection, f"SELECT {call} FROM t", "the cast from integer to pair")
    assert native.loot == []


def test_definitions_are_looked_at_again(native):
    """After each DDL, also of what was made without tique."""
    native.run(
        "CREATE FUNCTION yes(a INTEGER) RETURNS BOOLEAN LANGUAGE sql AS 'SELECT TRUE'",
        "CREATE DOMAIN d AS INTEGER CHECK (yes(VALUE))",
    )
    connection = native.adopted()
    assert connection.execute("SELECT v::d FROM t WHERE id = 1").fetchall() == [(10,)]
    writing = spying("yes", "a INTEGER", "BOOLEAN", "TRUE")
    connection.execute(writing.replace("CREATE", "CREATE OR REPLACE", 1))
    refused(connection, "SELECT v::d FROM t", "the type d")
    native.run(
        spying("two", "a INTEGER, b INTEGER"),
        "CREATE OPERATOR public.<-> (LEFTARG=INTEGER, RIGHTARG=INTEGER, FUNCTION=two)",
    )
    connection.execute("CREATE TABLE n (id INTEGER PRIMARY KEY)")
    refused(connection, "SELECT v <-> 1 FROM t", "the operator public.<->")
    assert native.loot == []
    connection.execute("ALTER DOMAIN d DROP CONSTRAINT d_check")
    assert connection.execute("SELECT v::d FROM t WHERE id = 1").fetchall() == [(10,)]
