"""P11: code of a role without privileges, run inside a session that has all of them.

PostgreSQL drops ``current_user`` to the role that the code is of, in maintenance commands
and in functions that run with their owner's rights; ``session_user`` stays what it was.
"""

from __future__ import annotations

import time

import psycopg
import pytest

import tique
from tests.postgresql.privileges import tables_of

# ``stranger`` may use schema tique and no table, and keeps all that the code reads.
LAIR = """
CREATE SCHEMA lair;
GRANT USAGE ON SCHEMA lair TO PUBLIC;
CREATE TABLE lair.loot (what TEXT);
CREATE TABLE lair.trap (id INTEGER PRIMARY KEY);
INSERT INTO lair.trap SELECT generate_series(1, 5);
CREATE FUNCTION lair.attempt(sql TEXT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'INSERT INTO lair.loot ' || sql;
EXCEPTION WHEN OTHERS THEN
  INSERT INTO lair.loot VALUES (SQLERRM);
END $$;
CREATE FUNCTION lair.strike() RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
  IF current_user <> 'stranger' THEN
    RETURN;
  END IF;
  PERFORM lair.attempt('SELECT session_user || '' ran it''');
  PERFORM lair.attempt('SELECT commits FROM tique.guest_log(0)');
  PERFORM lair.attempt('SELECT f::TEXT FROM tique.guest_join(60000) AS c, '
    'LATERAL tique.guest_follow(c, 0) AS f');
  PERFORM lair.attempt('SELECT c::TEXT FROM tique.tique_cache_CLOSED AS c');
  PERFORM lair.attempt('SELECT stamps::TEXT FROM tique.guest_join(60000) AS c, '
    'LATERAL tique.guest_introduce(c, 77, 5) AS e, LATERAL tique.guest_append(c, '
    'tique.sts(), ''0123456789abcdef'', ''{1}'', ARRAY[(e << 20) + 1], '
    '''[{"CLOSED":[[0,1,666,"forged"]]}]'')');
  PERFORM lair.attempt('SELECT tique.guest_append_staged(c, CLOSED, '
    'tique.guest_barrier(c), ''{"(9,666,forged,0,f)"}'')::TEXT FROM tique.guest_join(60000) AS c');
END $$;
CREATE FUNCTION lair.sprung(id INTEGER) RETURNS INTEGER IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
  PERFORM lair.strike();
  RETURN id;
END $$;
"""

MAINTENANCE = {
    "analyze": "ANALYZE lair.trap",
    "vacuum": "VACUUM (ANALYZE) lair.trap",
    "reindex": "REINDEX TABLE lair.trap",
    "cluster": "CLUSTER lair.trap USING trap_pkey",
    "create index": "CREATE INDEX ON lair.trap (id, lair.sprung(id))",
    "alter table": "ALTER TABLE lair.trap ALTER id TYPE INTEGER USING id + 1",
    "refresh": "REFRESH MATERIALIZED VIEW lair.seen",
    "definer": "SELECT lair.as_its_owner()",
}


class Victim:
    """The shop, and the attacker's objects in it."""

    def __init__(self, shop):
        self.shop = shop
        shop.natively(
            "GRANT USAGE ON SCHEMA tique TO stranger",
            "GRANT CREATE ON DATABASE tique TO stranger",
        )
        shop.owner.commit("UPDATE closed SET v = 11, note = 'secret' WHERE id = 1")
        shop.owner.rows("SELECT sum(v) FROM closed")
        self.by_attacker(LAIR.replace("CLOSED", tables_of(shop)["closed"]))

    def by_attacker(self, *statements):
        with self.shop.by_hand("stranger") as connection:
            for sql in statements:
                connection.execute(sql)

    def loot(self):
        with self.shop.by_hand() as connection:
            return [w for (w,) in connection.execute("SELECT what FROM lair.loot")]

    def expect_unharmed(self):
        """Nothing was read or written, and the attack was run."""
        loot = self.loot()
        assert "tique ran it" in loot
        assert "secret" not in str(loot)
        again = self.shop.process()
        for process in (self.shop.owner, again):
            rows = process.rows("SELECT id, v, note FROM closed ORDER BY id")
            assert rows == [(1, 11, "secret"), (2, 20, "b")]


@pytest.fixture
def victim(shop):
    yield Victim(shop)
    shop.natively("DROP SCHEMA IF EXISTS lair CASCADE")


