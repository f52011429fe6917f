"""``AsyncConnection``: what the coroutines do, and tasks that are cancelled in them."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref

import pytest

import tique
from tests.effort import patience
from tests.portable import numbers
from tique.aio import worker
from tique.database import database as databases
from tique.rows import dict_row

COUNT = "SELECT count(*) FROM t"


def slow(engine):
    """A query that takes longer than any test waits, or a few seconds at least."""
    count = 8_000 if engine.name == "monetdb" else 100_000
    return (
        f"SELECT count(*) FROM {numbers(count)} "
        f"JOIN (SELECT number AS m FROM {numbers(count)}) AS o "
        "ON (number + m) % 7919 = number"
    )


@pytest.fixture
def run(engine):
    """Run a coroutine function with a connection to a table of three rows."""

    def run(work, **options):
        async def main():
            async with await tique.AsyncConnection.connect(
                engine.url, **options
            ) as connection:
                await connection.execute(
                    "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)"
                )
                await connection.execute("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
                await connection.commit()
                await work(connection)

        asyncio.run(main())

    return run


async def rows(connection, query="SELECT id, v FROM t ORDER BY id"):
    return await (await connection.execute(query)).fetchall()


async def cancelled(work, after=0.1):
    """Cancel a task some time after it began; how long it took to end."""
    task = asyncio.ensure_future(work)
    await asyncio.sleep(after)
    task.cancel()
    started = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    return time.monotonic() - started


def test_a_transaction(engine, run):
    """P1, P8: commit, rollback, blocks and savepoints as those of Connection."""

    async def work(connection):
        await connection.execute("UPDATE t SET v = 1 WHERE id = %s", (1,))
        assert connection.in_transaction
        await connection.rollback()
        async with connection.transaction():
            await connection.execute("UPDATE t SET v = 2 WHERE id = 2")
            with pytest.raises(ZeroDivisionError):  # noqa: PT012
                async with connection.transaction():
                    await connection.execute("UPDATE t SET v = 3 WHERE id = 3")
                    raise ZeroDivisionError
        assert not connection.in_transaction
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with connection.transaction():
                await connection.execute("DELETE FROM t")
                raise ZeroDivisionError
        assert await rows(connection) == [(1, 0), (2, 2), (3, 0)]
        txid = connection.txid
        await connection.rollback()
        assert await connection.outcome(txid) in ("aborted", "unknown")

    run(work)
    assert engine.connect().execute(COUNT).fetchone() == (3,)


def test_a_block_commits_or_rolls_back_and_closes(engine, run):
    async def work(connection):
        await connection.execute("DELETE FROM t WHERE id = 1")
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with await tique.AsyncConnection.connect(engine.url) as other:
                await other.execute("DELETE FROM t WHERE id = 2")
                raise ZeroDivisionError
        assert other.closed
        with pytest.raises(tique.InterfaceError, match="closed"):
            await other.execute(COUNT)
        await other.close()

    run(work)
    assert engine.connect().execute(COUNT).fetchone() == (2,)


def test_cursors(run):
    async def work(connection):
        async with connection.cursor(row_factory=dict_row) as cursor:
            assert cursor.connection is connection
            await cursor.execute("SELECT id, v FROM t ORDER BY id")
            assert await cursor.fetchone() == {"id": 1, "v": 0}
            assert [item[0] for item in cursor.description] == ["id", "v"]
            assert cursor.rownumber == 1
            assert [row["id"] async for row in cursor] == [2, 3]
            assert await cursor.fetchone() is None
        assert cursor.closed
        with pytest.raises(tique.InterfaceError, match="closed"):
            await cursor.fetchone()
        cursor = connection.cursor()
        await cursor.executemany("INSERT INTO t VALUES (%s, 1)", [(4,), (5,)])
        assert cursor.rowcount == 2
        insert = "INSERT INTO t VALUES (%s, 1) RETURNING id"
        await cursor.executemany(insert, [(6,), (7,)], returning=True)
        assert await cursor.fetchall() == [(6,)]
        assert await cursor.nextset()
        assert await cursor.fetchmany(5) == [(7,)]
        assert await cursor.nextset() is None
        await cursor.execute("SELECT id FROM t ORDER BY id")
        assert (await cursor.fetch_arrow_table()).column(0).to_pylist() == [
            *range(1, 8)
        ]
        with pytest.raises(tique.ProgrammingError):
            await cursor.execute("SELECT nothing FROM t")
        with pytest.raises(tique.ProgrammingError, match="no result"):
            await cursor.fetchall()

    run(work)


def test_a_large_result_in_pieces(run):
    async def work(connection):
        query = f"SELECT number FROM {numbers(5000)} ORDER BY number"
        cursor = await connection.execute(query)
        assert await cursor.fetchmany(3) == [(0,), (1,), (2,)]
        assert sum([number async for (number,) in cursor]) == sum(range(3, 5000))
        async with await connection.execute(query) as cursor:
            await cursor.fetchone()

    run(work)


def test_settings(engine, run):
    async def work(connection):
        await connection.set_autocommit(True)
        assert connection.autocommit
        await connection.set_isolation_level("READ COMMITTED")
        assert connection.isolation_level == "READ COMMITTED"
        await connection.set_isolation_level("SERIALIZABLE")
        assert connection.isolation_level == "SERIALIZABLE"
        assert connection.info.certifier
        assert (await connection.status()).sequencer
        assert await connection.checkpoint() >= 0
        with pytest.raises(AttributeError):
            connection.autocommit = False
        with pytest.raises(tique.NotSupportedError, match=r"append\(\)"):
            await tique.AsyncConnection.connect(engine.url, python_variables=True)

    run(work)


def test_python_variables_are_no_tables(run):
    """P10: nor those of tique's own functions."""

    async def work(connection):
        import pyarrow

        options = pyarrow.table({"a": [1]})
        for name in ("options", "call", "self", "frame"):
            with pytest.raises(tique.ProgrammingError):
                await connection.execute(f"SELECT * FROM {name}")
        assert options.num_rows == 1

    run(work)


