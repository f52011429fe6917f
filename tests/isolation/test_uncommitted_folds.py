"""Wide queries that read storage in an uncommitted fold (P1, P4, P7, P10).

The argument is in :mod:`tique.checkpoint.uncommitted`.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import pytest

import tique
from tique.checkpoint import uncommitted

pytestmark = [
    pytest.mark.written_for(["duckdb"], reason="other engines have none"),
]

SUM = "SELECT count(*), sum(n + 0) FROM t"
"""Sums of plain columns are answered from rows in memory."""


@pytest.fixture
def table(engine):
    """A thousand rows in storage."""
    connection = engine.connect(checkpoint="manual", uncommitted_fold_rows=0)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, s VARCHAR)")
    connection.execute("INSERT INTO t SELECT i, i, 'a' FROM range(1000) AS r(i)")
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
    kind = type(table._database.engine.session())
    begin = kind.begin
    monkeypatch.setattr(kind, "begin", lambda self: (begun.append(self), begin(self)))
    for number in range(20):
        add(table, 1, 7)
        assert one(table, SUM) == (1000, 499_501 + number)
    assert 2 <= begun.count(folds(table)._session) <= 5


def test_it_waits_until_the_writers_rest(engine, monkeypatch):
    """Beside them its statements cost more than they gain."""
    monkeypatch.setattr(uncommitted, "_QUIET", 0.2)
    options = {"checkpoint": "manual", "uncommitted_fold_rows": 10}
    with engine.connect(**options) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
        connection.execute("INSERT INTO t SELECT i, i FROM range(1000) AS r(i)")
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
        ("INSERT INTO t SELECT i, 7, 'new' FROM range(5) AS r(i)", 995),
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
    assert session.execute("SELECT sum(n) FROM main.t").fetch_all() == [(499_500,)]
    session.close()
    table.close()
    assert engine.native().execute(SUM).fetchall() == [(1000, 499_500)]


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
    table.execute("SET TimeZone = 'Asia/Tokyo'")
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
    query = "SELECT string_agg(CAST(k AS VARCHAR), ',' ORDER BY id) FROM u"
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


LONG = "SELECT count(DISTINCT a.n * b.n + c.n) FROM t a, t b, t c"
"""A billion rows: it takes seconds."""


class Asking(threading.Thread):
    """A query in another thread."""

    def __init__(self, connection, query):
        super().__init__(daemon=True)
        self.connection, self.query = connection, query
        self.rows = self.error = None
        self.start()

    def run(self):
        try:
            self.rows = self.connection.execute(self.query).fetchall()
        except tique.Error as error:
            self.error = error

    def expect_there(self):
        """Wait until it is under way there."""
        while folds(self.connection)._query is None and self.is_alive():
            time.sleep(0.001)
        time.sleep(0.05)
        assert self.is_alive()


def test_a_query_is_cancelled(engine, table):
    add(table, 1, 1)
    with engine.connect(checkpoint="manual", uncommitted_fold_rows=0) as other:
        asking = Asking(other, LONG)
        asking.expect_there()
        other.cancel()
        asking.join(20)
        assert isinstance(asking.error, tique.OperationalError)
        assert asking.error.sqlstate == "57014"
        other.rollback()
        assert one(other, SUM) == (1000, 499_501)


def test_another_query_does_not_wait(engine, table):
    add(table, 1, 1)
    with engine.connect(checkpoint="manual", uncommitted_fold_rows=0) as other:
        asking = Asking(other, LONG)
        asking.expect_there()
        assert elsewhere(table, SUM) == [(1000, 499_501)]
        other.cancel()
        asking.join(20)


def test_a_fold_does_not_wait_for_long(engine, table, monkeypatch):
    monkeypatch.setattr(uncommitted, "_PATIENCE", 0.01)
    add(table, 1, 1)
    with engine.connect(checkpoint="manual", uncommitted_fold_rows=0) as other:
        asking = Asking(other, LONG)
        asking.expect_there()
        assert table.checkpoint() == 1
        # It goes on in its other form, and the application does not learn of it.
        assert folds(table).queries == 0
        other.cancel()
        asking.join(20)
        assert asking.error is not None


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
        connection.execute("INSERT INTO t SELECT i, 100 FROM range(100) AS r(i)")
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


def test_a_query_that_does_not_stop_is_given_up(engine, table, monkeypatch):
    monkeypatch.setattr(uncommitted, "_PATIENCE", 0.01)
    monkeypatch.setattr(uncommitted, "_GIVE_UP", 0.2)
    session = type(table._database.engine.session())
    monkeypatch.setattr(session, "interrupt", lambda _: None)
    add(table, 1, 1)
    with engine.connect(checkpoint="manual", uncommitted_fold_rows=0) as other:
        asking = Asking(other, LONG)
        asking.expect_there()
        hung = folds(table)._session
        with folds(table).suspended():
            assert folds(table)._session is None
        assert asking.is_alive()
        assert elsewhere(table, SUM) == [(1000, 499_501)]
        monkeypatch.undo()
        while asking.is_alive():
            hung.interrupt()
            other.cancel()
            asking.join(0.1)
        assert asking.error.sqlstate == "57014"
