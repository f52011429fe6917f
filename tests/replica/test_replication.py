"""A replica shows its source after a whole number of commits, in their order."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import duckdb
import pytest

import tique
from tests.portable import numbers
from tique.replica.source import SourceSnapshot
from tique_backends.duckdb.sessions.session import DuckDBSession

PATIENCE = 30


def caught_up(replication, connection):
    """Wait until the replica has all that a connection has committed."""
    connection.commit()
    wanted = connection.version
    connection.commit()
    status = replication.status
    assert replication.wait(wanted, PATIENCE), (status().state, status().error)
    return wanted


def define(connection, statement):
    """Run DDL, which a snapshot of the replication in this process may be in the way of."""
    connection.commit()
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return connection.execute(statement)
        except tique.OperationalError as error:
            if error.sqlstate != "55006" or time.monotonic() > deadline:
                raise
            connection.rollback()
            time.sleep(0.05)


def rows(connection, query, *bound):
    found = connection.execute(query, *bound).fetchall()
    connection.commit()
    return found


def test_rows_of_before_and_after(shared_engine, source, replicate, reading):
    """P1: the copy and what is committed later are what the source has."""
    replication = replicate()
    schema = shared_engine.schema
    copy = reading()
    query = f"SELECT * FROM {schema}.account ORDER BY id"
    assert rows(copy, query) == [(1, "ada", 10), (2, "bob", 20)]
    source.execute("UPDATE account SET balance = balance + 5 WHERE id = 1")
    source.execute("INSERT INTO account VALUES (3, NULL, NULL)")
    source.execute("DELETE FROM account WHERE id = 2")
    caught_up(replication, source)
    assert rows(copy, query) == [(1, "ada", 15), (3, None, None)]
    point = f"SELECT owner, balance FROM {schema}.account WHERE id = 1"
    assert rows(copy, point) == [("ada", 15)]
    assert replication.status().state == "following"


def test_versions_are_the_sources(source, replicate, reading):
    """P2: a version of the replica is the source's of that number."""
    replication = replicate()
    source.execute("UPDATE account SET balance = 11 WHERE id = 1")
    version = caught_up(replication, source)
    assert reading().version >= version


def test_columns_that_did_not_change(shared_engine, source, replicate, reading):
    """P1: versions that are known in part are filled, whatever the source has folded."""
    columns = ", ".join(f"c{n} INTEGER" for n in range(40))
    source.execute(f"CREATE TABLE wide (id INTEGER PRIMARY KEY, {columns})")
    zeros = ", ".join("0" * 40)
    source.execute(f"INSERT INTO wide VALUES (1, {zeros}), (2, {zeros})")
    source.commit()
    source.checkpoint()
    replication = replicate(epoch=0.001)
    copy = reading()
    query = f"SELECT c1, c2, c3 FROM {shared_engine.schema}.wide WHERE id = %s"
    # A snapshot keeps the replica's folds back, while the source folds.
    old = reading()
    old.execute("BEGIN")
    assert old.execute(query, [1]).fetchall() == [(0, 0, 0)]
    for number in range(1, 4):
        for key in (1, 2):
            source.execute(f"UPDATE wide SET c{number} = {number} WHERE id = {key}")
            source.commit()
        source.checkpoint()
    caught_up(replication, source)
    assert rows(copy, query, [1]) == [(1, 2, 3)]
    assert rows(copy, query, [2]) == [(1, 2, 3)]
    assert old.execute(query, [1]).fetchall() == [(0, 0, 0)]
    old.execute("COMMIT")
    assert replication.fold() >= replication.status().applied
    assert rows(copy, query, [1]) == [(1, 2, 3)]


