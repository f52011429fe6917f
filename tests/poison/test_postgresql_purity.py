"""P4, P9: a condition of storage depends on the row alone, or is refused.

It is checked again when the row is folded, and might refuse an acknowledged row.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import tique
from tests.plugins.postgresql import empty

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.targets.cluster import Cluster

COLUMNS = (
    "id INTEGER PRIMARY KEY, n INTEGER, s TEXT, d DATE, ts TIMESTAMP, tz TIMESTAMPTZ, "
    "x DOUBLE PRECISION, b BYTEA, a INTEGER[], j JSONB, u UUID, i INTERVAL, m MONEY, "
    "mood mood, p pair, r INT4RANGE, tr TSTZRANGE"
)

SETUP = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok')",
    "CREATE SEQUENCE numbers",
    "CREATE TYPE pair AS (a INTEGER, b TEXT)",
    "CREATE FUNCTION sure(INTEGER) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS "
    "'BEGIN RETURN random() < 2; END'",
    "CREATE FUNCTION twice(a INTEGER) RETURNS INTEGER IMMUTABLE LANGUAGE sql AS "
    "'SELECT a * 2'",
    "CREATE OPERATOR ~~~~ (LEFTARG = INTEGER, RIGHTARG = INTEGER, FUNCTION = same)",
    "CREATE DOMAIN small AS INTEGER CHECK (VALUE < 10)",
    "CREATE DOMAIN recent AS TIMESTAMP CHECK (VALUE > localtimestamp - INTERVAL '1 s')",
    "CREATE TYPE wrapped AS (a recent)",
)
SAME = (
    "CREATE FUNCTION same(INTEGER, INTEGER) RETURNS BOOLEAN IMMUTABLE LANGUAGE sql AS "
    "'SELECT $1 = $2'"
)

IMPURE = {
    "ts > localtimestamp": "calls localtimestamp",
    "d <= current_date": "calls current_date",
    "tz <= current_timestamp": "calls current_timestamp",
    "tz <= now()": "calls now()",
    "tz <= clock_timestamp()": "calls clock_timestamp()",
    "tz > transaction_timestamp() OR n > 1": "calls transaction_timestamp()",
    "age(ts) > INTERVAL '1 day'": "calls age(timestamp without time zone)",
    "x > random()": "calls random()",
    "u <> gen_random_uuid()": "calls gen_random_uuid()",
    "n > txid_current()": "calls txid_current()",
    "n > pg_backend_pid()": "calls pg_backend_pid()",
    "s <> current_user": "calls current_user",
    "s <> session_user": "calls session_user",
    "s <> current_schema": "calls current_schema",
    "s <> current_database()": "calls current_database()",
    "s <> current_setting('TimeZone')": "calls current_setting(text)",
    "s <> version()": "calls version()",
    "tableoid > 20000": "looks at tableoid",
    "n IN (1, 2) AND NOT (n > 1 AND tableoid = 5)": "looks at tableoid",
    "has_table_privilege(s, 'SELECT')": "calls has_table_privilege(text,text)",
    "pg_column_size(s) < 100": "calls pg_column_size(",
    "n > nextval('numbers')": "calls nextval(regclass)",
    # Of settings:
    "CAST(ts AS TEXT) LIKE '20%'": "converts timestamp without time zone from or to",
    "CAST(tz AS DATE) = d": "calls date(timestamp with time zone)",
    "CAST(s AS DATE) = d": "converts date from or to",
    "CAST(i AS TEXT) > ''": "converts interval from or to",
    "CAST(m AS TEXT) > ''": "converts money from or to",
    "CAST(a AS TEXT) > ''": "converts integer[] from or to",
    "CAST(mood AS TEXT) = 'ok'": "converts public.mood from or to",
    "CAST(p AS TEXT) > ''": "converts public.pair from or to",
    "d > ts AND tz > ts": "calls timestamptz_gt_timestamp(",
    "tz > d": "calls timestamptz_gt_date(",
    "to_char(ts, 'YYYY') > '2000'": "calls to_char(",
    "extract(hour FROM tz) < 12": 'calls "extract"(',
    "date_trunc('day', tz) = tz": "calls date_trunc(",
    "tz + INTERVAL '1 month' > tz": "calls timestamptz_pl_interval(",
    "to_tsvector(s) @@ to_tsquery('a')": "calls to_ts",
    "jsonb_path_exists_tz(j, '$.a')": "calls jsonb_path_exists_tz(",
    "to_jsonb(ts) = j": "calls to_jsonb(",
    "concat(s, n) > ''": "calls concat(",
    "format('%s', s) > ''": "calls format(",
    "CAST(string_to_array(s, ',') AS DATE[]) = ARRAY[d]": "converts date from or to",
    "CAST(xmlelement(NAME a, b) AS TEXT) > ''": "makes XML",
    # Of the application's own making, with any declaration:
    "sure(n)": "calls public.sure(integer), which is neither",
    "twice(n) > 2": "calls public.twice(integer), which is neither",
    "n ~~~~ 1": "calls public.same(integer,integer), which is neither",
    "CAST(n AS small) > 1": "converts to a domain",
}

PURE = [
    "n > 0 AND n % 7 <> 3 OR n IS NULL",
    "n BETWEEN 1 AND 10 AND n IN (1, 2, 3) AND n <> ALL ('{4}')",
    "s LIKE 'a%' AND s NOT ILIKE '_b%' ESCAPE '!' AND s ~ '^a+$' AND s SIMILAR TO 'a*'",
    "length(s) <= 3 AND s = lower(trim(s)) AND s || 'x' <> upper(s)",
    "octet_length(s) < 5 AND left(s, 2) = 'aa' AND s <> repeat('a', n)",
    "d > '2020-01-01' AND ts - INTERVAL '1 day' < '2030-01-01' AND d < ts",
    "extract(year FROM d) = 2020 AND date_trunc('month', ts) = ts",
    "tz > '2020-01-01 00:00:00+00' AND tz < 'infinity' AND isfinite(tz)",
    "tz AT TIME ZONE 'UTC' > ts",
    "x > 0 AND round(x) = x AND sqrt(abs(x)) < 9 AND CAST(x AS NUMERIC(10,2)) > 1",
    "CAST(x AS TEXT) <> '0.1' AND CAST(n AS TEXT) <> '5' AND CAST(s AS INTEGER) > 1",
    "CAST(b AS TEXT) <> 'a' AND encode(b, 'hex') <> 'b' AND sha256(b) <> b",
    "cardinality(a) < 3 AND 1 = ANY (a) AND a[1] > 0 AND a @> ARRAY[1]",
    "j ->> 'a' = 'b' AND j @> '{\"a\": 1}' AND jsonb_typeof(j) = 'object'",
    "CASE WHEN n > 0 THEN s IS NULL ELSE coalesce(n, 1) = nullif(n, 2) END",
    "greatest(n, 2) = least(n, 3) OR (n, s) < (1, 'a') OR n IS DISTINCT FROM 3",
    "mood = 'ok' OR (p).a > 1 OR r @> 1 OR lower(tr) < tz OR u IS NULL",
    "m > m / 2 AND i > '1 day'",
    "to_tsvector('simple', s) @@ to_tsquery('simple', 'a') AND md5(s) <> s",
]


@pytest.fixture(scope="module")
def prepared(postgresql_cluster: Cluster) -> Iterator[str]:
    """A database with types and functions of its own, and tique in it."""
    url = postgresql_cluster.socket_url
    empty(url)
    natively(url, SAME, *SETUP)
    with closing(tique.connect(url)):
        yield url
    empty(url)


def natively(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements without tique; the last one's rows."""
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        # The role is called as tique's schema is.
        connection.execute("SET search_path = public")
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def obstacles(url: str) -> dict[str, str | None]:
    """Why tables could not be adopted, by name."""
    with closing(tique.connect(url)) as connection:
        return {table.name: table.obstacle for table in connection.status().unmanaged}


