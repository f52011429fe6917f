"""Data frames: pandas, polars, Arrow and Ibis read and write through tique."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import ibis
import pandas as pd
import polars as pl
import pytest
import sqlalchemy as sa


@pytest.fixture
def database(url):
    engine = sa.create_engine(url)
    yield engine
    engine.dispose()


@pytest.fixture
def connection(engine):
    """A connection with five rows, two of which are recent versions."""
    with engine.connect() as connection:
        connection.execute(
            "CREATE TABLE sale (id INTEGER PRIMARY KEY, sold DATE, amount DECIMAL(8,2))"
        )
        connection.cursor().executemany(
            "INSERT INTO sale VALUES (%s, %s, %s)",
            [(n, date(2026, 1, n % 2 + 1), Decimal(n)) for n in range(1, 6)],
        )
        connection.checkpoint()
        connection.execute("UPDATE sale SET amount = amount + 10 WHERE id >= 4")
        connection.commit()
        yield connection


QUERY = "SELECT sold, SUM(amount) AS total FROM sale GROUP BY sold ORDER BY sold"
TOTALS = [(date(2026, 1, 1), Decimal(16)), (date(2026, 1, 2), Decimal(19))]


def test_pandas_through_a_connection(connection):
    with pytest.warns(UserWarning, match="pandas only supports SQLAlchemy"):
        frame = pd.read_sql(QUERY, connection)
    assert [*frame.itertuples(index=False, name=None)] == TOTALS


def test_pandas_through_sqlalchemy(database):
    frame = pd.DataFrame({"id": [1, 2, 3], "name": ["a", "b", None], "x": [0.5, 1, 2]})
    assert frame.to_sql("thing", database, index=False) == 3
    frame.to_sql("thing", database, index=False, if_exists="append", method="multi")
    found = pd.read_sql("SELECT * FROM thing WHERE x > 0.5 ORDER BY id", database)
    assert found["id"].tolist() == [2, 2, 3, 3]
    table = pd.read_sql_table("thing", database)
    assert (len(table), table["name"].isna().sum()) == (6, 2)
    frame.to_sql("thing", database, index=False, if_exists="replace", chunksize=2)
    assert len(pd.read_sql("thing", database)) == 3
    parts = pd.read_sql("SELECT id FROM thing ORDER BY id", database, chunksize=2)
    assert [len(part) for part in parts] == [2, 1]


def test_polars_through_a_connection(connection):
    frame = pl.read_database(QUERY, connection)
    assert frame.rows() == TOTALS
    frame = pl.read_database(
        "SELECT id FROM sale WHERE amount > %(least)s ORDER BY id",
        connection,
        execute_options={"parameters": {"least": 3}},
    )
    assert frame.rows() == [(4,), (5,)]
    batches = pl.read_database(
        "SELECT id FROM sale", connection, iter_batches=True, batch_size=2
    )
    assert sum(len(batch) for batch in batches) == 5


def test_polars_through_sqlalchemy(database):
    frame = pl.DataFrame({"id": [1, 2], "name": ["a", None]})
    assert frame.write_database("thing", database) == 2
    frame.write_database("thing", database, if_table_exists="append")
    # polars takes MonetDB's CLOB for bytes.
    found = pl.read_database(
        "SELECT * FROM thing ORDER BY id",
        database,
        schema_overrides={"name": pl.String},
    )
    assert found.rows() == [(1, "a"), (1, "a"), (2, None), (2, None)]


def test_arrow(connection):
    cursor = connection.cursor()
    table = cursor.execute(QUERY).fetch_arrow_table()
    assert [*zip(*table.to_pydict().values(), strict=True)] == TOTALS
    reader = cursor.execute("SELECT id FROM sale ORDER BY id").fetch_record_batch()
    assert reader.read_all()["id"].to_pylist() == [1, 2, 3, 4, 5]
    frame = cursor.execute("SELECT id, amount FROM sale ORDER BY id").fetch_df()
    assert frame["amount"].tolist() == [1, 2, 3, 14, 15]
    cursor.append("sale", frame.assign(id=frame["id"] + 5))
    assert connection.execute("SELECT COUNT(*) FROM sale").fetchone() == (10,)


@pytest.mark.written_for(
    ["duckdb", "postgresql"], reason="Ibis writes no SQL for MonetDB"
)
def test_ibis_writes_the_query_and_tique_runs_it(engine, connection):
    dialect = "postgres" if engine.name == "postgresql" else engine.name
    sale = ibis.table({"id": "int32", "sold": "date", "amount": "decimal"}, name="sale")
    query = (
        sale.filter(sale.id > 1)
        .group_by("sold")
        .aggregate(total=sale.amount.sum(), latest=sale.id.max())
        .order_by("sold")
    )
    cursor = connection.execute(ibis.to_sql(query, dialect=dialect))
    found = cursor.fetch_arrow_table().to_pydict()
    assert found["total"] == [Decimal(16), Decimal(18)]
    assert found["latest"] == [4, 5]
    ranked = sale.mutate(
        place=ibis.row_number().over(order_by=ibis.desc("amount")),
        share=sale.amount / sale.amount.sum(),
    ).join(sale.view(), ["sold"], how="semi")
    rows = connection.execute(ibis.to_sql(ranked, dialect=dialect)).fetchall()
    assert {row[0]: row[3] for row in rows} == {5: 0, 4: 1, 3: 2, 2: 3, 1: 4}
