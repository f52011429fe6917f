from __future__ import annotations

import pytest

from tests.crash.faults import Faults, watched_connect, watched_run
from tique.commit import committer as committing
from tique.commit.turns import Contender
from tique_udfs.duckdb import Prepared


@pytest.fixture
def faults(engine, monkeypatch):
    """Errors at the engine's calls, planned by the test; the engine is real."""
    planned = Faults()
    monkeypatch.setattr(
        engine.driver, "connect", watched_connect(engine.driver, planned)
    )
    monkeypatch.setattr(Prepared, "run", watched_run(planned))
    yield planned
    planned.clear()


@pytest.fixture
def row(engine):
    with engine.connect() as connection:
        connection.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, m INTEGER, "
            "note VARCHAR(20))"
        )
        connection.execute("INSERT INTO t VALUES (1, 0, 0, 'a')")
        connection.commit()

        def rows():
            found = connection.execute(
                "SELECT n, m, note FROM t ORDER BY id"
            ).fetchall()
            connection.rollback()
            return found

        yield rows


@pytest.fixture
def losses(monkeypatch):
    """The conflicts that connections meet."""
    found = []
    monkeypatch.setattr(Contender, "lose", lambda *_: found.append(None))
    return found


@pytest.fixture(params=[256, 1], ids=["one batch", "one after the other"])
def batches(request, monkeypatch):
    """How many commits there are in a group."""
    monkeypatch.setattr(committing, "_BATCH", request.param)
