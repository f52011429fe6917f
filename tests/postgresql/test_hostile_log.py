"""P11: log entries of other roles are untrusted input, and stop no process."""

from __future__ import annotations

import psycopg
import pytest

from tests.postgresql.privileges import Hand, denied, tables_of

GOOD = '[{"%(open)s":[[0,9,90,"x"]]}]'

# Entries that a role that may write the table could log once, and an owner always can.
UNREADABLE = (
    '[{"%(open)s":[[0,7,{},"gap"]]}]',
    '[{"%(open)s":[[1,8,{},{}]]}]',
    '[{"%(open)s":[[0,1]]}]',
    '[{"%(open)s":[[0,1,10,"a",5]]}]',
    '[{"%(open)s":[[]]}]',
    '[{"%(open)s":[7]}]',
    '[{"%(open)s":[{"0":1}]}]',
    '[{"%(open)s":["0123"]}]',
    '[{"%(open)s":{"a":1}}]',
    '[{"%(open)s":7}]',
    '[{"%(open)s":null}]',
    '[{"%(open)s":[[7,1,10,"a"]]}]',
    '[{"%(open)s":[[null,1,10,"a"]]}]',
    '[{"%(open)s":[["0",1,10,"a"]]}]',
    '[{"%(open)s":[[0,null,10,"a"]]}]',
    '[{"%(open)s":[[0,{},10,"a"]]}]',
    '[{"%(open)s":[[0,1,"ten","a"]]}]',
    '[{"%(open)s":[[0,1,[],"a"]]}]',
    '[{"%(open)s":[[0,1,{"b":2},"a"]]}]',
    '[{"%(open)s":[[0,1,10,[["a"]]]]}]',
    '[{"%(open)s":[[0,1,10,"a"]]},{},false,{"%(open)s":[3]}]',
    '[{"%(open)s":[[0,1,10,"a"]]},{},false,{"%(open)s":[-1]}]',
)
NO_COMMITS = (
    "[]",
    "{}",
    "5",
    "null",
    "[5]",
    "[null]",
    "[[]]",
    "[{},[]]",
    '[{},{"%(open)s":"a"}]',
    '[{},{"%(open)s":null}]',
    '[{},{"x":1}]',
    '[{"x":[]}]',
    '[{"-1":[]}]',
    "[{},{},5]",
    "[{},{},true,1]",
    "[{},{},0,{}]",
    '[{},{},false,{"x":[]}]',
    '[{},{},false,{"1":[true]}]',
    '[{},{},false,{"1":{}}]',
    "[{},{},true,{},{}]",
)


def by_owner(shop, entry):
    """Log the entry past all checks, as it may be there from before; its timestamp."""
    with shop.by_hand(shop.keeper) as connection:
        sql = (
            "SELECT stamps[1] FROM tique.join_client(60000) AS c, "
            "LATERAL tique.append(c, tique.sts(), %s, '{1}', '{1}', %s)"
        )
        row = connection.execute(sql, [b"0123456789abcdef", entry]).fetchone()
        return row[0]


def expect(process, rows):
    """The rows are found by their keys, and by a scan."""
    assert process.rows("SELECT id, v, note FROM open ORDER BY id") == rows
    for number in (1, 2, 7, 9):
        found = process.rows("SELECT id, v, note FROM open WHERE id = %s", [number])
        assert found == [row for row in rows if row[0] == number]
    total = process.rows("SELECT count(*), sum(v) FROM open WHERE id > 0")
    assert total == [(len(rows), sum(row[1] for row in rows))]


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["owner", "reader"])
@pytest.mark.parametrize("reads", [True, False], ids=["read", "unread"])
def test_entries_that_cannot_be_applied(shop, folder, reads):
    """They are named, and all processes read, write, fold and open as before."""
    tables = tables_of(shop)
    reader = shop.process("reader")
    reader.rows("SELECT * FROM open")
    stamps = [by_owner(shop, entry % tables) for entry in UNREADABLE]
    nothing = [by_owner(shop, entry % tables) for entry in NO_COMMITS]
    writer = shop.process("writer")
    writer.commit("UPDATE open SET v = 11 WHERE id = 1")
    shop.owner.commit("INSERT INTO open VALUES (9, 90, 'x')")
    rows = [(1, 11, "a"), (2, 20, "b"), (9, 90, "x")]
    processes = [shop.owner, reader, writer, shop.process(), shop.process("reader")]
    if reads:
        for process in processes:
            expect(process, rows)
    for process in processes:
        process.database.timeline.advance()
    folding = shop.owner if folder == "owner" else reader
    folding.connection.checkpoint()
    for process in (*processes, shop.process(), shop.process("writer")):
        expect(process, rows)
    with shop.by_hand() as connection:
        stored = connection.execute("SELECT id, v, note FROM open ORDER BY id")
        assert stored.fetchall() == rows
    found = shop.owner.connection.status().set_aside
    shown = {part.cts for part in found if part.table == "public.open"}
    # A tombstone of a missing row does no harm.
    assert shown | {stamps[1]} == set(stamps)
    named = {part.cts for part in found if part.table is None}
    assert named.issuperset(set(nothing) - {nothing[11], nothing[12]})


def test_entries_that_cannot_be_applied_after_a_restart(shop):
    """P4, P5: recovery replays the entries that can be applied."""
    tables = tables_of(shop)
    for entry in (*UNREADABLE, *NO_COMMITS):
        by_owner(shop, entry % tables)
    by_owner(shop, GOOD % tables)
    shop.restart()
    owner = shop.process()
    rows = [(1, 10, "a"), (2, 20, "b"), (9, 90, "x")]
    for process in (owner, shop.process("reader")):
        expect(process, rows)
    assert owner.connection.status().set_aside


