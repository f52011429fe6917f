"""Results for pandas, polars and pyarrow, and what these read by themselves."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pandas
import polars
import pyarrow
import pytest

import tique
from tests.portable import numbers

pytestmark = pytest.mark.fresh_tables

ALL = "SELECT id, name, price FROM t ORDER BY id"


@pytest.fixture
def connection(engine):
    connection = engine.connect()
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(20), price DECIMAL(8,2))"
    )
    connection.execute(
        f"INSERT INTO t SELECT number, 'n' || number, number FROM {numbers(2500)}"
    )
    connection.commit()
    connection.execute("UPDATE t SET name = 'own' WHERE id = 1")
    return connection


@pytest.mark.parametrize("name", ["", "named"])
def test_record_batches(connection, name):
    """P1: all rows once, in batches, also those that were written just now."""
    with connection.cursor(name) as cursor:
        cursor.execute(ALL)
        assert cursor.fetchone() == (0, "n0", Decimal("0.00"))
        reader = cursor.fetch_record_batch(1000)
        assert isinstance(reader, pyarrow.RecordBatchReader)
        assert reader.schema.names == ["id", "name", "price"]
        assert pyarrow.types.is_integer(reader.schema.field("id").type)
        batches = []
        for batch in reader:
            batches.append(batch)
            connection.execute("UPDATE t SET name = 'later'")
        assert [batch.num_rows for batch in batches] == [1000, 1000, 499]
        table = pyarrow.Table.from_batches(batches)
        assert table["id"].to_pylist() == list(range(1, 2500))
        assert table["name"].to_pylist()[:2] == ["own", "n2"]
        assert table["price"].to_pylist()[-1] == Decimal("2499.00")
        assert cursor.fetchall() == []


def test_a_batch_of_nothing(connection):
    cursor = connection.execute("SELECT id FROM t WHERE id < 0")
    reader = cursor.fetch_record_batch()
    assert reader.read_all().num_rows == 0
    with pytest.raises(tique.ProgrammingError, match="below 1"):
        cursor.fetch_record_batch(0)
    with pytest.raises(tique.ProgrammingError, match="no result"):
        connection.cursor().fetch_record_batch()


def test_a_reader_whose_result_is_gone(connection):
    """P10: it does not go on with the rows of another statement."""
    cursor = connection.execute(ALL)
    reader = cursor.fetch_record_batch(10)
    cursor.execute("SELECT 1")
    with pytest.raises(tique.ProgrammingError, match="another statement"):
        reader.read_all()
    reader = cursor.execute(ALL).fetch_record_batch(10)
    cursor.close()
    with pytest.raises(tique.InterfaceError, match="closed"):
        reader.read_all()


@pytest.mark.written_for(["postgresql"], reason="a NUMERIC without digits")
def test_types_that_differ_between_batches(connection):
    """P10: a value is not rounded to the digits of those before it."""
    query = "SELECT CAST(%s AS NUMERIC) UNION ALL SELECT CAST(%s AS NUMERIC)"
    cursor = connection.execute(query, (Decimal("1.25"), Decimal("2.5")))
    values = cursor.fetch_record_batch(1).read_all().column(0).to_pylist()
    assert values == [Decimal("1.25"), Decimal("2.50")]
    cursor.execute(query, (Decimal("1.2"), Decimal("2.345")))
    with pytest.raises(tique.DataError, match="CAST"):
        cursor.fetch_record_batch(1).read_all()


def test_data_frames(connection):
    cursor = connection.cursor()
    frame = cursor.execute(ALL).fetch_df()
    assert list(frame.columns) == ["id", "name", "price"]
    assert (len(frame), frame["name"][1]) == (2500, "own")
    assert frame["id"].sum() == sum(range(2500))
    frame = cursor.execute(ALL).fetch_polars()
    assert frame.shape == (2500, 3)
    assert frame["id"].sum() == sum(range(2500))

    async def main():
        async with await tique.AsyncConnection.connect(url) as connection:
            cursor = await connection.execute("SELECT count(*) AS n FROM t")
            assert (await cursor.fetch_df())["n"][0] == 2500
            await cursor.execute("SELECT count(*) AS n FROM t")
            assert (await cursor.fetch_polars())["n"][0] == 2500

    url = connection._database.url
    connection.close()
    asyncio.run(main())


def test_pandas_reads(connection):
    """Pandas knows tique by PEP 249 only, and warns that it has not tested that."""
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        frame = pandas.read_sql(ALL, connection)
    assert list(frame.columns) == ["id", "name", "price"]
    assert (len(frame), frame["name"][1]) == (2500, "own")
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        frame = pandas.read_sql_query(
            "SELECT id FROM t WHERE id < %s", connection, params=(3,), index_col="id"
        )
    assert sorted(frame.index) == [0, 1, 2]
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        pieces = list(pandas.read_sql(ALL, connection, chunksize=1000))
    assert [len(piece) for piece in pieces] == [1000, 1000, 500]


def test_pandas_writes(connection):
    """By ``append``, of which ``to_sql`` knows nothing."""
    frame = pandas.DataFrame({"id": [5000, 5001], "name": ["a", None]})
    connection.cursor().append("t", frame)
    query = "SELECT id, name FROM t WHERE id >= 5000 ORDER BY id"
    assert connection.execute(query).fetchall() == [(5000, "a"), (5001, None)]


def test_polars_reads(connection):
    frame = polars.read_database(ALL, connection)
    assert frame.columns == ["id", "name", "price"]
    assert (frame.height, frame["name"][1]) == (2500, "own")
    frame = polars.read_database(
        "SELECT id FROM t WHERE id < %s ORDER BY id",
        connection,
        execute_options={"parameters": (3,)},
    )
    assert frame["id"].to_list() == [0, 1, 2]
    frame = polars.read_database(ALL, connection.cursor())
    assert frame["id"].sum() == sum(range(2500))
