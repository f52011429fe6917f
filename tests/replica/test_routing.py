"""Routing of reads to a replica in the same process (P1, P2, P8, P10, P12).

Each test has PostgreSQL as the source and a DuckDB file as the replica.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import tique
from tests.plugins.engine import PostgreSQL
from tests.plugins.postgresql import in_database
from tique.cli._explain import explain_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.targets.cluster import Cluster

pytestmark = pytest.mark.postgresql

_SUM = "SELECT sum(v) AS total FROM t"
_WAIT = 20.0


class Pair:
    """A source, a replica of it, and connections that may read there."""

    def __init__(self, url: str, path: Path) -> None:
        self.url = url
        self.replica = f"duckdb:///{path}"
        self._opened: list[Any] = []

    def connect(self, **options: Any) -> tique.Connection:
        options = {"autocommit": True, "replica": self.replica, **options}
        connection = tique.connect(self.url, **options)
        self._opened.append(connection)
        return connection

    def replicate(self, **options: Any) -> tique.Replication:
        options = {"tables": ["t"], **options}
        replication = tique.replicate(self.url, self.replica, **options)
        self._opened.append(replication)
        return replication

    def close(self) -> None:
        for opened in reversed(self._opened):
            getattr(opened, "stop", getattr(opened, "close", None))()


@pytest.fixture
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    source = PostgreSQL.fresh(request)
    with closing(tique.connect(source.url, autocommit=True)) as owner:
        owner.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER)")
        owner.execute("INSERT INTO t VALUES (1, 10), (2, 20)")
        owner.execute("CREATE VIEW w AS SELECT k FROM t")
        owner.execute("CREATE TABLE left_out (k INTEGER PRIMARY KEY)")
    made = Pair(source.url, tmp_path / "replica.duckdb")
    yield made
    made.close()
    source.close()


def routed(connection: tique.Connection) -> int:
    """How many of its queries have run on the replica."""
    return connection._execution.router.routed  # type: ignore[attr-defined]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def ran_there(connection: tique.Connection, query: str = _SUM) -> bool:
    """Whether a query that is run now runs on the replica."""
    before = routed(connection)
    connection.execute(query).fetchall()
    return routed(connection) > before


def reason(connection: tique.Connection, query: str) -> str:
    """What EXPLAIN says of where a query runs."""
    rows = dict(connection.execute(f"EXPLAIN {query}").fetchall())
    return rows["replica"]


# Options


def test_options_are_checked(pair: Pair) -> None:
    for wrong in ({"freshness": -1}, {"freshness": "soon"}, {"on_stale": "never"}):
        with pytest.raises(tique.ProgrammingError) as raised:
            pair.connect(**wrong)
        assert raised.value.sqlstate == "22023"
    with pytest.raises(tique.InterfaceError, match="which is a file"):
        pair.connect(replica=pair.url)
    with pytest.raises(tique.InterfaceError, match="of a replica"):
        tique.connect(pair.url, freshness=1)


def test_settings_are_shown_and_transactional(pair: Pair) -> None:
    connection = pair.connect(freshness=0.5)

    def shown(name: str) -> str:
        ((value,),) = connection.execute(f"SHOW tique.{name}")
        return value

    assert (shown("freshness"), shown("on_stale")) == ("0.5", "source")
    connection.execute("SET tique.freshness = own")
    connection.execute("SET tique.on_stale = 'wait'")
    assert (shown("freshness"), shown("on_stale")) == ("own", "wait")
    connection.execute("SET tique.freshness = DEFAULT")
    assert shown("freshness") == "0.5"
    connection.execute("BEGIN")
    connection.execute("SET LOCAL tique.freshness = off")
    assert shown("freshness") == "off"
    connection.execute("ROLLBACK")
    assert shown("freshness") == "0.5"
    with pytest.raises(tique.ProgrammingError) as raised:
        connection.execute("SET tique.freshness = soon")
    assert raised.value.sqlstate == "22023"


def test_without_a_replica_the_settings_are_refused(pair: Pair) -> None:
    with closing(tique.connect(pair.url, autocommit=True)) as connection:
        with pytest.raises(tique.ProgrammingError) as raised:
            connection.execute("SET tique.freshness = 1")
        assert raised.value.sqlstate == "55000"
        with (
            pytest.raises(tique.ProgrammingError, match="replica"),
            connection.transaction(freshness=1),
        ):
            pass


@pytest.mark.slow
def test_options_of_the_url(pair: Pair) -> None:
    mark = "&" if "?" in pair.url else "?"
    url = f"{pair.url}{mark}replica={pair.replica}&freshness=10&on_stale=wait"
    pair.replicate()
    with closing(tique.connect(url, autocommit=True)) as connection:
        assert ran_there(connection)


# Freshness


def test_nothing_is_routed_without_a_freshness(pair: Pair) -> None:
    pair.replicate()
    connection = pair.connect()
    assert not ran_there(connection)
    assert "no freshness" in reason(connection, _SUM)
    connection.execute("SET tique.freshness = 10")
    until(lambda: ran_there(connection))


@pytest.mark.parametrize("freshness", [10.0, "own"])
def test_a_query_runs_on_the_replica(pair: Pair, freshness: float | str) -> None:
    pair.replicate()
    connection = pair.connect(freshness=freshness)
    cursor = connection.execute(_SUM)
    assert routed(connection) == 1
    assert cursor.fetchall() == [(30,)]
    assert cursor.rowcount == 1
    assert "runs on the replica" in reason(connection, _SUM)


def test_parameters(pair: Pair) -> None:
    pair.replicate()
    connection = pair.connect(freshness=10)
    query = "SELECT k, v FROM t WHERE v > %s ORDER BY k"
    assert connection.execute(query, [15]).fetchall() == [(2, 20)]
    assert connection.execute(query, [5]).fetchall() == [(1, 10), (2, 20)]
    named = "SELECT k FROM t WHERE v > %(least)s OR k = %(key)s ORDER BY k"
    found = connection.execute(named, {"key": 1, "least": 15}).fetchall()
    assert found == [(1,), (2,)]
    assert routed(connection) == 3


def test_nothing_replicates_here(pair: Pair) -> None:
    connection = pair.connect(freshness=10)
    assert not ran_there(connection)
    assert "no replication" in reason(connection, _SUM)
    for way in ("error", "wait"):
        connection.execute(f"SET tique.on_stale = {way}")
        with pytest.raises(tique.OperationalError, match="no replication") as raised:
            connection.execute(_SUM)
        assert raised.value.sqlstate == "55000"


@pytest.mark.slow
def test_the_end_of_the_replication(pair: Pair) -> None:
    replication = pair.replicate()
    connection = pair.connect(freshness=10)
    assert ran_there(connection)
    replication.stop()
    assert not ran_there(connection)
    pair.replicate()
    until(lambda: ran_there(connection))


@pytest.mark.slow
def test_a_replica_of_another_database(pair: Pair, postgresql_cluster: Cluster) -> None:
    pair.replicate()
    with pytest.raises(tique.NotSupportedError, match="PostgreSQL's SQL"):
        tique.connect("duckdb:///:memory:", replica=pair.replica, freshness=1)
    postgresql_cluster.run("createdb", "elsewhere")
    try:
        url = in_database(pair.url, "elsewhere")
        options = {"replica": pair.replica, "freshness": 10, "autocommit": True}
        with closing(tique.connect(url, **options)) as connection:
            connection.execute("CREATE TABLE t (v INTEGER)")
            with pytest.raises(tique.InterfaceError, match="is a replica of"):
                connection.execute(_SUM)
    finally:
        postgresql_cluster.run("dropdb", "elsewhere")


def test_own_commits_are_read(pair: Pair) -> None:
    """A mutation that ignores the floor shows an older value here."""
    pair.replicate(epoch=0.1)
    connection = pair.connect(freshness=10)
    for value in range(40):
        connection.execute("UPDATE t SET v = %s WHERE k = 1", [value])
        assert connection.execute(
            "SELECT v FROM t WHERE k = 1 AND v >= 0"
        ).fetchall() == [(value,)]
        assert connection.execute(_SUM).fetchone() == (value + 20,)


def test_own_commits_are_waited_for(pair: Pair) -> None:
    pair.replicate(epoch=0.05)
    connection = pair.connect(freshness="own", on_stale="wait")
    for value in range(10):
        connection.execute("UPDATE t SET v = %s WHERE k = 1", [value])
        assert connection.execute(_SUM).fetchone() == (value + 20,)
    assert routed(connection) == 10


@pytest.mark.slow
def test_what_was_shown_is_not_taken_back(pair: Pair) -> None:
    """Reads of one connection are monotonic, wherever they run."""
    pair.replicate(epoch=0.05)
    reader, writer = pair.connect(freshness=10), pair.connect()
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            writer.execute("UPDATE t SET v = v + 1 WHERE k = 1")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        last = -1
        for number in range(200):
            query = f"{_SUM} WHERE k = 1"
            if number % 3 == 0:
                # It is no query of the subset: the source answers.
                query = "SELECT v FROM t WHERE k = 1 FOR SHARE"
            ((value,),) = reader.execute(query).fetchall()
            assert value >= last
            last = value
    finally:
        stop.set()
        thread.join()
    assert routed(reader)


def test_seconds(pair: Pair) -> None:
    pair.replicate(epoch=1.0)
    connection = pair.connect(freshness=0.0)
    assert not ran_there(connection)
    assert "behind" in reason(connection, _SUM)
    connection.execute("SET tique.on_stale = error")
    with pytest.raises(tique.OperationalError, match="behind") as raised:
        connection.execute(_SUM)
    assert raised.value.sqlstate == "55000"
    connection.execute("SET tique.on_stale = wait")
    writer = pair.connect()
    writer.execute("UPDATE t SET v = 7 WHERE k = 1")
    # Strong: what was committed before it was called is there.
    assert connection.execute(_SUM).fetchone() == (27,)
    assert routed(connection) == 1


def test_what_was_folded_last_is_read_if_it_is_fresh_enough(pair: Pair) -> None:
    """P1, P2: by the engine's plan, in one snapshot, and never older than what was shown."""
    replication = pair.replicate()
    # Folds happen when they are asked for.
    replication._checkpointer._automatic = False
    reader, writer = pair.connect(freshness=60), pair.connect()

    def write(value: int) -> None:
        writer.execute("UPDATE t SET v = %s WHERE k = 1", [value])
        assert replication.wait(writer.version, _WAIT)

    write(11)
    assert reader.execute(_SUM).fetchone() == (30,)
    assert "as it was folded last" in reason(reader, _SUM)
    assert "_cts" not in reason(reader, _SUM)
    reader.execute("SET tique.freshness = 0")
    reader.execute("SET tique.on_stale = wait")
    assert reader.execute(_SUM).fetchone() == (31,)
    reader.execute("SET tique.freshness = 60")
    assert "folded last" not in reason(reader, _SUM)
    assert reader.execute(_SUM).fetchone() == (31,)
    replication.fold()
    write(12)
    with reader.transaction(read_only=True):
        assert reader.execute(_SUM).fetchone() == (31,)
        replication.fold()
        write(13)
        assert reader.execute("SELECT v FROM t WHERE k = 1").fetchone() == (11,)
        assert reader.execute(_SUM).fetchone() == (31,)
    assert reader.execute(_SUM).fetchone() == (32,)
    assert routed(reader) == 7


