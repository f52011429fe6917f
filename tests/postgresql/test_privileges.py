"""Privileges (P11): transactions of roles that do not own tique's schema."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime

import pytest

import tique
from tests.effort import patience
from tests.postgresql.privileges import denied
from tests.sharing.playing import ROWS, cached, expect_nothing_unfinished
from tique.history.retention import Retention
from tique.query.define.history import set_history

TYPES = """id BIGINT PRIMARY KEY, b BOOLEAN, s SMALLINT, f DOUBLE PRECISION, t TEXT,
  v VARCHAR(5), n NUMERIC(10,2), d DATE, m TIMESTAMP, x BYTEA, u UUID"""
VALUES = [
    (
        1,
        True,
        -3,
        float("nan"),
        "a \u2028 \"'\\",
        "abc",
        "-1.50",
        "2020-02-29",
        "2020-01-01 10:11:12.000013",
        b"\0\xff",
        "00000000-0000-0000-0000-00000000000a",
    ),
    (
        2,
        False,
        3,
        float("-inf"),
        "NaN,Infinity",
        "",
        "0",
        "0001-01-01",
        "9999-12-31 23:59:59",
        b"",
        "ffffffff-ffff-4fff-bfff-ffffffffffff",
    ),
    (3, None, None, -0.0, None, None, None, None, None, None, None),
]


def test_a_role_without_grants_is_told_what_to_grant(shop):
    with denied('GRANT USAGE ON SCHEMA tique TO "stranger"'):
        shop.process("stranger")


def test_policies_are_switched_off_by_their_owner_alone(shop):
    """P12: as the head of a dump does; other roles read recent versions by them."""
    shop.owner.run("SET row_security = off")
    shop.owner.run("UPDATE open SET v = v + 1 WHERE id = 1")
    assert shop.owner.rows("SELECT count(*) FROM open WHERE id = 1") == [(1,)]
    writer = shop.process("writer")
    with pytest.raises(tique.NotSupportedError, match="policies"):
        writer.run("SET row_security = off")
    writer.run("SET row_security = on")


def test_transactions_of_an_ordinary_role(shop):
    """P1, P2, P3: as any role's."""
    writer = shop.process("writer")
    writer.run("UPDATE open SET v = v + 1 WHERE id = 1")
    writer.run("INSERT INTO open VALUES (3, 30, 'c')")
    writer.run("DELETE FROM open WHERE id = 2")
    assert shop.owner.rows("SELECT id FROM open ORDER BY id") == [(1,), (2,)]
    writer.connection.commit()
    expected = [(1, 11, "a"), (3, 30, "c")]
    for process in (writer, shop.owner, shop.process("reader")):
        assert process.rows("SELECT * FROM open ORDER BY id") == expected
        assert process.rows("SELECT v FROM open WHERE id = 1") == [(11,)]
    writer.run("UPDATE open SET v = 0 WHERE id = 3")
    shop.owner.commit("UPDATE open SET v = 1 WHERE id = 3")
    with pytest.raises(tique.SerializationError):
        writer.connection.commit()
    assert writer.rows("SELECT v FROM open WHERE id = 3") == [(1,)]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT v FROM closed WHERE id = 1",
        "SELECT sum(v) FROM closed",
        "SELECT v FROM open WHERE id = (SELECT min(id) FROM closed)",
        "EXPLAIN SELECT v FROM closed WHERE id = 1",
        "INSERT INTO open SELECT id + 10, v, note FROM closed",
        "UPDATE open SET v = 1 WHERE id IN (SELECT id FROM closed)",
        "INSERT INTO closed VALUES (9, 9, '')",
        "UPDATE closed SET v = 1 WHERE id = 1",
        "DELETE FROM closed WHERE id = 1",
    ],
)
def test_a_table_that_was_not_granted(shop, statement):
    """Whether its rows are in the table, in the log or in the cache table."""
    writer = shop.process("writer")
    writer.connection.autocommit = True
    for _ in range(2):
        with denied():
            writer.run(statement)
        shop.owner.commit("UPDATE closed SET v = v + 1")
        shop.owner.rows("SELECT sum(v) FROM closed")
    shop.owner.connection.checkpoint()
    with denied():
        writer.run(statement)
    assert shop.owner.rows("SELECT sum(v) FROM closed") == [(34,)]


