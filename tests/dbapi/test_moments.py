"""What the engine derives from its own transaction is the application's (P12).

``STABLE`` expressions are one value in a transaction, natively and through tique, with the
name and the type that they have natively; ``REFUSED`` ones would tell of the engine's own
transactions. Whatever computes such a value (a query, a DEFAULT, rows of one statement or
of many, a savepoint's, a statement that is run again) has the transaction's.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

import tique

_WORDS = (
    *("current_timestamp", "CURRENT_DATE", "current_time", "localtime"),
    *("LOCALTIMESTAMP", "now()", "transaction_timestamp()"),
)
_USES = (
    *("now() + INTERVAL '1 day'", "coalesce(NULL, now())", "(SELECT now())"),
    *("CASE WHEN 1 = 1 THEN now() END", "CAST(now() AS DATE)", "now() AS seen"),
    *("current_timestamp seen", "max(now())", "extract(epoch FROM now())"),
)
STABLE: dict[str, tuple[str, ...]] = {
    "duckdb": (
        *_WORDS,
        *_USES,
        *("get_current_timestamp()", "today()", "current_date()", "get_current_time()"),
        *("current_localtime()", "current_localtimestamp()", "main.now()"),
        *("now()::VARCHAR", "current_user", "current_schema()"),
        "age(TIMESTAMP '2020-01-01')",
    ),
    "postgresql": (
        *_WORDS,
        *_USES,
        *("current_timestamp(3)", "current_time(2)", "localtime(1)"),
        *(
            "localtimestamp(0)",
            "pg_catalog.now()",
            "now()::date",
            "now() AT TIME ZONE 'UTC'",
        ),
        *("'now'::timestamptz", "CAST('now' AS timestamp)", "'NOW'::time"),
        *("('now'::text)::timestamptz", "'today'::date", "'tomorrow'::timestamptz"),
        *("'yesterday'::timestamp", "age(timestamp '2020-01-01')"),
        *("age('2020-01-01'::date)", "current_user", "current_schema", "'now'::text"),
        *("pg_backend_pid()", "inet_client_addr()"),
    ),
}
REFUSED = {
    "duckdb": (
        *("txid_current()", "current_transaction_id()", "current_query_id()"),
        *("ago(INTERVAL 1 DAY)", "pg_postmaster_start_time()", "pg_conf_load_time()"),
    ),
    "postgresql": (
        *("txid_current()", "pg_current_xact_id()", "pg_current_xact_id_if_assigned()"),
        *("txid_current_snapshot()", "pg_current_snapshot()", "pg_export_snapshot()"),
        *("pg_my_temp_schema()", "pg_advisory_xact_lock(1)", "pg_advisory_lock(1)"),
        "timestamptz 'now'",
    ),
}
MOVING = {"duckdb": (), "postgresql": ("statement_timestamp()", "clock_timestamp()")}
ZONE = {"duckdb": "TIMESTAMPTZ", "postgresql": "TIMESTAMPTZ"}
_TABLES = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, note VARCHAR(9), "
    "made TIMESTAMPTZ DEFAULT now(), day DATE DEFAULT CURRENT_DATE)",
    "CREATE TABLE s (id INTEGER PRIMARY KEY, made TIMESTAMPTZ)",
)


@pytest.fixture
def engine(engine):
    if engine.name == "monetdb":
        pytest.skip("MonetDB's now() is natively one for each statement")
    return engine


@pytest.fixture
def connection(engine):
    connection = engine.connect()
    for sql in _TABLES:
        connection.execute(sql)
    connection.commit()
    return connection


def _twice(connection: Any, expression: str) -> tuple[bool, str, type]:
    """Whether it is one value in a transaction, and its name and type."""
    connection.execute("BEGIN")
    cursor = connection.execute(f"SELECT {expression}")
    (first,), name = cursor.fetchone(), cursor.description[0][0]
    for _ in range(3):
        (second,) = connection.execute(f"SELECT {expression}").fetchone()
    connection.execute("ROLLBACK")
    return first == second, name, type(first)


def test_each_is_as_natively(engine):
    native = engine.native()
    native.rollback() if engine.name == "postgresql" else None
    expected = {
        text: _twice(native, text)
        for text in (*STABLE[engine.name], *MOVING[engine.name])
    }
    native.close()
    connection = engine.connect()
    found = {text: _twice(connection, text) for text in expected}
    assert found == expected
    assert all(found[text][0] for text in STABLE[engine.name])
    assert not any(found[text][0] for text in MOVING[engine.name])


def test_what_tells_of_the_engines_transactions_is_refused(engine, connection):
    for text in REFUSED[engine.name]:
        with pytest.raises(tique.NotSupportedError) as caught:
            connection.execute(f"SELECT {text}")
        assert text.split("(")[0].split("'")[-1].strip() in str(caught.value), text


def test_all_of_them_are_one_moment(engine, connection):
    query = (
        "SELECT now() = current_timestamp, now() = transaction_timestamp(), "
        "CAST(now() AS DATE) = current_date, CAST(now() AS TIMESTAMP) = localtimestamp"
    )
    assert connection.execute(query).fetchone() == (True,) * 4


def _values(connection: Any) -> set[Any]:
    query = "SELECT made FROM t UNION ALL SELECT made FROM s"
    return {made for (made,) in connection.execute(query).fetchall()}


def test_every_way_to_write_has_the_moment(engine, connection):
    (moment,) = connection.execute("SELECT now()").fetchone()
    run = connection.execute
    run("INSERT INTO t (id) VALUES (1), (2)")
    run("INSERT INTO t (id, made) VALUES (3, now()), (4, DEFAULT)")
    run("INSERT INTO t (id, note, made) VALUES (%s, %s, current_timestamp)", (5, "x"))
    connection.cursor().executemany(
        "INSERT INTO t (id, note) VALUES (%s, %s)", [(n, "m") for n in range(10, 130)]
    )
    run("INSERT INTO t (id) SELECT id + 1000 FROM t")
    run("INSERT INTO s SELECT id, now() FROM t WHERE id < 5")
    run("UPDATE t SET made = transaction_timestamp() WHERE id = 1")
    run("UPDATE t SET made = DEFAULT WHERE id IN (2, 3)")
    run("SAVEPOINT a")
    run("UPDATE s SET made = now()")
    run("ROLLBACK TO SAVEPOINT a")
    run(
        "INSERT INTO t (id) VALUES (1) "
        "ON CONFLICT (id) DO UPDATE SET note = 'c', made = now()"
    )
    run(
        "MERGE INTO s USING t ON s.id = t.id "
        "WHEN MATCHED THEN UPDATE SET made = now() "
        "WHEN NOT MATCHED THEN INSERT VALUES (t.id, CURRENT_TIMESTAMP)"
    )
    returned = run("UPDATE t SET note = 'r' WHERE id = 1 RETURNING now(), made")
    assert returned.fetchone() == (moment, moment)
    assert _values(connection) == {moment}
    assert run("SELECT count(*) FROM t WHERE made = now()").fetchone() == (250,)
    connection.commit()
    assert _values(connection) == {moment}
    connection.rollback()


def test_many_rows_of_one_query_have_the_moment(engine, connection):
    source = "generate_series(1, 3000)"
    if engine.name == "duckdb":
        source = "range(1, 3001)"
    connection.execute(f"INSERT INTO t (id) SELECT g.g FROM {source} AS g(g)")
    (moment,) = connection.execute("SELECT now()").fetchone()
    assert _values(connection) == {moment}


def test_views_and_prepared_statements(engine, connection):
    connection.execute("INSERT INTO s VALUES (1, NULL)")
    connection.commit()
    connection.execute("CREATE VIEW v AS SELECT id, now() AS seen FROM s")
    connection.commit()
    connection.execute("PREPARE p AS SELECT now()")
    found = [
        connection.execute("SELECT now()").fetchone()[0],
        connection.execute("SELECT seen FROM v").fetchone()[0],
        connection.execute("EXECUTE p").fetchone()[0],
        connection.execute("WITH w AS (SELECT now() AS n) SELECT n FROM w").fetchone()[
            0
        ],
        connection.execute("SELECT s.id, now() FROM s ORDER BY now()").fetchone()[1],
    ]
    assert len(set(found)) == 1
    connection.rollback()
    connection.execute("DROP VIEW v")
    connection.commit()


def test_names_of_results_that_read_a_table(engine, connection):
    connection.execute("INSERT INTO s VALUES (1, NULL)")
    query = (
        "SELECT now(), CURRENT_DATE, max(now()), (SELECT max(now()) FROM s), "
        "now() + INTERVAL '1 day' FROM s"
    )
    through = [c[0] for c in connection.execute(query).description]
    connection.commit()
    connection.close()
    native = engine.native()
    natively = [c[0] for c in native.execute(query).description]
    assert through == natively


@pytest.mark.parametrize("level", ["READ COMMITTED", "SNAPSHOT"])
def test_each_transaction_has_a_later_moment(engine, connection, level):
    if level == "READ COMMITTED":
        connection = engine.connect(isolation_level=level)
    moments = []
    for _ in range(3):
        with connection.transaction():
            some = [connection.execute("SELECT now()").fetchone()[0] for _ in range(2)]
            assert some[0] == some[1]
            moments += some[:1]
        (alone,) = connection.execute("SELECT now()").fetchone()
        connection.rollback()
        moments.append(alone)
    assert all(before < after for before, after in pairwise(moments))


def test_the_moment_is_that_of_begin(engine, connection):
    """Of the transaction's begin: not later than anything that it can have seen since."""
    other = engine.connect(autocommit=True)
    clock = "now()" if engine.name == "duckdb" else "clock_timestamp()"
    (before,) = other.execute(f"SELECT {clock}").fetchone()
    connection.execute("BEGIN")
    while True:
        (after,) = other.execute(f"SELECT {clock}").fetchone()
        if after - before > timedelta(milliseconds=300):
            break
    (moment,) = connection.execute("SELECT now()").fetchone()
    assert before <= moment < after - timedelta(milliseconds=100)
    connection.rollback()


