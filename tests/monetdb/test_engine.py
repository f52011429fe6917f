"""tique's schema, folding, recovery and the log on MonetDB."""

from __future__ import annotations

import random
import time
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from tests.monetdb.model import Model, append, bag_model, keyed_model
from tique_backends.engine import FORMAT_VERSION
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.monetdb import folding
from tique_backends.monetdb.values.inserting import insert
from tique_backends.names import cache_name
from tique_backends.records import MISSING, CommitRecord, Versions

KEYED = "a INTEGER, b VARCHAR(9), v INTEGER, w CLOB, PRIMARY KEY (b, a)"
BAG = "a INTEGER, b VARCHAR(9)"
SEEDS = range(6)


def stored(session, table):
    sql = f'SELECT * FROM app."{table.name}"'
    return Counter(session.execute(sql).fetch_all())


def cached(session, table):
    sql = f"SELECT * FROM {cache_name(table)}"
    return Counter(session.execute(sql).fetch_all())


def expected_cache(model):
    return Counter((*row, cts, deleted) for cts, row, deleted in model.cache)


def records(model, txid=1000):
    """The model's versions as commit records."""
    by_cts = {}
    for cts, row, deleted in model.cache:
        by_cts.setdefault(cts, []).append((row, deleted))
    return [
        CommitRecord(cts, txid + cts, {model.table.id: writes})
        for cts, writes in sorted(by_cts.items())
    ]


@pytest.fixture(params=SEEDS)
def number(request):
    return random.Random(request.param)


@pytest.fixture(params=["keyed", "bag"])
def model(request, managed, number):
    if request.param == "bag":
        return bag_model(managed("t", BAG), number)
    return keyed_model(managed("t", KEYED), number)


def test_fold(model, session, engine):
    model.fill(session)
    for until in (0, 3, 3, 9, 99):
        assert engine.fold(session, model.table, until) == model.fold(until)
        assert stored(session, model.table) == Counter(model.storage)
        assert cached(session, model.table) == expected_cache(model)
        commits = engine.cached_commits(session, model.table)
        assert sum(rows for _, rows in commits) == len(model.cache)


class Crash(BaseException):
    pass


def test_a_fold_that_is_cut_short_anywhere_leaves_nothing(
    model, home, session, engine, monkeypatch
):
    """P5: the process dies before some statement of the fold."""
    model.fill(session)
    before = stored(session, model.table), cached(session, model.table)
    moves = 0
    while True:
        victim = home.session(engine)
        ask, left = victim._connection._send, [None] * moves

        def dying(sql, *, ask=ask, left=left, victim=victim, **options):
            if not left:
                victim._connection._wire.mapi.sock.close()
                raise Crash
            left.pop()
            return ask(sql, **options)

        monkeypatch.setattr(victim._connection, "_send", dying)
        try:
            engine.fold(victim, model.table, 9)
        except Crash:
            assert (
                stored(session, model.table),
                cached(session, model.table),
            ) == before
            moves += 1
        else:
            break
        finally:
            monkeypatch.undo()
    assert moves >= 5
    model.fold(9)
    assert stored(session, model.table) == Counter(model.storage)
    assert cached(session, model.table) == expected_cache(model)


@pytest.mark.parametrize("unique", [False, True])
def test_store(managed, session, engine, number, unique):
    """From rows that the driver knows, with gaps where nothing changed."""
    extra = ", UNIQUE (a, b)" if unique else ""
    table = managed("t", KEYED + extra)
    model = keyed_model(table, number)
    model.fill(session)
    by_key = {model.key(row): row for row in model.storage}
    rows = model.newest(9)
    for key, row in rows.items():
        old = by_key.get(key)
        if row is not None and old is not None:
            # Unchanged values are not known.
            rows[key] = tuple(
                MISSING if new == was and i > 1 else new
                for i, (new, was) in enumerate(zip(row, old, strict=True))
            )
    model.fold(9)
    engine.store(session, table, rows, 9)
    assert stored(session, table) == Counter(model.storage)
    assert cached(session, table) == expected_cache(model)
    # A round after a crash has the same rows again.
    engine.store(session, table, rows, 9)
    assert stored(session, table) == Counter(model.storage)


