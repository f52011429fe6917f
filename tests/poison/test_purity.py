"""P4, P9: a CHECK that depends on more than the row is refused when the table is defined.

It would be judged again when the row is folded, and might refuse an acknowledged row.
"""

from __future__ import annotations

from contextlib import suppress

import duckdb
import pytest

import tique
from tests.portable import numbers

COLUMNS = (
    "id INTEGER PRIMARY KEY, n INTEGER, s VARCHAR, d DATE, ts TIMESTAMP, "
    "tz TIMESTAMPTZ, tz2 TIMESTAMPTZ, ttz TIMETZ, x DOUBLE, l INTEGER[], "
    "r STRUCT(a INTEGER, tz TIMESTAMPTZ), j JSON, u UUID, i INTERVAL"
)

IMPURE = {
    "ts > CAST(now() AS TIMESTAMP)": "now()",
    "d <= today()": "today()",
    "tz <= get_current_timestamp()": "get_current_timestamp()",
    "tz <= transaction_timestamp()": "transaction_timestamp()",
    "ts > current_localtimestamp()": "current_localtimestamp()",
    "CAST(ts AS TIME) > current_localtime()": "current_localtime()",
    "age(ts) > INTERVAL 1 DAY": "age()",
    "x > random()": "random()",
    "u <> uuid()": "uuid()",
    "u <> gen_random_uuid()": "gen_random_uuid()",
    "n > txid_current()": "txid_current()",
    "s <> current_schema()": "current_schema()",
    "s <> current_database()": "current_database()",
    "s <> version()": "version()",
    "s <> current_setting('TimeZone')": "current_setting()",
    "n > coalesce(getvariable('low'), 0)": "getvariable()",
    "n > 1 OR error('no') IS NULL": "error()",
    "hash(s) % 2 = 0": "hash()",
    "list_sort(l)[1] > 0": "list_sort()",
    "CASE WHEN n > 0 THEN d < today() END": "today()",
    "NOT (n BETWEEN 1 AND CAST(random() AS INTEGER))": "random()",
    'main."now"() > tz': "now()",
    # Of the session's time zone:
    "tz > '2020-01-01'": "time zone",
    "tz > TIMESTAMPTZ '2020-01-01 00:00:00'": "time zone",
    "CAST(tz AS DATE) = d": "time zone",
    "tz::DATE > d": "time zone",
    "CAST(tz AS VARCHAR) LIKE '20%'": "time zone",
    "tz > ts": "time zone",
    "CAST(ts AS TIMESTAMPTZ) > tz": "time zone",
    "CAST(s AS TIMESTAMPTZ) < tz": "time zone",
    "CAST(ttz AS TIME) > TIME '12:00:00'": "time zone",
    "date_trunc('day', tz) = tz": "date_trunc()",
    "extract(hour FROM tz) < 12": "time zone",
    "year(tz) > 2000": "year()",
    "strftime(tz, '%Y') > '2000'": "strftime()",
    "tz AT TIME ZONE 'UTC' > ts": "timezone()",
    "tz - tz2 < INTERVAL 1 DAY": "time zone",
    "tz + INTERVAL 1 MONTH > tz2": "time zone",
    "strptime(s, '%Y %Z') < tz": "strptime()",
    "[tz]::VARCHAR[] = [s]": "time zone",
    "CAST(r AS VARCHAR) > ''": "time zone",
    "format('{}', tz) > ''": "time zone",
}

PURE = [
    "n > 0 AND n % 7 <> 3 OR n IS NULL",
    "n BETWEEN 1 AND 10",
    "s IN ('a', 'b') AND s LIKE 'a%' AND s NOT ILIKE '_b%' ESCAPE '!'",
    "length(s) <= 3 AND s = lower(trim(s)) AND s || 'x' <> upper(s)",
    "regexp_matches(s, '^[a-z]*$') AND s SIMILAR TO '[a-z]*'",
    "d > DATE '2020-01-01' AND ts - INTERVAL 1 DAY < TIMESTAMP '2030-01-01'",
    "extract(year FROM d) = 2020 AND date_trunc('month', ts) = ts",
    "tz > tz2 AND tz BETWEEN tz2 AND tz2 AND tz IN (tz, tz2) OR tz IS NULL",
    "tz > TIMESTAMPTZ '2020-01-01 00:00:00+00' AND tz < '2030-01-01 00:00:00Z'",
    "greatest(tz, tz2) = coalesce(tz2, tz) AND nullif(tz, tz2) IS NULL",
    "epoch(tz) > 0",
    "x > 0 AND round(x, 2) = x AND sqrt(x) < 9 AND x::DECIMAL(10,2) > 1",
    "len(l) < 3 AND list_contains(l, 1) AND l[1] > 0",
    "struct_extract(r, 'a') > 0 AND struct_extract(r, 'tz') = tz",
    "j ->> 'a' = 'b' AND json_valid(s)",
    "CASE WHEN n > 0 THEN s IS NULL ELSE TRY_CAST(s AS INTEGER) > 0 END",
    "i > INTERVAL 1 DAY",
]