def test_a_column_is_not_taken_for_the_moment(engine, connection):
    connection.execute(
        'CREATE TABLE n (id INTEGER PRIMARY KEY, "current_date" INTEGER)'
    )
    connection.execute("INSERT INTO n VALUES (1, 7)")
    query = 'SELECT "current_date", n."current_date" FROM n'
    assert connection.execute(query).fetchone() == (7, 7)
    if engine.name == "duckdb":
        with pytest.raises(tique.NotSupportedError, match="column of that name"):
            connection.execute("SELECT current_date FROM n")
    else:
        (day,) = connection.execute("SELECT current_date FROM n").fetchone()
        assert day != 7


def test_rows_that_are_copied_have_the_moment(engine, connection, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("1\n2\n")
    (moment,) = connection.execute("SELECT now()").fetchone()
    if engine.name == "duckdb":
        connection.execute(f"COPY t (id) FROM '{file}'")
    else:
        with connection.cursor().copy("COPY t (id) FROM STDIN") as copy:
            copy.write_row((1,))
            copy.write_row((2,))
    assert _values(connection) == {moment}


def test_columns_of_such_a_name(engine, connection):
    (moment,) = connection.execute("SELECT now()").fetchone()
    query = (
        'SELECT a.now, "current_date" FROM (SELECT 1 AS now, 2 AS "current_date") AS a'
    )
    assert connection.execute(query).fetchone() == (1, 2)
    query = "SELECT 'now()', 'current_date' AS current_date -- now()"
    assert connection.execute(query).fetchone() == ("now()", "current_date")
    assert connection.execute("SELECT now ( )").fetchone() == (moment,)