@pytest.mark.parametrize("command", MAINTENANCE)
def test_maintenance_by_a_superuser(victim, command):
    victim.by_attacker(
        "CREATE INDEX sprung ON lair.trap (lair.sprung(id))",
        "CREATE MATERIALIZED VIEW lair.seen AS SELECT lair.sprung(1)",
        "CREATE FUNCTION lair.as_its_owner() RETURNS VOID LANGUAGE sql SECURITY DEFINER "
        "AS 'SELECT lair.strike()'",
        "DELETE FROM lair.loot",
    )
    victim.shop.natively(MAINTENANCE[command])
    victim.expect_unharmed()


@pytest.mark.slow
def test_autovacuum(victim):
    """Its session user is the bootstrap superuser."""
    victim.by_attacker(
        "CREATE INDEX sprung ON lair.trap (lair.sprung(id))",
        "ALTER TABLE lair.trap SET (autovacuum_analyze_threshold = 1, "
        "autovacuum_analyze_scale_factor = 0)",
        "DELETE FROM lair.loot",
    )
    with victim.shop.by_hand() as connection:
        connection.execute("ALTER SYSTEM SET autovacuum_naptime = 1")
        connection.execute("SELECT pg_reload_conf()")
        try:
            # Each by itself: a transaction of such calls has not much time.
            for number in range(6, 100):
                victim.by_attacker(f"INSERT INTO lair.trap VALUES ({number})")
            victim.by_attacker("DELETE FROM lair.loot")
            deadline = time.monotonic() + 90
            while not victim.loot() and time.monotonic() < deadline:
                time.sleep(0.2)
        finally:
            connection.execute("ALTER SYSTEM RESET autovacuum_naptime")
            connection.execute("SELECT pg_reload_conf()")
    victim.expect_unharmed()


@pytest.mark.parametrize("kind", ["trigger", "rule", "check", "default"])
def test_code_of_a_table_that_a_superuser_writes(victim, kind):
    """With its owner's rights, as far as the owner says so."""
    as_owner = "LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM lair.strike(); "
    victim.by_attacker(
        f"CREATE FUNCTION lair.strikes() RETURNS INTEGER {as_owner} RETURN 1; END $$",
        f"CREATE FUNCTION lair.fires() RETURNS TRIGGER {as_owner} RETURN NEW; END $$",
        {
            "trigger": "CREATE TRIGGER t BEFORE INSERT ON lair.trap FOR EACH ROW "
            "EXECUTE FUNCTION lair.fires()",
            "rule": "CREATE RULE r AS ON INSERT TO lair.trap "
            "DO ALSO SELECT lair.strikes()",
            "check": "ALTER TABLE lair.trap ADD CHECK (lair.strikes() = 1)",
            "default": "ALTER TABLE lair.trap ADD x INTEGER, "
            "ALTER x SET DEFAULT lair.strikes()",
        }[kind],
        "DELETE FROM lair.loot",
    )
    victim.shop.natively("INSERT INTO lair.trap (id) VALUES (100)")
    victim.expect_unharmed()


def test_a_mark_that_is_somebody_elses(victim):
    """P6: ending the sessions of a given-up process ends no others."""
    shop = victim.shop
    presence = shop.owner.database.engine._presence
    pid = presence._connection.pid
    victim.by_attacker(
        "CREATE FUNCTION lair.marks(mark INTEGER) RETURNS VOID LANGUAGE sql "
        "SECURITY DEFINER AS $$ SELECT lair.attempt('SELECT session_user || '' ran it'''), "
        "lair.attempt(format('SELECT tique.guest_introduce(tique.guest_join(60000), %s, 5)"
        "::TEXT', mark)) $$"
    )
    with shop.by_hand(shop.keeper) as connection:
        connection.execute(f"SELECT lair.marks({presence.mark})")
        backend = connection.info.backend_pid
    there = "SELECT 1 FROM pg_stat_activity WHERE pid = $1"
    while presence.ask(there, [backend]):
        time.sleep(0.01)
    shop.owner.database.engine.shared.tend()
    assert f"{shop.keeper} ran it" in victim.loot()
    assert presence.ask("SELECT pg_backend_pid()") == [(pid,)]
    shop.owner.commit("UPDATE closed SET v = 12 WHERE id = 1")


