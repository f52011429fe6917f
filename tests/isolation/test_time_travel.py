"""P1: what a reader saw at a version, or at a time, is what everyone reads AS OF it later."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

import tique
from tests.effort import effort
from tique_backends.names import history_name

OPTIONS = {"history": "1 hour", "checkpoint": "manual"}
LATER = "'2200-01-01 00:00:00+00'"
WAYS = (
    "SELECT id, v FROM t AT (VERSION => {version}) ORDER BY id",
    "SELECT id, v FROM t AS x AT (VERSION => {version}) ORDER BY id",
    "SELECT id, v FROM t AT (TIMESTAMP => '{time}') ORDER BY id",
    "SELECT id, v FROM t FOR SYSTEM_TIME AS OF {version} ORDER BY id",
    "SELECT id, v FROM t FOR SYSTEM_TIME AS OF TIMESTAMP '{time}' ORDER BY id",
)


@pytest.fixture
def writer(engine):
    return opened(engine)


def opened(engine, **options):
    made = engine.connect(autocommit=True, **OPTIONS, **options)
    made.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    made.execute("CREATE TABLE u (v INTEGER)")
    made.execute("CREATE VIEW w AS SELECT id, v * 2 AS d FROM t WHERE v > 0")
    return made


def ask(connection, query, parameters=None):
    return connection.execute(query, parameters).fetchall()


def refused(connection, query, parameters=None):
    with pytest.raises(tique.Error) as caught:
        connection.execute(query, parameters)
    return caught.value


def backdate(connection, **times):
    """Give commits other times: of those in ``v1=…`` that of version 1."""
    connection.checkpoint()
    with closing(connection._database.engine.session()) as session:
        for name, at in times.items():
            stamp = int(at.timestamp() * 10**6)
            for relation in ("log", "outcomes"):
                session.execute(
                    f"UPDATE tique.{relation} SET committed_at = {stamp} "
                    f"WHERE cts = {name[1:]}"
                )


class Recorder:
    """A reader that notes what it sees, with the version and the time."""

    def __init__(self, connection):
        self.connection = connection
        self.states = []

    def note(self):
        # (The clock of MonetDB's log has milliseconds.)
        time.sleep(0.002)
        with self.connection.transaction():
            version = self.connection.version
            rows = ask(self.connection, "SELECT id, v FROM t ORDER BY id")
            copies = ask(self.connection, "SELECT v FROM u ORDER BY v")
        self.states.append((version, datetime.now(UTC), rows, copies))
        time.sleep(0.002)


@pytest.mark.slow
@pytest.mark.every_engine
@pytest.mark.parametrize("seed", range(effort(1, 10)))
def test_it_is_what_a_reader_saw(engine, writer, seed):
    """At versions and times, in all forms of the clause, beside folds."""
    chance = random.Random(seed)
    recorder = Recorder(engine.connect(autocommit=True, **OPTIONS))
    writer.execute("INSERT INTO u VALUES (7)")
    for _ in range(20):
        number = chance.randint(0, 5)
        match chance.randint(0, 3):
            case 0:
                writer.execute("DELETE FROM t WHERE id = %s", (number,))
            case 1:
                writer.execute("UPDATE t SET v = v + 1 WHERE id >= %s", (number,))
            case 2:
                sql = "INSERT INTO t SELECT %s, 1 WHERE %s NOT IN (SELECT id FROM t)"
                writer.execute(sql, (number, number))
                writer.execute("INSERT INTO u VALUES (%s), (%s)", (number, number))
            case 3:
                writer.execute("DELETE FROM u WHERE v = %s", (number,))
        recorder.note()
        if chance.random() < 0.3:
            writer.checkpoint()
    for _ in range(2):
        check(writer, recorder.states, chance)
        writer.checkpoint()
        writer.execute("UPDATE t SET v = v - 100")


def check(connection, states, chance):
    for version, at, rows, copies in states:
        way = chance.choice(WAYS).format(version=version, time=at)
        assert ask(connection, way) == rows, way
        for point in (version, at):
            parameters = (point, 3)
            assert ask(
                connection,
                "SELECT v FROM t FOR SYSTEM_TIME AS OF %s WHERE id = %s",
                parameters,
            ) == [(v,) for id_, v in rows if id_ == 3]
            with connection.transaction(as_of=point):
                assert connection.version <= version
                assert ask(connection, "SELECT id, v FROM t ORDER BY id") == rows
                assert ask(connection, "SELECT v FROM u ORDER BY v") == copies
                assert ask(connection, "SELECT v FROM t WHERE id = 3") == [
                    (v,) for id_, v in rows if id_ == 3
                ]
                assert ask(connection, "SELECT count(*), sum(v) FROM u") == [
                    (len(copies), sum(v for (v,) in copies) if copies else None)
                ]
                assert ask(connection, "SELECT sum(d) FROM w") == [
                    (sum(2 * v for _, v in rows if v > 0) or None,)
                ]


def three_versions(connection):
    """Rows of three versions; the first two are folded."""
    connection.execute("INSERT INTO t VALUES (1, 10), (2, 20)")
    found = [connection.version]
    connection.execute("UPDATE t SET v = 11 WHERE id = 1")
    connection.execute("DELETE FROM t WHERE id = 2")
    found.append(connection.version)
    connection.checkpoint()
    connection.execute("INSERT INTO t VALUES (3, 30)")
    connection.execute("UPDATE t SET v = 12 WHERE id = 1")
    found.append(connection.version)
    return found


def test_past_and_present_in_one_statement(engine, writer):
    first, second, third = three_versions(writer)
    assert ask(
        writer,
        "SELECT a.id, a.v, b.v FROM t AT (VERSION => %s) AS a "
        "LEFT JOIN t AS b ON a.id = b.id ORDER BY 1",
        (first,),
    ) == [(1, 10, 12), (2, 20, None)]
    assert ask(
        writer,
        f"SELECT a.v, b.v, c.v FROM t AT (VERSION => {first}) AS a, "
        f"t AT (VERSION => {second}) AS b, t AT (VERSION => {third}) AS c "
        "WHERE a.id = b.id AND b.id = c.id",
    ) == [(10, 11, 12)]
    assert ask(
        writer,
        f"WITH gone AS (SELECT * FROM t AT (VERSION => {first}) WHERE id NOT IN "
        "(SELECT id FROM t)) SELECT id, v FROM gone",
    ) == [(2, 20)]
    assert ask(writer, f"SELECT d FROM w AT (VERSION => {first}) ORDER BY 1") == [
        (20,),
        (40,),
    ]
    assert ask(writer, "SELECT d FROM w ORDER BY 1") == [(24,), (60,)]
    assert ask(
        writer,
        f"SELECT (SELECT max(v) FROM t AT (VERSION => {first})), max(v) FROM t",
    ) == [(20, 30)]


def test_changes_read_the_past(engine, writer):
    first, second, _ = three_versions(writer)
    changed = writer.execute(
        "INSERT INTO t SELECT * FROM t AT (VERSION => %s) WHERE id NOT IN "
        "(SELECT id FROM t)",
        (first,),
    )
    assert changed.rowcount == 1
    writer.execute(
        f"UPDATE t SET v = (SELECT o.v FROM t AT (VERSION => {second}) AS o "
        "WHERE o.id = t.id) WHERE id = 1"
    )
    with writer.transaction():
        writer.execute("UPDATE t SET v = 99 WHERE id = 2")
        assert ask(writer, f"SELECT v FROM t AT (VERSION => {first}) WHERE id = 2") == [
            (20,)
        ]
        assert ask(writer, "SELECT v FROM t WHERE id = 2") == [(99,)]
        writer.execute(
            f"DELETE FROM t WHERE id NOT IN (SELECT id FROM t AT (VERSION => {first}))"
        )
    assert ask(writer, "SELECT * FROM t ORDER BY id") == [(1, 11), (2, 99)]


def test_clauses_of_changes_read_the_past(engine, writer):
    """P8: values, ON CONFLICT and RETURNING, each of which is a query of its own."""
    first, second, _ = three_versions(writer)
    highest = "(SELECT max(v) FROM t AT (VERSION => {}))"
    writer.execute(f"INSERT INTO t VALUES (4, {highest.format('%s')})", (first,))
    writer.execute(
        f"INSERT INTO t VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET v = "
        f"{highest.format(second)}"
    )
    assert ask(writer, "SELECT id, v FROM t ORDER BY id") == [(1, 11), (3, 30), (4, 20)]
    returned = writer.execute(
        f"DELETE FROM t WHERE id = 4 RETURNING v, {highest.format(second)} AS h"
    ).fetchall()
    assert returned == [(20, 11)]


@pytest.mark.written_for(["duckdb", "postgresql"], reason="MonetDB has none")
def test_changes_in_with_read_the_past(engine, writer):
    first, _, _ = three_versions(writer)
    rows = ask(
        writer,
        "WITH back AS (INSERT INTO t SELECT * FROM t AT (VERSION => %s) WHERE id = 2 "
        "RETURNING id, v) SELECT id, v, %s FROM back JOIN "
        "(SELECT id AS i FROM t AT (VERSION => %s)) AS o ON i = id",
        (first, 5, first),
    )
    assert rows == [(2, 20, 5)]
    assert ask(writer, "SELECT v FROM t WHERE id = 2") == [(20,)]


LEVELS = pytest.mark.parametrize("level", ["SNAPSHOT", "READ COMMITTED"])


@LEVELS
def test_a_transaction_writes_what_was(engine, writer, level):
    """P1, P8: rows of its own before, beside and after; rows of others meanwhile."""
    first, _, _ = three_versions(writer)
    other = engine.connect(isolation_level=level, **OPTIONS)
    other.execute("INSERT INTO t VALUES (7, 70)")
    writer.execute("INSERT INTO t VALUES (8, 80)")
    writer.checkpoint()
    back = f"SELECT o.v FROM t AT (VERSION => {first}) AS o WHERE o.id = t.id"
    changed = other.execute(f"UPDATE t SET v = ({back}) WHERE id IN (1, 7)")
    assert changed.rowcount == 2
    other.execute("SAVEPOINT s")
    other.execute(f"INSERT INTO t SELECT * FROM t AT (VERSION => {first}) WHERE id = 2")
    other.execute("ROLLBACK TO s")
    kept = f"SELECT id FROM t AT (VERSION => {first})"
    other.execute(f"DELETE FROM t WHERE id = 3 AND id NOT IN ({kept})")
    own = [(1, 10), (7, None)]
    seen = ask(other, "SELECT id, v FROM t ORDER BY id")
    assert seen == (own if level == "SNAPSHOT" else [*own, (8, 80)])
    other.commit()
    assert ask(writer, "SELECT id, v FROM t ORDER BY id") == [*own, (8, 80)]


@LEVELS
def test_a_transaction_of_now_goes_on(engine, writer, level):
    """P1: a statement of the past in it changes nothing of what the others see."""
    first, _, _ = three_versions(writer)
    reader = engine.connect(isolation_level=level, **OPTIONS)
    before = ask(reader, "SELECT * FROM t ORDER BY id")
    past = f"SELECT v FROM t AT (VERSION => {first}) ORDER BY id"
    assert ask(reader, past) == [(10,), (20,)]
    writer.execute("UPDATE t SET v = 0")
    writer.checkpoint()
    assert ask(reader, past) == [(10,), (20,)]
    after = ask(reader, "SELECT * FROM t ORDER BY id")
    assert after == (before if level == "SNAPSHOT" else [(1, 0), (3, 0)])


def test_a_transaction_of_the_past_only_reads(engine, writer):
    first, second, _ = three_versions(writer)
    for begin in (
        f"BEGIN READ ONLY AS OF {first}",
        f"BEGIN TRANSACTION AS OF VERSION {first}",
        f"START TRANSACTION READ ONLY AS OF {first}",
    ):
        writer.execute(begin)
        assert writer.version == first
        assert ask(writer, "SELECT v FROM t ORDER BY id") == [(10,), (20,)]
        # A table's own point comes before the transaction's.
        assert ask(writer, f"SELECT v FROM t AT (VERSION => {second})") == [(11,)]
        assert refused(writer, "UPDATE t SET v = 0").sqlstate == "25006"
        writer.rollback()
    writer.execute("BEGIN")
    writer.execute("SET TRANSACTION READ ONLY AS OF %s", (second,))
    assert ask(writer, "SELECT v FROM t") == [(11,)]
    writer.commit()
    with writer.transaction(as_of=first):
        assert refused(writer, "SELECT * FROM t FOR UPDATE").sqlstate == "25006"
    with writer.transaction(as_of=first):
        assert ask(writer, "SELECT v FROM t ORDER BY id") == [(10,), (20,)]
        assert refused(writer, "CREATE TABLE x (n INTEGER)").sqlstate == "25006"
    assert ask(writer, "SELECT id, v FROM t ORDER BY id") == [(1, 12), (3, 30)]
    with (
        pytest.raises(tique.ProgrammingError) as caught,
        writer.transaction(),
        writer.transaction(as_of=first),
    ):
        pass
    assert caught.value.sqlstate == "25001"


def test_a_connection_of_the_past(engine, writer):
    """All of its transactions; with autocommit each statement."""
    first, second, _ = three_versions(writer)
    for autocommit in (False, True):
        reader = engine.connect(autocommit=autocommit, **OPTIONS)
        reader.as_of = first
        assert reader.as_of == first
        assert ask(reader, "SELECT v FROM t ORDER BY id") == [(10,), (20,)]
        for change in ("UPDATE t SET v = 1 WHERE id = 1", "DELETE FROM t"):
            assert refused(reader, change).sqlstate == "25006"
        reader.rollback()
        with reader.transaction(as_of=second):
            assert ask(reader, "SELECT v FROM t ORDER BY id") == [(11,)]
        with reader.transaction():
            assert ask(reader, "SELECT v FROM t ORDER BY id") == [(10,), (20,)]
            with pytest.raises(tique.ProgrammingError):
                reader.as_of = None
        reader.execute("BEGIN")
        assert refused(reader, "SET TRANSACTION READ WRITE").sqlstate == "25001"
        reader.rollback()
        reader.as_of = None
        assert ask(reader, "SELECT v FROM t ORDER BY id") == [(12,), (30,)]
    with pytest.raises(tique.ProgrammingError):
        reader.as_of = "yesterday"


def test_a_transaction_of_the_past_stays(engine, writer):
    first, _, _ = three_versions(writer)
    reader = engine.connect(**OPTIONS)
    with reader.transaction(as_of=first):
        for number in range(5):
            assert ask(reader, "SELECT v FROM t ORDER BY id") == [(10,), (20,)]
            writer.execute("UPDATE t SET v = v + 1")
            writer.execute("INSERT INTO t VALUES (%s, 0)", (number + 10,))
            writer.checkpoint()
            # λ is not held up by it.
            assert all(v.is_empty for v in writer._database.catalog.all_versions())


def test_versions_are_told(engine, writer):
    assert writer.version == writer.version
    before = writer.version
    writer.execute("INSERT INTO t VALUES (1, 1)")
    after = writer.version
    assert after > before
    reader = engine.connect(**OPTIONS)
    with reader.transaction():
        assert reader.version == after
        writer.execute("UPDATE t SET v = 2")
        assert reader.version == after
        assert writer.version > after
    assert reader.version == writer.version


def test_points_that_are_none(engine, writer):
    three_versions(writer)
    newest = writer.version
    query = "SELECT * FROM t FOR SYSTEM_TIME AS OF %s"
    for point in (newest + 1, -1, LATER.strip("'"), "yesterday", 1.5, None, True):
        error = refused(writer, query, (point,))
        assert isinstance(error, tique.ProgrammingError), point
        assert error.sqlstate == "22023", point
    naive = datetime.now(UTC).replace(tzinfo=None)
    assert "time zone" in str(refused(writer, query, (naive,)))
    assert f"the newest is {newest}" in str(refused(writer, query, (newest + 1,)))
    early = refused(writer, query, (datetime(2020, 1, 1, tzinfo=UTC),))
    assert isinstance(early, tique.OperationalError)
    assert early.sqlstate == "72000"
    assert refused(writer, f"BEGIN AS OF {LATER}").sqlstate == "22023"
    assert not writer.in_transaction
    with (
        pytest.raises(tique.ProgrammingError),
        writer.transaction(as_of=naive),
    ):
        pass
    assert not writer.in_transaction
    # The connection goes on.
    assert len(ask(writer, "SELECT * FROM t")) == 2


def test_a_version_that_was_shown_is_no_later_commits(tmp_path):
    """P2, P4: not even if it was an aborted one's, as the last before a restart."""
    url = f"duckdb:///{tmp_path / 'shop.duckdb'}"
    with closing(tique.connect(url, autocommit=True, **OPTIONS)) as before:
        before.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
        before.execute("INSERT INTO t VALUES (1, 10)")
        sequencer = before._database.sequencer
        sequencer.finish(sequencer.next_cts())
        shown = before.version
    with closing(tique.connect(url, autocommit=True, **OPTIONS)) as after:
        after.execute("UPDATE t SET v = 11")
        assert after.version > shown
        then = after.execute(f"SELECT v FROM t AT (VERSION => {shown})")
        assert then.fetchall() == [(10,)]


