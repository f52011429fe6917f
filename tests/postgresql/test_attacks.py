"""P11, P6: every function of schema tique, called by every kind of role with bad arguments.

The functions come from ``pg_proc``, and the views that take calls from ``pg_class``:
later additions are attacked without a change here.
"""

from __future__ import annotations

import random
import threading
import time
from contextlib import suppress

import psycopg
import pytest

import tique
from tests.effort import patience
from tests.postgresql.privileges import Hand, tables_of

LONGEST_STALL = 2.0
CALLS = 30
"""Of each function that the role may call."""

SECRETS = ("secret open", "secret closed")


class Healthy(threading.Thread):
    """A process of the owner's that commits all the time, and notes its stalls."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.process = process
        self.stalls = []
        self.failure = None
        self.count = 0
        self._done = threading.Event()

    def run(self):
        try:
            while not self._done.is_set():
                start = time.monotonic()
                self.process.commit(
                    "UPDATE closed SET v = %s WHERE id = 2", [self.count + 1]
                )
                self.count += 1
                assert self.process.rows("SELECT v FROM closed WHERE id = 2") == [
                    (self.count,)
                ]
                self.stalls.append(time.monotonic() - start)
                time.sleep(0.01)
        except (tique.Error, AssertionError) as error:
            self.failure = error

    def end(self):
        self._done.set()
        self.join(60)
        assert not self.is_alive()
        if self.failure is not None:
            raise self.failure


class Attacker:
    """A role's connection, and a client of its own; collects all that it is shown."""

    def __init__(self, connection, shop, seed):
        self.connection = connection
        self.shown, self.odd = [], []
        self.chance = random.Random(seed)
        self.tables = tables_of(shop)
        connection.execute("SET statement_timeout = '300ms'")
        self.hand = Hand(connection, self.tables)
        self.others = shop.owner.database.engine.shared._client

    def values(self, kind):
        """Arguments of a type; they need not be right together for a function."""
        tables = [int(number) for number in self.tables.values()]
        whole = [None, 0, -1, 1, 1 << 31, (1 << 62), (1 << 63) - 1, -(1 << 63)]
        if kind == "bigint":
            other = self.others + self.chance.choice((-1, 1))
            return [*whole, *tables, self.hand.client, self.hand.txid, other, 5]
        if kind in ("integer", "smallint"):
            return [None, 0, -1, 1, 77, (1 << 31) - 1 if kind == "integer" else 1]
        if kind == "bytea":
            return [None, b"", b"0" * 16, b"1" * 17, b"2" * 16 * 300]
        if kind in ("integer[]", "bigint[]"):
            return [
                None,
                [],
                [1],
                [-1],
                [None],
                [self.hand.txid % (1 << 31)],
                [1] * 3000,
            ]
        if kind in ("bytea[]", "json[]", "text[]"):
            return [None, []]
        if kind == "double precision":
            return [None, float("nan"), float("inf"), -1.0, 0.0, 1e308]
        if kind == "boolean":
            return [None, True, False]
        entries = [
            f'[{{"{number}":[[0,1,1,"forged"]]}}]' for number in self.tables.values()
        ]
        texts = [
            "",
            "'",
            '"',
            "'; DROP TABLE closed; --",
            "%s %I $1",
            "\x1f",
            "x" * 9999,
        ]
        if kind in ("text", "json"):
            documents = [
                *entries,
                "[{}]",
                "[",
                "[" * 5000,
                '[{"0":[]}]',
                "[{},{}]",
                "{}",
            ]
            return [None, *documents, *(texts if kind == "text" else ())]
        if kind in ("regclass", "regprocedure"):
            return [None, "closed", "tique.log"] if kind == "regclass" else [None]
        return [None, *texts] if kind == "name" else [None]

    def call(self, sql, kinds):
        """Call once with arguments by chance."""
        arguments = [self.chance.choice(self.values(kind)) for kind in kinds]
        places = ", ".join(f"%s::{kind}" for kind in kinds)
        try:
            cursor = self.connection.execute(sql.format(places), arguments or None)
            if cursor.description:
                self.shown.append(repr(cursor.fetchall()))
        except psycopg.Error as error:
            said = error.diag
            self.shown.append(f"{error} {said.message_detail} {said.context}")
            if error.sqlstate in (None, "XX000"):
                self.odd.append((sql, arguments, str(error)))

    def attack(self, name, sql, kinds, may):
        """Call a function, or insert into a view, again and again."""
        self.hand = Hand(self.connection, self.tables)
        client = self.hand.client
        for _ in range(CALLS if may and kinds else 2):
            self.call(sql, kinds)
        with suppress(psycopg.Error):
            self.connection.execute("SELECT tique.guest_leave(%s)", [client])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("privileges", "readable"),
    [
        ("USAGE ON SCHEMA public", ()),
        ("SELECT ON open", ("secret open",)),
        ("SELECT, UPDATE ON open", ("secret open",)),
    ],
    ids=["usage", "select", "update"],
)
def test_every_function(shop, privileges, readable):
    shop.natively(
        "GRANT USAGE ON SCHEMA tique TO stranger", f"GRANT {privileges} TO stranger"
    )
    for table in ("open", "closed"):
        sql = f"UPDATE {table} SET note = 'secret {table}' WHERE id = 1"
        shop.owner.commit(sql)
    shop.owner.rows("SELECT * FROM open, closed")
    healthy = Healthy(shop.process())
    healthy.start()
    with shop.by_hand("stranger") as connection:
        functions = connection.execute(
            "SELECT p.proname, format('SELECT * FROM tique.%I({})', p.proname), "
            "ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) AS t), "
            "has_function_privilege(p.oid, 'EXECUTE') FROM pg_proc AS p "
            "WHERE p.pronamespace = 'tique'::regnamespace ORDER BY 1"
        ).fetchall()
        views = connection.execute(
            "SELECT c.relname, format('INSERT INTO %s (%s) VALUES ({})', c.oid::regclass, "
            "string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)), "
            "array_agg(format_type(a.atttypid, NULL) ORDER BY a.attnum), true "
            "FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid "
            "WHERE c.relnamespace = 'tique'::regnamespace AND c.relkind = 'v' "
            "AND a.attname <> 'guest' GROUP BY c.oid ORDER BY 1"
        ).fetchall()
        assert sum(may for *_, may in functions) > 30
        assert len(views) > 7
        attacker = Attacker(connection, shop, seed=privileges)
        for name, sql, kinds, may in (*functions, *views):
            attacker.attack(name, sql, kinds, may)
    healthy.end()
    assert attacker.odd == []
    shown = " ".join(attacker.shown)
    for secret in SECRETS:
        assert (secret in shown) <= (secret in readable), secret
    assert healthy.count > 10
    assert max(healthy.stalls) < patience(LONGEST_STALL)
    rows = [(1, 10, "secret closed"), (2, healthy.count, "b")]
    for process in (shop.owner, healthy.process, shop.process()):
        assert process.rows("SELECT * FROM closed ORDER BY id") == rows
        found = process.rows("SELECT id, note FROM open ORDER BY id")
        if "UPDATE" in privileges:
            assert found in (
                [(1, "secret open"), (2, "b")],
                [(1, "forged"), (2, "b")],
            )
        else:
            assert found == [(1, "secret open"), (2, "b")]
        process.database.timeline.advance()
    shop.owner.connection.checkpoint()
    with shop.by_hand() as connection:
        stored = connection.execute("SELECT * FROM closed ORDER BY id").fetchall()
    assert stored == rows