def test_the_past_is_for_those_who_may_read_the_table(shop):
    """P1, P11: by AT and AS OF, of rows in the cache table and in the history."""
    set_history(shop.owner.database.changes, Retention.parse("1 hour"), None)
    reader = shop.process("reader")
    version = shop.owner.connection.version
    before = reader.rows("SELECT * FROM open ORDER BY id")
    shop.owner.connection.rollback()
    reader.connection.rollback()
    shop.owner.commit("UPDATE open SET v = v + 1")
    shop.owner.commit("UPDATE closed SET v = v + 1")
    reader.connection.autocommit = True
    for _ in range(2):
        past = f"SELECT * FROM open AT (VERSION => {version}) ORDER BY id"
        assert reader.rows(past) == before
        now = "SELECT * FROM open FOR SYSTEM_TIME AS OF %s ORDER BY id"
        found = reader.connection.execute(now, (datetime.now(UTC),)).fetchall()
        assert found == reader.rows("SELECT * FROM open ORDER BY id")
        with denied():
            reader.run(f"SELECT * FROM closed AT (VERSION => {version})")
        with reader.connection.transaction(as_of=version):
            assert reader.rows("SELECT * FROM open ORDER BY id") == before
        with denied(), reader.connection.transaction(as_of=version):
            reader.run("SELECT * FROM closed")
        shop.owner.connection.checkpoint()


@pytest.mark.parametrize(
    ("granted", "statement"),
    [
        ("INSERT", "INSERT INTO open VALUES (9, 9, '')"),
        ("UPDATE", "UPDATE open SET v = 7 WHERE id = 1"),
        ("UPDATE", "UPDATE open SET id = 7 WHERE id = 1"),
        ("UPDATE", "UPDATE open SET v = v + 1"),
        ("DELETE", "DELETE FROM open WHERE id = 1"),
        (
            "INSERT, UPDATE",
            "INSERT INTO open VALUES (1, 1, '') ON CONFLICT (id) DO UPDATE SET v = 8",
        ),
    ],
)
def test_each_statement_takes_its_privilege(shop, granted, statement):
    shop.natively("GRANT SELECT ON open TO stranger", "GRANT reader TO stranger")
    stranger = shop.process("stranger")
    for privilege in granted.split(", "):
        with denied():
            stranger.run(statement)
        stranger.connection.rollback()
        shop.natively(f"GRANT {privilege} ON open TO stranger")
    stranger.commit(statement)
    before = shop.owner.rows("SELECT * FROM open ORDER BY id")
    assert before != [(1, 10, "a"), (2, 20, "b")]
    shop.natively(f"REVOKE {granted} ON open FROM stranger")
    with denied():
        stranger.run(statement.replace("1", "2"))
    assert shop.owner.rows("SELECT * FROM open ORDER BY id") == before


def test_names_in_quotes(shop):
    """With the word TABLE and without, and of several tables."""
    shop.owner.commit('CREATE SCHEMA "Own"')
    for table in ('"Account"', '"Own"."table"'):
        shop.owner.commit(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY)")
    shop.owner.commit('GRANT USAGE ON SCHEMA "Own" TO "reader"')
    reader = shop.process("reader")
    for granted in ('TABLE "Account", "Own"."table"', '"Own"."table", "Account"'):
        shop.owner.commit(f'GRANT SELECT ON {granted} TO "reader"')
        assert reader.rows('SELECT * FROM "Account", "Own"."table"') == []
        shop.owner.commit(f'REVOKE SELECT ON {granted} FROM "reader"')
        for table in ('"Account"', '"Own"."table"'):
            with denied():
                reader.rows(f"SELECT * FROM {table}")
            reader.connection.rollback()