@pytest.fixture
def hand(shop):
    with shop.by_hand("writer") as connection:
        yield Hand(connection, tables_of(shop))


@pytest.mark.parametrize(
    "entry",
    [
        *UNREADABLE,
        *NO_COMMITS,
        '[{"%(open)s":[[0,"1",10,"a"]]}]',
        '[{"%(open)s":[[0,1.0,10,"a"]]}]',
        '[{"%(open)s":[[0,1,10,true]]}]',
        "[{}",
    ],
)
def test_entries_are_looked_at_when_they_are_appended(shop, hand, entry):
    """An entry that was never written need not be set aside."""
    with pytest.raises(psycopg.Error) as caught:
        hand.append_text(entry % hand.tables)
    assert caught.value.sqlstate[:2] in ("22", "42")
    assert hand.append_text(GOOD % hand.tables) > 0
    assert len(shop.owner.rows("SELECT id FROM open")) == 3


@pytest.mark.parametrize(
    "entry",
    [
        '[{"%(open)s":[[0,9,90,"x"],[0,9,91,"y"]]}]',
        '[{"%(open)s":[[1,1,10,"a"],[0,1,11,"a"]]}]',
        '[{"%(open)s" :[[0,9,90,"x"]]}]',
        '[{"%(open)s":[[0,9,90,"x" ]]}]',
        '[{"%(open)s":[[0,9,90,"x"]]}]\n',
        '[{"%(open)s":[[0,9,90,"' + "x" * (1 << 25) + '"]]}]',
    ],
    ids=["twice", "both", "blank", "blank inside", "line", "long"],
)
def test_entries_that_the_driver_would_not_write(shop, hand, entry):
    """Two versions of a key, blanks that a reader may stumble over, too much for one."""
    with denied(".", psycopg.errors.InsufficientPrivilege):
        hand.append_text(entry % hand.tables)
    quoted = '[{"%(open)s":[[0,9,9,"\\" x"]]}]'
    assert hand.append_text(quoted % hand.tables) > 0
    assert shop.owner.rows("SELECT note FROM open WHERE id = 9") == [('" x',)]


@pytest.mark.parametrize(
    ("counts", "txids", "entries"),
    [
        ("{1,1}", "{T}", GOOD),
        ("{1}", "{T,T}", GOOD),
        ("{-1}", "{T}", GOOD),
        ("{2}", "{T}", GOOD),
        ("{0}", "{T}", GOOD),
        ("{NULL}", "{T}", GOOD),
        ("{1}", "{NULL}", GOOD),
        ("{1}", "{T}", GOOD + "\x1f" + GOOD),
        ("{1}", "{T}", ""),
        ("{1}", "{T}", None),
        ("{{1}}", "{{T}}", GOOD),
        ("[0:0]={1}", "[0:0]={T}", GOOD),
        ("{}", "{}", GOOD),
        (None, "{T}", GOOD),
        ("{1}", None, GOOD),
    ],
)
def test_commits_that_do_not_fit_together(shop, hand, counts, txids, entries):
    with pytest.raises(psycopg.Error) as caught:
        hand.run(
            "SELECT tique.guest_append(%s, tique.sts(), %s, %s::INTEGER[], "
            "%s::BIGINT[], %s)",
            hand.client,
            b"0123456789abcdef",
            counts,
            txids and txids.replace("T", str(hand.txid)),
            entries and entries % hand.tables,
        )
    assert caught.value.sqlstate[:2] in ("22", "42"), caught.value
    shop.owner.commit("UPDATE open SET v = 11 WHERE id = 1")
    assert hand.append_text(GOOD % hand.tables) > 0


def test_versions_of_a_row_that_is_gone(shop, hand):
    """With gaps that storage cannot fill any more: the keys of a write set are believed."""
    shop.owner.database.timeline.advance()
    shop.owner.connection.checkpoint()
    shop.owner.commit("DELETE FROM open WHERE id = 1")
    ghost = '[{"%(open)s":[[0,1,{},"ghost"]]}]'
    stamp = hand.append_text(ghost % hand.tables)
    assert stamp > 0
    reader = shop.process("reader")
    reader.rows("SELECT note FROM open WHERE id = 2")
    reader.database.timeline.advance()
    with shop.by_hand(shop.keeper) as connection:
        connection.execute("DELETE FROM open WHERE id = 1")
    again = shop.process()
    for process in (reader, again, shop.owner):
        assert process.rows("SELECT note FROM open WHERE id = 1") in ([], [("ghost",)])
        assert process.rows("SELECT count(*) FROM open WHERE id = 2") == [(1,)]
    again.connection.checkpoint()
    expect(again, [(2, 20, "b")])


def test_a_failure_to_move_versions_shows_none(shop):
    """A role that folds a table need not be allowed to read it."""
    shop.natively("GRANT USAGE ON SCHEMA tique TO stranger")
    number = int(tables_of(shop)["closed"])
    shop.owner.commit("UPDATE closed SET v = 15, note = 'secret'")
    shop.natively("ALTER TABLE closed ADD CHECK (v < 15) NOT VALID")
    shop.owner.database.timeline.advance()
    sql = "SELECT tique.guest_fold(%s, tique.sts(), NULL)"
    with shop.by_hand("stranger") as connection, pytest.raises(psycopg.Error) as caught:
        connection.execute(sql, [number])
    assert caught.value.sqlstate == "23514"
    shown = caught.value.diag
    assert "secret" not in f"{caught.value} {shown.message_detail} {shown.context}"
