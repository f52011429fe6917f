"""PREPARE, EXECUTE and DEALLOCATE: planned by tique as the statements themselves."""

from __future__ import annotations

from decimal import Decimal

import pytest

import tique
from tests.portable import numbers

pytestmark = pytest.mark.fresh_tables
NAMED = pytest.mark.written_for(["duckdb", "postgresql"], reason="they have names")
POSTGRESQL = pytest.mark.written_for(["postgresql"], reason="its PREPARE has types")
DUCKDB = pytest.mark.written_for(["duckdb"], reason="its PREPARE is lenient")
MONETDB = pytest.mark.written_for(
    ["monetdb"], reason="it shows the number to no driver"
)


@pytest.fixture
def connection(engine):
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, price DECIMAL(8,2))"
    )
    connection.execute("INSERT INTO t VALUES (1, 'one', 1.5), (2, 'two', 2.5)")
    connection.commit()
    return connection


@MONETDB
def test_monetdbs_numbered_statements_are_refused(connection):
    for sql in ("PREPARE SELECT * FROM t WHERE id = ?", "EXEC 1(1)", "EXECUTE 1(1)"):
        with pytest.raises(tique.NotSupportedError, match=sql.split()[0]):
            connection.execute(sql)


def content(connection):
    return connection.execute("SELECT id, name, price FROM t ORDER BY id").fetchall()


@NAMED
def test_a_query_sees_the_snapshot_of_the_transaction_that_executes_it(
    engine, connection
):
    """P1."""
    connection.execute("PREPARE p AS SELECT name FROM t WHERE id = $1")
    assert connection.execute("EXECUTE p(1)").fetchall() == [("one",)]
    other = engine.connect(checkpoint="manual")
    other.execute("UPDATE t SET name = 'new' WHERE id = 1")
    other.commit()
    assert connection.execute("EXECUTE p(1)").fetchall() == [("one",)]
    connection.commit()
    assert connection.execute("EXECUTE p(1)").fetchall() == [("new",)]
    connection.checkpoint()
    assert connection.execute("EXECUTE p(1)").fetchall() == [("new",)]
    assert connection.execute("EXECUTE p(3)").fetchall() == []


@NAMED
def test_changes_are_the_transactions(engine, connection):
    """P5, P8."""
    connection.execute("PREPARE i AS INSERT INTO t VALUES ($1, $2, $3)")
    connection.execute("PREPARE u AS UPDATE t SET name = $2 WHERE id = $1")
    connection.execute("PREPARE d AS DELETE FROM t WHERE price > $1")
    assert connection.execute("EXECUTE i(3, 'it''s', 3.25)").rowcount == 1
    assert connection.execute("EXECUTE u(1, NULL)").rowcount == 1
    assert connection.execute("EXECUTE d(3)").rowcount == 1
    assert content(connection) == [
        (1, None, Decimal("1.50")),
        (2, "two", Decimal("2.50")),
    ]
    connection.rollback()
    assert connection.execute("EXECUTE u(2, 'zwei')").rowcount == 1
    connection.commit()
    assert content(engine.connect()) == [
        (1, "one", Decimal("1.50")),
        (2, "zwei", Decimal("2.50")),
    ]


@NAMED
def test_one_that_fails_leaves_no_trace(connection):
    """P8."""
    connection.execute("PREPARE i AS INSERT INTO t VALUES ($1, $2, 0), ($1 + 1, $2, 0)")
    with pytest.raises(tique.IntegrityError):
        connection.execute("EXECUTE i(0, 'x')")
    assert [row[0] for row in content(connection)] == [1, 2]
    connection.execute("EXECUTE i(10, 'x')")
    assert [row[0] for row in content(connection)] == [1, 2, 10, 11]


@NAMED
def test_placeholders_may_come_again_and_in_any_order(connection):
    connection.execute(
        "PREPARE p AS SELECT id FROM t WHERE name = $2 OR id = $1 OR name = $2 "
        "ORDER BY id"
    )
    assert connection.execute("EXECUTE p(1, 'two')").fetchall() == [(1,), (2,)]
    assert connection.execute("EXECUTE p(7, 'two')").fetchall() == [(2,)]


@NAMED
def test_values_are_expressions_and_parameters(connection):
    connection.execute("PREPARE p AS SELECT name FROM t WHERE id = $1")
    assert connection.execute("EXECUTE p(3 - 1)").fetchall() == [("two",)]
    assert connection.execute("EXECUTE p(%s)", (2,)).fetchall() == [("two",)]
    assert connection.execute("EXECUTE p((1))").fetchall() == [("one",)]
    assert connection.execute("EXECUTE p(NULL)").fetchall() == []
    assert connection.execute("execute P ( 1 ) ;").fetchall() == [("one",)]