def refused(url: str, definition: str) -> str:
    """Why a table is not adopted."""
    natively(url, "DROP TABLE IF EXISTS t", f"CREATE TABLE t {definition}")
    with pytest.raises(tique.NotSupportedError) as caught:
        tique.adopt(url, ["t"])
    assert caught.value.sqlstate == "0A000"
    return str(caught.value)


def test_an_impure_check_is_not_adopted(prepared):
    said = refused(prepared, f"({COLUMNS}, CONSTRAINT odd CHECK (ts > localtimestamp))")
    assert said.startswith(
        "table public.t: CHECK constraint odd calls localtimestamp; "
    )


@pytest.mark.slow
def test_every_impure_check_is_an_obstacle(prepared):
    natively(
        prepared,
        *(
            f"CREATE TABLE impure{number} ({COLUMNS}, CONSTRAINT odd CHECK ({condition}))"
            for number, condition in enumerate(IMPURE)
        ),
    )
    found = obstacles(prepared)
    for number, (condition, culprit) in enumerate(IMPURE.items()):
        said = found[f"public.impure{number}"]
        assert said.startswith(f"table public.impure{number}: CHECK constraint odd ")
        assert culprit in said, condition
    natively(prepared, *(f"DROP TABLE impure{n}" for n in range(len(IMPURE))))


