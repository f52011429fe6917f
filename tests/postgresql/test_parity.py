"""The same through tique as through psycopg: values, errors, rowcount, description.

Every body runs on two databases of one server, through psycopg and through tique, and
must come to the same. The differences are in ``test_differences.py``;
``backends/tique_backends/postgresql/README.md`` lists them for users.
"""

from __future__ import annotations

import datetime as dt
import enum
import ipaddress
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.types.json import Json, Jsonb
from psycopg.types.range import Range

import tique
from tests.postgresql.pairs import CLASSES, Failure

if TYPE_CHECKING:
    from collections.abc import Callable


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


UTC = dt.UTC
PARAMETERS = (
    *(0, 1, -1, 32767, 32768, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63), 2**70),
    *(True, False, None),
    *(1.5, float("nan"), float("inf"), -0.0, 1e300),
    *(Decimal("1.50"), Decimal("NaN"), Decimal("Infinity"), Decimal("1E+3")),
    *("", "x", "é\U0001f600", "a'b\\", "a\0b", "12", "2020-01-02", "infinity"),
    *(b"", b"\0\xff", bytearray(b"ab"), memoryview(b"ab")),
    *(dt.date(2020, 1, 2), dt.date.min, dt.date.max),
    *(dt.time(1, 2, 3, 4), dt.time(1, 2, 3, tzinfo=UTC)),
    dt.datetime(2020, 1, 2, 3, 4, 5, 6),
    dt.datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=dt.timezone(dt.timedelta(hours=2))),
    *(dt.timedelta(days=1, seconds=2, microseconds=3), dt.timedelta(-1)),
    uuid.UUID(int=5),
    *([1, 2], [], ["a", None], [[1, 2], [3, 4]], [1, 2**40], [1.5], [b"x"]),
    [dt.date(2020, 1, 1)],
    *({"a": 1}, Json({"a": [1]}), Jsonb({"a": 1})),
    *(Range(1, 5), Range(dt.date(2020, 1, 1), None)),
    *(ipaddress.ip_address("1.2.3.4"), ipaddress.ip_network("10.0.0.0/8")),
    *(Colour.RED, Level.LOW, (1, 2), {1, 2}, 1j),
)
COLUMNS = (
    *("i", "big", "small", "number", "fixed", "double", "single", "words", "short"),
    *("padded", "truth", "raw", "day", "moment", "instant", "hour", "span", "code"),
    *("data", "list", "ranged", "place"),
)


def named(value):
    """The same in every process."""
    return "memory" if isinstance(value, memoryview) else repr(value)


@pytest.mark.parametrize("value", PARAMETERS, ids=named)
def test_parameters(pair, value):
    """P11, P8: the meaning of a value, on its own and in a column of every type."""
    pair.same(lambda c: c.execute("SELECT %s, pg_typeof(%s)", [value] * 2).fetchall())
    for name in COLUMNS:

        def insert(c, name=name):
            cursor = c.execute(f"INSERT INTO t (id,{name}) VALUES (%s,%s)", [50, value])
            by_key = c.execute(f"SELECT {name} FROM t WHERE id = 50").fetchall()
            query = f"SELECT {name}, pg_typeof({name}) FROM t WHERE id + 0 = 50"
            return cursor.rowcount, by_key, c.execute(query).fetchall()

        def update(c, name=name):
            cursor = c.execute(f"UPDATE t SET {name} = %s WHERE id = 1", [value])
            found = c.execute(f"SELECT {name} FROM t WHERE id = 1").fetchall()
            return cursor.rowcount, found

        def compare(c, name=name):
            return c.execute(f"SELECT id FROM t WHERE {name} = %s", [value]).fetchall()

        for body in (insert, update):
            native, ours = pair.both(body)
            if getattr(native, "sqlstate", "") is not None:
                assert repr(ours) == repr(native), (name, body.__name__)
        pair.same(compare)


