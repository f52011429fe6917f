"""P4: a managed table that was changed without tique does not affect the others."""

from __future__ import annotations

import logging

import pytest

import tique

CHANGES = {
    "dropped": ("DROP TABLE bad", None),
    "renamed": ("ALTER TABLE bad RENAME TO good", "ALTER TABLE good RENAME TO bad"),
    "wider": (
        "ALTER TABLE bad ADD COLUMN w INTEGER",
        "ALTER TABLE bad DROP COLUMN w",
    ),
    "narrower": (
        "ALTER TABLE bad DROP COLUMN w",
        "ALTER TABLE bad ADD COLUMN w INTEGER",
    ),
}


def prepare(engine, change):
    """Leave a recent version of a table in the log, and change the table."""
    narrow = change == "narrower"
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute(
        "CREATE TABLE bad (id INTEGER PRIMARY KEY, v INTEGER"
        f"{', w INTEGER' if narrow else ''})"
    )
    connection.execute("INSERT INTO t VALUES (1, 1)")
    connection.execute(f"INSERT INTO bad VALUES (1, 10{', NULL' if narrow else ''})")
    connection.commit()
    engine.native().execute(CHANGES[change][0])


@pytest.mark.parametrize("change", CHANGES)
def test_the_others_are_used(engine, change, caplog):
    prepare(engine, change)
    caplog.set_level(logging.CRITICAL, "tique")
    connection = engine.connect(checkpoint="manual")
    connection.execute("UPDATE t SET v = v + 1")
    connection.commit()
    for statement in (
        "SELECT * FROM bad",
        "SELECT * FROM t WHERE id IN (SELECT id FROM bad)",
        "UPDATE bad SET v = 2",
        "INSERT INTO bad VALUES (2, 2)",
        "CREATE INDEX i ON bad (v)",
    ):
        with pytest.raises(tique.OperationalError, match="bad cannot be used"):
            connection.execute(statement)
        connection.rollback()
    with pytest.raises(tique.Error, match="bad"):
        connection.checkpoint()
    obstacles = {t.name: t.obstacle for t in connection.status().tables}
    assert obstacles[f"{engine.schema}.t"] is None
    assert obstacles[f"{engine.schema}.bad"]
    assert connection.execute("SELECT * FROM t").fetchall() == [(1, 2)]
    connection.commit()
    connection.execute("DROP TABLE bad")
    # On MonetDB a renamed table keeps the names of its keys.
    name = "later" if change == "renamed" else "bad"
    connection.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY)")
    connection.execute(f"INSERT INTO {name} VALUES (5)")
    connection.commit()
    connection.checkpoint()
    again = engine.native()
    assert again.execute(f"SELECT id FROM {engine.schema}.{name}").fetchall() == [(5,)]
    assert again.execute(f"SELECT v FROM {engine.schema}.t").fetchall() == [(2,)]


@pytest.mark.parametrize("change", [c for c in CHANGES if CHANGES[c][1]])
def test_nothing_is_lost_when_it_is_taken_back(engine, change):
    prepare(engine, change)
    connection = engine.connect(checkpoint="manual")
    connection.execute("UPDATE t SET v = v + 1")
    connection.commit()
    engine.native().execute(CHANGES[change][1])
    connection = engine.connect(checkpoint="manual")
    assert connection.execute("SELECT id, v FROM bad").fetchall() == [(1, 10)]
    connection.commit()
    connection.checkpoint()
    engine.connect(checkpoint="manual").execute("SELECT v FROM t").fetchall()
