"""Reading by a key of integers: by statements that are prepared once."""

from __future__ import annotations

import pytest

from tique_backends.errors import EngineError
from tique_backends.monetdb.sessions import connection


def test_what_was_prepared_is_prepared_again(session, managed):
    """A failure makes the server forget prepared statements; readers do not notice."""
    table = managed("numbered", "a INTEGER, b BIGINT, v INTEGER, PRIMARY KEY (a, b)")
    session.execute("INSERT INTO app.numbered VALUES (1, 1, 10), (1, -2, 20)")

    def expect_all():
        before = session._connection._statistics.statements
        assert session.read_row(table, (1, -2)) == (1, -2, 20)
        assert session.read_row(table, (1, 7)) is None
        assert len(session.read_range(table, (1,), -5, 5, [2])) == 2
        return session._connection._statistics.statements - before

    assert expect_all() == 3 + 2
    assert expect_all() == 3
    with pytest.raises(EngineError):
        session.execute("SELECT nothing")
    assert expect_all() == 3 + 2
    session._connection._send("DEALLOCATE ALL")
    # Each of the two finds out by itself, and fails once.
    assert expect_all() > 3
    session.begin()
    assert expect_all() == 3
    session.rollback()


def test_no_more_than_so_many_are_prepared(session, managed, monkeypatch):
    monkeypatch.setattr(connection, "_MOST_PREPARED", 2)
    tables = [managed(f"n{n}", "a INTEGER PRIMARY KEY") for n in range(3)]
    for _ in range(2):
        for table in tables:
            assert session.read_row(table, (1,)) is None
    assert len(session._connection._prepared) == 2


@pytest.mark.parametrize(
    ("type_name", "bits"), [("TINYINT", 8), ("SMALLINT", 16), ("BIGINT", 64)]
)
def test_a_range_may_go_beyond_the_type(session, managed, type_name, bits):
    table = managed("narrow", f"n {type_name} PRIMARY KEY")
    largest = 2 ** (bits - 1) - 1
    session.execute(f"INSERT INTO app.narrow VALUES ({largest}), (0), ({-largest})")
    for bound in (largest, 2**bits):
        found = session.read_range(table, (), -bound - 1, bound, [0])
        assert sorted(found.column(0)) == [-largest, 0, largest]