@NAMED
def test_names_are_the_connections_own(engine, connection):
    other = engine.connect()
    connection.execute("PREPARE p AS SELECT 1")
    connection.rollback()
    assert connection.execute("EXECUTE p").fetchall() == [(1,)]
    with pytest.raises(tique.ProgrammingError, match='"p" does not exist') as caught:
        other.execute("EXECUTE p")
    assert caught.value.sqlstate == "26000"
    other.execute("PREPARE p AS SELECT 2")
    assert other.execute("EXECUTE p").fetchall() == [(2,)]
    connection.execute("DEALLOCATE p")
    assert other.execute("EXECUTE p").fetchall() == [(2,)]
    with pytest.raises(tique.ProgrammingError, match='"p" does not exist'):
        connection.execute("EXECUTE p")


@NAMED
def test_the_number_of_values_has_to_be_right(connection):
    connection.execute("PREPARE p AS SELECT name FROM t WHERE id = $1")
    for values in ("", "()", "(1, 2)"):
        with pytest.raises(tique.ProgrammingError, match="1 parameter, but") as caught:
            connection.execute(f"EXECUTE p{values}")
        assert caught.value.sqlstate == "42601"
    assert connection.execute("EXECUTE p(1)").fetchall() == [("one",)]


@NAMED
@pytest.mark.parametrize("autocommit", [True, False])
def test_an_error_ends_no_transaction_of_its_own(connection, autocommit):
    connection.autocommit = autocommit
    connection.execute("PREPARE p AS SELECT name FROM t WHERE id = $1")
    for wrong in ("EXECUTE p", "EXECUTE q(1)", "EXECUTE p(nonsense)"):
        with pytest.raises(tique.Error):
            connection.execute(wrong)
        assert not (autocommit and connection.in_transaction)
    assert connection.execute("EXECUTE p(1)").fetchall() == [("one",)]
    assert not (autocommit and connection.in_transaction)


@NAMED
def test_a_table_may_change_in_between(connection):
    connection.execute("CREATE TABLE u (a INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO u VALUES (1)")
    connection.commit()
    connection.execute("PREPARE p AS SELECT * FROM u WHERE a = $1")
    assert connection.execute("EXECUTE p(1)").fetchall() == [(1,)]
    connection.commit()
    connection.execute("DROP TABLE u")
    with pytest.raises(tique.ProgrammingError, match="u"):
        connection.execute("EXECUTE p(1)")
    connection.rollback()
    connection.execute("CREATE TABLE u (b TEXT, a INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO u VALUES ('x', 1)")
    connection.commit()
    assert connection.execute("EXECUTE p(1)").fetchall() == [("x", 1)]


@NAMED
def test_large_changes_are_staged(connection):
    connection.execute(
        f"PREPARE p AS INSERT INTO t SELECT number + $1, 'bulk', 0 FROM {numbers(2100)}"
    )
    assert connection.execute("EXECUTE p(1000)").rowcount == 2100
    connection.execute("PREPARE u AS UPDATE t SET name = $1 WHERE id >= 1000")
    assert connection.execute("EXECUTE u('changed')").rowcount == 2100
    connection.commit()
    found = connection.execute("SELECT count(*) FROM t WHERE name = 'changed'")
    assert found.fetchone() == (2100,)


@NAMED
def test_a_statement_in_memory_costs_no_engine_statement(connection):
    connection.execute("PREPARE p AS SELECT name FROM t WHERE id = $1")
    connection.execute("EXECUTE p(1)").fetchall()
    before = connection.info.engine_statements
    for _ in range(10):
        assert connection.execute("EXECUTE p(1)").fetchall() == [("one",)]
    assert connection.info.engine_statements == before


@NAMED
@pytest.mark.parametrize(
    ("sql", "error", "message"),
    [
        ("PREPARE p AS SELECT * FROM tique.log", tique.NotSupportedError, "tique"),
        ("PREPARE p AS DROP TABLE t", tique.NotSupportedError, "PREPARE of DROP"),
        ("PREPARE p AS BEGIN", tique.NotSupportedError, "PREPARE of BEGIN"),
        ("PREPARE p AS SELECT 1; DROP TABLE t", tique.NotSupportedError, "second"),
        ("PREPARE p AS SELECT * FROM missing", tique.ProgrammingError, "missing"),
        ("PREPARE p AS", tique.ProgrammingError, "AS"),
        ("EXECUTE q((SELECT max(id) FROM t))", tique.NotSupportedError, "subquery"),
        ("EXECUTE q(%s || 'x')", tique.NotSupportedError, "placeholder"),
        ("EXECUTE q(1) SELECT", tique.Error, "SELECT"),
    ],
)
def test_what_is_refused(connection, sql, error, message):
    """P10, P11."""
    connection.execute("PREPARE q AS SELECT name FROM t WHERE name = $1")
    with pytest.raises(error, match=message):
        connection.execute(sql, ("x",) if "%s" in sql else None)
    assert len(content(connection)) == 2


