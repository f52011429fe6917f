"""DuckDB's log is appended to by a prepared statement, or else by any other (P4)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.records import CommitRecord

pytestmark = pytest.mark.written_for(
    ["duckdb"], reason="MonetDB and PostgreSQL prepare statements in their protocols"
)

COMMIT = CommitRecord(7, 70, {1: [((1, "it's"), False)]}, {})
ENTRY = '[[7,70,{"1":[[0,1,"it\'s"]]}]]'


@pytest.fixture
def database(engine):
    return engine.connect()._database


@pytest.fixture
def logger(database):
    session = database.engine.session(logs_only=True)
    yield session
    session.close()


def logged(database):
    session = database.engine.session()
    found = session.execute("SELECT cts, commits FROM tique.log").fetch_all()
    session.close()
    return found


def test_it_is_prepared_and_counted(database, logger):
    statistics = database.engine.statistics
    before, seconds = statistics.statements, statistics.seconds
    logger.log([COMMIT])
    assert statistics.statements == before + 1
    assert statistics.seconds > seconds
    assert logged(database) == [(7, ENTRY)]


def test_without_the_connection_any_statement_will_do(database, logger):
    database.engine._append.close()
    logger.log([COMMIT])
    assert logged(database) == [(7, ENTRY)]


def test_a_failure_is_the_engine_s(database, logger):
    session = database.engine.session()
    session.execute("ALTER TABLE tique.log RENAME TO gone")
    for _ in range(2):
        with pytest.raises(EngineError, match=r"Table with name log") as caught:
            logger.log([COMMIT])
        assert caught.value.kind is ErrorKind.OPERATIONAL
    session.execute("ALTER TABLE tique.gone RENAME TO log")
    session.close()
    logger.log([COMMIT])
    assert logged(database) == [(7, ENTRY)]


FORGETFUL = """
import sys, tique
connection = tique.connect(sys.argv[1])
connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
connection.execute("INSERT INTO t VALUES (1)")
connection.commit()
"""


@pytest.mark.slow
def test_a_process_that_ends_without_close_leaves_one_file(tmp_path):
    """The statement's connection does not keep DuckDB from its last checkpoint."""
    path = tmp_path / "shop.duckdb"
    url = f"duckdb:///{path}"
    subprocess.run([sys.executable, "-c", FORGETFUL, url], check=True)
    assert [each.name for each in tmp_path.iterdir()] == ["shop.duckdb"]