def test_store_of_new_keys(managed, session, engine):
    """Nothing is looked for in their place, and there is nothing."""
    table = managed("t", "k INTEGER PRIMARY KEY, v INTEGER")
    session.execute("INSERT INTO app.t VALUES (1, 1), (2, 2)")
    rows = {(1,): None, (2,): (2, 20), (3,): (3, 30), (4,): None}
    engine.store(session, table, rows, 1, {(3,), (4,)})
    assert stored(session, table) == Counter([(2, 20), (3, 30)])
    engine.store(session, table, {(5,): (5, 5)}, 1, {(5,)})
    assert stored(session, table) == Counter([(2, 20), (3, 30), (5, 5)])


def test_store_of_unique_values_that_change_places(managed, session, engine):
    """A new row has a value that a row that is known in part gives up."""
    table = managed("t", "k INTEGER PRIMARY KEY, u INTEGER, v INTEGER, UNIQUE (u)")
    session.execute("INSERT INTO app.t VALUES (1, 10, 1), (2, 20, 2), (3, 30, 3)")
    rows = {
        (1,): (1, 20, MISSING),
        (2,): (2, 40, MISSING),
        (3,): None,
        (4,): (4, 30, 4),
        (5,): (5, 10, 5),
    }
    engine.store(session, table, rows, 1)
    expected = [(1, 20, 1), (2, 40, 2), (4, 30, 4), (5, 10, 5)]
    assert stored(session, table) == Counter(expected)


def test_store_of_many_rows(managed, session, engine):
    table = managed("t", "k BIGINT PRIMARY KEY, v VARCHAR(20), w INTEGER")
    session.execute(
        "INSERT INTO app.t SELECT n, 'old', 1 FROM (SELECT row_number() OVER () AS n "
        "FROM sys.columns, (VALUES (1), (2), (3)) AS v(v)) AS x WHERE n <= 1100"
    )
    rows = {(n,): (n, f"new {n}", MISSING) for n in range(1, 1101)}
    rows |= {(n,): (n, "whole", 2) for n in range(1101, 2300)}
    rows[(5,)] = None
    engine.store(session, table, rows, 7)
    expected = {n: (n, f"new {n}", 1) for n in range(1, 1101)}
    expected |= {n: (n, "whole", 2) for n in range(1101, 2300)}
    del expected[5]
    assert stored(session, table) == Counter(expected.values())


def test_replay(model, session, engine):
    """Versions that are in the log and not in the cache table, once."""
    model.fill_storage(session)
    for group in (records(model)[:4], records(model)[4:5], records(model)[5:]):
        if group:
            session.log(group)
    assert engine.replay(session, model.table) == len(model.cache)
    assert cached(session, model.table) == expected_cache(model)
    assert engine.replay(session, model.table) == 0


def test_crash_between_log_and_cache(model, session, engine):
    """Some of a log entry's commits reached the cache table, some were folded."""
    model.fill_storage(session)
    session.log(records(model))
    arrived = [entry for entry in model.cache if entry[0] <= 6]
    append(session.append, model.table, arrived)
    model.fold(3)
    engine.fold(session, model.table, 3)
    assert engine.remove_orphans(session, model.table) == 0
    late = len([entry for entry in model.cache if entry[0] > 6])
    assert engine.replay(session, model.table) == late
    assert cached(session, model.table) == expected_cache(model)
    last = engine.last_commit(session)
    engine.fold(session, model.table, last)
    model.fold(last)
    assert stored(session, model.table) == Counter(model.storage)
    # Recovery that was cut short starts over.
    assert engine.replay(session, model.table) == 0
    assert engine.fold(session, model.table, last) == 0
    assert stored(session, model.table) == Counter(model.storage)


