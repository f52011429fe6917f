"""P11: code that users wrote runs with rights of its writer or of the table's owner.

``stranger`` owns an adopted table, and may use schema tique. Each piece of code that can
be attached to a table notes when it runs as another role, by a sequence, whose numbers no
rollback takes back, and then tries to make its author a superuser.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

import tique
from tests.postgresql.privileges import Hand, tables_of

LAIR = """
CREATE SCHEMA lair;
GRANT USAGE ON SCHEMA lair TO PUBLIC;
CREATE SEQUENCE lair.strikes;
GRANT USAGE ON lair.strikes TO PUBLIC;
CREATE FUNCTION lair.strike() RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
  IF current_user <> 'stranger' THEN
    PERFORM nextval('lair.strikes');
    BEGIN
      ALTER ROLE stranger SUPERUSER;
    EXCEPTION WHEN OTHERS THEN
    END;
  END IF;
END $$;
CREATE FUNCTION lair.same(x INTEGER) RETURNS INTEGER IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
  PERFORM lair.strike();
  RETURN x;
END $$;
CREATE FUNCTION lair.holds(x INTEGER) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
  PERFORM lair.strike();
  RETURN TRUE;
END $$;
CREATE FUNCTION lair.fires() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  PERFORM lair.strike();
  RETURN NULL;
END $$;
CREATE TYPE lair.mood AS ENUM ('good');
CREATE FUNCTION lair.moody(x TEXT) RETURNS lair.mood LANGUAGE plpgsql AS $$
BEGIN
  PERFORM lair.strike();
  RETURN 'good';
