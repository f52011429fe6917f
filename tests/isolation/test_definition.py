"""Schema changes: atomic, alone, and never below an open transaction."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import pymonetdb
import pytest

import tique
from tests.portable import numbers

CREATE = "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)"


@pytest.fixture
def pair(engine):
    one, two = engine.connect(checkpoint="manual"), engine.connect()
    one.execute(CREATE)
    one.execute("INSERT INTO t VALUES (1, 10)")
    one.commit()
    return one, two


def test_a_definition_takes_effect_at_once(engine, pair):
    one, two = pair
    one.execute("CREATE TABLE later (id INTEGER PRIMARY KEY)")
    one.rollback()
    two.execute("INSERT INTO later VALUES (1)")
    two.commit()
    assert one.execute("SELECT * FROM later").fetchall() == [(1,)]


def test_a_key_is_named_as_the_engine_folds_names(engine):
    """P9: in CREATE TABLE, when its definition is read again, and when it is adopted."""
    engine.native().execute(
        "CREATE TABLE adopted (a INTEGER, B INTEGER, PRIMARY KEY (A, b))"
    )
    engine.close()
    tique.adopt(engine.url)
    connection = engine.connect()
    connection.execute("CREATE TABLE t (a INTEGER, PRIMARY KEY (A))")
    connection.execute("CREATE TABLE u (Id INTEGER, k INTEGER, UNIQUE (ID, K))")
    engine.close()
    connection = engine.connect()
    for table, row in (("adopted", "1, 2"), ("t", "1"), ("u", "1, 2")):
        connection.execute(f"INSERT INTO {table} VALUES ({row})")
        with pytest.raises(tique.IntegrityError):
            connection.execute(f"INSERT INTO {table} VALUES ({row})")


def test_not_within_uncommitted_writes(pair):
    one, _ = pair
    one.execute("UPDATE t SET v = 11")
    with pytest.raises(tique.NotSupportedError, match="uncommitted writes") as caught:
        one.execute("CREATE TABLE later (id INTEGER)")
    assert caught.value.sqlstate == "25001"
    one.commit()
    assert one.execute("SELECT v FROM t").fetchall() == [(11,)]


@pytest.mark.parametrize("use", ["SELECT * FROM t", "UPDATE t SET v = 0 WHERE id = 1"])
def test_a_table_that_is_in_use_is_not_dropped(pair, use):
    one, two = pair
    two.execute(use)
    for statement in ("DROP TABLE t", "CREATE INDEX by_v ON t (v)"):
        with pytest.raises(
            tique.OperationalError, match=r"main\.t.*in|uses it"
        ) as caught:
            one.execute(statement)
        assert caught.value.sqlstate == "55006"
    two.commit()
    one.execute("DROP TABLE t")
    with pytest.raises(tique.ProgrammingError):
        two.execute(use)
    two.rollback()


def test_dropped_and_made_again_is_another_table(engine, pair):
    one, two = pair
    assert two.execute("SELECT v FROM t WHERE id = 1").fetchone() == (10,)
    two.rollback()
    one.execute("DROP TABLE t")
    one.execute("CREATE TABLE t (v TEXT, id INTEGER PRIMARY KEY)")
    assert two.execute("SELECT v FROM t WHERE id = 1").fetchone() is None
    two.rollback()
    two.execute("INSERT INTO t VALUES ('new', 1)")
    two.commit()
    one.rollback()
    assert one.execute("SELECT * FROM t WHERE id = 1").fetchone() == ("new", 1)
    engine.close()
    assert engine.connect().execute("SELECT * FROM t").fetchall() == [("new", 1)]


def test_if_exists_and_if_not_exists(pair):
    one, _ = pair
    one.execute("CREATE TABLE IF NOT EXISTS t (other TEXT)")
    assert one.execute("SELECT v FROM t").fetchall() == [(10,)]
    one.rollback()
    with pytest.raises(tique.ProgrammingError, match="exists already") as caught:
        one.execute(CREATE)
    assert caught.value.sqlstate == "42P07"
    one.execute("DROP TABLE IF EXISTS nothing")
    with pytest.raises(tique.ProgrammingError, match="nothing"):
        one.execute("DROP TABLE nothing")


def test_a_table_that_tique_does_not_manage_is_not_overwritten(engine):
    engine.native().execute("CREATE TABLE t AS SELECT 42 AS x")
    connection = engine.connect()
    with pytest.raises(tique.ProgrammingError, match="adopt"):
        connection.execute(CREATE)
    engine.close()
    assert engine.native().execute("SELECT x FROM t").fetchall() == [(42,)]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "text", [CREATE, 'CREATE TABLE tique."', "tique.format", "COMMIT"]
)
def test_a_create_that_fails_half_way(engine, faults, when, text):
    connection = engine.connect(checkpoint="manual")
    faults.plan(when, text, engine.failure())
    is_done = (when, text) == ("after", "COMMIT")
    # A server is asked whether it happened, and it is no error then.
    told = pytest.raises(tique.OperationalError, match="disk went away")
    with suppress(tique.OperationalError) if is_done else told:
        connection.execute(CREATE)
    faults.clear()
    connection.rollback()
    if is_done:
        connection.execute("INSERT INTO t VALUES (1, 1)")
    else:
        with pytest.raises(tique.ProgrammingError):
            connection.execute("SELECT * FROM t")
        connection.execute(CREATE)
        connection.execute("INSERT INTO t VALUES (1, 1)")
    connection.commit()
    connection.checkpoint()
    engine.close()
    assert engine.connect().execute("SELECT * FROM t").fetchall() == [(1, 1)]


def test_adopting_is_all_or_nothing(engine):
    native = engine.native()
    native.execute("CREATE TABLE good (id INTEGER PRIMARY KEY)")
    native.execute("INSERT INTO good VALUES (1)")
    native.execute("CREATE TABLE other (_cts INTEGER)")
    engine.close()
    with pytest.raises(tique.NotSupportedError, match="reserved"):
        tique.adopt(engine.url)
    with pytest.raises(tique.ProgrammingError, match="missing"):
        tique.adopt(engine.url, ["good", "missing"])
    with pytest.raises(tique.ProgrammingError):
        engine.connect().execute("SELECT * FROM good")
    engine.close()
    assert tique.adopt(engine.url, ["good"]) == [f"{engine.schema}.good"]
    with pytest.raises(tique.ProgrammingError, match="already"):
        tique.adopt(engine.url, ["good"])
    assert engine.connect().execute("SELECT * FROM good").fetchall() == [(1,)]


def test_detaching_waits_for_no_open_snapshot(engine, pair):
    one, two = pair
    two.execute("SELECT * FROM t").fetchall()
    with pytest.raises(tique.OperationalError) as caught:
        tique.detach(engine.url)
    assert caught.value.sqlstate == "55006"
    one.execute("UPDATE t SET v = 12")
    one.commit()
    two.rollback()
    tique.detach(engine.url)
    with pytest.raises(tique.DatabaseError, match=r"detached|tique adopt"):
        one.execute("SELECT * FROM t")
    with pytest.raises(tique.OperationalError, match="detached"):
        one.execute("SELECT 1")
    native = engine.native()
    assert native.execute("SELECT * FROM t").fetchall() == [(1, 12)]
    assert ("tique",) not in native.execute(engine.schemas).fetchall()


def test_statements_that_race_with_drop_and_create(engine):
    """Each gets its rows or one of tique's errors, never a bare Python one."""
    setup = engine.connect(checkpoint_age=0.1)
    setup.execute(CREATE)
    stop = threading.Event()
    errors = []
    done = [0]

    def work(statements):
        with tique.connect(engine.url) as connection:
            while not stop.is_set():
                try:
                    for statement in statements:
                        connection.execute(statement)
                    connection.commit()
                    done[0] += 1
                except tique.Error as error:
                    if isinstance(error, tique.InternalError):
                        errors.append(error)
                    connection.rollback()
                except BaseException as error:
                    errors.append(error)
                    return
                # So that the table is not in use all the time.
                time.sleep(0.02)

    threads = [
        threading.Thread(target=work, args=(statements,))
        for statements in (
            ["SELECT v FROM t WHERE id = 1"],
            ["SELECT sum(v) FROM t"],
            ["INSERT INTO t VALUES (1, 1)"],
            ["UPDATE t SET v = v + 1 WHERE id = 1", "DELETE FROM t WHERE id = 1"],
            [f"INSERT INTO t SELECT number + 10, 0 FROM {numbers(2100)}"],
        )
    ]
    for thread in threads:
        thread.start()
    changed = 0
    began = time.monotonic()

    def is_enough():
        lasted = time.monotonic() - began
        return lasted > 3 and (min(changed, done[0]) > 2 or lasted > 30)

    while not is_enough():
        for statement in ("DROP TABLE t", CREATE):
            try:
                setup.execute(statement)
                changed += 1
            except tique.Error:
                setup.rollback()
            time.sleep(0.005)
        setup.rollback()
        if errors:
            break
    stop.set()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    if errors:
        raise errors[0]
    assert changed > 2
    assert done[0] > 2
    sequencer = setup._database.sequencer
    assert sequencer.sts() == sequencer.cts()
    setup.rollback()
    setup.checkpoint()
    engine.close()
    engine.connect().execute("SELECT 1")


