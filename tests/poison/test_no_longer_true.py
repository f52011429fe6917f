"""P4: a CHECK that says yes to a row, and no when storage is to take it.

None can be defined any more; databases of earlier releases have them. On PostgreSQL a fold
does not even try such a CHECK, since its function might run other roles' code (P11).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import closing

import psycopg
import pytest

import tique

PROGRAM = "from tique.cli import main; main()"


@pytest.mark.slow
@pytest.mark.written_for(["duckdb"], reason="MonetDB has no CHECK; PostgreSQL's: below")
def test_a_row_that_was_good_for_two_seconds(engine, monkeypatch):
    connection = engine.connect(checkpoint="manual")
    kind = type(connection._database.engine)
    monkeypatch.setattr(kind, "check_definition", lambda *_: None)
    connection.execute(
        "CREATE TABLE offer (a INTEGER PRIMARY KEY, until TIMESTAMP, "
        "CHECK (until > CAST(now() AS TIMESTAMP)))"
    )
    connection.execute("CREATE TABLE other (a INTEGER PRIMARY KEY, b INTEGER)")
    connection.execute(
        "INSERT INTO offer SELECT 1, CAST(now() AS TIMESTAMP) + INTERVAL '2 seconds'"
    )
    connection.execute("INSERT INTO other VALUES (1, 1)")
    connection.commit()
    rows = connection.execute("SELECT * FROM offer").fetchall()
    connection.rollback()
    time.sleep(2.1)
    engine.restart()
    connection = engine.connect(checkpoint="manual")
    # By key, from memory, and by a query that has to look into the cache table.
    for query in ("SELECT * FROM offer", "SELECT max(a), max(until) FROM offer"):
        assert connection.execute(query).fetchall() == rows
    connection.execute("UPDATE other SET b = 2")
    connection.commit()
    with pytest.raises(tique.errors.CheckViolation, match=r"offer cannot be folded"):
        connection.checkpoint()
    status = {table.name: table for table in connection.status().tables}
    offer = status[f"{engine.schema}.offer"]
    assert "CheckViolation" in offer.obstacle or "check" in offer.obstacle.lower()
    assert offer.cached_rows == 1
    other = status[f"{engine.schema}.other"]
    assert (other.obstacle, other.cached_rows) == (None, 0)
    engine.close()
    # Another process, on a server that goes on, finds out by itself.
    command = [sys.executable, "-c", PROGRAM, "status", engine.url, "--json"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    obstacles = {table["name"]: table["obstacle"] for table in told["tables"]}
    assert "violat" in obstacles[f"{engine.schema}.offer"] or (
        "CHECK constraint failed" in obstacles[f"{engine.schema}.offer"]
    )
    assert obstacles[f"{engine.schema}.other"] is None
    assert tique.detach(engine.url, ["other"]) == [f"{engine.schema}.other"]
    connection = engine.connect(checkpoint="manual")
    assert connection.execute("SELECT * FROM offer").fetchall() == rows
    connection.execute("DELETE FROM offer WHERE a = 1")
    connection.commit()
    assert connection.checkpoint() > 0
    assert [table.obstacle for table in connection.status().tables] == [None]


@pytest.mark.slow
@pytest.mark.written_for(["postgresql"], reason="another role's code, in a fold")
def test_a_check_that_no_fold_tries(engine):
    """The fold's refusal names it and says what to do; nothing else is stopped."""
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE offer (a INTEGER PRIMARY KEY, until TIMESTAMP)")
    connection.execute("CREATE TABLE other (a INTEGER PRIMARY KEY, b INTEGER)")
    connection.commit()
    with closing(psycopg.connect(engine.place, autocommit=True)) as natively:
        natively.execute(
            f"ALTER TABLE {engine.schema}.offer ADD CONSTRAINT good "
            "CHECK (until > CAST(now() AS TIMESTAMP))"
        )
    connection.execute(
        "INSERT INTO offer SELECT 1, CAST(now() AS TIMESTAMP) + INTERVAL '2 seconds'"
    )
    connection.execute("INSERT INTO other VALUES (1, 1)")
    connection.commit()
    rows = connection.execute("SELECT * FROM offer").fetchall()
    connection.rollback()
    time.sleep(2.1)
    engine.restart()
    connection = engine.connect(checkpoint="manual")
    for query in ("SELECT * FROM offer", "SELECT max(a), max(until) FROM offer"):
        assert connection.execute(query).fetchall() == rows
    connection.execute("UPDATE other SET b = 2")
    connection.commit()
    said = r"offer cannot be folded: .*CHECK constraint good, which calls .* drop it"
    with pytest.raises(tique.ProgrammingError, match=said):
        connection.checkpoint()
    status = {table.name: table for table in connection.status().tables}
    offer = status[f"{engine.schema}.offer"]
    assert "CHECK constraint good" in offer.obstacle
    assert offer.cached_rows == 1
    other = status[f"{engine.schema}.other"]
    assert (other.obstacle, other.cached_rows) == (None, 0)
    with closing(psycopg.connect(engine.place, autocommit=True)) as natively:
        natively.execute(f"ALTER TABLE {engine.schema}.offer DROP CONSTRAINT good")
    assert connection.checkpoint() > 0
    assert [table.obstacle for table in connection.status().tables] == [None] * 2
    assert connection.execute("SELECT * FROM offer").fetchall() == rows
