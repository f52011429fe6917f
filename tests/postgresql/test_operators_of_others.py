"""P3, P11: keys are equal by their types' own equality, whatever operators a path has.

An operator that takes exactly a column's type fits better than PostgreSQL's for all
enumerations, ranges, texts … wherever its schema is in the path. PostgreSQL's own checks of
keys call none; no statement here has a comparison of its own.
"""

from __future__ import annotations

import psycopg
import pytest

import tique
from tests.plugins.engine import PlainPostgreSQL, label
from tests.staging import BUFFERED_ROWS, stage_above

# The form of the sequencer has no part in it.
pytestmark = pytest.mark.parametrize(
    "shop", [PlainPostgreSQL], ids=label, indirect=True
)

LAIR = """
CREATE SCHEMA lair;
GRANT USAGE ON SCHEMA lair TO PUBLIC;
CREATE SEQUENCE lair.strikes;
GRANT USAGE ON lair.strikes TO PUBLIC;
"""
FUNCTION = """
CREATE FUNCTION lair.other(a {0}, b {1}) RETURNS BOOLEAN LANGUAGE plpgsql AS
$$ BEGIN PERFORM nextval('lair.strikes'); RETURN FALSE; END $$"""
UNNEST = """
CREATE FUNCTION lair.unnest(a {0}) RETURNS SETOF {1} LANGUAGE plpgsql AS
$$ BEGIN PERFORM nextval('lair.strikes'); END $$"""
HASH = """
CREATE FUNCTION lair.hash_record_extended(a RECORD, b INTEGER) RETURNS BIGINT LANGUAGE plpgsql
AS $$ BEGIN PERFORM nextval('lair.strikes'); RETURN nextval('lair.strikes'); END $$"""
OPERATOR = """
CREATE OPERATOR lair.{2} (LEFTARG = {0}, RIGHTARG = {1}, FUNCTION = lair.other)"""
TYPES = """
CREATE TYPE public.mood AS ENUM ('a', 'b', 'c', 'd');
CREATE TYPE public.pair AS (x INTEGER, y public.mood);
CREATE DOMAIN public.code AS VARCHAR;
CREATE DOMAIN public.number AS INTEGER"""
KINDS = {
    "mood": ([*"abcd"], ["mood"]),
    "VARCHAR": ([*"abcd"], ["VARCHAR", "TEXT"]),
    "int4range": (["[1,2)", "[1,3)", "[1,4)", "empty"], ["int4range"]),
    "INTEGER[]": (["{1}", "{NULL}", "{}", "{{1}}"], ["INTEGER[]"]),
    "pair": (["(1,a)", "(1,b)", "(,a)", "(,)"], ["pair"]),
    "code": ([*"abcd"], ["code", "VARCHAR", "TEXT"]),
    "number": ([*"1234"], ["number", "INTEGER"]),
}
TABLES = """
CREATE TABLE parent (k {0} PRIMARY KEY, v INTEGER);
CREATE TABLE child (id INTEGER PRIMARY KEY, k {0} UNIQUE REFERENCES parent);
CREATE TABLE held (n INTEGER, k {0} REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE,
  v INTEGER, PRIMARY KEY (k, n));
CREATE TABLE marked (id INTEGER PRIMARY KEY, k {0}, v INTEGER);
CREATE UNIQUE INDEX ON marked ((k)) WHERE id > 0;
CREATE TABLE single (k {0}{1}, v INTEGER);
CREATE TABLE bare (k {0}, v INTEGER)"""
FILLED = """
INSERT INTO parent VALUES ('{0}', 1), ('{1}', 2);
INSERT INTO child VALUES (1, '{0}'), (2, '{1}');
INSERT INTO held VALUES (1, '{0}', 1), (2, '{0}', 2), (1, '{1}', 3);
INSERT INTO marked VALUES (1, '{0}', 1), (2, '{1}', 2);
INSERT INTO single VALUES ('{0}', 1), (NULL, 2);
INSERT INTO bare VALUES ('{0}', 1), ('{0}', 1), (NULL, 2)"""
STATEMENTS = """
INSERT INTO parent VALUES ('{0}', 9);
INSERT INTO parent SELECT * FROM parent;
INSERT INTO child VALUES (3, '{0}');
INSERT INTO child VALUES (3, '{3}');
INSERT INTO child SELECT id + 5, k FROM child;
INSERT INTO held VALUES (1, '{0}', 9);
INSERT INTO held SELECT * FROM held;
INSERT INTO marked VALUES (3, '{0}', 9);
INSERT INTO marked SELECT id + 5, k, v FROM marked;
INSERT INTO single VALUES (NULL, 9);
INSERT INTO single VALUES ('{0}', 9);
INSERT INTO single SELECT * FROM single;
DELETE FROM parent;
INSERT INTO parent VALUES ('{2}', 3);
UPDATE parent SET v = v + 1;
INSERT INTO parent VALUES ('{0}', 5), ('{3}', 6) ON CONFLICT (k) DO UPDATE SET v = excluded.v;
INSERT INTO parent SELECT k, 7 FROM held ON CONFLICT DO NOTHING;
INSERT INTO child VALUES (3, '{2}');
INSERT INTO child VALUES (4, '{2}'), (5, '{3}') ON CONFLICT (k) DO NOTHING;
INSERT INTO marked VALUES (3, '{2}', 3);
INSERT INTO marked VALUES (4, '{2}', 4), (5, '{3}', 5) ON CONFLICT DO NOTHING;
UPDATE held SET v = v + 1 WHERE n < 2;
INSERT INTO single VALUES ('{1}', 3), (NULL, 4) ON CONFLICT DO NOTHING;
UPDATE bare SET v = v + 1 WHERE v < 2;
INSERT INTO bare SELECT k, v FROM bare;
DELETE FROM bare WHERE v > 1 RETURNING k;
DELETE FROM child WHERE id > 3;
DELETE FROM parent WHERE v > 5;
DELETE FROM marked WHERE id < 2;
UPDATE marked SET v = 8;
DELETE FROM child;
DELETE FROM parent WHERE v > 3"""
NAMES = "parent", "child", "held", "marked", "single", "bare"
CONFLICTS = """
INSERT INTO parent VALUES ('{2}', 3) | INSERT INTO parent VALUES ('{2}', 3)
  | DELETE FROM parent WHERE v > 2 AND v < 4;
DELETE FROM parent WHERE v > 3 | INSERT INTO child VALUES (7, '{3}')
  | DELETE FROM child WHERE id > 6;
INSERT INTO child VALUES (7, '{3}') | DELETE FROM parent WHERE v > 3
  | INSERT INTO parent VALUES ('{3}', 4);
INSERT INTO child VALUES (7, '{3}') | INSERT INTO child VALUES (8, '{3}')
  | DELETE FROM child WHERE id > 6;
INSERT INTO marked VALUES (7, '{2}', 7) | INSERT INTO marked VALUES (8, '{2}', 8)
  | DELETE FROM marked WHERE id > 6;
INSERT INTO held VALUES (7, '{1}', 7) | UPDATE held SET n = 7 WHERE v > 2
  | UPDATE held SET n = 1 WHERE v > 2;
DELETE FROM bare | DELETE FROM bare WHERE v < 2 | INSERT INTO bare VALUES ('{0}', 1)"""
"""The second transaction ends before the first one; the third statement clears up."""


