"""A MonetDB session: results, reading storage, staging, interruption."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from tests.effort import patience
from tique_backends.errors import ConnectionLostError, EngineError, ErrorKind
from tique_backends.monetdb.catalog.introspection import LAYOUTS, USER_TABLES
from tique_backends.monetdb.errors import UnreadableError, complaint
from tique_backends.monetdb.names import stage_name
from tique_backends.names import cache_name
from tique_backends.records import MISSING, CommitRecord, Versions

ROWS = [(w, n, f"{w}{n}") for w in ("it's", "b\\") for n in range(1, 41)]


@pytest.fixture
def ordered(managed, session):
    table = managed('o"d', "w VARCHAR(9), n INTEGER, v VARCHAR(20), PRIMARY KEY (w, n)")
    for row in ROWS:
        session.execute('INSERT INTO app."o""d" VALUES ($1, $2, $3)', row)
    return table


def test_result(session):
    result = session.execute(
        "SELECT n, CAST(n AS DECIMAL(12,2)) AS \"a,#b\", 'x' AS c "
        "FROM (VALUES (1), (2), (3)) AS t(n) ORDER BY n"
    )
    assert [c.name for c in result.columns] == ["n", "a,#b", "c"]
    assert [c.type for c in result.columns][1:] == ["DECIMAL(12,2)", "CHAR(1)"]
    assert result.fetch(2) == [(1, Decimal("1.00"), "x"), (2, Decimal("2.00"), "x")]
    assert session.execute("SELECT 5").fetch_all() == [(5,)]
    assert result.fetch(0) == []
    assert result.fetch_all() == [(3, Decimal("3.00"), "x")]
    assert result.fetch(1) == result.fetch_all() == []


def test_a_large_result_is_one_statement(session, engine):
    session.execute("CREATE TABLE app.n (n INTEGER)")
    session.execute("INSERT INTO app.n SELECT row_number() OVER () FROM sys.columns")
    session.execute("INSERT INTO app.n SELECT -n FROM app.n")
    before = engine.statistics.statements
    rows = session.execute("SELECT n FROM app.n").fetch_all()
    assert len(rows) == len(set(rows)) > 1000
    assert engine.statistics.statements == before + 1


def test_a_row_that_python_cannot_hold_is_not_passed_over(session):
    """Nor are those that came with it."""
    session.execute("CREATE TABLE app.n (n INTEGER, d DATE)")
    session.execute("INSERT INTO app.n VALUES (0, DATE '2026-01-01')")
    for size in (1 << power for power in range(15)):
        session.execute(f"INSERT INTO app.n SELECT n + {size}, d FROM app.n")
    session.execute("UPDATE app.n SET d = DATE '20026-01-01' WHERE n = 20000")
    result = session.execute("SELECT d FROM app.n ORDER BY n")
    assert len(result.fetch(10_000)) == 10_000
    for _ in range(2):
        with pytest.raises(EngineError) as failure:
            result.fetch(20_000)
        assert failure.value.kind is ErrorKind.DATA


def test_result_of_a_change(session):
    """Its number of rows."""
    session.execute("CREATE TABLE app.n (n INTEGER)")
    assert session.execute("INSERT INTO app.n VALUES (1), (2)").fetch_all() == [(2,)]
    assert session.execute("DELETE FROM app.n WHERE n > 5").fetch_all() == [(0,)]


def test_arrow(session, engine):
    sql = (
        "SELECT 1 AS i, CAST(1.5 AS DOUBLE) AS d, CAST(2.5 AS DECIMAL(5,2)) AS e, "
        "'x' AS t, CAST(NULL AS DATE) AS n, CAST(7 AS HUGEINT) AS h, "
        "TIMESTAMP '2026-01-02 03:04:05.678901' AS m, BLOB '00ff' AS b, "
        "CAST('12345678-1234-5678-1234-567812345678' AS UUID) AS u"
    )
    arrow = session.execute(sql).arrow()
    assert [str(f.type) for f in arrow.schema] == [
        "int8", "double", "decimal128(5, 2)", "string", "date32[day]", "string",
        "timestamp[us]", "binary", "string",
    ]  # fmt: skip
    result = session.execute(sql)
    (row,) = result.fetch_all()
    for value, (name, (found,)), column in zip(
        row, arrow.to_pydict().items(), result.columns, strict=True
    ):
        if engine.columnar(column.type):
            assert (found, type(found)) == (value, type(value)), name


@pytest.mark.parametrize(
    ("kind", "has_value", "is_key"),
    [
        *[
            (kind, True, True)
            for kind in (
                "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DOUBLE",
                "DECIMAL(38,10)", "CLOB", "VARCHAR(3)", "CHAR(3)", "BLOB", "BLOB(9)",
                "DATE", "TIMESTAMP", "UUID", "JSON", "INET", "URL", "URL(9)",
            )
        ],
        *[
            (kind, False, True)
            for kind in (
                "TIME", "TIME(6)", "TIME WITH TIME ZONE", "TIME(3) WITH TIME ZONE",
                "TIMESTAMP(3)", "TIMESTAMP WITH TIME ZONE", "INTERVAL DAY",
                "INTERVAL SECOND", "INTERVAL YEAR TO MONTH",
            )
        ],
        ("REAL", False, False),
    ],
)  # fmt: skip
def test_types_that_are_kept(engine, kind, has_value, is_key):
    """P4, P9: as Python's values or as text, and in keys if equal ones are the same."""
    assert engine.keeps(kind)
    assert engine.round_trips(kind) is has_value
    assert engine.compares(kind) is is_key
    if not has_value:
        assert not engine.columnar(kind)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("INTERVAL '1.5' SECOND", timedelta(seconds=1.5)),
        ("INTERVAL '3' DAY", 3),
        ("INTERVAL '3' MONTH", 3),
        ('CAST(\'{"a":"\u0085"}\' AS JSON)', '{"a":"\u0085"}'),
        ("CAST('10.0.0.0/8' AS INET)", "10.0.0.0/8"),
    ],
)
def test_other_types_can_be_read(session, sql, value):
    assert session.execute(f"SELECT {sql}").fetch_all() == [(value,)]


