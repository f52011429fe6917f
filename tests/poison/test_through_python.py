"""P4, P10: values that change, or cannot be read, on their way through Python's types."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.written_for(["duckdb"], reason="its types and literals")


def test_a_decimal_of_many_places_is_read_back_from_the_log(engine):
    """Python writes it as 1E-18, which DuckDB does not cast to so many places."""
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (a DECIMAL(18,18) PRIMARY KEY, b DECIMAL(9,9))")
    connection.execute("INSERT INTO t VALUES (1e-18, -1e-9), (1.5e-8, 0)")
    connection.commit()
    query = "SELECT CAST(a AS VARCHAR), CAST(b AS VARCHAR) FROM t ORDER BY a"
    rows = [
        (".000000000000000001", "-.000000001"),
        (".000000015000000000", ".000000000"),
    ]
    assert connection.execute(query).fetchall() == rows
    engine.close()
    assert engine.connect().execute(query).fetchall() == rows
    assert engine.native().execute(query).fetchall() == rows


@pytest.mark.parametrize("type_", ["DATE", "TIMESTAMP"])
def test_an_update_may_compute_an_infinite_date(engine, type_):
    """It comes as the first or last date that Python has: so it is not buffered."""
    connection = engine.connect(checkpoint="manual")
    for key in ("", "PRIMARY KEY"):
        connection.execute(f"CREATE TABLE t (id INTEGER {key}, v {type_})")
        connection.execute(f"INSERT INTO t VALUES (0, {type_} '2020-01-01'), (1, NULL)")
        connection.commit()
        connection.execute("UPDATE t SET v = '-infinity' WHERE id = 0")
        connection.execute("UPDATE t SET v = CAST('infinity' AS DATE) WHERE id + 0 = 1")
        connection.commit()
        query = "SELECT CAST(v AS VARCHAR) FROM t ORDER BY id"
        expected = [("-infinity",), ("infinity",)]
        assert connection.execute(query).fetchall() == expected
        connection.rollback()
        connection.checkpoint()
        assert connection.execute(query).fetchall() == expected
        connection.rollback()
        connection.execute("DROP TABLE t")