def test_executemany_takes_the_privilege(shop):
    reader = shop.process("reader")
    with closing(reader.connection.cursor()) as cursor, denied():
        cursor.executemany("INSERT INTO open VALUES (%s, 1, '')", [(8,), (9,)])


def test_to_write_a_table_one_must_read_it(shop):
    """The keys are looked at by the process."""
    shop.natively("GRANT INSERT ON closed TO writer")
    writer = shop.process("writer")
    with denied("it takes SELECT"):
        writer.run("INSERT INTO closed VALUES (9, 9, '')")


def test_revoked_between_transactions(shop):
    """Also where the row is in memory."""
    writer = shop.process("writer")
    shop.owner.commit("UPDATE open SET v = 11 WHERE id = 1")
    assert writer.rows("SELECT v FROM open WHERE id = 1") == [(11,)]
    shop.natively("REVOKE ALL ON open FROM writer")
    shop.owner.commit("UPDATE open SET v = 12 WHERE id = 1")
    for query in ("SELECT v FROM open WHERE id = 1", "SELECT sum(v) FROM open"):
        with denied():
            writer.rows(query)
        writer.connection.rollback()
    shop.natively("GRANT SELECT ON open TO writer")
    assert writer.rows("SELECT v FROM open WHERE id = 1") == [(12,)]
    assert writer.rows("SELECT sum(v) FROM open") == [(32,)]


def test_revoked_within_a_transaction(shop):
    """A statement that is answered from memory notices with the next beat."""
    writer = shop.process("writer")
    shop.owner.commit("UPDATE open SET v = 11 WHERE id = 1")
    query = "SELECT v FROM open WHERE id = 1"
    assert writer.run(query).fetchall() == [(11,)]
    shop.natively("REVOKE SELECT ON open FROM writer")
    deadline = time.monotonic() + patience(10)
    with denied():
        while time.monotonic() < deadline:
            writer.run(query)


@pytest.mark.parametrize("rows", [1, ROWS], ids=["small", "bulk"])
def test_revoked_before_the_commit(shop, rows):
    """P5: nothing of it is there, and the process goes on."""
    writer = shop.process("writer")
    writer.run(
        f"INSERT INTO open SELECT _n + 10, 0, '' FROM generate_series(1, {rows}) AS _n"
    )
    shop.natively("REVOKE INSERT, UPDATE ON open FROM writer")
    with denied():
        writer.connection.commit()
    assert shop.owner.rows("SELECT count(*) FROM open") == [(2,)]
    shop.owner.commit("UPDATE open SET v = 5 WHERE id = 1")
    writer.commit("DELETE FROM open WHERE id = 2")
    assert shop.owner.rows("SELECT id, v FROM open") == [(1, 5)]
    expect_nothing_unfinished(shop.owner)


def test_revoked_for_one_in_a_group(shop):
    """P5: the other, which commits with it, is committed."""
    shop.natively("GRANT ALL ON closed TO writer")
    writer = shop.process("writer")
    other = writer.another()
    writer.run("UPDATE open SET v = 11 WHERE id = 1")
    other.execute("UPDATE closed SET v = 12 WHERE id = 1")
    shop.natively("REVOKE ALL ON open FROM writer")
    committer = writer.database.committer
    with ThreadPoolExecutor(2) as pool:
        with committer.paused(patience(10)):
            first = pool.submit(writer.connection.commit)
            second = pool.submit(other.commit)
            while len(committer._queue) < 2:
                time.sleep(0.01)
        with denied():
            first.result()
        second.result()
    other.close()
    assert shop.owner.rows("SELECT v FROM open WHERE id = 1") == [(10,)]
    assert shop.owner.rows("SELECT v FROM closed WHERE id = 1") == [(12,)]
    expect_nothing_unfinished(shop.owner)