def test_storage_with_a_newer_table_is_not_read(pair: Pair) -> None:
    """P1: a table that was copied anew is newer than the others until these are folded."""
    replication = pair.replicate(tables=["t", "left_out"])
    replication._checkpointer._automatic = False
    reader = pair.connect(freshness=60)
    timeline = replication._timeline
    with closing(replication._database.engine.session()) as session:
        session.execute("UPDATE tique.replica SET ready_at = position + 1")
        with pytest.raises(tique.OperationalError, match="not ready"):
            timeline.stored(session)
    before = routed(reader)
    assert reader.execute(_SUM).fetchone() == (30,)
    assert routed(reader) == before
    with closing(tique.connect(pair.url, autocommit=True)) as owner:
        owner.execute("ALTER TABLE t ADD COLUMN w INTEGER")
        assert replication.wait(owner.version, _WAIT)
    # Then the newest state is read, by one that has seen nothing newer.
    assert ran_there(pair.connect(freshness=60))


@pytest.mark.slow
def test_a_wait_ends(pair: Pair) -> None:
    pair.replicate(epoch=30.0)
    connection = pair.connect(freshness=0.0, on_stale="wait", lock_timeout=0.3)
    with pytest.raises(tique.OperationalError, match="too old") as raised:
        connection.execute(_SUM)
    assert raised.value.sqlstate == "55000"
    connection.lock_timeout = None
    connection.execute("SET statement_timeout = '300ms'")
    with pytest.raises(tique.OperationalError) as raised:
        connection.execute(_SUM)
    assert raised.value.sqlstate == "57014"
    connection.execute("SET statement_timeout = 0")
    timer = threading.Timer(0.3, connection.cancel)
    timer.start()
    with pytest.raises(tique.OperationalError) as raised:
        connection.execute(_SUM)
    assert raised.value.sqlstate == "57014"
    timer.join()


