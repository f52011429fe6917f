"""Unique indexes: keys that come and go, with and without other transactions."""

from __future__ import annotations

import pytest

import tique

pytestmark = pytest.mark.written_for(
    ["duckdb", "postgresql"], reason="MonetDB's UNIQUE INDEX lets duplicates in"
)

CREATE = "CREATE TABLE t (id INTEGER PRIMARY KEY, u INTEGER, w VARCHAR)"
INDEX = "CREATE UNIQUE INDEX sole ON t (u)"


@pytest.fixture
def three(engine):
    """Connections beside each other, and a table with an index."""
    one, *others = (engine.connect(checkpoint="manual") for _ in range(3))
    one.execute(CREATE)
    one.execute("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b')")
    one.commit()
    one.execute(INDEX)
    one.commit()
    return one, *others


def rows(connection):
    found = connection.execute("SELECT id, u FROM t ORDER BY id").fetchall()
    connection.rollback()
    return found


def test_it_keeps_duplicates_out(three):
    """P9: of storage's rows, recent ones and the transaction's own; its name is told."""
    one, *_ = three
    with pytest.raises(
        tique.IntegrityError, match='unique constraint "sole"'
    ) as caught:
        one.execute("INSERT INTO t VALUES (3, 10, 'c')")
    assert caught.value.sqlstate == "23505"
    one.execute("INSERT INTO t VALUES (3, 30, 'c')")
    with pytest.raises(tique.IntegrityError, match=r"UNIQUE \(u\)"):
        one.execute("INSERT INTO t VALUES (4, 30, 'd')")
    one.commit()
    for statement in (
        "UPDATE t SET u = 30 WHERE id = 1",
        "UPDATE t SET u = 5",
        "INSERT INTO t SELECT id + 10, u, w FROM t",
    ):
        with pytest.raises(tique.IntegrityError):
            one.execute(statement)
    one.execute("INSERT INTO t VALUES (4, NULL, 'd'), (5, NULL, 'e')")
    one.commit()
    assert rows(one) == [(1, 10), (2, 20), (3, 30), (4, None), (5, None)]


@pytest.mark.written_for(["duckdb"], reason="ART is DuckDB's")
def test_its_method_may_be_named(engine):
    """P9: also when the database is opened again, whose listing has the method."""
    one = engine.connect(checkpoint="manual", autocommit=True)
    one.execute(CREATE)
    one.execute("INSERT INTO t VALUES (1, 10, 'a')")
    one.execute("CREATE UNIQUE INDEX sole ON t USING art (u)")
    one.execute("CREATE INDEX words ON t USING ART (lower(w))")
    for _ in range(2):
        with pytest.raises(tique.IntegrityError, match='unique constraint "sole"'):
            one.execute("INSERT INTO t VALUES (3, 10, 'c')")
        one.close()
        one = engine.connect(checkpoint="manual", autocommit=True)
    with pytest.raises(tique.NotSupportedError, match="this form of CREATE INDEX"):
        one.execute("CREATE INDEX places ON t USING RTREE (u)")


def test_a_violated_one_is_not_made(engine):
    """P8, P9: storage's rows and recent ones; nothing is left of the attempt."""
    connection = engine.connect(checkpoint="manual")
    connection.execute(CREATE)
    connection.execute("INSERT INTO t VALUES (1, 10, 'a')")
    connection.commit()
    connection.checkpoint()
    connection.execute("INSERT INTO t VALUES (2, 10, 'b')")
    connection.commit()
    for _ in range(2):
        with pytest.raises(tique.IntegrityError):
            connection.execute(INDEX)
        connection.rollback()
    connection.execute("INSERT INTO t VALUES (3, 10, 'c')")
    connection.execute("UPDATE t SET u = id")
    connection.commit()
    connection.execute(INDEX)
    with pytest.raises(tique.IntegrityError):
        connection.execute("INSERT INTO t VALUES (4, 1, 'd')")
    engine.close()
    assert rows(engine.connect()) == [(1, 1), (2, 2), (3, 3)]