def test_a_table_without_history(engine):
    with engine.connect(autocommit=True, checkpoint="manual") as connection:
        connection.execute("CREATE TABLE plain (id INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO plain VALUES (1)")
        error = refused(connection, "SELECT * FROM plain AT (VERSION => 1)")
        assert isinstance(error, tique.ProgrammingError)
        assert error.sqlstate == "55000"
        assert "tique history set" in str(error)
        with connection.transaction(as_of=connection.version):
            assert refused(connection, "SELECT * FROM plain").sqlstate == "55000"


def test_a_version_before_the_history(engine, writer):
    three_versions(writer)
    before = writer.version
    writer.execute("CREATE TABLE late (id INTEGER PRIMARY KEY)")
    writer.execute("INSERT INTO late VALUES (1)")
    writer.execute("ALTER TABLE t ADD COLUMN w INTEGER")
    writer.execute("UPDATE t SET w = 1")
    error = refused(writer, f"SELECT * FROM t AT (VERSION => {before - 1})")
    assert (type(error), error.sqlstate) == (tique.OperationalError, "72000")
    assert "begins with version" in str(error)


def test_temporary_tables_have_no_past(engine, writer):
    first, _, _ = three_versions(writer)
    with writer.transaction():
        writer.execute("CREATE TEMPORARY TABLE mine (n INTEGER)")
        writer.execute("INSERT INTO mine VALUES (1)")
        refusal = refused(writer, f"SELECT * FROM mine AT (VERSION => {first})")
    assert isinstance(refusal, tique.NotSupportedError)
    assert "it has no past" in str(refusal)