def test_the_event_loop_is_free(engine, run):
    """And tasks that share a connection get on, one call after the other."""

    async def work(connection):
        async def add(key):
            for _ in range(5):
                await connection.execute("UPDATE t SET v = v + 1 WHERE id = %s", (key,))

        await asyncio.gather(*(add(key) for key in (1, 2, 3, 1)))
        assert await rows(connection) == [(1, 10), (2, 5), (3, 5)]
        turns, names = 0, {each.name for each in threading.enumerate()}
        assert "tique-async" in names
        task = asyncio.ensure_future(connection.execute(slow(engine)))
        for _ in range(5):
            await asyncio.sleep(0.01)
            turns += not task.done()
        assert turns == 5
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await connection.rollback()

    run(work)


@pytest.mark.slow
def test_conflicts_are_run_again(engine, run):
    """P3: no update is lost."""

    async def work(connection):
        async def add(connection):
            found = await connection.execute("SELECT v FROM t WHERE id = 1")
            ((value,),) = await found.fetchall()
            await asyncio.sleep(0)
            await connection.execute("UPDATE t SET v = %s WHERE id = 1", (value + 1,))
            return value

        async def client():
            async with await tique.AsyncConnection.connect(engine.url) as other:
                for _ in range(5):
                    await tique.run_transaction_async(other, add)

        await asyncio.gather(client(), client(), client())
        assert (await rows(connection))[0] == (1, 15)
        with pytest.raises(tique.ProgrammingError, match="begins a transaction"):
            await tique.run_transaction_async(connection, add)

    run(work)


def test_a_turn_ends_with_the_last_attempt(engine, run):
    """P6: a transaction that is not run again holds no other up."""

    async def work(connection):
        async def lose(_):
            await connection.execute("UPDATE t SET v = abs(v) + 1 WHERE id = 1")
            async with await tique.AsyncConnection.connect(engine.url) as other:
                await other.execute("UPDATE t SET v = 7 WHERE id = 1")
                await other.commit()

        with pytest.raises(tique.SerializationError):
            await tique.run_transaction_async(connection, lose, attempts=1)
        assert not connection._connection._database.turns.are_taken

    run(work)


