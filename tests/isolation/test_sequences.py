"""Sequences: a value is drawn once, and by nothing but a statement of the application's."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import tique

IDENTITY = {
    "duckdb": "id INTEGER DEFAULT nextval('number') PRIMARY KEY",
    "postgresql": "id SERIAL PRIMARY KEY",
    "monetdb": "id INTEGER AUTO_INCREMENT PRIMARY KEY",
}


@pytest.fixture
def numbered(engine):
    """A table whose key is drawn from a sequence."""
    connection = engine.connect(autocommit=True)
    if engine.name == "duckdb":
        connection.execute("CREATE SEQUENCE number")
    connection.execute(f"CREATE TABLE item ({IDENTITY[engine.name]}, v INTEGER)")
    connection.close()
    return engine


def ids(connection):
    return sorted(
        int(i) for (i,) in connection.execute("SELECT id FROM item").fetchall()
    )


def test_values_stay_what_they_were_drawn(numbered):
    """P4, P7: neither the log's replay nor a fold draws anew."""
    connection = numbered.connect(checkpoint="manual", autocommit=True)
    connection.execute("INSERT INTO item (v) VALUES (1), (2)")
    before = connection.execute("SELECT id, v FROM item ORDER BY v").fetchall()
    connection.close()
    numbered.restart()
    connection = numbered.connect(checkpoint="manual", autocommit=True)
    assert connection.execute("SELECT id, v FROM item ORDER BY v").fetchall() == before
    connection.checkpoint()
    assert connection.execute("SELECT id, v FROM item ORDER BY v").fetchall() == before
    connection.execute("INSERT INTO item (v) VALUES (3)")
    assert len(set(ids(connection))) == 3


def test_a_value_that_was_drawn_is_not_drawn_again(numbered):
    """As natively: a rollback takes none back."""
    connection = numbered.connect()
    connection.execute("INSERT INTO item (v) VALUES (1)")
    (first,) = ids(connection)
    connection.rollback()
    connection.execute("INSERT INTO item (v) VALUES (1)")
    connection.commit()
    assert ids(connection) > [first]


def test_concurrent_transactions_draw_different_values(numbered):
    """P9: none loses a conflict over its key."""
    connections = [numbered.connect() for _ in range(4)]

    def insert(connection):
        for value in range(10):
            connection.execute("INSERT INTO item (v) VALUES (%s)", (value,))
            connection.execute("INSERT INTO item (v) SELECT v FROM item WHERE v < 0")
            connection.commit()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(insert, connections))
    assert len(ids(connections[0])) == 40


def test_a_sequence_that_a_table_needs_stays(numbered):
    connection = numbered.connect(autocommit=True)
    if numbered.name == "monetdb":
        connection.execute("CREATE SEQUENCE number")
        connection.execute("CREATE TABLE u (a INTEGER DEFAULT NEXT VALUE FOR number)")
    elif numbered.name == "duckdb":
        # DuckDB 1.5 does not know of tables of before the file was opened.
        connection.execute("CREATE TABLE u (a INTEGER DEFAULT nextval('number'))")
    name = "item_id_seq" if numbered.name == "postgresql" else "number"
    with pytest.raises(tique.Error):
        connection.execute(f"DROP SEQUENCE {name}")
    with pytest.raises(tique.NotSupportedError, match="CASCADE"):
        connection.execute(f"DROP SEQUENCE {name} CASCADE")
    connection.execute("INSERT INTO item (v) VALUES (1)")


@pytest.mark.written_for(["duckdb"], reason="elsewhere a column owns it")
def test_a_sequence_goes_with_the_table_that_owns_it(engine):
    connection = engine.connect(autocommit=True)
    own = connection.execute("SELECT current_database()").fetchone()[0]
    for name in ("one", "two", "three"):
        connection.execute(f"CREATE TABLE {name} (n INTEGER PRIMARY KEY)")
        connection.execute(f"CREATE SEQUENCE of_{name}")
    connection.execute("ALTER SEQUENCE of_one OWNED BY one")
    connection.execute(
        f"ALTER SEQUENCE IF EXISTS {own}.main.of_two OWNED BY {own}.main.two"
    )
    connection.execute("INSERT INTO one VALUES (nextval('of_one'))")
    for owner in ("three.n", "NONE", "of_two", "tique.log", "other.main.three"):
        with pytest.raises((tique.ProgrammingError, tique.NotSupportedError)):
            connection.execute(f"ALTER SEQUENCE of_three OWNED BY {owner}")
    with pytest.raises(tique.Error, match="depends on"):
        connection.execute("DROP SEQUENCE of_one")
    connection.execute("BEGIN")
    connection.execute("DROP TABLE one")
    connection.execute("ROLLBACK")
    connection.execute("ALTER TABLE one ADD COLUMN m INTEGER")
    connection.execute("DROP TABLE one")
    connection.execute("DROP TABLE two")
    listed = "SELECT sequence_name FROM duckdb_sequences()"
    assert connection.execute(listed).fetchall() == [("of_three",)]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE SCHEMA tique",
        'CREATE SCHEMA IF NOT EXISTS "TIQUE"',
        "DROP SCHEMA tique",
        "DROP SCHEMA IF EXISTS Tique CASCADE",
        "ALTER SCHEMA tique RENAME TO x",
        "CREATE SCHEMA a CREATE TABLE a.t (b INTEGER)",
        "CREATE SEQUENCE tique.number",
        "DROP SEQUENCE tique.sequencer_txids",
        "ALTER SEQUENCE tique.sequencer_txids RESTART WITH 1",
        "CREATE SEQUENCE a START WITH (SELECT 1)",
        "CREATE SEQUENCE a START WITH %s",
        "CREATE SEQUENCE a OWNED BY tique.log.cts",
        "ALTER SEQUENCE a OWNED BY tique.log",
        "CREATE TEMPORARY SEQUENCE a",
    ],
)
def test_hostile_definitions_are_refused(engine, sql):
    """P11: tique's own schema is out of reach."""
    connection = engine.connect(autocommit=True)
    with pytest.raises((tique.NotSupportedError, tique.ProgrammingError)):
        connection.execute(sql, (1,) if "%s" in sql else None)
    connection.execute("CREATE TABLE fine (a INTEGER)")


