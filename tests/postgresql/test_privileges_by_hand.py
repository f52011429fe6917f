"""P11: a role's possibilities in schema tique with SQL of its own."""

from __future__ import annotations

import json
from contextlib import contextmanager

import psycopg
import pytest

import tique
from tests.postgresql.privileges import Hand, denied, tables_of

BAD = "permission denied|these are no|this is no|there is no|nothing was|must be owner"


@contextmanager
def refused(match=BAD):
    with denied(match, psycopg.errors.InsufficientPrivilege):
        yield


@pytest.fixture
def hand(shop):
    """A client and a connection of ``writer``, which may use the table ``open`` only."""
    with shop.by_hand("writer") as connection:
        yield Hand(connection, tables_of(shop))


def test_nobody_who_was_not_granted_the_schema_gets_in(shop):
    with shop.by_hand("stranger") as connection, refused():
        connection.execute("SELECT tique.sts()")


OWNERS = (
    "certify",
    "recover",
    "next_cts",
    "join_client",
    "renew_client",
    "leave_client",
    "fence",
    "append",
)


def test_functions_that_are_the_owners(shop, hand):
    """Functions that grants.sql does not list are the owner's only, in either form."""
    with shop.by_hand() as connection:
        rows = connection.execute(
            "SELECT p.proname, has_function_privilege('writer', p.oid, 'EXECUTE') "
            "FROM pg_proc AS p WHERE p.pronamespace = 'tique'::regnamespace"
        ).fetchall()
    allowed = {name for name, may in rows if may}
    assert not allowed.intersection(OWNERS)
    assert not {name for name in allowed if name.startswith("sequencer")}
    assert len(allowed) == 44


def test_default_privileges_give_nothing_in_the_schema(shop):
    """Default privileges of the owner are for tables, not for their caches."""
    shop.owner.commit("CREATE TABLE another (id INTEGER PRIMARY KEY)")
    with shop.by_hand() as connection:
        granted = connection.execute(
            "SELECT relname, relacl::text FROM pg_class "
            "WHERE relacl::text LIKE '%careless=%' UNION ALL "
            "SELECT proname, proacl::text FROM pg_proc "
            "WHERE proacl::text LIKE '%careless=%'"
        ).fetchall()
    assert {name for name, _ in granted} == {"open", "closed", "another"}


def test_functions_with_the_owners_rights_look_nothing_up_in_the_callers_schemas(shop):
    with shop.by_hand() as connection:
        rows = connection.execute(
            "SELECT p.proname, p.proconfig FROM pg_proc AS p "
            "WHERE p.pronamespace = 'tique'::regnamespace "
            "AND (p.prosecdef OR p.proname LIKE 'guest%')"
        ).fetchall()
    assert len(rows) > 20
    for name, settings in rows:
        assert "search_path=pg_catalog, pg_temp" in settings, name


def test_tables_that_are_the_owners(shop, hand):
    """Of the log and of clients only columns that reveal nothing can be read."""
    with shop.by_hand() as connection:
        tables = connection.execute(
            "SELECT format('tique.%I', relname) FROM pg_class WHERE relkind IN ('r', 'S') "
            "AND relnamespace = 'tique'::regnamespace"
        ).fetchall()
    for (table,) in tables:
        for sql in (
            f"DELETE FROM {table}",
            f"TRUNCATE {table}",
            f"INSERT INTO {table} DEFAULT VALUES",
            f"ALTER TABLE {table} OWNER TO writer",
            f"DO $$ BEGIN LOCK TABLE {table} IN EXCLUSIVE MODE; END $$",
        ):
            with pytest.raises(psycopg.Error) as caught:
                hand.run(sql)
            assert caught.value.sqlstate in ("42501", "42809"), sql
    for sql in (
        "SELECT commits FROM tique.log",
        "SELECT client FROM tique.clients",
        "SELECT mark FROM tique.clients",
        "SELECT * FROM tique.barriers",
    ):
        with refused():
            hand.run(sql)