# Cancelled


def test_a_running_statement_is_cancelled(engine, run):
    """P6, P8: soon; all but a rollback is refused then, and then all is as before."""

    async def work(connection):
        await connection.execute("UPDATE t SET v = 1 WHERE id = 1")
        assert await cancelled(connection.execute(slow(engine))) < patience(20)
        for statement in (COUNT, "SAVEPOINT a", "UPDATE t SET v = 2"):
            with pytest.raises(tique.OperationalError, match="cancelled") as refused:
                await connection.execute(statement)
            assert refused.value.sqlstate == "25P02"
        with pytest.raises(tique.OperationalError, match="cancelled"):
            await connection.commit()
        assert not connection.in_transaction
        assert await rows(connection) == [(1, 0), (2, 0), (3, 0)]
        await connection.execute("UPDATE t SET v = 1 WHERE id = 1")
        await connection.commit()

    run(work)
    assert engine.connect().execute("SELECT max(v) FROM t").fetchone() == (1,)


def test_in_autocommit_the_next_statement_runs(engine, run):
    async def work(connection):
        await cancelled(connection.execute(slow(engine)))
        assert await rows(connection, COUNT) == [(3,)]
        await connection.execute("DELETE FROM t WHERE id = 1")
        assert await rows(connection, COUNT) == [(2,)]

    run(work, autocommit=True)


@pytest.mark.slow
def test_a_timeout_inside_a_block(engine, run):
    """P8: the block's statements are undone, and the transaction around it goes on."""

    async def work(connection):
        async with connection.transaction():
            await connection.execute("UPDATE t SET v = 1 WHERE id = 1")
            with pytest.raises(TimeoutError):  # noqa: PT012
                async with asyncio.timeout(0.1), connection.transaction():
                    await connection.execute("UPDATE t SET v = 2 WHERE id = 2")
                    await connection.execute(slow(engine))
            await connection.execute("UPDATE t SET v = 3 WHERE id = 3")
        assert await rows(connection) == [(1, 1), (2, 0), (3, 3)]

    run(work)


def test_a_failure_that_is_passed_over_in_a_block(engine, run):
    """P5: a block whose statement was cancelled commits nothing."""

    async def work(connection):
        with pytest.raises(tique.OperationalError) as refused:  # noqa: PT012
            async with connection.transaction():
                await connection.execute("UPDATE t SET v = 1")
                await cancelled(connection.execute(slow(engine)))
        assert refused.value.sqlstate == "25P02"
        assert await rows(connection) == [(1, 0), (2, 0), (3, 0)]

    run(work)


def test_a_statement_that_has_not_begun_never_does(engine, run):
    async def work(connection):
        running = asyncio.ensure_future(connection.execute(slow(engine)))
        await asyncio.sleep(0.05)
        delete = connection.execute("DELETE FROM t")
        assert await cancelled(delete, after=0.01) < patience(1)
        assert not running.done()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await connection.rollback()
        assert await rows(connection, COUNT) == [(3,)]

    run(work)


def test_a_statement_that_has_ended(run):
    """P5: its task did not learn it, so it may not be committed."""

    async def work(connection):
        await connection.execute("UPDATE t SET v = 1 WHERE id = 1")
        task = asyncio.ensure_future(connection.execute("UPDATE t SET v = 2"))
        await asyncio.sleep(0)
        # Its outcome is there before the loop turns again.
        time.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(tique.OperationalError, match="cancelled"):
            await connection.commit()
        assert await rows(connection) == [(1, 0), (2, 0), (3, 0)]

    run(work)


@pytest.mark.slow
def test_another_task_is_not_hit(engine, run):
    """Its statement is in the queue when the one before it is cancelled."""

    async def work(connection):
        for _ in range(2):
            slowly = asyncio.ensure_future(connection.execute(slow(engine)))
            others = [asyncio.ensure_future(rows(connection)) for _ in range(3)]
            await asyncio.sleep(0.02)
            slowly.cancel()
            found = await asyncio.gather(slowly, *others, return_exceptions=True)
            assert isinstance(found[0], asyncio.CancelledError)
            assert found[1:] == [[(1, 0), (2, 0), (3, 0)]] * 3

    run(work, autocommit=True)