@pytest.mark.parametrize(
    "sql", ["DATE '0001-01-01' - INTERVAL '1' DAY", "TIME '24:00'"]
)
def test_what_python_does_not_have_is_no_other_value(session, sql):
    with pytest.raises(EngineError) as refusal:
        session.execute(f"SELECT {sql}")
    assert refusal.value.kind is ErrorKind.DATA
    assert session.execute("SELECT 1").fetch_all() == [(1,)]


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELEC 1", ErrorKind.PROGRAMMING),
        ("SELECT * FROM nowhere", ErrorKind.PROGRAMMING),
        ("SELECT nothing FROM app.k", ErrorKind.PROGRAMMING),
        ("CREATE TABLE app.k (n INTEGER)", ErrorKind.PROGRAMMING),
        ("SELECT 1 / 0", ErrorKind.DATA),
        ("SELECT sqrt(-1)", ErrorKind.DATA),
        ("SELECT CAST('a' AS INTEGER)", ErrorKind.DATA),
        ("SELECT CAST(300 AS TINYINT)", ErrorKind.DATA),
        ("INSERT INTO app.k VALUES (1, 2, '')", ErrorKind.UNIQUE),
        ("INSERT INTO app.k VALUES (2, 1, '')", ErrorKind.UNIQUE),
        ("INSERT INTO app.k VALUES (3, 3, NULL)", ErrorKind.NOT_NULL),
        ("INSERT INTO app.k VALUES (4, 4, 'long')", ErrorKind.DATA),
    ],
)
def test_errors(session, sql, kind):
    session.execute("CREATE TABLE app.k (n INT PRIMARY KEY, u INT UNIQUE, "
                    "t VARCHAR(3) NOT NULL)")  # fmt: skip
    session.execute("INSERT INTO app.k VALUES (1, 1, '')")
    with pytest.raises(EngineError) as refusal:
        session.execute(sql)
    assert refusal.value.kind is kind
    assert "!" not in str(refusal.value)
    assert session.execute("SELECT n FROM app.k").fetch_all() == [(1,)]


def test_a_syntax_error_quotes_no_values(session):
    """P11."""
    with pytest.raises(EngineError) as refusal:
        session.execute("SELECT $1 SELECT", ["secret"])
    assert "secret" not in str(refusal.value)


def test_transactions(session, home, engine):
    other = home.session(engine)
    session.execute("CREATE TABLE app.n (n INTEGER)")
    session.begin()
    session.execute("INSERT INTO app.n VALUES (1)")
    assert other.execute("SELECT * FROM app.n").fetch_all() == []
    session.rollback()
    session.rollback()
    session.begin()
    session.execute("INSERT INTO app.n VALUES (2)")
    session.commit()
    assert other.execute("SELECT * FROM app.n").fetch_all() == [(2,)]
    session.begin()
    with pytest.raises(EngineError):
        session.execute("SELECT nothing")
    session.rollback()
    assert session.execute("SELECT 1").fetch_all() == [(1,)]