EVERY_TYPE = {
    "BOOLEAN": True,
    "TINYINT": -127,
    "SMALLINT": 7,
    "INTEGER": -(2**31) + 1,
    "BIGINT": 2**63 - 1,
    "HUGEINT": 2**127 - 1,
    "DOUBLE": 0.1,
    "DECIMAL(12,2)": Decimal("-9999999999.99"),
    "DECIMAL(38,0)": Decimal(10**38 - 1),
    "CLOB": "it's \\ \u0085 \u2028 \U0001f600 {}",
    "VARCHAR(4)": "\t\n\"'",
    "CHAR(3)": "a  ",
    "BLOB": b"\x00'\xff",
    "DATE": date(1, 1, 1),
    "TIMESTAMP": datetime(999, 1, 2, 3, 4, 5, 678901),
    "TIMESTAMP(3)": "20000-02-29 23:59:59.9999999",
    "TIMESTAMP WITH TIME ZONE": "2026-01-02 03:04:05.678901+00:00",
    "TIME(6)": "03:04:05.678901",
    "TIME(3)": "23:59:59.9999999",
    "TIME WITH TIME ZONE": "03:04:05+00:00",
    "INTERVAL YEAR": "-38",
    "INTERVAL DAY": "86401.5",
    "INTERVAL HOUR": "9223372036854775.807",
    "REAL": "-0",
    "JSON": '{"a" : 1.50}',
    "INET": "10.0.0.1/8",
    "URL": "HTTP://a.example/\u00e9",
    "UUID": UUID(int=1),
}
"""As they are kept."""


def test_replay_of_every_type_and_of_gaps(managed, session, engine):
    columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(EVERY_TYPE))
    table = managed("t", f"k BLOB, n INTEGER, {columns}, PRIMARY KEY (n)")
    values = tuple(EVERY_TYPE.values())
    assert all(engine.keeps(kind) for kind in EVERY_TYPE)
    nothing = (None,) * len(values)
    session.change(insert("app.t", [(b"stored", 2, *values)], table.types))
    writes = [
        ((b"", 1, *values), False),
        ((None, 3, *nothing), True),
        ((MISSING, 2, *[MISSING] * len(values)), False),
    ]
    session.log([CommitRecord(4, 1, {table.id: writes}), CommitRecord(5, 2, {})])
    assert engine.replay(session, table) == 3
    found = session.rows_to_keep(f"SELECT * FROM {cache_name(table)} ORDER BY n")
    assert found == [
        (b"", 1, *values, 4, False),
        (b"stored", 2, *values, 4, False),
        (None, 3, *nothing, 4, True),
    ]
    assert [type(v) for v in found[0]] == [type(v) for v in found[1]]


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), "a\0b", "\udc00", UUID(int=0)]
)
def test_what_could_not_be_replayed_is_not_logged(session, engine, managed, value):
    """A commit fails before it is durable, or not at all."""
    managed("t", "v CLOB")
    with pytest.raises(EngineError) as refusal:
        session.log([CommitRecord(1, 1, {1: [(("ok", MISSING, value), False)]})])
    assert refusal.value.kind is ErrorKind.DATA
    assert engine.last_commit(session) == 0
    session.log([CommitRecord(1, 1, {1: [(("\\u0000 \U0001f600",), False)]})])
    assert engine.last_commit(session) == 1


def test_orphans(managed, session, engine):
    """Versions whose commit record is neither in the log nor an outcome."""
    table = managed("t", BAG)
    rows = [(cts, "x") for cts in (1, 2, 3, 4, 5)]
    session.append(Versions(table, rows, [1, 2, 3, 4, 5], [False] * 5))
    session.log([CommitRecord(1, 11, {}), CommitRecord(2, 12, {})])
    session.log([CommitRecord(4, 14, {})])
    engine.prune_log(session, 2, 3600)
    assert engine.remove_orphans(session, table) == 2
    assert {row[0] for row in cached(session, table)} == {1, 2, 4}
    assert engine.remove_orphans(session, table) == 0


def test_outcomes(managed, session, engine):
    """P4: the outcome of a transaction can be asked for as long as it is kept."""
    assert engine.last_commit(session) == 0
    assert engine.forgotten_until(session) == 0
    session.log([CommitRecord(1, 101, {}), CommitRecord(2, 102, {})])
    session.log([CommitRecord(3, 10, {9: [((102, 55), False)]})])
    assert [engine.find_commit(session, t) for t in (101, 102, 10)] == [1, 2, 3]
    assert [engine.find_commit(session, t) for t in (1, 55, 1011)] == [None] * 3
    # An entry is pruned as a whole, by its last commit.
    engine.prune_log(session, 1, 3600)
    assert session.execute("SELECT count(*) FROM tique.log").fetch_all() == [(2,)]
    engine.prune_log(session, 2, 3600)
    assert session.execute("SELECT cts FROM tique.log").fetch_all() == [(3,)]
    assert [engine.find_commit(session, t) for t in (101, 102, 10)] == [1, 2, 3]
    assert engine.last_commit(session) == 3
    engine.prune_log(session, 3, 3600)
    assert engine.forgotten_until(session) == 0
    time.sleep(0.01)
    engine.prune_log(session, 3, 0)
    assert [engine.find_commit(session, t) for t in (101, 102, 10)] == [None, None, 3]
    assert engine.forgotten_until(session) == 102
    assert engine.last_commit(session) == 3
    engine.prune_log(session, 3, 0)
    assert engine.forgotten_until(session) == 102


