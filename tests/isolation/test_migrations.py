"""Migrations, as Alembic and Django run them: DDL and writes in one transaction.

After BEGIN, DDL is a part of the transaction (:mod:`tique.query.define.migration`). Where no BEGIN
has opened it, DDL takes effect at once and comes before the writes, unless the connection
has ``transactional_ddl``.
"""

from __future__ import annotations

import gc
import time

import pytest

import tique
from tique.query.define import migration, schema_changes

pytestmark = pytest.mark.fresh_tables

KEEP = "ON COMMIT PRESERVE ROWS"
TWO_REVISIONS = [
    "CREATE TABLE b (id INTEGER PRIMARY KEY)",
    "UPDATE version SET n = 'two' WHERE n = 'one'",
    "ALTER TABLE stored ADD COLUMN w INTEGER",
    "UPDATE stored SET w = 1",
    "UPDATE version SET n = 'three' WHERE n = 'two'",
]


@pytest.fixture
def connection(engine):
    opened = engine.connect(checkpoint="manual")
    opened.execute("CREATE TABLE version (n VARCHAR(32) PRIMARY KEY)")
    opened.execute("CREATE TABLE stored (id INTEGER PRIMARY KEY, v INTEGER)")
    opened.execute("INSERT INTO version VALUES ('one')")
    opened.execute("INSERT INTO stored VALUES (1, 10)")
    opened.commit()
    return opened


@pytest.fixture
def other(engine, connection):
    return engine.connect(checkpoint="manual", autocommit=True)


def rows(connection, query):
    """The rows, or the SQLSTATE of the error."""
    try:
        return connection.execute(query).fetchall()
    except tique.Error as error:
        return error.sqlstate


def state(connection):
    """The committed version and rows."""
    version = rows(connection, "SELECT n FROM version")
    return version, rows(connection, "SELECT * FROM stored")


def run(connection, *statements):
    for statement in statements:
        connection.execute(statement)


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["COMMIT", "ROLLBACK"])
def test_all_or_nothing(engine, connection, other, ends):
    """P5, P8, P9: tables, columns, keys, indexes, views, sequences, and the writes."""
    run(
        connection,
        "BEGIN",
        *TWO_REVISIONS[:3],
        "ALTER TABLE stored ALTER COLUMN id SET DEFAULT 5",
        *TWO_REVISIONS[3:],
        "INSERT INTO b VALUES (1), (2)",
        "CREATE INDEX ix ON b (id)",
        "DELETE FROM b WHERE id = 1",
        "CREATE TABLE c (id INTEGER PRIMARY KEY, b INTEGER REFERENCES b)",
        "INSERT INTO c VALUES (1, 2)",
        "CREATE VIEW seen AS SELECT id, w FROM stored",
        "CREATE TABLE copied AS SELECT id, w FROM seen",
        "CREATE SEQUENCE counter",
        "CREATE SCHEMA aside",
        "CREATE TABLE aside.d (id INTEGER PRIMARY KEY)",
        "INSERT INTO aside.d VALUES (4)",
        "CREATE TABLE gone (id INTEGER)",
        "INSERT INTO gone VALUES (1)",
        "DROP TABLE gone",
    )
    queries = [
        "SELECT * FROM b",
        "SELECT * FROM c",
        "SELECT * FROM seen",
        "SELECT * FROM copied",
        "SELECT * FROM aside.d",
        "SELECT * FROM gone",
    ]
    after = [[(2,)], [(1, 2)], [(1, 1)], [(1, 1)], [(4,)], "42P01"]
    assert state(connection) == ([("three",)], [(1, 10, 1)])
    with_own = [rows(connection, query) for query in queries[:-1]]
    assert with_own == after[:-1]
    assert rows(other, "SELECT n FROM version") == [("one",)]
    assert [rows(other, query) for query in queries] == ["42P01"] * 6
    connection.execute(ends)
    for _ in range(2):
        if ends == "COMMIT":
            assert state(other) == ([("three",)], [(1, 10, 1)])
            assert [rows(other, query) for query in queries] == after
            assert rows(other, "INSERT INTO c VALUES (2, 1)") == "23503"
        else:
            assert state(other) == ([("one",)], [(1, 10)])
            assert [rows(other, query) for query in queries] == ["42P01"] * 6
        engine.close()
        other = engine.connect(autocommit=True)
    if ends == "ROLLBACK":
        for statement in ("CREATE SCHEMA aside", "CREATE SEQUENCE counter"):
            other.execute(statement)
    engine.close()
    shown = [(1, 10, 1)] if ends == "COMMIT" else [(1, 10)]
    assert engine.native().execute("SELECT * FROM stored").fetchall() == shown


