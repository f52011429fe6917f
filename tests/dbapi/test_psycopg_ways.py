"""What applications of psycopg use beside PEP 249."""

from __future__ import annotations

import asyncio
import gc
import time
from contextlib import closing
from dataclasses import dataclass

import pytest
from psycopg import sql

import tique
from tests.effort import patience
from tests.portable import numbers
from tique.connection.connection_info import TransactionStatus
from tique.rows import args_row, class_row, dict_row, kwargs_row, scalar_row
from tique_backends.errors import EngineError

pytestmark = pytest.mark.fresh_tables

ALL = "SELECT id, v FROM t ORDER BY id"


@pytest.fixture
def connection(engine):
    connection = engine.connect(uncommitted_fold_rows=None)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute(f"INSERT INTO t SELECT number, 0 FROM {numbers(5000)}")
    connection.commit()
    return connection


def apart(cursor):
    """Whether its rows are in an engine session of their own."""
    return cursor.connection._execution._apart is getattr(
        cursor._outcome.result, "_apart", None
    )


@dataclass
class Item:
    id: int
    v: int


@pytest.mark.parametrize(
    ("factory", "row"),
    [
        (scalar_row, 1),
        (class_row(Item), Item(1, 0)),
        (kwargs_row(dict), {"id": 1, "v": 0}),
        (args_row(lambda *values: list(values)), [1, 0]),
    ],
)
def test_row_factories(connection, factory, row):
    query = "SELECT id, v FROM t WHERE id = 1"
    assert connection.cursor(row_factory=factory).execute(query).fetchone() == row
    connection.row_factory = factory
    assert connection.execute(query).fetchall() == [row]
    assert connection.cursor("named").execute(query).fetchall() == [row]


def test_columns_of_the_description_have_names(connection):
    column = connection.execute(ALL).description[1]
    assert column.name == column[0] == "v"
    assert column.type_code == column[1] == tique.NUMBER
    assert column.null_ok is None


def test_keywords_that_change_nothing(connection):
    cursor = connection.execute(ALL, prepare=True, binary=True)
    assert cursor.execute(ALL, prepare=False, binary=False).fetchone() == (0, 0)
    with connection.pipeline() as pipeline:
        connection.execute("DELETE FROM t WHERE id = 1")
        pipeline.sync()
    connection.rollback()
    connection.set_isolation_level("SNAPSHOT")
    connection.set_autocommit(True)
    assert connection.autocommit
    connection.cancel_safe()
    assert not connection.broken


def test_the_state_of_the_transaction(connection):
    def status():
        return connection.info.transaction_status

    assert status() is TransactionStatus.IDLE
    connection.execute(ALL)
    assert status() is TransactionStatus.INTRANS
    connection._execution.fail(connection.txid)
    assert status() is TransactionStatus.INERROR
    connection.rollback()
    connection.close()
    assert status() is TransactionStatus.UNKNOWN
    assert not connection.broken


def test_stream(connection):
    cursor = connection.cursor(row_factory=dict_row)
    rows = cursor.stream("SELECT id, v FROM t WHERE id < %s ORDER BY id", (3,))
    assert [row["id"] for row in rows] == [0, 1, 2]
    for row in cursor.stream(ALL):
        assert row == {"id": 0, "v": 0}
        break
    with pytest.raises(tique.ProgrammingError, match="no result"):
        list(cursor.stream("DELETE FROM t WHERE id = 1"))


def test_scroll(connection):
    for cursor in (connection.cursor(), connection.cursor("named")):
        cursor.execute(ALL)
        cursor.scroll(2)
        assert cursor.fetchone() == (2, 0)
        cursor.scroll(1500)
        assert cursor.fetchone() == (1503, 0)
        cursor.scroll(4000, "absolute")
        assert cursor.fetchone() == (4000, 0)
        for back in (-1, 10):
            with pytest.raises(tique.NotSupportedError, match="backward"):
                cursor.scroll(back, "relative" if back < 0 else "absolute")
        with pytest.raises(tique.ProgrammingError, match="mode"):
            cursor.scroll(1, "sideways")
        with pytest.raises(IndexError):
            cursor.scroll(1000)