@pytest.mark.slow
def test_epochs_are_whole(shared_engine, source, replicate, reading):
    """P1: no reader sees a part of a transfer, and none goes back."""
    replication = replicate(epoch=0.002)
    done = threading.Event()

    def transfer():
        with closing(tique.connect(shared_engine.url)) as connection:
            while not done.is_set():
                connection.execute(
                    "UPDATE account SET balance = balance - 1 WHERE id = 1"
                )
                connection.execute(
                    "UPDATE account SET balance = balance + 1 WHERE id = 2"
                )
                connection.commit()

    writers = [threading.Thread(target=transfer)]
    for writer in writers:
        writer.start()
    copy = reading()
    try:
        least, deadline = 10, time.monotonic() + 4
        while time.monotonic() < deadline:
            ((total, first),) = rows(
                copy,
                f"SELECT sum(balance), min(balance) FROM {shared_engine.schema}.account",
            )
            assert total == 30
            assert first <= least
            least = first
    finally:
        done.set()
        for writer in writers:
            writer.join()
    assert least < 10
    caught_up(replication, source)
    query = f"SELECT * FROM {shared_engine.schema}.account ORDER BY id"
    assert rows(copy, query) == rows(source, "SELECT * FROM account ORDER BY id")


@pytest.mark.slow
def test_bulk_commits(shared_engine, source, replicate, reading):
    """P1: rows that never were in the source's index come, too."""
    replication = replicate()
    source.execute(
        f"INSERT INTO account SELECT number + 10, 'x', number FROM {numbers(20_000)}"
    )
    caught_up(replication, source)
    source.execute("DELETE FROM account WHERE balance >= 100")
    caught_up(replication, source)
    query = "SELECT count(*), sum(balance) FROM {}.account"
    expected = rows(source, "SELECT count(*), sum(balance) FROM account")
    assert rows(reading(), query.format(shared_engine.schema)) == expected


def test_a_table_without_a_key(shared_engine, source, replicate, reading):
    """P1: copies of equal rows are as many as in the source."""
    source.execute("CREATE TABLE bag (v INTEGER, note VARCHAR(10))")
    source.execute("INSERT INTO bag VALUES (1, 'a'), (1, 'a'), (2, NULL)")
    source.commit()
    replication = replicate()
    source.execute("INSERT INTO bag VALUES (2, NULL), (3, 'c')")
    source.execute("DELETE FROM bag WHERE v = 1")
    source.execute("INSERT INTO bag VALUES (1, 'a')")
    caught_up(replication, source)
    copy, query = (
        reading(),
        f"SELECT v, note FROM {shared_engine.schema}.bag ORDER BY v",
    )
    expected = [(1, "a"), (2, None), (2, None), (3, "c")]
    assert rows(copy, query) == expected
    replication.fold()
    assert rows(copy, query) == expected


def test_it_goes_on_where_its_last_fold_ended(
    shared_engine, source, replicate, reading
):
    """P5: nothing twice, nothing left out, after a stop and what came meanwhile."""
    with replicate() as replication:
        source.execute("UPDATE account SET balance = 1 WHERE id = 1")
        position = caught_up(replication, source)
    assert replication.status().state == "stopped"
    assert replication.status().durable >= position
    source.execute("UPDATE account SET balance = 2 WHERE id = 2")
    source.execute("INSERT INTO account VALUES (4, 'dan', 4)")
    replication = replicate()
    caught_up(replication, source)
    assert not replication.status().notes
    assert rows(
        reading(), f"SELECT * FROM {shared_engine.schema}.account ORDER BY id"
    ) == [
        (1, "ada", 1),
        (2, "bob", 2),
        (4, "dan", 4),
    ]


def test_an_ordinary_file(shared_engine, source, replicate, target):
    """P4: a program without tique finds the state of the last fold."""
    with replicate() as replication:
        source.execute("UPDATE account SET balance = 7 WHERE id = 1")
        caught_up(replication, source)
    with closing(duckdb.connect(target.removeprefix("duckdb:///"))) as connection:
        found = connection.execute(
            f"SELECT * FROM {shared_engine.schema}.account ORDER BY id"
        ).fetchall()
    assert found == [(1, "ada", 7), (2, "bob", 20)]


@pytest.mark.slow
def test_idle(source, replicate, reading):
    """A replica whose source has no commits runs no engine transaction."""
    replication = replicate(epoch=0.005)
    caught_up(replication, source)
    replication.fold()
    copy = reading()
    time.sleep(1)
    before = copy.info.engine_statements
    time.sleep(2)
    assert copy.info.engine_statements == before
    assert replication.status().lag < 1


