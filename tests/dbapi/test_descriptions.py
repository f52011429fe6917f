"""DESCRIBE and SUMMARIZE: definitions are storage's, rows the snapshot's (P1)."""

from __future__ import annotations

import pytest

import tique

pytestmark = pytest.mark.written_for(["duckdb"], reason="the others have no such verbs")


@pytest.fixture
def conn(engine):
    opened = engine.connect(checkpoint="manual", autocommit=True)
    opened.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER DEFAULT 3)")
    opened.execute("INSERT INTO t VALUES (1, 10), (2, 20)")
    return opened


def test_a_temporary_table_is_summarized_and_not_described(conn):
    conn.execute("CREATE TEMP TABLE mine (z INTEGER)")
    conn.execute("INSERT INTO mine VALUES (5)")
    assert conn.execute("SUMMARIZE mine").fetchall()[0][2] == "5"
    for sql in ("DESCRIBE mine", "PRAGMA table_info('mine')"):
        with pytest.raises(tique.NotSupportedError, match="which is temporary"):
            conn.execute(sql)