def test_changed_rows_and_then_the_table(engine, connection, other):
    """P5, P9, P10: the rows are moved to storage first, where the engine can do that."""
    run(connection, "BEGIN", "UPDATE stored SET v = 11")
    alter = "ALTER TABLE stored ADD COLUMN w INTEGER"
    if not connection._database.engine.capabilities.alters_changed_tables:
        with pytest.raises(tique.NotSupportedError, match="commit first") as caught:
            connection.execute(alter)
        assert caught.value.sqlstate == "25001"
        connection.rollback()
        assert state(other) == ([("one",)], [(1, 10)])
        return
    run(connection, alter, "UPDATE stored SET w = 1")
    run(connection, "ALTER TABLE stored ALTER COLUMN w SET NOT NULL")
    run(connection, "INSERT INTO stored VALUES (2, 20, 2)", "COMMIT")
    assert rows(other, "SELECT * FROM stored ORDER BY id") == [(1, 11, 1), (2, 20, 2)]
    assert rows(other, "INSERT INTO stored VALUES (3, 3, NULL)") == "23502"


def test_without_begin(engine, connection, other):
    """P8: DDL takes effect at once, unless the connection has another wish."""
    connection.execute("ALTER TABLE stored ADD COLUMN w INTEGER")
    connection.execute("UPDATE stored SET w = 1")
    with pytest.raises(tique.NotSupportedError, match="with autocommit") as caught:
        connection.execute("CREATE TABLE b (id INTEGER PRIMARY KEY)")
    assert caught.value.sqlstate == "25001"
    connection.rollback()
    assert state(other) == ([("one",)], [(1, 10, None)])
    wishing = engine.connect(checkpoint="manual", transactional_ddl=True)
    run(wishing, "UPDATE stored SET w = 1", "CREATE TABLE b (id INTEGER PRIMARY KEY)")
    wishing.rollback()
    assert rows(other, "SELECT * FROM b") == "42P01"
    run(wishing, "UPDATE stored SET w = 1", "CREATE TABLE b (id INTEGER PRIMARY KEY)")
    wishing.commit()
    assert rows(other, "SELECT * FROM b") == []
    assert state(other) == ([("one",)], [(1, 10, 1)])


def test_a_block(connection, other):
    """P8: of ``transaction()``; what it raises takes the DDL back."""

    def fail():
        with connection.transaction():
            run(connection, *TWO_REVISIONS)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert state(other) == ([("one",)], [(1, 10)])
    with connection.transaction():
        run(connection, *TWO_REVISIONS)
    assert state(other) == ([("three",)], [(1, 10, 1)])


def test_with_autocommit(connection, other):
    """P8: every statement by itself."""
    connection.autocommit = True
    run(connection, *TWO_REVISIONS)
    assert state(other) == ([("three",)], [(1, 10, 1)])