def test_rows_of_a_table_that_was_not_granted(shop, hand):
    """In the log, and in the cache table; rows of granted tables are there."""
    for table in ("open", "closed"):
        shop.owner.commit(f"UPDATE {table} SET note = 'secret {table}' WHERE id = 1")
        hand.run("SELECT tique.guest_drain(%s, tique.sts())", int(hand.tables[table]))
    logged = str(hand.run("SELECT * FROM tique.guest_log(0)"))
    assert "secret open" in logged
    assert "secret closed" not in logged
    assert "secret" in str(hand.run(f"SELECT * FROM {hand.cache('open')}"))
    assert hand.run(f"SELECT * FROM {hand.cache('closed')}") == []
    shop.natively("REVOKE SELECT ON open FROM writer")
    assert "secret" not in str(hand.run("SELECT * FROM tique.guest_log(0)"))
    assert hand.run(f"SELECT * FROM {hand.cache('open')}") == []
    shop.natively("GRANT SELECT ON closed TO writer")
    assert "secret closed" in str(hand.run("SELECT * FROM tique.guest_log(0)"))
    assert "secret" in str(hand.run(f"SELECT * FROM {hand.cache('closed')}"))


def test_rows_of_a_table_that_was_dropped(shop, hand):
    """No grants tell any more which roles may read them."""
    ((client,),) = hand.run("SELECT tique.guest_join(60000)")
    shop.owner.commit("CREATE TABLE gone (id INTEGER PRIMARY KEY, note TEXT)")
    shop.owner.commit("INSERT INTO gone VALUES (1, 'secret')")
    shop.owner.commit("DROP TABLE gone")
    shop.natively("GRANT SELECT ON closed TO writer")
    assert "secret" not in str(hand.run("SELECT * FROM tique.guest_log(0)"))
    hand.run("SELECT tique.guest_leave(%s)", client)


def test_a_leaky_condition_sees_no_row_of_the_cache_table(shop, hand):
    shop.owner.commit("UPDATE closed SET note = 'secret' WHERE id = 1")
    hand.run("SELECT tique.guest_drain(%s, tique.sts())", int(hand.tables["closed"]))
    hand.run(
        "CREATE FUNCTION pg_temp.leak(TEXT) RETURNS BOOLEAN LANGUAGE plpgsql "
        "COST 0.0001 AS $$ BEGIN RAISE EXCEPTION 'leaked %', $1; END $$"
    )
    sql = f"SELECT 1 FROM {hand.cache('closed')} WHERE pg_temp.leak(note)"
    assert hand.run(sql) == []


GOOD = [0, 9, 90, "x"]
STAGED = "SELECT tique.guest_append_staged(%s, %s, %s, %s)"


def test_a_commit_by_hand(shop, hand):
    """So the refusals below have the reasons that they name."""
    assert hand.append({"open": [GOOD, [1, 1, 10, "a"]]}) > 0
    assert shop.owner.rows("SELECT id, v FROM open ORDER BY id") == [(2, 20), (9, 90)]
    shop.owner.connection.checkpoint()
    assert shop.owner.rows("SELECT id, v FROM open ORDER BY id") == [(2, 20), (9, 90)]


@pytest.mark.parametrize(
    "versions",
    [
        {"closed": [GOOD]},
        {"open": [GOOD], "closed": [GOOD]},
        {"closed": [[1, 1, 10, "a"]]},
        {"closed": []},
        {"open": [[0, 9, 90]]},
        {"open": [[0, 9, 90, "x", 1]]},
        {"open": [["0", 9, 90, "x"]]},
        {"open": [[2, 9, 90, "x"]]},
        {"open": [[None, 9, 90, "x"]]},
        {"open": [[0, "9", 90, "x"]]},
        {"open": [[0, 9.5, 90, "x"]]},
        {"open": [[0, None, 90, "x"]]},
        {"open": [[0, {}, 90, "x"]]},
        {"open": [[0, 9, {"a": 1}, "x"]]},
        {"open": [[0, 9, 90, 7]]},
        {"open": [[0, 9, 90, ["x"]]]},
    ],
)
def test_versions_that_are_not_his_to_write(shop, hand, versions):
    """Of another role's table, or such as would stop a following process."""
    with refused():
        hand.append(versions)
    shop.owner.commit("UPDATE open SET v = 11 WHERE id = 1")
    assert shop.owner.rows("SELECT sum(v) FROM open") == [(31,)]