@NAMED
def test_many_rows_at_once_go_by_the_statement_itself(connection):
    connection.execute("PREPARE p AS INSERT INTO t VALUES ($1, 'x', 0)")
    with pytest.raises(tique.ProgrammingError, match="executemany"):
        connection.cursor().executemany("EXECUTE p(%s)", [(5,), (6,)])
    assert len(content(connection)) == 2


@NAMED
@pytest.mark.parametrize("hostile", ["'; DROP TABLE t; --", "$1", "\\' OR 1=1", '"'])
def test_values_are_no_sql(connection, hostile):
    """P11."""
    connection.execute("PREPARE i AS INSERT INTO t VALUES ($1, $2, 0)")
    quoted = hostile.replace("'", "''")
    connection.execute(f"EXECUTE i(7, '{quoted}')")
    connection.execute("EXECUTE i(8, %s)", (hostile,))
    assert [row[1] for row in content(connection)[2:]] == [hostile, hostile]


@POSTGRESQL
def test_parameters_have_the_types_that_are_declared_or_inferred(connection):
    connection.execute(
        "PREPARE p (bigint, real) AS SELECT pg_typeof($1), pg_typeof($2)"
    )
    assert connection.execute("EXECUTE p(1, 0.1)").fetchall() == [("bigint", "real")]
    connection.execute("PREPARE s(int, int) AS SELECT $1 + $2")
    assert connection.execute("EXECUTE s(30000, 30000)").fetchall() == [(60000,)]
    connection.execute("PREPARE j(jsonb) AS SELECT $1 ->> 'a'")
    assert connection.execute("""EXECUTE j('{"a": 1.50}')""").fetchall() == [("1.50",)]
    connection.execute("PREPARE d AS SELECT id FROM t WHERE id = $1")
    assert connection.execute("EXECUTE d('2')").fetchall() == [(2,)]
    with pytest.raises(tique.DataError):
        connection.execute("EXECUTE d('two')")
    with pytest.raises(tique.DataError):
        connection.execute("EXECUTE d(3000000000)")
    connection.execute("PREPARE n AS SELECT id FROM t WHERE name = $1")
    assert connection.execute("EXECUTE n('two')").fetchall() == [(2,)]


@POSTGRESQL
def test_names_are_taken_once(connection):
    connection.execute("PREPARE p AS SELECT 1")
    with pytest.raises(tique.ProgrammingError) as caught:
        connection.execute("PREPARE p AS SELECT 2")
    assert caught.value.sqlstate == "42P05"
    with pytest.raises(tique.ProgrammingError) as caught:
        connection.execute("DEALLOCATE q")
    assert caught.value.sqlstate == "26000"
    connection.execute('PREPARE "P" AS SELECT 2')
    assert connection.execute('EXECUTE "P"').fetchall() == [(2,)]
    assert connection.execute("EXECUTE p").fetchall() == [(1,)]
    connection.execute("DEALLOCATE ALL")
    with pytest.raises(tique.ProgrammingError, match="does not exist"):
        connection.execute("EXECUTE p")
    with pytest.raises(tique.ProgrammingError) as caught:
        connection.execute("PREPARE bad AS SELECT nothing FROM t")
    assert caught.value.sqlstate == "42703"
    assert connection.execute("SELECT 1").fetchall() == [(1,)]


@DUCKDB
def test_duckdb_prepares_again_and_has_question_marks(connection):
    connection.execute("PREPARE p AS SELECT 1")
    connection.execute("PREPARE P AS SELECT name FROM t WHERE id = ? AND price > ?")
    assert connection.execute("EXECUTE p(2, 1.5)").fetchall() == [("two",)]
    connection.execute("DEALLOCATE missing")
    with pytest.raises(tique.ProgrammingError):
        connection.execute("DEALLOCATE ALL")
    with pytest.raises(tique.NotSupportedError, match="CAST"):
        connection.execute("EXECUTE p([1], 2)")
    with pytest.raises(tique.NotSupportedError, match="types"):
        connection.execute("PREPARE p (INTEGER) AS SELECT $1")