def test_of_two_that_insert_one_value_one_commits(three):
    """P3: the index's columns are in the write set; a third one may come later."""
    one, two, third = three
    for number, connection in enumerate(three, start=3):
        connection.execute(f"INSERT INTO t VALUES ({number}, 30, 'c')")
    two.commit()
    for loser in (one, third):
        with pytest.raises(tique.SerializationError):
            loser.commit()
        loser.rollback()
        with pytest.raises(tique.IntegrityError):
            loser.execute("INSERT INTO t VALUES (9, 30, 'c')")
        loser.rollback()
    assert rows(one) == [(1, 10), (2, 20), (4, 30)]


@pytest.mark.parametrize("many", [False, True], ids=["buffered", "staged"])
def test_an_update_meets_an_insert(three, many):
    """P3: whichever of them commits second gives way, bulk writes too."""
    one, two, _ = three
    two.execute("UPDATE t SET u = 30 WHERE id = 2")
    if many:
        one.execute(
            "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 29 UNION ALL SELECT i + 1 "
            "FROM n WHERE i < 3000) SELECT i, i, 'x' FROM n"
        )
    else:
        one.execute("INSERT INTO t VALUES (3, 30, 'c')")
    two.commit()
    with pytest.raises(tique.SerializationError):
        one.commit()
    one.rollback()
    assert rows(one) == [(1, 10), (2, 30)]


def test_values_are_swapped_and_handed_on(engine, three):
    """P3, P7: in one statement, by deleting and inserting, and when that is folded."""
    one, two, third = three
    one.execute("UPDATE t SET u = 30 - u")
    one.commit()
    assert rows(two) == [(1, 20), (2, 10)]
    two.execute("DELETE FROM t WHERE id = 1")
    two.execute("INSERT INTO t VALUES (3, 20, 'c')")
    third.execute("SELECT * FROM t")
    two.commit()
    # It has not seen that the value is free.
    with pytest.raises(tique.IntegrityError):
        third.execute("INSERT INTO t VALUES (4, 20, 'd')")
    third.rollback()
    one.checkpoint()
    assert rows(third) == [(2, 10), (3, 20)]
    engine.close()
    assert rows(engine.connect()) == [(2, 10), (3, 20)]


def test_a_value_that_is_freed_is_not_free_before(three):
    """P1, P3: a deleter and an inserter of the same value beside it."""
    one, two, third = three
    one.execute("DELETE FROM t WHERE id = 1")
    with pytest.raises(tique.IntegrityError):
        two.execute("INSERT INTO t VALUES (3, 10, 'c')")
    two.rollback()
    one.commit()
    two.execute("INSERT INTO t VALUES (3, 10, 'c')")
    third.execute("INSERT INTO t VALUES (4, 10, 'd')")
    two.commit()
    with pytest.raises(tique.SerializationError):
        third.commit()
    third.rollback()
    assert rows(one) == [(2, 20), (3, 10)]


def test_one_that_is_dropped_is_a_key_no_more(engine, three):
    """P9: for the engine and for certification; and it can be made again."""
    one, two, _ = three
    one.execute("DROP INDEX sole")
    one.commit()
    two.execute("INSERT INTO t VALUES (3, 10, 'c')")
    one.execute("INSERT INTO t VALUES (4, 10, 'd')")
    two.commit()
    one.commit()
    one.checkpoint()
    with pytest.raises(tique.IntegrityError):
        one.execute(INDEX)
    one.rollback()
    one.execute("DELETE FROM t WHERE u = 10")
    one.commit()
    one.execute("CREATE UNIQUE INDEX IF NOT EXISTS sole ON t (u)")
    number = one._database.catalog.find(None, "t").id
    one.execute("CREATE UNIQUE INDEX IF NOT EXISTS sole ON t (u)")
    assert one._database.catalog.find(None, "t").id == number
    one.execute("DROP INDEX IF EXISTS sole")
    one.execute("DROP INDEX IF EXISTS sole")
    with pytest.raises(tique.Error):
        one.execute("DROP INDEX sole")


