"""Rows after a change: read your own writes, in every way in which they are kept (P8).

Each case makes one change to one kind of table. Right after it, after the commit,
after a checkpoint, after reopening and without tique the table must hold the same.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

import tique
from tests.portable import numbers
from tests.staging import stage_above

pytestmark = pytest.mark.fresh_tables

NO_CHECKS = pytest.mark.never(
    ["monetdb"], raises=pytest.fail.Exception, reason="MonetDB 11.41 has no CHECK"
)

TABLES = {
    "single key": ("id INTEGER PRIMARY KEY, v INTEGER, w TEXT", "{}"),
    "no key": ("id INTEGER, v INTEGER, w TEXT", "{}"),
    "composite key": (
        "id INTEGER, v INTEGER, w TEXT, k INTEGER DEFAULT 1, PRIMARY KEY (k, id)",
        "{}",
    ),
    "unique and check": (
        "id INTEGER PRIMARY KEY, v INTEGER <check>, w TEXT UNIQUE",
        "{}",
    ),
    "text key": ("id TEXT PRIMARY KEY, v INTEGER, w TEXT", "'k{}'"),
    "decimal key": ("id DECIMAL(12,3) PRIMARY KEY, v INTEGER, w TEXT", "{}.125"),
    "date key": (
        "id DATE PRIMARY KEY, v INTEGER, w TEXT",
        "CAST(DATE '2000-01-01' + {} * INTERVAL '1' DAY AS DATE)",
    ),
    "uuid key": (
        "id UUID PRIMARY KEY, v INTEGER, w TEXT",
        "CAST('00000000-0000-0000-0001-' || lpad(CAST({} AS VARCHAR(12)), 12, '0') AS UUID)",
    ),
    "bigint key": (
        "id <huge> PRIMARY KEY, v INTEGER, w TEXT",
        "{} + 1180591620717411303424",
    ),
    "engine types": ("id INTEGER PRIMARY KEY, v INTEGER, w TEXT, <own types>", "{}"),
    "engine key": (
        "id TIME PRIMARY KEY, v INTEGER, w TEXT",
        "TIME '00:00:00' + {} * INTERVAL '1' SECOND",
    ),
}
OWN_TYPES = {
    "duckdb": "x TIME DEFAULT '10:00', y INTEGER[] DEFAULT [1, 2], "
    "z INTERVAL DEFAULT INTERVAL 1 DAY",
    "monetdb": "x TIME DEFAULT '10:00', y JSON DEFAULT '[1, 2]', "
    "z INTERVAL SECOND DEFAULT INTERVAL '1' SECOND",
    "postgresql": "x TIME DEFAULT '10:00', y INTEGER[] DEFAULT '{1, 2}', "
    "z INTERVAL DEFAULT '1 month 30 days', j JSONB DEFAULT '{\"a\": [1.50, null]}', "
    "r INT4RANGE DEFAULT '[1,5)', n NUMERIC DEFAULT '1.500', c CHAR(4) DEFAULT 'x', "
    "a INET DEFAULT '10.0.0.0/8', d TIMESTAMPTZ DEFAULT 'infinity', "
    "e JSON DEFAULT '{\"b\" : 1, \"b\" : 2}', b BIT(3) DEFAULT '101'",
}
"""Columns whose values do not survive Python."""
LARGE = ("single key", "no key")
"""Tables with so many rows that a change of all is kept in the engine.