def test_settings_of_the_caller_change_no_value(shop):
    """Versions are moved for all roles: no caller's settings decide their values."""
    shop.natively("GRANT USAGE ON SCHEMA tique TO stranger")
    shop.owner.commit(
        "CREATE TABLE many (id INTEGER PRIMARY KEY, a INTEGER[], t TEXT[], "
        "d DATERANGE, z TIMESTAMPTZ, i INTERVAL)"
    )
    shop.owner.commit(
        "INSERT INTO many VALUES (1, '{1,NULL}', '{a,NULL}', '[2020-01-02,2020-03-04)', "
        "'2020-01-02 03:04:05+00', '-1 day 2 hours')"
    )
    query = (
        "SELECT a IS NULL, CAST(a AS TEXT), t[2] IS NULL, CAST(d AS TEXT), "
        "extract(EPOCH FROM z), extract(EPOCH FROM i) FROM many"
    )
    before = shop.process().rows(query)
    shop.owner.commit("DELETE FROM many")
    shop.owner.commit(
        "INSERT INTO many VALUES (1, '{1,NULL}', '{a,NULL}', '[2020-01-02,2020-03-04)', "
        "'2020-01-02 03:04:05+00', '-1 day 2 hours')"
    )
    with shop.by_hand("stranger") as connection:
        for setting in (
            "array_nulls = off",
            "standard_conforming_strings = off",
            "transform_null_equals = on",
            "DateStyle = 'SQL, DMY'",
            "IntervalStyle = 'sql_standard'",
            "TimeZone = 'Asia/Kathmandu'",
            "extra_float_digits = -15",
            "bytea_output = 'escape'",
            "quote_all_identifiers = on",
            "row_security = off",
            "search_path = ''",
        ):
            connection.execute(f"SET {setting}")
        number = int(tables_of(shop)["many"])
        connection.execute("SELECT tique.guest_drain(%s, tique.sts())", [number])
    assert shop.process().rows(query) == before
    for process in shop.processes:
        process.database.timeline.advance()
    shop.owner.connection.checkpoint()
    assert shop.process().rows(query) == before