def test_none_while_others_write(three):
    """P9: a transaction that has written by the keys before is not overtaken."""
    one, two, _ = three
    two.execute("INSERT INTO t VALUES (3, 30, 'c')")
    for statement in ("DROP INDEX sole", "CREATE UNIQUE INDEX pair ON t (w, u)"):
        with pytest.raises(tique.OperationalError) as caught:
            one.execute(statement)
        assert caught.value.sqlstate == "55006"
        one.rollback()
    two.commit()
    one.execute("CREATE UNIQUE INDEX pair ON t (w, u)")
    one.execute("INSERT INTO t VALUES (4, NULL, 'c')")
    with pytest.raises(tique.IntegrityError, match="violates unique constraint"):
        one.execute("INSERT INTO t VALUES (5, 30, 'c')")
    one.rollback()
    two.execute("DROP INDEX pair")


def test_on_conflict_knows_it(three):
    """P8: its columns may be named, and without a name it counts as all keys do."""
    one, *_ = three
    one.execute("CREATE UNIQUE INDEX pair ON t (w, u)")
    for target in ("(u)", "(w, u)", "(u, w)", ""):
        one.execute(
            f"INSERT INTO t VALUES (3, 10, 'a') ON CONFLICT {target} DO NOTHING"
        )
    one.execute(
        "INSERT INTO t VALUES (3, 10, 'c') ON CONFLICT (u) DO UPDATE SET w = excluded.w"
    )
    assert one.execute("SELECT * FROM t WHERE u = 10").fetchall() == [(1, 10, "c")]
    one.commit()
    one.execute("DROP INDEX sole")
    with pytest.raises(tique.ProgrammingError, match="neither the PRIMARY KEY nor"):
        one.execute("INSERT INTO t VALUES (3, 10, 'a') ON CONFLICT (u) DO NOTHING")
    one.rollback()


def test_a_foreign_key_references_its_columns(three):
    """P9: as those of a UNIQUE constraint; the index stays as long as that is there."""
    one, two, _ = three
    one.execute("CREATE TABLE c (id INTEGER PRIMARY KEY, u INTEGER REFERENCES t (u))")
    one.execute("INSERT INTO c VALUES (1, 10)")
    with pytest.raises(tique.IntegrityError):
        one.execute("INSERT INTO c VALUES (2, 11)")
    one.commit()
    with pytest.raises(tique.IntegrityError):
        one.execute("UPDATE t SET u = 11 WHERE id = 1")
    one.rollback()
    one.execute("INSERT INTO c VALUES (2, 20)")
    two.execute("DELETE FROM t WHERE id = 2")
    one.commit()
    with pytest.raises(tique.SerializationError):
        two.commit()
    two.rollback()
    with pytest.raises(tique.OperationalError, match="still needed") as caught:
        one.execute("DROP INDEX sole")
    assert caught.value.sqlstate == "2BP01"
    one.rollback()
    one.execute("DROP TABLE c")
    one.execute("DROP INDEX sole")


def test_one_of_a_keyless_table(engine):
    """P3, P9: rows without a key are told apart, and have a key all the same."""
    one, two = engine.connect(checkpoint="manual"), engine.connect()
    one.execute("CREATE TABLE k (a INTEGER, b INTEGER)")
    one.execute("INSERT INTO k VALUES (1, 1), (NULL, 2), (NULL, 2)")
    one.commit()
    one.execute("CREATE UNIQUE INDEX lone ON k (a)")
    one.execute("INSERT INTO k VALUES (2, 1)")
    two.execute("INSERT INTO k VALUES (2, 2)")
    one.commit()
    with pytest.raises(tique.SerializationError):
        two.commit()
    two.rollback()
    with pytest.raises(tique.IntegrityError, match="lone"):
        two.execute("UPDATE k SET a = 1 WHERE a = 2")
    two.rollback()
    one.checkpoint()
    assert sorted(one.execute("SELECT b FROM k").fetchall()) == [(1,), (1,), (2,), (2,)]