EXPRESSIONS = """
1::int2; 1::int4; 1::int8; 1.5::float4; 0.1::float8; 'nan'::float8; '-inf'::float4
1.50::numeric; 'nan'::numeric; 'inf'::numeric; 1.5::numeric(5,2); true; 'x'::text
'x'::varchar(5); 'x'::char(3); 'x'::name; 'x'::"char"; '\\xff'::bytea
'2020-01-02'::date; '01:02:03'::time; '01:02:03+02'::timetz
'2020-01-02 03:04'::timestamp; '2020-01-02 03:04+00'::timestamptz
'1 month 2 days'::interval; '1 day'::interval; null; null::int
'{"a":1}'::json; '{"a":1}'::jsonb; '[1]'::jsonb; array[1,2]; array['a',null]
array[array[1,2]]; '{}'::int[]; '1.2.3.4'::inet; '10.0.0.0/8'::cidr
'08:00:2b:01:02:03'::macaddr; int4range(1,5); daterange('2020-01-01',null)
'{[1,3)}'::int4multirange; '00000000-0000-0000-0000-000000000005'::uuid; point(1,2)
'<a/>'::xml; 'a b'::tsvector; b'101'; 1::money; row(1,'a'); '1'::oid; '(1,2)'::tid
"""


@pytest.mark.parametrize(
    "expression", [e.strip() for e in EXPRESSIONS.replace("\n", ";").split(";") if e]
)
def test_results(pair, expression):
    """Every type's values come as psycopg makes them; alone and from a snapshot."""
    if not expression:
        return
    for query in (f"SELECT {expression}", f"SELECT {expression} FROM t"):
        pair.same(lambda c, query=query: c.execute(query).fetchall())


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("'infinity'::date", "infinity"),
        ("'infinity'::timestamp", "infinity"),
        ("'-infinity'::timestamptz", "-infinity"),
        ("'10000-01-01'::date", "10000-01-01"),
        ("'0044-03-15 BC'::date", "0044-03-15 BC"),
    ],
)
def test_moments_that_python_cannot_hold(pair, expression, text):
    """psycopg does not show them; tique does, as text, on every engine."""
    native, ours = pair.both(lambda c: c.execute(f"SELECT {expression}").fetchall())
    assert isinstance(native, Failure)
    assert native.kind == "DataError"
    assert ours == [(text,)]