class Attacked:
    """Tables with keys of a kind, and a stranger's operators before all others for it."""

    def __init__(self, shop, kind):
        self.shop = shop
        self.values, self._types = KINDS[kind]
        # Another refusal: tique has no UNIQUE NULLS NOT DISTINCT of these.
        unique = "" if kind == "INTEGER[]" else " UNIQUE NULLS NOT DISTINCT"
        self.filling = self.each(f"{TABLES.format(kind, unique)};{FILLED}")
        self.connection = self.opened()
        for sql in self.filling:
            self.connection.execute(sql)
        self.connection.commit()
        self.connection.checkpoint()
        self.connection.execute("INSERT INTO parent VALUES (%s, 4)", [self.values[3]])
        self.connection.execute("INSERT INTO bare SELECT * FROM bare")
        self.connection.commit()

    def each(self, statements):
        return [s.strip() for s in statements.format(*self.values).split(";")]

    def opened(self):
        """A connection of another process, whose path has the stranger's schema."""
        return self.shop.process().connection

    def strike(self, *connections):
        """What other programs make is not looked at before the next definition."""
        for connection in connections:
            connection.execute("SET search_path TO public, lair")
            connection.commit()
        types = [(t, u) for t in self._types for u in self._types]
        array = f"{self._types[0].removesuffix('[]')}[]"
        with self.shop.by_hand("stranger") as connection:
            for pair in {*types, (array, array)}:
                connection.execute(FUNCTION.format(*pair))
                for operator in ("=", "<>", "<", "<=", ">", ">="):
                    connection.execute(OPERATOR.format(*pair, operator))
            for each in {array, "TEXT[]", "BIGINT[]", "INTEGER[]"}:
                connection.execute(UNNEST.format(each, each.removesuffix("[]")))
            connection.execute(HASH)

    def expect_unharmed(self):
        with self.shop.by_hand() as connection:
            found = connection.execute("SELECT is_called FROM lair.strikes").fetchall()
        assert found == [(False,)]