@pytest.mark.slow
@pytest.mark.written_for(["duckdb"], reason="its functions")
def test_an_impure_check_is_refused(engine):
    connection = engine.connect()
    for condition, culprit in IMPURE.items():
        with pytest.raises(tique.NotSupportedError) as refused:
            connection.execute(f"CREATE TABLE t ({COLUMNS}, CHECK ({condition}))")
        assert refused.value.sqlstate == "0A000"
        for part in ("table main.t: CHECK (", culprit, "on the row alone"):
            assert part in str(refused.value), condition
        connection.rollback()
    # No trace is left.
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")


ROWS = [
    "n, s) VALUES (1, 1, 'a'",
    "n, s) VALUES (2, 0, 'B'",
    "n, s) VALUES (3, 10, '12'",
    "n, s, x) VALUES (4, 3, 'abcd', 2.5",
    "d, ts) VALUES (5, '2020-05-05', '2020-05-01 00:00:00'",
    "d, ts) VALUES (6, '2019-12-31', '2031-01-01 10:00:00'",
    "tz, tz2) VALUES (7, '2025-01-01 00:00:00+00', '2025-01-01 02:00:00+02'",
    "tz, tz2) VALUES (8, '1960-01-01 00:00:00+00', '2040-01-01 00:00:00+00'",
    "x, l) VALUES (9, -1, [1, 2]",
    "x, l) VALUES (10, 0.125, [0, 1, 2, 3]",
    "r, j, s) VALUES (11, {'a': 1, 'tz': NULL}, '{\"a\":\"b\"}', '{}'",
    "r, j, s) VALUES (12, {'a': 0, 'tz': NULL}, '{\"a\":\"c\"}', '{'",
    "i) VALUES (13, '1 day'",
    "i) VALUES (14, '25 hours'",
]


def contents(connection, number):
    # Python needs another package for values with a time zone.
    return connection.execute(
        "SELECT id, n, s, d, ts, CAST(tz AS VARCHAR), CAST(tz2 AS VARCHAR), x, l, "
        f"CAST(r AS VARCHAR), j, i FROM t{number} ORDER BY id"
    ).fetchall()


@pytest.mark.slow
@pytest.mark.written_for(["duckdb"], reason="its functions")
def test_a_pure_check_judges_once_and_as_the_engine_does(engine):
    """A row that passes is there after a restart, a checkpoint and a detachment."""
    rows = [f"(id, {row})" for row in ROWS]
    native = engine.native()
    expected = []
    for number, condition in enumerate(PURE):
        native.execute(f"CREATE TABLE t{number} ({COLUMNS}, CHECK ({condition}))")
        for row in rows:
            with suppress(duckdb.ConstraintException, duckdb.ConversionException):
                native.execute(f"INSERT INTO t{number} {row}")
        expected.append(contents(native, number))
        assert 0 < len(expected[-1]) < len(rows), condition
        native.execute(f"DROP TABLE t{number}")
    connection = engine.connect(checkpoint="manual")
    for number, condition in enumerate(PURE):
        connection.execute(f"CREATE TABLE t{number} ({COLUMNS}, CHECK ({condition}))")
        for row in rows:
            try:
                connection.execute(f"INSERT INTO t{number} {row}")
            except (tique.errors.CheckViolation, tique.DataError):
                connection.rollback()
            else:
                connection.commit()
        assert contents(connection, number) == expected[number], condition
    engine.close()
    connection = engine.connect(checkpoint="manual")
    for number, found in enumerate(expected):
        assert contents(connection, number) == found, PURE[number]
        connection.execute(f"UPDATE t{number} SET id = id")
    connection.commit()
    connection.checkpoint()
    assert {table.obstacle for table in connection.status().tables} == {None}
    engine.close()
    assert len(tique.detach(engine.url)) == len(PURE)
    native = engine.native()
    for number, found in enumerate(expected):
        assert contents(native, number) == found, PURE[number]


