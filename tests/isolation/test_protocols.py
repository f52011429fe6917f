"""SERIALIZABLE by each of the three protocols: `connect(concurrency=…)` (P1, P3, P6)."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import permutations
from typing import Any, NamedTuple

import pytest

import tique
from tests.effort import effort, patience
from tests.isolation.overtaking import committed_together
from tique.commit.protocols import safety_net

pytestmark = pytest.mark.every_engine

REFUSED = "40001"
DEADLOCK = "40P01"
NOT_AVAILABLE = "55P03"


@pytest.fixture(params=["optimistic", "locking", "ssn"])
def protocol(request, engine):
    if request.param == "ssn" and engine.name != "duckdb":
        pytest.skip("its stamps are in the memory of one process")
    return request.param


@pytest.fixture
def connect(engine):
    """Connections to a table with four rows, whose waits for locks are short."""

    def connect(protocol, **options):
        options = {"isolation_level": "SERIALIZABLE", "lock_timeout": 0, **options}
        return engine.connect(concurrency=protocol, **options)

    return connect


@pytest.fixture
def table(connect, protocol):
    connection = connect(protocol, isolation_level="SNAPSHOT")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, m INTEGER)")
    connection.execute(
        "INSERT INTO t VALUES (1, 1, 0), (2, 2, 0), (3, 3, 0), (4, 4, 0)"
    )
    connection.commit()
    return connection


def get(connection, key):
    return connection.execute("SELECT n FROM t WHERE id = %s", (key,)).fetchall()


def put(connection, key, n):
    connection.execute("UPDATE t SET n = %s WHERE id = %s", (n, key))


def count(connection):
    return connection.execute("SELECT count(*) FROM t WHERE n > 2").fetchone()


def result(call, *given):
    """The SQLSTATE of an error; None: there is none."""
    try:
        call(*given)
    except tique.Error as error:
        return error.sqlstate
    return None


def ends(connections, *steps):
    """Run steps, and commit in the order of the connections; the errors of each."""
    found = {connection: [] for connection in connections}
    for connection, call, *given in steps:
        found[connection].append(result(call, connection, *given))
    return [
        [
            error
            for error in (*found[connection], result(connection.commit))
            if error is not None
        ]
        for connection in connections
    ]


# Anomalies: what the loser of each gets.


def refusal(protocol, *, waits):
    """Of the one that is second to come, or to commit."""
    return NOT_AVAILABLE if protocol == "locking" and waits else REFUSED


def test_write_skew_by_keys(connect, protocol, table):
    one, two = connect(protocol), connect(protocol)
    errors = ends(
        (one, two), (one, get, 1), (two, get, 2), (one, put, 2, 0), (two, put, 1, 0)
    )
    if protocol == "locking":
        # Each has what the other one wants to write: none waits, so none writes.
        assert errors == [[NOT_AVAILABLE], [NOT_AVAILABLE]]
    else:
        assert errors == [[], [REFUSED]]


def test_write_skew_by_predicates(connect, protocol, table):
    one, two = connect(protocol), connect(protocol)
    steps = (one, count), (two, count), (one, put, 3, 0), (two, put, 4, 0)
    assert ends((one, two), *steps) == [[], [REFUSED]]


def test_a_phantom(connect, protocol, table):
    one, two = connect(protocol), connect(protocol)

    def insert(connection, key):
        connection.execute("INSERT INTO t VALUES (%s, 9, 0)", (key,))

    steps = (one, count), (two, count), (one, insert, 8), (two, insert, 9)
    assert ends((one, two), *steps) == [[], [REFUSED]]


def test_a_lost_update(connect, protocol, table):
    one, two = connect(protocol), connect(protocol)
    steps = (one, get, 1), (two, get, 1), (one, put, 1, 10), (two, put, 1, 20)
    if protocol == "locking":
        assert ends((one, two), *steps) == [[NOT_AVAILABLE], [NOT_AVAILABLE]]
    else:
        assert ends((one, two), *steps) == [[], [REFUSED]]


def test_the_anomaly_of_a_reader(connect, protocol, table):
    """Fekete, O'Neil and O'Neil: only a transaction that writes nothing closes the circle."""
    old, new, reader = connect(protocol), connect(protocol), connect(protocol)
    get(old, 1)
    get(old, 2)
    changed = [result(put, new, 1, 10), result(new.commit)]
    new.rollback()
    seen = get(reader, 1), get(reader, 2)
    reader_ends = result(reader.commit)
    errors = ends((old,), (old, put, 2, 20))
    if protocol == "locking":
        assert changed == [NOT_AVAILABLE, None]
        assert errors == [[]]
    else:
        assert (changed, seen, reader_ends) == ([None, None], ([(10,)], [(2,)]), None)
        assert errors == [[REFUSED]]


def test_what_is_no_anomaly(connect, protocol, table):
    """One reads, another one overwrites that: in the order of these two it is none."""
    one, two = connect(protocol), connect(protocol)
    get(one, 1)
    overwritten = [result(put, two, 1, 10), result(two.commit)]
    errors = ends((one,), (one, put, 2, 20))
    if protocol == "locking":
        assert (overwritten, errors) == ([NOT_AVAILABLE, None], [[]])
    elif protocol == "optimistic":
        assert (overwritten, errors) == ([None, None], [[REFUSED]])
    else:
        assert (overwritten, errors) == ([None, None], [[]])


def test_other_columns_do_not_conflict(connect, protocol, table):
    one, two = connect(protocol), connect(protocol)
    two.execute("UPDATE t SET m = 1 WHERE id = 1")
    get(one, 2)
    two.commit()
    assert ends((one,), (one, get, 1), (one, put, 3, 0)) == [[]]


# Locking


@pytest.fixture
def waiting(connect):
    """Connections that wait, and threads for them."""
    connections = [connect("locking", lock_timeout=patience(20)) for _ in range(2)]
    with ThreadPoolExecutor(2) as threads:
        yield connections, threads


def expect_waiting(connection):
    end = time.monotonic() + patience(20)
    while not connection._database.locks._waits:
        assert time.monotonic() < end
        time.sleep(0.001)


locking = pytest.mark.parametrize("protocol", ["locking"], indirect=True)


@locking
@pytest.mark.parametrize("write", ["UPDATE t SET n = 10 WHERE id = 1", "DELETE FROM t"])
def test_a_reader_waits_for_a_writer_and_goes_on(connect, table, waiting, write):
    """Not a loss, but a wait: its snapshot moves to what the other one has left."""
    (one, two), threads = waiting
    assert get(two, 9) == []
    one.execute(write)
    found = threads.submit(get, two, 1)
    expect_waiting(one)
    one.commit()
    assert found.result() == ([(10,)] if "10" in write else [])
    assert ends((two,), (two, put, 2, 20)) == [[]]


@locking
@pytest.mark.parametrize("before", [False, True])
def test_a_writer_waits_and_is_run_again(connect, table, waiting, before):
    """What its first run saw does not count; what was read before does."""
    (one, two), threads = waiting
    assert get(two, 3 if before else 4) != []
    one.execute("UPDATE t SET n = 10 WHERE id = 1")
    if before:
        one.execute("UPDATE t SET m = 7 WHERE id = 2")
        two.execute("UPDATE t SET m = 1 WHERE id = 3")
    text = "UPDATE t SET n = n + m + 1 WHERE id < 3 AND n > 0"
    found = threads.submit(two.execute, text)
    expect_waiting(one)
    one.commit()
    assert found.result().rowcount == 2
    two.commit()
    rows = table.execute("SELECT n FROM t WHERE id < 3 ORDER BY id").fetchall()
    assert rows == [(11,), (10 if before else 3,)]


@locking
def test_a_snapshot_cannot_move_behind_what_was_seen(connect, table):
    """P1: it fails at once, not at its commit."""
    one, two = connect("locking"), connect("locking")
    assert count(two) == (2,)
    put(one, 1, 10)
    one.commit()
    with pytest.raises(tique.SerializationError) as refused:
        get(two, 1)
    assert refused.value.sqlstate == REFUSED
    assert "WHERE n > ?" in str(refused.value)


@locking
def test_readers_share_a_row(connect, table):
    one, two, three = (connect("locking") for _ in range(3))
    assert get(one, 1) == get(two, 1) == [(1,)]
    assert result(put, three, 1, 10) == NOT_AVAILABLE
    assert [result(each.commit) for each in (one, two)] == [None, None]
    assert result(put, three, 1, 10) is None


@locking
def test_who_is_declared_to_read_locks_nothing(connect, table):
    reader, single, writer = (connect("locking") for _ in range(3))
    reader.read_only = True
    single.autocommit = True
    assert get(reader, 1) == get(single, 1) == [(1,)]
    put(writer, 1, 10)
    assert ends((writer, reader), (reader, get, 1)) == [[], []]


@locking
def test_a_deadlock_is_told(connect, table, waiting):
    """Both have read what both want to write."""
    (one, two), threads = waiting
    get(one, 1)
    get(two, 1)

    def work(connection):
        error = result(put, connection, 1, 10) or result(connection.commit)
        connection.rollback()
        return error

    assert sorted(map(str, threads.map(work, (one, two)))) == [DEADLOCK, "None"]


@locking
def test_a_savepoint_gives_its_locks_back(connect, table):
    """What it took back stays seen, as ever."""
    one, two = connect("locking"), connect("locking")
    get(one, 4)
    one.execute("SAVEPOINT s")
    put(one, 1, 10)
    assert result(put, two, 1, 20) == NOT_AVAILABLE
    one.execute("ROLLBACK TO s")
    put(two, 1, 20)
    two.commit()
    assert ends((one,), (one, put, 2, 0)) == [[REFUSED]]


@locking
def test_no_read_modify_write_is_lost(connect, table):
    """P3, P6: they wait for one another, by FOR UPDATE before what is read."""
    rounds, workers = effort(20, 200), 3

    def work():
        with connect("locking", lock_timeout=patience(30)) as connection:
            for _ in range(rounds):
                tique.run_transaction(connection, add, attempts=10)

    def add(connection):
        query = "SELECT n FROM t WHERE id = 1 FOR UPDATE"
        ((n,),) = connection.execute(query).fetchall()
        put(connection, 1, n + 1)

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert get(table, 1) == [(1 + rounds * workers,)]


# The safety net

ssn = pytest.mark.parametrize("protocol", ["ssn"], indirect=True)


@ssn
@pytest.mark.parametrize("writes", [False, True])
def test_between_a_place_and_its_commit(connect, table, writes):
    """It has seen a commit, and not the one that comes before that."""
    first, second, reader = (connect("ssn") for _ in range(3))
    get(first, 1)
    get(second, 1)
    with connect("ssn") as other:
        put(other, 1, 10)
    with connect("ssn") as harmless:
        assert get(harmless, 1) == get(reader, 1) == [(10,)]
        assert ends((first, second), (first, put, 3, 0), (second, put, 4, 0)) == [
            [],
            [],
        ]
    get(reader, 3)
    if writes:
        put(reader, 2, 0)
    assert ends((reader,)) == [[REFUSED]]
    assert ends((reader,), (reader, get, 1), (reader, get, 3)) == [[]]
    found = table.status().commits.validations
    assert (found.spared, found.readers_refused) == (2, int(not writes))


@ssn
@pytest.mark.parametrize("marks", [safety_net._MOST_MARKS, 0])
def test_predicates_and_marks(connect, table, marks, monkeypatch):
    """A reader by a predicate marks the table; too many rows' marks become one."""
    monkeypatch.setattr(safety_net, "_MOST_MARKS", marks)
    late, reader, other = (connect("ssn") for _ in range(3))
    get(late, 1)
    put(other, 1, 10)
    other.commit()
    get(reader, 1)
    if marks:
        reader.execute("SELECT count(*) FROM t WHERE m = 5").fetchall()
    reader.commit()
    # The reader has seen the other's commit, and comes before what is written now.
    assert ends((late,), (late, put, 3, 0)) == [[REFUSED]]


