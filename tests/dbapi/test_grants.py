"""GRANT and REVOKE on MonetDB: for clients that read storage without tique (P11)."""

from __future__ import annotations

import pymonetdb
import pytest

import tique
from tests.plugins.monetdb import connect_natively

USER = "CREATE USER reader WITH PASSWORD 'p' NAME 'r' SCHEMA sys"


@pytest.mark.written_for(["monetdb"], reason="the privileges are MonetDB's")
def test_privileges_reach_storage_and_nothing_of_tiques(engine):
    """P11: a table's versions stay closed, and so do tique's own tables."""
    engine.native().execute(USER)
    connection = engine.connect(autocommit=True, checkpoint="manual")
    connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, secret INTEGER)")
    connection.execute("INSERT INTO item VALUES (1, 7)")
    connection.checkpoint()
    session = connect_natively(engine.url, username="reader", password="p")
    reader = session.cursor()
    try:
        for granted in ("SELECT ON item", "SELECT (id) ON TABLE sys.item"):
            with pytest.raises(pymonetdb.Error, match=r"access denied|privileges"):
                reader.execute("SELECT id FROM sys.item")
            connection.execute(f"GRANT {granted} TO reader")
            reader.execute("SELECT id FROM sys.item")
            assert reader.fetchall() == [(1,)]
            connection.execute(f"REVOKE {granted} FROM reader")
        connection.execute("GRANT ALL ON item TO reader")
        for hidden in ("tique.tique_cache_1", "tique.log"):
            with pytest.raises(pymonetdb.Error):
                reader.execute(f"SELECT * FROM {hidden}")
        with pytest.raises(tique.NotSupportedError, match="reserved"):
            connection.execute("GRANT SELECT ON tique.log TO reader")
        with pytest.raises(tique.DatabaseError):
            connection.execute("GRANT SELECT ON item TO stranger")
    finally:
        session.close()
        engine.close()
        engine.native().execute("DROP USER reader")