def test_not_after_ddl(engine):
    writer = opened(engine, transactional_ddl=True)
    first, _, _ = three_versions(writer)
    writer.execute("BEGIN")
    writer.execute("CREATE TABLE x (n INTEGER)")
    error = refused(writer, f"SELECT * FROM t AT (VERSION => {first})")
    assert isinstance(error, tique.NotSupportedError)
    writer.rollback()


HOUR = timedelta(hours=1)


def hours_ago(number, **more):
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    return now - number * HOUR + timedelta(**more)


def test_between_the_points(engine):
    """Beyond the first term the states at full hours, or at days, are there."""
    options = OPTIONS | {"history": "2 hours; hourly for 10 hours"}
    writer = engine.connect(autocommit=True, **options)
    writer.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    versions = []
    for number in range(6):
        writer.execute("DELETE FROM t")
        writer.execute("INSERT INTO t VALUES (1, %s)", (number,))
        versions.append(writer.version)
    times = [
        hours_ago(20, minutes=5),
        hours_ago(6, minutes=10),
        hours_ago(6, minutes=50),
        hours_ago(4, minutes=10),
        hours_ago(1, minutes=1),
        hours_ago(0, seconds=1),
    ]
    stamped = dict(zip(versions, times, strict=True))
    first = versions[0]
    backdate(
        writer,
        **{
            f"v{version}": next(
                stamped[other] for other in versions if other >= version
            )
            for version in range(1, versions[-1] + 1)
        },
    )
    query = "SELECT v FROM t FOR SYSTEM_TIME AS OF %s"
    kept = {
        hours_ago(6): 0,
        hours_ago(5): 2,
        hours_ago(4): 2,
        # From one full hour to the next nothing was committed.
        hours_ago(5, minutes=20): 2,
        hours_ago(3, minutes=20): 3,
        hours_ago(3): 3,
        hours_ago(1, minutes=30): 4,
        versions[2]: 2,
        versions[3]: 3,
        versions[4]: 4,
        versions[5]: 5,
        first: 0,
    }
    for point, value in kept.items():
        assert ask(writer, query, (point,)) == [(value,)], point
    for point, near in {
        hours_ago(6, minutes=20): f"(version {versions[2]})",
        hours_ago(4, minutes=20): f"(version {versions[3]})",
        hours_ago(11): f"(version {first})",
        versions[1]: f"version {first} and version {versions[2]}",
    }.items():
        error = refused(writer, query, (point,))
        assert (type(error), error.sqlstate) == (tique.OperationalError, "72000")
        assert near in str(error), point
    with writer.transaction(as_of=versions[1]):
        assert refused(writer, "SELECT * FROM t").sqlstate == "72000"