@pytest.mark.slow
def test_no_pure_check_is_an_obstacle(prepared):
    natively(
        prepared,
        *(
            f"CREATE TABLE pure{number} ({COLUMNS}, CHECK ({condition}))"
            for number, condition in enumerate(PURE)
        ),
    )
    names = [f"public.pure{number}" for number in range(len(PURE))]
    found = obstacles(prepared)
    assert {name: found[name] for name in names} == dict.fromkeys(names)
    # The constraint goes along to the tables in which versions are kept.
    assert tique.adopt(prepared, names) == names
    tique.detach(prepared, names)
    natively(prepared, *(f"DROP TABLE {name}" for name in names))


def test_an_impure_check_is_refused_when_the_table_is_created(prepared):
    natively(prepared, "DROP TABLE IF EXISTS t")
    with closing(tique.connect(prepared, autocommit=True)) as connection:
        for check in ("ts > localtimestamp", "s <> current_user", "ts > '2020-01-01'"):
            sql = f"CREATE TABLE t (ts TIMESTAMP, s TEXT, CHECK ({check}))"
            if "2020" in check:
                connection.execute(sql)
                connection.execute("DROP TABLE t")
                continue
            with pytest.raises(tique.NotSupportedError) as caught:
                connection.execute(sql)
            assert "CHECK constraint t_" in str(caught.value)
            assert caught.value.sqlstate == "0A000"
    assert natively(prepared, "SELECT to_regclass('t')") == [(None,)]


@pytest.mark.parametrize(
    "column", ["v recent", "v recent[]", "v wrapped", "v wrapped[]", "id2 recent"]
)
def test_an_impure_domain_is_not_adopted(prepared, column):
    said = refused(prepared, f"(id INTEGER PRIMARY KEY, {column})")
    assert (
        "CHECK constraint recent_check of domain public.recent calls localtimestamp"
        in said
    )


@pytest.mark.parametrize("column", ["v small", "v small[]"])
def test_a_pure_domain_is_adopted(prepared, column):
    natively(
        prepared,
        "DROP TABLE IF EXISTS t",
        f"CREATE TABLE t (id INTEGER PRIMARY KEY, {column})",
    )
    assert tique.adopt(prepared, ["t"]) == ["public.t"]
    tique.detach(prepared, ["t"])


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        ("(sure(n))", "index odd calls public.sure(integer), which is neither"),
        ("(n) WHERE sure(n)", "index odd calls public.sure(integer), which is neither"),
        ("((twice(n) + 1))", "index odd calls public.twice(integer), which is neither"),
        ("(n) WHERE n ~~~~ 1", "index odd calls public.same(integer,integer)"),
        (
            "USING hash ((twice(n)))",
            "index odd calls public.twice(integer), which is neither",
        ),
        ("(c)", "index odd would take one row only: could not identify an ordering"),
        ("(n, c)", "index odd would take one row only: could not identify"),
        ("(c) WHERE n > 1", "index odd would take one row only: could not identify"),
        ("(q)", "index odd would take one row only: could not identify an ordering"),
        ("USING bloom (n)", "index odd is of the kind bloom"),
        (
            "(n own_ops)",
            "index odd is ordered by an operator class of your own, own_ops",
        ),
    ],
)
def test_an_index_that_storage_may_refuse_a_row_for_is_not_adopted(
    prepared, index, reason
):
    natively(
        prepared,
        "CREATE EXTENSION IF NOT EXISTS bloom WITH SCHEMA pg_catalog",
        "DROP TABLE IF EXISTS t",
        "DROP TYPE IF EXISTS place",
        "DROP OPERATOR CLASS IF EXISTS own_ops USING btree CASCADE",
        "CREATE TYPE place AS (at POINT)",
        "CREATE OPERATOR CLASS own_ops FOR TYPE INTEGER USING btree AS "
        "FUNCTION 1 btint4cmp(INTEGER, INTEGER), OPERATOR 1 <, OPERATOR 3 =",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, c POINT[], q place)",
        f"CREATE INDEX odd ON t {index}",
    )
    with pytest.raises(tique.NotSupportedError) as caught:
        tique.adopt(prepared, ["t"])
    assert reason in str(caught.value)
    assert str(caught.value).startswith("table public.t: ")