@pytest.mark.parametrize(
    "failing",
    [
        "INSERT INTO b VALUES (1)",
        "CREATE TABLE b (id INTEGER)",
        "INSERT INTO stored SELECT 1 / (id - 1), 1, 1 FROM stored",
        "ALTER TABLE stored ALTER COLUMN v SET NOT NULL",
    ],
)
def test_a_statement_fails(connection, other, failing):
    """P5, P8: nothing is left, and nothing goes on before the rollback."""
    run(connection, "BEGIN", *TWO_REVISIONS[:4], "INSERT INTO b VALUES (1)")
    run(connection, "INSERT INTO stored VALUES (2, NULL, 1)")
    with pytest.raises(tique.DatabaseError):
        connection.execute(failing)
    for statement in ("SELECT * FROM version", "CREATE TABLE c (id INTEGER)"):
        assert rows(connection, statement) == "25P02"
    assert state(other) == ([("one",)], [(1, 10)])
    with pytest.raises(tique.OperationalError, match="roll back"):
        connection.commit()
    connection.execute("BEGIN")
    run(connection, *TWO_REVISIONS)
    connection.commit()
    assert state(other) == ([("three",)], [(1, 10, 1)])


def test_a_statement_is_refused(connection, other):
    """P8, P10: before the engine has seen it; the transaction goes on."""
    run(connection, "BEGIN", *TWO_REVISIONS[:3])
    for refused, sqlstate in (
        ("ALTER TABLE stored ADD COLUMN id INTEGER", "42701"),
        ("INSERT INTO b SELECT id FROM nowhere", "42P01"),
        ("CREATE TABBLE c (id INTEGER)", "42601"),
    ):
        # MonetDB cannot be asked whether a text is SQL.
        assert rows(connection, refused) in (sqlstate, None, "0A000")
    run(connection, *TWO_REVISIONS[3:], "COMMIT")
    assert state(other) == ([("three",)], [(1, 10, 1)])


def nests(connection):
    return connection._database.engine.capabilities.nests_transactions


def test_savepoints(connection, other):
    """P8: back to one after the last DDL, and to one before the first."""
    run(connection, "BEGIN", "SAVEPOINT before", "CREATE TABLE b (id INTEGER)")
    run(connection, "SAVEPOINT after", "INSERT INTO b VALUES (1)")
    run(connection, "UPDATE version SET n = 'two'", "ROLLBACK TO after")
    assert rows(connection, "SELECT * FROM b") == []
    connection.execute("INSERT INTO b VALUES (2)")
    connection.execute("RELEASE after")
    assert rows(connection, "SELECT * FROM b") == [(2,)]
    connection.execute("ROLLBACK TO before")
    assert rows(connection, "SELECT * FROM b") == "42P01"
    assert state(connection) == ([("one",)], [(1, 10)])
    connection.execute("UPDATE version SET n = 'six'")
    connection.commit()
    assert rows(other, "SELECT * FROM b") == "42P01"
    assert rows(other, "SELECT * FROM version") == [("six",)]


