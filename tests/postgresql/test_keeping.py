"""Values that the driver keeps as PostgreSQL's own text, and loads by COPY."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import psycopg
import pytest
from psycopg import conninfo

import tique
from tests.effort import patience
from tests.postgresql.test_values import VALUES
from tests.sharing.playing import Process

pytestmark = pytest.mark.written_for(["postgresql"], reason="the types are its own")

NOT_KEPT = {
    "MONEY": "1.00",
    "XML": "<a/>",
    "REGCLASS": "pg_class",
    "CHAR(3)[]": "{a}",
    "VARCHAR(3)[]": "{a}",
    "BIT(3)[]": "{101}",
    "priced": "(1,2.50)",
    "priced[]": '{"(1,2.50)"}',
    "CITEXT": "a",
    "moments": "[2024-02-29 12:00,)",
    "TIMESTAMP(0)": "2024-02-29 12:00",
}
MANY = 2500
"""More rows than a statement keeps in memory: they are staged, by COPY."""


def is_bulk(engine, connection, sql, parameters=()):
    """Whether a statement's commit has its rows in the cache table only."""
    connection.execute(sql, parameters)
    connection.commit()
    query = "SELECT commits::json->1 FROM tique.log ORDER BY cts DESC"
    with closing(psycopg.connect(engine.place)) as native:
        (rows,) = native.execute(query).fetchone()
    return bool(rows)


@pytest.mark.parametrize("type_name", sorted(VALUES.keys() - NOT_KEPT))
def test_its_writes_are_ordinary_commits(engine, type_name):
    """P6: no client waits for a write of one row, with any types in its table."""
    connection = engine.connect(checkpoint="manual")
    connection.execute(f"CREATE TABLE t (n INTEGER PRIMARY KEY, x {type_name})")
    literal = engine.literal(VALUES[type_name][-1])
    assert not is_bulk(engine, connection, "INSERT INTO t VALUES (1, NULL)")
    if type_name != "DATE":
        insert = f"INSERT INTO t VALUES (2, {literal})"
        assert not is_bulk(engine, connection, insert)
        assert not is_bulk(engine, connection, f"UPDATE t SET x = {literal}")
    assert not is_bulk(engine, connection, "DELETE FROM t WHERE n = 1")


@pytest.mark.parametrize("type_name", NOT_KEPT)
def test_what_is_not_kept_is_staged(engine, type_name):
    """P10: a text that means another thing tomorrow, or elsewhere, is not kept."""
    native = engine.native()
    native.execute("CREATE TYPE colour AS ENUM ('red', 'blue')")
    native.execute("CREATE TYPE priced AS (a INTEGER, b MONEY)")
    native.execute("CREATE TYPE moments AS RANGE (subtype = timestamptz)")
    native.execute("CREATE EXTENSION IF NOT EXISTS citext")
    connection = engine.connect(checkpoint="manual")
    connection.execute(f"CREATE TABLE t (n INTEGER PRIMARY KEY, x {type_name})")
    insert = f"INSERT INTO t VALUES (1, {engine.literal(NOT_KEPT[type_name])})"
    assert is_bulk(engine, connection, insert)


@pytest.mark.parametrize("definition", ["x JSONB PRIMARY KEY", "x JSONB", "x NUMERIC"])
def test_keys_are_not_kept(engine, definition):
    """P3: a document, a number and a whole row have several texts each."""
    connection = engine.connect(checkpoint="manual")
    connection.execute(f"CREATE TABLE t ({definition})")
    assert is_bulk(engine, connection, "INSERT INTO t VALUES ('1.50')")


@pytest.mark.parametrize("type_name", VALUES)
def test_another_process_reads_what_was_logged(engine, type_name):
    """P2, P4: from the log and from the cache table, and writes it on."""
    first = Process(engine.url)
    first.commit(f"CREATE TABLE t (n INTEGER PRIMARY KEY, x {type_name}, m INTEGER)")
    second = Process(engine.url)
    with closing(first), closing(second):
        for number, value in enumerate(VALUES[type_name]):
            literal = engine.literal(value)
            first.commit(f"INSERT INTO t VALUES ({number}, {literal}, 0)")
            second.commit("UPDATE t SET m = 1 WHERE n = %s", (number,))
        with closing(psycopg.connect(engine.place)) as native:
            texts = [
                native.execute(f"SELECT CAST({text}::{type_name} AS TEXT)").fetchone()[
                    0
                ]
                for text in map(engine.literal, VALUES[type_name])
            ]
        for process in (first, second):
            assert process.rows("SELECT x::text, m FROM t ORDER BY n") == [
                (text, 1) for text in texts
            ]
        for number in range(len(texts)):
            query = "SELECT x FROM t WHERE n = %s"
            outcomes = [_outcome(p, query, number) for p in (first, second)]
            assert outcomes[0] == outcomes[1]