END $$;
CREATE DOMAIN lair.number AS INTEGER;
"""

THEIRS = "CREATE TABLE lair.theirs (id INTEGER PRIMARY KEY, v INTEGER, m lair.mood)"
PARTIAL = "CREATE TABLE lair.theirs (id INTEGER PRIMARY KEY, v INTEGER, m INTEGER)"

CODE = {
    "index": "CREATE INDEX ON lair.theirs (lair.same(v))",
    # Constants are computed whenever a statement on the table is planned.
    "constant of an index": "CREATE INDEX ON lair.theirs ((v + lair.same(1)))",
    "condition of an index": "CREATE INDEX ON lair.theirs (v) WHERE lair.holds(v)",
    "constant of a condition": "CREATE INDEX ON lair.theirs (v) WHERE lair.holds(1)",
    "unique index": "CREATE UNIQUE INDEX ON lair.theirs (lair.same(v))",
    "foreign key": "CREATE TABLE lair.parent (id INTEGER PRIMARY KEY); "
    "INSERT INTO lair.parent SELECT generate_series(0, 100); "
    "CREATE INDEX ON lair.parent ((id + lair.same(1))); "
    "ALTER TABLE lair.theirs ADD FOREIGN KEY (v) REFERENCES lair.parent",
    "generated column": "ALTER TABLE lair.theirs ADD g INTEGER "
    "GENERATED ALWAYS AS (lair.same(v)) STORED",
    "check": "ALTER TABLE lair.theirs ADD CHECK (lair.holds(v))",
    "check that is not valid": "ALTER TABLE lair.theirs ADD CHECK (lair.holds(v)) "
    "NOT VALID",
    "check by PostgreSQL's own function": "ALTER TABLE lair.theirs ADD CHECK "
    "(query_to_xml('SELECT lair.strike()', TRUE, TRUE, '') IS NOT NULL OR v > 0)",
    "domain": "ALTER TABLE lair.theirs ALTER v TYPE lair.number; "
    "ALTER DOMAIN lair.number ADD CHECK (lair.holds(VALUE)) NOT VALID",
    "statistics": "CREATE STATISTICS lair.s ON (v + lair.same(1)), (v * 2) "
    "FROM lair.theirs",
    "default": "ALTER TABLE lair.theirs ALTER v SET DEFAULT lair.same(1)",
    "trigger": "CREATE TRIGGER t AFTER INSERT OR DELETE OR UPDATE ON lair.theirs "
    "FOR EACH ROW EXECUTE FUNCTION lair.fires()",
    "trigger of statements": "CREATE TRIGGER t BEFORE INSERT OR DELETE OR UPDATE "
    "ON lair.theirs EXECUTE FUNCTION lair.fires()",
    "trigger of a child": "CREATE TABLE lair.child (p INTEGER REFERENCES lair.theirs "
    "ON DELETE CASCADE ON UPDATE CASCADE); INSERT INTO lair.child VALUES (1); "
    "CREATE CONSTRAINT TRIGGER t AFTER DELETE OR UPDATE ON lair.child "
    "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lair.fires()",
    "rule": "CREATE RULE r AS ON INSERT TO lair.theirs DO ALSO SELECT lair.strike()",
    "exclusion": "ALTER TABLE lair.theirs ADD EXCLUDE USING btree (lair.same(v) WITH =)",
    "policy": "CREATE POLICY p ON lair.theirs USING (lair.holds(1)); "
    "ALTER TABLE lair.theirs ENABLE ROW LEVEL SECURITY",
    "heir": "CREATE TABLE lair.heir () INHERITS (lair.theirs); "
    "CREATE TRIGGER t AFTER INSERT OR DELETE OR UPDATE ON lair.heir "
    "EXECUTE FUNCTION lair.fires()",
    "view": "ALTER TABLE lair.theirs RENAME TO gone; CREATE VIEW lair.theirs AS "
    "SELECT id, lair.same(v) AS v, m FROM lair.gone",
    "cast": "CREATE CAST (TEXT AS lair.mood) WITH FUNCTION lair.moody(TEXT)",
    "type of a column": "CREATE TYPE lair.other AS ENUM ('good'); "
    "CREATE FUNCTION lair.turned(INTEGER) RETURNS lair.other LANGUAGE sql AS "
    "$$ SELECT 'good'::lair.other FROM lair.strike() $$; "
    "CREATE FUNCTION lair.turned(lair.mood) RETURNS lair.other LANGUAGE sql AS "
    "$$ SELECT 'good'::lair.other FROM lair.strike() $$; "
    "CREATE FUNCTION lair.back(lair.other) RETURNS lair.mood LANGUAGE sql AS "
    "$$ SELECT 'good'::lair.mood FROM lair.strike() $$; "
    "CREATE CAST (INTEGER AS lair.other) WITH FUNCTION lair.turned(INTEGER) "
    "AS ASSIGNMENT; CREATE CAST (lair.mood AS lair.other) "
    "WITH FUNCTION lair.turned(lair.mood) AS ASSIGNMENT; "
    "CREATE CAST (lair.other AS lair.mood) WITH FUNCTION lair.back(lair.other) "
    "AS ASSIGNMENT; ALTER TABLE lair.theirs ALTER m TYPE lair.other "
    "USING 'good'::lair.other",
    "operator": "CREATE FUNCTION lair.equal(INTEGER, INTEGER) RETURNS BOOLEAN "
    "LANGUAGE plpgsql AS $$ BEGIN PERFORM lair.strike(); "
    "RETURN $1 OPERATOR(pg_catalog.=) $2; END $$; "
    "CREATE OPERATOR lair.= (LEFTARG = INTEGER, RIGHTARG = INTEGER, "
    "FUNCTION = lair.equal)",
}


class Lair:
    """The shop, with the stranger's table and code."""

    def __init__(self, shop, table):
        self.shop = shop
        shop.natively(
            "GRANT CREATE ON DATABASE tique TO stranger",
            "GRANT USAGE ON SCHEMA tique TO stranger",
        )
        self.by_stranger(LAIR, table)
        self.by_stranger(
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON lair.theirs TO {shop.keeper}"
        )
        self.by_stranger("INSERT INTO lair.theirs VALUES (1, 10), (2, 20)")
        shop.owner.close()
        tique.adopt(shop.url(shop.keeper), ["lair.theirs"])
        self.number = int(tables_of(shop)["theirs"])
        self.owner = shop.process()

    def by_stranger(self, *statements):
        with self.shop.by_hand("stranger") as connection:
            for sql in statements:
                connection.execute(sql)

    def expect_unharmed(self):
        """The code ran as no other role."""
        with self.shop.by_hand() as connection:
            sql = (
                "SELECT NOT is_called, (SELECT rolsuper FROM pg_roles WHERE rolname = "
            )
            found = connection.execute(sql + "'stranger') FROM lair.strikes").fetchall()
        assert found == [(True, False)]