@pytest.mark.parametrize(
    ("version", "state"),
    [
        ([0, 9, 1_000_000, "x"], "23514"),
        ([0, 3_000_000_000, 1, "x"], "22003"),
    ],
)
def test_versions_that_the_table_would_not_take(hand, version, state):
    with pytest.raises(psycopg.Error) as caught:
        hand.append({"open": [version]})
    assert caught.value.sqlstate == state


def test_versions_that_a_check_made_past_tique_refuses(shop, hand):
    """P4: storage holds new rows to it, and would stop every fold of the table."""
    shop.natively(
        "ALTER TABLE open DROP CONSTRAINT open_v_check, ADD CHECK (v < 25) NOT VALID"
    )
    (barrier,) = hand.run("SELECT tique.guest_barrier(%s)", hand.client)[0]
    for attempt in (
        lambda: hand.append({"open": [GOOD]}),
        lambda: hand.run(
            STAGED, hand.client, int(hand.tables["open"]), barrier, ["(9,90,x,0,f)"]
        ),
    ):
        with pytest.raises(psycopg.errors.CheckViolation):
            attempt()
    hand.run("SELECT tique.abort(%s, %s)", hand.client, barrier)
    assert hand.append({"open": [[0, 9, 9, "x"]]}) > 0
    for role in ("writer", None):
        process = shop.process(role)
        with pytest.raises(tique.IntegrityError):
            process.commit("UPDATE open SET v = 90 WHERE id = 1")
        process.connection.rollback()
        process.commit("UPDATE open SET v = v + 1 WHERE id = 1")
    for process in shop.processes:
        process.database.timeline.advance()
    shop.owner.connection.checkpoint()
    with shop.by_hand() as connection:
        rows = connection.execute("SELECT id, v FROM open ORDER BY id").fetchall()
    assert rows == [(1, 12), (2, 20), (9, 9)]


@pytest.mark.parametrize(
    ("privilege", "allowed", "refused_versions"),
    [
        ("INSERT", [GOOD], [[1, 1, 10, "a"]]),
        ("DELETE", [[1, 1, 10, "a"]], [GOOD]),
        ("UPDATE", [[1, 1, 10, "a"], GOOD], [[1, 1, 10, "a"]]),
    ],
)
def test_rows_and_tombstones_take_their_privileges(
    shop, hand, privilege, allowed, refused_versions
):
    shop.natively(
        "REVOKE INSERT, UPDATE, DELETE ON open FROM writer",
        f"GRANT {privilege} ON open TO writer",
    )
    with refused():
        hand.append({"open": refused_versions})
    assert hand.append({"open": allowed}) > 0
    shop.natively("REVOKE SELECT ON open FROM writer")
    with refused():
        hand.append({"open": allowed})


@pytest.mark.parametrize(
    "entry",
    [
        "[{},{},true]",
        '[{},{"%(closed)s":1}]',
        '[{},{"%(open)s":-1}]',
        '[{},{"%(open)s":"1"}]',
        '[{" %(open)s":[[0,9,90,"x"]]}]',
        '[{"0%(open)s":[[0,9,90,"x"]]}]',
        '[{"%(open)s":[[0,9,90,"x"]],"%(closed)s":[[0,9,90,"x"]]}]',
        "[]",
    ],
)
def test_entries_that_are_not_his_to_log(hand, entry):
    with refused():
        hand.append_text(entry % hand.tables)


