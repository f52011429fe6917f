"""Hostile strings and names through every path: no injection (P11)."""

from __future__ import annotations

import logging

import pytest

import tique
from tests.portable import numbers

pytestmark = pytest.mark.fresh_tables

STRINGS = [
    "'; DROP TABLE t; --",
    '"; DROP TABLE t; --',
    "') ; DELETE FROM t; --",
    "a\x00b",
    "%s",
    "%(a)s %%",
    "$1 $2 $$",
    "?",
    ":name @name",
    "\\' \\\\ \\",
    "/* open",
    "*/ -- \n",
    "\u202egnirts \u0000\uffff \U0001f4a3",
    "é e\u0301 ß İ",
    "NULL",
    "x" * 200_000 + "'",
    "{a} {0} ${b}",
    "\r\n\t\x1b[31m",
]
NAMES = [
    "select",
    "two words",
    'quo"te',
    '"; DROP TABLE t; --',
    "UPPER",
    "it's",
    "%s",
    "$1",
    "?",
    "naïve \U0001f4a3",
    "a.b",
    "--",
    "/*",
    "x" * 300,
    "_v",
    "_s",
    "_0",
    "_new_1",
    "_q",
    "_o",
]


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


@pytest.fixture
def strings(engine):
    """Those that the engine's text can hold."""
    return [text for text in STRINGS if engine.holds_nul or "\0" not in text]


@pytest.fixture
def connection(engine):
    connection = engine.connect(checkpoint="manual", paramstyle="qmark")
    connection.execute("CREATE TABLE t (k TEXT PRIMARY KEY, v TEXT UNIQUE)")
    connection.execute("CREATE TABLE b (v TEXT)")
    connection.commit()
    return connection


def check(connection, strings):
    rows = connection.execute("SELECT k, v FROM t").fetchall()
    assert sorted(rows) == sorted((s, s) for s in strings)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["bound", "literal", "many", "bulk", "query", "staged"])
def test_strings(engine, connection, strings, way):
    """P11: a value stays a value on every way."""
    insert = "INSERT INTO t VALUES (?, ?)"
    if way == "bound":
        for text in strings:
            connection.execute(insert, (text, text))
    elif way == "literal":
        for text in strings:
            shown = engine.literal(text)
            if "\x00" in text:
                connection.execute(insert, (text, text))
            else:
                connection.execute(f"INSERT INTO t VALUES ({shown}, {shown})")
    elif way == "query":
        for text in strings:
            connection.execute(
                "INSERT INTO t SELECT ?, upper(?) || '' || ?", (text, "", text)
            )
    else:
        filler = [(f"f{i}", None) for i in range(2500 if way == "bulk" else 0)]
        if way == "staged":
            connection.execute(
                f"INSERT INTO t SELECT 'f' || number, NULL FROM {numbers(2500)}"
            )
        connection.cursor().executemany(insert, [(s, s) for s in strings] + filler)
        connection.execute("DELETE FROM t WHERE v IS NULL")
    check(connection, strings)
    for _ in range(2):
        for text in strings:
            for query in (
                "SELECT v FROM t WHERE k = ?",
                "SELECT v || '' FROM t WHERE k = ?",
                "SELECT v FROM t WHERE v = ?",
                "SELECT a.v FROM t a JOIN t b ON a.k = b.v WHERE a.k = ?",
            ):
                assert connection.execute(query, (text,)).fetchall() == [(text,)]
            cursor = connection.execute("UPDATE t SET v = ? WHERE k = ?", (text, text))
            assert cursor.rowcount == 1
        connection.commit()
    connection.checkpoint()
    check(connection, strings)
    connection.close()
    check(engine.native(), strings)


