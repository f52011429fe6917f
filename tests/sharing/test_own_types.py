"""P1, P3, P6, P12: values of an application's types are held as any others.

A commit of a row with such a value is no bulk commit: it is in the log, in memory, and
only those wait for it that write the same row.
"""

from __future__ import annotations

import threading

import pytest

import tique
from tests.sharing.test_row_locks import SKIP

pytestmark = pytest.mark.written_for(["postgresql"], reason="the types are its own")

KINDS = {
    "enumeration": ("CREATE TYPE x AS ENUM ('b', 'a', 'c')", ["b", "a", "c"], "z"),
    "domain": ("CREATE DOMAIN x AS INTEGER CHECK (VALUE > 0)", [1, 2, 30], "-1"),
    "domain of numbers": (
        "CREATE DOMAIN x AS NUMERIC(8,2) CHECK (VALUE > 0)",
        ["1.50", "2.25", "30.00"],
        "-1",
    ),
    "domain of documents": (
        "CREATE DOMAIN x AS JSONB CHECK (VALUE ? 'k')",
        ['{"k": 1}', '{"k": 1.50}', '{"k": [1]}'],
        "{}",
    ),
    "domain of texts": (
        "CREATE DOMAIN x AS TEXT CHECK (VALUE LIKE '%@%')",
        ["a@b", "b@c", "c'@\"d"],
        "a",
    ),
    "domain of an enumeration": (
        "CREATE TYPE y AS ENUM ('b', 'a', 'c'); CREATE DOMAIN x AS y CHECK (VALUE < 'c')",
        ["b", "a", "a"],
        "c",
    ),
    "range": (
        "CREATE TYPE x AS RANGE (subtype = float8)",
        ["[1,2]", "[1.5,2)", "empty"],
        "[2,1]",
    ),
    "array of an enumeration": (
        "CREATE TYPE y AS ENUM ('b', 'a', 'c d'); CREATE DOMAIN x AS y[]",
        ["{b,a}", '{{"c d",NULL}}', "[2:3]={a,b}"],
        "{z}",
    ),
    "composite": (
        "CREATE TYPE y AS ENUM ('b', 'a'); CREATE TYPE x AS (a y, b TEXT, c NUMERIC[])",
        ["(b,a,)", '(,"it\'s ""(,",{1.50})', "(,,)"],
        "(z,,)",
    ),
    "array of composites": (
        "CREATE TYPE z AS (a INTEGER, b TEXT); CREATE TYPE y AS (c z, d DATE); "
        "CREATE DOMAIN x AS y[]",
        ['{"(\\"(1,b)\\",2024-02-29)"}', "{}", '{NULL,"(,)"}'],
        '{"((1),)"}',
    ),
    "array of a domain": (
        "CREATE DOMAIN y AS INTEGER CHECK (VALUE > 0); CREATE DOMAIN x AS y[]",
        ["{1,2}", "{{1,NULL}}", "[2:3]={1,2}"],
        "{-1}",
    ),
    "array of ranges": (
        "CREATE TYPE y AS RANGE (subtype = float8); CREATE DOMAIN x AS y[]",
        ['{"[1,2]",empty}', "{}", '{"[1.5,2)"}'],
        '{"[2,1]"}',
    ),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def define(process, kind):
    types, values, _ = kind
    for statement in types.split("; "):
        process.commit(statement)
    own = "y[]" if "y[]" in types else "x"
    process.commit(f"CREATE TABLE t (id INTEGER PRIMARY KEY, v {own}, n INTEGER)")
    for number, value in enumerate(values):
        process.run("INSERT INTO t VALUES (%s, %s::x, 0)", [number, str(value)])
    process.connection.commit()


EVERY = "SELECT id, v, n, v::TEXT FROM t ORDER BY id"
SORTED = "SELECT id FROM t ORDER BY v, id"


def everywhere(*processes):
    """The same rows, in the same order, for all of them."""
    found = [(each.rows(EVERY), each.rows(SORTED)) for each in processes]
    assert all(one == found[0] for one in found)
    return found[0][0]


def test_a_commit_is_none_in_bulk(process, kind):
    owner = process()
    define(owner, kind)
    for each in (owner, process()):
        catalog = each.database.catalog
        assert catalog.buffers(catalog.find(None, "t"))


@pytest.mark.slow
def test_rows_of_every_state(process, kind):
    """Inserted, updated, upserted, deleted; recent, folded, and after reopening."""
    _, values, wrong = kind
    first, second = process(), process()
    define(first, kind)
    texts = [row[3] for row in everywhere(first, second)]
    second.run("UPDATE t SET v = (SELECT v FROM t WHERE id = 1) WHERE id = 0")
    ((back, number),) = second.run(
        "INSERT INTO t VALUES (2, %s::x, 5) ON CONFLICT (id) DO UPDATE "
        "SET v = excluded.v, n = t.n + excluded.n RETURNING v::TEXT, n",
        [str(values[0])],
    ).fetchall()
    assert (back, number) == (texts[0], 5)
    second.run("INSERT INTO t SELECT id + 10, v, n FROM t WHERE id = 1")
    assert [row[3] for row in second.run(EVERY).fetchall()] == [
        texts[1],
        texts[1],
        texts[0],
        texts[1],
    ]
    second.connection.commit()
    shown = everywhere(first, second)
    first.run("DELETE FROM t WHERE v = (SELECT v FROM t WHERE id = 11)")
    first.connection.rollback()
    first.connection.checkpoint()
    assert everywhere(first, second) == shown
    second.run("UPDATE t SET n = n + 1, v = NULL WHERE id = 1")
    second.connection.commit()
    first.run("UPDATE t SET v = %s::x WHERE id = 1", [str(values[1])])
    first.connection.commit()
    assert [row[3] for row in everywhere(first, second)] == [row[3] for row in shown]
    for sql in (
        f"INSERT INTO t VALUES (7, '{wrong}', 0)",
        f"UPDATE t SET v = '{wrong}' WHERE id = 1",
        f"UPDATE t SET v = '{wrong}'",
        f"INSERT INTO t VALUES (1, '{wrong}', 0) ON CONFLICT (id) DO UPDATE SET n = 1",
        f"INSERT INTO t SELECT 8, '{wrong}', 0",
    ):
        with pytest.raises(tique.DatabaseError) as refused:
            first.run(sql)
        assert refused.value.sqlstate in ("22P02", "23514", "22000")
        first.connection.rollback()
    left = everywhere(first, second)
    first.close()
    second.close()
    assert everywhere(process()) == left


def test_workers_of_a_queue(process, kind):
    """Two that have a job each commit beside each other, and beside a new row."""
    first, second = process(), process()
    define(first, kind)
    for place, each in enumerate((first, second)):
        each.connection.lock_timeout = 5
        assert each.run(SKIP).fetchall() == [(place,)]
        each.run("UPDATE t SET v = NULL WHERE id = %s", [place])
    third = process(lock_timeout=0.5)
    third.commit("INSERT INTO t SELECT 10, v, 1 FROM t WHERE id = 2")
    thread = threading.Thread(target=first.connection.commit)
    thread.start()
    second.connection.commit()
    thread.join(20)
    assert first.rows("SELECT count(*), count(v) FROM t") == [(4, 2)]


OF_OTHERS = {
    "composite": ("CREATE TYPE x AS (a INTEGER)", "TYPE x"),
    "one within": (
        "CREATE TYPE y AS (a INTEGER); CREATE TYPE x AS (b y[], c DATE)",
        "TYPE y",
    ),
    "domain within": (
        "CREATE DOMAIN y AS INTEGER; CREATE TYPE x AS (b y)",
        "DOMAIN y",
    ),
    "array of a domain": (
        "CREATE DOMAIN y AS INTEGER; CREATE DOMAIN x AS y[]",
        "DOMAIN y",
    ),
}


@pytest.mark.parametrize("name", OF_OTHERS)
def test_texts_that_others_could_have_read(shared_engine, name):
    """P11: a type's owner decides by which code its text is read: staged, or refused."""
    native = shared_engine.native()
    types, given_away = OF_OTHERS[name]
    for statement in types.split("; "):
        native.execute(statement)
    native.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v x)")
    native.execute("DROP ROLE IF EXISTS somebody")
    native.execute("CREATE ROLE somebody")
    native.execute(f"ALTER {given_away} OWNER TO somebody")
    try:
        if given_away.startswith("DOMAIN"):
            with pytest.raises(tique.NotSupportedError, match=r"domain public\.y"):
                tique.adopt(shared_engine.url)
            return
        tique.adopt(shared_engine.url)
        with tique.connect(shared_engine.url) as connection:
            catalog = connection._database.catalog
            assert not catalog.buffers(catalog.find(None, "t"))
    finally:
        shared_engine.begin_again()
        shared_engine.native().execute("DROP ROLE somebody")


