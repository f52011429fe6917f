"""NULLS NOT DISTINCT: unique keys in which NULL is equal to NULL (P3, P9)."""

from __future__ import annotations

from functools import partial

import pytest

import tique

pytestmark = pytest.mark.written_for(
    ["postgresql"], reason="no other engine has NULLS NOT DISTINCT"
)

COLUMNS = "id INTEGER PRIMARY KEY, a INTEGER, b TEXT"
WAYS = {
    "of the table": [
        f"CREATE TABLE t ({COLUMNS}, CONSTRAINT sole UNIQUE NULLS NOT DISTINCT (a, b))"
    ],
    "added": [
        f"CREATE TABLE t ({COLUMNS})",
        "ALTER TABLE t ADD CONSTRAINT sole UNIQUE NULLS NOT DISTINCT (a, b)",
    ],
    "index": [
        f"CREATE TABLE t ({COLUMNS})",
        "CREATE UNIQUE INDEX sole ON t (a, b) NULLS NOT DISTINCT",
    ],
    "from an index": [
        f"CREATE TABLE t ({COLUMNS})",
        "CREATE UNIQUE INDEX of_columns ON t (a, b) NULLS NOT DISTINCT",
        "ALTER TABLE t ADD CONSTRAINT sole UNIQUE USING INDEX of_columns",
    ],
}


@pytest.fixture(params=["memory", "query"])
def connect(request, engine):
    return partial(engine.connect, certifier=request.param, checkpoint="manual")


@pytest.fixture(params=WAYS)
def two(request, connect):
    one = connect()
    for statement in WAYS[request.param]:
        one.execute(statement)
        one.commit()
    one.execute("INSERT INTO t VALUES (1, NULL, NULL), (2, 1, NULL), (3, NULL, 'x')")
    one.commit()
    return one, connect()


def rows(connection):
    found = connection.execute("SELECT * FROM t ORDER BY id").fetchall()
    connection.rollback()
    return found


START = [(1, None, None), (2, 1, None), (3, None, "x")]


def test_equal_nulls_are_duplicates(engine, two):
    """P9: of recent rows, of the transaction's own, and of storage's."""
    one, _ = two
    for _ in range(2):
        for statement in (
            "INSERT INTO t VALUES (4, NULL, NULL)",
            "INSERT INTO t VALUES (4, 1, NULL)",
            "UPDATE t SET a = NULL WHERE id = 2",
            "INSERT INTO t VALUES (4, 5, NULL), (5, 5, NULL)",
            "UPDATE t SET a = NULL, b = NULL",
        ):
            with pytest.raises(tique.errors.UniqueViolation, match="sole"):
                one.execute(statement)
            one.rollback()
        one.checkpoint()
    one.execute("INSERT INTO t VALUES (4, 1, 'x'), (5, 2, NULL)")
    one.execute("UPDATE t SET a = CASE WHEN id = 1 THEN 1 END WHERE id < 3")
    one.commit()
    one.checkpoint()
    engine.close()
    swapped = [(1, 1, None), (2, None, None), (3, None, "x")]
    assert rows(engine.connect()) == [*swapped, (4, 1, "x"), (5, 2, None)]


def test_of_two_that_write_equal_nulls_one_commits(two):
    """P3: NULL is in the write set."""
    one, other = two
    one.execute("INSERT INTO t VALUES (4, 7, NULL)")
    other.execute("INSERT INTO t VALUES (5, 7, NULL)")
    one.commit()
    with pytest.raises(tique.SerializationError):
        other.commit()
    other.execute("DELETE FROM t WHERE id = 1")
    one.execute("UPDATE t SET a = NULL WHERE id = 3")
    one.execute("INSERT INTO t VALUES (6, 8, NULL)")
    one.commit()
    other.commit()
    other.execute("INSERT INTO t VALUES (7, NULL, NULL)")
    other.commit()
    assert [row[0] for row in rows(one)] == [2, 3, 4, 6, 7]


@pytest.mark.parametrize("target", ["(a, b)", "(b, a)", ""])
def test_on_conflict_meets_equal_nulls(two, target):
    one, _ = two
    insert = f"INSERT INTO t VALUES (4, NULL, NULL), (5, 5, NULL) ON CONFLICT {target}"
    one.execute(f"{insert} DO NOTHING")
    one.commit()
    assert rows(one) == [*START, (5, 5, None)]
    if target:
        for row in ("(6, NULL, 'x')", "(7, 7, 'y')"):
            one.execute(
                f"INSERT INTO t VALUES {row} ON CONFLICT {target} "
                "DO UPDATE SET b = excluded.b || t.id"
            )
        one.commit()
        assert rows(one)[2:] == [(3, None, "x3"), (5, 5, None), (7, 7, "y")]