@pytest.fixture
def lair(shop):
    yield Lair(shop, THEIRS)
    shop.natively("DROP SCHEMA IF EXISTS lair CASCADE")


@pytest.fixture
def partial(shop):
    """Its rows are in the log: all columns are of types of PostgreSQL's own."""
    yield Lair(shop, PARTIAL)
    shop.natively("DROP SCHEMA IF EXISTS lair CASCADE")


def _each(connection, *statements):
    """Run each in a transaction of its own; tique may refuse it."""
    for sql in statements:
        with suppress(psycopg.Error):
            connection.execute(sql)


@pytest.mark.parametrize("kind", CODE)
def test_functions_with_the_owners_rights(lair, kind):
    """What a role can call that owns a table, with what it has attached to it."""
    # The owner's is in the log, where any process finds its text.
    lair.owner.commit("UPDATE lair.theirs SET m = 'good' WHERE id = 2")
    lair.by_stranger(CODE[kind])
    n = lair.number
    with lair.shop.by_hand("stranger") as connection:
        connection.execute("SET constraint_exclusion = on")
        connection.execute("SET search_path = lair, pg_catalog, pg_temp")
        hand = Hand(connection, tables_of(lair.shop))
        for row in (
            [0, 3, 30, None],
            [0, 3, None, None],
            [0, 1, {}, None],
            [0, 3, 30, "good"],
        ):
            with suppress(psycopg.Error):
                hand.append({"theirs": [row]})
        _each(
            connection,
            f"SELECT tique.guest_drain({n}, tique.sts())",
            f"SELECT tique.guest_fold({n}, tique.sts(), NULL)",
        )
        with suppress(psycopg.Error):
            ((cts,),) = hand.run("SELECT tique.guest_barrier(%s)", hand.client)
            _each(
                connection,
                f"SELECT tique.guest_append_staged({hand.client}, {n}, {cts}, "
                "'{\"(4,1,,0,f)\"}')",
                f"SELECT tique.guest_append_rows({hand.client}, {n}, {cts}, "
                f"ARRAY[CAST(ROW(5, 1, NULL, 0, FALSE) AS tique.tique_cache_{n})])",
                f"SELECT tique.guest_log_bulk({hand.client}, {cts}, {hand.txid + 1}, "
                f"'[{{}},{{\"{n}\":1}}]')",
                f"SELECT tique.finish({hand.client}, {cts})",
            )
        _each(
            connection,
            f"SELECT tique.guest_drain({n}, tique.sts())",
            f"SELECT tique.guest_fold({n}, tique.sts(), NULL)",
            f"SELECT tique.guest_leave({hand.client})",
        )
    lair.expect_unharmed()