def test_a_transaction_does_not_mind_inserts_beside_it(session, home, engine):
    """Without its isolation level MonetDB aborts it."""
    session.execute("CREATE TABLE app.n (n INTEGER)")
    session.execute("INSERT INTO app.n VALUES (1), (2)")
    session.begin()
    session.execute("DELETE FROM app.n WHERE n = 1")
    home.session(engine).execute("INSERT INTO app.n VALUES (3)")
    session.commit()
    rows = session.execute("SELECT n FROM app.n ORDER BY n").fetch_all()
    assert rows == [(2,), (3,)]


def test_read_row(session, ordered):
    assert session.read_row(ordered, ("it's", 7)) == ("it's", 7, "it's7")
    assert session.read_row(ordered, ("b\\", 7), [2]) == (MISSING, MISSING, "b\\7")
    assert session.read_row(ordered, ("b\\", 7), []) is not None
    assert session.read_row(ordered, ("it's", 41)) is None
    assert session.read_row(ordered, ("'", 1)) is None


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [("it's", 3)],
        [("it's", n) for n in (4, 5, 6, 7)],
        [("it's", 39), ("it's", 40), ("it's", 41)],
        [("b\\", 3), ("it's", 9), ("x", 1)],
        [(w, n) for w in ("b\\", "it's", "x") for n in range(0, 60, 2)],
    ],
    ids=["none", "one", "run", "beyond the end", "few", "many"],
)
@pytest.mark.parametrize("columns", [None, [2]])
def test_read_rows(session, ordered, keys, columns):
    """The rows are the same by a list of integers and by a join."""
    expected = {row[:2]: row for row in ROWS if row[:2] in keys}
    assert session.read_rows(ordered, keys, columns) == expected


def test_read_range(session, ordered):
    found = session.read_range(ordered, ("it's",), 38, 50, [1, 2])
    assert sorted(found.rows()) == [(n, f"it's{n}") for n in (38, 39, 40)]
    assert len(session.read_range(ordered, ("x",), 0, 50, [1, 2])) == 0
    assert len(session.read_range(ordered, ("it's",), 41, 2**31 - 1, [1])) == 0
    assert len(session.read_range(ordered, ("it's",), 1, 50, [1], limit=7)) == 7
    assert len(session.read_range(ordered, ("it's",), 1, 50, [1], limit=0)) == 0


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize(
    "message",
    [
        "42000!unable to find app.ordered(v)",
        "GDK reported error: BATappend_or_update: update BATs not the same size",
        "42000!Column type mismatch app.ordered.v",
    ],
)
def test_a_read_that_meets_a_commit_is_repeated(
    session, ordered, monkeypatch, message, times
):
    """Of 11.41: a column could not be read at the moment its changes were put in place."""
    send, left = session._connection._send, [None] * times

    def refusing(sql, **options):
        if left and sql.startswith("SELECT"):
            left.pop()
            raise complaint(message)
        return send(sql, **options)

    monkeypatch.setattr(session._connection, "_send", refusing)
    assert session.newest_version(ordered) == 0
    left.append(None)
    session.begin()
    with pytest.raises(UnreadableError):
        session.newest_version(ordered)
    session.rollback()


def test_narrow_and_wide_statements(session):
    """Each kind has its optimizer, and the session the last one's."""
    sql = "SELECT value FROM sys.var_values WHERE var_name = 'optimizer'"
    for wide in (False, True, True, False):
        expected = "default_pipe" if wide else "sequential_pipe"
        assert session.execute(sql, wide=wide).fetch_all() == [(expected,)]


def test_staging(session, managed, home, engine):
    table = managed('s"t', "k INTEGER PRIMARY KEY, v VARCHAR(3) NOT NULL")
    session.drop_stage(table)
    session.create_stage(table)
    session.stage(Versions(table, [(1, "a"), (2, "b")], [1, 1], [False, False]))
    sql = "SELECT n, $1, 2, n = 1 FROM (VALUES (1), (3)) AS t(n)"
    assert session.stage_query(table, sql, ["c"]) == 2
    session.stage(Versions(table, [(3, "d"), (4, "e")], [3, 4], [False, False]))
    session.unstage(table, 3)
    other = home.session(engine)
    other.create_stage(table)
    assert other.append_staged(table, 9) == 0
    session.begin()
    assert session.append_staged(table, 7) == 3
    session.commit()
    cache = f"SELECT * FROM {cache_name(table)} ORDER BY k"
    assert other.execute(cache).fetch_all() == [
        (1, "c", 7, True), (2, "b", 7, False), (3, "d", 7, False),
    ]  # fmt: skip
    session.create_stage(table)
    assert session.append_staged(table, 8) == 0