The others' changes get there by a lower bound: differences by the type of a key or a
column do not depend on the number of rows.
"""
ALL, SOME = object(), object()
CHANGES = {
    "insert": (
        "INSERT INTO t (id, v, w) VALUES (<9001>, 1, 'n1'), (<9002>, 2, 'n2')",
        2,
    ),
    "insert few by query": (
        f"INSERT INTO t (id, v, w) SELECT <number + 9000>, number, NULL FROM {numbers(3)}",
        3,
    ),
    "insert many by query": (
        "INSERT INTO t (id, v, w) SELECT <number + 9000>, number, NULL FROM <all>",
        ALL,
    ),
    "update one": ("UPDATE t SET v = v + 5 WHERE id = <2>", 1),
    "update one by expression": ("UPDATE t SET v = v * 3 + 1 WHERE id = <2>", 1),
    "update none": ("UPDATE t SET v = v + 5 WHERE id = <9000>", 0),
    "update some": (
        "UPDATE t SET v = v + 5, w = w || '!' WHERE v BETWEEN 3 AND 12",
        10,
    ),
    "update many": ("UPDATE t SET v = -v", ALL),
    "update many by another column": ("UPDATE t SET w = id, v = v + 1", ALL),
    "move one": ("UPDATE t SET id = <9000> WHERE id = <2>", 1),
    "delete one": ("DELETE FROM t WHERE id = <2>", 1),
    "delete some": ("DELETE FROM t WHERE v % 100 = 7", SOME),
    "delete all": ("DELETE FROM t", ALL),
}


def fingerprint(engine):
    """A query that, as a rule, shows any difference."""
    return (
        "SELECT count(*), count(DISTINCT id), sum(v), "
        f"sum({engine.hashed.format('id')} % 1009), max(w) FROM t"
    )


def key_text(key, number):
    """SQL for a key: of a literal number or of an expression."""
    if key == "'k{}'":
        return f"('k' || ({number}))"
    if key == "{}.125":
        return f"(({number}) + 0.125)"
    return "(" + key.format(f"({number})") + ")"


def prepared(text, key):
    for number in ("9000", "9001", "9002", "2", "number", "number + 9000"):
        text = text.replace(f"<{number}>", key_text(key, number))
    return text


@pytest.fixture(params=TABLES)
def table(request, engine, monkeypatch):
    """A kind of table: its columns, its key, how many rows."""
    columns, key = TABLES[request.param]
    columns = columns.replace("<check>", engine.check("v < 1000000"))
    columns = columns.replace("<huge>", engine.huge)
    columns = columns.replace("<own types>", OWN_TYPES[engine.name])
    if request.param in LARGE:
        return columns, key, 2200
    stage_above(190, monkeypatch.setattr)
    return columns, key, 200


@pytest.mark.parametrize("made", CHANGES)
def test_change(engine, table, made):
    """P8: its own writes are read, the count is right, and they outlive everything."""
    columns, key, rows = table
    text, count = CHANGES[made]
    text = text.replace("<all>", numbers(rows))
    count = {ALL: rows, SOME: rows // 100}.get(count, count)
    connection = engine.connect(checkpoint="manual")
    connection.execute(f"CREATE TABLE t ({columns})")
    shown = fingerprint(engine)
    fill = (
        "INSERT INTO t (id, v, w) SELECT <number>, number, 'w' || number "
        f"FROM {numbers(rows)} WHERE number % 2 = {{}}"
    )
    connection.execute(prepared(fill.format(1), key))
    connection.commit()
    connection.checkpoint()
    connection.execute(prepared(fill.format(0), key))
    connection.commit()
    before = connection.execute(shown).fetchone()
    connection.rollback()

    cursor = connection.execute(prepared(text, key))
    assert cursor.rowcount == count
    after = connection.execute(shown).fetchone()
    assert (after == before) == (count == 0)
    found = connection.execute("SELECT id, v, w FROM t ORDER BY id, v").fetchall()
    for query in (
        "SELECT id, v, w FROM t WHERE id = %s",
        "SELECT id, v, w FROM t WHERE id = %s AND true",
        "SELECT a.id, a.v, b.w FROM t a JOIN t b ON a.id = b.id WHERE a.id = %s",
        "SELECT id, v, w FROM t WHERE id IN (SELECT id FROM t WHERE id = %s)",
        "SELECT id, max(v), max(w) FROM t WHERE id = %s GROUP BY id",
    ):
        for row in [*found[:2], *found[-1:]]:
            assert connection.execute(query, (row[0],)).fetchall() == [row], query
    connection.execute("SAVEPOINT s")
    connection.execute("DELETE FROM t WHERE v > 100")
    connection.execute("ROLLBACK TO s")
    assert connection.execute(shown).fetchone() == after
    connection.commit()
    assert connection.execute(shown).fetchone() == after
    connection.rollback()
    connection.checkpoint()
    assert connection.execute(shown).fetchone() == after
    connection.close()
    assert engine.connect().execute(shown).fetchone() == after
    assert engine.native().execute(shown).fetchone() == after


def lacking(reason, error=tique.DataError, engines=("monetdb",)):
    return pytest.mark.never(list(engines), raises=error, reason=reason)


MARKS = {"qmark": "?", "pyformat": "%s"}
NO_LEAST = lacking("its least integer is NULL")
HAVE_TINYINT = pytest.mark.written_for(
    ["duckdb", "monetdb"], reason="PostgreSQL's smallest integers have 16 bits"
)
VALUES = [
    ("BOOLEAN", [True, False]),
    pytest.param("TINYINT", [-127, 127], marks=HAVE_TINYINT),
    pytest.param("TINYINT", [-128], marks=[HAVE_TINYINT, NO_LEAST]),
    ("SMALLINT", [-32767, 32767]),
    pytest.param(
        "UBIGINT",
        [0, 2**64 - 1],
        marks=[
            lacking("its integers have signs", tique.NotSupportedError),
            lacking("so have its", tique.ProgrammingError, ["postgresql"]),
        ],
    ),
    ("BIGINT", [1 - 2**63, 2**63 - 1]),
    pytest.param("BIGINT", [-(2**63)], marks=NO_LEAST),
    ("<huge>", [1 - 2**127, 2**127 - 1]),
    pytest.param("<huge>", [-(2**127)], marks=NO_LEAST),
    ("DECIMAL(4,1)", [Decimal("-999.9"), Decimal("0.1")]),
    ("DECIMAL(38,10)", [Decimal("1234567890123456789012345678.0123456789")]),
    ("DOUBLE PRECISION", [0.1, -0.0, 5e-324]),
    pytest.param(
        "DOUBLE PRECISION", [float("inf")], marks=lacking("it has no infinities")
    ),
    ("TEXT", ["", "\U0001f600", "x" * 100_000, " pad "]),
    pytest.param(
        "TEXT",
        ["a\x00b"],
        marks=lacking("their texts have no NUL", engines=["monetdb", "postgresql"]),
    ),
    ("<binary>", [b"", b"\x00\xff'\"", bytes(range(256))]),
    ("DATE", [date(1, 1, 2), date(9999, 12, 30), date(1582, 10, 10)]),
    ("TIMESTAMP", [datetime(1, 1, 2), datetime(2024, 2, 29, 23, 59, 59, 999999)]),
    ("UUID", [UUID(int=1), UUID(int=2**128 - 1)]),
    pytest.param("UUID", [UUID(int=0)], marks=lacking("its UUID of zeros is NULL")),
]


@pytest.mark.parametrize(("type_name", "values"), VALUES)
@pytest.mark.parametrize("place", ["key", "value", "bag"])
def test_values_come_back(engine, type_name, values, place):
    """P8: a value is the same from the buffer, the cache, storage and the bare engine."""
    connection = engine.connect(checkpoint="manual")
    type_name = type_name.replace("<huge>", engine.huge)
    type_name = type_name.replace("<binary>", engine.binary)
    columns = {
        "key": f"x {type_name} PRIMARY KEY, n INTEGER",
        "value": f"n INTEGER PRIMARY KEY, x {type_name}",
        "bag": f"n INTEGER, x {type_name}",
    }[place]
    connection.execute(f"CREATE TABLE t ({columns})")
    for number, value in enumerate(values):
        connection.execute("INSERT INTO t (n, x) VALUES (%s, %s)", (number, value))

    def check(conn, mark="%s"):
        rows = conn.execute("SELECT n, x FROM t ORDER BY n").fetchall()
        assert rows == list(enumerate(values))
        for number, value in enumerate(values):
            for query in (
                f"SELECT n FROM t WHERE x = {mark}",
                f"SELECT n + 0 FROM t WHERE x = {mark}",
                f"SELECT max(n) FROM t a WHERE a.x = {mark}",
            ):
                assert conn.execute(query, [value]).fetchall() == [(number,)]

    check(connection)
    connection.execute("SELECT count(*) FROM t").fetchall()
    connection.commit()
    check(connection)
    connection.rollback()
    connection.execute("UPDATE t SET n = n WHERE n >= 0")
    check(connection)
    connection.commit()
    connection.checkpoint()
    check(connection)
    for number, value in enumerate(values):
        cursor = connection.execute("UPDATE t SET n = n + 90 WHERE x = %s", (value,))
        assert cursor.rowcount == 1
        cursor = connection.execute("UPDATE t SET n = %s WHERE x = %s", (number, value))
        assert cursor.rowcount == 1
    check(connection)
    connection.commit()
    connection.close()
    check(engine.native(), MARKS[engine.driver.paramstyle])


@pytest.mark.written_for(["duckdb", "postgresql"], reason="MonetDB has no NaN")
@pytest.mark.parametrize("nan", ["'nan'::DOUBLE PRECISION", "'nan'::REAL"])
def test_nan_is_one_key(engine, nan):
    """P9: the engine says that NaN is equal to itself."""
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (x DOUBLE PRECISION PRIMARY KEY, n INTEGER)")
    connection.execute(f"INSERT INTO t VALUES ({nan}, 1)")
    for _ in range(2):
        with pytest.raises(tique.IntegrityError):
            connection.execute(f"INSERT INTO t VALUES ({nan}, 2)")
        assert connection.execute(f"SELECT n FROM t WHERE x = {nan}").fetchall() == [
            (1,)
        ]
        connection.commit()
    connection.checkpoint()
    with pytest.raises(tique.IntegrityError):
        connection.execute(f"INSERT INTO t VALUES ({nan}, 2)")


ANCIENT = {
    "duckdb": ("0044-03-15 (BC)", "0044-03-15 (BC) 12:00:00"),
    "postgresql": ("0044-03-15 BC", "0044-03-15 12:00:00 BC"),
}


@pytest.mark.written_for(
    ["duckdb", "postgresql"], reason="MonetDB has no infinite timestamps"
)
def test_beyond_what_python_can_hold(engine):
    """P10: infinite and ancient timestamps are kept, which Python cannot hold."""
    bc, noon = ANCIENT[engine.name]
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, d DATE, m TIMESTAMP)")
    connection.execute(
        f"INSERT INTO t VALUES (1, 'infinity', '-infinity'), (2, '{bc}', '{noon}')"
    )
    connection.execute("INSERT INTO t SELECT id + 2, d, m FROM t")
    query = "SELECT id, d::TEXT, m::TEXT FROM t ORDER BY id"
    expected = [
        (1, "infinity", "-infinity"),
        (2, bc, noon),
        (3, "infinity", "-infinity"),
        (4, bc, noon),
    ]
    assert connection.execute(query).fetchall() == expected
    connection.commit()
    for key in (1, 2, 3, 4):
        connection.execute("UPDATE t SET id = id + 10 WHERE id = %s", (key,))
        connection.execute("UPDATE t SET id = id - 10 WHERE id = %s", (key + 10,))
    assert connection.execute(query).fetchall() == expected
    connection.commit()
    connection.checkpoint()
    assert connection.execute(query).fetchall() == expected


@pytest.mark.parametrize("count", [10, 2500])
@pytest.mark.parametrize("key", ["", "PRIMARY KEY"])
def test_a_volatile_condition_is_asked_once(engine, key, count):
    """P8: a row and its tombstone belong together even if WHERE is random."""
    connection = engine.connect(checkpoint="manual")
    connection.execute(f"CREATE TABLE t (id INTEGER {key})")
    connection.execute(f"INSERT INTO t SELECT number FROM {numbers(2 * count)}")
    connection.commit()
    query = f"UPDATE t SET id = id + 100000 WHERE {engine.coin}"
    moved = connection.execute(query).rowcount
    after = "SELECT count(*), sum(CASE WHEN id >= 100000 THEN 1 ELSE 0 END) FROM t"
    assert connection.execute(after).fetchone() == (2 * count, moved)
    connection.commit()
    connection.checkpoint()
    assert connection.execute(after).fetchone() == (2 * count, moved)


def test_volatile_defaults(engine):
    """P9: a volatile DEFAULT is computed once for each row."""
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        f"CREATE TABLE t (id INTEGER PRIMARY KEY, tag UUID DEFAULT {engine.random_uuid}, "
        "made TIMESTAMP DEFAULT CAST(now() AS TIMESTAMP), n INTEGER DEFAULT 6 * 7)"
    )
    connection.execute("INSERT INTO t (id) VALUES (1), (2)")
    connection.execute(f"INSERT INTO t (id) SELECT number + 10 FROM {numbers(3)}")
    connection.execute(f"INSERT INTO t (id) SELECT number + 100 FROM {numbers(2500)}")
    connection.cursor().executemany("INSERT INTO t (id) VALUES (%s)", [(20,), (21,)])
    connection.execute("UPDATE t SET tag = DEFAULT WHERE id IN (1, 2)")
    query = "SELECT id, tag, made, n FROM t ORDER BY id"
    rows = connection.execute(query).fetchall()
    assert len({row[1] for row in rows}) == len(rows) == 2507
    assert {row[3] for row in rows} == {42}
    connection.commit()
    assert connection.execute(query).fetchall() == rows
    connection.commit()
    connection.checkpoint()
    assert connection.execute(query).fetchall() == rows


def test_duplicates_and_nulls_without_a_key(engine):
    """P8: in a keyless table one of equal rows is as good as another."""
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE b (x INTEGER, y TEXT)")
    connection.execute(
        "INSERT INTO b VALUES (1, 'a'), (1, 'a'), (NULL, NULL), (NULL, NULL)"
    )
    connection.commit()
    connection.checkpoint()
    connection.execute("INSERT INTO b VALUES (1, 'a'), (NULL, NULL), (1, NULL)")
    content = (
        "SELECT x, y, count(*) FROM b GROUP BY x, y ORDER BY x NULLS LAST, y NULLS LAST"
    )
    three = [(1, "a", 3), (1, None, 1), (None, None, 3)]
    assert connection.execute(content).fetchall() == three
    assert connection.execute("DELETE FROM b WHERE x IS NULL").rowcount == 3
    connection.execute("ROLLBACK")
    assert connection.execute("UPDATE b SET y = 'b' WHERE x = 1").rowcount == 2
    connection.execute("INSERT INTO b VALUES (1, 'a')")
    expected = [(1, "a", 1), (1, "b", 2), (None, None, 2)]
    assert connection.execute(content).fetchall() == expected
    connection.commit()
    connection.execute("DELETE FROM b WHERE y = 'b'")
    connection.execute("INSERT INTO b VALUES (1, 'b')")
    expected = [(1, "a", 1), (1, "b", 1), (None, None, 2)]
    assert connection.execute(content).fetchall() == expected
    connection.commit()
    assert connection.execute(content).fetchall() == expected
    connection.commit()
    connection.checkpoint()
    assert connection.execute(content).fetchall() == expected
    connection.close()
    assert engine.native().execute(content).fetchall() == expected


VIOLATIONS = {
    "PRIMARY KEY": ("INSERT INTO t VALUES (1, 5, 'x')", tique.errors.UniqueViolation),
    "moved key": ("UPDATE t SET id = 2 WHERE id = 1", tique.errors.UniqueViolation),
    "moved keys": ("UPDATE t SET id = 2", tique.errors.UniqueViolation),
    "UNIQUE": ("INSERT INTO t VALUES (9, 5, 'b')", tique.errors.UniqueViolation),
    "changed UNIQUE": (
        "UPDATE t SET w = 'b' WHERE id = 1",
        tique.errors.UniqueViolation,
    ),
    "many UNIQUE": ("UPDATE t SET w = 'same'", tique.errors.UniqueViolation),
    "NOT NULL": ("INSERT INTO t (id) VALUES (9)", tique.errors.NotNullViolation),
    "set NULL": ("UPDATE t SET v = NULL WHERE id = 1", tique.errors.NotNullViolation),
    "NULL key": ("INSERT INTO t VALUES (NULL, 1, 'x')", tique.errors.NotNullViolation),
    "CHECK": ("INSERT INTO t VALUES (9, -1, 'x')", tique.errors.CheckViolation),
    "changed CHECK": (
        "UPDATE t SET v = v - 100 WHERE id = 1",
        tique.errors.CheckViolation,
    ),
    "CHECK by scan": ("UPDATE t SET v = v - 100", tique.errors.CheckViolation),
    "conversion": ("UPDATE t SET v = CAST(w AS INTEGER)", tique.DataError),
    "overflow": ("UPDATE t SET v = v + 2147483647", tique.DataError),
    "out of range": ("INSERT INTO t VALUES (3000000000, 1, 'x')", tique.DataError),
    "runtime error": ("DELETE FROM t WHERE CAST(w AS INTEGER) > 1", tique.DataError),
    "many keys": (
        f"INSERT INTO t SELECT 5000 - number, 1, NULL FROM {numbers(5000)}",
        tique.errors.UniqueViolation,
    ),
    "many CHECK": (
        f"INSERT INTO t SELECT number + 10, 4990 - number, NULL FROM {numbers(5000)}",
        tique.errors.CheckViolation,
    ),
    "many NOT NULL": (
        f"INSERT INTO t SELECT number + 10, nullif(number, 4999), NULL FROM {numbers(5000)}",
        tique.errors.NotNullViolation,
    ),
}


@pytest.mark.parametrize("earlier", ["nothing", "a little", "a lot"])
@pytest.mark.parametrize(
    "violation",
    [
        pytest.param(name, marks=NO_CHECKS if "CHECK" in name else ())
        for name in VIOLATIONS
    ],
)
def test_violation(engine, violation, earlier):
    """P8, P9: the statement fails as the engine's own would and leaves no trace."""
    query, error = VIOLATIONS[violation]
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, "
        f"v INTEGER NOT NULL {engine.check('v >= 0')}, w TEXT UNIQUE)"
    )
    connection.execute("INSERT INTO t VALUES (1, 1, 'a')")
    connection.commit()
    connection.checkpoint()
    connection.execute("INSERT INTO t VALUES (2, 2, 'b'), (3, 3, NULL), (4, 4, NULL)")
    connection.commit()
    if earlier != "nothing":
        connection.execute("UPDATE t SET v = 40 WHERE id = 4")
        connection.execute("DELETE FROM t WHERE id = 3")
    if earlier == "a lot":
        connection.execute(
            f"INSERT INTO t SELECT number + 10000, 1, NULL FROM {numbers(2500)}"
        )
    before = connection.execute("SELECT * FROM t ORDER BY id").fetchall()
    with pytest.raises(error):
        connection.execute(query)
    assert connection.execute("SELECT * FROM t ORDER BY id").fetchall() == before
    connection.commit()
    assert connection.execute("SELECT * FROM t ORDER BY id").fetchall() == before
    connection.commit()
    connection.checkpoint()
    assert connection.execute("SELECT * FROM t ORDER BY id").fetchall() == before