@ssn
@pytest.mark.parametrize("is_later", [False, True])
def test_two_of_one_batch(engine, connect, table, is_later):
    """Neither is placed by what it can know of the other before that is published."""
    early, late = connect("ssn"), connect("ssn")
    get(early, 1)
    with connect("ssn") as other:
        put(other, 1, 10)
    assert (get(late, 1), get(late, 2)) == ([(10,)], [(2,)])
    put(late, 3, 0)
    put(early, 2, 0)
    pair = (late, early) if is_later else (early, late)
    assert committed_together(engine, pair) == [None, tique.SerializationError]


@ssn
@pytest.mark.parametrize("look", [get, lambda connection, _: count(connection)])
def test_the_first_change_of_all_that_was_seen(connect, table, look):
    """A later one leaves time for others, but not an earlier one."""
    early, reader, other = (connect("ssn") for _ in range(3))
    look(early, 4)
    get(early, 1)
    put(other, 4, 0)
    other.commit()
    assert (get(reader, 4), get(reader, 2)) == ([(0,)], [(2,)])
    reader.commit()
    put(other, 1, 10)
    other.commit()
    assert ends((early,), (early, put, 2, 0)) == [[REFUSED]]


@ssn
def test_a_changed_predicate_is_placed_before_the_change(connect, table):
    one, two = connect("ssn"), connect("ssn")
    assert count(one) == (2,)
    put(two, 1, 10)
    put(two, 4, 0)
    two.commit()
    assert ends((one,), (one, put, 2, 0)) == [[]]