def test_a_stage_stays_for_the_next_transaction(session, managed):
    """MonetDB cannot always drop it; no row is in it twice, not after a rollback either.

    The stage of a table that was altered, or made anew, is another one.
    """
    table = managed("s", "k INTEGER PRIMARY KEY, v VARCHAR(3) NOT NULL")
    tables = "SELECT id FROM sys.tables WHERE name LIKE 'tique_stage_%' ORDER BY id"
    session.create_stage(table)
    first = session.execute(tables).fetch_all()
    session.stage(Versions(table, [(1, "a")], [1], [False]))
    session.begin()
    session.drop_stage(table)
    session.rollback()
    session.create_stage(table)
    assert session.execute(tables).fetch_all() == first
    assert session.append_staged(table, 7) == 0
    other = managed("other", "k INTEGER PRIMARY KEY, v VARCHAR(9) NOT NULL")
    altered = replace(other, name="s")
    session.create_stage(altered)
    session.stage(Versions(altered, [(1, "longer")], [1], [False]))
    assert session.execute(tables).fetch_all()[:-1] == first
    session.create_stage(table)
    assert session.append_staged(table, 8) == 0


@pytest.mark.parametrize(
    ("row", "kind"), [((1, None), ErrorKind.NOT_NULL), ((1, "long"), ErrorKind.DATA)]
)
def test_a_stage_refuses_what_the_table_would(session, managed, row, kind):
    table = managed("s", "k INTEGER PRIMARY KEY, v VARCHAR(3) NOT NULL")
    session.create_stage(table)
    with pytest.raises(EngineError) as refusal:
        session.stage(Versions(table, [(2, ""), row], [1, 1], [False, False]))
    assert refusal.value.kind is kind
    assert session.append_staged(table, 1) == 0


@pytest.mark.parametrize("ending", ["rollback", "failure", "commit", "dropped"])
@pytest.mark.parametrize("others", [0, 1], ids=["alone", "beside others"])
def test_a_rollback_of_a_transaction_that_staged(
    session, managed, ordered, ending, others
):
    """The catalog stays readable, which it does not in MonetDB's own session."""
    fails = "SELECT CAST(name AS INTEGER) FROM sys.tables"
    session.assign("time zone", "INTERVAL '-5:00'")
    for number in range(others):
        session.create_stage(managed(f"other{number}", "k INTEGER PRIMARY KEY"))
    session.begin()
    session.create_stage(ordered)
    session.stage(Versions(ordered, ROWS[:1], [1], [False]))
    if ending == "commit":
        with pytest.raises(EngineError):
            session.commit(f"{fails}; COMMIT")
    elif ending == "failure":
        with pytest.raises(EngineError):
            session.execute(fails)
    elif ending == "dropped":
        session.drop_temporary(stage_name(ordered))
    session.rollback()
    assert session.is_lost
    assert ("n",) in session.execute("SELECT name FROM sys.columns").fetch_all()
    zone = session.execute("SELECT current_timezone").fetch_all()
    assert zone == [(timedelta(hours=-5),)]
    session.create_stage(ordered)
    session.drop_stage(ordered)


def test_a_rollback_of_another_session_that_staged(session, engine, managed, ordered):
    """MonetDB takes columns of this session's catalog with it, which are not read."""
    with closing(engine.session()) as other:
        other.begin()
        other.create_stage(ordered)
        session.create_stage(managed("another", "k INTEGER PRIMARY KEY"))
        other.rollback()
    with pytest.raises(EngineError, match="does not match always"):
        session.execute("SELECT * FROM sys.columns")
    found = session.execute(USER_TABLES).fetch_all()
    assert (ordered.schema, ordered.name) in found
    assert session.execute(LAYOUTS).fetch_all()


def test_a_large_append_is_all_or_nothing(session, managed):
    table = managed("s", "k INTEGER PRIMARY KEY, v VARCHAR(3) NOT NULL")
    rows = [(n, "x") for n in range(2500)]
    bad = [*rows, (9999, "long")]
    with pytest.raises(EngineError):
        session.append(Versions(table, bad, [1] * len(bad), [False] * len(bad)))
    assert session.newest_version(table) == 0
    session.append(Versions(table, rows, [2] * len(rows), [False] * len(rows)))
    found = session.execute(f"SELECT count(*), min(_cts) FROM {cache_name(table)}")
    assert found.fetch_all() == [(2500, 2)]


