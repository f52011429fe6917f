"""A MonetDB session whose transaction the engine aborts for another's sake."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tique_backends.errors import ConflictError, ErrorKind
from tique_backends.monetdb.errors import UnreadableError
from tique_backends.names import cache_name
from tique_backends.records import CommitRecord, Versions


def test_appends_and_deletes_lose_nothing_of_each_other(home, engine, managed):
    """Every one of them commits, however often the engine aborts it."""
    table = managed("c", "k INTEGER, v INTEGER")
    stopped = threading.Event()

    def fold():
        session = home.session(engine)
        moved = 0
        while not stopped.is_set():
            moved += engine.fold(session, table, session.newest_version(table))
            engine.prune_log(session, engine.last_commit(session), 3600)
        return moved

    def append():
        session = home.session(engine)
        for cts in range(1, 301):
            session.append(
                Versions(table, [(cts, 0), (cts, 1)], [cts] * 2, [False] * 2)
            )

    def log():
        session = home.session(engine)
        for cts in range(1, 301):
            session.log([CommitRecord(cts, 1000 + cts, {})])

    with ThreadPoolExecutor(3) as pool:
        folding = pool.submit(fold)
        for work in [pool.submit(append), pool.submit(log)]:
            work.result()
        stopped.set()
        moved = folding.result()
    session = home.session(engine)
    moved += engine.fold(session, table, 300)
    assert moved == 600
    rows = session.execute("SELECT k, v FROM app.c").fetch_all()
    assert sorted(rows) == [(cts, v) for cts in range(1, 301) for v in (0, 1)]
    engine.prune_log(session, 300, 3600)
    for txid in (1001, 1150, 1300):
        assert engine.find_commit(session, txid) == txid - 1000


@pytest.fixture(params=[ConflictError, UnreadableError])
def conflicts(session, monkeypatch, request):
    """Have the engine abort the session's next transactions at their end."""
    ask = session._connection._send

    def abort(times):
        left = [None] * times

        def aborting(sql, **options):
            if left and (sql == "COMMIT" or sql.startswith("INSERT INTO tique.log")):
                left.pop()
                if sql == "COMMIT":
                    ask("ROLLBACK")
                raise request.param(ErrorKind.OPERATIONAL, "conflict")
            return ask(sql, **options)

        monkeypatch.setattr(session._connection, "_send", aborting)

    return abort


@pytest.mark.parametrize("times", [0, 1, 5])
def test_a_transaction_of_appends_is_repeated(
    home, engine, managed, session, conflicts, times
):
    """A bulk commit meets a fold: its staged rows are appended once."""
    table = managed("c", "k INTEGER, v INTEGER")
    session.create_stage(table)
    session.stage(Versions(table, [(1, 1), (2, 2)], [1, 1], [False, False]))
    session.begin()
    assert session.append_staged(table, 5) == 2
    session.log([CommitRecord(5, 55, {})])
    conflicts(times)
    session.commit()
    other = home.session(engine)
    cache = cache_name(table)
    found = other.execute(f"SELECT k, _cts FROM {cache} ORDER BY k").fetch_all()
    assert found == [(1, 5), (2, 5)]
    logged = other.execute("SELECT cts FROM tique.log").fetch_all()
    assert logged == [(5,)]


def test_a_staged_query_that_meets_a_commit_is_repeated_as_a_whole(
    managed, session, monkeypatch
):
    """Its transaction is broken: only a new one can stage the rows."""
    table = managed("c", "k INTEGER, v INTEGER")
    session.create_stage(table)
    ask, left = session._connection._send, [None]

    def breaking(sql, **options):
        if left and "; INSERT INTO " in sql:
            left.pop()
            ask("START TRANSACTION")
            raise UnreadableError(ErrorKind.OPERATIONAL, "unable to find app.c(k)")
        return ask(sql, **options)

    monkeypatch.setattr(session._connection, "_send", breaking)
    assert session.stage_query(table, "SELECT 1, 2, 7, FALSE", []) == 1
    assert not left


def test_a_transaction_with_other_statements_is_not_repeated(
    engine, managed, session, conflicts
):
    """It may depend on its reads."""
    table = managed("c", "k INTEGER, v INTEGER")
    session.begin()
    session.execute("SELECT count(*) FROM app.c")
    session.append(Versions(table, [(1, 1)], [5], [False]))
    conflicts(1)
    with pytest.raises(ConflictError):
        session.commit()
    assert engine.cached_commits(session, table) == []


def test_patience_has_an_end(session, conflicts):
    conflicts(1000)
    with pytest.raises(ConflictError):
        session.log([CommitRecord(1, 1, {})])
    conflicts(3)
    session.log([CommitRecord(2, 2, {})])
    assert session.execute("SELECT cts FROM tique.log").fetch_all() == [(2,)]


def test_transact_starts_again_from_what_it_reads(home, engine, session):
    session.execute("CREATE TABLE app.n (n INTEGER)")
    session.execute("INSERT INTO app.n VALUES (0)")
    seen = []

    def body():
        ((n,),) = session.execute("SELECT n FROM app.n").fetch_all()
        seen.append(n)
        if len(seen) == 1:
            home.session(engine).execute("UPDATE app.n SET n = 10")
        session.execute("UPDATE app.n SET n = $1", [n + 1])
        return n

    assert session.transact(body) == 10
    assert seen == [0, 10]
    assert session.execute("SELECT n FROM app.n").fetch_all() == [(11,)]
