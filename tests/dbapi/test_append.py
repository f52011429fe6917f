"""cursor.append(): rows in columns, checked and converted as those of INSERT (P4, P5, P9)."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pandas
import polars
import pyarrow as pa
import pytest

import tique
from tests.portable import numbers
from tique import errors

pytestmark = pytest.mark.fresh_tables

NO_CHECKS = pytest.mark.never(
    ["monetdb"], raises=pytest.fail.Exception, reason="MonetDB 11.41 has no CHECK"
)


@pytest.fixture
def connection(engine):
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE team (id INTEGER PRIMARY KEY)")
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(30) UNIQUE, "
        f"n DECIMAL(10,2) DEFAULT 5 NOT NULL {engine.check('n >= 0')}, "
        "team INTEGER REFERENCES team (id))"
    )
    connection.execute("INSERT INTO team VALUES (1), (2)")
    connection.execute("INSERT INTO t VALUES (1, 'one', 1, 1)")
    connection.commit()
    return connection


def content(connection, where="id < 1000000"):
    return connection.execute(
        f"SELECT id, name, n, team FROM t WHERE {where} ORDER BY id"
    ).fetchall()


@pytest.mark.parametrize("count", [1, 50, 5000])
def test_rows(engine, connection, count):
    """P5, P8: one statement, seen at once, a part of the transaction."""
    data = pa.table(
        {
            "NAME": [f"n{i}" for i in range(count)],
            "team": pa.array([1 + i % 2 if i % 3 else None for i in range(count)]),
            "id": pa.array(range(10, 10 + count), pa.int64()),
        }
    )
    old = [(1, "one", Decimal(1), 1)]
    new = [
        (10 + i, f"n{i}", Decimal(5), 1 + i % 2 if i % 3 else None)
        for i in range(count)
    ]
    cursor = connection.cursor()
    assert cursor.append("t", data) is cursor
    assert cursor.rowcount == count
    assert cursor.description is None
    assert content(connection) == old + new
    assert content(engine.connect(checkpoint="manual")) == old
    connection.rollback()
    assert content(connection) == old
    cursor.append("t", data)
    connection.commit()
    assert content(connection) == old + new
    connection.commit()
    connection.checkpoint()
    assert content(connection) == old + new
    assert content(engine.connect(checkpoint="manual")) == old + new


@pytest.mark.parametrize("many", [False, True], ids=["few", "staged"])
@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"id": [2, 1]}, errors.UniqueViolation),
        ({"id": [2, 2]}, errors.UniqueViolation),
        ({"id": [2, None]}, errors.NotNullViolation),
        ({"id": [2, 3], "name": ["x", "one"]}, errors.UniqueViolation),
        ({"id": [2, 3], "name": ["x", "x"]}, errors.UniqueViolation),
        ({"id": [2, 3], "n": [1, None]}, errors.NotNullViolation),
        pytest.param(
            {"id": [2, 3], "n": [1, -1]}, errors.CheckViolation, marks=NO_CHECKS
        ),
        ({"id": [2, 3], "team": [1, 3]}, errors.ForeignKeyViolation),
        ({"id": [2, 1 << 40]}, tique.DataError),
    ],
)
def test_all_or_nothing(connection, wrong, error, many):
    """P5, P9: a wrong row undoes all, and nothing but this statement."""
    if many:
        more = range(100, 3100)
        wrong = {
            name: [
                *values,
                *(
                    more
                    if name == "id"
                    else [None if name != "n" else Decimal(1)] * len(more)
                ),
            ]
            for name, values in wrong.items()
        }
    connection.execute("INSERT INTO t (id) VALUES (9)")
    before = content(connection)
    with pytest.raises(error):
        connection.cursor().append("t", pa.table(wrong))
    assert content(connection) == before
    connection.commit()
    assert content(connection) == before


def test_savepoints(connection):
    connection.cursor().append("t", pa.table({"id": [2]}))
    connection.execute("SAVEPOINT s")
    connection.cursor().append("t", pa.table({"id": list(range(10, 3000))}))
    connection.execute("ROLLBACK TO s")
    connection.cursor().append("t", pa.table({"id": [3]}))
    connection.commit()
    assert [row[0] for row in content(connection)] == [1, 2, 3]


@pytest.mark.parametrize("count", [1, 3000])
def test_conflicts(engine, connection, count):
    """P3: an appended key is a key of the write set."""
    one, other = (engine.connect(checkpoint="manual") for _ in range(2))
    other.execute("SELECT 1")
    other.cursor().append("t", pa.table({"id": list(range(7, 7 + count))}))
    one.execute("INSERT INTO t (id) VALUES (7)")
    one.commit()
    with pytest.raises(tique.SerializationError):
        other.commit()
    assert [row[0] for row in content(connection)] == [1, 7]


def test_forms_of_data(connection):
    """Tables, batches, readers, and what exports an Arrow stream."""
    batch = pa.record_batch({"id": [2, 3], "name": ["a", "b"]})

    class Exporter:
        def __arrow_c_stream__(self, requested_schema=None):
            table = pa.table({"id": [8], "name": pa.array(["h"], pa.large_string())})
            return table.__arrow_c_stream__(requested_schema)

    later = pa.record_batch({"id": [4], "name": ["c"]})
    reader = pa.RecordBatchReader.from_batches(later.schema, [later])
    cursor = connection.cursor()
    for data, count in (
        (batch, 2),
        (reader, 1),
        (Exporter(), 1),
        (pa.table({"id": pa.array([], pa.int32())}), 0),
        (pa.table({"id": [5], "name": pa.array(["d"]).dictionary_encode()}), 1),
        (pa.table({"id": [6], "name": pa.nulls(1), "n": pa.array([7], pa.int8())}), 1),
    ):
        assert cursor.append("t", data).rowcount == count
    assert content(connection, "id > 1") == [
        (2, "a", 5, None),
        (3, "b", 5, None),
        (4, "c", 5, None),
        (5, "d", 5, None),
        (6, None, 7, None),
        (8, "h", 5, None),
    ]


@pytest.mark.parametrize("library", [pandas, polars], ids=["pandas", "polars"])
def test_data_frames(connection, library):
    frame = library.DataFrame({"id": [2, 3], "name": ["a", None]})
    if library is pandas:
        frame.index = ["x", "y"]
    connection.cursor().append("t", frame)
    assert content(connection, "id > 1") == [(2, "a", 5, None), (3, None, 5, None)]


def test_wrong_names_and_data(engine, connection):
    cursor = connection.cursor()
    row = pa.table({"id": [2]})
    cursor.append("T", row, schema=engine.schema)
    for table, data, error, state in (
        ("nothing", row, tique.ProgrammingError, "42P01"),
        ("t; DROP TABLE t", row, tique.ProgrammingError, "42P01"),
        ("t", pa.table({"id": [3], "x": [1]}), tique.ProgrammingError, "42703"),
        ("t", pa.table({"id": [3], "ID": [4]}), tique.ProgrammingError, "42701"),
        ("t", pa.table({}), tique.ProgrammingError, None),
        ("t", [(1,)], tique.InterfaceError, None),
    ):
        with pytest.raises(error) as caught:
            cursor.append(table, data)
        if state is not None:
            assert caught.value.sqlstate == state
    with pytest.raises(tique.ProgrammingError):
        cursor.append("t", row, schema="tique")
    cursor.close()
    with pytest.raises(tique.InterfaceError):
        cursor.append("t", row)
    assert [row[0] for row in content(connection)] == [1, 2]


def test_names_that_are_quoted(connection):
    connection.execute(
        'CREATE TABLE "a ""b"" %s" ("x; y" INTEGER PRIMARY KEY, "p %s" VARCHAR(9))'
    )
    connection.cursor().append(
        'a "b" %s', pa.table({"x; y": [1, 2], "p %s": ["'; --", None]})
    )
    rows = connection.execute('SELECT * FROM "a ""b"" %s" ORDER BY 1').fetchall()
    assert rows == [(1, "'; --"), (2, None)]


def test_autocommit_and_read_only(engine, connection):
    connection.autocommit = True
    connection.cursor().append("t", pa.table({"id": [2]}))
    with pytest.raises(errors.UniqueViolation):
        connection.cursor().append("t", pa.table({"id": [3, 2]}))
    other = engine.connect(checkpoint="manual")
    assert [row[0] for row in content(other)] == [1, 2]
    other.rollback()
    other.execute("BEGIN TRANSACTION READ ONLY")
    with pytest.raises(tique.OperationalError):
        other.cursor().append("t", pa.table({"id": [5]}))


def test_types(engine):
    connection = engine.connect()
    connection.execute(
        "CREATE TABLE k (id INTEGER PRIMARY KEY, a DATE, b TIMESTAMP, "
        f"c DOUBLE PRECISION, d BOOLEAN, e {engine.binary}, f BIGINT, "
        "g DECIMAL(18,3), h TEXT)"
    )
    values = [
        *(1, date(2024, 2, 29), datetime(2024, 1, 1, 1, 2, 3, 456789), -0.5, True),
        *(b"\x00\xff'", -(2**63) + 1, Decimal("123456789012345.678"), "é'\\%s"),
    ]
    data = pa.table(
        {
            name: pa.array([v, None])
            for name, v in zip("abcdefgh", values[1:], strict=True)
        }
    )
    data = data.append_column("id", pa.array([1, 2]))
    nanoseconds = data.column("b").cast(pa.timestamp("ns"))
    data = data.set_column(data.column_names.index("b"), "b", nanoseconds)
    connection.cursor().append("k", data)
    rows = connection.execute("SELECT * FROM k ORDER BY id").fetchall()
    assert rows == [tuple(values), (2, *[None] * 8)]
    odd = pa.array([datetime(2024, 1, 1)]).cast(pa.timestamp("ns")).view(pa.int64())
    odd = pa.array([odd[0].as_py() + 1]).view(pa.timestamp("ns"))
    with pytest.raises(tique.DataError, match="lose data"):
        connection.cursor().append("k", pa.table({"id": [3], "b": odd}))


def test_a_table_without_a_key(connection):
    connection.execute("CREATE TABLE b (x INTEGER, y TEXT)")
    data = pa.table({"x": [1, 1, None], "y": ["a", "a", None]})
    connection.cursor().append("b", data)
    connection.execute(f"INSERT INTO b SELECT number, 'm' FROM {numbers(2100)}")
    connection.cursor().append("b", data)
    connection.commit()
    rows = connection.execute("SELECT * FROM b WHERE y = 'a' OR y IS NULL").fetchall()
    assert sorted(rows, key=repr) == [(1, "a")] * 4 + [(None, None)] * 2