@pytest.mark.parametrize(
    "entry",
    ["{}", "[1]", '[{"77":[]}]', "[NaN]", '[{"%(open)s":[[0,9,90,"\\u0000"]]}]'],
)
def test_entries_that_are_none(hand, entry):
    with pytest.raises(psycopg.Error):
        hand.append_text(entry % hand.tables)


def test_transactions_of_others(shop, hand):
    """P4: outcomes go by the number of a transaction."""
    writer = shop.process("writer")
    writer.run("UPDATE open SET v = 1 WHERE id = 1")
    txid = writer.connection.txid
    with refused():
        hand.append({"open": [GOOD]}, txid=txid)
    writer.connection.rollback()
    assert shop.owner.connection.outcome(txid) != "committed"


def test_clients_of_others(shop, hand):
    """P6: no client's number can be read, and a barrier is its client's."""
    barrier = shop.owner.database.engine.shared.barrier()
    for function in ("finish", "abort"):
        with pytest.raises(psycopg.Error, match="not known"):
            hand.run(f"SELECT tique.{function}(%s, %s)", hand.client, barrier)
    entry = json.dumps([{hand.tables["open"]: [GOOD]}], separators=(",", ":"))
    with refused():
        hand.run(
            "SELECT tique.guest_log_bulk(%s, %s, %s, %s)",
            hand.client,
            barrier,
            hand.txid,
            entry,
        )
    with refused():
        hand.run(
            STAGED, hand.client, int(hand.tables["open"]), barrier, ["(9,90,x,0,f)"]
        )
    hand.run("SELECT tique.guest_tend()")
    assert hand.run("SELECT tique.doubtful(), tique.guest_disown()") == [(0, [])]
    with refused():
        hand.run("SELECT tique.guest_fence(%s)", [barrier])
    shop.owner.database.engine.shared.finish([barrier])
    shop.owner.commit("UPDATE open SET v = 11 WHERE id = 1")


def test_a_fence_is_written_down_first(shop, hand):
    """P6: sts must not pass a timestamp whose fence is rolled back."""
    (barrier,) = hand.run("SELECT tique.guest_barrier(%s)", hand.client)[0]
    hand.run("SELECT tique.guest_leave(%s)", hand.client)
    hand.run("BEGIN")
    assert hand.run("SELECT tique.guest_disown()") == [([barrier],)]
    with refused():
        hand.run("SELECT tique.guest_fence(%s)", [barrier])
    hand.run("ROLLBACK")
    assert hand.run("SELECT tique.doubtful()") == [(barrier,)]
    assert hand.run("SELECT tique.guest_disown()") == [([barrier],)]
    hand.run("SELECT tique.guest_fence(%s)", [barrier])
    assert hand.run("SELECT tique.doubtful()") == [(0,)]


def test_the_mark_of_another_role(shop, hand):
    """P6: ending the sessions of a process that was given up ends no others."""
    owner = shop.owner.database.engine._presence
    ((client,),) = hand.run("SELECT tique.guest_join(60000)")
    hand.run("SELECT tique.guest_introduce(%s, %s, 5)", client, owner.mark)
    pid = owner._connection.pid
    with shop.by_hand() as connection:
        connection.execute("SELECT tique.leave_client(%s)", [client])
    shop.owner.database.engine.shared.tend()
    assert owner._connection.pid == pid
    with shop.by_hand() as connection:
        found = connection.execute("SELECT pid FROM pg_stat_activity").fetchall()
    assert (pid,) in found


@pytest.mark.parametrize(
    ("rows", "state"),
    [
        (["(9,2000000,x,0,f)"], "23514"),
        (["(9,90,x,0,f)", "(9,91,y,0,f)"], "42501"),
        (["(9,90,x,0,f)", "(9,90,x,0,t)"], "42501"),
        (["(,90,x,0,f)"], "23502"),
        (["(9,90,x,0,)"], "23502"),
        ([None], "23502"),
        (["(9,90,x,0)"], "22P02"),
        (["(nine,90,x,0,f)"], "22P02"),
    ],
)
def test_staged_rows_that_storage_would_not_take(shop, hand, rows, state):
    """P4, P6: they would stop every fold of the table."""
    table = int(hand.tables["open"])
    (barrier,) = hand.run("SELECT tique.guest_barrier(%s)", hand.client)[0]
    with pytest.raises(psycopg.Error) as caught:
        hand.run(STAGED, hand.client, table, barrier, rows)
    assert caught.value.sqlstate == state
    hand.run("SELECT tique.abort(%s, %s)", hand.client, barrier)