SESSIONS = {
    "an index of the stage": "CREATE INDEX ON pg_temp.tique_stage_{0} (lair.same(v))",
    "a default of the stage": "ALTER TABLE pg_temp.tique_stage_{0} ADD more INTEGER "
    "DEFAULT lair.same(1)",
    "a trigger of the stage": "CREATE TRIGGER t AFTER INSERT OR DELETE "
    "ON pg_temp.tique_stage_{0} EXECUTE FUNCTION lair.fires()",
    "a view in place of the stage": "DROP TABLE tique_stage_{0}; "
    "CREATE TEMP VIEW tique_stage_{0} AS SELECT 4 AS id, lair.same(1) AS v, "
    "NULL::lair.mood AS m, 1::BIGINT AS _sequence, FALSE AS _deleted",
    "a table in place of the cache": "CREATE TEMP TABLE tique_cache_{0} (id INTEGER, "
    "v INTEGER, m lair.mood, _cts BIGINT, _deleted BOOLEAN); "
    "CREATE INDEX ON tique_cache_{0} ((v + lair.same(1)))",
    "casts of rows": "CREATE FUNCTION lair.told(lair.theirs) RETURNS TEXT "
    "LANGUAGE sql AS $$ SELECT '(4,1,,0,f)' FROM lair.strike() $$; "
    "CREATE CAST (lair.theirs AS TEXT) WITH FUNCTION lair.told(lair.theirs)",
    "a cast to the cache": "CREATE FUNCTION lair.read(TEXT) RETURNS tique.tique_cache_{0} "
    "LANGUAGE sql AS $$ SELECT NULL::tique.tique_cache_{0} FROM lair.strike() $$; "
    "CREATE CAST (TEXT AS tique.tique_cache_{0}) WITH FUNCTION lair.read(TEXT)",
    "names of the catalog's": "CREATE TEMP VIEW pg_class AS SELECT c.*, "
    "lair.same(1) AS more FROM pg_catalog.pg_class AS c; "
    "CREATE FUNCTION pg_temp.format(TEXT, TEXT) RETURNS TEXT LANGUAGE sql AS "
    "$$ SELECT ''::TEXT FROM lair.strike() $$; "
    "CREATE FUNCTION pg_temp.unnest(tique.tique_cache_{0}[]) "
    "RETURNS SETOF tique.tique_cache_{0} LANGUAGE sql AS "
    "$$ SELECT NULL::tique.tique_cache_{0} FROM lair.strike() $$",
}


@pytest.mark.parametrize("kind", SESSIONS)
def test_objects_of_the_callers_session(lair, kind):
    """A guest's staging table is its own: its code there runs as the guest alone."""
    n = lair.number
    with lair.shop.by_hand("stranger") as connection:
        hand = Hand(connection, tables_of(lair.shop))
        connection.execute("SET search_path = pg_temp, lair, pg_catalog")
        ((cts,),) = hand.run("SELECT tique.guest_barrier(%s)", hand.client)
        rows = (
            f"SELECT tique.guest_append_rows({hand.client}, {n}, {cts}, ARRAY(SELECT "
        )
        _each(
            connection,
            f"CREATE TEMP TABLE tique_stage_{n} (id INTEGER, v INTEGER, m lair.mood, "
            "_sequence BIGINT, _deleted BOOLEAN)",
            *SESSIONS[kind].format(n).split("; "),
            f"INSERT INTO tique_stage_{n} VALUES (4, 1, NULL, 1, FALSE)",
            f"{rows} CAST(ROW(id, v, m, 0, FALSE) AS tique.tique_cache_{n}) "
            f"FROM tique_stage_{n}))",
            f"{rows} t FROM lair.theirs AS t))",
            f"SELECT tique.guest_append_staged({hand.client}, {n}, {cts}, "
            "'{\"(5,1,,0,f)\"}')",
        )
        connection.execute("RESET search_path")
        ((count,),) = connection.execute(
            f"SELECT count(*) FROM tique.tique_cache_{n}"
        ).fetchall()
        assert count > 0
        _each(
            connection,
            f"SELECT tique.finish({hand.client}, {cts})",
            f"SELECT tique.guest_fold({n}, tique.sts(), NULL)",
            f"SELECT tique.guest_leave({hand.client})",
        )
    lair.expect_unharmed()


def test_no_function_names_what_its_caller_can_have_made(shop):
    """No temporary table, of the caller's session, is read or written with more rights."""
    with shop.by_hand() as connection:
        found = connection.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'tique'::regnamespace "
            "AND replace(prosrc, 'search_path = pg_catalog, pg_temp', '') "
            "~* 'pg_temp|temporary|tique_stage|tique_incoming'"
        ).fetchall()
        assert found == []
        ((paths,),) = connection.execute(
            "SELECT array_agg(DISTINCT proconfig[1]) FROM pg_proc WHERE prosecdef "
            "AND pronamespace = 'tique'::regnamespace"
        ).fetchall()
    # Else the session's temporary tables come before the catalog's.
    assert paths == ["search_path=pg_catalog, pg_temp"]