@pytest.mark.parametrize("drained", [True, False])
@pytest.mark.parametrize("folded", [True, False])
def test_granted_after_versions_that_could_not_be_read(shop, drained, folded):
    """P1, P3: versions hidden while the process followed appear with the grant."""
    shop.natively("GRANT SELECT ON closed TO stranger", "GRANT reader TO stranger")
    reader = shop.process("stranger")
    shop.owner.commit("UPDATE closed SET v = 11 WHERE id = 1")
    assert reader.rows("SELECT v FROM closed WHERE id = 1") == [(11,)]
    shop.natively("REVOKE SELECT ON closed FROM stranger")
    shop.owner.commit("UPDATE closed SET v = 12, note = 'secret' WHERE id = 1")
    reader.rows("SELECT v FROM open WHERE id = 1")
    shop.owner.commit("DELETE FROM closed WHERE id = 2")
    shop.owner.commit("INSERT INTO closed VALUES (3, 3, '')")
    reader.rows("SELECT v FROM open WHERE id = 1")
    shown = reader.database.catalog.find("public", "closed")
    versions = reader.database.catalog.versions(shown)
    known = [list(versions.visible_rows(key, 1 << 62)) for key in [(1,), (2,), (3,)]]
    assert "secret" not in str(known)
    if drained:
        shop.owner.rows("SELECT sum(v) FROM closed")
    if folded:
        shop.owner.connection.checkpoint()
    shop.natively("GRANT SELECT, UPDATE ON closed TO stranger")
    assert reader.rows("SELECT v, note FROM closed WHERE id = 1") == [(12, "secret")]
    assert reader.rows("SELECT id FROM closed ORDER BY id") == [(1,), (3,)]
    reader.run("UPDATE closed SET v = 13 WHERE id = 1")
    shop.owner.commit("UPDATE closed SET v = 14 WHERE id = 1")
    with pytest.raises(tique.SerializationError):
        reader.connection.commit()


def test_bulk_writes(shop):
    """P1, P2, P3: beside the owner's."""
    writer = shop.process("writer")
    writer.commit(
        f"INSERT INTO open SELECT _n + 10, _n, '' FROM generate_series(1, {ROWS}) AS _n"
    )
    shop.owner.commit("UPDATE open SET v = v + 1")
    writer.commit("UPDATE open SET v = v + 1, id = id + 1 WHERE id > 10")
    writer.commit(f"DELETE FROM open WHERE id > {ROWS}")
    expected = [(ROWS - 9, sum(n + 2 for n in range(1, ROWS - 10)) + 11 + 21)]
    for process in (shop.owner, writer, shop.process("reader")):
        assert process.rows("SELECT count(*), sum(v) FROM open") == expected
    writer.run("UPDATE open SET v = 0")
    shop.owner.commit("UPDATE open SET v = 1 WHERE id = 20")
    with pytest.raises(tique.SerializationError):
        writer.connection.commit()
    writer.connection.checkpoint()
    assert shop.owner.rows("SELECT v FROM open WHERE id = 20") == [(1,)]
    expect_nothing_unfinished(shop.owner)