def test_definitions_follow(shared_engine, source, replicate, reading):
    """P2: tables that are made, altered, emptied and dropped, between commits."""
    source.execute("CREATE TABLE gone (id INTEGER PRIMARY KEY)")
    source.commit()
    replication = replicate()
    copy, schema = reading(), shared_engine.schema
    define(source, "CREATE TABLE fresh (id INTEGER PRIMARY KEY, v INTEGER)")
    source.execute("INSERT INTO fresh VALUES (1, 1)")
    caught_up(replication, source)
    assert rows(copy, f"SELECT * FROM {schema}.fresh") == [(1, 1)]
    define(source, "ALTER TABLE account ADD COLUMN note VARCHAR(10)")
    source.execute("UPDATE account SET note = 'n' WHERE id = 1")
    source.execute("INSERT INTO fresh VALUES (2, 2)")
    caught_up(replication, source)
    expected = [(1, "ada", 10, "n"), (2, "bob", 20, None)]
    assert rows(copy, f"SELECT * FROM {schema}.account ORDER BY id") == expected
    assert rows(copy, f"SELECT * FROM {schema}.fresh ORDER BY id") == [(1, 1), (2, 2)]
    define(source, "ALTER TABLE account DROP COLUMN owner")
    define(source, "DROP TABLE gone")
    caught_up(replication, source)
    assert rows(copy, f"SELECT * FROM {schema}.account ORDER BY id") == [
        (1, 10, "n"),
        (2, 20, None),
    ]
    with pytest.raises(tique.ProgrammingError):
        copy.execute(f"SELECT * FROM {schema}.gone")
    define(source, "TRUNCATE TABLE fresh")
    source.execute("INSERT INTO fresh VALUES (9, 9)")
    caught_up(replication, source)
    assert rows(copy, f"SELECT * FROM {schema}.fresh") == [(9, 9)]
    assert replication.status().state == "following"


@pytest.mark.slow
def test_definitions_that_changed_while_none_followed(
    shared_engine, source, replicate, reading
):
    """P5: the next replication finds what was made, altered and dropped."""
    replicate().stop()
    source.execute("ALTER TABLE account ADD COLUMN note VARCHAR(10)")
    source.execute("CREATE TABLE fresh (id INTEGER PRIMARY KEY)")
    source.execute("INSERT INTO fresh VALUES (1)")
    replication = replicate()
    caught_up(replication, source)
    copy, schema = reading(), shared_engine.schema
    assert rows(copy, f"SELECT count(note), count(*) FROM {schema}.account") == [(0, 2)]
    assert rows(copy, f"SELECT * FROM {schema}.fresh") == [(1,)]


@pytest.mark.slow
def test_an_open_snapshot_of_a_table_that_is_copied_anew(
    shared_engine, source, replicate, reading
):
    """P1: it is told to run again, and never sees the other state."""
    replication = replicate()
    copy, query = reading(), f"SELECT * FROM {shared_engine.schema}.account"
    copy.execute("BEGIN")
    copy.execute(query).fetchall()
    define(source, "ALTER TABLE account ADD COLUMN note VARCHAR(10)")
    caught_up(replication, source)
    with pytest.raises(tique.SerializationError):
        copy.execute(query).fetchall()
    copy.execute("ROLLBACK")
    assert len(rows(copy, query)[0]) == 4


@pytest.mark.slow
def test_a_table_that_is_copied_anew_before_the_engine_reads_it(
    shared_engine, source, replicate, reading, monkeypatch
):
    """P1, P9: its newer rows are not shown; a statement in autocommit runs again."""
    replication = replicate()
    copy, query = reading(), f"SELECT id FROM {shared_engine.schema}.account"
    # Its own session is asked, not that of an uncommitted fold.
    copy._database.uncommitted._is_enabled = False
    execute, left = DuckDBSession.execute, []

    def late(session, sql, *arguments, **options):
        if session is copy._execution.session and left and "account" in sql:
            insert = "INSERT INTO account (id, owner, balance) VALUES (9, 'eve', 0)"
            source.execute(insert)
            define(source, left.pop())
            caught_up(replication, source)
        return execute(session, sql, *arguments, **options)

    monkeypatch.setattr(DuckDBSession, "execute", late)
    for change in ("ADD COLUMN note VARCHAR(10)", "DROP COLUMN note"):
        source.execute("UPDATE account SET balance = balance + 1")
        caught_up(replication, source)
        left.append(f"ALTER TABLE account {change}")
        copy.execute("BEGIN")
        with pytest.raises(tique.SerializationError, match="meanwhile"):
            copy.execute(query)
        copy.execute("ROLLBACK")
        assert not left
        source.execute("DELETE FROM account WHERE id > 2")
    source.execute("UPDATE account SET balance = balance + 1")
    caught_up(replication, source)
    left.append("ALTER TABLE account ADD COLUMN other VARCHAR(10)")
    assert sorted(rows(copy, query)) == [(1,), (2,), (9,)]
    assert not left


