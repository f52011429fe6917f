"""P1, P2, P4, P5 of replicas: each read of one is its source at some version, in order."""

from __future__ import annotations

import time
from contextlib import closing
from itertools import count

import pytest

import tique
from jepsen import checker
from jepsen.checker.models import Model
from jepsen.history import Operation
from jepsen.recorder import count as counted
from jepsen.replica_mutations import REPLICA
from jepsen.runner import Request, Run
from tests.plugins.engine import PostgreSQL
from tests.sharing.playing import Process
from tique.connection.routing.router import Router
from tique.replica.source import Source
from tique.timeline.replica import ReplicaTimeline
from tique_backends.catalog import replicas
from tique_backends.records import CommitRecord
from tique_backends.sharing import SharedSnapshot

SYSTEMS = [
    pytest.param("monetdb", marks=pytest.mark.monetdb),
    pytest.param("postgresql", marks=pytest.mark.postgresql),
]
ABORTED, TWICE, OWN_LOST = SCHEDULED = (
    *("applies-what-was-aborted", "applies-twice"),
    "ignores-own-commits",
)
SECONDS = 12
PATIENCE = 150
"""Seconds in which a mutation must be found."""
LOG = {
    "balances": [[3, 0, 20], [3, 1, 20], [5, 0, 15], [5, 1, 25]],
    "appends": [[4, 8, 1], [6, 8, 2]],
}
OWN = ("look-own", {"list": 8, "elements": [1]})
OLD, NEW = {0: 20, 1: 20}, {0: 15, 1: 25}


def look(version, accounts, elements, rows=None):
    lists = {"lists": {8: elements}, "rows": {8: rows or elements}}
    return "look", {"version": version, "life": 1, "accounts": accounts, **lists}


@pytest.mark.parametrize(
    ("found", "done"),
    [
        ({}, [look(4, OLD, [1]), look(6, NEW, [1, 2])]),
        ({}, [look(2, {0: 0, 1: 0}, [])]),
        ({"changed-past"}, [look(5, OLD, [1])]),
        ({"changed-past", "wrong-total"}, [look(5, {0: 15, 1: 20}, [1])]),
        ({"changed-past", "contradictory-rows"}, [look(5, NEW, [2])]),
        ({"contradictory-rows"}, [look(5, NEW, [1], [1, 1])]),
        ({"stale-read"}, [look(5, NEW, [1]), look(4, OLD, [1])]),
        ({"lost-append"}, [look(4, OLD, [1]), ("append", [8, 3])]),
        ({"stale-read"}, [look(4, OLD, [1]), ("append", [8, 2]), OWN]),
    ],
)
def test_the_checker(found, done):
    transfer = ("transfer", {"from": 0, "to": 1, "amount": 5})
    operations = [
        Operation(2 * index + end, index, 1, ("invoke", "ok")[end], f, value)
        for index, (f, value) in enumerate([transfer, *done, ("log", LOG)])
        for end in (0, 1)
    ]
    verdict = checker.check(operations, "replica")
    assert set(verdict.counts) == set(found)
    assert verdict.valid(Model.STRONG_SNAPSHOT_ISOLATION) is not bool(found)


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.one_duckdb
@pytest.mark.parametrize("system", SYSTEMS)
def test_kills_of_replicator_clients_and_source(system, tmp_path):
    result, verdict = judged(tmp_path, ["all"], 15, system=system)
    assert result.problems == []
    assert verdict.valid(Model.STRONG_SNAPSHOT_ISOLATION), verdict
    outcomes = counted(result.events)
    assert outcomes["look"]["ok"] > 20
    assert outcomes["append"]["ok"] > 20
    if system == "postgresql":
        assert outcomes["look-own"]["ok"] > 5


@pytest.mark.long_only
@pytest.mark.crash
@pytest.mark.one_duckdb
@pytest.mark.postgresql
@pytest.mark.parametrize(
    "mutation", [name for name in REPLICA if name not in SCHEDULED]
)
def test_a_mutation_is_found(mutation, tmp_path):
    deadline = time.monotonic() + PATIENCE
    for seed in count():
        if time.monotonic() > deadline:
            pytest.fail(f"{seed} runs look valid")
        options = {"seed": seed, "mutation": mutation, "clients": 6, "processes": 2}
        _, verdict = judged(tmp_path / str(seed), ["kill"], SECONDS, **options)
        if verdict.valid(Model.STRONG_SNAPSHOT_ISOLATION) is False:
            return