@ssn
def test_an_update_does_not_merge_before_what_it_saw(connect, table):
    """P3: first committer wins over transactions that are placed before their commit."""
    one, two = connect("ssn"), connect("ssn")
    get(one, 1)
    put(two, 1, 10)
    two.execute("UPDATE t SET n = n + 1 WHERE id = 2")
    two.commit()
    one.execute("UPDATE t SET n = n + 1 WHERE id = 2")
    assert result(one.commit) == REFUSED


@pytest.mark.parametrize("concurrency", ["locking", "ssn"])
def test_a_process_has_one_protocol(engine, concurrency):
    """P10: none is taken in place of another."""
    engine.connect(concurrency="optimistic")
    with pytest.raises(tique.InterfaceError, match="share its settings"):
        tique.connect(engine.url, concurrency=concurrency)
    with pytest.raises(
        tique.InterfaceError, match="not one of optimistic, locking, ssn"
    ):
        tique.connect(engine.url, concurrency="mvto")


def test_what_one_process_keeps_in_memory_is_refused_on_servers(engine):
    if engine.name == "duckdb":
        engine.connect(concurrency="ssn")
        return
    with pytest.raises(tique.NotSupportedError, match="the memory of one process"):
        tique.connect(engine.url, concurrency="ssn")
    engine.connect().execute("SELECT 1")


