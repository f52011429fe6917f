"""Macros that are created through tique, and what they may be (P1, P3, P10)."""

from __future__ import annotations

import pytest

import tique
from tests.differential import scripts

pytestmark = pytest.mark.written_for(["duckdb"], reason="the others have no macros")

SCRIPT = """
CREATE TABLE item (id INTEGER PRIMARY KEY, name VARCHAR, n INTEGER)

INSERT INTO item VALUES (1, 'a', 5), (2, 'b', NULL), (3, NULL, 7)

CREATE MACRO add2(a, b := 2) AS a + b

SELECT id, add2(n) AS m FROM item

SELECT add2(1, 2), add2(1, b := 5)

SELECT add2(n) FROM item WHERE add2(id) > 3

INSERT INTO item VALUES (add2(4), upper('x'), add2(1, 1))

UPDATE item SET n = add2(n, id) WHERE add2(id, 0) <= 3

CREATE VIEW v AS SELECT id, add2(n) AS m FROM item

SELECT * FROM v

CREATE OR REPLACE MACRO add2(a, b := 3) AS coalesce(a, 0) + b

SELECT * FROM v

CREATE MACRO add2(a) AS a

CREATE MACRO IF NOT EXISTS add2(a) AS a

SELECT add2(1)

CREATE FUNCTION named(a, b) AS CASE WHEN a IS NULL THEN b ELSE concat(a, '-', b) END

SELECT id, main.named(name, 'z') AS t FROM item

DELETE FROM item WHERE named(name, 'q') = 'q'

SELECT * FROM item

DROP MACRO named

SELECT named('a', 'b')

DROP MACRO named

DROP MACRO IF EXISTS named
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", scripts.MODES)
def test_macros(engine, mode):
    scripts.check(engine, SCRIPT, mode)


REFUSED = (
    "CREATE MACRO m(a) AS a + id",
    "CREATE MACRO m(a) AS item.id",
    "CREATE MACRO m(a) AS a.id",
    "CREATE MACRO m(a) AS random() + a",
    "CREATE MACRO m(a) AS nextval('s') + a",
    "CREATE MACRO m(a) AS current_setting(a)",
    "CREATE MACRO m(a) AS now()",
    "CREATE MACRO m(a) AS getvariable('a')",
    "CREATE MACRO m(a) AS list_transform(a, lambda x: x + 1)",
    "CREATE MACRO m(a) AS list_transform(a, x -> x + random())",
    "CREATE MACRO m(a) AS sum(a)",
    "CREATE MACRO m(a) AS row_number() OVER ()",
    "CREATE MACRO m(a) AS (SELECT max(id) FROM item)",
    "CREATE MACRO m(a) AS (SELECT a)",
    "CREATE MACRO m(a) AS EXISTS (FROM item)",
    "CREATE MACRO m(a) AS COLUMNS(*)",
    "CREATE MACRO m(a) AS #1",
    "CREATE MACRO m(a) AS safe(a)",
    'CREATE MACRO m(a) AS "safe" (a)',
    "CREATE MACRO m(a) AS main.safe(a)",
    "CREATE MACRO abs(a) AS 7",
    "CREATE OR REPLACE MACRO COUNT_STAR() AS 7",
    "CREATE MACRO list_value(a) AS a",
    'CREATE MACRO "<>"(a, b) AS true',
    "CREATE TEMP MACRO m(a) AS a",
    "CREATE MACRO tique.m(a) AS a",
    "CREATE MACRO m(a) AS a, (a, b) AS (SELECT max(id) FROM item)",
    "CREATE MACRO m(a) AS TABLE FROM item",
    "CREATE MACRO m(a) AS 1); DROP TABLE item; --",
)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_would_hide_a_read_is_not_created(engine, sql):
    """P1, P3, P10: a macro is its arguments, and what it calls does not vary."""
    connection = engine.connect(autocommit=True)
    connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY)")
    connection.execute("CREATE SEQUENCE s")
    connection.execute("CREATE MACRO safe(a) AS a")
    with pytest.raises((tique.NotSupportedError, tique.ProgrammingError)):
        connection.execute(sql)
    names = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal"
    assert connection.execute(names).fetchall() == [("safe",)]
    assert connection.execute("SELECT safe(count(*)) FROM item").fetchall() == [(0,)]


def test_a_new_definition_takes_the_place_of_a_safe_one(engine):
    """P10: other connections plan their statements anew."""
    connection, other = engine.connect(autocommit=True), engine.connect(autocommit=True)
    connection.execute("CREATE MACRO m(a) AS a + 1")
    assert other.execute("SELECT m(1)").fetchall() == [(2,)]
    connection.execute("CREATE OR REPLACE MACRO m(a) AS a + 2")
    assert other.execute("SELECT m(1)").fetchall() == [(3,)]
    connection.execute("DROP MACRO m")
    with pytest.raises(tique.Error):
        other.execute("SELECT m(1)")


def test_the_first_one_is_known_like_any_other(engine):
    """P10: to all connections, though there was none when the database was opened."""
    connection, other = engine.connect(autocommit=True), engine.connect(autocommit=True)
    with pytest.raises(tique.ProgrammingError):
        other.trust_function("main.m")
    connection.execute("BEGIN")
    connection.execute("CREATE MACRO m(a) AS a")
    connection.execute("ROLLBACK")
    with pytest.raises(tique.ProgrammingError):
        other.trust_function("main.m")
    connection.execute("CREATE MACRO m(a) AS a")
    other.trust_function("main.m")