@pytest.mark.parametrize("key", [" PRIMARY KEY", ""], ids=["keyed", "keyless"])
def test_generated_columns(shop, key):
    """P4, P9: no version holds them, and a CHECK may be of them."""
    shop.owner.commit(
        "CREATE TABLE g (t INTEGER GENERATED ALWAYS AS (v * 2) STORED CHECK (t < 100), "
        f"id INTEGER{key}, u INTEGER GENERATED ALWAYS AS (v + 1) STORED, v INTEGER)"
    )
    shop.natively("GRANT ALL ON g TO writer")
    writer = shop.process("writer")
    writer.commit("INSERT INTO g (id, v) VALUES (1, 10), (2, 20), (3, 30)")
    writer.commit("UPDATE g SET v = 11 WHERE id = 1")
    writer.commit("DELETE FROM g WHERE id = 3")
    with pytest.raises(tique.IntegrityError):
        writer.run("UPDATE g SET v = 50 WHERE id = 2")
    writer.connection.rollback()
    writer.commit(
        f"INSERT INTO g (id, v) SELECT n, 5 FROM generate_series(3, {ROWS}) AS n"
    )
    rows = [(22, 1, 12, 11), (40, 2, 21, 20), (10, 3, 6, 5)]
    by_key = "SELECT t, id, u, v FROM g WHERE id < 4 ORDER BY id"
    for process in (writer, shop.process("writer"), shop.owner):
        assert process.rows(by_key) == rows
    for process in shop.processes:
        process.database.timeline.advance()
    writer.connection.checkpoint()
    assert not cached(writer)
    with shop.by_hand() as connection:
        assert connection.execute(by_key).fetchall() == rows


@pytest.mark.parametrize("folder", [None, "reader"])
def test_checkpoints(shop, folder):
    """P7: any process folds any table, whether or not its role may read it."""
    writer = shop.process("writer")
    writer.commit("UPDATE open SET v = 11 WHERE id = 1")
    writer.commit("DELETE FROM open WHERE id = 2")
    writer.commit("INSERT INTO open VALUES (3, 30, 'c')")
    shop.owner.commit("UPDATE closed SET v = 12 WHERE id = 1")
    checkpointing = shop.process(folder)
    for process in (writer, shop.owner):
        process.database.timeline.advance()
    checkpointing.connection.checkpoint()
    assert not cached(checkpointing)
    with shop.by_hand() as connection:
        found = connection.execute("SELECT * FROM open ORDER BY id").fetchall()
        assert found == [(1, 11, "a"), (3, 30, "c")]
        assert connection.execute("SELECT sum(v) FROM closed").fetchone() == (32,)
        left = connection.execute("SELECT count(*) FROM tique.log").fetchone()
        assert left == (0,)
    writer.commit("UPDATE open SET v = v + 1 WHERE id = 1")
    for process in (writer, shop.owner, checkpointing):
        assert process.rows("SELECT v FROM open WHERE id = 1") == [(12,)]


@pytest.mark.parametrize("reads", [True, False], ids=["drained", "folded"])
def test_values_on_their_way_through_the_server(shop, reads):
    """The server takes from the log the values that were written."""
    shop.owner.commit(f"CREATE TABLE many ({TYPES})")
    shop.owner.commit("CREATE TABLE bag (a INTEGER, t TEXT)")
    shop.natively("GRANT ALL ON many, bag TO writer")
    writer = shop.process("writer")
    with closing(writer.connection.cursor()) as cursor:
        cursor.executemany(
            "INSERT INTO many VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            VALUES,
        )
    writer.connection.commit()
    writer.commit("INSERT INTO bag VALUES (1, 'x'), (1, 'x'), (2, NULL), (3, 'y')")
    writer.commit("DELETE FROM bag WHERE a = 3")
    before = [writer.rows(f"SELECT * FROM many WHERE id = {i}") for i in (1, 2, 3)]
    writer.commit("UPDATE many SET s = 4 WHERE id = 1")
    if reads:
        assert writer.rows("SELECT id FROM many WHERE f = 'nan'") == [(1,)]
        assert len(writer.rows("SELECT * FROM bag")) == 3
    writer.connection.checkpoint()
    writer.commit("UPDATE many SET s = -3 WHERE id = 1")
    writer.commit("INSERT INTO bag VALUES (3, 'y')")
    writer.commit("DELETE FROM bag WHERE t = 'x'")
    writer.connection.checkpoint()
    shop.natively("GRANT SELECT ON many, bag TO reader")
    again = shop.process("reader")
    after = [again.rows(f"SELECT * FROM many WHERE id = {i}") for i in (1, 2, 3)]
    assert repr(after) == repr(before)
    assert again.rows("SELECT a, t FROM bag ORDER BY a") == [(2, None), (3, "y")]