ERRORS = {
    "42601": (
        *("SELECT * FROM", "SELECT 1 +", "INSERT INTO k (id, i) VALUES (9)"),
        *("INSERT INTO k (id) VALUES (9, 1)", "UPDATE k SET i = 1, i = 2"),
        "INSERT INTO k (id, i) VALUES (8, 1), (9)",
    ),
    "42P01": (
        *("SELECT * FROM nope", "INSERT INTO nope VALUES (1)", "UPDATE nope SET a = 1"),
        *("SELECT * FROM nos.nope", "DELETE FROM nope", "DROP TABLE nope"),
    ),
    "42703": (
        *("SELECT nope FROM k", "UPDATE k SET nope = 1"),
        *("INSERT INTO k (nope) VALUES (1)", "DELETE FROM k WHERE nope = 1"),
    ),
    "42702": ("SELECT id FROM k AS a, k AS b",),
    "42803": ("SELECT id, count(*) FROM k GROUP BY i", "SELECT sum(sum(i)) FROM k"),
    "42804": (
        *("SELECT * FROM k WHERE i", "UPDATE t SET i = words"),
        *("INSERT INTO t (id, truth) VALUES (9, 1)", "UPDATE t SET truth = i"),
        *("UPDATE t SET day = 'x'::text", "UPDATE cut SET data = ARRAY[1]"),
        "UPDATE t SET i = '1'::text WHERE id = 99",
        "INSERT INTO t (id, i) VALUES (9, 1), (10, true)",
        "INSERT INTO t (id, i) SELECT 9, words FROM t",
        "INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET i = t.words",
        "INSERT INTO k (id, i) VALUES (9, (SELECT words FROM t WHERE id = 1))",
        "UPDATE k SET i = (SELECT max(day) FROM t) WHERE id = 1 RETURNING i",
    ),
    "42883": ("SELECT 1 + 'a'::text", "SELECT * FROM t WHERE i = words"),
    "42846": ("SELECT 5::xid",),
    "42704": ("CREATE TABLE z (a nosuchtype)",),
    "42P07": ("CREATE TABLE k (a INTEGER)",),
    "22012": (
        *("SELECT 1 / 0", "SELECT 1 / (id - id) FROM k", "UPDATE k SET i = 1 / 0"),
        "UPDATE k SET i = 1 / (id - id)",
    ),
    "23505": (
        *("INSERT INTO k (id) VALUES (1)", "INSERT INTO k (id, u) VALUES (7, 1)"),
        *("UPDATE k SET u = 1 WHERE id = 2", "UPDATE k SET id = 1 WHERE id = 2"),
    ),
    "23502": (
        *("INSERT INTO k (id, n) VALUES (9, NULL)", "UPDATE k SET n = NULL"),
        "INSERT INTO k (i) VALUES (1)",
    ),
    "23514": (
        *("INSERT INTO k (id, c) VALUES (9, -1)", "UPDATE k SET c = -1 WHERE id = 1"),
        "UPDATE k SET c = c - 5",
    ),
    "22003": (
        "INSERT INTO k (id, fixed) VALUES (9, 12345.6)",
        "UPDATE k SET fixed = 99999",
        "UPDATE k SET i = 2147483647 + id",
        "INSERT INTO k (id, i) VALUES (9, 3000000000)",
        "UPDATE k SET small = 70000",
        "INSERT INTO k (id, small) VALUES (9, 70000)",
        "SELECT 10::float8 ^ 400",
        "SELECT 12345::numeric(3)",
    ),
    "22P02": (
        *("SELECT 'x'::int", "INSERT INTO k (id, i) VALUES (9, 'x')"),
        *("UPDATE k SET i = 'x'", "SELECT 'maybe'::boolean", "SELECT 'z'::uuid"),
        *("UPDATE cut SET data = '{'", "SELECT * FROM k WHERE i = 'a'"),
    ),
    "22008": ("SELECT '2020-13-01'::date", "UPDATE cut SET day = '2020-13-01'"),
    "22001": (
        "INSERT INTO k (id, short) VALUES (9, 'abcd')",
        "UPDATE k SET short = 'abcd'",
        "UPDATE k SET short = coalesce(short, '') || 'abcd'",
        "INSERT INTO k (id, short) SELECT 9, 'abcd'",
        "UPDATE cut SET padded = 'abcde'",
        "INSERT INTO cut (id, padded) VALUES (9, 'abcde')",
        "INSERT INTO cut (id, padded) SELECT 9, 'abcde'",
        "UPDATE cut SET varbits = B'1010'",
        "UPDATE cut SET shorts = ARRAY['abcd']",
        "INSERT INTO cut (id, chars) VALUES (9, ARRAY['abcd'])",
    ),
    "22026": ("UPDATE cut SET bits = B'1010'", "UPDATE cut SET bitses = '{1111}'"),
    "2201F": ("SELECT sqrt(-1)",),
    "2201E": ("SELECT ln(0)",),
    "22011": ("SELECT substr('a', 1, -1)",),
    "2201B": ("SELECT 'a' ~ '('",),
    "2201W": ("SELECT * FROM k LIMIT -1",),
    "21000": ("SELECT (SELECT id FROM k)",),
    "54000": ("SELECT chr(0)",),
    "42P10": ("INSERT INTO k (id) VALUES (1) ON CONFLICT (i) DO NOTHING",),
}


@pytest.mark.parametrize(
    ("sqlstate", "statement"),
    [(state, sql) for state, statements in ERRORS.items() for sql in statements],
)
def test_errors(pair, sqlstate, statement):
    """A program that matches on SQLSTATEs finds the same ones (P8, P9)."""
    failure = pair.same(lambda c: c.execute(statement).fetchall())
    assert failure == Failure(failure.kind, sqlstate)


@pytest.mark.parametrize(
    "value",
    [
        *("short = 'abc   '", "short = 'a '", "fixed = 1.255", "i = 1.6", "i = NULL"),
        *("i = fixed", "fixed = i", "short = 'é€x'", "i = DEFAULT", "n = DEFAULT"),
    ],
)
def test_assignments(pair, value):
    """An assignment's conversions are the same."""
    column = value.split()[0]
    pair.same(
        lambda c: (
            c.execute(f"UPDATE k SET {value}").rowcount,
            c.execute(f"SELECT id, {column} FROM k ORDER BY id").fetchall(),
        )
    )


@pytest.mark.parametrize(
    "value",
    [
        *("padded = 'ab'", "padded = 'abcd  '", "bits = '101'", "varbits = B'1'"),
        *("shorts = ARRAY['abc', NULL, 'a  ']", "shorts = '{abc,\"abc  \"}'"),
        *("chars = ARRAY['a']", "bitses = ARRAY[B'111']"),
    ],
)
def test_assignments_to_types_with_a_length(pair, value):
    column = value.split()[0]

    def body(connection):
        connection.execute(f"UPDATE cut SET {value}")
        return connection.execute(f"SELECT {column} FROM cut").fetchall()

    pair.same(body)


