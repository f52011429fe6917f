"""The feed has exactly the commits of its interval, each once, whatever is folded when.

A model is filled from the feed alone. It has to be what readers saw in their snapshots, at
every version.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

import tique
from tests.effort import effort, patience
from tique.history import feed as feeds
from tique.query.write import restoring
from tique_backends.names import history_name

pytestmark = pytest.mark.fresh_tables

TWO_HOURS = "2 hours"
KEYS = 12


@pytest.fixture
def connection(engine):
    opened = engine.connect(checkpoint="manual", history=TWO_HOURS)
    opened.execute(
        "CREATE TABLE t (a INTEGER, b VARCHAR(9), v INTEGER, PRIMARY KEY (a, b))"
    )
    opened.commit()
    return opened


def newest(connection):
    return connection._database.timeline.position().sts


def contents(connection, table="t"):
    rows = connection.execute(f"SELECT * FROM {table}").fetchall()
    connection.rollback()
    return sorted(rows, key=repr)


class Model:
    """The rows of a table, by changes alone; every change has to fit."""

    def __init__(self, rows=()):
        self.rows = Counter(rows)

    def apply(self, change):
        if change.old is not None:
            assert self.rows[change.old] > 0, change
            self.rows[change.old] -= 1
        if change.new is not None:
            self.rows[change.new] += 1
        assert (
            change.operation
            == {
                (False, True): "insert",
                (True, True): "update",
                (True, False): "delete",
            }[change.old is not None, change.new is not None]
        )

    @property
    def contents(self):
        return sorted(self.rows.elements(), key=repr)


def states(changes, rows=()):
    """The table's contents at each version that changed it, by the feed."""
    model = Model(rows)
    found = {}
    for change in changes:
        assert not found or max(found) <= change.version
        model.apply(change)
        found[change.version] = model.contents
    return found


def state_at(found, version, before=()):
    earlier = [each for each in found if each <= version]
    return found[max(earlier)] if earlier else sorted(before, key=repr)


def write(connection, chance, table="t"):
    """One random transaction; another one may have been faster."""
    try:
        with connection.transaction():
            for _ in range(chance.randint(1, 4)):
                a, b = chance.randrange(KEYS), chance.choice("pq")
                kind = chance.random()
                if kind < 0.3:
                    connection.execute(
                        f"DELETE FROM {table} WHERE a = %s AND b = %s", (a, b)
                    )
                elif kind < 0.7:
                    connection.execute(
                        f"UPDATE {table} SET v = %s WHERE a = %s",
                        (chance.choice([None, 1, 2, 3]), a),
                    )
                else:
                    connection.execute(
                        f"INSERT INTO {table} VALUES (%s, %s, %s)", (a, b, 0)
                    )
    except (tique.SerializationError, tique.IntegrityError):
        pass