@pytest.mark.slow
def test_a_table_that_is_dropped_before_it_is_copied(
    source, replicate, monkeypatch, shared_engine, reading
):
    """The copy begins anew."""
    source.execute("CREATE TABLE passing (id INTEGER PRIMARY KEY)")
    source.commit()
    read, dropped = SourceSnapshot.rows, []

    def late(snapshot, table):
        if table.name == "passing":
            dropped.append(table)
            define(source, "DROP TABLE passing")
        return read(snapshot, table)

    monkeypatch.setattr(SourceSnapshot, "rows", late)
    replicate()
    assert len(dropped) == 1
    query = f"SELECT count(*) FROM {shared_engine.schema}.account"
    assert rows(reading(), query) == [(2,)]


@pytest.mark.slow
def test_chosen_tables_and_schemas(shared_engine, source, replicate, reading):
    """Tables that are not chosen are not there; schemas are called otherwise."""
    source.execute("CREATE TABLE other (id INTEGER PRIMARY KEY)")
    source.commit()
    schemas = {shared_engine.schema: "main"}
    replicate(tables=["account"], schemas=schemas).stop()
    copy = reading()
    assert rows(copy, "SELECT count(*) FROM account") == [(2,)]
    with pytest.raises(tique.ProgrammingError):
        copy.execute("SELECT * FROM other")
    copy.close()
    replicate(schemas=schemas)
    assert rows(reading(), "SELECT count(*) FROM other") == [(0,)]


def test_the_past_and_the_feed(shared_engine, source, replicate, reading):
    """P1: time travel and the feed know commits that are not folded yet, too."""
    replication = replicate(history="1 day")
    first = caught_up(replication, source)
    copy, schema = reading(), shared_engine.schema
    for balance in (100, 200):
        source.execute("UPDATE account SET balance = %s WHERE id = 1", [balance])
        last = caught_up(replication, source)
        with copy.changes("account", schema=schema, since=first) as feed:
            found = [(c.old[2], c.new[2]) for c in feed]
        assert found == [(10, 100), (100, 200)][: balance // 100]
    replication.fold()
    with copy.changes("account", schema=schema, since=first) as feed:
        changes = list(feed)
    assert [(c.old[2], c.new[2]) for c in changes] == [(10, 100), (100, 200)]
    assert changes[-1].version == last
    query = (
        f"SELECT balance FROM {schema}.account FOR SYSTEM_TIME AS OF %s WHERE id = 1"
    )
    assert rows(copy, query, [first]) == [(10,)]
    assert rows(copy, query, [changes[-1].time]) == [(200,)]


def test_progress(source, replicate):
    """The copy says how far it is."""
    told = []
    replicate(progress=lambda *figures: told.append(figures))
    name, there, total = told[-1]
    assert name.endswith("account")
    assert (there, total) == (2, 2)


@pytest.mark.parametrize("step", ["wait", "asked"])
def test_waiting(source, replicate, reading, step):
    """A reader of the replica's state waits for a commit, or for a moment."""
    replicate()
    state = reading()._database.replica
    source.execute("UPDATE account SET balance = 3 WHERE id = 1")
    source.commit()
    if step == "wait":
        assert state.wait(source.version, None, PATIENCE)
        assert not state.wait(source.version + 1000, None, 0.1)
    else:
        assert state.wait(None, time.monotonic(), PATIENCE)
        assert not state.wait(None, time.monotonic() + 100, 0.1)
    assert state.is_followed
    assert state.status().lag < PATIENCE
