"""P4: databases of releases that took any CHECK."""

from __future__ import annotations

import time

import pytest

import tique
from tests.effort import patience

pytestmark = pytest.mark.written_for(["duckdb"], reason="how it made its cache tables")

OFFER = (
    "CREATE TABLE offer (a INTEGER PRIMARY KEY, until TIMESTAMP, "
    "CHECK (until > CAST(now() AS TIMESTAMP)))"
)


@pytest.fixture
def earlier(engine, monkeypatch):
    """A connection through which any CHECK may be defined."""
    connection = engine.connect(checkpoint="manual")
    kind = type(connection._database.engine)
    monkeypatch.setattr(kind, "check_definition", lambda *_: None)
    return connection


def drain(connection):
    session = connection._database.engine.session()
    for versions in connection._database.catalog.all_versions():
        versions.drain(session)
    session.close()


@pytest.mark.slow
@pytest.mark.parametrize("is_drained", [False, True])
def test_a_row_that_was_good_for_a_second(engine, earlier, is_drained):
    earlier.execute(OFFER)
    earlier.execute("CREATE TABLE other (a INTEGER PRIMARY KEY, CHECK (a > 0))")
    engine.close()
    connection = engine.connect(checkpoint="manual")
    moment = round(patience(2))
    good = f"CAST(now() AS TIMESTAMP) + INTERVAL {moment} SECONDS"
    connection.execute(f"INSERT INTO offer SELECT 1, {good}")
    connection.execute("INSERT INTO other VALUES (1)")
    connection.commit()
    if is_drained:
        # The row reaches the cache table while it is good, or never before it is bad.
        drain(connection)
    rows = connection.execute("SELECT * FROM offer").fetchall()
    connection.rollback()
    engine.close()
    time.sleep(moment + 0.1)
    for _ in range(2):
        connection = engine.connect(checkpoint="manual")
        assert connection.execute("SELECT * FROM offer").fetchall() == rows
        connection.rollback()
        status = {t.name: t for t in connection.status().tables}
        assert "CHECK constraint failed" in status["main.offer"].obstacle
        assert status["main.offer"].cached_rows == 1
        assert status["main.other"].obstacle is None
        assert status["main.other"].cached_rows == 0
        with pytest.raises(tique.errors.CheckViolation, match=r"main\.offer cannot be"):
            connection.checkpoint()
        connection.execute("UPDATE other SET a = a + 1")
        connection.commit()
        engine.close()
    assert tique.detach(engine.url, ["other"]) == ["main.other"]
    with pytest.raises(tique.OperationalError, match=r"main\.offer.*CHECK"):
        tique.detach(engine.url)
    # The application has the last word.
    connection = engine.connect(checkpoint="manual")
    with pytest.raises(tique.errors.CheckViolation):
        connection.execute("UPDATE offer SET a = 2")
    connection.execute("DELETE FROM offer WHERE a = 1")
    connection.commit()
    assert connection.checkpoint() > 0
    assert connection.status().tables[0].obstacle is None
    engine.close()
    assert tique.detach(engine.url) == ["main.offer"]
    assert engine.native().execute("SELECT count(*) FROM offer").fetchall() == [(0,)]


def test_many_rows_that_went_bad_can_be_deleted(engine, earlier):
    """A tombstone carries the old row, which no constraint judges again."""
    earlier.execute(OFFER)
    earlier.execute(
        "INSERT INTO offer SELECT i, CAST(now() AS TIMESTAMP) + INTERVAL 3 SECONDS "
        "FROM range(3000) AS r(i)"
    )
    earlier.commit()
    time.sleep(3.1)
    engine.close()
    connection = engine.connect(checkpoint="manual")
    count = "SELECT count(*) FROM offer"
    assert connection.execute(count).fetchall() == [(3000,)]
    connection.execute("DELETE FROM offer WHERE a >= 2500")
    assert connection.execute(count).fetchall() == [(2500,)]
    connection.execute("DELETE FROM offer")
    connection.commit()
    connection.checkpoint()
    assert connection.execute(count).fetchall() == [(0,)]
    assert connection.status().tables[0].obstacle is None