@pytest.mark.slow
def test_a_clock_that_was_put_back(engine, writer):
    """A time stands for the last commit, in their order, that is not later by the clock."""
    first, second, third = three_versions(writer)
    ago = datetime.now(UTC) - timedelta(minutes=30)
    times = {f"v{version}": ago for version in range(1, third + 1)}
    times[f"v{second}"] = ago + timedelta(minutes=10)
    backdate(writer, **times)
    assert first < second < third
    query = "SELECT v FROM t FOR SYSTEM_TIME AS OF %s ORDER BY id"
    assert ask(writer, query, (ago,)) == [(12,), (30,)]
    assert ask(writer, query, (ago + timedelta(minutes=20),)) == [(12,), (30,)]


def test_a_named_cursor_reads_in_the_snapshot(engine, writer, monkeypatch):
    """P1: in the engine transaction that keeps it, whatever is folded before the query."""
    first, _, _ = three_versions(writer)
    reader = engine.connect(**OPTIONS)
    asked = []
    scan = type(reader._database.engine.forms).scan

    def scan_beside_a_fold(*arguments, **options):
        asked.append(options)
        with closing(writer._database.engine.session()) as session:
            table = writer._database.catalog.find(None, "t")
            session.execute(f"DELETE FROM {history_name(table)}")
        return scan(*arguments, **options)

    forms = type(reader._database.engine.forms)
    monkeypatch.setattr(forms, "scan", scan_beside_a_fold)
    cursor = reader.cursor("named")
    cursor.execute(f"SELECT v FROM t AT (VERSION => {first}) ORDER BY id")
    assert cursor.fetchall() == [(10,), (20,)]
    assert asked