@pytest.mark.parametrize("pause", [0.0, 0.001, 0.003, 0.01, 0.03])
def test_bulk_writes_are_done_or_not(engine, run, pause):
    """P5: whenever the cancel comes, no half of a statement or a commit is there."""

    async def work(connection):
        await connection.execute(
            f"INSERT INTO t SELECT number + 10, 0 FROM {numbers(3000)}"
        )
        await connection.commit()
        values = "SELECT min(v), max(v), count(*) FROM t"
        for number in range(1, 4):
            task = asyncio.ensure_future(change(connection, number))
            await asyncio.sleep(pause * number)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await connection.rollback()
            ((low, high, count),) = await rows(connection, values)
            assert low == high
            assert count == 3003
            await connection.rollback()

    async def change(connection, number):
        await connection.execute("UPDATE t SET v = v + %s WHERE v >= 0", (number,))
        await connection.commit()

    run(work)


def test_a_request_to_stop_that_is_lost(engine, run, monkeypatch):
    """P6: it came between two of the engine's statements; there is another one."""

    async def work(connection):
        asked = []
        cancel = connection._connection.cancel
        monkeypatch.setattr(
            connection._connection,
            "cancel",
            lambda: cancel() if asked else asked.append(1),
        )
        assert await cancelled(connection.execute(slow(engine))) < patience(20)
        await connection.rollback()
        monkeypatch.undo()

    started = time.monotonic()
    run(work)
    if engine.name != "monetdb":
        # The query itself takes longer.
        assert time.monotonic() - started < patience(20)


def test_a_rollback_is_done_all_the_same(engine, run):
    """P6: though its task is cancelled when it has not begun."""

    async def work(connection):
        await connection.execute("UPDATE t SET v = 1")
        running = asyncio.ensure_future(connection.execute(slow(engine)))
        await asyncio.sleep(0.05)
        rolling = asyncio.ensure_future(connection.rollback())
        await asyncio.sleep(0.01)
        rolling.cancel()
        await asyncio.sleep(0.01)
        assert not rolling.done()
        running.cancel()
        found = await asyncio.gather(running, rolling, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in found)
        assert not connection.in_transaction

    run(work)


def test_cancelled_many_times(engine, run):
    async def work(connection):
        task = asyncio.ensure_future(connection.execute(slow(engine)))
        await asyncio.sleep(0.05)
        while not task.done():
            task.cancel()
            await asyncio.sleep(0.01)
        assert task.cancelled()
        await connection.rollback()
        assert await rows(connection, COUNT) == [(3,)]

    run(work)


def test_a_wait_for_a_row_lock_is_cancelled(engine, run):
    """P6."""

    async def work(connection):
        lock = "SELECT id FROM t WHERE id = 1 FOR UPDATE"
        await connection.execute(lock)
        async with await tique.AsyncConnection.connect(engine.url) as other:
            assert await cancelled(other.execute(lock)) < patience(20)
            await other.rollback()
            await connection.rollback()
            assert await rows(other, lock) == [(1,)]

    run(work)


def test_cancelled_as_a_block_is_entered_or_left(run):
    """P5, P6: the block is left in any case, and the connection is free."""

    async def work(connection):
        async def change():
            async with connection.transaction():
                await connection.execute("UPDATE t SET v = v + 1")

        for turns in range(12):
            task = asyncio.ensure_future(change())
            for _ in range(turns):
                await asyncio.sleep(0.0005)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert not connection.in_transaction
            values = {value for _, value in await rows(connection)}
            assert len(values) == 1
            await connection.rollback()

    run(work)


def test_cancel_safe(engine, run):
    """It makes the statement of another task fail, and cancels no task."""

    async def work(connection):
        task = asyncio.ensure_future(connection.execute(slow(engine)))
        while not task.done():
            await asyncio.sleep(0.05)
            await connection.cancel_safe()
        with pytest.raises(tique.OperationalError) as stopped:
            await task
        assert stopped.value.sqlstate == "57014"
        assert await rows(connection, COUNT) == [(3,)]

    run(work)