@pytest.mark.slow
@pytest.mark.written_for(["duckdb"], reason="its functions")
def test_a_table_with_an_impure_check_is_not_adopted(engine):
    native = engine.native()
    for number, condition in enumerate(IMPURE):
        native.execute(f"CREATE TABLE t{number} ({COLUMNS}, CHECK ({condition}))")
    engine.close()
    with pytest.raises(tique.NotSupportedError, match="on the row alone"):
        tique.adopt(engine.url)
    obstacles = {
        table.name: table.obstacle for table in engine.connect().status().unmanaged
    }
    for number, (condition, culprit) in enumerate(IMPURE.items()):
        assert culprit in obstacles[f"main.t{number}"], condition


@pytest.mark.written_for(["duckdb"], reason="its literals")
def test_a_check_of_which_there_is_no_plan(engine):
    """DuckDB 2.0 does not write down a plan that has a constant of bits."""
    connection = engine.connect()
    with suppress(tique.NotSupportedError):
        connection.execute("CREATE TABLE t (a INTEGER CHECK (a < (B'101' AND TRUE)))")


@pytest.mark.written_for(["duckdb"], reason="it has macros")
@pytest.mark.parametrize("name", ["fresh", "lower"])
def test_a_macro_may_change_later(engine, name):
    native = engine.native()
    native.execute(f"CREATE MACRO {name}(a) AS a > 1")
    native.execute(f"CREATE TABLE t (a INTEGER, CHECK (main.{name}(a)))")
    engine.close()
    with pytest.raises(tique.NotSupportedError, match=rf"{name}\(\)"):
        tique.adopt(engine.url)


@pytest.mark.written_for(["duckdb"], reason="it has no UNIQUE ones of its own here")
@pytest.mark.parametrize("is_adopted", [True, False])
@pytest.mark.parametrize("count", [1, 3000])
def test_an_index_on_an_expression_that_fails_for_a_row(engine, is_adopted, count):
    """P4: DuckDB finds it at the commit, which here is a fold, long after it."""
    setup = (
        'CREATE TABLE t (a INTEGER PRIMARY KEY, b VARCHAR, "c(" INTEGER)',
        "INSERT INTO t VALUES (-1, '7', 1)",
        'CREATE INDEX fine ON t (lower(b), "c(")',
        "CREATE INDEX odd ON t (a, (CAST(b AS INTEGER)))",
    )
    if is_adopted:
        native = engine.native()
        for statement in setup:
            native.execute(statement)
        engine.close()
        tique.adopt(engine.url)
    one = engine.connect(checkpoint="manual")
    for statement in () if is_adopted else setup:
        one.execute(statement)
        one.commit()
    rows = f"FROM {numbers(count)}"
    for statement in (
        f"INSERT INTO t SELECT number, 'x', 0 {rows}",
        "UPDATE t SET b = 'x'",
        "UPDATE t SET b = 'x' WHERE a = -1",
    ):
        with pytest.raises(tique.IntegrityError, match="Could not convert"):
            one.execute(statement)
        one.rollback()
    one.execute(f"INSERT INTO t SELECT number, '9', 0 {rows}")
    one.execute("UPDATE t SET b = '8' WHERE a = -1")
    one.commit()
    one.checkpoint()
    assert one.status().tables[0].cached_rows == 0
    query = "SELECT count(*) FROM t WHERE lower(b) = '9'"
    assert one.execute(query).fetchall() == [(count,)]
    one.rollback()
    one.execute("DROP INDEX odd")
    one.execute("UPDATE t SET b = 'x' WHERE a = -1")
    one.commit()
    with pytest.raises(tique.Error):
        one.execute("CREATE INDEX odd ON t ((CAST(b AS INTEGER)))")
    one.rollback()
    one.close()
    tique.detach(engine.url)
    found = engine.native().execute("SELECT b FROM t WHERE lower(b) <> '9'")
    assert found.fetchall() == [("x",)]


@pytest.mark.written_for(["duckdb"], reason="its functions")
def test_a_default_is_evaluated_by_the_statement_and_once(engine):
    """P4: storage gets the value that the statement saw, however late it is folded."""
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, x DOUBLE DEFAULT random(), "
        "u UUID DEFAULT uuid(), ts TIMESTAMP DEFAULT current_localtimestamp())"
    )
    connection.execute("INSERT INTO t (id) VALUES (1), (2)")
    connection.execute("INSERT INTO t (id) SELECT 3")
    connection.execute("INSERT INTO t (id) SELECT * FROM range(10, 3000)")
    before = connection.execute("SELECT * FROM t ORDER BY id").fetchall()
    connection.commit()
    assert connection.execute("SELECT * FROM t ORDER BY id").fetchall() == before
    connection.rollback()
    connection.checkpoint()
    assert connection.execute("SELECT * FROM t ORDER BY id").fetchall() == before
    assert engine.native().execute("SELECT * FROM t ORDER BY id").fetchall() == before
    assert len({row[1] for row in before}) == len(before)