# Transactions


def test_a_read_only_transaction_stays_on_the_replica(pair: Pair) -> None:
    pair.replicate()
    connection = pair.connect(autocommit=False)
    writer = pair.connect()
    with connection.transaction(read_only=True, freshness=10):
        assert connection.execute(_SUM).fetchone() == (30,)
        assert connection.in_transaction
        writer.execute("UPDATE t SET v = 0 WHERE k = 1")
        writer.execute("SET tique.freshness = own")
        writer.execute("SET tique.on_stale = wait")
        assert writer.execute(_SUM).fetchone() == (20,)
        assert routed(writer) == 1
        # One snapshot.
        assert connection.execute(_SUM).fetchone() == (30,)
        for refused in ("SELECT k FROM w", "SELECT * FROM left_out", "SAVEPOINT s"):
            with pytest.raises(tique.NotSupportedError, match="replica") as raised:
                connection.execute(refused)
            assert raised.value.sqlstate == "0A000"
        with pytest.raises(tique.Error):
            connection.execute("UPDATE t SET v = 1")
        assert connection.execute(_SUM).fetchone() == (30,)
    assert routed(connection) == 3
    assert not connection.in_transaction
    assert connection.execute(_SUM).fetchone() == (20,)
    assert routed(connection) == 3


def test_a_transaction_that_begins_on_the_source_stays_there(pair: Pair) -> None:
    pair.replicate()
    connection = pair.connect(freshness=10, autocommit=False)
    connection.read_only = True
    assert connection.execute("SELECT k FROM w ORDER BY k").fetchall() == [(1,), (2,)]
    assert connection.execute(_SUM).fetchone() == (30,)
    assert not routed(connection)
    connection.commit()
    connection.execute("SET tique.on_stale = wait")
    assert connection.execute(_SUM).fetchone() == (30,)
    assert routed(connection) == 1
    connection.rollback()


