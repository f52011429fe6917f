"""P10: no application's function is called in an uncommitted fold, which no text names.

What it writes would be undone with the fold.
"""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.isolation.test_uncommitted_folds import (  # noqa: F401
    SUM,
    add,
    elsewhere,
    one,
    table,
)

ALL = 499_501
"""The sum of the numbers below a thousand, one of which was raised by one."""


@pytest.fixture
def define(table):  # noqa: F811
    """Run statements in the engine, behind tique's back, after they were understood."""

    def run(*statements):
        with closing(table._database.engine.session()) as session:
            for statement in statements:
                session.execute(statement)

    add(table, 1, 1)
    assert one(table, SUM) == (1000, ALL)
    run("CREATE TABLE audit (x INTEGER)")
    return run


@pytest.fixture
def written(table):  # noqa: F811
    """How many rows the application's function has written for good."""

    def count():
        table.commit()
        with closing(table._database.engine.session()) as session:
            return session.execute("SELECT count(*) FROM audit").fetch_all()[0][0]

    return count


WRITING = (
    "CREATE FUNCTION public.noted({}) RETURNS {} LANGUAGE plpgsql VOLATILE AS "
    "$$BEGIN INSERT INTO public.audit VALUES (1); RETURN {}; END$$"
)
PAIR = WRITING.format("a INTEGER, b INTEGER", "INTEGER", "a")
CHECK = WRITING.format("a INTEGER", "BOOLEAN", "true")
ENUM = "CREATE TYPE public.mood AS ENUM ('x')"
OF_ENUM = WRITING.format("a public.mood", "INTEGER", "1")

BEHIND = {
    "an operator": (
        (
            PAIR,
            "CREATE OPERATOR @@ (LEFTARG=INTEGER, RIGHTARG=INTEGER, FUNCTION=noted)",
        ),
        "SELECT count(n @@ 1) FROM t",
        1000,
    ),
    "an operator called like a built-in one": (
        (
            WRITING.format("a TEXT, b INTEGER", "INTEGER", "b"),
            "CREATE OPERATOR + (LEFTARG=TEXT, RIGHTARG=INTEGER, FUNCTION=noted)",
        ),
        "SELECT count(CAST(s AS TEXT) + n) FROM t",
        1000,
    ),
    "a conversion": (
        (ENUM, OF_ENUM, "CREATE CAST (mood AS INTEGER) WITH FUNCTION noted(mood)"),
        "SELECT sum(CAST('x'::mood AS INTEGER)) FROM t",
        1000,
    ),
    "a conversion that no text names": (
        (
            ENUM,
            OF_ENUM,
            "CREATE CAST (mood AS INTEGER) WITH FUNCTION noted(mood) AS IMPLICIT",
        ),
        "SELECT count(n) FROM t WHERE 'x'::mood + n > 0",
        1000,
    ),
    "a domain": (
        (CHECK, "CREATE DOMAIN public.d AS INTEGER CHECK (noted(VALUE))"),
        "SELECT count(n), CAST(5 AS d) FROM t",
        1,
    ),
    "a domain called like a type elsewhere": (
        (CHECK, "CREATE DOMAIN public.tinyint AS INTEGER CHECK (noted(VALUE))"),
        "SELECT count(CAST(n AS tinyint)) FROM t",
        1000,
    ),
    "a domain in an array": (
        (CHECK, "CREATE DOMAIN public.d AS INTEGER CHECK (noted(VALUE))"),
        "SELECT count(n), max('{5}'::d[]) FROM t",
        1,
    ),
}


@pytest.mark.written_for(["postgresql"], reason="it has operators of one's own")
@pytest.mark.parametrize("what", BEHIND)
def test_functions_that_no_text_names(engine, table, define, written, what):  # noqa: F811
    statements, query, calls = BEHIND[what]
    define(*statements)
    ((counted, *_),) = elsewhere(table, query)
    assert counted == 1000
    assert written() == calls
    # Which operators a query calls is known by the server alone.
    elsewhere(table, SUM)


@pytest.mark.written_for(["postgresql"], reason="it has extensions")
def test_operators_of_extensions(engine, table, define):  # noqa: F811
    define("CREATE EXTENSION pg_trgm", "CREATE EXTENSION hstore")
    assert one(table, "SELECT count(*) FROM t WHERE s % 'a'") == (1000,)
    query = "SELECT count(*) FROM t WHERE 'a=>1'::hstore ? s"
    assert one(table, query) == (1000,)


@pytest.mark.written_for(["postgresql"], reason="it has domains")
def test_a_domain_of_the_engines_functions(engine, table, define):  # noqa: F811
    define("CREATE DOMAIN public.d AS TEXT CHECK (length(VALUE) < 9)")
    query = "SELECT count(*) FROM t WHERE s = 'a'::d"
    assert one(table, query) == (1000,)


MONETDB = {
    "a function": ("lower(a INTEGER)", "a", "lower(n)", 1000),
    "a function of a schema": ("s.lower(a INTEGER)", "a", "s.lower(n)", 1000),
    "what is behind an operator": (
        "sql_add(a VARCHAR(9), b INTEGER)",
        "b",
        "s + n",
        1000,
    ),
}


@pytest.mark.written_for(["monetdb"], reason="others know the function by its name")
@pytest.mark.parametrize("what", MONETDB)
def test_functions_called_like_built_in_ones(engine, table, define, written, what):  # noqa: F811
    head, result, call, calls = MONETDB[what]
    define(
        "CREATE SCHEMA s",
        f"CREATE FUNCTION {head} RETURNS INTEGER "
        f"BEGIN INSERT INTO audit VALUES (1); RETURN {result}; END",
    )
    assert elsewhere(table, f"SELECT count({call}) FROM t") == [(1000,)]
    assert written() == calls