def test_event_triggers_are_a_superusers(lair):
    """A table's owner cannot have one: what tique's DDL would set off is no stranger's."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        lair.by_stranger(
            "CREATE FUNCTION lair.on_ddl() RETURNS EVENT_TRIGGER LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM lair.strike(); END $$",
            "CREATE EVENT TRIGGER t ON ddl_command_end EXECUTE FUNCTION lair.on_ddl()",
        )


@pytest.mark.parametrize("kind", CODE)
def test_background_work_of_the_owner(partial, kind):
    """Checkpoints and recovery of a superuser, or of the owner of schema tique."""
    lair = partial
    lair.owner.commit("INSERT INTO lair.theirs VALUES (3, 30, NULL)")
    lair.owner.commit("UPDATE lair.theirs SET v = 11 WHERE id = 1")
    lair.owner.commit("UPDATE open SET v = 11 WHERE id = 1")
    lair.by_stranger(CODE[kind])
    lair.owner.database.timeline.advance()
    with suppress(tique.Error):
        lair.owner.connection.checkpoint()
    lair.expect_unharmed()
    lair.shop.restart()
    again = lair.shop.process()
    assert again.rows("SELECT v FROM open WHERE id = 1") == [(11,)]
    with suppress(tique.Error):
        again.connection.checkpoint()
    lair.expect_unharmed()


def test_values_of_types_in_the_log(shop):
    """Checkpoints and recovery read a value's text by its type, which others change."""
    shop.natively(
        "CREATE DOMAIN public.ours AS INTEGER",
        "GRANT USAGE ON TYPE public.ours TO PUBLIC",
    )
    table = THEIRS.replace("v INTEGER", "v public.ours")
    table = table.replace("m lair.mood", "m lair.mood, l lair.mood[]")
    try:
        lair = Lair(shop, table)
        found = lair.owner.database.catalog.find("lair", "theirs")
        assert lair.owner.database.catalog.buffers(found)
        lair.owner.commit("INSERT INTO lair.theirs VALUES (3, 30, 'good', '{good}')")
        lair.owner.commit(
            "UPDATE lair.theirs SET v = 11, m = 'good', l = '{good}' WHERE id = 1"
        )
        shop.natively("ALTER DOMAIN public.ours OWNER TO stranger")
        lair.by_stranger(
            CODE["cast"],
            "CREATE FUNCTION lair.moods(x TEXT) RETURNS lair.mood[] LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM lair.strike(); RETURN '{good}'; END $$",
            "CREATE CAST (TEXT AS lair.mood[]) WITH FUNCTION lair.moods(TEXT)",
            "ALTER DOMAIN public.ours ADD CHECK (lair.holds(VALUE)) NOT VALID",
        )
        for each in (lair.owner, None):
            if each is None:
                shop.restart()
                each = shop.process()
            with suppress(tique.Error):
                each.rows("SELECT sum(v), max(m), max(l) FROM lair.theirs")
            with suppress(tique.Error):
                each.connection.checkpoint()
            lair.expect_unharmed()
    finally:
        shop.natively(
            "DROP SCHEMA IF EXISTS lair CASCADE",
            "DROP DOMAIN IF EXISTS public.ours CASCADE",
        )


@pytest.mark.slow
@pytest.mark.parametrize("kind", CODE)
def test_adoption_and_detaching(shop, kind):
    """Another role's table is looked at, and let go, without its code."""
    lair = Lair(shop, PARTIAL)
    try:
        lair.owner.close()
        with suppress(tique.Error):
            tique.detach(shop.url(shop.keeper), ["lair.theirs"])
        lair.by_stranger(CODE[kind])
        with suppress(tique.Error):
            tique.adopt(shop.url(shop.keeper), ["lair.theirs"])
        lair.expect_unharmed()
        with suppress(tique.Error):
            tique.detach(shop.url(shop.keeper))
        lair.expect_unharmed()
    finally:
        shop.natively("DROP SCHEMA IF EXISTS lair CASCADE")