@pytest.mark.slow
@pytest.mark.one_duckdb
@pytest.mark.parametrize("is_mutated", [False, True])
def test_an_aborted_timestamp(shared_engine, tmp_path, monkeypatch, is_mutated):
    """A process leaves a commit's entry in the log, and its timestamp is fenced."""
    if is_mutated:
        monkeypatch.setattr(SharedSnapshot, "counts", SharedSnapshot.counts)
        REPLICA[ABORTED]()
    first, second = (Process(shared_engine.url) for _ in range(2))
    first.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    first.commit("INSERT INTO t VALUES (1, 0), (2, 0)")
    target = f"duckdb:///{tmp_path}/replica.duckdb"
    schemas = {"public": "main", "sys": "main"}
    with tique.replicate(shared_engine.url, target, schemas=schemas) as copy:
        second.run("UPDATE t SET v = 66 WHERE id = 1")
        txid, shared = second.connection.txid, second.database.engine.shared
        cts, (table,) = shared.barrier(), second.database.catalog
        with closing(second.database.engine.session()) as session:
            session.log([CommitRecord(cts, txid, {table.id: [((1, 66), False)]})])
        shared.leave()
        first.commit("UPDATE t SET v = 1 WHERE id = 2")
        assert copy.wait(first.connection.version, PATIENCE)
        with tique.connect(target) as reader:
            found = reader.execute("SELECT v FROM t ORDER BY id").fetchall()
    for each in (first, second):
        each.close()
    assert found == [(66 if is_mutated else 0,), (1,)]


@pytest.mark.slow
@pytest.mark.one_duckdb
@pytest.mark.parametrize("is_mutated", [False, True])
def test_a_restart(shared_engine, tmp_path, monkeypatch, is_mutated):
    """The replicator goes on where its last fold ended."""
    for owner, name in (
        (replicas, "note"),
        (ReplicaTimeline, "open"),
        (Source, "note_durable"),
    ):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    if is_mutated:
        REPLICA[TWICE]()
    source = Process(shared_engine.url)
    source.commit("CREATE TABLE t (v INTEGER)")
    target = f"duckdb:///{tmp_path}/replica.duckdb"
    schemas = {"public": "main", "sys": "main"}
    for number in (1, 2):
        with tique.replicate(shared_engine.url, target, schemas=schemas) as copy:
            for _ in range(11):
                source.commit(f"INSERT INTO t VALUES ({number})")
            assert copy.wait(source.connection.version, PATIENCE)
            with tique.connect(target) as reader:
                found = reader.execute("SELECT v FROM t").fetchall()
    source.close()
    assert (len(found) > 22) is is_mutated


@pytest.mark.slow
@pytest.mark.one_duckdb
@pytest.mark.postgresql
@pytest.mark.parametrize("is_mutated", [False, True])
def test_own_commits(request, tmp_path, monkeypatch, is_mutated):
    """A replica that asks its source seldom does not have what was committed just now."""
    if is_mutated:
        monkeypatch.setattr(Router, "see", Router.see)
        REPLICA[OWN_LOST]()
    source = PostgreSQL.fresh(request)
    with closing(tique.connect(source.url, autocommit=True)) as owner:
        owner.execute("CREATE TABLE t (v INTEGER)")
    target = f"duckdb:///{tmp_path}/replica.duckdb"
    options = {"replica": target, "freshness": "own", "autocommit": True}
    with (
        tique.replicate(source.url, target, epoch=5.0),
        closing(tique.connect(source.url, **options)) as connection,
    ):
        connection.execute("INSERT INTO t VALUES (1)")
        found = connection.execute("SELECT count(*) AS n FROM t").fetchall()
    source.close()
    assert found == [(0 if is_mutated else 1,)]


def judged(folder, nemeses, seconds, system="postgresql", **options):
    """A run, and the verdict on it."""
    request = Request(f"{system}:", "replica", nemeses, seconds, **options)
    result = Run(request, folder).run()
    return result, checker.check(list(result.operations()), "replica")