def _outcome(process, query, number):
    try:
        return repr(process.rows(query, (number,)))
    except tique.DataError as error:
        return str(error)


def test_digits_that_do_not_count_are_kept_too(engine):
    """A new version that is equal to storage's row and not the same replaces it."""
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, x NUMERIC, y NUMERIC[])")
    connection.execute("INSERT INTO t VALUES (1, 1.0, '{1.0}')")
    connection.commit()
    connection.checkpoint()
    connection.execute("SELECT * FROM t WHERE n = 1").fetchall()
    connection.execute("UPDATE t SET x = 1.00, y = '{1.00}' WHERE n = 1")
    connection.commit()
    connection.checkpoint()
    found = engine.native().execute("SELECT x::text, y::text FROM t").fetchall()
    assert found == [("1.00", "{1.00}")]


def test_moments_are_shown_in_the_sessions_time_zone(engine):
    """As psycopg shows them, from any writer and from every place."""
    zones = ["Asia/Kolkata", "America/New_York"]
    urls = [
        conninfo.make_conninfo(engine.place, options=f"-c TimeZone={zone}")
        for zone in zones
    ]
    with engine.connect() as connection:
        connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, x TIMESTAMPTZ)")
    processes = [
        Process(f"{engine.place}&options=-c%20TimeZone%3D{zone}") for zone in zones
    ]
    processes[0].commit("INSERT INTO t VALUES (1, '2026-03-29 01:30:00+00')")
    for process, url in zip(processes, urls, strict=True):
        with closing(process), closing(psycopg.connect(url)) as native:
            expected = native.execute(
                "SELECT '2026-03-29 01:30:00+00'::timestamptz"
            ).fetchall()
            for query in ("SELECT x FROM t WHERE n = 1", "SELECT x FROM t"):
                assert repr(process.rows(query)) == repr(expected)


def test_what_an_application_changes_is_its_own(engine):
    """P1: a document that was fetched is not the one that is kept."""
    connection = engine.connect()
    connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, x JSONB)")
    document = '{"a": [1]}'
    inserted = connection.execute(
        "INSERT INTO t VALUES (1, %s) RETURNING x", (document,)
    )
    for found in (inserted.fetchone()[0], _document(connection), _document(connection)):
        assert found == {"a": [1]}
        found["a"].append(2)
    connection.commit()
    assert _document(connection) == {"a": [1]}


def _document(connection):
    return connection.execute("SELECT x FROM t WHERE n = 1").fetchone()[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [("extra_float_digits", "-10"), ("IntervalStyle", "sql_standard")],
)
def test_settings_that_would_take_digits_are_refused(engine, name, value):
    """P12: values are kept in the form in which a session writes them."""
    engine.native().execute(f"ALTER ROLE CURRENT_USER SET {name} = '{value}'")
    try:
        with pytest.raises(tique.NotSupportedError, match=name):
            engine.connect()
    finally:
        engine.native().execute("ALTER ROLE CURRENT_USER RESET ALL")


def test_numbers_are_kept_to_the_last_digit(engine):
    """P8: in points and arrays, too."""
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE t (n INTEGER PRIMARY KEY, x POINT, y FLOAT8[], z INTERVAL, "
        "d DOUBLE PRECISION)"
    )
    values = "'(0.1234567890123456,1)', '{0.1234567890123456}', '-1 day', 1.0 / 3"
    connection.execute(f"INSERT INTO t VALUES (1, {values})")
    connection.execute("UPDATE t SET n = 2")
    connection.commit()
    connection.checkpoint()
    connection.close()
    same = "x ~= '(0.1234567890123456,1)' AND y = '{0.1234567890123456}' AND "
    same += "z = '-1 day' AND d = 1.0 / 3::float8"
    assert engine.native().execute(f"SELECT {same} FROM t").fetchall() == [(True,)]


