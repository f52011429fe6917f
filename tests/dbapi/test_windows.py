"""Windows over all rows of a table that is read in two parts (P1).

An engine's fault here is a crash, so everything is done in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.fresh_tables

ROWS = {
    "storage is empty": ([], [1, 2, 3]),
    "the filter leaves only recent ones": ([-1, -2], [1, 2, 3]),
    "the filter leaves only stored ones": ([1, 2, 3], [-1]),
}
# Without an order any row may be the first.
CHILD = """
import json, sys, tique

WINDOWS = {
    "dense_rank() OVER ()": [1, 1, 1],
    "dense_rank() OVER w": [1, 1, 1],
    "dense_rank() OVER (ROWS UNBOUNDED PRECEDING)": [1, 1, 1],
    "count(*) OVER (ROWS UNBOUNDED PRECEDING)": [1, 2, 3],
    "CASE WHEN lead(i) OVER () IS NULL THEN 1 ELSE 2 END": [1, 2, 2],
}
with tique.connect(sys.argv[1], checkpoint="manual") as connection:
    connection.execute("CREATE TABLE keyed (i INTEGER PRIMARY KEY, j INTEGER)")
    connection.execute("CREATE TABLE bag (i INTEGER, j INTEGER)")
    for values in json.loads(sys.argv[2]):
        connection.checkpoint()
        for i in values:
            for table in ("keyed", "bag"):
                connection.execute(f"INSERT INTO {table} VALUES (%s, %s)", (i, i))
        connection.commit()
    for table in ("keyed", "bag"):
        for window, expected in WINDOWS.items():
            sql = f"SELECT {window} AS w, i, j FROM {table} WHERE i > 0 WINDOW w AS ()"
            print(table, window, file=sys.stderr, flush=True)
            for _ in range(200):
                rows = connection.execute(sql).fetchall()
                assert sorted(row[0] for row in rows) == expected, rows
                assert sorted(row[1:] for row in rows) == [(1, 1), (2, 2), (3, 3)]
    # Beside a semi join the function itself is refused, and the refusal's remedy works.
    sql = "SELECT dense_rank() OVER ({}) FROM keyed WHERE i IN (SELECT i FROM bag)"
    try:
        connection.execute(sql.format(""))
        raise AssertionError("it is not refused")
    except tique.NotSupportedError as error:
        assert "(PARTITION BY 1)" in str(error), error
    for _ in range(200):
        assert connection.execute(sql.format("PARTITION BY 1")).fetchall()[0] == (1,)
print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.written_for(["duckdb"], reason="the fault is DuckDB's")
def test_window_over_all_rows(engine, rows):
    done = subprocess.run(
        [sys.executable, "-c", CHILD, engine.url, json.dumps(rows)],
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


ORDERS = {
    "ORDER BY -i": [4, 3, 2, 1],
    "ORDER BY j - 10, 1": [4, 3, 2, 1],
    "ORDER BY CASE WHEN i > 2 THEN 1 ELSE 2 END, i": [3, 4, 1, 2],
    "PARTITION BY i ORDER BY (SELECT max(j) FROM bag)": [1, 1, 1, 1],
}


@pytest.mark.parametrize("table", ["keyed", "bag"])
@pytest.mark.parametrize("order", ORDERS)
def test_a_window_may_be_ordered_by_an_expression(engine, table, order):
    """P1: MonetDB gives no result of one over a UNION ALL."""
    connection = engine.connect(checkpoint="manual")
    for name, key in (("keyed", " PRIMARY KEY"), ("bag", "")):
        connection.execute(f"CREATE TABLE {name} (i INTEGER{key}, j INTEGER)")
        connection.execute(f"INSERT INTO {name} VALUES (1, 14), (2, 13)")
        connection.commit()
    connection.execute("CREATE TABLE kept (w INTEGER, i INTEGER)")
    connection.checkpoint()
    for name in ("keyed", "bag"):
        connection.execute(f"INSERT INTO {name} VALUES (3, 12), (4, 11)")
    plain = f"SELECT row_number() OVER ({order}) AS w, i FROM {table}"
    named = f"SELECT row_number() OVER w AS w, i FROM {table} WINDOW w AS ({order})"
    expected = list(enumerate(ORDERS[order], 1))
    for finish in (connection.commit, connection.checkpoint, connection.commit):
        for sql in (plain, named, f"SELECT * FROM ({plain}) AS q"):
            rows = connection.execute(sql).fetchall()
            assert sorted((i, w) for w, i in rows) == expected
        assert connection.execute(f"INSERT INTO kept {plain}").rowcount == 4
        finish()
