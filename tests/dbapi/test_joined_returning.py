"""RETURNING of UPDATE … FROM and DELETE … USING (P8)."""

from __future__ import annotations

import pytest

import tique
from tests.portable import numbers
from tique import errors

pytestmark = pytest.mark.fresh_tables

ONLY_POSTGRESQL = pytest.mark.written_for(
    ["postgresql"], reason="the other engines return columns of the changed table only"
)
NO_USING = pytest.mark.never(
    ["monetdb"],
    raises=tique.Error,
    reason="MonetDB has no DELETE … USING",
)


@pytest.fixture(params=["stored", "cached", "own", "staged"])
def connection(engine, request):
    """Three stocks and two deliveries, wherever rows can be."""
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE stock (item INTEGER PRIMARY KEY, quantity INTEGER, note TEXT)"
    )
    connection.execute(
        "CREATE TABLE delivery (id INTEGER PRIMARY KEY, item INTEGER, pieces INTEGER)"
    )
    cursor = connection.cursor()
    cursor.executemany(
        "INSERT INTO stock VALUES (%s, %s, %s)",
        [(1, 10, "a"), (2, 20, None), (3, 30, "c")],
    )
    cursor.executemany(
        "INSERT INTO delivery VALUES (%s, %s, %s)", [(7, 1, 5), (8, 3, 6)]
    )
    if request.param == "staged":
        connection.execute(
            f"INSERT INTO stock SELECT number + 1000, 9, 'x' FROM {numbers(2100)}"
        )
    if request.param in ("stored", "cached"):
        connection.commit()
    if request.param == "stored":
        connection.checkpoint()
    return connection


def content(connection):
    return connection.execute(
        "SELECT * FROM stock WHERE item < 1000 ORDER BY item"
    ).fetchall()


UPDATE = (
    "UPDATE stock SET quantity = quantity + d.pieces FROM delivery AS d "
    "WHERE d.item = stock.item"
)


def test_columns_of_the_changed_table(connection):
    cursor = connection.execute(
        f"{UPDATE} RETURNING stock.item, quantity AS q, quantity * %s AS twice", (2,)
    )
    assert [column[0] for column in cursor.description] == ["item", "q", "twice"]
    assert cursor.rowcount == 2
    assert sorted(cursor.fetchall()) == [(1, 15, 30), (3, 36, 72)]
    cursor = connection.execute(f"{UPDATE} RETURNING stock.*")
    assert sorted(cursor.fetchall()) == [(1, 20, "a"), (3, 42, "c")]
    assert content(connection) == [(1, 20, "a"), (2, 20, None), (3, 42, "c")]
    connection.commit()
    assert content(connection) == [(1, 20, "a"), (2, 20, None), (3, 42, "c")]


@NO_USING
def test_columns_of_the_table_deleted_from(connection):
    cursor = connection.execute(
        "DELETE FROM stock s USING delivery d WHERE d.item = s.item AND d.pieces > %s "
        "RETURNING s.note, s.item + 1 AS next",
        (5,),
    )
    assert cursor.fetchall() == [("c", 4)]
    assert [row[0] for row in content(connection)] == [1, 2]


@pytest.mark.written_for(["duckdb"], reason="PostgreSQL returns all of them")
def test_a_star_is_the_changed_table(connection):
    """As DuckDB has it, which cannot see the other tables there."""
    cursor = connection.execute(f"{UPDATE} RETURNING *")
    assert sorted(cursor.fetchall()) == [(1, 15, "a"), (3, 36, "c")]
    for items in ("d.pieces", "pieces", "d.*", "quantity + pieces"):
        before = content(connection)
        with pytest.raises(tique.ProgrammingError):
            connection.execute(f"{UPDATE} RETURNING {items}")
        assert content(connection) == before


@ONLY_POSTGRESQL
def test_columns_of_the_joined_tables(connection):
    cursor = connection.execute(f"{UPDATE} RETURNING *")
    assert [column[0] for column in cursor.description] == [
        *("item", "quantity", "note", "id", "item", "pieces"),
    ]
    assert sorted(cursor.fetchall()) == [(1, 15, "a", 7, 1, 5), (3, 36, "c", 8, 3, 6)]
    cursor = connection.execute(
        f"{UPDATE} RETURNING d.*, quantity - pieces AS before, pieces::text, "
        "(SELECT count(*) FROM stock AS o WHERE o.item < 1000 AND o.quantity > d.pieces), "
        "(SELECT sum(o.quantity) FROM stock AS o WHERE o.item = stock.item)"
    )
    assert [column[0] for column in cursor.description] == [
        *("id", "item", "pieces", "before", "pieces", "count", "sum"),
    ]
    assert sorted(cursor.fetchall()) == [
        (7, 1, 5, 15, "5", 3, 15),
        (8, 3, 6, 36, "6", 3, 36),
    ]
    cursor = connection.execute(
        "DELETE FROM stock AS s USING delivery d, (VALUES (5, 'five')) AS v(k, name) "
        "WHERE d.item = s.item AND v.k = d.pieces RETURNING s.quantity, name || %s, *",
        ("!",),
    )
    assert cursor.fetchall() == [(20, "five!", 1, 20, "a", 7, 1, 5, 5, "five")]
    connection.commit()
    assert content(connection) == [(2, 20, None), (3, 42, "c")]