def test_adopted_and_detached_with_it(engine):
    """P9: an existing one is a key; names are quoted; the engine has it afterwards."""
    native = engine.native()
    native.execute(
        'CREATE TABLE t (id INTEGER PRIMARY KEY, "My ""c" INTEGER, "(x, y)" INTEGER)'
    )
    native.execute('CREATE UNIQUE INDEX "Odd ""one" ON t ("My ""c", "(x, y)")')
    native.execute("CREATE UNIQUE INDEX again ON t (id)")
    native.execute("INSERT INTO t VALUES (1, 1, 1)")
    native.close()
    assert tique.adopt(engine.url) == [f"{engine.schema}.t"]
    one, two = engine.connect(checkpoint="manual"), engine.connect()
    assert one._database.catalog.find(None, "t").unique == ((1, 2),)
    with pytest.raises(tique.IntegrityError, match='Odd "one'):
        one.execute("INSERT INTO t VALUES (2, 1, 1)")
    one.execute("INSERT INTO t VALUES (2, 1, 2)")
    two.execute("INSERT INTO t VALUES (3, 1, 2)")
    one.commit()
    with pytest.raises(tique.SerializationError):
        two.commit()
    engine.close()
    engine.let_go()
    assert tique.detach(engine.url) == [f"{engine.schema}.t"]
    native = engine.native()
    assert native.execute("SELECT * FROM t ORDER BY id").fetchall() == [
        (1, 1, 1),
        (2, 1, 2),
    ]
    with pytest.raises(engine.driver.IntegrityError):
        native.execute("INSERT INTO t VALUES (4, 1, 2)")


def test_of_two_schemas(engine, three):
    """P10: DROP INDEX concerns the index that the engine means, or nothing."""
    one, *_ = three
    one.execute("CREATE SCHEMA s")
    one.execute("CREATE TABLE s.t (id INTEGER PRIMARY KEY, u INTEGER)")
    one.execute("CREATE UNIQUE INDEX sole ON s.t (u)")
    one.execute("DROP INDEX sole")
    one.execute("INSERT INTO t VALUES (3, 10, 'c')")
    one.execute("INSERT INTO s.t VALUES (1, 1)")
    with pytest.raises(tique.IntegrityError):
        one.execute("INSERT INTO s.t VALUES (2, 1)")
    one.rollback()
    one.execute("DROP INDEX s.sole")
    one.execute("INSERT INTO s.t VALUES (1, 1), (2, 1)")
    one.rollback()
    one.execute("DROP SCHEMA s CASCADE")


@pytest.mark.written_for(["duckdb"], reason="a fault of DuckDB 1.5")
def test_a_first_fold_after_the_start(engine):
    """P4: values that are handed on, before DuckDB has bound the index to its table."""
    native = engine.native()
    native.execute(CREATE)
    native.execute("CREATE TABLE k (u INTEGER, n INTEGER)")
    for table in ("t", "k"):
        native.execute(f"CREATE UNIQUE INDEX of_{table} ON {table} (u)")
    native.execute("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b')")
    native.execute("INSERT INTO k VALUES (1, 10), (2, 20)")
    native.close()
    tique.adopt(engine.url)
    connection = engine.connect(checkpoint="manual")
    connection.execute("UPDATE t SET u = 30 - u")
    connection.execute("UPDATE k SET u = 3 - u")
    connection.commit()
    connection.checkpoint()
    assert rows(connection) == [(1, 20), (2, 10)]