@pytest.mark.written_for(
    ["postgresql"], reason="the others have no sequence of tique's"
)
@pytest.mark.parametrize(
    "call",
    [
        "setval('tique.sequencer_txids', 1)",
        "setval('\"tique\".sequencer_txids', 1)",
        "nextval('Tique.sequencer_txids'::regclass)",
        "setval('tique' || '.sequencer_txids', 1)",
        "setval('tique.'\n'sequencer_txids', 1)",
        "setval(E'tique\\x2esequencer_txids', 1)",
        "setval(U&'tique.sequencer_txids', 1)",
        "setval(%s, 1)",
        "setval((SELECT 'tique.sequencer_txids')::regclass, 1)",
        "currval(to_regclass('tique.sequencer_txids'))",
        "setval(pg_get_serial_sequence(%s, 'a'), 1)",
        "setval(pg_get_serial_sequence('tique.clients', 'client'), 1)",
    ],
)
def test_tiques_own_sequence_is_out_of_reach(engine, call):
    """P5, P11: a transaction's id would be given to another one."""
    connection = engine.connect(autocommit=True)
    values = ("tique.sequencer_txids",) if "%s" in call else None
    with pytest.raises(tique.NotSupportedError):
        connection.execute(f"SELECT {call}", values)


def test_a_schema_with_a_table_in_use_stays(engine):
    """P9."""
    first = engine.connect()
    first.execute("CREATE SCHEMA shop")
    first.execute("CREATE TABLE shop.item (id INTEGER PRIMARY KEY)")
    first.commit()
    first.execute("SELECT * FROM shop.item").fetchall()
    second = engine.connect()
    with pytest.raises(tique.OperationalError, match="an open transaction uses it"):
        second.execute("DROP SCHEMA shop CASCADE")
    second.rollback()
    first.commit()
    second.execute("DROP SCHEMA shop CASCADE")
    second.commit()
    with pytest.raises(tique.ProgrammingError):
        first.execute("SELECT * FROM shop.item")


def test_references_to_a_dropped_schema_go(engine):
    """P9: as with DROP TABLE … CASCADE."""
    connection = engine.connect(autocommit=True)
    connection.execute("CREATE SCHEMA shop")
    connection.execute("CREATE TABLE shop.item (id INTEGER PRIMARY KEY)")
    connection.execute("CREATE TABLE sale (item INTEGER REFERENCES shop.item (id))")
    with pytest.raises(tique.IntegrityError):
        connection.execute("INSERT INTO sale VALUES (1)")
    connection.execute("DROP SCHEMA shop CASCADE")
    connection.execute("INSERT INTO sale VALUES (1)")
    connection.close()
    connection = engine.connect(autocommit=True)
    assert connection.execute("SELECT * FROM sale").fetchall() == [(1,)]


_DIES = """
import os, sys, tique
connection = tique.connect(sys.argv[1], autocommit=True)
connection.execute("INSERT INTO item (v) VALUES (1), (2), (3)")
connection.execute("SELECT nextval('number')").fetchall()
os._exit(1)
"""


@pytest.mark.written_for(["duckdb"], reason="the others' servers keep them")
def test_values_that_were_drawn_before_a_crash_are_not_drawn_again(numbered):
    """P4, P5."""
    for _ in range(2):
        subprocess.run([sys.executable, "-c", _DIES, numbered.url], check=False)
    connection = numbered.connect(autocommit=True)
    connection.execute("INSERT INTO item (v) VALUES (4)")
    found = ids(connection)
    assert len(found) == len(set(found)) == 7
    assert found[-1] == 9
