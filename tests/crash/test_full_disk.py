"""P4, P5: on a full disk nothing acknowledged is lost, and no DDL is half done (DuckDB).

A process' files may not grow for a time (RLIMIT_FSIZE): the engine's writes fail wherever
they happen to come, in the log, in a fold, in a checkpoint. Then they may grow again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import tique
from tests.crash.full_disk_child import DDL
from tests.effort import effort

DUCKDB = pytest.mark.written_for(
    ["duckdb"], reason="the others' files are the server's"
)


def play(engine, tmp_path, what, room):
    arguments = (engine.url, tmp_path, what, room)
    finished = subprocess.run(
        [sys.executable, "-m", "tests.crash.full_disk_child", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


ROOMS = effort((0, 300_000), (0, 10_000, 100_000, 300_000, 1_000_000, 5_000_000))


@pytest.mark.slow
@DUCKDB
@pytest.mark.crash
@pytest.mark.parametrize("room", ROOMS)
def test_commits(engine, tmp_path, room):
    found = play(engine, tmp_path, "commits", room)
    assert found["refused"]
    expected = {
        number
        for first, count in found["acknowledged"]
        for number in range(first, first + count)
    } | {*range(1, 1000)}
    with engine.connect(autocommit=True) as connection:
        rows = {row[0] for row in connection.execute("SELECT id FROM t").fetchall()}
        connection.checkpoint()
    assert expected <= rows
    assert len(rows) == found["count"]
    unknown = rows - expected
    assert not unknown or any("OutcomeUnknown" in each for each in found["refused"])
    stored = engine.native().execute("SELECT id FROM t").fetchall()
    assert {row[0] for row in stored} == rows


@pytest.mark.slow
@DUCKDB
@pytest.mark.crash
@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("what", DDL)
def test_ddl(engine, tmp_path, what, room):
    found = play(engine, tmp_path, what, room)
    with engine.connect(autocommit=True) as connection:
        columns = connection.execute("SELECT * FROM t LIMIT 0").description
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (999,)
        with pytest.raises(tique.IntegrityError):
            connection.execute("INSERT INTO t (id) VALUES (5)")
        is_done = bool(found["acknowledged"])
        if what == "ALTER TYPE":
            assert (connection.execute("SELECT n FROM t").fetchone()[0] != 1) == is_done
        else:
            assert (len(columns) == 4) == (is_done and what == "ADD COLUMN")
        undo = {
            "CREATE TABLE AS": "DROP TABLE made",
            "ADD COLUMN": "ALTER TABLE t DROP COLUMN made",
        }.get(what, "DROP INDEX made")
        if is_done and what != "ALTER TYPE":
            connection.execute(undo)
        elif what != "ALTER TYPE":
            connection.execute(DDL[what])
        connection.checkpoint()