def test_results(connection):
    cursor = connection.cursor()
    cursor.executemany(
        "UPDATE t SET v = id WHERE id = %s RETURNING v", [(1,), (2,)], returning=True
    )
    assert [each.fetchall() for each in cursor.results()] == [[(1,)], [(2,)]]
    assert not list(connection.cursor().results())


def test_blocks(connection):
    """P8: a block that is rolled back in any case; a savepoint with a name."""
    with connection.transaction(force_rollback=True):
        connection.execute("DELETE FROM t")
    with connection.transaction():
        connection.execute("DELETE FROM t WHERE id > 0")
        with connection.transaction("mine", force_rollback=True):
            connection.execute("DELETE FROM t")
        with connection.transaction("mine"):
            connection.execute("UPDATE t SET v = 1")
            connection.execute("ROLLBACK TO mine")
            connection.execute("UPDATE t SET v = v + 2")
    assert connection.execute(ALL).fetchall() == [(0, 2)]


# Named cursors


def test_a_named_cursor_beside_other_statements(connection):
    """P1: its rows are those of the snapshot, and are not read into memory."""
    cursor = connection.cursor("named")
    assert (cursor.name, cursor.itersize) == ("named", 100)
    cursor.itersize = 10
    cursor.execute("SELECT id, v FROM t WHERE id >= %s ORDER BY id", (1,))
    assert apart(cursor)
    assert cursor.fetchone() == (1, 0)
    assert len(cursor._outcome.rows) == 10
    connection.execute("UPDATE t SET v = 1")
    connection.execute("DELETE FROM t WHERE id > 4000")
    connection.commit()
    connection.checkpoint()
    assert len(cursor._outcome.rows) == 10
    assert apart(cursor)
    assert cursor.fetchmany(3) == [(2, 0), (3, 0), (4, 0)]
    assert [row for (row, _) in cursor] == list(range(5, 5000))
    assert not connection._execution._apart._results or not list(cursor)
    assert cursor.fetchall() == []


def test_several_named_cursors(connection):
    one, other = connection.cursor("one"), connection.cursor("other")
    one.execute(ALL)
    other.execute("SELECT count(*) FROM t")
    assert one.fetchone() == (0, 0)
    assert other.fetchall() == [(5000,)]
    one.execute("SELECT max(id) FROM t")
    assert one.fetchall() == [(4999,)]
    assert one.execute(ALL).fetch_arrow_table().num_rows == 5000


def test_a_named_cursor_sees_own_writes(connection):
    """P8: and those of statements before it alone."""
    connection.execute("UPDATE t SET v = 7 WHERE id = 1")
    cursor = connection.cursor("named").execute(ALL)
    assert not apart(cursor)
    connection.execute("UPDATE t SET v = 8 WHERE id = 2")
    assert cursor.fetchmany(3) == [(0, 0), (1, 7), (2, 0)]
    cursor.close()
    connection.execute("CREATE TEMPORARY TABLE own (id INTEGER)")
    connection.execute("INSERT INTO own VALUES (1)")
    assert connection.cursor("named").execute("SELECT id FROM own").fetchall() == [(1,)]


@pytest.mark.written_for(["duckdb", "postgresql"], reason="names of settings differ")
def test_a_named_cursor_has_the_settings(connection):
    """P10: a session of its own would not."""
    connection.execute("SET TimeZone = 'Asia/Tokyo'")
    moment = "SELECT CAST(TIMESTAMPTZ '2024-01-01 00:00:00+00' AS VARCHAR)"
    assert "09:00" in connection.cursor("named").execute(moment).fetchone()[0]


def test_a_named_cursor_is_for_queries(connection):
    """P10."""
    cursor = connection.cursor("named")
    for statement in ("DELETE FROM t", "COMMIT", "CREATE TABLE u (id INTEGER)"):
        with pytest.raises(tique.ProgrammingError, match="queries only"):
            cursor.execute(statement)
    with pytest.raises(tique.NotSupportedError, match="named cursor"):
        cursor.executemany("DELETE FROM t WHERE id = %s", [(1,)])
    with pytest.raises(tique.NotSupportedError, match="named cursor"):
        cursor.copy("COPY t FROM STDIN")
    with pytest.raises(tique.NotSupportedError, match="named cursor"):
        cursor.append("t", None)
    with pytest.raises(tique.NotSupportedError, match="scrollable"):
        connection.cursor("named", scrollable=True)
    with pytest.raises(tique.ProgrammingError):
        cursor.execute("SELECT nothing FROM t")
    locked = cursor.execute("SELECT id FROM t WHERE id = 1 FOR UPDATE")
    assert locked.fetchall() == [(1,)]
    connection.rollback()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (5000,)