def test_unique_values_can_change_hands(engine):
    """P9: a transaction can use a value again that it freed; NULLs are never equal."""
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, w TEXT UNIQUE)")
    connection.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL), (4, NULL)")
    connection.commit()
    connection.execute(
        "UPDATE t SET w = CASE w WHEN 'a' THEN 'b' ELSE 'a' END WHERE id < 3"
    )
    connection.execute("DELETE FROM t WHERE id = 1")
    connection.execute("INSERT INTO t VALUES (9, 'b')")
    connection.execute("INSERT INTO t VALUES (1, NULL)")
    expected = [(1, None), (2, "a"), (3, None), (4, None), (9, "b")]
    for _ in range(2):
        assert connection.execute("SELECT * FROM t ORDER BY id").fetchall() == expected
        connection.commit()
        connection.checkpoint()


def test_minus_zero_is_folded(engine):
    """P7: a row without a key is what it was, also where others are deleted."""
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (n INTEGER, x DOUBLE PRECISION)")
    connection.execute("INSERT INTO t VALUES (1, 1), (5, 2), (5, 2)")
    connection.commit()
    connection.checkpoint()
    connection.execute("INSERT INTO t VALUES (2, CAST('-0.0' AS DOUBLE PRECISION))")
    connection.execute("INSERT INTO t VALUES (6, 3), (6, 3)")
    connection.execute("DELETE FROM t WHERE n = 1")
    connection.commit()
    connection.execute("UPDATE t SET n = n + 10 WHERE n = 5")
    connection.execute("DELETE FROM t WHERE n = 6")
    connection.execute("INSERT INTO t VALUES (6, 3)")
    connection.commit()
    connection.checkpoint()
    connection.close()
    rows = engine.native().execute("SELECT n, x FROM t ORDER BY n").fetchall()
    assert repr(rows) == "[(2, -0.0), (6, 3.0), (15, 2.0), (15, 2.0)]"