def test_statistics_show_nothing(shop):
    """Neither the view of them, nor a leaky operator that the planner tries on them."""
    shop.owner.commit("UPDATE closed SET note = 'secret closed'")
    shop.owner.rows("SELECT * FROM closed, open")
    shop.natively("ANALYZE")
    with shop.by_hand("writer") as connection:
        found = connection.execute("SELECT * FROM pg_stats").fetchall()
        assert "secret" not in str(found)
        connection.execute(
            "CREATE FUNCTION pg_temp.leak(TEXT, TEXT) RETURNS BOOLEAN LANGUAGE plpgsql "
            "AS $$ BEGIN RAISE EXCEPTION 'leaked % %', $1, $2; END $$"
        )
        connection.execute(
            "CREATE OPERATOR pg_temp.<<< (LEFTARG = TEXT, RIGHTARG = TEXT, "
            "FUNCTION = pg_temp.leak, RESTRICT = scalarltsel)"
        )
        connection.execute(
            f"EXPLAIN SELECT 1 FROM tique.tique_cache_{tables_of(shop)['closed']} "
            "WHERE note OPERATOR(pg_temp.<<<) 'x'"
        )


def test_names_of_the_callers_own(shop):
    """Its operators, functions and temporary tables are not found with others' rights."""
    shop.natively(
        "GRANT USAGE ON SCHEMA tique TO stranger",
        "GRANT CREATE ON DATABASE tique TO stranger",
    )
    with shop.by_hand("stranger") as connection:
        connection.execute(
            "CREATE SCHEMA lair; GRANT ALL ON SCHEMA lair TO PUBLIC; "
            "CREATE TABLE lair.loot (what TEXT); GRANT ALL ON lair.loot TO PUBLIC"
        )
        for kind in ("BIGINT", "TEXT", "NAME", "INTEGER"):
            connection.execute(
                f"CREATE FUNCTION lair.same({kind}, {kind}) RETURNS BOOLEAN "
                "LANGUAGE plpgsql AS $$ BEGIN IF current_user <> 'stranger' THEN "
                "INSERT INTO lair.loot VALUES (current_user); END IF; RETURN TRUE; END $$"
            )
            for operator in ("=", "<>", ">", "<=", "||"):
                connection.execute(
                    f"CREATE OPERATOR lair.{operator} (LEFTARG = {kind}, "
                    f"RIGHTARG = {kind}, FUNCTION = lair.same)"
                )
        for name in ("tables", "log", "clients", "fences", "format", "pg_class"):
            connection.execute(
                f'CREATE TEMPORARY TABLE "{name}" (id BIGINT, cts BIGINT)'
            )
        connection.execute("SET search_path = lair, pg_temp, pg_catalog")
        attacker = Attacker(connection, shop, seed=1)
        functions = connection.execute(
            "SELECT format('SELECT * FROM tique.%I({})', p.proname), "
            "ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) AS t) "
            "FROM pg_proc AS p WHERE has_function_privilege(p.oid, 'EXECUTE') AND "
            "p.pronamespace OPERATOR(pg_catalog.=) 'tique'::regnamespace ORDER BY 1"
        ).fetchall()
        assert len(functions) > 30
        for sql, kinds in functions:
            for _ in range(5):
                attacker.call(sql, kinds)
        loot = connection.execute("SELECT what FROM lair.loot").fetchall()
    shop.natively("DROP SCHEMA lair CASCADE")
    assert loot == []
