"""P1 to P7 under faults: the level's model allows histories of real runs."""

from __future__ import annotations

from collections import Counter

import pytest
from click.testing import CliRunner

from benchmarks.targets.cluster import Cluster, ClusterError
from jepsen import checker, history, runner
from jepsen.checker.models import Model
from jepsen.cli import main
from jepsen.nemesis import NEMESES
from jepsen.nemesis.base import FaultNote
from jepsen.recorder import Event, count
from jepsen.report import longest_silence
from jepsen.runner import Request, Result, Run
from jepsen.systems import Unusable, kind_of
from jepsen.systems.postgresql import PostgreSQL
from jepsen.workloads import WORKLOADS

pytestmark = pytest.mark.one_duckdb

SYSTEMS = [
    "duckdb",
    pytest.param("monetdb", marks=pytest.mark.monetdb),
    pytest.param("postgresql", marks=pytest.mark.postgresql),
]


def run(folder, url, workload, nemeses, seconds, **options):
    request = Request(url, workload, nemeses, seconds, **options)
    result = Run(request, folder).run()
    assert result.problems == []
    return result


def valid_operations(folder, workload, model):
    operations = history.read(folder / "history.edn")
    verdict = checker.check(operations, workload)
    assert verdict.valid(model), verdict
    return operations


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_nemesis_at_once(system, tmp_path):
    """Acknowledged writes are there at the end, and nothing torn was ever seen.

    A run of eight seconds has room for few faults that end an embedded engine's process:
    those that found none have it in the next run.
    """
    kind = kind_of(f"{system}:")
    missing = set(NEMESES) - ({"server"} if kind.is_embedded else set())
    for seed in (8, 9, 10):
        folder = tmp_path / str(seed)
        result = run(folder, f"{system}:", "list-append", ["all"], 8, seed=seed)
        operations = valid_operations(
            folder, "list-append", Model.STRONG_SNAPSHOT_ISOLATION
        )
        outcomes = count(result.events)["txn"]
        assert outcomes["ok"] > 50
        assert outcomes["fail"] > 10
        assert outcomes["info"] > 0
        assert_whole(operations)
        assert operations == history.read(folder / "history.jsonl.gz")
        missing -= {fault.nemesis for fault in result.faults}
        if not missing:
            break
    assert not missing


@pytest.mark.long_only
@pytest.mark.crash
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_nemesis_beside_bulk_commits(system, tmp_path):
    """P1, P3 to P5: the same of rows that go from staging tables to the cache table."""
    result = run(tmp_path, f"{system}:", "list-append", ["all"], 8, seed=8, bulk=0.3)
    operations = valid_operations(
        tmp_path, "list-append", Model.STRONG_SNAPSHOT_ISOLATION
    )
    assert result.faults
    assert count(result.events)["txn"]["ok"] > 20
    assert_whole(operations)