@pytest.mark.parametrize("way", WAYS)
def test_on_conflict_on_the_constraint(connect, way):
    """P8: PostgreSQL takes no index's name there, and neither does tique."""
    one = connect()
    for statement in WAYS[way]:
        one.execute(statement)
        one.commit()
    one.execute("INSERT INTO t VALUES (1, NULL, NULL)")
    one.commit()
    insert = (
        "INSERT INTO t VALUES (2, NULL, NULL) ON CONFLICT ON CONSTRAINT sole "
        "DO UPDATE SET id = 3"
    )
    if way == "index":
        with pytest.raises(tique.ProgrammingError, match='"sole" is the name of no'):
            one.execute(insert)
    else:
        one.execute(insert)
        one.commit()
        assert rows(one) == [(3, None, None)]


def test_it_is_dropped(two):
    one, _ = two
    try:
        one.execute("ALTER TABLE t DROP CONSTRAINT sole")
    except tique.ProgrammingError:
        one.rollback()
        one.execute("DROP INDEX sole")
    one.commit()
    one.execute("INSERT INTO t VALUES (4, NULL, NULL)")
    one.commit()
    one.checkpoint()
    assert len(rows(one)) == 4


def test_it_is_adopted_and_kept(engine):
    native = engine.native()
    native.execute(WAYS["of the table"][0])
    native.execute("INSERT INTO t VALUES (1, NULL, NULL)")
    native.close()
    assert tique.adopt(engine.url) == ["public.t"]
    one = engine.connect()
    with pytest.raises(tique.errors.UniqueViolation):
        one.execute("INSERT INTO t VALUES (2, NULL, NULL)")
    one.rollback()
    one.execute("INSERT INTO t VALUES (2, NULL, 'x')")
    one.commit()
    engine.close()
    engine.let_go()
    assert tique.detach(engine.url) == ["public.t"]
    native = engine.native()
    with pytest.raises(engine.driver.IntegrityError):
        native.execute("INSERT INTO t VALUES (3, NULL, 'x')")


def test_no_foreign_key_names_it(engine):
    native = engine.native()
    native.execute("CREATE TABLE p (a INTEGER UNIQUE NULLS NOT DISTINCT)")
    native.execute("CREATE TABLE c (a INTEGER CONSTRAINT up REFERENCES p (a))")
    with pytest.raises(tique.NotSupportedError, match="in which NULLs differ"):
        tique.adopt(engine.url)
    native.execute("DROP TABLE c")
    native.close()
    assert tique.adopt(engine.url) == ["public.p"]
    one = engine.connect()
    with pytest.raises(tique.ProgrammingError, match="no PRIMARY KEY or UNIQUE key"):
        one.execute("CREATE TABLE c (a INTEGER REFERENCES p (a))")


@pytest.mark.slow
def test_many_types(connect):
    """P9: values of every type are equal as their type says."""
    one, other = connect(), connect()
    for number, (kind, value, equal) in enumerate(
        [
            ("NUMERIC", "1.5", "1.50"),
            ("DOUBLE PRECISION", "0", "-0"),
            ("TEXT", "'a'", "'a'"),
            ("BYTEA", "'a'", "'a'"),
            ("UUID", f"'{'0' * 32}'", f"'{'0' * 32}'"),
            ("JSONB", "'{\"a\": 1}'", "'{\"a\":1}'"),
            ("INT4RANGE", "'[1,3)'", "'[1,2]'"),
            ("TIMESTAMPTZ", "'2020-01-01 00:00+00'", "'2020-01-01 01:00+01'"),
            ("INTERVAL", "'1 month'", "'30 days'"),
        ]
    ):
        name = f"t{number}"
        one.execute(
            f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, v {kind} "
            "UNIQUE NULLS NOT DISTINCT)"
        )
        one.execute(f"INSERT INTO {name} VALUES (1, {value}), (2, NULL)")
        one.commit()
        for again in (equal, "NULL"):
            with pytest.raises(tique.errors.UniqueViolation):
                one.execute(f"INSERT INTO {name} VALUES (3, {again})")
            one.rollback()
        for given, again in ((value, equal), ("NULL", "NULL")):
            one.execute(f"DELETE FROM {name}")
            one.commit()
            one.execute(f"INSERT INTO {name} VALUES (3, {given})")
            other.execute(f"INSERT INTO {name} VALUES (5, {again})")
            one.commit()
            with pytest.raises(tique.SerializationError):
                other.commit()


def test_none_of_arrays(connect):
    """An array of one NULL array is empty, as one of an empty array is."""
    one = connect()
    for statement in (
        "CREATE TABLE t (a INTEGER[] UNIQUE NULLS NOT DISTINCT)",
        "CREATE TABLE t (a INTEGER, b TEXT[], UNIQUE NULLS NOT DISTINCT (a, b))",
    ):
        with pytest.raises(tique.NotSupportedError, match="of arrays in which NULL"):
            one.execute(statement)
        one.rollback()
