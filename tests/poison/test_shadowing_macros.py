"""P4, P10: a macro that stands before a function of DuckDB's own opens no database.

An operator, ``count(*)`` or a keyword would call it, also in the statements by which tique
reads a snapshot and folds acknowledged rows; no text shows that.
"""

from __future__ import annotations

import pytest

import tique

pytestmark = pytest.mark.written_for(["duckdb"], reason="it has macros")

SHADOWS = {
    "+": "(a, b) AS 42",
    "@@@": "(a, b) AS 42",
    "Lower": "(a) AS 'x'",
    "count_star": "() AS 7",
    "current_user": "() AS 'x'",
    "current_setting": "(a) AS ''",
    "get_current_timestamp": "() AS 5",
    "list_value": "(a) AS 9",
    "~~": "(a, b) AS true",
    "duckdb_functions": "() AS TABLE SELECT 1 AS internal",
    "duckdb_schemas": "() AS TABLE SELECT 'tique' AS schema_name",
    "read_csv": "(a) AS TABLE SELECT 1",
    "s.max": "(a) AS 7",
}


def macro(name):
    schema, _, plain = name.rpartition(".")
    return f'{schema or "main"}."{plain}"'


@pytest.mark.parametrize("name", SHADOWS)
def test_a_macro_called_like_a_function_opens_no_database(engine, name):
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.commit()
    native = engine.native()
    native.execute("CREATE SCHEMA s")
    native.execute(f"CREATE MACRO {macro(name)}{SHADOWS[name]}")
    engine.close()
    for refused in (tique.adopt, tique.connect, tique.detach):
        with pytest.raises(tique.NotSupportedError) as found:
            refused(engine.url)
        assert f"{name.rpartition('.')[2]}() would be called in place of" in str(
            found.value
        )
    native = engine.native()
    kind = "MACRO TABLE" if "AS TABLE" in SHADOWS[name] else "MACRO"
    native.execute(f"DROP {kind} {macro(name)}")
    engine.close()
    rows = engine.connect().execute("SELECT count(*) FROM t").fetchall()
    assert rows == [(1,)]