@pytest.mark.slow
def test_a_transaction_that_may_write_is_on_the_source(pair: Pair) -> None:
    pair.replicate()
    connection = pair.connect(freshness=10, autocommit=False)
    assert not ran_there(connection)
    connection.rollback()
    assert "may write" in reason(connection, _SUM)
    connection.execute("UPDATE t SET v = 0")
    assert connection.execute(_SUM).fetchone() == (0,)


# What is not routed


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT k FROM t FOR UPDATE", "plain query"),
        ("SELECT 1", "no table"),
        ("SELECT k FROM w", "view"),
        ("SELECT k FROM left_out", "not in the replica"),
        ("SELECT k FROM t WHERE random() < 2", ""),
        ("SELECT now() FROM t", ""),
    ],
)
def test_refusals(pair: Pair, query: str, why: str) -> None:
    pair.replicate()
    connection = pair.connect(freshness=10)
    connection.execute(query).fetchall()
    assert not routed(connection)
    if "UPDATE" not in query:
        said = reason(connection, query)
        assert said.startswith("does not run on the replica: ")
        assert why in said


def test_temporary_tables_and_settings(pair: Pair) -> None:
    pair.replicate()
    connection = pair.connect(freshness=10)
    connection.execute("CREATE TEMPORARY TABLE own (k INTEGER)")
    assert "temporary" in reason(connection, "SELECT k FROM own")
    connection.execute("SET datestyle = 'ISO, DMY'")
    assert "datestyle" in reason(connection, _SUM)
    connection.execute("RESET datestyle")
    connection.execute("SET application_name = 'report'")
    until(lambda: ran_there(connection))
    connection.execute("SET default_transaction_isolation = serializable")
    assert "SERIALIZABLE" in reason(connection, _SUM)