NOT_POSTGRESQL = pytest.mark.written_for(
    ["duckdb", "monetdb"], reason="PostgreSQL says it in other words"
)
POSTGRESQL = pytest.mark.written_for(["postgresql"], reason="the words are its own")


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        pytest.param(
            "CREATE TABLE t (a TEXT COLLATE NOCASE PRIMARY KEY)",
            "a collation, a, in a key",
            marks=[
                pytest.mark.never(
                    ["monetdb"],
                    raises=pymonetdb.OperationalError,
                    reason="it has no collations",
                ),
                NOT_POSTGRESQL,
            ],
        ),
        pytest.param(
            "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', "
            "deterministic = false); CREATE TABLE t (a TEXT COLLATE loose PRIMARY KEY)",
            "collation by which different texts are equal",
            marks=POSTGRESQL,
        ),
        pytest.param(
            "CREATE TABLE t (a INT, b INT AS (a + 1)); "
            "CREATE UNIQUE INDEX i ON t (abs(a), b)",
            "unique index with a generated column, i",
            marks=pytest.mark.written_for(
                ["duckdb"], reason="its syntax of generated columns"
            ),
        ),
        pytest.param(
            "CREATE TABLE t (a INT, b DOUBLE GENERATED ALWAYS AS (random()))",
            "the generated column b calls random",
            marks=pytest.mark.written_for(
                ["duckdb"], reason="the others' have none that are not pure"
            ),
        ),
        pytest.param(
            "CREATE TABLE t (a INT, b OID GENERATED ALWAYS AS (tableoid) STORED)",
            "generated column b looks at tableoid",
            marks=POSTGRESQL,
        ),
        pytest.param(
            "CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS (a + 1) STORED UNIQUE)",
            "key with a generated column",
            marks=POSTGRESQL,
        ),
        ("CREATE TABLE t (a INT, _cts INT)", "reserved"),
        (
            "CREATE TABLE p (a INT PRIMARY KEY); "
            "CREATE TABLE t (a INT REFERENCES p (a))",
            "FOREIGN KEY",
        ),
    ],
)
def test_a_refused_adoption_leaves_no_trace(engine, definition, message):
    """P9, P10: a table beyond tique's promises is not adopted, and nothing is left."""
    native = engine.native()
    native.execute("CREATE TABLE fine (\" COLLATE \" TEXT DEFAULT ' COLLATE ')")
    native.execute(definition)
    native.close()
    with pytest.raises(tique.NotSupportedError, match=message):
        tique.adopt(engine.url, ["fine", "t"])
    native = engine.native()
    assert ("tique",) not in native.execute(engine.schemas).fetchall()
    native.close()
    assert tique.adopt(engine.url, ["fine"]) == [f"{engine.schema}.fine"]