IN_KEYS = {
    "primary key": "v x PRIMARY KEY",
    "two columns": "a INTEGER DEFAULT 1, v x, PRIMARY KEY (v, a)",
    "unique": "id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v x UNIQUE",
    "keyless": "v x",
}


@pytest.mark.parametrize("shape", IN_KEYS)
def test_composites_in_keys_are_staged(process, shape):
    """P3: equal ones have several texts, as the numbers in them do."""
    owner = process()
    owner.commit("CREATE TYPE x AS (a NUMERIC)")
    owner.commit(f"CREATE TABLE t ({IN_KEYS[shape]}, n INTEGER DEFAULT 0)")
    catalog = owner.database.catalog
    assert not catalog.buffers(catalog.find(None, "t"))
    owner.commit("INSERT INTO t (v) VALUES ('(1.5)')")
    if shape != "keyless":
        with pytest.raises(tique.IntegrityError):
            owner.commit("INSERT INTO t (v) VALUES ('(1.50)')")


@pytest.mark.slow
@pytest.mark.parametrize("shape", IN_KEYS)
def test_enumerations_in_keys(process, shape):
    """Equal are those of the same name; they are sorted as the type has them."""
    first = process()
    first.commit("CREATE TYPE x AS ENUM ('c', 'b', 'a', 'd')")
    first.commit(f"CREATE TABLE t ({IN_KEYS[shape]}, n INTEGER DEFAULT 0)")
    assert first.database.catalog.buffers(first.database.catalog.find(None, "t"))
    second = process()
    first.commit("INSERT INTO t (v) VALUES ('b'), ('c')")

    def everywhere(*expected):
        for each in (first, second):
            assert each.rows("SELECT v, n FROM t ORDER BY v") == list(expected)
            assert each.rows("SELECT min(v), max(v), count(DISTINCT v) FROM t") == [
                (expected[0][0], expected[-1][0], len(expected))
            ]
            for v, n in expected:
                assert each.rows("SELECT n FROM t WHERE v = %s", [v]) == [(n,)]
            below = [row for row in expected if row[0] in "cb"]
            assert each.rows("SELECT v, n FROM t WHERE v <= 'b' ORDER BY v") == below

    everywhere(("c", 0), ("b", 0))
    first.connection.checkpoint()
    second.commit("INSERT INTO t (v) VALUES ('a')")
    everywhere(("c", 0), ("b", 0), ("a", 0))
    second.commit("UPDATE t SET n = 1 WHERE v = 'b'")
    first.commit("UPDATE t SET v = 'd' WHERE v = 'c'")
    everywhere(("b", 1), ("a", 0), ("d", 0))
    if shape != "keyless":
        for sql in (
            "INSERT INTO t (v) VALUES ('b')",
            "UPDATE t SET v = 'b' WHERE v = 'd'",
            "INSERT INTO t (v) SELECT 'b'::x",
        ):
            with pytest.raises(tique.IntegrityError):
                second.run(sql)
            second.connection.rollback()
        keys = "v, a" if shape == "two columns" else "v"
        back = second.run(
            f"INSERT INTO t (v) VALUES ('b'), ('c') ON CONFLICT ({keys}) "
            "DO UPDATE SET n = t.n + 1 RETURNING v, n"
        ).fetchall()
        assert sorted(back) == [("b", 2), ("c", 0)]
        second.connection.rollback()
        first.run("INSERT INTO t (v) VALUES ('c')")
        second.run("INSERT INTO t (v) VALUES ('c')")
        first.connection.commit()
        with pytest.raises(tique.Error) as refused:
            second.connection.commit()
        assert refused.value.sqlstate in ("40001", "23505")
        second.connection.rollback()
        first.commit("DELETE FROM t WHERE v = 'c'")
        with pytest.raises(tique.DataError):
            first.run("INSERT INTO t (v) VALUES ('z')")
        first.connection.rollback()
    first.connection.checkpoint()
    second.commit("DELETE FROM t WHERE v = 'a'")
    assert second.run("DELETE FROM t WHERE v = 'b' RETURNING v, n").fetchall() == [
        ("b", 1)
    ]
    second.connection.rollback()
    everywhere(("b", 1), ("d", 0))
    first.commit("ALTER TYPE x RENAME VALUE 'd' TO 'D'")
    everywhere(("b", 1), ("D", 0))
    first.close()
    second.close()
    first, second = process(), process()
    everywhere(("b", 1), ("D", 0))