def test_a_lost_connection_is_not_tried_again(session, monkeypatch):
    """The outcome of the COMMIT is unknown."""
    asked = []

    def lose(sql, **_):
        asked.append(sql)
        raise ConnectionLostError(ErrorKind.OPERATIONAL, "gone")

    session.begin()
    session.log([CommitRecord(1, 1, {})])
    monkeypatch.setattr(session._connection, "_send", lose)
    with pytest.raises(ConnectionLostError):
        session.commit()
    with pytest.raises(ConnectionLostError):
        session.log([CommitRecord(2, 2, {})])
    assert [sql.split()[0] for sql in asked] == ["COMMIT", "ROLLBACK", "INSERT"]


SLOW = (
    "SELECT count(*) FROM sys.columns a, sys.columns b, sys.columns c "
    "WHERE a.id + b.id > c.id AND c.number < 3"
)


@pytest.mark.parametrize("in_transaction", [False, True])
def test_interrupt(session, in_transaction):
    if in_transaction:
        session.begin()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(session.execute, SLOW)
        time.sleep(0.3)
        started = time.monotonic()
        session.interrupt()
        with pytest.raises(EngineError) as refusal:
            running.result(60)
        assert time.monotonic() - started < patience(20)
    assert refusal.value.kind is ErrorKind.INTERRUPTED
    session.rollback()
    found = session.execute(
        "SELECT querytimeout FROM sys.sessions WHERE sessionid = current_sessionid()"
    ).fetch_all()
    assert found[0][0] > 10**9


def test_interrupt_between_statements_does_nothing(session):
    session.interrupt()
    found = session.execute(
        "SELECT querytimeout FROM sys.sessions WHERE sessionid = current_sessionid()"
    ).fetch_all()
    assert found[0][0] > 10**9


def test_close_is_idempotent(session):
    session.close()
    session.close()
    with pytest.raises(EngineError) as refusal:
        session.execute("SELECT 1")
    assert refusal.value.kind is ErrorKind.OPERATIONAL


class Cut(BaseException):
    pass


def test_a_statement_that_was_cut_short_is_waited_for(
    home, engine, session, monkeypatch
):
    """P4: the server may commit it after the client has given it up."""
    wire = session._connection._wire

    def cut(*_):
        raise Cut

    monkeypatch.setattr(wire.mapi, "_getblock_and_transfer_files", cut)
    serial = session._connection.serial
    late = (
        "INSERT INTO tique.log SELECT 7, n, R'[[7,70,{}]]' FROM (SELECT count(*) AS n "
        "FROM sys.columns a, sys.columns b, sys.columns c WHERE a.id + b.id > c.id "
        "AND c.number < 2) AS x"
    )
    with pytest.raises(Cut):
        session.execute(late)
    sql = f"SELECT count(*) FROM sys.sessions WHERE sessiontimeout = {serial}"
    witness = home.session(engine)
    assert witness.execute(sql).fetch_all() == [(1,)]
    found = engine.find_commit(witness, 70)
    assert witness.execute(sql).fetch_all() == [(0,)]
    assert engine.find_commit(witness, 70) == found
    with pytest.raises(ConnectionLostError):
        session.execute("SELECT 1")


def test_a_query_without_a_result_is_no_result_without_rows(session):
    """P10: MonetDB says nothing at all to some queries (its README here)."""
    session.execute("CREATE TABLE t (a INT PRIMARY KEY, b INT, c INT, d INT, e INT)")
    for ask in (session.execute, lambda sql: session.execute_some(sql, (), 2)):
        with pytest.raises(EngineError, match="no result") as caught:
            ask("SELECT DISTINCT 1, t.* FROM t WHERE b = 3")
        assert caught.value.kind is ErrorKind.INTERNAL
    assert session.execute("SELECT DISTINCT 1 AS f, t.* FROM t WHERE b = 3").columns


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT 1, t.* FROM t WHERE b = 3",
        "WITH q AS (SELECT 5 AS n, b FROM t) SELECT n, count(*) FROM q",
        "SELECT n, max(b), ' = X_1:int := sql.resultSet(' || '\n=    X_1:int := "
        "sql.resultSet(' FROM (SELECT 5 AS n, b FROM t) AS q",
    ],
)
def test_a_query_without_a_result_is_not_prepared(session, sql):
    """P6: PREPARE of it would end the server."""
    session.execute("CREATE TABLE t (a INT PRIMARY KEY, b INT, c INT, d INT, e INT)")
    for ask in (session.width, session.result_names):
        with pytest.raises(EngineError, match="no result") as caught:
            ask(sql)
        assert caught.value.kind is ErrorKind.INTERNAL
    assert session.result_names("SELECT a, b + 1 FROM t") == ["a", "%1"]
    assert session.width("SELECT a, b + 1 FROM t WHERE a = $1", (1,)) == 2
    assert session.width("SELECT count(*) FROM t") == 1
