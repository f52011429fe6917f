"""DuckDB's replacement scans: a Python variable is no table (P1, P10)."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tique

pytestmark = pytest.mark.written_for(["duckdb"], reason="DuckDB looks for variables")

FRAME = pa.table({"id": [99]})


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM frame",
        "FROM frame",
        "TABLE frame",
        "SELECT (SELECT max(id) FROM frame)",
        "SELECT * FROM query_table('frame')",
        "INSERT INTO t SELECT id FROM frame",
        "UPDATE t SET id = frame.id FROM frame",
        "MERGE INTO t USING frame ON t.id = frame.id WHEN NOT MATCHED THEN INSERT",
        "PIVOT frame ON id",
        "DESCRIBE frame",
        "SUMMARIZE frame",
        "COPY frame TO '{folder}/frame.csv'",
        "CREATE VIEW v AS SELECT * FROM frame",
    ],
)
def test_a_variable_is_no_table(engine, tmp_path, query):
    frame = FRAME
    connection = engine.connect()
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    with pytest.raises((tique.ProgrammingError, tique.NotSupportedError)):
        connection.execute(query.format(folder=tmp_path))
    assert connection.execute("SELECT * FROM t").fetchall() == []
    assert frame.num_rows == 1


def test_a_variable_with_a_tables_name(engine):
    """The table is read, dropped or not; its rows are not the variable's."""
    t = FRAME
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO t VALUES (1)")
    assert connection.execute("SELECT * FROM t").fetchall() == [(1,)]
    connection.commit()
    connection.checkpoint()
    assert connection.execute("SELECT max(id) FROM t").fetchall() == [(1,)]
    connection.commit()
    connection.execute("DROP TABLE t")
    with pytest.raises(tique.ProgrammingError):
        connection.execute("SELECT * FROM t")
    assert t.num_rows == 1
