"""P4, P5, P11: a database of a release before gets the functions of a new one, whole.

``format_3`` has databases as ``pg_dump`` writes them, of both forms. Format 3's last
release made them, without a checkpoint: ``kept``, ``closed``, ``child`` and ``keyless``,
another role's ``lair.theirs``, adopted, and commits of guests in the log. In format 3 that
role's code, in an index of its table, runs as the owner of schema ``tique``.
"""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

import tique
from tests.plugins.engine import PostgreSQL, label
from tests.postgresql.privileges import denied, tables_of
from tique_backends.engine import FORMAT_OF_OWNERS_CODE, FORMAT_VERSION

DUMPS = Path(__file__).parent / "format_3"

NEWER = (
    "open_locker(bigint)",
    "close_locker(bigint, bigint)",
    "interrupt_locker(bigint, bigint)",
    "lock(bigint, bigint, boolean, bigint, bigint[])",
    "unlock(bigint, bigint, boolean, bigint[])",
    "expect_free(bigint[])",
)
"""Functions of the extension that format 3 does not have."""

TABLES = (
    "CREATE TABLE kept (id INTEGER PRIMARY KEY, v INTEGER CHECK (v < 1000000), note TEXT)",
    "CREATE TABLE closed (id INTEGER PRIMARY KEY, v INTEGER)",
    "CREATE TABLE child (id INTEGER PRIMARY KEY, k INTEGER REFERENCES kept)",
    "CREATE TABLE keyless (v INTEGER)",
)

CATALOG = (
    "SELECT p.oid::regprocedure::text, p.prosrc, p.prosecdef, p.proconfig::text, "
    "p.proacl::text, p.provolatile, pg_get_userbyid(p.proowner) FROM pg_proc AS p "
    "WHERE p.pronamespace = 'tique'::regnamespace",
    "SELECT c.relname, c.relkind, c.relpersistence, c.relacl::text, c.reloptions::text, "
    "pg_get_userbyid(c.relowner), a.attname, format_type(a.atttypid, a.atttypmod), "
    "a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attacl::text FROM pg_class AS c "
    "JOIN pg_attribute AS a ON a.attrelid = c.oid LEFT JOIN pg_attrdef AS d "
    "ON d.adrelid = c.oid AND d.adnum = a.attnum "
    "WHERE c.relnamespace = 'tique'::regnamespace AND a.attnum > 0",
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) "
    "FROM pg_constraint WHERE connamespace = 'tique'::regnamespace",
    "SELECT pg_get_triggerdef(t.oid) FROM pg_trigger AS t JOIN pg_class AS c "
    "ON c.oid = t.tgrelid WHERE c.relnamespace = 'tique'::regnamespace",
    "SELECT tablename, policyname, roles::text, cmd, qual FROM pg_policies "
    "WHERE schemaname = 'tique'",
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'tique'",
    "SELECT version FROM tique.format",
)

ATTACK = (
    "CREATE SEQUENCE lair.strikes",
    "GRANT USAGE ON lair.strikes TO PUBLIC",
    "CREATE FUNCTION lair.strike() RETURNS BIGINT LANGUAGE sql AS "
    "$$ SELECT nextval('lair.strikes') WHERE current_user <> 'stranger' $$",
    "CREATE FUNCTION lair.same(x INTEGER) RETURNS INTEGER IMMUTABLE LANGUAGE plpgsql AS "
    "$$ BEGIN PERFORM lair.strike(); RETURN x; END $$",
    "CREATE INDEX ON lair.theirs (lair.same(v))",
    "SELECT tique.guest_stage({0})",
    "INSERT INTO pg_temp.tique_stage_{0} VALUES (4, 1, 1, FALSE)",
    "SELECT tique.guest_guard_stage({0})",
)


def catalog(shop):
    with shop.by_hand() as connection:
        return [set(connection.execute(sql).fetchall()) for sql in CATALOG]


def version(shop):
    return max(catalog(shop)[-1])[0]


@pytest.fixture
def new(shop):
    """The catalog of a new database with the tables that the old one has."""
    shop.owner.close()
    shop.engine.begin_again()
    shop.natively(
        *(
            f"ALTER DEFAULT PRIVILEGES FOR ROLE {shop.keeper} "
            f"REVOKE ALL ON {kind} FROM careless"
            for kind in ("TABLES", "SEQUENCES", "FUNCTIONS")
        ),
        f"GRANT USAGE, CREATE ON SCHEMA public TO {shop.keeper}",
        "CREATE SCHEMA lair AUTHORIZATION stranger",
        "GRANT USAGE ON SCHEMA lair TO PUBLIC",
        "CREATE TABLE lair.theirs (id INTEGER PRIMARY KEY, v INTEGER)",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON lair.theirs TO {shop.keeper}",
    )
    owner = shop.process()
    for sql in TABLES:
        owner.commit(sql)
    owner.close()
    tique.adopt(shop.url(shop.keeper), ["lair.theirs"])
    return catalog(shop)