STATEMENTS = (
    *("SELECT * FROM t WHERE id = 1", "SELECT * FROM t WHERE id = 99"),
    *("SELECT i FROM k WHERE id = 1", "SELECT count(*) AS n FROM (VALUES (1)) AS v"),
    *("SELECT 1 WHERE false", "VALUES (1), (2)", 'SELECT 1 AS a, 2 AS a, 3 AS "B c"'),
    *("WITH x AS (SELECT 1 AS a) SELECT * FROM x", "SELECT 4, 'x'"),
    *(
        "INSERT INTO k (id) VALUES (20), (21)",
        "INSERT INTO k (id) SELECT id + 30 FROM k",
    ),
    *("UPDATE k SET i = 5", "UPDATE k SET i = 5 WHERE id = 99", "DELETE FROM k"),
    *("UPDATE k SET i = 5 WHERE id = 1", "DELETE FROM k WHERE id = 99"),
    *("INSERT INTO k (id) VALUES (50) RETURNING id", "DELETE FROM k RETURNING *"),
    "UPDATE k SET i = 1 WHERE id = 1 RETURNING id, i AS z",
    "INSERT INTO k (id) VALUES (1) ON CONFLICT DO NOTHING",
    "INSERT INTO k (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET i = 3",
    *("SAVEPOINT a", "SET TRANSACTION READ ONLY"),
)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_rowcount_and_names(pair, statement):
    def body(connection):
        cursor = connection.cursor()
        before = cursor.rowcount, cursor.description, cursor.rownumber, cursor.arraysize
        cursor.execute(statement)
        columns = cursor.description and [column[0] for column in cursor.description]
        widths = cursor.description and [len(column) for column in cursor.description]
        return before, cursor.rowcount, cursor.rownumber, columns, widths

    assert not isinstance(pair.same(body), Failure)


def test_executemany(pair):
    def body(c):
        cursor = c.cursor()
        counts = []
        rows = [(10, 1), (11, 2), (12, 3)]
        cursor.executemany("INSERT INTO k (id, i) VALUES (%s,%s)", rows)
        counts.append((cursor.rowcount, cursor.description, cursor.rownumber))
        changes = [(5, 10), (6, 11), (7, 99)]
        cursor.executemany("UPDATE k SET i = %s WHERE id = %s", changes)
        counts.append(cursor.rowcount)
        named = [{"x": 10}, {"x": 99}]
        cursor.executemany("DELETE FROM k WHERE id = %(x)s", named)
        counts.append(cursor.rowcount)
        cursor.executemany("DELETE FROM k WHERE id = %s", [])
        return (
            counts,
            cursor.rowcount,
            c.execute("SELECT * FROM k ORDER BY id").fetchall(),
        )

    assert not isinstance(pair.same(body), Failure)
    failure = pair.same(
        lambda c: c.cursor().executemany("INSERT INTO k (id) VALUES (%s)", [(8,), (1,)])
    )
    assert failure == Failure("IntegrityError", "23505")


def test_types_of_parameters(pair):
    """Whether an assignment is refused depends on each execution's parameters."""

    def body(c, statement, *values):
        counts = [c.execute(statement, [value]).rowcount for value in values[:-1]]
        try:
            counts.append(c.execute(statement, values[-1:]).rowcount)
        except (psycopg.Error, tique.Error) as error:
            counts.append(error.sqlstate)
        return counts

    for statement, values in {
        "UPDATE k SET i = %s": (1, "2", None, 3.5, True),
        "UPDATE k SET i = %s WHERE id + 0 = 1": ("2", b"2"),
        "UPDATE cut SET truth = %s": (True, "f", 1),
        "UPDATE cut SET day = %s": ("2020-01-02", dt.datetime(2020, 1, 2, 3), 5),
        "UPDATE t SET list = %s": ([1, 2], [None], "{3}", ["x"]),
        "INSERT INTO t (id, day) SELECT 9, %s FROM k WHERE id = 99": ("2020-01-02", 1),
    }.items():
        *_, last = pair.same(lambda c, s=statement, v=values: body(c, s, *v))
        assert last in ("42804", "22P02")

    def many(c):
        rows = [(n + 50, str(n)) for n in range(200)] + [(300, True)]
        c.cursor().executemany("INSERT INTO k (id, i) VALUES (%s, %s)", rows)

    assert pair.same(many) == Failure("ProgrammingError", "42804")