def test_enumerations_in_foreign_keys(process):
    """P9: the parent's and the child's are held, in each of two processes."""
    first, second = process(), process()
    first.commit("CREATE TYPE x AS ENUM ('b', 'a')")
    first.commit("CREATE TABLE p (v x PRIMARY KEY)")
    first.commit(
        "CREATE TABLE c (id INTEGER PRIMARY KEY, v x DEFAULT 'a' "
        "REFERENCES p ON UPDATE CASCADE ON DELETE SET DEFAULT)"
    )
    for name in ("p", "c"):
        assert first.database.catalog.buffers(first.database.catalog.find(None, name))
    first.commit("INSERT INTO p VALUES ('a')")
    second.commit("INSERT INTO c VALUES (1, 'a')")
    for each in (first, second):
        for sql in ("DELETE FROM p", "INSERT INTO c VALUES (2, 'b')"):
            with pytest.raises(tique.IntegrityError) as refused:
                each.commit(sql)
            assert refused.value.sqlstate == "23503"
            each.connection.rollback()
    first.run("DELETE FROM c")
    first.run("DELETE FROM p")
    second.run("INSERT INTO c VALUES (2, 'a')")
    first.connection.commit()
    with pytest.raises(tique.Error) as refused:
        second.connection.commit()
    assert refused.value.sqlstate in ("40001", "23503")
    second.connection.rollback()
    first.commit("INSERT INTO p VALUES ('a')")
    second.commit("INSERT INTO c VALUES (1, 'a')")
    first.connection.checkpoint()
    for change, expected in (
        ("UPDATE p SET v = 'b'", "b"),
        ("INSERT INTO p VALUES ('a')", "b"),
        ("DELETE FROM p WHERE v = 'b'", "a"),
    ):
        second.commit(change)
        for each in (first, second):
            assert each.rows("SELECT * FROM c") == [(1, expected)]
