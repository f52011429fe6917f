"""P1, P9: MERGE, UPDATE … FROM and DELETE … USING of equal rows, natively and through tique."""

from __future__ import annotations

from collections import Counter

import pytest

import tique
from tests.staging import stage_above

pytestmark = pytest.mark.every_engine

DEFINITIONS = (
    "CREATE TABLE stock (item INTEGER, quantity INTEGER, note VARCHAR(20))",
    "CREATE TABLE delivery (item INTEGER, pieces INTEGER)",
)
STOCK = (
    "INSERT INTO stock VALUES (1, 10, 'a'), (1, 10, 'a'), (1, 10, NULL), (1, 10, NULL), "
    "(2, 20, 'b'), (NULL, 30, 'c'), (NULL, 30, 'c'), (3, NULL, NULL)"
)
ODD = "INSERT INTO stock VALUES (1, 10, 'a'), (1, 10, NULL), (2, 20, 'b'), (NULL, 30, 'c')"
EVEN = (
    "INSERT INTO stock VALUES (1, 10, 'a'), (1, 10, NULL), (NULL, 30, 'c'), "
    "(3, NULL, NULL)"
)
DELIVERIES = "INSERT INTO delivery VALUES (1, 5), (3, 6), (4, 7), (NULL, 8)"
MERGE = "MERGE INTO stock AS s USING delivery AS d ON s.item = d.item"
STATEMENTS = {
    "merge": f"{MERGE} WHEN MATCHED THEN UPDATE SET quantity = quantity + d.pieces "
    "WHEN NOT MATCHED THEN INSERT (item, quantity) VALUES (d.item, d.pieces)",
    "merge some": f"{MERGE} WHEN MATCHED AND s.note = 'a' THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET note = 'x'",
    "merge by source": f"{MERGE} WHEN MATCHED THEN DELETE "
    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET note = 'none' "
    "WHEN NOT MATCHED THEN INSERT (item, quantity) VALUES (d.item, d.pieces)",
    "update": "UPDATE stock SET quantity = pieces FROM delivery AS d "
    "WHERE stock.item = d.item AND note IS NULL",
    "delete": "DELETE FROM stock USING delivery AS d "
    "WHERE stock.item = d.item AND note = 'a'",
}
WRITTEN_FOR = {
    "merge some": pytest.mark.written_for(
        ["duckdb", "postgresql"], reason="MonetDB's own MERGE takes no condition there"
    ),
    "merge by source": pytest.mark.written_for(
        ["duckdb"], reason="PostgreSQL 15 and MonetDB know no rows by source"
    ),
    "delete": pytest.mark.written_for(
        ["duckdb", "postgresql"], reason="MonetDB has no DELETE … USING"
    ),
}


@pytest.fixture(params=["buffered", "staged"])
def size(request, monkeypatch):
    if request.param == "staged":
        stage_above(1, monkeypatch.setattr)
    return request.param


@pytest.mark.parametrize("where", ["stored", "recent", "own", "apart"])
@pytest.mark.parametrize(
    "statement",
    [pytest.param(name, marks=WRITTEN_FOR.get(name, ())) for name in STATEMENTS],
)
def test_each_of_equal_rows(engine, size, statement, where):
    sql = STATEMENTS[statement]
    native = engine.native()
    for each in (*DEFINITIONS, STOCK, DELIVERIES, sql):
        native.execute(each)
    expected = Counter(map(tuple, native.execute("SELECT * FROM stock").fetchall()))
    for table in ("stock", "delivery"):
        native.execute(f"DROP TABLE {table}")

    with engine.connect(checkpoint="manual") as connection:
        for each in (*DEFINITIONS, STOCK, DELIVERIES):
            connection.execute(each)
            if where != "own" or each in DEFINITIONS:
                connection.commit()
        if where in ("stored", "apart"):
            connection.checkpoint()
        if where == "apart":
            # One of each two is in storage, and the other is the transaction's own.
            connection.execute("DELETE FROM stock")
            connection.commit()
            connection.execute(ODD)
            connection.commit()
            connection.checkpoint()
            connection.execute(EVEN)
        connection.execute(sql)
        for step in (connection.commit, connection.checkpoint, connection.commit):
            found = connection.execute("SELECT * FROM stock").fetchall()
            assert Counter(found) == expected
            step()