@pytest.fixture
def old(shop, new):
    """The shop with the database of format 3 in it."""
    shop.engine.begin_again()
    form = shop.engine.sequencer
    with shop.by_hand() as connection:
        connection.execute(gzip.decompress((DUMPS / f"{form}.sql.gz").read_bytes()))
    shop.natively("GRANT USAGE ON SCHEMA public TO PUBLIC")
    if form == "extension":
        for function in NEWER:
            shop.natively(
                f"ALTER EXTENSION tique DROP FUNCTION tique.{function}",
                f"DROP FUNCTION tique.{function}",
            )
    assert version(shop) == FORMAT_OF_OWNERS_CODE
    # The sequencer knows the timestamps of the new database.
    shop.restart()
    yield shop
    shop.natively("DROP SCHEMA IF EXISTS lair CASCADE")


def strikes(shop):
    """Whether an index that the stranger makes runs its function as another role."""
    number = tables_of(shop)["theirs"]
    with shop.by_hand("stranger") as connection:
        for sql in ATTACK:
            with suppress(psycopg.Error):
                connection.execute(sql.format(number))
        ((struck,),) = connection.execute(
            "SELECT is_called FROM lair.strikes"
        ).fetchall()
        connection.execute("DROP FUNCTION lair.same(INTEGER), lair.strike() CASCADE")
        connection.execute("DROP SEQUENCE lair.strikes")
    return struck


def test_a_database_of_format_3(old, new):
    """It has what a new one has, whichever role upgrades it; rows and rights are kept."""
    shop = old
    assert strikes(shop)
    with pytest.raises(tique.OperationalError, match="has to connect first"):
        shop.process("writer")
    owner = shop.process("tique")
    assert owner.rows("SELECT id, v FROM kept WHERE id < 102 ORDER BY id") == [
        (1, 11),
        (3, 30),
        (100, 100),
        (101, 101),
    ]
    assert owner.rows("SELECT v FROM keyless ORDER BY v") == [(1,), (1,), (3,)]
    assert owner.rows("SELECT v FROM lair.theirs ORDER BY v") == [(10,), (21,)]
    writer, reader = shop.process("writer"), shop.process("reader")
    writer.commit("UPDATE kept SET v = 12 WHERE id = 1")
    assert reader.rows("SELECT v FROM kept WHERE id = 1") == [(12,)]
    with denied():
        reader.commit("UPDATE kept SET v = 13 WHERE id = 1")
    with denied():
        writer.rows("SELECT * FROM closed")
    owner.connection.checkpoint()
    assert not strikes(shop)
    for found, expected in zip(catalog(shop), new, strict=True):
        assert found == expected


OLDER = (
    "CREATE FUNCTION public.older() RETURNS EVENT_TRIGGER LANGUAGE plpgsql AS "
    "$$ BEGIN ALTER EXTENSION tique DROP FUNCTION tique.{0}; DROP FUNCTION tique.{0}; END $$",
    "CREATE EVENT TRIGGER older ON ddl_command_end WHEN TAG IN ('CREATE EXTENSION') "
    "EXECUTE FUNCTION public.older()",
)


@pytest.mark.parametrize("shop", [PostgreSQL], ids=label, indirect=True)
def test_an_upgrade_beside_the_extension_of_before(old):
    """P5: the server's files are older than the package: says so, and does nothing."""
    before = catalog(old)
    old.natively(*(sql.format(NEWER[-1]) for sql in OLDER))
    try:
        with pytest.raises(tique.OperationalError, match="udf build") as caught:
            old.process()
    finally:
        old.natively("DROP EVENT TRIGGER older", "DROP FUNCTION public.older()")
    assert caught.value.sqlstate == "55000"
    assert catalog(old) == before
    old.process()
    assert version(old) == FORMAT_VERSION


def test_a_process_that_knows_format_3(old):
    """One that has read the format before the upgrade does not begin after it."""
    shop = old
    shop.process()
    with shop.by_hand(shop.keeper) as connection:
        with pytest.raises(psycopg.errors.NotNullViolation):
            connection.execute("INSERT INTO tique.clients VALUES (1, 2, 3)")
        with pytest.raises(psycopg.errors.UndefinedFunction):
            connection.execute("SELECT tique.guest_introduce(1, 2)")


@pytest.mark.slow
def test_an_upgrade_that_is_cut_short(old, new):
    """A process that dies in it leaves the database as it was."""
    shop = old
    before = catalog(shop)
    child = f"import tique; tique.connect({shop.url(shop.keeper)!r})"
    with shop.by_hand() as reader:
        with reader.transaction():
            # The upgrade drops this table when it has dropped all functions.
            reader.execute("SELECT FROM tique.barriers")
            process = subprocess.Popen([sys.executable, "-c", child])
            waits = "SELECT FROM pg_locks WHERE relation = %s::regclass AND NOT granted"
            with shop.by_hand() as watcher:
                while not watcher.execute(waits, ["tique.barriers"]).fetchall():
                    assert process.poll() is None
                process.send_signal(signal.SIGKILL)
                process.wait()
        ended = (
            "SELECT FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid NOT IN (%s, pg_backend_pid()) AND backend_type = 'client backend'"
        )
        with shop.by_hand() as watcher:
            while watcher.execute(ended, [reader.info.backend_pid]).fetchall():
                pass
    assert catalog(shop) == before
    shop.process().close()
    assert version(shop) == FORMAT_VERSION
    assert catalog(shop)[0] == new[0]