def test_the_server_moves_rows_and_not_their_equals(shop):
    """P1, P7: of rows that are equal and not the same, without a key."""
    shop.owner.commit("CREATE TABLE bag (n NUMERIC, f DOUBLE PRECISION)")
    shop.natively("GRANT ALL ON bag TO writer")
    writer = shop.process("writer")
    insert = "INSERT INTO bag VALUES (1.5, 0), (1.50, 0), (1.5, '-0'), (1.50, '-0')"
    writer.commit(insert)
    for text in ("(1.50,-0)", "(1.5,0)", None):
        for process in (writer, shop.owner):
            process.database.timeline.advance()
        writer.connection.checkpoint()
        assert not cached(writer)
        if text is not None:
            writer.commit(insert)
            writer.commit(f"DELETE FROM bag WHERE CAST(ROW(n, f) AS TEXT) = '{text}'")
    with shop.by_hand() as connection:
        rows = "SELECT CAST(ROW(n, f) AS TEXT), count(*) FROM bag GROUP BY 1"
        found = dict(connection.execute(rows).fetchall())
    assert found == {"(1.50,-0)": 1, "(1.50,0)": 3, "(1.5,-0)": 3}


def test_values_that_are_logged_as_text(shop):
    """Of all other types of PostgreSQL's own."""
    shop.owner.commit(
        "CREATE TABLE many (id INTEGER PRIMARY KEY, j JSONB, a INTEGER[], r REAL, "
        "z TIMESTAMPTZ, c CHAR(4), n NUMERIC, i INTERVAL, g INT4RANGE)"
    )
    shop.natively("GRANT ALL ON many TO writer")
    writer = shop.process("writer")
    writer.commit(
        "INSERT INTO many VALUES (1, '{\"a\": [1.50]}', '[2:3]={1,NULL}', 1.5, "
        "'2020-01-01 00:00:00+02', 'ab', 1.2300, '1 day 2 hours', '[1,5)')"
    )
    writer.commit("INSERT INTO many (id, n) VALUES (2, 'NaN')")
    columns = ", ".join(f"CAST({name} AS TEXT)" for name in "jarzcnig")
    query = f"SELECT {columns} FROM many ORDER BY id"
    before = writer.rows(query)
    assert before[0][0] == '{"a": [1.50]}'
    writer.connection.checkpoint()
    assert shop.process().rows(query) == before


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE another (id INTEGER PRIMARY KEY)",
        "CREATE TEMPORARY TABLE another (id INTEGER)",
        "DROP TABLE open",
        "CREATE INDEX another ON open (v)",
    ],
)
def test_definitions_are_the_owners(shop, statement):
    writer = shop.process("writer")
    with denied("only the owner of schema tique"):
        writer.run(statement)
    with denied("only the owner of schema tique"):
        tique.adopt(shop.url("writer"), ["open"])
    shop.owner.commit("UPDATE open SET v = 5 WHERE id = 1")
    writer.connection.rollback()
    assert writer.rows("SELECT v FROM open WHERE id = 1") == [(5,)]


def test_what_the_owner_could_not_fold_is_not_taken_in(shop):
    """Versions are moved in the owner's name, by any folding role."""
    if shop.engine.sequencer == "extension":
        shop.natively("ALTER SCHEMA tique OWNER TO keeper")
        shop.natively("GRANT CREATE ON SCHEMA public TO keeper")
    above = shop.process("tique")
    with denied('TO "keeper"'):
        above.run("CREATE TABLE another (id INTEGER PRIMARY KEY)")
    above.connection.rollback()
    shop.natively("CREATE TABLE public.another (id INTEGER PRIMARY KEY)")
    shop.natively("GRANT SELECT, INSERT, UPDATE, DELETE ON public.another TO keeper")
    with denied("only keeper"):
        tique.adopt(shop.url("tique"), ["public.another"])