def test_the_session_of_a_named_cursor_ends(engine, connection):
    """P6: with the cursor, with the connection, or with the last reference."""
    results = connection._execution._apart._results

    def opened():
        cursor = connection.cursor("named").execute(ALL)
        assert len(results) == 1
        return cursor

    opened().close()
    assert not results or not next(iter(results))._finalizer.alive
    cursor = opened()
    session = cursor._outcome.result._session
    del cursor
    gc.collect()
    assert len(results) == 0
    # The checkpointer's thread does that, too.
    connection._database.release_abandoned()
    latest = time.monotonic() + patience(10)
    while True:
        try:
            session.execute("SELECT 1").close()
        except EngineError:
            break
        assert time.monotonic() < latest
    cursor = opened()
    result = cursor._outcome.result
    connection.close()
    assert not result._finalizer.alive
    with pytest.raises(tique.InterfaceError, match="closed"):
        cursor.fetchone()


def test_named_cursors_in_coroutines(engine, connection):
    connection.close()

    async def main():
        async with await tique.AsyncConnection.connect(engine.url) as connection:
            cursor = connection.cursor("named")
            cursor.itersize = 50
            await cursor.execute(ALL)
            await cursor.scroll(10)
            assert await cursor.fetchone() == (10, 0)
            await connection.execute("DELETE FROM t")
            assert sum([1 async for _ in cursor]) == 4989
            await connection.rollback()
            plain = connection.cursor()
            rows = [row async for row in plain.stream("SELECT count(*) FROM t")]
            assert rows == [(5000,)]
            async with connection.transaction(force_rollback=True):
                await connection.execute("DELETE FROM t")
            async with connection.pipeline() as pipeline:
                pipeline.sync()
            insert = "INSERT INTO t VALUES (%s, 1) RETURNING id"
            await plain.executemany(insert, [(-1,), (-2,)], returning=True)
            found = [await each.fetchall() async for each in plain.results()]
            assert found == [[(-1,)], [(-2,)]]
            assert not connection.broken

    asyncio.run(main())


@pytest.mark.parametrize("sql", ["", " ; ", "-- ping", "/* ping */"])
def test_a_text_without_a_statement(connection, sql):
    """psycopg's pools send one to see whether a connection is alive."""
    cursor = connection.cursor("rows").execute(ALL)
    other = connection.execute(sql)
    assert (other.description, other.rowcount, other.statusmessage) == (None, -1, None)
    with pytest.raises(tique.ProgrammingError):
        other.fetchone()
    with pytest.raises(tique.ProgrammingError):
        connection.execute(sql, [1])
    assert len(cursor.fetchall()) == 5000


@pytest.mark.written_for(["postgresql"], reason="it ends a server's session")
def test_a_text_without_a_statement_tells_that_the_session_is_lost(engine, connection):
    pid = connection.execute("SELECT pg_backend_pid()").fetchone()
    connection.rollback()
    with closing(engine._connect_natively()) as native:
        native.execute("SELECT pg_terminate_backend(%s, 5000)", pid)
    with pytest.raises(tique.OperationalError):
        connection.execute("")
    connection.execute("")


class Text(str):
    """A str of another class."""

    __slots__ = ()

    def __hash__(self):
        raise AssertionError


class Statement:
    """A statement in parts, as those of psycopg.sql are."""

    def __init__(self, *parts):
        self.parts = parts

    def as_string(self, context):
        assert context is None
        return " ".join(self.parts)