@pytest.mark.long_only
@pytest.mark.crash
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_nemesis_at_read_committed(system, tmp_path):
    """P3, P4, P6: no append of one statement is lost, by four processes of two clients."""
    level = "read committed"
    result = run(tmp_path, f"{system}:", "list-append", ["all"], 8, seed=8, level=level)
    operations = valid_operations(tmp_path, "list-append", Model.STRONG_READ_COMMITTED)
    assert result.faults
    assert count(result.events)["txn"]["ok"] > 20
    assert_whole(operations)


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.parametrize("workload", ["list-append", "rw-register", "on-call"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_nemesis_at_serializable(system, workload, tmp_path):
    """The order of all transactions is serial and that of the clock, whatever breaks."""
    result = run(
        tmp_path, f"{system}:", workload, ["all"], 6, seed=8, level="serializable"
    )
    operations = valid_operations(tmp_path, workload, Model.STRICT_SERIALIZABLE)
    assert result.faults
    assert sum(row["ok"] for row in count(result.events).values()) > 20
    assert_whole(operations)


def assert_whole(operations):
    """Every invocation has one completion; no process goes on after an info."""
    indices = [operation.index for operation in operations]
    assert indices == sorted(set(indices))
    times = [operation.time for operation in operations]
    assert times == sorted(times)
    is_open = {}
    ended = set()
    for operation in operations:
        assert operation.process not in ended
        if operation.type == "invoke":
            assert operation.process not in is_open
            is_open[operation.process] = operation.value
            continue
        asked = is_open.pop(operation.process)
        if operation.type == "info":
            ended.add(operation.process)
        if operation.type != "ok":
            assert operation.value == asked
            assert operation.error
    assert is_open == {}


SELDOM = {"watch", "late-transfer", "recall", "replay"}
"""What takes longer than a client of a short run lives, or needs what it noted before."""


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.parametrize(
    "workload", [name for name in WORKLOADS if name not in ("list-append", "replica")]
)
def test_workloads_while_clients_are_killed(engine, tmp_path, workload):
    """Each workload's own rule holds, in every read and after the last recovery."""
    engine.connect().close()
    nemeses = ["kill", "pause", "cut", "checkpoint", "clock"]
    result = run(
        tmp_path,
        engine.url,
        workload,
        nemeses,
        1.2,
        clients=6,
        processes=2,
    )
    assert result.faults
    for f, outcomes in count(result.events).items():
        assert outcomes["ok"] or f in SELDOM, f"no {f} ever succeeded"
    operations = history.read(tmp_path / "history.jsonl.gz")
    assert_whole(operations)
    verdict = checker.check(operations, workload)
    found = verdict.valid(Model.STRONG_SNAPSHOT_ISOLATION)
    # A slow run may have asked for nothing that was kept so long.
    assert found or (found is None and workload == "short-history"), verdict


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_job_queue_while_its_server_is_killed(system, tmp_path):
    """P4, P6: no job is lost or taken twice, and locks end with the server or the session."""
    kind = kind_of(f"{system}:")
    nemeses = ["disk"]
    if not kind.is_embedded:
        nemeses.append("server")
    processes = 1 if kind.is_embedded else 2
    result = run(
        tmp_path, f"{system}:", "jobs", nemeses, 6, clients=6, processes=processes
    )
    assert {fault.nemesis for fault in result.faults} == set(nemeses)
    for f in ("submit", "take", "hold", "touch"):
        assert count(result.events)[f]["ok"], f"no {f} ever succeeded"
    operations = history.read(tmp_path / "history.jsonl.gz")
    assert_whole(operations)
    verdict = checker.check(operations, "jobs")
    assert verdict.valid(Model.STRONG_SNAPSHOT_ISOLATION), verdict


def test_a_server_of_somebody_else_is_not_killed(shared_engine, tmp_path):
    for nemesis in ("server", "disk"):
        with pytest.raises(Unusable, match="not the run's own"):
            run(tmp_path, shared_engine.url, "bank", [nemesis], 1)


def test_an_embedded_engine_has_no_server(tmp_path):
    with pytest.raises(Unusable, match="no server"):
        run(tmp_path, "duckdb:", "bank", ["server"], 1)


def test_the_command_says_what_it_found(tmp_path):
    """A table, a picture, a verdict, and the status that goes with it."""
    words = ["run", "--url", "duckdb:", "--workload", "counter", "--seconds", "3"]
    words += ["--nemesis", "pause,checkpoint", "--output", str(tmp_path / "run")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "strong-snapshot-isolation: valid" in done.output
    assert "checkpoint" in done.output
    assert (tmp_path / "run" / "timeline.png").stat().st_size > 10_000
    again = CliRunner().invoke(main, words)
    assert again.exit_code == 2
    assert "not empty" in again.output


def test_the_command_at_read_committed(tmp_path):
    """The level's workloads, and its model."""
    words = ["run", "--url", "duckdb:", "--level", "READ COMMITTED", "--seconds", "1"]
    words += ["--workload", "unique", "--output", str(tmp_path / "run")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "unique, read committed, seed 1" in done.output
    assert "strong-read-committed: valid" in done.output


def test_the_command_at_serializable(tmp_path):
    """The level's model, and how many transactions were committed in a second."""
    words = ["run", "--url", "duckdb:", "--level", "serializable", "--seconds", "1"]
    words += ["--workload", "write-skew", "--output", str(tmp_path / "run")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "strict-serializable: valid" in done.output
    assert "commits a second" in done.output


@pytest.mark.crash
def test_a_run_whose_server_stays_away_is_judged_all_the_same(tmp_path, monkeypatch):
    """The history, its verdict and the server's log outlive the failure."""

    def crash(system, _chance):
        system._cluster.kill()
        raise ClusterError("it does not come back")

    monkeypatch.setattr(PostgreSQL, "crash", crash)
    monkeypatch.setattr(runner, "_READ_SECONDS", 0.5)
    folder = tmp_path / "run"
    words = ["run", "--url", "postgresql:", "--workload", "list-append"]
    words += ["--nemesis", "server", "--seconds", "2", "--output", str(folder)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1, done.output
    output = " ".join(done.output.split())
    assert "the server's last crash failed: ClusterError: it does not come" in output
    assert "times no txn at the end" in output
    assert "asking for outcomes failed" in output
    assert "strong-snapshot-isolation: valid" in output
    assert "ClusterError" in (folder / "failures.txt").read_text()
    assert "database system is ready" in (folder / "server.log").read_text()
    operations = history.read(folder / "history.edn")
    assert sum(operation.type == "ok" for operation in operations) > 20


def test_a_run_whose_server_does_not_start_says_why(tmp_path, monkeypatch):
    def start(_cluster):
        raise ClusterError("no room on the disk")

    monkeypatch.setattr(Cluster, "start", start)
    words = ["run", "--url", "postgresql:", "--output", str(tmp_path / "run")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "no room on the disk" in done.output


def test_what_went_wrong_in_the_longest_silence_is_told():
    """Times are nanoseconds; a fault counts for as long as it lies in the silence."""
    events = [
        Event(int(seconds * 1e9), 0, 0, kind, "txn", [])
        for seconds, kind in [(1, "ok"), (2, "ok"), (3, "fail"), (6, "ok"), (7, "ok")]
    ]
    faults = [
        FaultNote("disk", "", int(1e9), int(2.5e9)),
        FaultNote("server", "", int(3e9), int(5e9)),
        FaultNote("disk", "", int(5.5e9), int(9e9)),
        FaultNote("kill", "", int(6.5e9), int(6.6e9)),
    ]
    request = Request("duckdb:", "list-append")
    silence = longest_silence(Result(request, 0, events, faults, Counter(), []))
    assert silence.seconds == 4
    assert silence.faults == {"disk": 1.0, "server": 2.0}
    assert silence.circumstances == "with disk for 1.00 s, server for 2.00 s"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--url", "oracle:"], "no system"),
        (
            ["--url", "duckdb:", "--workload", "bank", "--level", "read committed"],
            "bank reads, and writes what it computed",
        ),
        (["--url", "duckdb:", "--nemesis", "rain"], "'rain' is none of"),
        (["--url", "duckdb:", "--nemesis", "server"], "no server"),
        (["--url", "duckdb:", "--option", "lease"], "not NAME=JSON"),
    ],
)
def test_the_command_refuses_what_makes_no_sense(tmp_path, words, message):
    done = CliRunner().invoke(main, ["run", *words, "--output", str(tmp_path / "run")])
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