def test_the_owners_definitions_reach_everybody(shop):
    writer = shop.process("writer")
    shop.owner.commit("CREATE TABLE another (id INTEGER PRIMARY KEY)")
    shop.natively("GRANT SELECT, INSERT ON another TO writer")
    writer.commit("INSERT INTO another VALUES (1)")
    shop.owner.commit("DROP TABLE another")
    with pytest.raises(tique.ProgrammingError, match="another"):
        writer.run("SELECT * FROM another")


def test_privileges_of_columns_and_policies_do_not_count(shop):
    shop.natively("GRANT SELECT (id) ON closed TO writer")
    writer = shop.process("writer")
    with denied():
        writer.run("SELECT id FROM closed WHERE id = 1")
    writer.connection.rollback()
    shop.natively("ALTER TABLE open ENABLE ROW LEVEL SECURITY")
    with denied():
        writer.run("SELECT id FROM open WHERE id = 1")


def test_a_role_that_is_set(shop):
    """Privileges are those of the role that PostgreSQL goes by."""
    both = shop.process("tique", role="reader")
    assert both.rows("SELECT v FROM open WHERE id = 1") == [(10,)]
    with denied():
        both.run("SELECT v FROM closed WHERE id = 1")
    both.connection.rollback()
    with denied():
        both.run("UPDATE open SET v = 1 WHERE id = 1")
    both.connection.rollback()
    # It would be the owner's role again.
    with pytest.raises(tique.NotSupportedError, match="privileges"):
        both.run("SET ROLE NONE")
    both.connection.rollback()
    both.run("RESET ROLE")
    with denied():
        both.run("SELECT v FROM closed WHERE id = 1")


def test_after_a_restart_the_owner_comes_first(shop):
    """Recovery is for the owner only."""
    writer = shop.process("writer")
    writer.commit("UPDATE open SET v = 11 WHERE id = 1")
    shop.restart()
    with pytest.raises(tique.OperationalError, match="role that owns schema tique"):
        shop.process("writer")
    shop.process().close()
    writer = shop.process("writer")
    assert writer.rows("SELECT v FROM open WHERE id = 1") == [(11,)]


def test_killed_in_a_bulk_commit(shop):
    """P6: another ordinary role clears up after it."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.postgresql.barred_child", shop.url("writer")],
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout.readline() == "barred\n"
        child.send_signal(signal.SIGKILL)
    shop.owner.close()
    writer = shop.process("writer")
    writer.commit("UPDATE open SET v = 11 WHERE id = 1")
    assert writer.rows("SELECT count(*), sum(v) FROM open") == [(2, 31)]
    expect_nothing_unfinished(writer)


def test_given_up_while_it_lives(shop):
    """P6: its sessions are ended by its own role, and it learns of it."""
    stopped, other = shop.process("writer"), shop.process("writer")
    stopped.run("UPDATE open SET v = 0 WHERE id = 1")
    stopped.database.timeline._stopping.set()
    stopped.database.timeline._thread.join()
    with shop.by_hand() as connection:
        client = stopped.database.engine.shared.client
        connection.execute("SELECT tique.leave_client(%s)", [client])
    other.database.engine.shared.tend()
    with shop.by_hand("writer") as connection:
        found = connection.execute("SELECT count(DISTINCT epoch) FROM tique.clients")
        assert found.fetchone() == (2,)
    with pytest.raises(tique.OperationalError) as caught:
        stopped.connection.commit()
    assert caught.value.sqlstate in ("08006", "08007")
    other.commit("UPDATE open SET v = 11 WHERE id = 1")
    assert shop.owner.rows("SELECT v FROM open WHERE id = 1") == [(11,)]