@pytest.mark.parametrize("size", [1, 3000])
@pytest.mark.parametrize("fails", [False, True])
def test_back_to_before_the_first_ddl(engine, connection, other, size, fails):
    """P5, P8: the writes before it are as they were, buffered or staged, and can go on."""
    numbers = [(100 + i, i) for i in range(size)]
    run(connection, "BEGIN", "UPDATE stored SET v = 11", "UPDATE version SET n = 'own'")
    connection.cursor().executemany("INSERT INTO stored VALUES (%s, %s)", numbers)
    run(connection, "SAVEPOINT s", "UPDATE version SET n = 'two'")
    for _ in range(2):
        run(connection, "DELETE FROM stored WHERE id > 1", *TWO_REVISIONS[:1])
        run(connection, "INSERT INTO b VALUES (1)", "UPDATE stored SET v = 12")
        # A statement that scans it needs the writes in the engine.
        assert rows(connection, "SELECT sum(v), count(*) FROM stored") == [(12, 1)]
        if connection._database.engine.capabilities.alters_changed_tables:
            run(connection, *TWO_REVISIONS[2:4])
            assert rows(connection, "SELECT max(w) FROM stored") == [(1,)]
        if fails:
            assert rows(connection, "INSERT INTO b VALUES (1)") == "23505"
            assert rows(connection, "SELECT * FROM version") == "25P02"
        undoes = connection._database.engine.capabilities.undoes_temporary_tables
        if size > 1 and not undoes:
            with pytest.raises((tique.NotSupportedError, tique.OperationalError)):
                connection.execute("ROLLBACK TO s")
            return
        connection.execute("ROLLBACK TO s")
        assert rows(connection, "SELECT * FROM version") == [("own",)]
        total = [(11 + sum(range(size)), 1 + size)]
        assert rows(connection, "SELECT sum(v), count(*) FROM stored") == total
        assert rows(connection, "SELECT * FROM b") == "42P01"
    run(connection, "UPDATE stored SET v = v + 1 WHERE id = 1")
    connection.commit()
    for _ in range(2):
        assert rows(other, "SELECT sum(v), count(*) FROM stored") == [
            (12 + sum(range(size)), 1 + size)
        ]
        assert rows(other, "SELECT * FROM version") == [("own",)]
        other.checkpoint()


def test_others_go_on_after_it(connection, other):
    """P6: going back to before the first DDL lets checkpoints and other DDL go on."""
    run(connection, "BEGIN", "SAVEPOINT s", "ALTER TABLE stored ADD COLUMN w INTEGER")
    connection.execute("ROLLBACK TO s")
    run(other, "CREATE TABLE c (id INTEGER)", "UPDATE stored SET v = 5")
    other.checkpoint()
    assert rows(connection, "SELECT v FROM stored") == [(10,)]
    run(connection, "UPDATE version SET n = 'two'", "COMMIT")
    assert state(other) == ([("two",)], [(1, 5)])


def test_between_two_definitions(connection, other):
    """P8: where the engine has savepoints, to each of them and again; else refused."""
    run(connection, "BEGIN", *TWO_REVISIONS[:1], "INSERT INTO b VALUES (1)")
    run(connection, "SAVEPOINT s", "CREATE TABLE c (id INTEGER)", "DROP TABLE b")
    if not nests(connection):
        with pytest.raises(tique.NotSupportedError, match="ROLLBACK TO s"):
            connection.execute("ROLLBACK TO s")
        connection.rollback()
        assert rows(other, "SELECT * FROM b") == "42P01"
        return
    for _ in range(2):
        connection.execute("ROLLBACK TO s")
        assert connection.info.transaction_status.name == "INTRANS"
        assert rows(connection, "SELECT * FROM c") == "42P01"
        assert rows(connection, "SELECT * FROM b") == [(1,)]
        run(connection, "UPDATE b SET id = 2", "ALTER TABLE b ADD COLUMN v INTEGER")
        run(connection, "UPDATE b SET v = 7", "SAVEPOINT t", "DELETE FROM b")
        run(connection, "ALTER TABLE b RENAME TO d", "ROLLBACK TO t")
        assert rows(connection, "SELECT * FROM d") == "42P01"
        assert rows(connection, "SELECT * FROM b") == [(2, 7)]
        assert rows(connection, "CREATE TABLE b (id INTEGER)") == "42P07"
        assert rows(connection, "SELECT * FROM b") == "25P02"
        assert rows(connection, "SAVEPOINT u") == "25P02"
        assert connection.info.transaction_status.name == "INERROR"
        connection.execute("ROLLBACK TO t")
        run(connection, "INSERT INTO b VALUES (3, 8)", "RELEASE t")
        assert rows(connection, "SELECT * FROM b ORDER BY id") == [(2, 7), (3, 8)]
    connection.execute("COMMIT")
    assert rows(other, "SELECT * FROM b ORDER BY id") == [(2, 7), (3, 8)]
    other.checkpoint()
    assert rows(other, "SELECT * FROM b ORDER BY id") == [(2, 7), (3, 8)]


