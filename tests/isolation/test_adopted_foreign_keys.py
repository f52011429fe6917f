"""P9: an engine's FOREIGN KEY constraints are taken over, and given back."""

from __future__ import annotations

import pytest

import tique

altered = pytest.mark.written_for(
    ["postgresql"],
    reason="DuckDB's ALTER TABLE neither drops nor adds a FOREIGN KEY; MonetDB 11.41 takes "
    "rows for violations of composite ones that are none",
)

PARENT = "CREATE TABLE parent (x INTEGER, y INTEGER, code INTEGER UNIQUE, PRIMARY KEY (x, y))"
CHILD = (
    "CREATE TABLE child (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, code INTEGER "
    "DEFAULT 12, up INTEGER)"
)
CONSTRAINTS = (
    'ALTER TABLE child ADD CONSTRAINT "The place" FOREIGN KEY (a, b) '
    "REFERENCES parent (x, y) ON DELETE CASCADE ON UPDATE SET NULL",
    "ALTER TABLE child ADD CONSTRAINT by_code FOREIGN KEY (code) "
    "REFERENCES parent (code) ON DELETE SET DEFAULT ON UPDATE CASCADE",
    "ALTER TABLE child ADD CONSTRAINT upwards FOREIGN KEY (up) REFERENCES child (id)",
)


@pytest.fixture
def native(engine):
    native = engine.native()
    native.execute(PARENT)
    native.execute(CHILD)
    for constraint in CONSTRAINTS:
        native.execute(constraint)
    native.execute("INSERT INTO parent VALUES (1, 1, 11), (1, 2, 12), (1, 3, 13)")
    native.execute(
        "INSERT INTO child VALUES (1, 1, 1, 11, NULL), (2, 1, 2, 13, 1), "
        "(3, NULL, NULL, 12, 2)"
    )
    native.close()
    return engine


def refused(connection, sql):
    with pytest.raises(tique.errors.ForeignKeyViolation) as caught:
        connection.execute(sql)
    return caught.value.constraint


def refused_natively(engine, sql):
    native = engine.native()
    with pytest.raises(engine.driver.Error):
        native.execute(sql)
    native.close()


@altered
def test_taken_over(native):
    assert len(tique.adopt(native.url)) == 2
    connection = native.connect(autocommit=True)
    insert = "INSERT INTO child VALUES (9, {})"
    assert refused(connection, insert.format("1, 5, NULL, NULL")) == "The place"
    assert refused(connection, insert.format("NULL, 1, 5, NULL")) == "by_code"
    assert refused(connection, insert.format("NULL, 1, NULL, 5")) == "upwards"
    connection.execute("UPDATE parent SET code = 99 WHERE y = 3")
    connection.execute("UPDATE parent SET y = 9 WHERE y = 2")
    assert connection.execute("SELECT * FROM child ORDER BY id").fetchall() == [
        (1, 1, 1, 11, None),
        (2, None, None, 99, 1),
        (3, None, None, 12, 2),
    ]
    connection.execute("DELETE FROM child WHERE id = 3")
    connection.execute("DELETE FROM parent WHERE y = 3")
    assert connection.execute("SELECT code FROM child WHERE id = 2").fetchall() == [
        (12,)
    ]
    connection.checkpoint()


@altered
def test_given_back(native):
    tique.adopt(native.url)
    connection = native.connect(autocommit=True)
    connection.execute("DELETE FROM child WHERE id = 3")
    connection.execute("DELETE FROM parent WHERE y = 2")
    connection.execute("INSERT INTO parent VALUES (5, 5, 12)")
    connection.close()
    native.close()
    tique.detach(native.url)
    insert = "INSERT INTO child VALUES (9, {})"
    refused_natively(native, insert.format("1, 4, NULL, NULL"))
    refused_natively(native, insert.format("NULL, 1, 5, NULL"))
    refused_natively(native, insert.format("NULL, 1, NULL, 5"))
    bare = native.native()
    bare.execute("UPDATE parent SET code = 99 WHERE y = 5")
    bare.execute("INSERT INTO child VALUES (7, 1, 1, 99, NULL)")
    bare.execute("DELETE FROM child WHERE id = 1")
    bare.execute("DELETE FROM parent WHERE y = 1")
    assert bare.execute("SELECT id FROM child").fetchall() == []
    bare.close()
    # As before: it can be adopted again.
    assert len(tique.adopt(native.url)) == 2


@altered
def test_tables_that_belong_together(native):
    for name in ("parent", "child"):
        with pytest.raises(tique.NotSupportedError, match="adopt that table with it"):
            tique.adopt(native.url, [name])
    tique.adopt(native.url, ["child", "parent"])
    for name in ("parent", "child"):
        with pytest.raises(tique.OperationalError, match="together") as caught:
            tique.detach(native.url, [name])
        assert caught.value.sqlstate == "2BP01"
    tique.detach(native.url, ["parent", "child"])


@pytest.mark.never(
    ["duckdb"],
    raises=tique.NotSupportedError,
    reason="ALTER TABLE neither drops nor adds a FOREIGN KEY",
)
def test_created_through_tique_and_detached(engine):
    connection = engine.connect(autocommit=True)
    connection.execute("CREATE TABLE up (id INTEGER PRIMARY KEY)")
    connection.execute(
        "CREATE TABLE down (id INTEGER PRIMARY KEY, up INTEGER REFERENCES up "
        "ON DELETE CASCADE ON UPDATE SET NULL)"
    )
    connection.execute("INSERT INTO up VALUES (1)")
    connection.execute("INSERT INTO down VALUES (1, 1)")
    connection.close()
    engine.close()
    tique.detach(engine.url)
    refused_natively(engine, "INSERT INTO down VALUES (2, 2)")
    assert len(tique.adopt(engine.url)) == 2
    connection = engine.connect(autocommit=True)
    assert refused(connection, "INSERT INTO down VALUES (2, 2)") == "down_up_fkey"
    connection.execute("UPDATE up SET id = 2")
    assert connection.execute("SELECT * FROM down").fetchall() == [(1, None)]
    connection.execute("UPDATE down SET up = 2")
    connection.execute("DELETE FROM up")
    assert connection.execute("SELECT * FROM down").fetchall() == []