@ONLY_POSTGRESQL
def test_a_row_that_is_joined_twice_is_returned_once(connection):
    """The joined row is the one that changed it."""
    connection.execute("INSERT INTO delivery VALUES (9, 1, 100)")
    found = dict(connection.execute(f"{UPDATE} RETURNING quantity, pieces").fetchall())
    assert found in ({15: 5, 36: 6}, {110: 100, 36: 6})
    assert {row[1] for row in content(connection)} == {20, *found}


@ONLY_POSTGRESQL
def test_many_joined_rows(connection):
    connection.execute(
        f"INSERT INTO stock SELECT number + 5000, number, 'many' FROM {numbers(2500)}"
    )
    cursor = connection.execute(
        "UPDATE stock SET item = stock.item + 5000, quantity = -1 FROM stock AS o "
        "WHERE o.item = stock.item AND o.item >= 5000 "
        "RETURNING stock.item - o.item, o.quantity"
    )
    assert cursor.fetchall() == [(5000, n) for n in range(2500)] or sorted(
        cursor.fetchall()
    )
    query = "SELECT count(*), sum(quantity) FROM stock WHERE item >= 10000"
    assert connection.execute(query).fetchall() == [(2500, -2500)]
    connection.commit()
    assert connection.execute(query).fetchall() == [(2500, -2500)]


@ONLY_POSTGRESQL
def test_executemany_returns_joined_columns(connection):
    cursor = connection.cursor()
    cursor.executemany(
        f"{UPDATE} AND d.id = %s RETURNING quantity, d.pieces",
        [(7,), (7,), (1,), (8,)],
        returning=True,
    )
    found = [cursor.fetchall()]
    while cursor.nextset():
        found.append(cursor.fetchall())
    assert found == [[(15, 5)], [(20, 5)], [], [(36, 6)]]
    cursor.executemany(f"{UPDATE} AND d.id = %s RETURNING d.id", [(7,), (8,)])
    assert cursor.rowcount == 2
    assert cursor.description is None


@ONLY_POSTGRESQL
def test_values_of_every_kind(engine):
    """Values that are kept as texts are shown as in any result."""
    connection = engine.connect()
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, j JSONB, a INTEGER[], n NUMERIC)"
    )
    connection.execute(
        "CREATE TABLE u (id INTEGER PRIMARY KEY, j JSONB, a INTEGER[], "
        "v VARCHAR(3)[], r REAL, m TIMESTAMPTZ, b BYTEA)"
    )
    connection.execute("INSERT INTO t VALUES (1, '{\"k\": 1}', '{1,2}', 1.50)")
    connection.execute(
        "INSERT INTO u VALUES (1, '[1]', '{3}', ARRAY['ab']::varchar(3)[], 1.5::real, '2024-01-01 00:00:00+00', '\\x00ff')"
    )
    items = "t.j, t.a, t.n, u.j AS uj, u.a AS ua, u.v, u.r, u.m, u.b"
    wanted = connection.execute(f"SELECT {items} FROM t, u").fetchall()
    cursor = connection.execute(
        f"UPDATE t SET n = t.n FROM u WHERE t.id = u.id RETURNING {items}"
    )
    assert cursor.fetchall() == wanted


@ONLY_POSTGRESQL
def test_errors(connection):
    before = content(connection)
    for items, error in (
        ("item", tique.ProgrammingError),  # ambiguous
        ("nothing", tique.ProgrammingError),
        ("d.nothing", tique.Error),
        ("d.pieces / 0", tique.DataError),
        ("count(d.id)", tique.NotSupportedError),
    ):
        with pytest.raises(error):
            connection.execute(f"{UPDATE} RETURNING {items}")
        assert content(connection) == before
    for relation in (
        "generate_series(1, 2) AS g",
        '(SELECT 1 AS "One") AS g',
        "(SELECT 1, 2) AS g",
    ):
        with pytest.raises(tique.NotSupportedError, match="columns are not known"):
            connection.execute(
                f"UPDATE stock SET note = '' FROM {relation} RETURNING *"
            )
    with pytest.raises(tique.NotSupportedError, match="USING"):
        connection.execute(
            "UPDATE stock SET note = '' FROM delivery JOIN (SELECT 7 AS id) AS x "
            "USING (id) WHERE delivery.item = stock.item RETURNING id"
        )
    with pytest.raises(errors.UniqueViolation):
        connection.execute(
            "UPDATE stock SET item = 2 FROM delivery AS d WHERE d.item = stock.item "
            "AND d.id = 7 RETURNING d.id"
        )
    assert content(connection) == before