def test_get_or_create(connection, other):
    """P8: ORMs insert inside a savepoint, and go back to it if the row is there."""
    run(connection, "BEGIN", *TWO_REVISIONS[:3])
    run(connection, "SAVEPOINT s")
    assert rows(connection, "INSERT INTO stored VALUES (1, 1, 1)") == "23505"
    if not nests(connection):
        # The engine transaction is gone with its first error.
        assert rows(connection, "ROLLBACK TO s") == "25P02"
        return
    connection.execute("ROLLBACK TO s")
    with connection.transaction():
        connection.execute("INSERT INTO stored VALUES (2, 2, 2)")
    with connection.transaction(force_rollback=True):
        connection.execute("CREATE TABLE c (id INTEGER)")
    run(connection, *TWO_REVISIONS[3:], "COMMIT")
    found = rows(other, "SELECT * FROM stored ORDER BY id")
    assert found == [(1, 10, 1), (2, 2, 1)]
    assert rows(other, "SELECT * FROM c") == "42P01"


def test_deferred_references_after_going_back(connection, other):
    """P9: DDL has checked them, and what it found is forgotten with it."""
    if not nests(connection):
        return
    run(
        connection,
        "CREATE TABLE child (id INTEGER PRIMARY KEY, s INTEGER REFERENCES stored "
        "DEFERRABLE INITIALLY DEFERRED)",
        "COMMIT",
        "BEGIN",
        "INSERT INTO child VALUES (1, 2)",
        "SAVEPOINT s",
        "INSERT INTO stored VALUES (2, 2)",
        "ALTER TABLE child ADD COLUMN v INTEGER",
        "ROLLBACK TO s",
    )
    assert rows(connection, "COMMIT") == "23503"
    assert rows(other, "SELECT * FROM child") == []


def test_beside_writers(engine, connection, other):
    """P3, P9: those of other tables go on, those of a changed one run again."""
    run(connection, "BEGIN", *TWO_REVISIONS[:3])
    writer = other
    writer.autocommit = False
    writer.execute("INSERT INTO version VALUES ('beside')")
    writer.commit()
    if not engine.locks_altered_tables:
        writer.execute("INSERT INTO stored VALUES (2, 20)")
        with pytest.raises(tique.SerializationError, match="an open transaction"):
            writer.commit()
    connection.commit()
    assert rows(other, "SELECT * FROM version ORDER BY n") == [("beside",), ("two",)]
    assert rows(other, "SELECT * FROM stored") == [(1, 10, None)]
    writer.execute("INSERT INTO stored VALUES (2, 20, 2)")
    writer.commit()


def test_a_key_is_lost(connection, other):
    """P3, P5: the first committer wins, and no table is left of the loser."""
    run(connection, "BEGIN", *TWO_REVISIONS[:3], "INSERT INTO b VALUES (1)")
    other.execute("UPDATE version SET n = 'theirs' WHERE n = 'one'")
    with pytest.raises(tique.SerializationError):
        connection.commit()
    assert rows(other, "SELECT * FROM b") == "42P01"
    assert state(other) == ([("theirs",)], [(1, 10)])
    run(connection, "BEGIN", TWO_REVISIONS[0], TWO_REVISIONS[2])
    connection.commit()
    assert rows(other, "SELECT * FROM b") == []


def test_a_table_was_written_to(connection, other):
    """P3, P9: after the snapshot, before it is altered."""
    run(connection, "BEGIN", "SELECT * FROM version")
    other.execute("INSERT INTO stored VALUES (2, 20)")
    with pytest.raises(tique.SerializationError, match="after"):
        connection.execute(TWO_REVISIONS[2])
    connection.rollback()
    run(connection, "BEGIN", TWO_REVISIONS[2])
    connection.commit()
    assert rows(other, "SELECT count(*) FROM stored") == [(2,)]