def test_a_calling_role_cannot_be_claimed(victim):
    """Only PostgreSQL tells the functions the role that calls them."""
    with victim.shop.by_hand("stranger") as connection:
        views = connection.execute(
            "SELECT c.oid::regclass::TEXT, a.attname, "
            "has_column_privilege(c.oid, a.attnum, 'INSERT'), "
            "has_column_privilege(c.oid, a.attnum, 'UPDATE') "
            "FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid "
            "WHERE c.relnamespace = 'tique'::regnamespace AND c.relkind = 'v'"
        ).fetchall()
        assert len(views) > 8
        callers = [view for view in views if view[1] == "guest"]
        assert callers
        assert not any(update for *_, update in views)
        for view, column, may_insert, _ in callers:
            assert not may_insert
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"INSERT INTO {view} ({column}) VALUES ('tique')")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(
                    f"CREATE VIEW pg_temp.mine AS SELECT * FROM {view}; "
                    f"ALTER VIEW pg_temp.mine ALTER {column} SET DEFAULT 'tique'; "
                    "INSERT INTO pg_temp.mine DEFAULT VALUES"
                )
        triggers = connection.execute(
            "SELECT oid::regprocedure::TEXT FROM pg_proc WHERE pronamespace = "
            "'tique'::regnamespace AND prorettype = 'trigger'::regtype"
        ).fetchall()
        assert triggers
        for (function,) in triggers:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(
                    "CREATE TRIGGER t BEFORE INSERT ON lair.trap FOR EACH ROW "
                    f"EXECUTE FUNCTION {function}"
                )


SPY = """
CREATE SCHEMA lair;
GRANT USAGE ON SCHEMA lair TO PUBLIC;
CREATE TABLE lair.loot (what TEXT);
GRANT INSERT ON lair.loot TO PUBLIC;
CREATE FUNCTION lair.spy(x INTEGER) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
  PERFORM lair.note();
  RETURN TRUE;
END $$;
CREATE FUNCTION lair.note() RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
  IF current_user <> 'stranger' THEN
    INSERT INTO lair.loot VALUES (current_user);
  END IF;
END $$;
CREATE FUNCTION lair.fires() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  PERFORM lair.note();
  RETURN NEW;
END $$;
"""

ADDED = {
    "trigger": "CREATE TRIGGER t BEFORE INSERT ON theirs FOR EACH ROW "
    "EXECUTE FUNCTION lair.fires()",
    "rule": "CREATE RULE r AS ON INSERT TO theirs DO ALSO SELECT lair.spy(1)",
    "check": "ALTER TABLE theirs ADD CHECK (lair.spy(v)) NOT VALID",
    "index": "CREATE INDEX ON theirs (lair.spy(v))",
    "partial": "CREATE INDEX ON theirs (v) WHERE lair.spy(v)",
    "domain": "CREATE DOMAIN lair.d AS INTEGER CHECK (lair.spy(VALUE)); "
    "ALTER TABLE theirs ALTER v TYPE lair.d",
}


@pytest.mark.parametrize("folder", ["owner", "guest"])
@pytest.mark.parametrize("kind", ADDED)
def test_code_that_a_tables_owner_has_added(shop, kind, folder):
    """A fold would run it with the rights of the owner of schema tique."""
    shop.natively(
        "GRANT CREATE ON SCHEMA public TO stranger",
        "GRANT CREATE ON DATABASE tique TO stranger",
        "GRANT USAGE ON SCHEMA tique TO stranger",
    )
    with shop.by_hand("stranger") as connection:
        connection.execute(SPY)
        connection.execute("CREATE TABLE theirs (id INTEGER PRIMARY KEY, v INTEGER)")
        connection.execute(f"GRANT ALL ON theirs TO {shop.keeper}")
    shop.owner.close()
    tique.adopt(shop.url(shop.keeper), ["public.theirs"])
    owner = shop.process()
    owner.commit("INSERT INTO theirs VALUES (1, 10)")
    owner.commit("UPDATE open SET v = 11 WHERE id = 1")
    with shop.by_hand("stranger") as connection:
        connection.execute(ADDED[kind])
        connection.execute("DELETE FROM lair.loot")
        owner.database.timeline.advance()
        if folder == "owner":
            with pytest.raises(tique.Error, match="would run with the rights"):
                owner.connection.checkpoint()
        else:
            sql = "SELECT tique.guest_fold(%s, tique.sts(), NULL)"
            with pytest.raises(psycopg.Error, match="would run with the rights"):
                connection.execute(sql, [int(tables_of(shop)["theirs"])])
            connection.execute(sql, [int(tables_of(shop)["open"])])
        assert connection.execute("SELECT what FROM lair.loot").fetchall() == []
    for process in (owner, shop.process()):
        assert process.rows("SELECT v FROM open WHERE id = 1") == [(11,)]
        assert process.rows("SELECT v FROM theirs WHERE id = 1") == [(10,)]
    shop.natively("DROP TABLE public.theirs; DROP SCHEMA lair CASCADE")