@pytest.mark.slow
def test_a_table_that_was_altered_is_on_the_source_until_it_is_copied(
    pair: Pair,
) -> None:
    pair.replicate()
    connection = pair.connect(freshness=10)
    assert ran_there(connection)
    connection.execute("ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 5")
    query = "SELECT sum(w) FROM t"
    assert connection.execute(query).fetchone() == (10,)

    def runs() -> bool:
        before = routed(connection)
        assert connection.execute(query).fetchone() == (10,)
        return routed(connection) > before

    until(runs)


@pytest.mark.slow
def test_errors_are_the_sources(pair: Pair) -> None:
    pair.replicate()
    connection = pair.connect(freshness=10)
    with pytest.raises(tique.DataError) as raised:
        connection.execute("SELECT v / (k - 1) FROM t").fetchall()
    assert raised.value.sqlstate == "22012"


# Results

_TYPES = {
    "a": ("SMALLINT", "-32768", "7"),
    "b": ("INTEGER", "2147483647", "-1"),
    "c": ("BIGINT", "9223372036854775807", "0"),
    "d": ("NUMERIC(12,2)", "1234567890.50", "0.00"),
    "e": ("NUMERIC(38,10)", "-1.5", "123.4567890123"),
    "g": ("DOUBLE PRECISION", "0.1", "1e300"),
    "h": ("BOOLEAN", "true", "false"),
    "i": ("TEXT", "'schön 𝄞 '", "''"),
    "j": ("VARCHAR(10)", "'abc'", "'x '"),
    "l": ("DATE", "'2024-02-29'", "'0001-01-01'"),
    "m": ("TIME", "'12:34:56.789'", "'00:00'"),
    "n": ("TIMESTAMP", "'2024-02-29 12:34:56.789'", "'1900-01-01'"),
    "o": ("TIMESTAMPTZ", "'2024-07-01 12:34:56.789+02'", "'1990-01-01 00:00+00'"),
    "p": ("UUID", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "gen_random_uuid()"),
    "q": ("BYTEA", "'\\x00ff'", "''"),
}


def _fill(pair: Pair) -> None:
    with closing(tique.connect(pair.url, autocommit=True)) as owner:
        names = ", ".join(f"{name} {kind}" for name, (kind, *_) in _TYPES.items())
        owner.execute(f"CREATE TABLE x (k INTEGER PRIMARY KEY, {names})")
        for key, place in ((1, 1), (2, 2)):
            values = ", ".join(each[place] for each in _TYPES.values())
            owner.execute(f"INSERT INTO x VALUES ({key}, {values})")
        owner.execute("INSERT INTO x (k) VALUES (3)")


def _same(left: Any, right: Any) -> None:
    assert repr(left) == repr(right)