def test_an_older_snapshot(engine, connection, other):
    """P1: it does not see the rows of a table that it could not know."""
    older = engine.connect(checkpoint="manual")
    assert rows(older, "SELECT * FROM version") == [("one",)]
    run(connection, "BEGIN", TWO_REVISIONS[0], "INSERT INTO b VALUES (1)")
    run(connection, "UPDATE version SET n = 'two'", "COMMIT")
    assert rows(older, "SELECT * FROM version") == [("one",)]
    with pytest.raises(tique.SerializationError, match="after this transaction began"):
        older.execute("SELECT * FROM b")
    older.rollback()
    assert rows(older, "SELECT * FROM b") == [(1,)]


def test_a_table_in_use(engine, connection, other, monkeypatch):
    """P1: COMMIT waits for it, and then fails as a whole."""
    monkeypatch.setattr(migration, "_PATIENCE", 0.05)
    run(connection, "BEGIN", "DROP TABLE stored")
    reader = engine.connect(checkpoint="manual")
    assert rows(reader, "SELECT v FROM stored WHERE id = 1") == [(10,)]
    with pytest.raises(tique.OperationalError, match="uses it") as caught:
        connection.commit()
    assert caught.value.sqlstate == "55006"
    reader.rollback()
    assert state(other) == ([("one",)], [(1, 10)])


def test_other_ddl_waits(connection, other, monkeypatch):
    """P6: for so long; and a checkpoint does."""
    monkeypatch.setattr(schema_changes, "LOCK_TIMEOUT", 0.05)
    run(connection, "BEGIN", TWO_REVISIONS[0])
    assert rows(other, "CREATE TABLE c (id INTEGER)") == "55P03"
    connection.rollback()
    other.execute("CREATE TABLE c (id INTEGER)")


def test_an_abandoned_connection(engine, connection, other):
    """P6: it holds up nothing."""
    lost = engine.connect(checkpoint="manual")
    run(lost, "BEGIN", *TWO_REVISIONS)
    engine._through_tique.remove(lost)
    del lost
    gc.collect()
    time.sleep(0.3)
    run(other, *TWO_REVISIONS)
    assert state(other) == ([("three",)], [(1, 10, 1)])


def test_a_closed_connection(engine, connection, other):
    """P8: it rolls back."""
    closed = engine.connect(checkpoint="manual")
    run(closed, "BEGIN", *TWO_REVISIONS)
    closed.close()
    assert state(other) == ([("one",)], [(1, 10)])


@pytest.mark.parametrize("level", ["SNAPSHOT", "READ COMMITTED"])
def test_reads_and_recent_versions(connection, other, level):
    """P1: what is not folded is found inside, and what is committed later is not."""
    connection.isolation_level = level
    for number in range(2, 6):
        other.execute("INSERT INTO stored VALUES (%s, %s)", (number, number))
    connection.execute("BEGIN")
    assert rows(connection, "SELECT count(*) FROM stored") == [(5,)]
    connection.execute(TWO_REVISIONS[0])
    other.execute("INSERT INTO stored VALUES (6, 6)")
    assert rows(other, "SELECT count(*), sum(v) FROM stored") == [(6, 30)]
    assert rows(connection, "SELECT count(*), sum(v) FROM stored") == [(5, 24)]
    connection.execute("UPDATE stored SET v = v + 1 WHERE id = 2")
    assert rows(connection, "SELECT count(*), sum(v) FROM stored") == [(5, 25)]
    connection.commit()
    assert rows(other, "SELECT count(*), sum(v) FROM stored") == [(6, 31)]