@pytest.mark.parametrize(
    "query",
    [
        b"SELECT id FROM t WHERE id = %s",
        Text("SELECT id FROM t WHERE id = %s"),
        Statement("SELECT id FROM t", "WHERE id = %s"),
        sql.SQL("SELECT {0} FROM t WHERE {0} = {1}").format(
            sql.SQL("id"), sql.Placeholder()
        ),
    ],
    ids=lambda query: type(query).__name__,
)
def test_texts_of_other_types(connection, query):
    for cursor in (connection.cursor(), connection.cursor("named")):
        assert cursor.execute(query, [7]).fetchall() == [(7,)]
    change = Statement("UPDATE t SET v = %s", "WHERE id = %s")
    assert connection.cursor().executemany(change, [(1, 7), (1, 8)]).rowcount == 2
    assert list(connection.cursor().stream(query, [8])) == [(8,)]


@pytest.mark.parametrize("query", [None, 7, b"\xff", Statement(7), [], ("SELECT 1",)])
def test_what_is_no_statement(connection, query):
    cursor = connection.cursor()
    for call in (
        lambda: cursor.execute(query),
        lambda: cursor.executemany(query, [()]),
        lambda: cursor.copy(query),
        lambda: connection.cursor("named").execute(query),
    ):
        with pytest.raises(tique.ProgrammingError):
            call()


@pytest.mark.written_for(["postgresql"], reason="its way to write a copy and a name")
def test_a_copy_with_composables(connection):
    cursor = connection.cursor()
    table = sql.Identifier("t")
    with cursor.copy(sql.SQL("COPY {} FROM STDIN").format(table)) as copy:
        copy.write_row((-1, 5))
    found = connection.execute(sql.SQL("SELECT v FROM {} WHERE id < 0").format(table))
    assert found.fetchall() == [(5,)]


def test_a_block_is_left_by_rollback(engine, connection):
    """P8: what the innermost block has done is undone, and the program goes on behind."""
    with connection.transaction():
        connection.execute("UPDATE t SET v = 1 WHERE id = 1")
        with connection.transaction():
            connection.execute("UPDATE t SET v = 2 WHERE id = 1")
            raise tique.Rollback
        connection.execute("UPDATE t SET v = 3 WHERE id = 2")
    with connection.transaction():
        connection.execute("DELETE FROM t")
        raise tique.Rollback
    assert not connection.in_transaction
    assert connection.execute(f"{ALL} LIMIT 3").fetchall()[1:] == [(1, 1), (2, 3)]
    connection.rollback()

    def work(connection):
        connection.execute("DELETE FROM t")
        raise tique.Rollback

    with pytest.raises(tique.Rollback):
        tique.run_transaction(connection, work)
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (5000,)
    connection.close()

    async def main():
        async with await tique.AsyncConnection.connect(engine.url) as connection:
            async with connection.transaction():
                await connection.execute("DELETE FROM t WHERE id = 1")
                async with connection.transaction():
                    await connection.execute("DELETE FROM t")
                    raise tique.Rollback
            with pytest.raises(tique.Rollback):
                await tique.run_transaction_async(connection, gone)
            cursor = await connection.execute("SELECT count(*) FROM t")
            assert await cursor.fetchone() == (4999,)

    async def gone(connection):
        await connection.execute("DELETE FROM t")
        raise tique.Rollback

    asyncio.run(main())


def test_read_only(engine, connection):
    """P8: of the transactions that begin afterwards, unless they say otherwise."""
    insert = "INSERT INTO t VALUES (-1, 0)"
    connection.read_only = True
    for _ in range(2):
        with pytest.raises(tique.OperationalError) as caught:
            connection.execute(insert)
        assert caught.value.sqlstate == "25006"
        connection.rollback()
    connection.execute("SELECT * FROM t").fetchone()
    with pytest.raises(tique.ProgrammingError, match="inside a transaction"):
        connection.read_only = False
    connection.rollback()
    connection.execute("BEGIN READ WRITE")
    connection.execute(insert)
    connection.commit()
    connection.set_read_only(False)
    assert not connection.read_only
    connection.execute(insert.replace("-1", "-2"))
    connection.close()

    async def main():
        async with await tique.AsyncConnection.connect(engine.url) as connection:
            await connection.set_read_only(True)
            assert connection.read_only
            with pytest.raises(tique.OperationalError):
                await connection.execute(insert)

    asyncio.run(main())