@pytest.mark.slow
@pytest.mark.parametrize("certifier", ["memory", "query"])
def test_conflicts_over_hostile_keys(engine, strings, certifier):
    """P3, P11: certification compares values, not text."""
    one = engine.connect(certifier=certifier)
    one.execute("CREATE TABLE t (k TEXT PRIMARY KEY, v TEXT UNIQUE)")
    one.commit()
    two = engine.connect(certifier=certifier)
    for text in strings:
        one.execute("INSERT INTO t VALUES (%s, NULL)", (text,))
        two.execute("INSERT INTO t VALUES (%s, NULL)", (text,))
        one.commit()
        with pytest.raises(tique.SerializationError) as caught:
            two.commit()
        assert caught.value.key == (text,)
    assert one.execute("SELECT count(*) FROM t").fetchone() == (len(strings),)


def test_nul_where_text_cannot_hold_it(engine, connection):
    """P10: it is refused in every way, and nothing is cut off."""
    if engine.holds_nul:
        return
    with pytest.raises(tique.DataError, match="NUL"):
        connection.execute("INSERT INTO t VALUES (?, NULL)", ("a\0b",))
    with pytest.raises(tique.DataError, match="NUL"):
        connection.execute("SELECT * FROM t WHERE k = ?", ("a\0b",))
    with pytest.raises(tique.DataError, match="NUL"):
        connection.cursor().executemany("INSERT INTO b VALUES (?)", [("x",), ("\0",)])
    assert connection.execute("SELECT count(*) FROM b").fetchone() == (0,)