def test_rights_that_tiques_own_role_needs(partial):
    """Another role's table: adopted, written, folded, recovered and let go."""
    lair, shop = partial, partial.shop
    with shop.by_hand() as connection:
        sql = "SELECT rolsuper FROM pg_roles WHERE rolname = %s"
        ((is_superuser,),) = connection.execute(sql, [shop.keeper]).fetchall()
    assert is_superuser == (shop.engine.sequencer == "extension")
    lair.owner.commit("UPDATE lair.theirs SET v = 11 WHERE id = 1")
    lair.owner.commit(
        "INSERT INTO lair.theirs SELECT g, g FROM generate_series(3, 3000) g"
    )
    lair.owner.database.timeline.advance()
    lair.owner.connection.checkpoint()
    lair.owner.commit("UPDATE lair.theirs SET v = 21 WHERE id = 2")
    shop.restart()
    again = shop.process()
    sql = "SELECT v FROM lair.theirs WHERE id < 4 ORDER BY id"
    assert again.rows(sql) == [(11,), (21,), (3,)]
    again.close()
    tique.detach(shop.url(shop.keeper), ["lair.theirs"])
    with shop.by_hand("stranger") as connection:
        assert connection.execute(sql).fetchall() == [(11,), (21,), (3,)]


def test_all_functions_with_the_owners_rights_are_in_the_documents(shop):
    """docs/operations.md tells of each what it touches and which code it could run."""
    pages = Path(__file__).parents[2] / "docs" / "operations.md"
    text = pages.read_text("utf-8").partition("## PostgreSQL: what runs as which role")[
        2
    ]
    rows = re.findall(r"^\| (.*?) \|", text.partition("\n## ")[0], re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", " ".join(rows)))
    with shop.by_hand() as connection:
        found = connection.execute(
            "SELECT replace(p.proname, '_called', '') FROM pg_proc AS p "
            "JOIN pg_language AS l ON l.oid = p.prolang "
            "WHERE p.pronamespace = 'tique'::regnamespace "
            # The extension's own run as their callers, and have the plain form's names.
            "AND (p.prosecdef OR l.lanname = 'c')"
        ).fetchall()
    assert len(found) > 15
    assert {name for (name,) in found} == named


SHADOWS = """
CREATE FUNCTION public.seize(a {0}, b {1}) RETURNS {2} LANGUAGE plpgsql AS $$
BEGIN
  PERFORM lair.strike();
  RETURN a OPERATOR(pg_catalog.{3}) b;
END $$;
CREATE OPERATOR public.{3} (LEFTARG = {0}, RIGHTARG = {1}, FUNCTION = public.seize)"""


@pytest.mark.parametrize(
    ("left", "right", "result", "operator"),
    [
        ("VARCHAR", "VARCHAR", "BOOLEAN", "="),
        ("OID", "INTEGER", "BOOLEAN", "="),
        ("BIGINT[]", "BIGINT", "BIGINT[]", "||"),
    ],
)
def test_operators_in_a_schema_of_the_search_path(shop, left, right, result, operator):
    """They fit better than PostgreSQL's, of tique's statements that no role has sent."""
    owner = shop.owner
    owner.commit("CREATE TABLE named (k VARCHAR(9) PRIMARY KEY, v INTEGER)")
    owner.commit("INSERT INTO named VALUES ('a', 1), ('b', 1)")
    owner.connection.checkpoint()
    owner.commit("UPDATE named SET v = 2 WHERE k = 'b'")
    owner.commit("DELETE FROM named WHERE k = 'a'")
    shop.natively(
        "GRANT CREATE ON DATABASE tique TO stranger",
        "GRANT CREATE ON SCHEMA public TO stranger",
    )
    with shop.by_hand("stranger") as connection:
        connection.execute(LAIR)
        connection.execute(SHADOWS.format(left, right, result, operator))
    lair = Lair.__new__(Lair)
    lair.shop = shop
    try:
        owner.commit("INSERT INTO open VALUES (3, 3, NULL)")
        owner.database.engine.shared.tend()
        owner.database.timeline.advance()
        owner.connection.checkpoint()
        owner.commit("INSERT INTO open VALUES (4, 4, NULL)")
        lair.expect_unharmed()
        shop.restart()
        shop.process().connection.checkpoint()
        lair.expect_unharmed()
    finally:
        shop.natively("DROP FUNCTION public.seize CASCADE", "DROP SCHEMA lair CASCADE")