# Any histories: those that are committed are strictly serializable.


class Op(NamedTuple):
    """A statement: its text, and what it does to the table as a dict and answers."""

    sql: str
    run: Any


def program(chance):
    """Some random statements: any, those of a reader, or one that writes what it read before."""
    style = chance.choice(["any", "reader", "keyed", "keyed"])
    kinds = {
        "any": chance.choices(KINDS, k=chance.randint(1, 4)),
        "reader": [read] * chance.randint(1, 3),
        "keyed": [read] * chance.randint(1, 2) + [written],
    }[style]
    most = 4 if style == "any" else 3
    return [kind(chance.randint(1, most), chance.randint(0, 9)) for kind in kinds]


def read(key, n):
    return Op(
        f"SELECT n FROM t WHERE id = {key}", lambda s: [(s[key],)] if key in s else []
    )


def counted(key, n):
    sql = f"SELECT count(*) FROM t WHERE n > {n}"
    return Op(sql, lambda s: [(sum(v > n for v in s.values()),)])


def written(key, n):
    return Op(f"UPDATE t SET n = {n} WHERE id = {key}", lambda s: set_(s, key, n))


def added(key, n):
    sql = f"UPDATE t SET n = n + {n} WHERE id = {key}"
    return Op(sql, lambda s: set_(s, key, s.get(key, 0) + n))


