"""What hangs on a transaction or session is as natively, or refused by name (P10, P12).

Each script runs on PostgreSQL itself and through tique: every statement gives the same rows, or an error with the same SQLSTATE; ``REFUSED``
ones are refused by tique, with the name of the construct, at the statement that is named.
"""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

import tique

pytestmark = pytest.mark.written_for(
    ["postgresql"], reason="its functions and settings"
)

SAME = {
    "lastval after a sequence's nextval": (
        "SELECT nextval('numbers')",
        "SELECT nextval('numbers')",
        "SELECT lastval(), currval('numbers')",
        "COMMIT",
        "SELECT lastval(), currval('numbers')",
    ),
    "currval before nextval": ("SELECT currval('numbers')",),
    "lastval before nextval": ("SELECT lastval()",),
    "currval survives a rollback": (
        "SELECT nextval('numbers')",
        "ROLLBACK",
        "SELECT currval('numbers')",
    ),
    "lastval after an INSERT into serial": (
        "INSERT INTO serial (n) VALUES (1), (2)",
        "SELECT lastval(), currval('serial_id_seq')",
        "SELECT currval(pg_get_serial_sequence('serial', 'id'))",
    ),
    "setseed": (
        "SELECT setseed(0.25)",
        "SELECT random(), random()",
        "SELECT n, random() FROM t ORDER BY id",
        "COMMIT",
        "SELECT random()",
    ),
    "random in a DEFAULT after setseed": (
        "SELECT setseed(0.5)",
        "INSERT INTO luck (id) VALUES (1), (2)",
        "SELECT * FROM luck ORDER BY id",
        "SELECT random()",
    ),
    "SET LOCAL ends with the transaction": (
        "BEGIN",
        "SET LOCAL app.tenant = '7'",
        "SELECT current_setting('app.tenant')",
        "COMMIT",
        "SELECT current_setting('app.tenant', true)",
    ),
    "SET is taken back by a rollback": (
        "BEGIN",
        "SET app.tenant = '7'",
        "ROLLBACK",
        "SELECT coalesce(current_setting('app.tenant', true), '')",
    ),
    "SET LOCAL and a savepoint": (
        "BEGIN",
        "SET LOCAL app.tenant = '1'",
        "SAVEPOINT a",
        "SET LOCAL app.tenant = '2'",
        "ROLLBACK TO a",
        "SELECT current_setting('app.tenant')",
        "COMMIT",
    ),
    "set_config of the transaction": (
        "BEGIN",
        "SELECT set_config('app.tenant', '9', true)",
        "SELECT current_setting('app.tenant')",
        "INSERT INTO t VALUES (50, 1, 'x')",
        "SELECT current_setting('app.tenant')",
        "COMMIT",
        "SELECT current_setting('app.tenant', true)",
    ),
    "set_config of the session": (
        "SELECT set_config('app.tenant', '9', false)",
        "COMMIT",
        "SELECT current_setting('app.tenant')",
    ),
    "ON COMMIT DROP": (
        "BEGIN",
        "CREATE TEMP TABLE w (id INTEGER) ON COMMIT DROP",
        "INSERT INTO w VALUES (1)",
        "SELECT * FROM w",
        "COMMIT",
        "SELECT * FROM w",
    ),
    "ON COMMIT DELETE ROWS": (
        "CREATE TEMP TABLE w (id INTEGER) ON COMMIT DELETE ROWS",
        "COMMIT",
        "BEGIN",
        "INSERT INTO w VALUES (1)",
        "SELECT * FROM w",
        "COMMIT",
        "SELECT * FROM w",
    ),
    "ON COMMIT PRESERVE ROWS": (
        "CREATE TEMP TABLE w (id INTEGER) ON COMMIT PRESERVE ROWS",
        "COMMIT",
        "INSERT INTO w VALUES (1)",
        "COMMIT",
        "INSERT INTO w VALUES (2)",
        "ROLLBACK",
        "SELECT * FROM w",
    ),
    "a temporary table is taken back by a rollback": (
        "BEGIN",
        "CREATE TEMP TABLE w (id INTEGER)",
        "ROLLBACK",
        "SELECT * FROM w",
    ),
    "WITH HOLD": (
        "BEGIN",
        "DECLARE c CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY id",
        "FETCH 1 FROM c",
        "COMMIT",
        "FETCH 1 FROM c",
        "CLOSE c",
    ),
    "WITH HOLD is gone after a rollback": (
        "BEGIN",
        "DECLARE c CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY id",
        "ROLLBACK",
        "FETCH 1 FROM c",
    ),
    "a cursor ends with its transaction": (
        "BEGIN",
        "DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id",
        "FETCH 1 FROM c",
        "COMMIT",
        "FETCH 1 FROM c",
    ),
    "a cursor's query has the transaction's moment": (
        "BEGIN",
        "DECLARE c CURSOR FOR SELECT now() = transaction_timestamp(), now() FROM t",
        "SELECT 1",
        "COMMIT",
    ),
    "EXECUTE with now()": (
        "PREPARE p (TIMESTAMPTZ) AS SELECT $1 = now()",
        "COMMIT",
        "BEGIN",
        "SELECT 1",
        "EXECUTE p(now())",
        "COMMIT",
    ),
    "EXECUTE of an INSERT with now()": (
        "PREPARE p (INTEGER, TIMESTAMPTZ) AS INSERT INTO seen VALUES ($1, $2)",
        "COMMIT",
        "BEGIN",
        "SELECT 1",
        "EXECUTE p(1, now())",
        "SELECT at = now() FROM seen",
        "COMMIT",
    ),
    "a DEFAULT with now()": (
        "BEGIN",
        "SELECT 1",
        "INSERT INTO checked (id) VALUES (1)",
        "INSERT INTO checked VALUES (2, now())",
        "SELECT id, made = now() FROM checked ORDER BY id",
        "ROLLBACK",
    ),
    "a generated column": (
        "INSERT INTO made (id, price) VALUES (1, 4)",
        "SELECT * FROM made",
        "UPDATE made SET price = 5",
        "SELECT * FROM made",
    ),
    "a generated column of now()": (
        "CREATE TABLE x (id INTEGER PRIMARY KEY, "
        "at TIMESTAMPTZ GENERATED ALWAYS AS (now()) STORED)",
    ),
    "the word now as a value": (
        "BEGIN",
        "SELECT 1",
        "INSERT INTO times VALUES (1, 'now', 'now', 'today', 'now', 'now')",
        "INSERT INTO times (s, id, day) VALUES ('today', 2, 'tomorrow'), ('now', 3, 'now')",
        "INSERT INTO times VALUES (1) ON CONFLICT (id) DO UPDATE SET local = 'now'",
        "UPDATE times SET at = 'now', s = 'now' WHERE id = 2",
        "SELECT id, at = now(), local = localtimestamp, day - current_date, "
        "clock = localtime, s FROM times ORDER BY id",
        "INSERT INTO times VALUES (4, 'yesterday', ' Tomorrow ')",
        "MERGE INTO times USING (SELECT 5 AS n) AS w ON id = n WHEN NOT MATCHED THEN "
        "INSERT (id, s, at) VALUES (n, 'now', 'now')",
        "UPDATE times SET frame = 'today' WHERE id = 5",
        "SELECT s, at = now(), frame FROM times WHERE id = 5",
        "SELECT at = current_date - 1, local = current_date + 1 FROM times WHERE id = 4",
        "ROLLBACK",
    ),
    "the word now as a DEFAULT": (
        "CREATE TABLE x (id INTEGER PRIMARY KEY, at TIMESTAMPTZ DEFAULT 'now')",
        "COMMIT",
        "INSERT INTO x VALUES (1)",
        "COMMIT",
        "INSERT INTO x VALUES (2)",
        "SELECT count(DISTINCT at) FROM x",
        "COMMIT",
        "ALTER TABLE x ALTER COLUMN at SET DEFAULT 'now'",
        "COMMIT",
        "INSERT INTO x VALUES (3)",
        "COMMIT",
        "INSERT INTO x VALUES (4)",
        "SELECT count(DISTINCT at) FROM x",
    ),
    "a view of the word now": (
        "CREATE VIEW y AS SELECT 'now'::timestamptz AS at",
        "COMMIT",
        "SELECT at < now() FROM y",
        "DROP VIEW y",
        "COMMIT",
    ),
    # docs/isolation.md: these are times of the statement, which are not older.
    "the word now that only the engine knows for a time": (
        "BEGIN",
        "SELECT 1",
        "SELECT coalesce(NULL::timestamptz, 'now') >= now()",
        "INSERT INTO seen SELECT 1, 'now'",
        "SELECT at >= now() FROM seen",
        "SELECT count(*) FROM seen WHERE at <= 'now'",
        "ROLLBACK",
    ),
    "an own function that calls now()": (
        "BEGIN",
        "SELECT 1",
        "SELECT moment() >= now()",
        "INSERT INTO seen VALUES (1, moment())",
        "SELECT at >= now() FROM seen",
        "COMMIT",
    ),
    "the same backend": (
        "CREATE TEMP TABLE mine AS SELECT pg_backend_pid() AS pid",
        "COMMIT",
        "SELECT pid = pg_backend_pid() FROM mine",
    ),
    "inet_client_addr": ("SELECT inet_client_addr() IS NULL, inet_client_port()",),
}
REFUSED = {
    "LISTEN": ("LISTEN news", "LISTEN"),
    "the engine's transaction": ("SELECT txid_current()", "txid_current"),
    "its 64 bits": ("SELECT pg_current_xact_id()", "pg_current_xact_id"),
    "the rows' transaction": ("SELECT xmin FROM t", "xmin"),
    "a CHECK with now()": (
        "CREATE TABLE x (id INTEGER PRIMARY KEY, at TIMESTAMPTZ CHECK (at <= now()))",
        r"now\(\)",
    ),
    "set_config of an expression": (
        "SELECT set_config('app.x', pg_backend_pid()::text, false)::int",
        "set_config",
    ),
    "an advisory lock": (
        "SELECT pg_advisory_xact_lock(1)",
        "pg_advisory_xact_lock",
    ),
    "one that does not wait": (
        "SELECT pg_try_advisory_xact_lock(1)",
        "pg_try_advisory_xact_lock",
    ),
    "one of the session": ("SELECT pg_advisory_lock(1)", "pg_advisory_lock"),
    "one that is shared": (
        "SELECT pg_advisory_xact_lock_shared(1, 2)",
        "pg_advisory_xact_lock_shared",
    ),
}
_TABLES = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, s TEXT)",
    "INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')",
    "CREATE TABLE serial (id SERIAL PRIMARY KEY, n INTEGER)",
    "CREATE TABLE seen (id INTEGER PRIMARY KEY, at TIMESTAMPTZ)",
    "CREATE TYPE timeframe AS ENUM ('today', 'now')",
    "CREATE TABLE times (id INTEGER PRIMARY KEY, at TIMESTAMPTZ, local TIMESTAMP, "
    "day DATE, clock TIME, s TEXT, frame timeframe)",
    "CREATE TABLE luck (id INTEGER PRIMARY KEY, n FLOAT8 DEFAULT random())",
    "CREATE TABLE checked (id INTEGER PRIMARY KEY, made TIMESTAMPTZ DEFAULT now())",
    "CREATE TABLE made (id INTEGER PRIMARY KEY, price INTEGER, "
    "twice INTEGER GENERATED ALWAYS AS (price * 2) STORED)",
    "CREATE SEQUENCE numbers",
)
_MOMENT = (
    "CREATE FUNCTION moment() RETURNS TIMESTAMPTZ LANGUAGE SQL STABLE AS 'SELECT now()'"
)
_DROPS = (
    *("DROP TABLE IF EXISTS x, t, serial, seen, times, luck, checked, made CASCADE",),
    *("DROP SEQUENCE IF EXISTS numbers", "DROP FUNCTION IF EXISTS moment"),
    "DROP TYPE IF EXISTS timeframe",
)