def test_management(home, session, engine):
    session.execute('CREATE TABLE app."a""b" (n INTEGER NOT NULL, v VARCHAR(3))')
    session.execute("CREATE TABLE app.c (n INTEGER PRIMARY KEY)")
    session.log([CommitRecord(6, 1, {})])
    first = engine.manage(session, engine.describe(session, "app", 'a"b'))
    second = engine.manage(session, engine.describe(session, "app", "c"))
    assert [(t.name, t.id) for t in engine.managed_tables(session)] == [
        ('a"b', first.id),
        ("c", second.id),
    ]
    assert first.id != second.id
    # Commits before it came do not concern it.
    session.log([CommitRecord(7, 2, {second.id: [((1,), False)]})])
    assert engine.replay(session, second) == 1
    with pytest.raises(EngineError) as refusal:
        session.append(Versions(first, [(None, "x")], [8], [False]))
    assert refusal.value.kind is ErrorKind.NOT_NULL
    engine.unmanage(session, second)
    third = engine.manage(session, second)
    assert third.id > second.id
    assert engine.cached_commits(session, third) == []
    assert engine.replay(session, third) == 0


def test_definitions_can_be_rolled_back(session, engine):
    session.execute("CREATE TABLE app.c (n INTEGER PRIMARY KEY)")
    session.begin()
    engine.manage(session, engine.describe(session, "app", "c"))
    session.rollback()
    assert engine.managed_tables(session) == []
    assert engine.manage(session, engine.describe(session, "app", "c")).id == 1


def test_install_and_uninstall(home):
    engine = home.open(install=False)
    assert not engine.is_managed()
    session = home.session(engine)
    engine.install(session)
    assert engine.is_managed()
    assert engine.format_version() == FORMAT_VERSION
    assert engine.next_epoch(session) == 1
    assert engine.next_epoch(session) == 2
    assert not engine.compact(session, force=True)
    session.begin()
    engine.uninstall(session)
    session.rollback()
    assert engine.is_managed()
    home.session(engine).log([CommitRecord(1, 1, {})])
    session.begin()
    engine.uninstall(session)
    session.commit()
    assert not engine.is_managed()
    assert home.session(engine).execute("SELECT 1").fetch_all() == [(1,)]
    names = "SELECT name FROM sys.schemas WHERE name = 'tique'"
    assert session.execute(names).fetch_all() == []


def test_install_is_all_or_nothing(home, monkeypatch):
    engine = home.open(install=False)
    session = home.session(engine)
    monkeypatch.setattr(engine.shared, "schema", lambda: ["SELECT nothing"])
    with pytest.raises(EngineError, match="nothing"):
        engine.install(session)
    monkeypatch.undo()
    assert not engine.is_managed()
    engine.install(session)
    assert engine.is_managed()


def test_nothing_is_opened_after_the_end(home):
    engine = home.open()
    session = home.session(engine)
    engine.close()
    engine.close()
    with pytest.raises(EngineError) as refusal:
        engine.is_managed()
    assert refusal.value.kind is ErrorKind.OPERATIONAL
    session.close()
    home.open()


def test_completed():
    assert folding.completed((1, MISSING, None), (9, 8, 7)) == (1, 8, None)


def test_model():
    """The model itself, on a case that can be checked by eye."""
    table = type("T", (), {"primary_key": (0,), "is_keyless": False})()
    model = Model(table, [(1, "a"), (2, "b")])
    model.cache = [(5, (1, "c"), False), (6, (2, "b"), True), (7, (3, "d"), False)]
    assert model.snapshot(5) == Counter([(1, "c"), (2, "b")])
    assert model.snapshot(9) == Counter([(1, "c"), (3, "d")])
    assert model.fold(6) == 2
    assert sorted(model.storage) == [(1, "c")]
