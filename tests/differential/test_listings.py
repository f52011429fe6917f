"""The engine's own relations list the native objects, and nothing of tique's (P10)."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from decimal import Decimal

import pytest

import tique
from tests.portable import numbers
from tique_rewriter.dialects import rules_of

DEFINITIONS = (
    "CREATE TABLE item (id INTEGER PRIMARY KEY, name VARCHAR(20) NOT NULL, n INTEGER)",
    "CREATE TABLE sale (on_day DATE, item INTEGER, note VARCHAR(20), UNIQUE (on_day, item))",
    "CREATE TABLE mark (a INTEGER, b INTEGER DEFAULT 7)",
    "CREATE INDEX mark_a ON mark (a)",
    "INSERT INTO item VALUES (1, 'one', 1), (2, 'two', 2)",
    "INSERT INTO mark VALUES (1, 1)",
)
REFUSED = {
    "duckdb": ["duckdb_logs", "duckdb_memory()", "pg_catalog.pg_prepared_statements"],
    "monetdb": ["sys.queue", "sys.ids", "sys.statistics", "storage", "sys.sessions"],
    "postgresql": ["pg_cursors", "pg_catalog.pg_prepared_statements", "pg_locks"],
}
RELATION = {
    "duckdb": "duckdb_schemas()",
    "monetdb": "sys.schemas",
    "postgresql": "pg_namespace",
}
COLUMN = {"duckdb": "schema_name", "monetdb": "name", "postgresql": "nspname"}
_LEFT_BEHIND = re.compile("pg_(?:toast_)?temp_")
"""A session's own schema stays when the session ends."""
_SESSION = re.compile(r".*(settings|pg_stat\w*|_extensions?\(?\)?|extension_versions)")
"""They tell of this session, of the amount of work, or of the server's features."""
_ESTIMATED = re.compile(r"estimated_size|rel(pages|tuples|all\w+|\w+xid)")


def statements_of(dialect):
    listings = rules_of(dialect).listings
    return [f"SELECT * FROM {name.removeprefix('main.')}" for name in listings]


def masked(value):
    """A value without the numbers of objects, which depend on earlier objects."""
    if isinstance(value, int | float | Decimal) and value > 999:
        return "#"
    if isinstance(value, datetime):
        return "#"
    return re.sub(r"\d{4,}", "#", str(value)).lower()


def outcome(connection, sql):
    """The names and the rows of a relation; an error and None."""
    try:
        cursor = connection.execute(sql)
        rows = cursor.fetchall()
    except Exception as error:
        return error, None
    names = [column[0] for column in cursor.description]
    kept = [i for i, name in enumerate(names) if not _ESTIMATED.fullmatch(name)]
    shown = (str([masked(row[i]) for i in kept]) for row in rows)
    return names, Counter(row for row in shown if not _LEFT_BEHIND.search(row))


def differing(connection, wanted):
    """The differences of a connection's answers, by statement."""
    found = {}
    for sql, (names, rows) in wanted.items():
        if rows is None:
            continue  # Another release has it.
        shown, told = outcome(connection, sql)
        if told is None or shown != names:
            found[sql] = shown, names
        elif _SESSION.fullmatch(sql):
            if any("tique_" in row or "tique." in row for row in told):
                found[sql] = told
        elif told != rows:
            found[sql] = list(told - rows)[:3], list(rows - told)[:3]
    return found


def test_relations_list_what_is_there_natively(engine):
    sqls = statements_of(engine.name)
    native = engine.native()
    for sql in DEFINITIONS:
        native.execute(sql)
    wanted = {sql: outcome(native, sql) for sql in sqls}
    engine.begin_again()
    connection = engine.connect(autocommit=True)
    for sql in DEFINITIONS:
        connection.execute(sql)
    # Recent versions get to cache tables, and a large write to a temporary one.
    connection.execute("SELECT count(*) FROM item").fetchall()
    connection.execute("BEGIN")
    connection.execute(f"INSERT INTO mark SELECT number, number FROM {numbers(5000)}")
    assert differing(connection, wanted) == {}
    assert sum(rows is not None for _, rows in wanted.values()) > len(sqls) * 0.8


@pytest.mark.written_for(["postgresql"], reason="it is PostgreSQL that has statistics")
def test_statistics_of_catalogs_tell_nothing(engine):
    """Autovacuum analyzes the catalogs, whose values are the names of objects."""
    connection = engine.connect(autocommit=True)
    connection.execute(DEFINITIONS[0])
    connection.execute(DEFINITIONS[4])
    engine.native().execute("ANALYZE")
    connection = engine.connect(autocommit=True)
    for relation in ("pg_stats", "pg_statistic"):
        rows = connection.execute(f"SELECT * FROM {relation}").fetchall()
        assert len(rows) > 100
        assert not [row for row in rows if "tique" in str(row)]


def test_a_result_over_them_is_called_as_natively(engine):
    relation = RELATION[engine.name]
    column = COLUMN[engine.name]
    query = (
        f"SELECT count(*), (SELECT max({column}) FROM {relation} AS x) FROM {relation}"
    )
    native = [column[0] for column in engine.native().execute(query).description]
    engine.begin_again()
    cursor = engine.connect().execute(query)
    assert [column[0] for column in cursor.description] == native


def test_what_would_tell_of_tique_is_refused_by_name(engine):
    connection = engine.connect()
    for relation in REFUSED[engine.name]:
        name = relation.rpartition(".")[2]
        with pytest.raises(tique.NotSupportedError, match=re.escape(name)):
            connection.execute(f"SELECT * FROM {relation}")