def test_fetching(pair):
    def body(c):
        cursor = c.execute("SELECT id FROM t ORDER BY id")
        seen: list[Any] = [cursor.fetchone(), cursor.rownumber, cursor.fetchall()]
        seen += [cursor.rownumber, cursor.fetchone(), cursor.fetchall()]
        series = "SELECT g FROM generate_series(1, 10) AS g"
        cursor.execute(series)
        seen += [cursor.fetchmany(), cursor.fetchmany(3), cursor.rownumber]
        seen += [list(cursor), cursor.fetchmany(2)]
        cursor.arraysize = 4
        cursor.execute(series)
        seen += [cursor.fetchmany(), next(cursor), cursor.fetchmany(size=100)]
        return seen

    assert not isinstance(pair.same(body), Failure)


USES = {
    "fetch_before": lambda c: c.cursor().fetchone(),
    "fetch_after_update": lambda c: c.execute("UPDATE k SET i = 1").fetchall(),
    "iterate_before": lambda c: next(iter(c.cursor())),
    "too_few": lambda c: c.execute("SELECT %s, %s", [1]),
    "too_many": lambda c: c.execute("SELECT %s", [1, 2]),
    "none": lambda c: c.execute("SELECT %s", []),
    "missing": lambda c: c.execute("SELECT %(a)s", {"b": 1}),
    "extra": lambda c: c.execute("SELECT %(a)s", {"a": 1, "b": 2}).fetchall(),
    "mixed": lambda c: c.execute("SELECT %(a)s, %s", {"a": 1}),
    "twice": lambda c: c.execute("SELECT %(a)s,%(a)s", {"a": 1}).fetchall(),
    "percent": lambda c: c.execute("SELECT 5 %% %s", [2]).fetchall(),
    "literal_percent": lambda c: c.execute("SELECT 5 % 2").fetchall(),
    "lone_percent": lambda c: c.execute("SELECT 5 % 2", []).fetchall(),
    "dollar": lambda c: c.execute("SELECT $1", [1]).fetchall(),
    "like": lambda c: c.execute("SELECT 'abc' LIKE 'a%%' AND %s", [True]).fetchall(),
    "any": lambda c: c.execute("SELECT 1 = ANY(%s)", [[1, 2]]).fetchall(),
    "cast": lambda c: c.execute("SELECT %s::int + 1", ["5"]).fetchall(),
    "limit": lambda c: c.execute("SELECT 1 LIMIT %s OFFSET %s", [1, 0]).fetchall(),
    "json": lambda c: c.execute("SELECT %s -> 'a'", [Jsonb({"a": 1})]).fetchall(),
    "closed": lambda c: _closed(c).execute("SELECT 1"),
    "closed_fetch": lambda c: _closed(c).fetchone(),
    "closed_twice": lambda c: _closed(c).close(),
    "input_sizes": lambda c: c.cursor().setinputsizes([1]),
    "output_size": lambda c: c.cursor().setoutputsize(1),
    "connection": lambda c: c.cursor().connection is c,
    "autocommit": lambda c: (c.execute("SELECT 1"), setattr(c, "autocommit", True)),
}


def _closed(connection: Any) -> Any:
    cursor = connection.execute("SELECT 1")
    cursor.close()
    return cursor


@pytest.mark.parametrize("use", USES)
def test_uses(pair, use):
    pair.same(USES[use])


def test_a_closed_connection(postgresql_cluster, pair):
    def body(connect: Callable[[], Any]) -> list[Any]:
        connection = connect()
        cursor = connection.cursor()
        connection.close()
        connection.close()
        seen = [connection.closed]
        for use in (
            connection.cursor,
            connection.commit,
            connection.rollback,
            lambda: cursor.execute("SELECT 1"),
        ):
            with pytest.raises((psycopg.Error, tique.Error)) as caught:
                use()
            seen.append(
                [
                    k.__name__
                    for k in type(caught.value).__mro__
                    if k.__name__ in CLASSES
                ]
            )
        return seen

    native = body(lambda: psycopg.connect(postgresql_cluster.socket_url))
    assert body(lambda: tique.connect(postgresql_cluster.socket_url)) == [
        True,
        *[["InterfaceError"]] * 4,
    ]
    assert native == [True, *[["OperationalError"]] * 4]
