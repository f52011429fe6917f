"""Reading storage past the driver: rows, ranges and greatest keys."""

from __future__ import annotations

import threading
import time

import pytest

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.records import MISSING, Versions
from tique_rewriter.schema import Column, Table

pytestmark = pytest.mark.written_for(
    ["duckdb"], reason="tests/monetdb/test_session.py asks MonetDB the same"
)

TABLE = Table(
    "main",
    'o"d',
    (Column("w", "VARCHAR"), Column("n", "INTEGER"), Column("v", "VARCHAR")),
    primary_key=(0, 1),
    id=1,
)
ROWS = [(w, n, f"{w}{n}") for w in ("it's", "b\0") for n in range(1, 41)]


@pytest.fixture
def session(engine):
    database = engine.connect()._database
    session = database.engine.session()
    session.execute(
        'CREATE TABLE "o""d" (w VARCHAR, n INTEGER, v VARCHAR, PRIMARY KEY (w, n))'
    )
    for row in ROWS:
        session.execute('INSERT INTO "o""d" VALUES ($1, $2, $3)', row)
    yield session
    session.close()


def test_read_row(session):
    assert session.read_row(TABLE, ("it's", 7)) == ("it's", 7, "it's7")
    assert session.read_row(TABLE, ("b\0", 7), [2]) == (MISSING, MISSING, "b\x007")
    assert session.read_row(TABLE, ("it's", 41)) is None
    assert session.read_row(TABLE, ("'", 1)) is None


def test_a_row_that_was_read_holds_up_nothing(engine, session):
    """P6: its engine transaction is over. DuckDB keeps changes for one that is not."""
    other = engine.connect()._database.engine.session()
    assert session.read_row(TABLE, ("it's", 7))
    other.execute("""UPDATE "o""d" SET v = 'x' WHERE n = 7""")
    other.execute('CREATE INDEX x ON "o""d" (v)')
    other.close()


@pytest.mark.parametrize(
    "keys",
    [
        [("it's", 3)],
        [("it's", n) for n in (4, 5, 6, 7)],
        [("it's", 39), ("it's", 40), ("it's", 41)],
        [("b\0", 3), ("it's", 9), ("x", 1)],
        [("b\0", n) for n in range(0, 60, 2)],
    ],
    ids=["one", "run", "beyond the end", "few", "many"],
)
@pytest.mark.parametrize("columns", [None, [2]])
def test_read_rows(session, keys, columns):
    """The rows are the same one by one, by a range and by a join."""
    expected = {row[:2]: row for row in ROWS if row[:2] in keys}
    assert session.read_rows(TABLE, keys, columns) == expected


def test_read_range(session):
    found = session.read_range(TABLE, ("it's",), 38, 50, [1, 2])
    assert sorted(found.rows()) == [(n, f"it's{n}") for n in (38, 39, 40)]
    assert len(session.read_range(TABLE, ("x",), 0, 50, [1, 2])) == 0
    assert len(session.read_range(TABLE, ("it's",), 41, 2**31 - 1, [1])) == 0


def test_a_result_outlives_the_statements_after_it(session):
    """A cursor's rows are not lost when the connection is needed otherwise."""
    result = session.execute('SELECT n FROM "o""d" ORDER BY w, n')
    assert result.fetch(2) == [(1,), (2,)]
    session.read_row(TABLE, ("it's", 1))
    session.read_range(TABLE, ("it's",), 1, 9, [1])
    assert len(result.fetch_all()) == len(ROWS) - 2


def test_an_error_among_the_rows_is_the_results_own(session):
    """P8: the statement after it is not the one that fails."""
    session.execute("CREATE TABLE x (v VARCHAR)")
    session.execute("INSERT INTO x SELECT range::VARCHAR FROM range(5000)")
    session.execute("INSERT INTO x VALUES ('bad')")
    query = "SELECT CAST(v AS INTEGER) FROM x"
    for fetch in ("fetch_all", "arrow", "drained"):
        try:
            result = session.execute(query)
        except EngineError:
            continue  # The engine was faster than the fetch.
        if fetch == "drained":
            assert session.execute("SELECT 1").fetch_all() == [(1,)]
            fetch = "fetch_all"
        with pytest.raises(EngineError):
            getattr(result, fetch)()
        assert session.execute("SELECT 1").fetch_all() == [(1,)]


@pytest.mark.slow
def test_an_interruption_between_statements(session):
    """P6: it has one form, also where rows are given a name for a statement."""
    ended = threading.Event()

    def interrupt():
        while not ended.wait(0.0001):
            session.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    seen = set()
    try:
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            try:
                session.upsert(TABLE, ROWS)
            except EngineError as error:
                seen.add(error.kind)
    finally:
        ended.set()
        thread.join()
    assert seen == {ErrorKind.INTERRUPTED}
    session.upsert(TABLE, [("it's", 1, "new")])
    assert session.read_row(TABLE, ("it's", 1)) == ("it's", 1, "new")


def test_rows_can_be_written_after_a_failure(session):
    """Rows in Arrow's form are not refused for the statement before them."""
    session.create_stage(TABLE)
    # The first rows are there when the others fail.
    numbers = (
        'SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 9223372036854775807 FROM "o""d"'
    )
    with pytest.raises(EngineError, match="Overflow in addition"):
        session.execute(numbers).fetch(2)
    session.stage(Versions(TABLE, [("it's", 41, "v")], [2], [False]))