def run_beside(engine, connection, chance, seconds, table="t"):
    """Write by several threads, fold at random moments; what readers saw, by version.

    A machine that is busy has some more time for a few commits.
    """
    began = time.monotonic()
    first = newest(connection)
    seen = {}
    failures = []

    def is_enough():
        elapsed = time.monotonic() - began
        return elapsed > seconds and (
            max(list(seen), default=0) > first + 40 or elapsed > patience(seconds + 20)
        )

    def loop(step):
        mine = random.Random(chance.random())
        opened = engine.connect()

        def run():
            try:
                while not is_enough():
                    step(opened, mine)
            except BaseException as error:
                failures.append(error)

        return threading.Thread(target=run)

    def read(opened, mine):
        rows = sorted(opened.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
        seen[opened._execution.transaction.sts] = rows
        opened.rollback()
        time.sleep(mine.random() * 0.02)

    def fold(opened, mine):
        opened.checkpoint()
        time.sleep(mine.random() * 0.1)

    threads = [loop(lambda o, m: write(o, m, table)) for _ in range(3)]
    threads += [loop(read), loop(fold)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    seen[newest(connection)] = contents(connection, table)
    return seen


@pytest.fixture
def _in_pages(monkeypatch):
    """Few commits are gone through at once, and few changes fetched."""
    monkeypatch.setattr(feeds, "_PAGE", 7)
    monkeypatch.setattr(feeds, "_PIECE", 3)


@pytest.mark.every_engine
@pytest.mark.usefixtures("_in_pages")
def test_replayed_it_is_what_readers_saw(engine, connection):
    chance = random.Random(7)
    begin = newest(connection)
    seen = run_beside(engine, connection, chance, effort(2.0, 15.0))
    whole = list(connection.changes("t", since=begin))
    found = states(whole)
    for version, rows in seen.items():
        assert state_at(found, version) == rows, version
    assert len(found) > 20

    for _ in range(10):
        since, until = sorted(chance.sample(range(begin, newest(connection) + 1), 2))
        part = [change for change in whole if since < change.version <= until]
        assert list(connection.changes("t", since=since, until=until)) == part
        before = Counter(state_at(found, since))
        for change in connection.differences("t", since, until):
            if change.old is not None:
                assert before[change.old] > 0
                before[change.old] -= 1
            if change.new is not None:
                before[change.new] += 1
            assert change.old != change.new
        assert sorted(before.elements(), key=repr) == state_at(found, until)

    # Also across restarts.
    engine.close()
    engine.let_go()
    again = engine.connect(checkpoint="manual", history=TWO_HOURS)
    assert list(again.changes("t", since=begin)) == whole
    write(again, chance)
    found = states(again.changes("t", since=begin))
    assert state_at(found, newest(again)) == contents(again)


@pytest.mark.every_engine
def test_a_table_without_a_key(engine):
    connection = engine.connect(checkpoint="manual", history=TWO_HOURS)
    connection.execute("CREATE TABLE t (a INTEGER, b VARCHAR(9), v INTEGER)")
    connection.commit()
    begin = newest(connection)
    seen = run_beside(engine, connection, random.Random(3), effort(1.5, 10.0))
    found = states(connection.changes("t", since=begin))
    for version, rows in seen.items():
        assert state_at(found, version) == rows, version
    assert {change.operation for change in connection.changes("t", since=begin)} == {
        "insert",
        "delete",
    }
    middle = sorted(seen)[len(seen) // 2]
    end = newest(connection)
    rows = Counter(seen[middle])
    for change in connection.differences("t", middle, end):
        rows[change.old] -= change.old is not None
        rows[change.new] += change.new is not None
    assert sorted((+rows).elements(), key=repr) == contents(connection)
    connection.restore("t", middle)
    connection.commit()
    assert contents(connection) == seen[middle]


def test_a_row_that_comes_and_goes_in_one_transaction_is_no_change(connection):
    connection.execute("CREATE TABLE k (a INTEGER, b INTEGER)")
    connection.execute("INSERT INTO k VALUES (1, 1), (1, 1), (2, 2)")
    connection.commit()
    begin = newest(connection)
    connection.execute("INSERT INTO k VALUES (3, 3)")
    connection.execute("DELETE FROM k WHERE a = 3")
    connection.execute("UPDATE k SET b = 5 WHERE a = 1")
    connection.commit()
    found = [(c.operation, c.old, c.new) for c in connection.changes("k", since=begin)]
    gone = [("delete", (1, 1), None)] * 2
    assert found == [*gone, *[("insert", None, (1, 5))] * 2]


@pytest.mark.every_engine
def test_who_has_changed_it_and_when(engine, connection):
    begin = newest(connection)
    before = datetime.now(UTC)
    txids = []
    for number in range(3):
        connection.execute("INSERT INTO t VALUES (%s, 'p', 0)", (number,))
        txids.append(connection.txid)
        connection.commit()
        connection.checkpoint()
    connection.execute("INSERT INTO t VALUES (8, 'p', 0)")
    connection.execute("UPDATE t SET v = 1 WHERE a = 8")
    connection.execute("INSERT INTO t VALUES (9, 'q', NULL)")
    connection.execute("DELETE FROM t WHERE a = 0")
    txids += [connection.txid] * 3
    connection.commit()
    found = list(connection.changes("t", since=begin))
    assert [change.txid for change in found] == txids
    assert [change.old or change.new for change in found[3:]] == [
        (0, "p", 0),
        (8, "p", 1),
        (9, "q", None),
    ]
    second = timedelta(seconds=1)
    times = [change.time for change in found]
    assert before - second <= times[0] <= times[-1] <= datetime.now(UTC) + second
    assert times == sorted(times)


@pytest.mark.every_engine
@pytest.mark.usefixtures("_in_pages")
def test_what_is_folded_and_pruned_while_it_is_read_makes_no_difference(engine):
    connection = engine.connect(
        checkpoint="manual", history="3 seconds", retention=0.0, long_snapshot=600.0
    )
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, v INTEGER)")
    connection.commit()
    begin = newest(connection)
    for number in range(60):
        connection.execute(
            "INSERT INTO t VALUES (%s, 0)"
            if number < 30
            else "UPDATE t SET v = 5 WHERE a = %s",
            (number % 30,),
        )
        connection.commit()
    connection.checkpoint()
    with connection.changes("t", since=begin) as feed:
        first = next(feed)
        time.sleep(3.5)
        connection.execute("DELETE FROM t WHERE a < 20")
        connection.commit()
        connection.checkpoint()
        (table,) = connection._database.catalog
        images = f"SELECT count(*) FROM {history_name(table)}"
        session = connection._execution.session
        assert session.execute(images).fetch_all() == [(20,)]
        found = [first, *feed]
    changed = [(c.operation, (c.old or c.new)[0]) for c in found]
    assert changed == [
        *(("insert", i) for i in range(30)),
        *(("update", i) for i in range(30)),
    ]
    with pytest.raises(tique.OperationalError):
        connection.changes("t", since=begin)


@pytest.mark.every_engine
def test_arrow(engine, connection):
    begin = newest(connection)
    write_some(connection)
    rows = [
        row
        for batch in connection.changes_arrow("t", since=begin)
        for row in batch.to_pylist()
    ]
    connection.row_factory = tique.dict_row
    assert rows == [change._asdict() for change in connection.changes("t", since=begin)]
    assert len(rows) == 5


def write_some(connection):
    connection.execute("INSERT INTO t VALUES (1, 'p', 1), (2, 'p', NULL), (3, 'q', 3)")
    connection.commit()
    connection.checkpoint()
    connection.execute("UPDATE t SET v = 9 WHERE a = 1")
    connection.commit()
    connection.execute("DELETE FROM t WHERE a = 3")
    connection.commit()


@pytest.mark.every_engine
def test_it_follows(engine, connection):
    begin = newest(connection)
    write_some(connection)
    other = engine.connect()
    found = []

    def follow(feed):
        found.extend(feed)

    feed = other.changes("t", since=begin, follow=True)
    thread = threading.Thread(target=follow, args=(feed,))
    thread.start()
    for number in range(20):
        connection.execute("INSERT INTO t VALUES (%s, 'z', 0)", (number,))
        connection.commit()
        if number % 7 == 0:
            connection.checkpoint()
            time.sleep(0.1)
    expected = list(connection.changes("t", since=begin))
    assert len(expected) == 25
    deadline = time.monotonic() + 20
    while len(found) < 25 and time.monotonic() < deadline:
        time.sleep(0.02)
    feed.close()
    thread.join(20)
    assert not thread.is_alive()
    assert found == expected


@pytest.mark.every_engine
def test_a_feed_goes_on_where_another_has_ended(engine, connection):
    begin = newest(connection)
    write_some(connection)
    whole = list(connection.changes("t", since=begin))
    for length in range(len(whole)):
        feed = connection.changes("t", since=begin)
        found = [next(feed) for _ in range(length)]
        feed.close()
        complete = [change for change in found if change.version <= feed.version]
        rest = list(connection.changes("t", since=feed.version))
        assert complete + rest == whole
    feed = connection.changes("t", since=begin)
    assert list(feed) == whole
    assert feed.version == newest(connection)
    assert list(feed) == []


@pytest.mark.every_engine
def test_asyncio(engine, connection):
    """It follows without holding the event loop up, and ends when its task is cancelled."""
    begin = newest(connection)
    write_some(connection)
    whole = list(connection.changes("t", since=begin))
    batches = list(connection.changes_arrow("t", since=begin))
    database, found = connection._database, []

    async def follow(conn):
        async for change in conn.changes("t", since=begin, follow=True):
            found.append(change)  # noqa: PERF401

    async def work():
        async with await tique.AsyncConnection.connect(engine.url) as conn:
            assert [change async for change in conn.changes("t", since=begin)] == whole
            read = [batch async for batch in conn.changes_arrow("t", since=begin)]
            assert read == batches
            with pytest.raises(tique.ProgrammingError, match="unknown table"):
                await anext(conn.changes("nothing", since=begin))
            feed = conn.changes("t", since=begin, follow=True, timeout=0.2)
            assert [change async for change in feed] == whole
            counted = database.connections
            for _ in range(3):
                found.clear()
                following = asyncio.ensure_future(follow(conn))
                while found != whole:
                    await asyncio.sleep(0.01)
                await conn.execute("INSERT INTO t VALUES (9, 'z', 0)")
                await conn.commit()
                while len(found) == len(whole):
                    await asyncio.sleep(0.01)
                whole.append(found[-1])
                assert whole[-1].new == (9, "z", 0)
                await conn.execute("DELETE FROM t WHERE a = 9")
                await conn.commit()
                while len(found) == len(whole):
                    await asyncio.sleep(0.01)
                whole.append(found[-1])
                # It waits, or asks whether there is more.
                await asyncio.sleep(random.uniform(0, 0.1))
                following.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.wait_for(following, 20)
                assert database.connections == counted

    asyncio.run(work())


def test_it_ends_when_it_has_waited_long_enough(connection):
    begin = newest(connection)
    write_some(connection)
    before = time.monotonic()
    feed = connection.changes("t", since=begin, follow=True, timeout=0.3)
    assert len(list(feed)) == 5
    assert 0.3 <= time.monotonic() - before < 10
    assert feed.version == newest(connection)
    end = begin + 2
    feed = connection.changes("t", since=begin, until=end, follow=True)
    assert [change.version for change in feed][-1] == end


def test_an_open_transaction_changes_nothing(connection):
    begin = newest(connection)
    write_some(connection)
    whole = list(connection.changes("t", since=begin))
    connection.execute("INSERT INTO t VALUES (7, 'p', 0)")
    assert list(connection.changes("t", since=begin)) == whole
    assert connection.in_transaction
    connection.rollback()


def test_a_feed_that_is_dropped_leaves_nothing(engine, connection):
    begin = newest(connection)
    write_some(connection)
    database = connection._database
    counted = database.connections
    feed = connection.changes("t", since=begin)
    next(feed)
    assert database.connections == counted + 1
    del feed
    deadline = time.monotonic() + 20
    while database.connections > counted and time.monotonic() < deadline:
        time.sleep(0.05)
    assert database.connections == counted
    assert not database.transactions


@pytest.mark.every_engine
def test_what_cannot_be_asked_for(engine, connection):
    write_some(connection)
    with pytest.raises(tique.ProgrammingError, match="unknown table") as caught:
        connection.changes("nothing", since=0)
    assert caught.value.sqlstate == "42P01"
    with pytest.raises(tique.ProgrammingError, match="time zone") as caught:
        connection.changes("t", since=datetime.now())
    assert caught.value.sqlstate == "22023"
    with pytest.raises(tique.ProgrammingError, match="no version") as caught:
        connection.changes("t", since=newest(connection) + 1)
    assert caught.value.sqlstate == "22023"
    connection.execute("CREATE TABLE late (id INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO late VALUES (1)")
    connection.commit()
    (late,) = (t for t in connection._database.catalog if t.name == "late")
    first = late.history.since
    if first:
        with pytest.raises(tique.OperationalError, match=f"version {first}") as caught:
            connection.changes("late", since=first - 1)
        assert caught.value.sqlstate == "72000"
    assert [c.new for c in connection.changes("late", since=first)] == [(1,)]
    whole = list(connection.changes("t", since=newest(connection) - 4))
    moment = whole[0].time - timedelta(microseconds=1)
    assert list(connection.changes("t", since=moment)) == whole
    until = whole[1].time
    upto = [change for change in whole if change.time <= until]
    assert list(connection.changes("t", since=moment, until=until)) == upto


@pytest.mark.every_engine
def test_beyond_the_first_term(engine):
    connection = engine.connect(
        checkpoint="manual", history="2 seconds; hourly for 2 days", retention=0.0
    )
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, v INTEGER)")
    connection.commit()
    begin = newest(connection)
    for number in range(5):
        connection.execute("INSERT INTO t VALUES (%s, 0)", (number,))
        connection.commit()
    assert len(list(connection.changes("t", since=begin))) == 5
    time.sleep(2.5)
    last = newest(connection)
    connection.execute("INSERT INTO t VALUES (9, 0)")
    connection.commit()
    with pytest.raises(tique.OperationalError, match=f"since version {last}") as caught:
        connection.changes("t", since=begin)
    assert caught.value.sqlstate == "72000"
    assert [c.new for c in connection.changes("t", since=last)] == [(9, 0)]
    for since in (datetime.now(UTC) - timedelta(hours=1), begin):
        with pytest.raises(tique.OperationalError, match=f"since version {last}"):
            connection.changes("t", since=since)


def test_without_a_history(engine):
    connection = engine.connect()
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
    connection.commit()
    for ask in (
        lambda: connection.changes("t", since=0),
        lambda: connection.differences("t", 0, 0),
        lambda: connection.restore("t", 0),
    ):
        with pytest.raises(tique.ProgrammingError, match="history set") as caught:
            ask()
        assert caught.value.sqlstate == "55000"


@pytest.mark.slow
@pytest.mark.every_engine
@pytest.mark.parametrize("rows", [3, 3000])
def test_restored_it_is_exactly_what_it_was(engine, connection, rows):
    connection.execute(
        "CREATE TABLE r (id INTEGER PRIMARY KEY, n INTEGER UNIQUE, s VARCHAR(9), "
        f"d {engine.money}, z DOUBLE PRECISION)"
    )
    connection.commit()
    connection.cursor().executemany(
        "INSERT INTO r VALUES (%s, %s, %s, %s, %s)",
        [(i, i if i % 5 else None, f"s{i % 3}", 1.25, i / 3) for i in range(rows)],
    )
    connection.commit()
    before, version = contents(connection, "r"), newest(connection)
    moment = max(c.time for c in connection.changes("r", since=version - 1))
    connection.checkpoint()
    connection.execute("DELETE FROM r WHERE id < %s", (rows // 3,))
    connection.execute("INSERT INTO r VALUES (%s, -1, 'new', NULL, 0)", (rows + 1,))
    connection.commit()
    connection.execute("UPDATE r SET n = NULL, s = 'x' WHERE id >= %s", (rows // 2,))
    connection.commit()
    now, end = contents(connection, "r"), newest(connection)
    connection.checkpoint()
    expected = len(list(connection.differences("r", version, end)))
    assert connection.restore("r", version) == expected
    connection.commit()
    assert contents(connection, "r") == before
    assert connection.restore("r", moment) == 0
    connection.checkpoint()
    assert contents(connection, "r") == before
    # There and back.
    assert connection.restore("r", end) == expected
    connection.rollback()
    assert contents(connection, "r") == before
    assert connection.restore("r", end) == expected
    connection.commit()
    assert contents(connection, "r") == now


VALUES = {
    "duckdb": [
        ("INTEGER[]", "[1, NULL, 3]", "[]"),
        ("STRUCT(a INTEGER, b VARCHAR)", "{'a': 1, 'b': 'x'}", "NULL"),
        ("INTERVAL", "INTERVAL 3 MONTHS", "INTERVAL 90 DAYS"),
        ("HUGEINT", "17014118346046923173168730371588410572", "0"),
        ("TIMESTAMP WITH TIME ZONE", "'2024-01-01 10:00:00+02'", "'infinity'"),
        ("JSON", """'{"a": [1, 2.50]}'""", "'null'"),
        ("DOUBLE", "'nan'", "-0.0"),
        ("BLOB", r"'\x00\xff'", "''"),
    ],
    "postgresql": [
        ("INTEGER[]", "'{1,NULL,3}'", "'{}'"),
        ("INT4RANGE", "'[1,5)'", "'empty'"),
        ("INTERVAL", "'3 months'", "'90 days'"),
        ("NUMERIC", "1.50", "'NaN'"),
        ("TIMESTAMPTZ", "'2024-01-01 10:00:00+02'", "'infinity'"),
        ("JSONB", """'{"a": [1, 2.50]}'""", "'null'"),
        ("DOUBLE PRECISION", "'nan'", "'-0.0'"),
        ("BYTEA", r"'\x00ff'", "''"),
        ("BIT VARYING(8)", "B'101'", "B''"),
    ],
    "monetdb": [
        ("INTERVAL MONTH", "INTERVAL '3' MONTH", "NULL"),
        ("INTERVAL SECOND", "INTERVAL '1.5' SECOND", "INTERVAL '0' SECOND"),
        ("HUGEINT", "1701411834604692317316873037158841057", "0"),
        ("TIMESTAMP WITH TIME ZONE", "'2024-01-01 10:00:00+02:00'", "NULL"),
        ("JSON", """'{"a": [1, 2.50]}'""", "'null'"),
        ("TIME", "'23:59:59'", "'00:00:00'"),
        ("BLOB", "'00ff'", "''"),
        ("DECIMAL(18,0)", "123456789012345678", "-1"),
    ],
}


@pytest.mark.every_engine
@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_values_of_any_type(engine, key):
    connection = engine.connect(checkpoint="manual", history=TWO_HOURS)
    kinds = VALUES[engine.name]
    columns = ", ".join(f"c{i} {kind}" for i, (kind, *_) in enumerate(kinds))
    connection.execute(f"CREATE TABLE r (id INTEGER {key}, {columns})")
    connection.commit()

    def row(number, which):
        values = ", ".join(kind[which] for kind in kinds)
        connection.execute(f"INSERT INTO r VALUES ({number}, {values})")

    begin = newest(connection)
    row(1, 1)
    row(2, 2)
    row(3, 1)
    connection.commit()
    connection.checkpoint()
    before, version = contents(connection, "r"), newest(connection)
    connection.execute("DELETE FROM r WHERE id = 1")
    for number, (_, value, other) in enumerate(kinds):
        connection.execute(f"UPDATE r SET c{number} = {value} WHERE id = 2")
        connection.execute(f"UPDATE r SET c{number} = {other} WHERE id = 3")
    row(4, 2)
    connection.commit()
    after = contents(connection, "r")
    found = list(connection.changes("r", since=begin))
    news = [repr(change.new) for change in found if change.version == version]
    assert sorted(news) == [repr(each) for each in before]
    gone = {repr(change.old) for change in found if change.old}
    assert repr(before[0]) in gone
    batches = list(connection.changes_arrow("r", since=begin))
    assert sum(batch.num_rows for batch in batches) == len(found)
    assert connection.restore("r", version) > 2
    connection.commit()
    connection.checkpoint()
    assert repr(contents(connection, "r")) == repr(before)
    connection.restore("r", version + 1)
    connection.commit()
    assert repr(contents(connection, "r")) == repr(after)


@pytest.mark.every_engine
@pytest.mark.parametrize("rows", [3, 3000])
def test_it_is_a_transaction_as_any(engine, connection, rows):
    connection.execute("CREATE TABLE r (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.commit()
    connection.cursor().executemany(
        "INSERT INTO r VALUES (%s, 0)", [(i,) for i in range(rows)]
    )
    connection.commit()
    version = newest(connection)
    connection.execute("UPDATE r SET v = 1 WHERE id <> 0")
    connection.commit()
    other = engine.connect()
    connection.restore("r", version)
    other.execute("UPDATE r SET v = 7 WHERE id = 1")
    other.commit()
    with pytest.raises(tique.SerializationError):
        connection.commit()
    assert (1, 7) in contents(connection, "r")
    connection.restore("r", version)
    other.execute("UPDATE r SET v = 7 WHERE id = 0")
    other.commit()
    connection.commit()
    found = sorted(contents(connection, "r"))
    assert found == [(0, 7), *((i, 0) for i in range(1, rows))]


@pytest.mark.every_engine
@pytest.mark.parametrize("begins", ["before", "after"])
def test_nothing_is_pruned_before_it_is_restored(engine, monkeypatch, begins):
    connection = engine.connect(checkpoint="manual", history="2 seconds", retention=0.0)
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute("INSERT INTO t VALUES (1, 1)")
    connection.commit()
    version = newest(connection)
    connection.execute("UPDATE t SET v = 2")
    connection.commit()
    other = engine.connect()

    def prune():
        time.sleep(2.5)
        other.execute("INSERT INTO t VALUES (2, 2)")
        other.commit()
        other.checkpoint()

    def difference(*arguments):
        prune()
        return original(*arguments)

    original = restoring.difference
    if begins == "before":
        # What it reads is that of the moment when it began to.
        monkeypatch.setattr(restoring, "difference", difference)
        assert connection.restore("t", version) == 1
        connection.commit()
        assert contents(connection) == [(1, 1), (2, 2)]
        return
    prune()
    with pytest.raises(tique.OperationalError) as caught:
        connection.restore("t", version)
    assert caught.value.sqlstate == "72000"
    connection.commit()
    assert contents(connection) == [(1, 2), (2, 2)]


@pytest.mark.every_engine
def test_restoring_in_a_transaction_that_the_engine_keeps(engine, connection):
    begin = newest(connection)
    write_some(connection)
    before = contents(connection)
    connection.execute("DELETE FROM t")
    connection.commit()
    end = newest(connection)
    assert contents(connection) == []
    connection.execute("SELECT count(*) FROM t").fetchall()
    connection._execution.transaction.hold()
    assert connection.restore("t", end - 1) == len(before)
    connection.commit()
    assert contents(connection) == before
    assert len(list(connection.changes("t", since=begin))) == 5 + 2 * len(before)


@pytest.mark.every_engine
def test_rows_that_reference_a_key_follow_what_is_restored(engine, connection):
    connection.execute("CREATE TABLE p (id INTEGER PRIMARY KEY, code INTEGER UNIQUE)")
    connection.execute(
        "CREATE TABLE c (id INTEGER PRIMARY KEY, code INTEGER REFERENCES p (code) "
        "ON UPDATE CASCADE ON DELETE CASCADE)"
    )
    connection.execute("INSERT INTO p VALUES (1, 10), (2, 20)")
    connection.execute("INSERT INTO c VALUES (1, 10), (2, 20)")
    connection.commit()
    version = newest(connection)
    connection.execute("UPDATE p SET code = 11 WHERE id = 1")
    connection.execute("INSERT INTO p VALUES (3, 30)")
    connection.execute("INSERT INTO c VALUES (3, 30)")
    connection.commit()
    assert contents(connection, "c") == [(1, 11), (2, 20), (3, 30)]
    assert connection.restore("p", version) == 2
    connection.commit()
    assert contents(connection, "p") == [(1, 10), (2, 20)]
    assert contents(connection, "c") == [(1, 10), (2, 20)]


@pytest.mark.every_engine
@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_what_differs_the_other_way_round(engine, key):
    connection = engine.connect(checkpoint="manual", history=TWO_HOURS)
    connection.execute(f"CREATE TABLE r (a INTEGER {key}, v INTEGER)")
    connection.execute("INSERT INTO r VALUES (1, 1), (2, 2)")
    connection.commit()
    version = newest(connection)
    connection.execute("DELETE FROM r WHERE a = 1")
    connection.execute("INSERT INTO r VALUES (3, NULL)")
    connection.commit()
    there, back = (
        sorted(connection.differences("r", *points), key=repr)
        for points in ((version, version + 1), (version + 1, version))
    )
    assert there == [("delete", (1, 1), None), ("insert", None, (3, None))]
    assert back == [("delete", (3, None), None), ("insert", None, (1, 1))]
    assert list(connection.differences("r", version, version)) == []


def test_restoring_after_ddl_is_refused(connection):
    write_some(connection)
    version = newest(connection)
    connection.execute("BEGIN")
    connection.execute("CREATE TABLE other (id INTEGER PRIMARY KEY)")
    with pytest.raises(tique.NotSupportedError, match="after its DDL"):
        connection.restore("t", version)
    connection.rollback()


def test_restoring_what_the_transaction_has_changed_is_refused(connection):
    write_some(connection)
    version = newest(connection)
    connection.execute("INSERT INTO t VALUES (7, 'p', 0)")
    with pytest.raises(tique.ProgrammingError, match="has changed it") as caught:
        connection.restore("t", version)
    assert caught.value.sqlstate == "25001"
    connection.rollback()
    connection.read_only = True
    with pytest.raises(tique.OperationalError) as caught:
        connection.restore("t", version - 1)
    assert caught.value.sqlstate == "25006"
    connection.rollback()