@pytest.mark.slow
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM x ORDER BY k",
        "SELECT count(*), sum(a), sum(b), sum(c), sum(d), avg(d), max(g) FROM x",
        "SELECT * FROM x WHERE k BETWEEN 1 AND 1",
        "SELECT * FROM x WHERE k < 0",
    ],
)
def test_results_are_the_sources(pair: Pair, query: str, zone: str | None) -> None:
    _fill(pair)
    pair.replicate(tables=["x"])
    source, replica = pair.connect(), pair.connect(freshness=10)
    if zone is not None:
        for connection in (source, replica):
            connection.execute(f"SET TIME ZONE '{zone}'")
    expected, found = source.execute(query), replica.execute(query)
    assert routed(replica) == 1, reason(replica, query)
    assert found.description == expected.description
    _same(found.fetchall(), expected.fetchall())
    found, expected = replica.execute(query), source.execute(query)
    assert found.fetch_arrow_table().equals(expected.fetch_arrow_table())
    found, expected = replica.execute(query), source.execute(query)
    while (row := expected.fetchone()) is not None:
        _same(found.fetchmany(1), [row])
    assert found.fetchone() is None
    found, expected = replica.execute(query), source.execute(query)
    left, right = found.fetch_record_batch(2), expected.fetch_record_batch(2)
    assert left.read_all().equals(right.read_all())
    assert routed(replica) == 4


# Ways in


@pytest.mark.slow
def test_sqlalchemy(pair: Pair) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    pair.replicate()
    scheme, rest = pair.url.split("://", 1)
    engine = sqlalchemy.create_engine(
        f"{scheme}+tique://{rest}",
        connect_args={"replica": pair.replica, "freshness": 10.0, "on_stale": "wait"},
        isolation_level="AUTOCOMMIT",
    )
    try:
        with engine.connect() as connection:
            total = connection.execute(sqlalchemy.text(_SUM)).scalar()
            assert total == 30
            assert routed(connection.connection.dbapi_connection) == 1
    finally:
        engine.dispose()


@pytest.mark.slow
def test_asyncio(pair: Pair) -> None:
    pair.replicate()

    async def run() -> int:
        connection = await tique.AsyncConnection.connect(
            pair.url, replica=pair.replica, on_stale="wait"
        )
        async with connection.transaction(read_only=True, freshness=10):
            cursor = await connection.execute(_SUM)
            assert await cursor.fetchall() == [(30,)]
        count = routed(connection._connection)
        await connection.close()
        return count

    assert asyncio.run(run()) == 1


def test_the_command_line(pair: Pair) -> None:
    pair.replicate()
    mark = "&" if "?" in pair.url else "?"
    url = f"{pair.url}{mark}replica={pair.replica}&freshness=10"
    found = CliRunner().invoke(explain_command, [url, _SUM])
    assert "runs on the replica" in found.output


# The end


@pytest.mark.slow
def test_a_query_there_is_cancelled(pair: Pair) -> None:
    with closing(tique.connect(pair.url, autocommit=True)) as owner:
        owner.execute("INSERT INTO t SELECT g, g FROM generate_series(3, 3000) AS g")
    pair.replicate()
    connection = pair.connect(freshness=10)
    query = "SELECT count(*) FROM t AS a, t AS b, t AS c WHERE a.v + b.v < c.v"
    assert "runs on the replica" in reason(connection, query)
    connection.execute("SET tique.on_stale = wait")
    timer = threading.Timer(0.5, connection.cancel)
    timer.start()
    with pytest.raises(tique.OperationalError) as raised:
        connection.execute(query)
    assert raised.value.sqlstate == "57014"
    timer.join()
    connection.execute("SET statement_timeout = '500ms'")
    with pytest.raises(tique.OperationalError, match="statement timeout") as raised:
        connection.execute(query)
    assert raised.value.sqlstate == "57014"
    connection.execute("SET statement_timeout = 0")
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (3000,)


def test_a_connection_that_is_dropped_leaves_the_replica(pair: Pair) -> None:
    replication = pair.replicate()
    connection = tique.connect(
        pair.url, replica=pair.replica, freshness=10, on_stale="wait", autocommit=True
    )
    assert ran_there(connection)
    replica = connection._execution._replica.database  # type: ignore[attr-defined]
    before = replica.connections
    del connection
    gc.collect()
    until(lambda: replica.connections == before - 1)
    replication.stop()