@pytest.mark.parametrize(
    ("rows", "is_allowed"),
    [
        (["(9,90,x,0,f)"], True),
        (["(1,10,a,0,t)"], False),
        (["(1,10,a,0,t)", "(9,90,x,0,f)"], False),
    ],
)
def test_staged_rows_take_their_privileges(shop, hand, rows, is_allowed):
    """P11: INSERT alone of one table, and none of the other."""
    shop.natively("REVOKE UPDATE, DELETE ON open FROM writer")
    for name in ("closed", "open"):
        (barrier,) = hand.run("SELECT tique.guest_barrier(%s)", hand.client)[0]
        given = [hand.client, int(hand.tables[name]), barrier, rows]
        if is_allowed and name == "open":
            assert hand.run(STAGED, *given) == [(1,)]
        else:
            with refused():
                hand.run(STAGED, *given)
        hand.run("SELECT tique.abort(%s, %s)", hand.client, barrier)


def test_bounds_of_moving_versions(shop, hand):
    """P7: nothing is drained, folded or pruned beyond what sts and lambda allow."""
    table = int(hand.tables["open"])
    reading = shop.process()
    assert reading.run("SELECT sum(v) FROM open").fetchall() == [(30,)]
    shop.owner.commit("UPDATE open SET v = 11 WHERE id = 1")
    hand.run("SELECT tique.guest_drain(%s, %s)", table, 1 << 60)
    hand.run("SELECT tique.guest_fold(%s, %s, NULL)", table, 1 << 60)
    hand.run("SELECT tique.guest_prune(0)")
    assert reading.run("SELECT sum(v) FROM open").fetchall() == [(30,)]
    moved = 'SELECT max(drained) <= tique.sts(), max(folded) <= tique."lambda"()'
    assert hand.run(f'{moved} FROM tique."tables"') == [(True, True)]
    reading.close()
    shop.owner.commit("UPDATE open SET v = 12 WHERE id = 1")
    shop.owner.database.timeline.advance()
    hand.run("SELECT tique.guest_prune(0)")
    assert shop.process().rows("SELECT sum(v) FROM open") == [(32,)]
    assert shop.process("reader").rows("SELECT v FROM open WHERE id = 1") == [(12,)]


@pytest.mark.parametrize(
    "call",
    [
        "tique.guest_drain(%(open)s, 1000000)",
        "tique.guest_fold(%(open)s, 1000000, NULL)",
        "tique.guest_prune(0)",
        "tique.guest_disown()",
        "tique.guest_tend()",
    ],
)
def test_a_snapshot_of_before(hand, call):
    """Versions that it does not show would be lost."""
    hand.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    with pytest.raises(psycopg.Error, match="READ COMMITTED") as caught:
        hand.run("SELECT " + call % hand.tables)
    assert caught.value.sqlstate == "25001"
    hand.run("ROLLBACK")


def test_a_lease_ends(shop, hand):
    """A client whose lease is not renewed holds nothing back for long."""
    with pytest.raises(psycopg.Error):
        hand.run("SELECT tique.join_client(1000000000000)")
    hand.run("SELECT tique.guest_renew(%s, 1000000000000)", hand.client)
    if shop.engine.sequencer == "plain":
        with shop.by_hand() as connection:
            longest = "SELECT max(expires) - now() < '301s' FROM tique.sequencer_leases"
            assert connection.execute(longest).fetchone() == (True,)
    hand.run("SELECT tique.guest_renew(%s, 0)", hand.client)
    with pytest.raises(psycopg.Error, match="lease ran out"):
        hand.append({"open": [GOOD]})
