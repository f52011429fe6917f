"""Wide queries that read storage in an uncommitted fold (P1, P4, P7, P10).

The argument is in :mod:`tique.checkpoint.uncommitted`.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import pytest

import tique
from tests.portable import numbers
from tique.checkpoint import uncommitted

pytestmark = pytest.mark.every_engine

ONLY_DUCKDB = pytest.mark.written_for(["duckdb"], reason="on servers none serves it")

LONG = "SELECT count(DISTINCT a.n * b.n + c.n) FROM t a, t b, t c"
"""A billion rows: it takes seconds."""

RUNS_LONG = pytest.mark.written_for(
    ["duckdb", "postgresql"], reason="MonetDB makes all rows of the join in memory"
)

SUM = "SELECT count(*), sum(n + 0) FROM t"
"""Sums of plain columns are answered from rows in memory."""


@pytest.fixture
def table(engine):
    """A thousand rows in storage."""
    connection = engine.connect(checkpoint="manual", uncommitted_fold_rows=0)
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, s VARCHAR(9))"
    )
    connection.execute(f"INSERT INTO t SELECT number, number, 'a' FROM {numbers(1000)}")
    connection.commit()
    connection.checkpoint()
    yield connection
    with suppress(tique.Error):
        connection.rollback()


def folds(connection):
    return connection._database.uncommitted


def one(connection, query, parameters=None):
    """The one row of a query, which must have been read there."""
    before = folds(connection).queries
    rows = connection.execute(query, parameters).fetchall()
    assert folds(connection).queries == before + 1
    (row,) = rows
    return row


def elsewhere(connection, query, parameters=None):
    """All rows of a query, which must not have been read there."""
    before = folds(connection).queries
    rows = connection.execute(query, parameters).fetchall()
    assert folds(connection).queries == before
    return rows


def add(connection, amount, *keys):
    for key in keys:
        connection.execute("UPDATE t SET n = n + %s WHERE id = %s", [amount, key])
    connection.commit()


def test_versions_are_brought_there_once(engine, table):
    add(table, 1000, 1, 2, 3)
    assert one(table, SUM) == (1000, 499_500 + 3000)
    written = folds(table).versions
    assert written == 3
    assert one(table, SUM) == (1000, 499_500 + 3000)
    table.commit()
    assert folds(table).versions == written
    add(table, 1, 3)
    assert one(table, SUM) == (1000, 499_500 + 3001)
    assert folds(table).versions == written + 1


def test_it_begins_anew_when_it_has_written_much(engine, table, monkeypatch):
    """Beside an old snapshot, which no fold passes, its memory is bounded."""
    monkeypatch.setattr(uncommitted, "_MOST_WRITTEN", 5)
    begun = []
    kind = type(table._execution.session)
    begin = kind.begin_uncommitted_fold
    monkeypatch.setattr(
        kind, "begin_uncommitted_fold", lambda self: (begun.append(self), begin(self))
    )
    for number in range(20):
        add(table, 1, 7)
        assert one(table, SUM) == (1000, 499_501 + number)
    assert 2 <= len(begun) <= 5


def test_it_waits_until_the_writers_rest(engine, monkeypatch):
    """Beside them its statements cost more than they gain."""
    monkeypatch.setattr(uncommitted, "_QUIET", 0.2)
    options = {"checkpoint": "manual", "uncommitted_fold_rows": 10}
    with engine.connect(**options) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
        connection.execute(f"INSERT INTO t SELECT number, number FROM {numbers(1000)}")
        connection.commit()
        connection.checkpoint()
        add(connection, 1, 1)
        assert elsewhere(connection, SUM) == [(1000, 499_501)]
        time.sleep(0.25)
        assert one(connection, SUM) == (1000, 499_501)
        add(connection, 1, 1)
        assert elsewhere(connection, SUM) == [(1000, 499_502)]


def test_without_recent_versions_there_is_none(engine, table):
    assert elsewhere(table, SUM) == [(1000, 499_500)]


def test_rows_come_and_go(engine, table):
    for query, count in (
        ("DELETE FROM t WHERE id < 10", 990),
        (f"INSERT INTO t SELECT number, 7, 'new' FROM {numbers(5)}", 995),
        ("DELETE FROM t WHERE id = 3", 994),
        ("INSERT INTO t VALUES (3, 8, 'again'), (5000, 9, 'new')", 996),
        ("UPDATE t SET s = 'b', n = 0 WHERE id IN (3, 20, 5000)", 996),
        ("DELETE FROM t WHERE id = 5000", 995),
        ("UPDATE t SET id = id + 10000 WHERE id < 3", 995),
    ):
        table.execute(query)
        table.commit()
        found = table.execute(SUM).fetchall()
        assert found[0][0] == count, query
    rows = table.execute(
        "SELECT * FROM t WHERE n < 9 OR s <> 'a' ORDER BY id"
    ).fetchall()
    assert rows == [
        *[(3, 0, "b"), (4, 7, "new"), (20, 0, "b")],
        *[(i + 10000, 7, "new") for i in range(3)],
    ]
    assert folds(table).queries >= 7
    table.checkpoint()
    assert table.execute(SUM).fetchall()[0][0] == 995


def test_an_older_snapshot_sees_none_of_it(engine, table):
    add(table, 1, 1)
    with engine.connect(checkpoint="manual", uncommitted_fold_rows=0) as older:
        assert one(older, SUM) == (1000, 499_501)
        add(table, 1, 2)
        assert one(table, SUM) == (1000, 499_502)
        assert elsewhere(older, SUM) == [(1000, 499_501)]
        older.commit()
        assert one(older, SUM) == (1000, 499_502)


def test_an_older_snapshot_of_a_table_that_is_as_it_was(engine, table):
    table.execute("CREATE TABLE u (id INTEGER PRIMARY KEY)")
    table.execute("INSERT INTO u VALUES (1)")
    add(table, 1, 1)
    with engine.connect(checkpoint="manual", uncommitted_fold_rows=0) as older:
        assert one(older, SUM) == (1000, 499_501)
        table.execute("INSERT INTO u VALUES (2)")
        table.commit()
        assert one(table, "SELECT count(*) FROM u, t") == (2000,)
        assert one(older, SUM) == (1000, 499_501)
        assert elsewhere(older, "SELECT count(*) FROM u, t") == [(1000,)]


def test_own_writes_are_seen(engine, table):
    add(table, 1, 1)
    one(table, SUM)
    table.execute("UPDATE t SET n = 0")
    assert elsewhere(table, SUM) == [(1000, 0)]
    table.rollback()
    assert one(table, SUM) == (1000, 499_501)


def test_a_fold_ends_it(engine, table):
    add(table, 1, 1)
    one(table, SUM)
    assert table.checkpoint() == 1
    assert elsewhere(table, SUM) == [(1000, 499_501)]
    add(table, 1, 1)
    assert one(table, SUM) == (1000, 499_502)


def test_a_fold_of_another_table_ends_it(engine, table):
    """Its engine transaction sees storage as it was when that began."""
    table.execute("CREATE TABLE u (id INTEGER PRIMARY KEY)")
    add(table, 1, 1)
    one(table, SUM)
    table.execute("INSERT INTO u VALUES (1)")
    table.commit()
    table.checkpoint()
    add(table, 1, 1)
    assert one(table, "SELECT max(n), (SELECT count(*) FROM u) FROM t") == (999, 1)


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE t ADD COLUMN more INTEGER DEFAULT 5",
        "CREATE INDEX of_n ON t (n)",
        "ALTER TABLE t RENAME COLUMN s TO text",
    ],
)
def test_ddl_ends_it(engine, table, change):
    add(table, 1, 1)
    one(table, SUM)
    table.execute(change)
    assert table.execute(SUM).fetchall() == [(1000, 499_501)]
    add(table, 1, 1)
    assert one(table, SUM) == (1000, 499_502)


def test_a_transaction_with_ddl_keeps_it_away(engine, table):
    add(table, 1, 1)
    one(table, SUM)
    with engine.connect(checkpoint="manual", uncommitted_fold_rows=0) as other:
        other.execute("BEGIN")
        other.execute("CREATE TABLE u (id INTEGER PRIMARY KEY)")
        assert elsewhere(table, SUM) == [(1000, 499_501)]
        other.execute("ROLLBACK")
    add(table, 1, 1)
    assert one(table, SUM) == (1000, 499_502)


def test_nothing_of_it_is_in_storage(engine, table):
    add(table, 1, 1)
    one(table, SUM)
    session = table._database.engine.session()
    found = session.execute(f"SELECT sum(n) FROM {engine.schema}.t").fetch_all()
    assert found == [(499_500,)]
    session.close()
    table.close()
    assert engine.native().execute(SUM).fetchall() == [(1000, 499_500)]


@ONLY_DUCKDB
def test_it_is_gone_after_the_last_connection(engine, table):
    add(table, 1, 1)
    one(table, SUM)
    table.close()
    with engine.connect(checkpoint="manual", uncommitted_fold_rows=0) as connection:
        # What recovery has brought back is in the cache table only.
        assert elsewhere(connection, SUM) == [(1000, 499_501)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*), now() FROM t",
        "SELECT count(*), current_timestamp FROM t",
    ],
)
def test_clocks_are_asked_elsewhere(engine, table, query):
    add(table, 1, 1)
    elsewhere(table, query)


@pytest.mark.written_for(["postgresql"], reason="it reads these strings as the moment")
@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM t WHERE ' Today '::date > DATE '2020-01-01'",
        "SELECT count(*) FROM t WHERE 'a' <> s OR 'yesterday' < localtimestamp",
        "SELECT max('{now}'::timestamp[]) FROM t",
        "SELECT count(*) FROM t WHERE CASE WHEN n < 0 THEN s::date END IS NULL",
        r"SELECT count(*) FROM t WHERE E'n\157w' > DATE '2020-01-01'",
        "SELECT count(*) FROM t WHERE DATE '2020-01-01' < 'no'\n'w'",
        "SELECT count(*) FROM t WHERE $$now$$ > DATE '2020-01-01'",
        "SELECT count(*), age(TIMESTAMP '2020-01-01') FROM t",
    ],
)
def test_moments_are_asked_elsewhere(engine, table, query):
    add(table, 1, 1)
    elsewhere(table, query)


@pytest.mark.written_for(["postgresql"], reason="it reads these strings as the moment")
def test_a_parameter_that_is_a_moment(engine, table):
    add(table, 1, 1)
    query = "SELECT count(*) FROM t WHERE DATE '2020-01-01' < %s"
    elsewhere(table, query, ["now"])
    one(table, query, ["2021-01-01"])


@ONLY_DUCKDB
@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*), random() FROM t",
        "SELECT count(*), current_setting('threads') FROM t",
        "SELECT count(*) FROM t, duckdb_tables() AS d",
        "SELECT count(*) FROM t TABLESAMPLE 10 ROWS",
        'SELECT count(*), "now"() FROM t',
    ],
)
def test_what_is_not_of_rows_is_asked_elsewhere(engine, table, query):
    add(table, 1, 1)
    elsewhere(table, query)


def test_settings_of_the_session_count(engine, table):
    add(table, 1, 1)
    one(table, SUM)
    zone = (
        "INTERVAL '+09:00' HOUR TO MINUTE"
        if engine.name == "monetdb"
        else "'Asia/Tokyo'"
    )
    table.execute(f"SET TIME ZONE {zone}")
    elsewhere(table, SUM)


def test_views_and_lists_are_read_there(engine, table):
    table.execute("CREATE VIEW v AS SELECT id, n * 2 AS m FROM t")
    add(table, 1, 1)
    assert one(table, "WITH w AS (SELECT m FROM v) SELECT sum(m) FROM w") == (999_002,)


def test_parameters_and_names_of_results(engine, table):
    add(table, 1, 1)
    cursor = table.execute("SELECT (SELECT max(id) FROM t), sum(n) + %s FROM t", [1])
    names = [column[0] for column in cursor.description]
    assert cursor.fetchall() == [(999, 499_502)]
    assert folds(table).queries == 1
    table.checkpoint()
    plain = table.execute("SELECT (SELECT max(id) FROM t), sum(n) + %s FROM t", [1])
    assert [column[0] for column in plain.description] == names


def test_a_large_result_is_read_elsewhere(engine, table, monkeypatch):
    monkeypatch.setattr(uncommitted, "_MOST_RESULTS", 999)
    add(table, 1, 1)
    assert len(elsewhere(table, "SELECT * FROM t")) == 1000
    assert len(table.execute("SELECT * FROM t WHERE id > 0").fetchall()) == 999
    assert folds(table).queries == 1
    table.commit()
    written = folds(table).versions
    add(table, 1, 1)
    # It is not tried again.
    assert len(elsewhere(table, "SELECT * FROM t")) == 1000
    assert folds(table).versions == written


def test_a_result_stays_when_it_ends(engine, table):
    add(table, 1, 1)
    cursor = table.execute("SELECT id FROM t ORDER BY id")
    assert cursor.fetchone() == (0,)
    table.checkpoint()
    assert len(cursor.fetchall()) == 999


def test_arrow(engine, table):
    add(table, 1, 1)
    found = table.execute("SELECT id, n, s FROM t ORDER BY id").fetch_arrow_table()
    assert folds(table).queries == 1
    table.checkpoint()
    plain = table.execute("SELECT id, n, s FROM t ORDER BY id").fetch_arrow_table()
    assert folds(table).queries == 1
    assert found.equals(plain)


VALUES = {
    "BOOLEAN": "true",
    "TINYINT": "3",
    "UBIGINT": "7",
    "HUGEINT": "-9",
    "UHUGEINT": "9",
    "FLOAT": "1.5",
    "DOUBLE": "1.5",
    "DECIMAL(9, 2)": "1.5",
    "DECIMAL(38, 5)": "1.5",
    "VARCHAR": "'a'",
    "BLOB": "'ab'::BLOB",
    "UUID": "'6d3c4f0a-1f0e-4c5e-8f7e-3b5f0d4a6c21'",
    "DATE": "DATE '2026-01-31'",
    "TIME": "TIME '24:00:00'",
    "TIMETZ": "TIMETZ '01:02:03+02'",
    "TIMESTAMP": "TIMESTAMP '2026-01-31 01:02:03.000004'",
    "TIMESTAMP_S": "TIMESTAMP_S '2026-01-31 01:02:03'",
    "TIMESTAMP_MS": "TIMESTAMP_MS '2026-01-31 01:02:03.004'",
    "TIMESTAMP_NS": "TIMESTAMP_NS '2026-01-31 01:02:03.000004005'",
    "TIMESTAMPTZ": "TIMESTAMPTZ '2026-01-31 01:02:03+02'",
    "INTERVAL": "INTERVAL '1 month 3 days'",
    "BIT": "'101'::BIT",
    "INTEGER[]": "[1, NULL]",
    "STRUCT(x INTEGER)": "{'x': 1}",
    "MAP(VARCHAR, INTEGER)": "MAP {'a': 1}",
    "ENUM('x', 'y')": "'x'",
    "JSON": "'{}'",
}
HELD = 16
"""Of these types results are held in memory."""


@ONLY_DUCKDB
def test_arrow_has_the_same_types(engine, table):
    """Also of no rows, and of NULL."""
    held = 0
    for type_name, value in VALUES.items():
        add(table, 1, 1)
        for condition in ("id < 5", "id < 5 AND id > 2", "id < 0"):
            before = folds(table).queries
            query = (
                f"SELECT CAST(CASE WHEN id <= 2 THEN {value} END AS {type_name}) AS v "
                f"FROM t WHERE {condition} ORDER BY id"
            )
            found = table.execute(query).fetch_arrow_table()
            rows = table.execute(query).fetchall()
            held += folds(table).queries > before
            table.execute("UPDATE t SET n = n WHERE id = 999")
            plain = table.execute(query).fetch_arrow_table()
            assert table.execute(query).fetchall() == rows
            table.rollback()
            assert found.equals(plain), (type_name, condition, found, plain)
    assert held == 3 * HELD


def test_a_named_cursor(engine, table):
    add(table, 1, 1)
    cursor = table.cursor("rows")
    cursor.execute("SELECT id, n FROM t ORDER BY id")
    assert folds(table).queries == 1
    assert cursor.fetchone() == (0, 0)
    table.commit()
    add(table, 1, 2)
    table.checkpoint()
    rows = cursor.fetchall()
    assert rows[:2] == [(1, 2), (2, 2)]
    assert len(rows) == 999


def test_a_large_result_of_a_named_cursor_waits_in_its_session(
    engine, table, monkeypatch
):
    monkeypatch.setattr(uncommitted, "_MOST_RESULTS", 999)
    add(table, 1, 1)
    with table.cursor("rows") as cursor:
        for _ in range(2):
            cursor.execute("SELECT id, n FROM t ORDER BY id")
            assert cursor.fetchone() == (0, 0)
            # No query holds the uncommitted fold up, nor a fold.
            assert folds(table)._query is None
            assert one(table, SUM) == (1000, 499_501)
            assert len(cursor.fetchall()) == 999
    assert table.checkpoint() == 1


def test_a_named_cursor_with_own_writes(engine, table):
    add(table, 1, 1)
    table.execute("UPDATE t SET n = 0")
    with table.cursor("rows") as cursor:
        cursor.execute(SUM)
        assert cursor.fetchall() == [(1000, 0)]
    assert folds(table).queries == 0


@RUNS_LONG
def test_a_named_cursor_is_cancelled(engine, table):
    add(table, 1, 1)
    with engine.connect(checkpoint="manual", uncommitted_fold_rows=0) as other:
        asking = Asking(other, LONG, "rows")
        asking.expect_there()
        asking.stop()
        assert asking.error.sqlstate == "57014"


def test_a_stream(engine, table):
    add(table, 1, 1)
    stream = table.cursor().stream("SELECT id FROM t ORDER BY id")
    assert next(stream) == (0,)
    assert folds(table).queries == 1
    table.checkpoint()
    assert len(list(stream)) == 999


def test_an_error_is_the_engines(engine, table):
    add(table, 1, 1)
    one(table, SUM)
    bad = "SELECT sum(CAST(s AS INTEGER)) FROM t"
    with pytest.raises(tique.DataError):
        table.execute(bad).fetchall()
    table.rollback()
    assert one(table, SUM) == (1000, 499_501)


def test_unique_values_change_places(engine, table):
    table.execute("CREATE TABLE u (id INTEGER PRIMARY KEY, k INTEGER UNIQUE)")
    table.execute("INSERT INTO u VALUES (1, 1), (2, 2), (3, 3)")
    table.commit()
    table.checkpoint()
    query = "SELECT id, k + 0 FROM u ORDER BY id"
    for swap in (
        "UPDATE u SET k = 3 - k WHERE id < 3",
        "UPDATE u SET k = 4 - k WHERE k <> 2",
        "DELETE FROM u WHERE k = 2",
        "INSERT INTO u VALUES (7, 2)",
    ):
        table.execute(swap)
        table.commit()
        session = table.execute(query).fetchall()
        table.checkpoint()
        assert table.execute(query).fetchall() == session


def test_a_table_that_it_cannot_write_is_left_alone(engine, table, monkeypatch):
    def refuse(*arguments):
        raise uncommitted.EngineError(uncommitted.ErrorKind.INTEGRITY, "no", "23000")

    monkeypatch.setattr(type(table._database.engine), "overwrite", refuse)
    add(table, 1, 1)
    assert elsewhere(table, SUM) == [(1000, 499_501)]
    monkeypatch.undo()
    assert elsewhere(table, SUM) == [(1000, 499_501)]


class Asking(threading.Thread):
    """A query in another thread."""

    def __init__(self, connection, query, name=None):
        super().__init__(daemon=True)
        self.cursor = connection.cursor() if name is None else connection.cursor(name)
        self.connection, self.query = connection, query
        self.rows = self.error = None
        self.start()

    def run(self):
        try:
            self.rows = self.cursor.execute(self.query).fetchall()
        except tique.Error as error:
            self.error = error

    def stop(self):
        """Cancel it, whichever form it is in by now."""
        while self.is_alive():
            self.connection.cancel()
            self.join(0.1)

    def expect_there(self):
        """Wait until it is under way there."""
        while folds(self.connection)._query is None and self.is_alive():
            time.sleep(0.001)
        time.sleep(0.05)
        assert self.is_alive()


@RUNS_LONG
def test_a_query_is_cancelled(engine, table):
    add(table, 1, 1)
    with engine.connect(checkpoint="manual", uncommitted_fold_rows=0) as other:
        asking = Asking(other, LONG)
        asking.expect_there()
        asking.stop()
        assert isinstance(asking.error, tique.OperationalError)
        assert asking.error.sqlstate == "57014"
        other.rollback()
        assert one(other, SUM) == (1000, 499_501)


@RUNS_LONG
def test_another_query_does_not_wait(engine, table):
    add(table, 1, 1)
    with engine.connect(checkpoint="manual", uncommitted_fold_rows=0) as other:
        asking = Asking(other, LONG)
        asking.expect_there()
        assert elsewhere(table, SUM) == [(1000, 499_501)]
        asking.stop()


@RUNS_LONG
def test_a_fold_does_not_wait_for_long(engine, table, monkeypatch):
    monkeypatch.setattr(uncommitted, "_PATIENCE", 0.01)
    add(table, 1, 1)
    with engine.connect(checkpoint="manual", uncommitted_fold_rows=0) as other:
        asking = Asking(other, LONG)
        asking.expect_there()
        assert table.checkpoint() == 1
        # It goes on in its other form, and the application does not learn of it.
        assert folds(table).queries == 0
        asking.stop()
        assert asking.error is not None


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", ["auto", "manual"])
def test_sums_hold_beside_writers(engine, checkpoint):
    """Each transaction moves an amount: every snapshot has the same sum."""
    options = {
        "checkpoint": checkpoint,
        "checkpoint_rows": 50,
        "checkpoint_age": 0.2,
        "uncommitted_fold_rows": 0,
    }
    with engine.connect(**options) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
        connection.execute(f"INSERT INTO t SELECT number, 100 FROM {numbers(100)}")
        connection.commit()
        connection.checkpoint()
        until = time.monotonic() + 2
        failures = []

        def move(first):
            with engine_connection(engine, options) as own:
                number = first
                while time.monotonic() < until:
                    number += 1
                    with suppress(tique.SerializationError):
                        add_one = "UPDATE t SET n = n + %s WHERE id = %s"
                        own.execute(add_one, [1, number % 100])
                        own.execute(add_one, [-1, (number * 7 + 1) % 100])
                        own.commit()
                        continue
                    own.rollback()

        def look():
            with engine_connection(engine, options) as own:
                while time.monotonic() < until:
                    row = own.execute(SUM).fetchone()
                    if row != (100, 10_000):
                        failures.append(row)
                    own.commit()

        threads = [threading.Thread(target=move, args=[n * 31]) for n in range(3)]
        threads += [threading.Thread(target=look) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert folds(connection).queries > 0


def engine_connection(engine, options):
    return tique.connect(engine.url, **options)


def test_an_interruption_leaves_nothing_of_it(engine, table, monkeypatch):
    kind = type(table._database.engine)
    overwrite = kind.overwrite

    def interrupted(*arguments):
        overwrite(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(kind, "overwrite", interrupted)
    add(table, 1, 1)
    with pytest.raises(KeyboardInterrupt):
        table.execute(SUM)
    monkeypatch.undo()
    table.rollback()
    assert one(table, SUM) == (1000, 499_501)
    assert table.checkpoint() == 1
    assert elsewhere(table, SUM) == [(1000, 499_501)]


@RUNS_LONG
def test_a_query_that_does_not_stop_is_given_up(engine, table, monkeypatch):
    monkeypatch.setattr(uncommitted, "_PATIENCE", 0.01)
    monkeypatch.setattr(uncommitted, "_GIVE_UP", 0.2)
    session = type(table._execution.session)
    monkeypatch.setattr(session, "interrupt", lambda _: None)
    add(table, 1, 1)
    with engine.connect(checkpoint="manual", uncommitted_fold_rows=0) as other:
        asking = Asking(other, LONG)
        hung = folds(table)._session
        try:
            asking.expect_there()
            hung = folds(table)._session
            with folds(table).suspended():
                assert folds(table)._session is None
            assert asking.is_alive()
            assert elsewhere(table, SUM) == [(1000, 499_501)]
        finally:
            # Else the connection would wait for it for ever.
            monkeypatch.undo()
            while asking.is_alive():
                with suppress(Exception):
                    # The thread closes it when the query is over.
                    hung.interrupt()
                other.cancel()
                asking.join(0.1)
        assert asking.error.sqlstate == "57014"


@pytest.mark.written_for(["postgresql"], reason="it keeps undone rows until a vacuum")
def test_what_it_leaves_in_tables_is_bounded(engine, table, monkeypatch):
    add(table, 1, *range(150))
    one(table, SUM)
    with folds(table).suspended():
        pass
    # A hundred and fifty more would be more than a fifth of the thousand rows.
    assert elsewhere(table, SUM) == [(1000, 499_650)]
    assert elsewhere(table, SUM) == [(1000, 499_650)]
    monkeypatch.setattr(uncommitted, "_VACUUMED", 0.0)
    folds(table)._resting.clear()
    one(table, SUM)


@pytest.mark.written_for(["postgresql"], reason="it overloads functions")
def test_an_applications_function_is_called_elsewhere(engine, table):
    add(table, 1, 1)
    query = "SELECT count(lower(s)) FROM t"
    assert one(table, query) == (1000,)
    session = table._database.engine.session()
    session.execute(
        f"CREATE FUNCTION {engine.schema}.lower(INTEGER) RETURNS TEXT "
        "LANGUAGE SQL VOLATILE AS 'SELECT CAST(now() AS TEXT)'"
    )
    session.close()
    assert elsewhere(table, query) == [(1000,)]
