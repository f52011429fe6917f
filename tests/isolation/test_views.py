"""Views read the snapshot (P1), those of other programs too; nothing of ours is left in them."""

from __future__ import annotations

import pytest

import tique

ITEM = "CREATE TABLE item (id INTEGER PRIMARY KEY, price INTEGER)"
CHEAP = "CREATE VIEW cheap AS SELECT id, price FROM item WHERE price < 3"
TOTAL = "CREATE VIEW total AS SELECT count(*) AS n, sum(price) AS price FROM cheap"


@pytest.fixture
def adopted(engine):
    """Views that were there before, over a table with two rows."""
    native = engine.native()
    native.execute(ITEM)
    native.execute(CHEAP)
    native.execute(TOTAL)
    native.execute("INSERT INTO item VALUES (1, 1), (2, 5)")
    native.close()
    tique.adopt(engine.url)
    return engine


def rows(connection, query="SELECT * FROM total"):
    return sorted(tuple(map(int, row)) for row in connection.execute(query).fetchall())


def test_views_of_an_adopted_database_read_the_snapshot(adopted):
    """P1."""
    writer = adopted.connect(checkpoint="manual")
    reader = adopted.connect(checkpoint="manual")
    assert rows(reader) == [(1, 1)]
    writer.execute("INSERT INTO item VALUES (3, 2)")
    writer.execute("UPDATE item SET price = 2 WHERE id = 1")
    assert rows(writer) == [(2, 4)]
    assert rows(reader) == [(1, 1)]
    writer.commit()
    assert rows(reader) == [(1, 1)]
    reader.rollback()
    assert rows(reader) == [(2, 4)]
    writer.execute("DELETE FROM item WHERE id = 3")
    writer.commit()
    writer.checkpoint()
    assert rows(reader) == [(2, 4)]
    reader.commit()
    assert rows(reader) == [(1, 2)]


def test_changes_read_views_in_the_snapshot(adopted):
    """P1: a subquery, and a source of rows."""
    connection = adopted.connect(checkpoint="manual", autocommit=True)
    connection.execute(
        "UPDATE item SET price = price + 10 WHERE id IN (SELECT id FROM cheap)"
    )
    connection.execute("INSERT INTO item VALUES (3, 2)")
    connection.execute("INSERT INTO item SELECT id + 10, price FROM cheap")
    assert rows(connection, "SELECT * FROM item") == [(1, 11), (2, 5), (3, 2), (13, 2)]
    connection.execute("DELETE FROM item WHERE price = (SELECT max(price) FROM cheap)")
    assert rows(connection, "SELECT * FROM item") == [(1, 11), (2, 5)]


def test_detaching_leaves_plain_views(adopted):
    connection = adopted.connect(checkpoint="manual", autocommit=True)
    connection.execute("CREATE VIEW dear AS SELECT id FROM item WHERE price > 3")
    connection.execute("UPDATE item SET price = 9 WHERE id = 1")
    connection.close()
    tique.detach(adopted.url)
    native = adopted.native()
    assert rows(native, "SELECT * FROM dear") == [(1,), (2,)]
    assert rows(native, "SELECT n FROM total") == [(0,)]


def test_a_view_of_something_else_is_refused_by_name(engine):
    """P10: one that was made without tique, over managed tables or others."""
    engine.connect().close()
    native = engine.native()
    at = engine.schema
    for statement in (
        f"CREATE TABLE {at}.apart (id INTEGER)",
        f"CREATE VIEW {at}.unmanaged AS SELECT id FROM {at}.apart",
        f'CREATE VIEW {at}.inside AS SELECT count(*) AS n FROM tique."tables"',
        f"CREATE VIEW {at}.outside AS SELECT n FROM {at}.inside",
    ):
        native.execute(statement)
    native.close()
    connection = engine.connect()
    for name, kind in (
        ("unmanaged", tique.ProgrammingError),
        ("inside", tique.NotSupportedError),
        ("outside", tique.NotSupportedError),
    ):
        with pytest.raises(kind, match=f'the view "{name}"'):
            connection.execute(f"SELECT * FROM {name}")
        connection.rollback()
    for body in ('SELECT * FROM tique."tables"', "SELECT * FROM inside"):
        with pytest.raises(tique.NotSupportedError):
            connection.execute(f"CREATE VIEW mine AS {body}")
        connection.rollback()
    with pytest.raises(tique.ProgrammingError):
        connection.execute("SELECT * FROM mine")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("SELECT id FROM item WHERE id = %s", id="placeholder"),
        pytest.param("SELECT id FROM item; DROP TABLE item", id="second"),
        pytest.param("DELETE FROM item RETURNING id", id="change"),
        pytest.param(
            "WITH d AS (DELETE FROM item RETURNING id) SELECT * FROM d", id="with"
        ),
        pytest.param("SELECT id FROM item FOR UPDATE", id="lock"),
        pytest.param("", id="nothing"),
        pytest.param("SELECT id FROM item WITH NO DATA", id="no data"),
    ],
)
def test_hostile_bodies_are_refused(engine, body):
    """P10, P11: and no trace is left."""
    connection = engine.connect(autocommit=True)
    connection.execute(ITEM)
    with pytest.raises(tique.Error):
        connection.execute(f"CREATE VIEW v AS {body}", (1,) if "%s" in body else None)
    with pytest.raises(tique.ProgrammingError):
        connection.execute("SELECT * FROM v")
    connection.execute(CHEAP)
    with pytest.raises(tique.Error):
        connection.execute(f"CREATE OR REPLACE VIEW cheap AS {body or 'nothing'}")
    assert rows(connection, "SELECT * FROM cheap") == []