def _outcomes(connection: Any, script: tuple[str, ...]) -> list[Any]:
    told: list[Any] = []
    for sql in script:
        try:
            cursor = connection.execute(sql)
            rows = cursor.fetchall() if cursor.description else None
        except Exception as error:
            told.append((sql, getattr(error, "sqlstate", None) or str(error)))
        else:
            told.append((sql, rows))
    return told


def _natively(engine: Any, script: tuple[str, ...]) -> list[Any]:
    native = engine.native()
    for sql in (*_TABLES, _MOMENT):
        native.execute(sql)
    native.autocommit = False
    found = _outcomes(native, script)
    native.rollback()
    native.autocommit = True
    for sql in _DROPS:
        native.execute(sql)
    native.close()
    return found


@pytest.mark.parametrize("name", SAME)
def test_as_natively(engine, name):
    expected = _natively(engine, SAME[name])
    native = engine.native()
    native.execute(_MOMENT)
    native.close()
    connection = engine.connect(autocommit=True)
    for sql in _TABLES:
        connection.execute(sql)
    connection.autocommit = False
    assert _outcomes(connection, SAME[name]) == expected


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(engine, name):
    sql, construct = REFUSED[name]
    connection = engine.connect()
    connection.execute(_TABLES[0])
    connection.commit()
    with pytest.raises(tique.NotSupportedError, match=construct):
        connection.execute(sql)


def test_the_word_now_in_prepare_is_of_its_execution(engine):
    """docs/isolation.md: natively it is of PREPARE."""
    connection = engine.connect()
    connection.execute("PREPARE p AS SELECT 'now'::timestamptz = now()")
    connection.commit()
    connection.execute("SELECT 1")
    assert connection.execute("EXECUTE p").fetchone() == (True,)


@pytest.mark.parametrize("ends", ["COMMIT", "ROLLBACK"])
def test_notify_is_delivered_at_the_commit(engine, ends):
    """And not at a rollback, nor before."""
    sender = engine.connect()
    with psycopg.connect(engine.place, autocommit=True) as listener:
        listener.execute("LISTEN news")
        sender.execute("BEGIN")
        sender.execute("NOTIFY news, 'one'")
        sender.execute("SELECT pg_notify('news', 'two')")
        early = [each.payload for each in listener.notifies(timeout=0.2)]
        sender.execute(ends)
        got = [each.payload for each in listener.notifies(timeout=1)]
    assert early == []
    assert got == (["one", "two"] if ends == "COMMIT" else [])
