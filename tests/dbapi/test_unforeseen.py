"""Nothing but PEP 249's errors leaves a statement, whatever the text (P10)."""

from __future__ import annotations

from functools import partial
from operator import getitem

import pytest

import tique
from tique.connection.planning import Planner

pytestmark = pytest.mark.every_engine


@pytest.fixture
def connection(engine):
    opened = engine.connect(autocommit=True)
    opened.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER)")
    opened.execute("INSERT INTO t VALUES (1, 10)")
    return opened


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TYPE mood RENAME TO humour",
        "ALTER TYPE mood RENAME VALUE 'a' TO 'b'",
        "DELETE FROM t WHERE a = 7 RETURNING {schema}.t.a",
        "DELETE FROM {schema}.t RETURNING {schema}.t.a",
        "DELETE FROM t WHERE {schema}.t.a = 7",
        "UPDATE t SET b = 2 WHERE {schema}.t.a = 7 RETURNING {schema}.t.a",
    ],
)
def test_odd_statements(engine, connection, sql):
    try:
        connection.execute(sql.format(schema=engine.schema)).close()
    except tique.InternalError:
        raise
    except tique.Error:
        pass
    assert connection.execute("SELECT count(*) FROM t").fetchone() is not None


@pytest.mark.parametrize("autocommit", [True, False])
def test_a_fault_of_tiques_says_so(engine, connection, monkeypatch, autocommit):
    """The one mock: no text is known that meets a fault."""
    connection.autocommit = autocommit
    with monkeypatch.context() as patched:
        patched.setattr(Planner, "statement", staticmethod(partial(getitem, ())))
        for execute in (
            lambda sql: connection.execute(sql),
            lambda sql: connection.cursor().executemany(sql, [()]),
        ):
            with pytest.raises(
                tique.InternalError, match=r"DELETE FROM.*TypeError"
            ) as e:
                execute("DELETE FROM t")
            assert isinstance(e.value.__cause__, TypeError)
            connection.rollback()
    assert connection.execute("SELECT a, b FROM t").fetchall() == [(1, 10)]


def test_what_the_applications_code_raises_stays_its_own(connection):
    def rows():
        yield (2, 20)
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        connection.cursor().executemany("INSERT INTO t VALUES (%s, %s)", rows())
    assert connection.execute("SELECT a, b FROM t").fetchall() == [(1, 10)]


class _Parameters(dict):
    def __getitem__(self, name):
        raise LookupError("mine")


def test_parameters_that_raise(connection):
    with pytest.raises(LookupError, match="mine"):
        connection.execute("SELECT %(a)s", _Parameters(a=1))