def test_half_a_surrogate_is_refused(connection):
    """P10: invalid Unicode is an error, not a guess."""
    for query, parameters in (
        ("INSERT INTO t VALUES (?, NULL)", ("\ud800",)),
        ("SELECT * FROM t WHERE k = ?", ("\ud800",)),
    ):
        with pytest.raises(tique.DatabaseError):
            connection.execute(query, parameters)
    for query in (
        "SELECT '\ud800'",
        "SELECT 1 -- \ud800",
        "SELECT 1 AS \udfff",
        'SAVEPOINT "\ud800"',
        'EXPLAIN SELECT * FROM "\ud800"',
        'DROP TABLE "\ud800"',
        f'DELETE FROM "{"n" * 100}\ud800"',
    ):
        with pytest.raises(tique.ProgrammingError, match="surrogate pair at line 1"):
            connection.execute(query)
    with pytest.raises(tique.DatabaseError):
        connection.cursor().executemany(
            "INSERT INTO t VALUES (?, NULL)", [("fine",), ("\udfff",)]
        )
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_messages_and_logs_hold_no_parameters(engine, connection, caplog):
    """P11: values turn up in an exception's attributes only, never in its text."""
    caplog.set_level(logging.DEBUG)
    secret = "s3cr3t-value"
    other = engine.connect()
    connection.execute("INSERT INTO t VALUES (?, ?)", (secret, "u" + secret))
    connection.commit()
    with pytest.raises(tique.IntegrityError) as violation:
        connection.execute("INSERT INTO t VALUES (?, NULL)", (secret,))
    assert secret not in str(violation.value)
    with pytest.raises(tique.IntegrityError) as violation:
        connection.execute("INSERT INTO t VALUES ('other', ?)", ("u" + secret,))
    assert secret not in str(violation.value)
    connection.rollback()
    for conn, mark in ((connection, "?"), (other, "%s")):
        conn.execute(f"UPDATE t SET v = 'x' WHERE k = {mark}", (secret,))
    connection.commit()
    with pytest.raises(tique.SerializationError) as conflict:
        other.commit()
    assert secret not in str(conflict.value)
    assert conflict.value.key == (secret,)
    for query, parameters in (
        ("SELECT ?", (secret, secret)),
        ("SELECT ?", {"secret": secret}),
        ("SELECT nothing FROM t WHERE k = ?", (secret,)),
    ):
        with pytest.raises(tique.ProgrammingError) as wrong:
            connection.execute(query, parameters)
        assert secret not in str(wrong.value)
    assert secret not in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_names(engine, name, key):
    """P11: a name stays a name: tables, columns, aliases and savepoints."""
    if name.startswith("%") and not engine.names_begin_with_percent:
        connection = engine.connect()
        with pytest.raises(tique.ProgrammingError, match="identifier"):
            connection.execute(f"CREATE TABLE {quoted(name)} (id INTEGER)")
        return
    if engine.longest_name and len(name.encode()) > engine.longest_name:
        connection = engine.connect()
        with pytest.raises(tique.NotSupportedError, match="bytes"):
            connection.execute(f"CREATE TABLE {quoted(name)} (id INTEGER)")
        return
    q = quoted(name)
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        f"CREATE TABLE {q} ({q} INTEGER {key} {engine.check(f'{q} > 0')}, "
        "other TEXT UNIQUE)"
    )
    connection.execute(f"INSERT INTO {q} VALUES (1, 'a'), (2, 'b')")
    connection.commit()
    connection.checkpoint()
    connection.execute(f"INSERT INTO {q} ({q}) SELECT {q} + 2 FROM {q}")
    connection.execute(f"UPDATE {q} SET other = 'A' WHERE {q} = 1")
    connection.execute(f"UPDATE {q} SET {q} = {q} + 10 WHERE {q}.{q} > 2")
    connection.execute(f"SAVEPOINT {q}")
    connection.execute(
        f"INSERT INTO {q} SELECT 100 + number, NULL FROM {numbers(2100)}"
    )
    connection.execute(f"UPDATE {q} SET {q} = {q} + 5000 WHERE {q} >= 100")
    connection.execute(f"ROLLBACK TO {q}")
    connection.execute(f"DELETE FROM {q} AS x WHERE x.{q} = 14")
    cursor = connection.execute(f"SELECT {q}, other FROM {q} AS {q} ORDER BY {q}.{q}")
    assert [column[0] for column in cursor.description] == [name, "other"]
    expected = [(1, "A"), (2, "b"), (13, None)]
    assert cursor.fetchall() == expected
    connection.commit()
    query = f"SELECT {q}, other FROM {q} ORDER BY 1"
    assert connection.execute(query).fetchall() == expected
    assert connection.execute(f"SELECT {q} FROM {q} WHERE {q} = 2").fetchall() == [(2,)]
    connection.rollback()
    connection.checkpoint()
    assert connection.execute(query).fetchall() == expected
    connection.close()
    assert engine.native().execute(query).fetchall() == expected
    again = engine.connect()
    again.execute(f"DROP TABLE {q}")
    with pytest.raises(tique.ProgrammingError):
        again.execute(query)


@pytest.mark.parametrize("name", ["_cts", "_DELETED", "_sequence"])
def test_reserved_names_are_refused(engine, name):
    """P10: clearly, and nothing of the table is left."""
    connection = engine.connect()
    with pytest.raises(tique.NotSupportedError, match="reserved"):
        connection.execute(f"CREATE TABLE t (id INTEGER, {name} INTEGER)")
    connection.execute("CREATE TABLE t (id INTEGER)")


@pytest.mark.parametrize("count", [60, 600])
@pytest.mark.parametrize("first", ["1", "n.n"])
def test_long_sums_are_evaluated_in_time(engine, count, first):
    """P11: each term once took twice the time; many were a RecursionError."""
    connection = engine.connect()
    connection.execute("CREATE TABLE n (k INTEGER PRIMARY KEY, n BIGINT)")
    connection.execute("INSERT INTO n VALUES (1, 1)")
    total = first + " + 1" * count
    for sql in (
        f"UPDATE n SET n = {total} WHERE k = 1",
        f"INSERT INTO n VALUES (1, 1) ON CONFLICT (k) DO UPDATE SET n = {total}",
    ):
        connection.execute("UPDATE n SET n = 1")
        connection.execute(sql)
        assert connection.execute("SELECT n FROM n").fetchone() == (count + 1,)