def test_rows_of_two_parts_are_joined_by_a_key(engine):
    """Recent rows and those of storage have numbers of their own, whatever is joined."""
    with engine.connect(checkpoint="manual") as connection:
        connection.execute("CREATE TABLE price (item INTEGER PRIMARY KEY, n INTEGER)")
        connection.execute("INSERT INTO price VALUES (4, 40), (7, 70)")
        connection.commit()
        connection.execute("CREATE TABLE sale (item INTEGER, n INTEGER)")
        connection.execute("INSERT INTO sale VALUES (7, 0), (3, 0), (4, 0), (6, 0)")
        connection.commit()
        connection.checkpoint()
        connection.execute("INSERT INTO sale SELECT item, n FROM sale WHERE item = 4")
        update = "UPDATE sale SET n = p.n FROM price AS p WHERE p.item = sale.item"
        assert connection.execute(update).rowcount == 3
        found = connection.execute("SELECT * FROM sale ORDER BY item").fetchall()
        assert found == [(3, 0), (4, 40), (4, 40), (6, 0), (7, 70)]
        merge = (
            "MERGE INTO sale USING price AS p ON p.item = sale.item "
            "WHEN MATCHED THEN UPDATE SET n = p.n + 1"
        )
        connection.execute(merge)
        found = connection.execute("SELECT n FROM sale ORDER BY n").fetchall()
        assert found == [(0,), (0,), (41,), (41,), (71,)]


def test_a_row_that_several_rows_match(engine):
    with engine.connect() as connection:
        for each in (*DEFINITIONS, STOCK, DELIVERIES):
            connection.execute(each)
        connection.execute("INSERT INTO delivery VALUES (1, 5)")
        sql = f"{MERGE} WHEN MATCHED THEN UPDATE SET quantity = 11"
        if engine.name == "duckdb":
            assert connection.execute(sql).rowcount == 5
            count = "SELECT count(*) FROM stock WHERE quantity = 11"
            assert connection.execute(count).fetchone() == (5,)
        else:
            with pytest.raises(tique.errors.CardinalityViolation):
                connection.execute(sql)


@pytest.mark.written_for(
    ["duckdb", "postgresql"], reason="MonetDB has no type that Python cannot hold"
)
@pytest.mark.parametrize("action", ["UPDATE SET n = 9", "DELETE"])
def test_rows_that_python_cannot_hold(engine, action):
    kind, value = {
        "duckdb": ("UNION(a INTEGER, b VARCHAR)", "union_value(a := 1)"),
        "postgresql": ("MONEY", "'1.50'"),
    }[engine.name]
    with engine.connect() as connection:
        connection.execute(f"CREATE TABLE t (item INTEGER, n INTEGER, x {kind})")
        connection.execute(
            f"INSERT INTO t VALUES (1, 1, {value}), (1, 1, {value}), (2, 2, {value})"
        )
        merge = "MERGE INTO t USING (VALUES {}) AS v(k) ON t.item = v.k "
        merge += f"WHEN MATCHED THEN {action} "
        merge += "WHEN NOT MATCHED THEN INSERT (item, n) VALUES (k, 0)"
        assert connection.execute(merge.format("(1), (5)")).rowcount == 3
        changed = [] if action == "DELETE" else [(1, 9), (1, 9)]
        rows = [*changed, (2, 2), (5, 0)]
        items = "SELECT item, n FROM t ORDER BY item"
        assert connection.execute(items).fetchall() == rows
        twice = merge.format("(2), (2)")
        if engine.name == "duckdb":
            assert connection.execute(twice).rowcount == 1
        else:
            with pytest.raises(tique.errors.CardinalityViolation):
                connection.execute(twice)
            assert connection.execute(items).fetchall() == rows