def test_an_older_snapshot_keeps_versions(engine, connection, other, monkeypatch):
    """P1: they are found, though not folded; their table is changed by none."""
    monkeypatch.setattr(migration, "_PATIENCE", 0.05)
    older = engine.connect(checkpoint="manual")
    assert rows(older, "SELECT * FROM version") == [("one",)]
    other.execute("INSERT INTO stored VALUES (2, 20)")
    run(connection, "BEGIN", TWO_REVISIONS[0], "INSERT INTO b VALUES (1)")
    assert rows(connection, "SELECT count(*), sum(v) FROM stored") == [(2, 30)]
    assert rows(connection, TWO_REVISIONS[2]) == "55006"
    connection.rollback()
    older.rollback()
    run(connection, "BEGIN", TWO_REVISIONS[0], TWO_REVISIONS[2], "COMMIT")
    assert rows(other, "SELECT count(*), sum(v) FROM stored") == [(2, 30)]


def _source(digits):
    """FROM and a number for each of 8 ** digits rows."""
    many = "(SELECT * FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7)) AS v (i))"
    source = " CROSS JOIN ".join(f"{many} AS v{k}" for k in range(digits))
    return " + ".join(f"v{k}.i * {8**k}" for k in range(digits)), source


def test_many_rows(connection, other):
    """P5, P9: more than a transaction keeps in memory, new and changed."""
    number, source = _source(4)
    run(connection, "BEGIN", TWO_REVISIONS[0])
    connection.execute(f"INSERT INTO b SELECT {number} FROM {source}")
    connection.execute(f"INSERT INTO stored SELECT {number} + 10, 1 FROM {source}")
    connection.execute(TWO_REVISIONS[2])
    connection.execute("UPDATE stored SET w = 3 WHERE id > 1")
    connection.commit()
    assert rows(other, "SELECT count(*), min(id) FROM b") == [(4096, 0)]
    query = "SELECT count(*), sum(w), min(v) FROM stored"
    assert rows(other, query) == [(4097, 3 * 4096, 1)]
    other.checkpoint()
    assert rows(other, query) == [(4097, 3 * 4096, 1)]


def test_a_query_is_left_before_its_end(connection, other):
    """P8: it takes nothing along, although the engine is still about its other rows."""
    number, source = _source(4)
    connection.execute("CREATE TABLE wide (id INTEGER PRIMARY KEY, t VARCHAR(3000))")
    connection.execute("CREATE TABLE copied (id INTEGER PRIMARY KEY, t VARCHAR(3000))")
    text = "x" * 2000
    connection.execute(f"INSERT INTO wide SELECT {number}, '{text}' FROM {source}")
    connection.commit()
    connection.checkpoint()
    run(connection, "BEGIN", *TWO_REVISIONS[:2])
    # The first rows of these show that there are too many to keep in memory.
    connection.execute("INSERT INTO copied SELECT id, t FROM wide")
    connection.execute("UPDATE wide SET t = upper(t)")
    # And the application may leave a result, with and without saying so.
    left = connection.execute("SELECT * FROM stored, copied")
    left.fetchone()
    left.close()
    connection.execute("SELECT * FROM copied").fetchone()
    connection.execute("INSERT INTO stored VALUES (2, 20)")
    kept = connection.execute("SELECT * FROM copied ORDER BY id")
    assert kept.fetchone() == (0, text)
    connection.commit()
    query = "SELECT count(*), min(t), max(t) FROM"
    assert rows(other, f"{query} copied") == [(4096, text, text)]
    assert rows(other, f"{query} wide") == [(4096, text.upper(), text.upper())]
    assert rows(other, "SELECT count(*) FROM stored") == [(2,)]


def test_what_it_has_written_is_not_checked_again(connection, other):
    """P9, P10: a constraint on written rows is refused where they are not in storage."""
    run(connection, "BEGIN", "CREATE TABLE p (id INTEGER PRIMARY KEY)")
    run(connection, "INSERT INTO stored VALUES (2, 5)")
    with pytest.raises(tique.NotSupportedError, match="has written to") as caught:
        connection.execute(
            "ALTER TABLE stored ADD CONSTRAINT of_p FOREIGN KEY (v) REFERENCES p (id)"
        )
    assert caught.value.sqlstate == "25001"
    connection.rollback()
    assert rows(other, "SELECT * FROM p") == "42P01"