def inserted(key, n):
    def run(state):
        if key in state:
            return "23505"
        state[key] = n
        return 1

    return Op(f"INSERT INTO t VALUES ({key}, {n}, 0)", run)


def deleted(key, n):
    sql = f"DELETE FROM t WHERE id = {key}"
    return Op(sql, lambda s: int(s.pop(key, None) is not None))


def set_(state, key, n):
    if key not in state:
        return 0
    state[key] = n
    return 1


KINDS = [read] * 4 + [written] * 3 + [counted, added, inserted, deleted]


class History:
    """One transaction: what it did, and when."""

    def __init__(self, program):
        self.program = program
        self.results = []
        self.began = self.ended = None
        self.is_committed = False

    def step(self, connection, moment):
        """Run the next statement, or commit."""
        if self.began is None:
            self.began = moment
        try:
            if len(self.results) == len(self.program):
                connection.commit()
                self.ended, self.is_committed = moment, True
                return
            self.results.append(answer(connection, self.program[len(self.results)].sql))
        except (tique.SerializationError, tique.OperationalError):
            connection.rollback()
            self.ended = moment


def answer(connection, sql):
    try:
        cursor = connection.execute(sql)
    except tique.IntegrityError as error:
        return error.sqlstate
    return cursor.rowcount if cursor.description is None else cursor.fetchall()


def explains(order, first, last):
    """Whether transactions, one after the other, have these results, in time."""
    state = dict(first)
    for place, each in enumerate(order):
        if any(later.ended < each.began for later in order[place:]):
            return False
        if [op.run(state) for op in each.program] != each.results:
            return False
    return state == last


@pytest.mark.slow
@pytest.mark.parametrize(
    "marks", [safety_net._MOST_MARKS, 1], ids=["marks", "few marks"]
)
def test_random_transactions(engine, connect, protocol, table, marks, monkeypatch):
    """P1, P3: strict serializability."""
    if protocol != "ssn" and marks == 1:
        pytest.skip("has no marks")
    monkeypatch.setattr(safety_net, "_MOST_MARKS", marks)
    share = 1 if engine.name == "duckdb" else 0.1
    connections = [connect(protocol) for _ in range(4)]
    with closing(connect(protocol, autocommit=True)) as keeper:
        for seed in range(int(effort(400, 20_000) * share)):
            check(random.Random(seed), connections, keeper)
    if protocol == "ssn" and engine.name == "duckdb" and marks > 1:
        found = table.status().commits.validations
        assert found.spared > 10
        assert found.readers_refused


def check(chance, connections, keeper):
    first = {key: key for key in range(1, 4)}
    keeper.execute("DELETE FROM t")
    keeper.execute("INSERT INTO t VALUES (1, 1, 0), (2, 2, 0), (3, 3, 0)")
    histories = [
        History(program(chance)) for _ in range(chance.randint(2, len(connections)))
    ]
    running = list(zip(histories, connections, strict=False))
    moment = 0
    while running:
        moment += 1
        place = chance.randrange(len(running))
        history, connection = running[place]
        history.step(connection, moment)
        if history.ended is not None:
            del running[place]
    last = dict(keeper.execute("SELECT id, n FROM t").fetchall())
    committed = [history for history in histories if history.is_committed]
    orders = permutations(committed)
    shown = *(vars(history) for history in histories), last
    assert any(explains(order, first, last) for order in orders), shown