def test_a_view_that_a_transaction_uses_stays(engine):
    """As it would natively, where the transaction would have a lock on it or a snapshot."""
    first = engine.connect()
    first.execute(ITEM)
    first.execute(CHEAP)
    first.commit()
    assert rows(first, "SELECT * FROM cheap") == []
    second = engine.connect()
    for change in (
        "CREATE OR REPLACE VIEW cheap AS SELECT id, price FROM item",
        "DROP VIEW cheap",
    ):
        with pytest.raises(tique.OperationalError, match="an open transaction uses it"):
            second.execute(change)
        second.rollback()
    first.commit()
    second.execute("DROP VIEW cheap")


def test_definitions_wait_for_uncommitted_writes(engine):
    connection = engine.connect()
    connection.execute(ITEM)
    connection.execute("INSERT INTO item VALUES (1, 1)")
    with pytest.raises(tique.NotSupportedError, match="uncommitted writes"):
        connection.execute(CHEAP)
    connection.rollback()
    with pytest.raises(tique.ProgrammingError):
        connection.execute("SELECT * FROM cheap")


@pytest.mark.written_for(["duckdb"], reason="the others keep the table")
def test_a_broken_view_keeps_none_from_opening(engine):
    """P6: a view whose table is gone."""
    connection = engine.connect(autocommit=True)
    connection.execute(ITEM)
    connection.execute(CHEAP)
    connection.execute("DROP TABLE item")
    connection.close()
    connection = engine.connect(autocommit=True)
    with pytest.raises(tique.ProgrammingError, match='the view "cheap"'):
        connection.execute("SELECT * FROM cheap")
    connection.execute(ITEM)
    assert rows(connection, "SELECT * FROM cheap") == []


@pytest.mark.written_for(["duckdb"], reason="the others refuse it themselves")
def test_views_that_read_each_other_are_refused(engine):
    """P10."""
    native = engine.native()
    native.execute("CREATE VIEW one AS SELECT 1 AS a")
    native.execute("CREATE VIEW two AS SELECT a FROM one")
    native.close()
    connection = engine.connect(autocommit=True)
    with pytest.raises(tique.ProgrammingError, match="recurs"):
        connection.execute("CREATE OR REPLACE VIEW one AS SELECT a FROM two")
    assert rows(connection, "SELECT a FROM two") == [(1,)]
    connection.close()
    native = engine.native()
    native.execute("CREATE OR REPLACE VIEW one AS SELECT a FROM two")
    native.close()
    connection = engine.connect(autocommit=True)
    with pytest.raises(tique.ProgrammingError, match="recurs"):
        connection.execute("SELECT a FROM two")


@pytest.mark.slow
def test_views_that_double_are_refused_before_they_grow(engine):
    """P6: each reads the one before it twice."""
    connection = engine.connect(autocommit=True)
    connection.execute(ITEM)
    connection.execute("CREATE VIEW v0 AS SELECT id FROM item")

    def double(number):
        connection.execute(
            f"CREATE VIEW v{number} AS SELECT a.id FROM v{number - 1} AS a "
            f"JOIN v{number - 1} AS b ON a.id = b.id"
        )

    for number in range(1, 10):
        double(number)
    with pytest.raises(tique.NotSupportedError, match="1000 places"):
        double(10)
