"""tique refuses every statement that an engine refuses, with the same error (P10)."""

from __future__ import annotations

import pytest

import tique
from tests.differential.world import FOLDER, statements

_ALL, _UNDERSTOOD_BY_ENGINES = (
    (FOLDER / "faults.sql").read_text().split("-- not supported\n\n")
)
UNSUPPORTED = [s.strip() for s in _UNDERSTOOD_BY_ENGINES.split("\n\n")]
FAULTS = [s for s in statements("faults.sql") if s not in UNSUPPORTED]
DEFINITIONS = (
    "CREATE TABLE t (a INTEGER PRIMARY KEY, f INTEGER)",
    "CREATE TABLE u (a INTEGER, f INTEGER)",
    # MonetDB takes columns that are not grouped if all rows in memory are one.
    "INSERT INTO t VALUES (1, 1), (2, 2)",
    "INSERT INTO u VALUES (1, 1)",
)


def outcomes(connection, sqls):
    """Each statement's error; None if it has none."""
    for sql in DEFINITIONS:
        connection.execute(sql)
    found = {}
    for sql in sqls:
        found[sql] = None
        try:
            connection.execute(sql)
        except Exception as error:
            found[sql] = error
    return found


def compared(engine, sqls):
    native = outcomes(engine.native(), sqls)
    engine.begin_again()
    through = outcomes(engine.connect(autocommit=True), sqls)
    assert all(isinstance(e, tique.Error | None) for e in through.values()), through
    return native, through


def has_on_conflict(engine, sql):
    return engine.name != "monetdb" or "ON CONFLICT" not in sql


def test_the_same_is_refused(engine):
    native, through = compared(engine, FAULTS)
    differing = {
        sql: (native[sql], through[sql])
        for sql in FAULTS
        if has_on_conflict(engine, sql)
        and (native[sql] is None) is not (through[sql] is None)
    }
    assert not differing


@pytest.mark.written_for(
    ["postgresql"], reason="the others have no SQLSTATEs to compare"
)
def test_sqlstates_are_the_same(engine):
    native, through = compared(engine, FAULTS)
    states = {
        sql: (getattr(native[sql], "sqlstate", None), getattr(e, "sqlstate", None))
        for sql, e in through.items()
    }
    assert {sql: pair for sql, pair in states.items() if pair[0] != pair[1]} == {}


@pytest.mark.written_for(["duckdb", "postgresql"], reason="they can be asked")
def test_what_the_engine_understands_is_not_called_a_syntax_error(engine):
    native, through = compared(engine, UNSUPPORTED)
    assert any(native[sql] is None for sql in UNSUPPORTED) or engine.name == "duckdb"
    for sql in UNSUPPORTED:
        if native[sql] is None:
            assert isinstance(through[sql], tique.NotSupportedError), sql
        else:
            assert through[sql] is not None, sql


@pytest.mark.written_for(["duckdb"], reason="statements in its SQL")
@pytest.mark.parametrize(
    "sql", ["PRAGMA force_checkpoint", "ATTACH 'x' AS y", "LOAD httpfs"]
)
def test_a_statement_of_the_engines_is_not_called_a_syntax_error(engine, sql):
    with pytest.raises(tique.NotSupportedError):
        engine.connect().execute(sql)


def test_asking_the_engine_runs_nothing(engine):
    connection = engine.connect(autocommit=True)
    for sql in DEFINITIONS:
        connection.execute(sql)
    for sql in ("LOCK t", "DO 'x'", "DELETE t", "ALTER TABLE t SET SCHEMA s"):
        with pytest.raises(tique.Error):
            connection.execute(sql)
    rows = connection.execute("SELECT * FROM t").fetchall()
    assert sorted(rows) == [(1, 1), (2, 2)]