@pytest.mark.written_for(
    ["duckdb", "postgresql"], reason="MonetDB has no generated columns"
)
def test_generated_columns_are_adopted_and_detached(engine):
    """P5: the engine's own column stays, and computes what it did."""
    native = engine.native()
    native.execute(
        f"CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, "
        f"g INTEGER GENERATED ALWAYS AS (n * 2) {engine.generated})"
    )
    native.execute("INSERT INTO t (id, n) VALUES (1, 1)")
    native.close()
    tique.adopt(engine.url, ["t"])
    one = engine.connect()
    one.execute("UPDATE t SET n = 5")
    one.commit()
    assert one.execute("SELECT * FROM t").fetchall() == [(1, 5, 10)]
    engine.close()
    tique.detach(engine.url)
    native = engine.native()
    native.execute("INSERT INTO t (id, n) VALUES (2, 8)")
    assert native.execute("SELECT id, n, g FROM t ORDER BY id").fetchall() == [
        (1, 5, 10),
        (2, 8, 16),
    ]


@pytest.mark.written_for(["duckdb"], reason="MonetDB has no collations")
def test_keys_are_compared_bytewise(engine):
    """P3: under another collation, keys that are one row would be two."""
    with pytest.raises(tique.NotSupportedError, match="default_collation"):
        tique.connect(f"{engine.url}?default_collation=nocase")


def test_an_index_after_changes_by_several_connections(engine):
    """P6: connections that rest, and have read rows by key, are not in the way."""
    one, two = engine.connect(checkpoint="manual"), engine.connect(checkpoint="manual")
    one.execute("CREATE TABLE t (id DECIMAL(9,2) PRIMARY KEY, a INTEGER, b INTEGER)")
    one.execute("INSERT INTO t (id) VALUES (1.5), (2)")
    one.commit()
    one.checkpoint()
    for connection, column, id in ((one, "a", "1.5"), (two, "b", "2")):
        connection.execute(f"UPDATE t SET {column} = 7 WHERE id = {id}")
        connection.commit()
    one.checkpoint()
    one.execute("CREATE INDEX x ON t (b)")
    one.commit()
    two.execute("UPDATE t SET a = 8 WHERE b = 7")
    two.commit()
    assert one.execute("SELECT a, b FROM t ORDER BY id").fetchall() == [
        (7, None),
        (8, 7),
    ]