@pytest.fixture
def lair(shop):
    shop.natively("GRANT CREATE ON DATABASE tique TO stranger", TYPES)
    with shop.by_hand("stranger") as connection:
        connection.execute(LAIR)
    yield shop
    shop.natively("DROP SCHEMA lair CASCADE")


@pytest.mark.parametrize("staged", [False, True], ids=["buffered", "staged"])
@pytest.mark.parametrize("kind", KINDS)
def test_statements(lair, monkeypatch, kind, staged):
    """They do what PostgreSQL does without these operators."""
    attacked = Attacked(lair, kind)
    connection = attacked.connection
    attacked.strike(connection)
    stage_above(0 if staged else BUFFERED_ROWS, monkeypatch.setattr)
    with lair.by_hand() as native:
        native.execute("CREATE SCHEMA native; SET search_path TO native, public")
        for sql in attacked.filling:
            native.execute(sql)
        native.execute("INSERT INTO parent VALUES (%s, 4)", [attacked.values[3]])
        native.execute("INSERT INTO bare SELECT * FROM bare")
        for sql in attacked.each(STATEMENTS):
            try:
                count = connection.execute(sql).rowcount
                connection.commit()
            except tique.NotSupportedError:
                connection.rollback()
                continue
            except tique.IntegrityError as error:
                connection.rollback()
                count = error.sqlstate
            try:
                expected = native.execute(sql).rowcount
            except psycopg.IntegrityError as error:
                expected = error.sqlstate
            assert (sql, count) == (sql, expected)
        for step in (connection.rollback, connection.checkpoint):
            step()
            for name in NAMES:
                query = f"SELECT *, CAST(k AS TEXT) FROM {name}"
                found = connection.execute(query).fetchall()
                assert sorted(map(repr, found)) == sorted(
                    map(repr, native.execute(query).fetchall())
                )
    attacked.expect_unharmed()


@pytest.mark.parametrize("staged", [False, True], ids=["buffered", "staged"])
@pytest.mark.parametrize("kind", ["mood", "VARCHAR", "number"])
def test_conflicts(lair, monkeypatch, kind, staged):
    """Two transactions that have the same key in them."""
    attacked = Attacked(lair, kind)
    one = attacked.connection
    others = attacked.opened(), lair.processes[-2].another()
    attacked.strike(one, *others)
    stage_above(0 if staged else BUFFERED_ROWS, monkeypatch.setattr)
    for two in others:
        for each in attacked.each(CONFLICTS):
            first, second, last = each.split("|")
            two.execute(first)
            one.execute(second)
            one.commit()
            with pytest.raises(tique.Error) as caught:
                two.commit()
            assert caught.value.sqlstate[:2] in ("40", "23")
            two.rollback()
            one.execute(last)
            one.commit()
    attacked.expect_unharmed()


@pytest.mark.parametrize("staged", [False, True], ids=["buffered", "staged"])
def test_an_extensions_type_beside_others_in_a_key(shop, monkeypatch, staged):
    """Each column has its own equality, wherever the extension's schema is."""
    shop.natively(
        "CREATE SCHEMA kept; GRANT USAGE ON SCHEMA kept TO PUBLIC",
        "CREATE EXTENSION citext SCHEMA kept",
    )
    connection = shop.process().connection
    connection.autocommit = True
    connection.execute(
        "CREATE TABLE t (k kept.citext, n INTEGER, v INTEGER, PRIMARY KEY (k, n))"
    )
    connection.execute("CREATE UNIQUE INDEX ON t (k) WHERE v > 5")
    connection.execute(
        "CREATE TABLE u (k kept.citext, n INTEGER, FOREIGN KEY (k, n) REFERENCES t)"
    )
    connection.execute("INSERT INTO t VALUES ('a', 1, 1), ('b', 1, 1), ('b', 2, 9)")
    connection.execute("INSERT INTO u VALUES ('A', 1)")
    connection.checkpoint()
    stage_above(0 if staged else BUFFERED_ROWS, monkeypatch.setattr)
    upsert = "INSERT INTO t VALUES ('A', 1, 2) ON CONFLICT (k, n) DO UPDATE SET v = 2"
    connection.execute(upsert)
    connection.execute("UPDATE t SET n = 3 WHERE v < 2")
    connection.execute("INSERT INTO u VALUES ('B', 3)")
    for sql in (
        "INSERT INTO t VALUES ('B', 3, 1)",
        "INSERT INTO t VALUES ('B', 4, 9)",
        "INSERT INTO u VALUES ('c', 3)",
        "DELETE FROM t WHERE n > 2",
    ):
        with pytest.raises(tique.IntegrityError):
            connection.execute(sql)
    for _ in range(2):
        rows = connection.execute("SELECT k, n, v FROM t ORDER BY 1, 2").fetchall()
        connection.checkpoint()
        assert rows == [("a", 1, 2), ("b", 2, 9), ("b", 3, 1)]
