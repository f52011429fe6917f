"""DuckDB's replacement scans: a Python variable in the place of a table (P1, P10)."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tique

pytestmark = pytest.mark.written_for(["duckdb"], reason="DuckDB looks for variables")

FRAME = pa.table({"id": [99]})
NUMBER = 5


@pytest.fixture
def one(engine):
    opened = engine.connect(checkpoint="manual")
    opened.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, s VARCHAR)")
    opened.execute("INSERT INTO t VALUES (1, 'a'), (99, 'b')")
    opened.commit()
    return opened


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM frame", [(99,)]),
        ("FROM frame", [(99,)]),
        ("TABLE frame", [(99,)]),
        ('SELECT f.id FROM "frame" AS f', [(99,)]),
        ("SELECT (SELECT max(id) FROM frame)", [(99,)]),
        ("SELECT s FROM t JOIN frame USING (id)", [("b",)]),
        ("WITH x AS (SELECT id + 1 AS n FROM frame) SELECT n FROM x", [(100,)]),
        ("SELECT count(*) FROM frame AS a, frame AS b, FRAME AS c", [(1,)]),
        ("SELECT id FROM t EXCEPT SELECT id FROM frame", [(1,)]),
    ],
)
def test_a_variable_of_the_calling_function(one, query, expected):
    frame = FRAME
    assert one.execute(query).fetchall() == expected
    # The statement's transaction goes on.
    one.execute("INSERT INTO t VALUES (2, 'c')")
    assert one.execute(query).fetchall() != []
    one.commit()
    assert frame.num_rows == 1


def test_a_variable_of_the_module(one):
    assert one.execute("SELECT id + %s FROM FRAME", (1,)).fetchall() == [(100,)]
    with pytest.raises(tique.ProgrammingError, match="unknown table"):
        one.execute("SELECT * FROM NUMBER").fetchall()


def test_every_kind_of_data(one):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": [3, 4], "s": ["x", None]})
    batch = pa.RecordBatch.from_pydict({"id": [7]})
    assert one.execute("SELECT * FROM frame ORDER BY id").fetchall() == [
        (3, "x"),
        (4, None),
    ]
    assert one.execute(
        "SELECT frame.id, batch.id FROM frame, batch ORDER BY 1"
    ).fetchall() == [
        (3, 7),
        (4, 7),
    ]
    stream = pa.RecordBatchReader.from_batches(batch.schema, [batch])
    with pytest.raises(tique.NotSupportedError, match="stream"):
        one.execute("SELECT * FROM stream").fetchall()
    assert stream.read_all().num_rows == len(frame) - 1


def test_changes_read_it(engine, one):
    """P8, P9: the rows are written like any others."""
    frame = pa.table({"id": [5, 6], "s": ["x", "y"]})
    one.execute("INSERT INTO t SELECT * FROM frame")
    one.execute("UPDATE t SET s = frame.s || '!' FROM frame WHERE frame.id = t.id")
    one.execute("DELETE FROM t WHERE id IN (SELECT id FROM frame WHERE s = 'y')")
    one.execute(
        "MERGE INTO t USING frame ON t.id = frame.id "
        "WHEN NOT MATCHED THEN INSERT VALUES (frame.id, 'm')"
    )
    with pytest.raises(tique.IntegrityError):
        one.execute("INSERT INTO t SELECT * FROM frame")
    assert one.execute(
        "SELECT * FROM t WHERE id BETWEEN 5 AND 6 ORDER BY id"
    ).fetchall() == [
        (5, "x!"),
        (6, "m"),
    ]
    one.commit()
    one.execute("CREATE TABLE made AS SELECT * FROM frame")
    assert frame.num_rows == 2
    one.commit()
    engine.close()
    again = engine.connect()
    assert again.execute("SELECT * FROM made ORDER BY id").fetchall() == [
        (5, "x"),
        (6, "y"),
    ]


def test_a_copy_of_it(one, tmp_path):
    frame = pa.table({"id": [5, 6]})
    one.execute(f"COPY (SELECT id FROM frame) TO '{tmp_path}/frame.csv'")
    assert (tmp_path / "frame.csv").read_text() == "id\n5\n6\n"
    assert frame.num_rows == 2


def test_the_data_of_each_execution(one):
    """P1: the same text, with other data, and with none."""
    for number in (1, 2):
        frame = pa.table({"id": [number]})
        assert one.execute("SELECT id FROM frame").fetchall() == [(number,)]
    del frame
    with pytest.raises(tique.ProgrammingError, match='unknown table "frame"'):
        one.execute("SELECT id FROM frame").fetchall()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM query_table('frame')",
        "SELECT * FROM main.frame",
        "INSERT INTO frame VALUES (1)",
        "UPDATE frame SET id = 1",
        "DESCRIBE frame",
        "SUMMARIZE frame",
        "COPY frame TO '{folder}/frame.csv'",
        "CREATE VIEW v AS SELECT * FROM frame",
        "EXPLAIN SELECT * FROM frame",
        "PREPARE p AS SELECT * FROM frame",
        "SELECT * FROM sys",
        "SELECT * FROM tique_variable_0",
    ],
)
def test_where_a_variable_is_no_table(one, tmp_path, query):
    """P10: what lasts, and what is changed, is the database's."""
    frame = FRAME
    with pytest.raises((tique.ProgrammingError, tique.NotSupportedError)):
        one.execute(query.format(folder=tmp_path))
    one.rollback()
    assert len(one.execute("SELECT * FROM t").fetchall()) == 2
    assert frame.num_rows == 1


def test_a_variable_with_a_tables_name(one):
    """The table is read; its rows are not the variable's."""
    t = FRAME
    assert len(one.execute("SELECT * FROM t").fetchall()) == 2
    one.commit()
    one.checkpoint()
    assert one.execute("SELECT max(s) FROM t").fetchall() == [("b",)]
    one.execute("CREATE VIEW frame AS SELECT 3 AS id")
    frame = t
    assert one.execute("SELECT * FROM frame").fetchall() == [(3,)]
    one.commit()
    one.execute("DROP TABLE t")
    assert one.execute("SELECT * FROM t").fetchall() == [(99,)]
    assert frame.num_rows == 1


def test_switched_off(engine, one):
    frame = FRAME
    two = engine.connect(python_variables=False)
    with pytest.raises(tique.ProgrammingError, match="unknown table"):
        two.execute("SELECT * FROM frame").fetchall()
    assert one.execute("SELECT * FROM frame").fetchall() == [(99,)]
    assert frame.num_rows == 1


def test_nothing_of_it_is_left(one):
    """P11: after an error, too."""
    frame = pa.table({"id": ["x"]})
    with pytest.raises(tique.DataError):
        one.execute("SELECT CAST(id AS INTEGER) FROM frame").fetchall()
    one.rollback()
    assert one.execute("SELECT id FROM frame").fetchall() == [("x",)]
    one.commit()
    one.autocommit = True
    assert one.execute("SELECT id FROM frame").fetchall() == [("x",)]
    assert (
        one.execute(
            "SELECT view_name FROM duckdb_views() WHERE view_name LIKE 'tique%'"
        ).fetchall()
        == []
    )
    assert frame.num_rows == 1