def test_temporary_tables(connection):
    """P8, P10: one is made before the DDL, or after it, or refused by name."""
    run(connection, "BEGIN", f"CREATE TEMPORARY TABLE mine (id INTEGER) {KEEP}")
    run(connection, "INSERT INTO mine VALUES (1)", TWO_REVISIONS[0])
    run(connection, "INSERT INTO b SELECT id FROM mine")
    connection.commit()
    assert rows(connection, "SELECT * FROM b") == [(1,)]
    assert rows(connection, "SELECT * FROM mine") == [(1,)]
    create = f"CREATE TEMPORARY TABLE yours (id INTEGER) {KEEP}"
    run(connection, "ROLLBACK", "BEGIN", "CREATE TABLE c (id INTEGER)")
    if not connection._database.engine.capabilities.undoes_temporary_tables:
        with pytest.raises(tique.NotSupportedError, match="create it before"):
            connection.execute(create)
        connection.rollback()
        return
    run(connection, create, "INSERT INTO yours SELECT id + 1 FROM b", "DELETE FROM c")
    run(
        connection, "INSERT INTO c SELECT id FROM yours", "INSERT INTO yours VALUES (3)"
    )
    run(connection, "CREATE TABLE d (id INTEGER)")
    connection.rollback()
    assert rows(connection, "SELECT * FROM yours") == "42P01"
    connection.rollback()
    run(connection, "BEGIN", "CREATE TABLE c (id INTEGER)", create)
    run(connection, "INSERT INTO yours VALUES (2)", "INSERT INTO c SELECT * FROM yours")
    connection.commit()
    assert rows(connection, "SELECT yours.id FROM yours JOIN c ON c.id = yours.id") == [
        (2,)
    ]


def test_read_only(connection):
    """P10."""
    connection.execute("BEGIN TRANSACTION READ ONLY")
    assert rows(connection, TWO_REVISIONS[0]) == "25006"
    connection.rollback()


def test_its_outcome(connection):
    """P4."""
    run(connection, "BEGIN", *TWO_REVISIONS)
    txid = connection.txid
    connection.commit()
    assert connection.outcome(txid) == "committed"
    run(connection, "BEGIN", "CREATE TABLE c (id INTEGER)")
    txid = connection.txid
    connection.rollback()
    assert connection.outcome(txid) == "aborted"


@pytest.mark.parametrize("fails", [False, True], ids=["", "fails"])
def test_a_rollback_after_reading_own_writes(engine, connection, fails):
    """P5: the connection is as before; MonetDB's session would not be (its README)."""
    run(connection, "BEGIN", "CREATE TABLE b (id INTEGER, v INTEGER)")
    run(connection, "INSERT INTO b VALUES (1, 1)")
    run(connection, "INSERT INTO b SELECT id + 1, v FROM b")
    assert rows(connection, "SELECT count(*) FROM b") == [(2,)]
    if fails:
        with pytest.raises(tique.Error):
            connection.execute("INSERT INTO b SELECT id + 2, id / 0 FROM b")
    connection.rollback()
    catalog = "sys" if engine.name == "monetdb" else "information_schema"
    # None of its columns may be left out: all are read.
    assert len(rows(connection, f"SELECT * FROM {catalog}.columns")) > 0
    connection.rollback()
    run(connection, "BEGIN", "CREATE TABLE b (id INTEGER)", "INSERT INTO b VALUES (3)")
    run(connection, "ALTER TABLE stored ADD COLUMN w INTEGER")
    connection.commit()
    assert rows(connection, "SELECT * FROM b") == [(3,)]
    assert rows(connection, "SELECT * FROM stored") == [(1, 10, None)]