# The end


def test_close_waits_for_its_turn(run):
    async def work(connection):
        one = asyncio.ensure_future(connection.execute("DELETE FROM t"))
        other = asyncio.ensure_future(connection.commit())
        await asyncio.sleep(0)
        await asyncio.gather(connection.close(), connection.close(), one, other)
        assert connection.closed
        with pytest.raises(tique.InterfaceError, match="closed"):
            await connection.commit()

    run(work)


def test_close_while_a_statement_is_cancelled(engine, run):
    async def work(connection):
        running = asyncio.ensure_future(connection.execute(slow(engine)))
        await asyncio.sleep(0.05)
        closing = asyncio.ensure_future(connection.close())
        await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await closing
        assert connection._connection.closed

    run(work)


def test_a_call_that_does_not_end(run, monkeypatch):
    """P6: the task is let go, and the connection is closed when the call ends."""

    async def work(connection):
        hold = threading.Event()
        connection._connection.cancel = lambda: None
        monkeypatch.setattr(worker, "PATIENCE", 0.05)
        await cancelled(connection._worker.run(hold.wait), after=0.01)
        assert connection.closed
        with pytest.raises(tique.OperationalError, match="given up") as refused:
            await connection.execute(COUNT)
        assert refused.value.sqlstate == "08006"
        hold.set()
        latest = time.monotonic() + patience(10)
        while not connection._connection.closed:
            assert time.monotonic() < latest
            await asyncio.sleep(0.01)

    run(work)


def test_connecting(engine, run):
    """A wrong URL is refused; a task that is cancelled leaves no connection."""

    async def work(connection):
        with pytest.raises(tique.InterfaceError):
            await tique.AsyncConnection.connect("nothing://")
        users = databases.users
        # Those of earlier tests that only circles of references keep.
        gc.collect()
        before = len(users)
        await cancelled(tique.AsyncConnection.connect(engine.url), after=0)
        latest = time.monotonic() + patience(10)
        while len(users) != before or threads() != 1:
            assert time.monotonic() < latest
            gc.collect()
            await asyncio.sleep(0.01)

    run(work)


def threads():
    return [each.name for each in threading.enumerate()].count("tique-async")


def test_an_abandoned_connection(engine, run):
    """P6: its transaction ends, and its thread does."""

    async def work(connection):
        database = connection._connection._database
        other = await tique.AsyncConnection.connect(engine.url)
        await other.execute("UPDATE t SET v = 1 WHERE id = 1")
        gone = weakref.ref(other._connection)
        del other
        latest = time.monotonic() + patience(10)
        while gone() is not None or threads() != 1 or len(database.transactions):
            assert time.monotonic() < latest
            gc.collect()
            await asyncio.sleep(0.01)

    run(work)


@pytest.mark.written_for(["postgresql"], reason="the others have no such COPY")
def test_copy(run):
    async def work(connection):
        cursor = connection.cursor()
        async with cursor.copy("COPY t FROM STDIN") as copy:
            await copy.write_row((8, 8))
            await copy.write("9\t9\n")
        assert cursor.rowcount == 2
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with cursor.copy("COPY t FROM STDIN") as copy:
                await copy.write_row((10, 8))
                raise ZeroDivisionError
        query = "COPY (SELECT id FROM t WHERE id > 7 ORDER BY id) TO STDOUT"
        async with cursor.copy(query) as copy:
            copy.set_types(["integer"])
            assert [row async for row in copy.rows()] == [(8,), (9,)]
        async with cursor.copy(query) as copy:
            assert b"".join([bytes(data) async for data in copy]) == b"8\n9\n"

    run(work)


def test_rows_in_columns(run):
    async def work(connection):
        import pyarrow

        cursor = connection.cursor()
        await cursor.append("t", pyarrow.table({"id": [8, 9], "v": [1, 1]}))
        assert cursor.rowcount == 2

    run(work)