# COPY: more rows than are kept, and all rows that a CHECK looks at

TEXTS = [
    "",
    "\\N",
    "\\.",
    "\\",
    "a\tb\nc\rd\be\vf",
    "\\x41",
    "é\U0001f600",
    "NULL",
    None,
]


def test_bulk_rows_arrive_as_they_are(engine):
    """P8, P11: no text has a meaning to COPY."""
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE t (n INTEGER PRIMARY KEY, x TEXT, y BYTEA, z TEXT[])"
    )
    rows = [
        (n, text, None if text is None else text.encode(), [text])
        for n in range(MANY)
        for text in [TEXTS[n % len(TEXTS)]]
    ]
    cursor = connection.cursor()
    cursor.executemany("INSERT INTO t VALUES (%s, %s, %s, %s)", rows)
    assert cursor.rowcount == MANY
    connection.commit()
    query = "SELECT * FROM t ORDER BY n"
    assert connection.execute(query).fetchall() == rows
    connection.checkpoint()
    assert engine.native().execute(query).fetchall() == rows


def test_rows_that_copy_refuses(engine):
    """P8: the same error as for one row, and nothing is left of the statement."""
    connection = engine.connect()
    connection.execute(
        "CREATE TABLE t (n INTEGER PRIMARY KEY, x TEXT CHECK (x <> 'c'))"
    )
    insert = "INSERT INTO t VALUES (%s, %s)"
    cursor = connection.cursor()
    for bad, error, sqlstate in (
        ("c", tique.IntegrityError, "23514"),
        ("a\0b", tique.DataError, "22000"),
        ("\ud800", tique.DataError, "22000"),
    ):
        rows = [(n, "a") for n in range(MANY)] + [(MANY, bad)]
        with pytest.raises(error) as caught:
            cursor.executemany(insert, rows)
        with pytest.raises(error) as alone:
            connection.execute(insert, (MANY, bad))
        assert caught.value.sqlstate == alone.value.sqlstate == sqlstate
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)


def _checked_by(engine, call):
    """A connection to a table whose CHECK, which was added later, makes a call."""
    native = engine.native()
    native.execute(
        "CREATE FUNCTION check_it(TEXT) RETURNS BOOLEAN LANGUAGE plpgsql AS "
        f"'BEGIN PERFORM {call}; RETURN TRUE; END'"
    )
    native.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, x TEXT)")
    tique.adopt(engine.url)
    engine.native().execute("ALTER TABLE t ADD CHECK (check_it(x))")
    return engine.connect()


def test_copy_can_be_cancelled(engine):
    """P6: while the server judges a row; the connection goes on."""
    connection = _checked_by(engine, "pg_sleep(60)")
    sleeping = "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'"

    def cancel():
        with closing(psycopg.connect(engine.place, autocommit=True)) as native:
            while not native.execute(sleeping).fetchall():
                time.sleep(0.05)
        connection.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    started = time.monotonic()
    with pytest.raises(tique.OperationalError) as caught:
        connection.execute("INSERT INTO t VALUES (1, 'a')")
    canceller.join()
    assert caught.value.sqlstate == "57014"
    assert time.monotonic() - started < patience(15)
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_a_connection_that_is_lost_in_copy(engine):
    """P4, P8: the error says so, and nothing of it is there."""
    connection = _checked_by(engine, "pg_terminate_backend(pg_backend_pid())")
    with pytest.raises(tique.OperationalError) as caught:
        connection.execute("INSERT INTO t VALUES (1, 'a')")
    assert caught.value.sqlstate[:2] == "08"
    with engine.connect() as another:
        assert another.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_copy_without_a_stream_is_refused(engine):
    """P10: the error names the call to write in its place."""
    connection = engine.connect()
    connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)")
    for statement in ("COPY t FROM STDIN", "COPY t TO STDOUT", "COPY t FROM '/tmp/x'"):
        with pytest.raises(tique.Error, match=r"cursor\.copy\(\)"):
            connection.execute(statement)
