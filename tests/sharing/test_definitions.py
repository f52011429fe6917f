"""Schema changes while other processes use the database (P6, P9)."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import tique
from tests.sharing.playing import (
    expect_nothing_unfinished,
    sequencer_of,
    stop,
    stopping_before_commit,
    waiting,
)
from tique.query.define.schema_changes import SchemaChanges
from tique.store.catalog import ManagedCatalog
from tique.timeline import shared as shared_timeline
from tique_backends.errors import EngineError, ErrorKind


def test_everybody_knows_a_new_table_at_once(pair):
    """P2, P9."""
    first, second = pair
    with pytest.raises(tique.ProgrammingError):
        second.run("SELECT * FROM u")
    second.connection.rollback()
    first.commit("CREATE TABLE u (id INTEGER PRIMARY KEY, v INTEGER UNIQUE)")
    second.commit("INSERT INTO u VALUES (1, 7)")
    assert first.rows("SELECT * FROM u") == [(1, 7)]
    with pytest.raises(tique.IntegrityError):
        first.commit("INSERT INTO u VALUES (2, 7)")


def test_rows_of_a_new_table_are_followed(pair):
    """P1: though the DDL and they are followed in one step."""
    first, second = pair
    first.commit("CREATE TABLE u (id INTEGER PRIMARY KEY, v INTEGER)")
    first.commit("INSERT INTO u VALUES (1, 7)")
    first.commit("UPDATE u SET v = v + 1")
    assert second.rows("SELECT v FROM u WHERE id = 1") == [(8,)]
    assert second.rows("SELECT * FROM u") == [(1, 8)]


def test_what_was_planned_is_planned_anew(pair):
    """P9: a table of the same name with other columns."""
    first, second = pair
    second.connection.autocommit = True
    query, insert = "SELECT * FROM t WHERE id = 1", "INSERT INTO t VALUES (%s, %s, %s)"
    assert second.run(query).fetchall() == [(1, 0, "a")]
    second.run(insert, (5, 5, "e"))
    first.commit("DROP TABLE t")
    first.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
    first.commit("INSERT INTO t VALUES (1, 'new')")
    assert second.run(query).fetchall() == [(1, "new")]
    with pytest.raises(tique.ProgrammingError):
        second.run(insert, (5, 5, "e"))
    assert not second.connection.in_transaction
    first.commit("DROP TABLE t")
    with pytest.raises(tique.ProgrammingError):
        second.run(query)


def test_dropped_beside_a_transaction(pair):
    """P9: its writes go nowhere, not to a new table of the same name either."""
    first, second = pair
    second.run("UPDATE t SET v = 99 WHERE id = 1")
    first.commit("DROP TABLE t")
    first.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, note TEXT)")
    first.commit("INSERT INTO t VALUES (1, 1, 'new')")
    # The other process may have followed when there was no table of the name.
    with pytest.raises(
        (tique.SerializationError, tique.ProgrammingError),
        match=r"(changed|dropped) meanwhile",
    ):
        second.connection.commit()
    for one in pair:
        assert one.rows("SELECT * FROM t") == [(1, 1, "new")]
    expect_nothing_unfinished(first)


def test_rows_that_come_with_a_table(pair, process):
    """P1: a snapshot of another process that is older does not see them."""
    first, second = pair
    assert second.run("SELECT v FROM t WHERE id = 1").fetchall() == [(0,)]
    first.commit("UPDATE t SET v = 1")
    first.commit("CREATE TABLE c AS SELECT v FROM t")
    second.database.timeline.catch_up()
    with pytest.raises(tique.SerializationError, match="after this transaction began"):
        second.run("SELECT * FROM c")
    second.connection.rollback()
    for one in (*pair, process()):
        assert one.rows("SELECT * FROM c") == [(1,), (1,)]
    second.commit("INSERT INTO c VALUES (2)")
    assert first.rows("SELECT count(*) FROM c") == [(3,)]


def test_rows_that_came_with_a_table_that_is_altered(pair):
    """P1: an older snapshot of the process that alters it does not see them."""
    first, second = pair
    assert second.run("SELECT v FROM t WHERE id = 1").fetchall() == [(0,)]
    first.commit("UPDATE t SET v = 1")
    first.commit("CREATE TABLE c AS SELECT v FROM t")
    for one in (second.another(), first.another()):
        one.execute("ALTER TABLE c RENAME v TO w")
        one.execute("ALTER TABLE c RENAME w TO v")
        one.checkpoint()
        one.close()
        second.database.timeline.catch_up()
        with pytest.raises(
            tique.SerializationError, match="after this transaction began"
        ):
            second.run("SELECT * FROM c")
    second.connection.rollback()
    for process in pair:
        assert process.rows("SELECT * FROM c") == [(1,), (1,)]


@pytest.mark.parametrize("meanwhile", ["DROP TABLE t", "ALTER TABLE t RENAME v TO w"])
@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE t",
        "CREATE INDEX i ON t (note)",
        "ALTER TABLE t ADD COLUMN x INTEGER",
    ],
)
def test_ddl_that_was_planned_before_anothers(pair, monkeypatch, meanwhile, text):
    """P9: it is told to run again, and changes nothing."""
    first, second = pair
    alone = SchemaChanges.alone

    def after_another(changes, *settled):
        monkeypatch.setattr(SchemaChanges, "alone", alone)
        first.commit(meanwhile)
        return alone(changes, *settled)

    monkeypatch.setattr(SchemaChanges, "alone", after_another)
    with pytest.raises(tique.SerializationError, match="changed meanwhile"):
        second.run(text)
    second.connection.rollback()
    expect_nothing_unfinished(first)
    if meanwhile != "DROP TABLE t":
        second.commit(text)


def test_altered_beside_a_writer(pair):
    """P9: its rows are of the old definition, and the transaction is run again."""
    first, second = pair
    second.run("UPDATE t SET v = 99 WHERE id = 1")
    first.commit("ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 7")
    first.commit("UPDATE t SET w = 8 WHERE id = 2")
    with pytest.raises(tique.SerializationError, match="changed meanwhile"):
        second.connection.commit()
    second.commit("UPDATE t SET v = 99 WHERE id = 1")
    for one in pair:
        assert one.rows("SELECT v, w FROM t ORDER BY id") == [(99, 7), (0, 8)]
    expect_nothing_unfinished(first)


@pytest.mark.written_for(["postgresql"], reason="MonetDB's lets duplicates in")
def test_a_unique_index_beside_a_writer(pair):
    """P3, P9: no row that was written without a key is committed beside it."""
    first, second = pair
    first.commit("UPDATE t SET v = id")
    second.run("INSERT INTO t VALUES (3, 1, 'c')")
    first.commit("CREATE UNIQUE INDEX sole ON t (v)")
    with pytest.raises(tique.SerializationError, match="changed meanwhile"):
        second.connection.commit()
    second.run("INSERT INTO t VALUES (3, 7, 'c')")
    first.run("INSERT INTO t VALUES (4, 7, 'd')")
    first.connection.commit()
    with pytest.raises(tique.SerializationError):
        second.connection.commit()
    second.connection.rollback()
    with pytest.raises(tique.IntegrityError, match='constraint "sole"'):
        second.run("UPDATE t SET v = 7 WHERE id = 1")
    second.connection.rollback()
    second.run("UPDATE t SET v = 8 WHERE id = 1")
    first.commit("DROP INDEX sole")
    with pytest.raises(tique.SerializationError, match="changed meanwhile"):
        second.connection.commit()
    second.commit("UPDATE t SET v = 7")
    for one in pair:
        assert one.rows("SELECT id, v FROM t ORDER BY id") == [(1, 7), (2, 7), (4, 7)]
    expect_nothing_unfinished(first)


@pytest.mark.parametrize("follows", [False, True])
def test_altered_beside_a_snapshot(pair, follows):
    """P1: refused, as its rows are of another definition; memory may have some."""
    first, second = pair
    assert second.run("SELECT v FROM t WHERE id = 1").fetchall() == [(0,)]
    first.commit("ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 7")
    first.commit("UPDATE t SET v = 1, w = 8")
    first.connection.checkpoint()
    if follows:
        second.database.timeline.catch_up()
    with pytest.raises(tique.SerializationError, match=r"changed"):
        second.run("SELECT v FROM t")
    second.connection.rollback()
    assert second.rows("SELECT v, w FROM t") == [(1, 8)] * 2


def test_versions_that_another_process_does_not_see(pair, monkeypatch):
    """P1: refused while it needs them, and no other client is held up."""
    first, second = pair
    monkeypatch.setattr("tique.query.define.schema_changes._PATIENCE", 0.5)
    second.run("SELECT v FROM t WHERE id = 1").fetchall()
    first.commit("UPDATE t SET v = 5")
    with pytest.raises(tique.OperationalError, match="open snapshot") as refusal:
        first.run("ALTER TABLE t ADD COLUMN w INTEGER")
    assert refusal.value.sqlstate == "55006"
    first.connection.rollback()
    assert second.run("SELECT v FROM t").fetchall() == [(0,), (0,)]
    second.connection.rollback()
    second.commit("UPDATE t SET v = 6 WHERE id = 2")
    first.commit("ALTER TABLE t ADD COLUMN w INTEGER")
    assert second.rows("SELECT v, w FROM t ORDER BY id") == [(5, None), (6, None)]
    expect_nothing_unfinished(first)


def test_a_foreign_key_is_added_beside_a_delete(pair):
    """P9: the delete has looked for no child."""
    first, second = pair
    first.commit("CREATE TABLE c (id INTEGER PRIMARY KEY, t INTEGER)")
    first.commit("INSERT INTO c VALUES (1, 1)")
    second.run("DELETE FROM t WHERE id = 1")
    first.commit("ALTER TABLE c ADD FOREIGN KEY (t) REFERENCES t")
    with pytest.raises(tique.SerializationError):
        second.connection.commit()
    with pytest.raises(tique.IntegrityError):
        second.run("DELETE FROM t WHERE id = 1")


def test_a_second_foreign_key_is_added_beside_a_delete(pair):
    """P9: it has looked for children in another table only."""
    first, second = pair
    for name in ("b", "c"):
        first.commit(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, t INTEGER)")
    first.commit("INSERT INTO c VALUES (1, 1)")
    first.commit("ALTER TABLE b ADD FOREIGN KEY (t) REFERENCES t")
    second.run("DELETE FROM t WHERE id = 1")
    first.commit("ALTER TABLE c ADD FOREIGN KEY (t) REFERENCES t")
    with pytest.raises(tique.SerializationError):
        second.connection.commit()
    assert first.rows("SELECT count(*) FROM t WHERE id = 1") == [(1,)]


def test_dropped_beside_a_snapshot(pair):
    first, second = pair
    second.run("SELECT v FROM t WHERE id = 1").fetchall()
    first.commit("DROP TABLE t")
    second.database.timeline.catch_up()
    with pytest.raises(tique.ProgrammingError):
        second.run("SELECT v FROM t WHERE id = 2")


def test_who_commits_with_a_dropped_tables_writer_commits(pair, process):
    """P3: one batch, one refused."""
    first, second = pair
    first.commit("CREATE TABLE u (id INTEGER PRIMARY KEY)")
    with second.another() as other:
        second.run("UPDATE t SET v = 99 WHERE id = 1")
        other.execute("INSERT INTO u VALUES (1)")
        first.commit("DROP TABLE t")
        committer = second.database.committer
        with ThreadPoolExecutor(2) as pool:
            with committer.paused(10):
                attempts = [pool.submit(c.commit) for c in (second.connection, other)]
                time.sleep(0.1)
            attempts[1].result(10)
            with pytest.raises(tique.ProgrammingError, match="dropped meanwhile"):
                attempts[0].result(10)
    assert first.rows("SELECT * FROM u") == [(1,)]


def test_a_commit_waits_for_a_definition(pair, pool, monkeypatch):
    """P9: and is certified by the schema of that time."""
    first, second = pair
    second.run("UPDATE t SET v = 5 WHERE id = 1")
    with waiting(monkeypatch, sequencer_of(first), "transact") as (arrived, go_on):
        defining = pool.submit(first.commit, "CREATE TABLE u (id INTEGER PRIMARY KEY)")
        assert arrived.wait(10)
        committing = pool.submit(second.connection.commit)
        with pytest.raises(TimeoutError):
            committing.result(0.5)
        go_on.set()
        defining.result(10)
        committing.result(10)
    assert first.rows("SELECT v FROM t WHERE id = 1") == [(5,)]
    assert second.rows("SELECT * FROM u") == []


def test_who_joins_during_a_definition(pair, process, pool, monkeypatch):
    """P9: reads the old catalog, perhaps, and then follows."""
    first, _ = pair
    with waiting(monkeypatch, sequencer_of(first), "transact") as (arrived, go_on):
        defining = pool.submit(first.commit, "CREATE TABLE u (id INTEGER PRIMARY KEY)")
        assert arrived.wait(10)
        third = process()
        assert third.rows("SELECT count(*) FROM t") == [(2,)]
        go_on.set()
        defining.result(10)
    third.commit("INSERT INTO u VALUES (1)")
    assert first.rows("SELECT * FROM u") == [(1,)]


def test_who_joins_before_a_definition_is_finished(pair, process, pool, monkeypatch):
    """P1, P5: definitions, and the rows that came with them, are of one moment."""
    first, _ = pair

    def migrate():
        for statement in (
            "BEGIN",
            "CREATE TABLE u (id INTEGER PRIMARY KEY)",
            "UPDATE t SET v = 5 WHERE id = 1",
        ):
            first.connection.execute(statement)
        first.connection.commit()

    with waiting(monkeypatch, sequencer_of(first), "finish") as (arrived, go_on):
        migrating = pool.submit(migrate)
        assert arrived.wait(10)
        joining = pool.submit(process)
        with pytest.raises(TimeoutError):
            joining.result(0.5)
        go_on.set()
        migrating.result(10)
    third = joining.result(20)
    assert third.rows("SELECT v FROM t WHERE id = 1") == [(5,)]
    assert third.rows("SELECT * FROM u") == []


@pytest.mark.parametrize("step", ["hold", "snapshot", "folds", "reload"])
def test_defined_between_a_joiners_steps(pair, process, monkeypatch, step):
    """P9."""
    first, _ = pair
    owner = ManagedCatalog if step == "reload" else sequencer_of(first)
    original = getattr(owner, step)

    def defining(*arguments):
        monkeypatch.setattr(owner, step, original)
        first.commit("CREATE TABLE u (id INTEGER PRIMARY KEY)")
        first.commit("INSERT INTO u VALUES (1)")
        return original(*arguments)

    first.database.timeline._stopping.set()
    first.database.timeline._thread.join()
    pair[1].close()
    monkeypatch.setattr(owner, step, defining)
    assert process().rows("SELECT * FROM u") == [(1,)]


@pytest.mark.parametrize(
    "definition",
    [
        "DROP TABLE t",
        "CREATE TABLE u (id INTEGER PRIMARY KEY)",
        "CREATE INDEX i ON t (v)",
        "ALTER TABLE t ADD COLUMN w INTEGER",
        "ALTER TABLE t RENAME TO u",
        "CREATE TABLE u AS SELECT * FROM t",
    ],
)
def test_stopped_in_a_definition(shared_engine, pair, process, monkeypatch, definition):
    """P6: the others went on, so the schema change does not happen any more."""
    first, second = pair

    def work():
        second.commit("UPDATE t SET v = 4 WHERE id = 1")
        assert process().rows("SELECT v FROM t WHERE id = 1") == [(4,)]

    stopped = stopping_before_commit(monkeypatch, first, work)
    with pytest.raises(tique.OperationalError, match="given up") as refusal:
        first.run(definition)
    assert stopped
    assert refusal.value.sqlstate == "08006"
    assert second.rows("SELECT v FROM t WHERE id = 1") == [(4,)]
    assert [table.name for table in second.database.catalog] == ["t"]
    session = second.database.engine.session()
    assert second.database.engine.user_tables(session) == [(shared_engine.schema, "t")]
    session.close()
    second.commit("DROP TABLE t")
    expect_nothing_unfinished(second)


def test_killed_after_a_definitions_commit(pair, monkeypatch):
    """P9: the schema change is there for all, though its timestamp is fenced."""
    first, second = pair
    finish = sequencer_of(first).finish

    def killed(shared, stamps):
        if shared is first.database.engine.shared:
            stop(first)
        return finish(shared, stamps)

    monkeypatch.setattr(sequencer_of(first), "finish", killed)
    with pytest.raises(tique.OperationalError, match="given up"):
        first.run("CREATE TABLE u (id INTEGER PRIMARY KEY)")
    second.database.timeline._beat()
    second.commit("INSERT INTO u VALUES (1)")
    assert second.rows("SELECT * FROM u") == [(1,)]
    expect_nothing_unfinished(second)


def test_a_definition_that_is_refused_holds_up_nobody(pair):
    first, second = pair
    for statement in ("CREATE TABLE t (id INTEGER)", "DROP TABLE nothing"):
        with pytest.raises(tique.ProgrammingError):
            first.run(statement)
        first.connection.rollback()
        second.commit("UPDATE t SET v = v + 1 WHERE id = 1")
        expect_nothing_unfinished(first)


def test_interrupted_while_a_barrier_is_taken(pair, monkeypatch):
    """P6: a process that may have a timestamp without knowing of it leaves."""
    first, second = pair
    barrier = sequencer_of(first).barrier

    def interrupted(*arguments):
        barrier(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sequencer_of(first), "barrier", interrupted)
        with pytest.raises(KeyboardInterrupt):
            first.commit("CREATE TABLE u (id INTEGER PRIMARY KEY)")
    second.commit("UPDATE t SET v = v + 1 WHERE id = 1")
    expect_nothing_unfinished(second)
    first.close()
    assert first.again().rows("SELECT v FROM t ORDER BY id") == [(1,), (0,)]


def test_interrupted_before_a_barrier_is_taken(pair, monkeypatch):
    """P6: then the process goes on, and takes none later."""
    first, second = pair
    late = []

    def interrupted(work, patience):
        late.append(work)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shared_timeline, "undisturbed", interrupted)
        with pytest.raises(KeyboardInterrupt):
            first.commit("CREATE TABLE u (id INTEGER PRIMARY KEY)")
    late[0]()
    expect_nothing_unfinished(first)
    first.connection.rollback()
    first.commit("UPDATE t SET v = v + 1 WHERE id = 1")
    assert second.rows("SELECT v FROM t ORDER BY id") == [(1,), (0,)]


def test_adopt_and_detach_beside_others(shared_engine, pair):
    """P9."""
    first, second = pair
    legacy = f"{shared_engine.schema}.legacy"
    native = shared_engine.native()
    native.execute(f"CREATE TABLE {legacy} (id INTEGER PRIMARY KEY, v INTEGER)")
    native.execute(f"INSERT INTO {legacy} VALUES (1, 1)")
    assert first.database.ddl.adopt(["legacy"]) == [f"{shared_engine.schema}.legacy"]
    second.commit("UPDATE legacy SET v = 2")
    assert first.rows("SELECT v FROM legacy") == [(2,)]
    assert second.database.ddl.detach(["legacy"]) == [f"{shared_engine.schema}.legacy"]
    with pytest.raises(tique.ProgrammingError):
        first.run("SELECT v FROM legacy")
    first.connection.rollback()
    assert native.execute(f"SELECT v FROM {legacy}").fetchall() == [(2,)]


def test_all_is_detached_by_who_is_alone(shared_engine, pair):
    first, second = pair
    with pytest.raises(EngineError, match="other processes") as refusal:
        first.database.ddl.detach()
    assert refusal.value.kind is ErrorKind.IN_USE
    assert first.rows("SELECT count(*) FROM t") == [(2,)]
    second.close()
    assert first.database.ddl.detach() == [f"{shared_engine.schema}.t"]


def test_others_read_a_view_as_it_is_now(pair):
    """P1, P9: what they planned is planned anew."""
    first, second = pair
    query = "SELECT * FROM view_of_t"
    first.commit("CREATE VIEW view_of_t AS SELECT id, v FROM t")
    first.commit("UPDATE t SET v = v + 7 WHERE id = 1")
    assert (1, 7) in second.rows(query)
    second.connection.rollback()
    first.commit("CREATE OR REPLACE VIEW view_of_t AS SELECT id, v FROM t WHERE id = 1")
    assert second.rows(query) == [(1, 7)]
    second.connection.rollback()
    first.commit("DROP VIEW view_of_t")
    with pytest.raises(tique.ProgrammingError):
        second.run(query)


@pytest.mark.written_for(["postgresql"], reason="MonetDB's index lets duplicates in")
def test_values_of_an_index_on_an_expression(pair):
    """P3: between processes of which neither has followed the other's commit."""
    first, second = pair
    first.commit("CREATE TABLE u (id INTEGER PRIMARY KEY, s TEXT, gone BOOLEAN)")
    first.commit("CREATE UNIQUE INDEX sole ON u (lower(s)) WHERE NOT gone")
    insert = "INSERT INTO u VALUES ({}, '{}', {})"
    one, two = first.another(), second.another()
    # Its heartbeats do not follow in between.
    second.database.timeline._stopping.set()
    second.database.timeline._thread.join()
    one.execute(insert.format(1, "A", "FALSE"))
    two.execute(insert.format(2, "a", "FALSE"))
    one.commit()
    with pytest.raises(tique.SerializationError):
        two.commit()
    two.rollback()
    one.execute(insert.format(3, "b", "FALSE"))
    two.execute(insert.format(4, "B", "TRUE"))
    one.commit()
    two.commit()
    with pytest.raises(tique.IntegrityError):
        two.execute("UPDATE u SET gone = FALSE WHERE id = 4")
    two.rollback()
    assert first.rows("SELECT count(*) FROM u") == [(3,)]
    first.commit(
        "CREATE TABLE w (id INTEGER PRIMARY KEY, s TEXT, UNIQUE NULLS NOT DISTINCT (s))"
    )
    for number, connection in enumerate((one, two)):
        connection.execute(f"INSERT INTO w VALUES ({number}, NULL)")
    one.commit()
    with pytest.raises(tique.SerializationError):
        two.commit()
    for connection in (one, two):
        connection.close()