@pytest.mark.every_engine
def test_no_session_is_opened_for_a_statement(engine, writer, monkeypatch):
    """Also if there are versions that memory alone has: a new session takes long."""
    versions = three_versions(writer)

    def refuse():
        raise AssertionError

    monkeypatch.setattr(writer._database.engine, "session", refuse)
    for version in versions:
        query = f"SELECT count(*) FROM t AT (VERSION => {version}) WHERE id = 1"
        assert ask(writer, query) == [(1,)]


def test_explain_names_the_history(engine, writer):
    first, _, _ = three_versions(writer)
    shown = dict(ask(writer, f"EXPLAIN SELECT * FROM t AT (VERSION => {first})"))
    assert shown[f"form of {engine.schema}.t"].startswith("history: as of version")
    with writer.transaction(as_of=first):
        shown = dict(ask(writer, "EXPLAIN SELECT * FROM t"))
    assert shown[f"form of {engine.schema}.t"].startswith("history: as of version")


def test_asyncio(engine, writer):
    first, _, third = three_versions(writer)

    async def read():
        connection = await tique.AsyncConnection.connect(
            engine.url, autocommit=True, **OPTIONS
        )
        async with connection:
            assert await connection.version() == third
            async with connection.transaction(as_of=first):
                cursor = await connection.execute("SELECT v FROM t ORDER BY id")
                return await cursor.fetchall()

    assert asyncio.run(read()) == [(10,), (20,)]
