"""Isolation levels and protocols side by side: what is generated, checked and told."""

from __future__ import annotations

import json
from itertools import islice

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.cli import main
from benchmarks.compare import Plan
from benchmarks.protocols.write_skew import WriteSkewWorkload
from benchmarks.protocols.ycsb import MIXES, OPERATIONS, Writer, YcsbWorkload, inputs
from benchmarks.protocols.zipf import Zipf
from benchmarks.targets.base import Setup
from benchmarks.targets.duckdb_native import DuckDBTarget


@pytest.fixture
def opened(tmp_path):
    """Open a workload on DuckDB by itself, with two connections."""
    target = DuckDBTarget()

    def connect(workload):
        path = tmp_path / "loaded.duckdb"
        workload.load(path)
        target.prepare(path)
        return target.connect(), target.connect()

    yield connect
    target.close()


def rows(connection, sql):
    cursor = connection.cursor()
    cursor.execute(sql)
    return cursor.fetchall()


def change(connection, sql):
    connection.cursor().execute(sql)
    connection.commit()


@pytest.mark.engine_free
@pytest.mark.parametrize("theta", [0.0, 0.2, 0.5, 0.9])
def test_keys_are_as_popular_as_the_skew_says(theta):
    keys = Zipf(100, theta, seed=1)
    drawn = keys.draw(np.random.default_rng(2), (200_000,))
    counts = np.bincount(drawn, minlength=100)
    weights = np.arange(1, 101) ** -theta
    expected = 200_000 * weights / weights.sum()
    found = counts[keys.by_popularity]
    # Six standard deviations.
    assert np.all(np.abs(found - expected) < 6 * np.sqrt(expected))
    assert sorted(keys.by_popularity) == list(range(100))


@pytest.mark.engine_free
def test_the_same_keys_are_popular_with_every_skew():
    flat, steep = Zipf(50, 0.2, seed=3), Zipf(50, 0.9, seed=3)
    assert list(flat.by_popularity) == list(steep.by_popularity)
    assert list(flat.by_popularity) != list(range(50))


@pytest.mark.engine_free
@pytest.mark.parametrize("name", MIXES)
def test_mixes(name):
    mix = MIXES[name]
    found = list(islice(inputs(Zipf(100, 0.5, 1), mix, 5, 0), 5000))
    assert {len(each) for each in found} == {OPERATIONS}
    updating = [each for each in found if any(o.is_update for o in each)]
    reads = np.mean([not o.is_update for each in updating for o in each])
    none = mix.reads**OPERATIONS
    assert len(updating) / 5000 == pytest.approx(
        (1 - mix.read_only) * (1 - none), abs=0.03
    )
    assert reads == pytest.approx((mix.reads - none) / (1 - none), abs=0.03)
    assert {o.field for each in updating for o in each} == {None, *range(10)}


@pytest.mark.engine_free
def test_a_client_has_a_sequence_of_its_own():
    keys, mix = Zipf(100, 0.5, 1), MIXES["read-intensive"]

    def sequence(seed, client):
        return list(islice(inputs(keys, mix, seed, client), 5))

    assert sequence(7, 1) == sequence(7, 1)
    assert sequence(7, 1) != sequence(7, 2)
    assert sequence(7, 1) != sequence(8, 1)


@pytest.mark.engine_free
def test_ordered_operations_have_the_same_keys():
    keys, mix = Zipf(100, 0.5, 1), MIXES["update-intensive"]
    as_drawn = next(inputs(keys, mix, 7, 1))
    ordered = next(inputs(keys, mix, 7, 1, ordered=True))
    found = [each.key for each in ordered]
    assert found == sorted(each.key for each in as_drawn)
    assert found != [each.key for each in as_drawn]


@pytest.mark.engine_free
def test_setups_have_a_protocol_where_there_is_a_choice():
    plan = Plan(
        *(("duckdb+tique", "postgresql+tique", "duckdb"), (1,), 1.0, 0.0, 1),
        levels=("SNAPSHOT", "SERIALIZABLE"),
        protocols=("optimistic", "ssn"),
    )
    assert plan.setups == (
        Setup("duckdb+tique", "SNAPSHOT"),
        Setup("duckdb+tique", "SERIALIZABLE", "optimistic"),
        Setup("duckdb+tique", "SERIALIZABLE", "ssn"),
        Setup("postgresql+tique", "SNAPSHOT"),
        Setup("postgresql+tique", "SERIALIZABLE", "optimistic"),
        Setup("duckdb", "SNAPSHOT"),
        Setup("duckdb", "SERIALIZABLE"),
    )


class Ycsb:
    """Two clients of a small table that have run transactions."""

    def __init__(self, opened, transactions):
        self.workload = YcsbWorkload("update-intensive", 50, 0.5, 7)
        self.connection, other = opened(self.workload)
        self.committed = 0
        self.clients = [
            self.workload.client(number, connection, "qmark")
            for number, connection in enumerate((self.connection, other))
        ]
        for _ in range(transactions):
            for client in self.clients:
                kind, run = client.next_transaction()
                assert run() is True
                self.committed += kind == "update"

    def failures(self, before=50, lost=0):
        found = self.workload.failures(
            self.connection, before, {"update": self.committed - lost}
        )
        self.connection.rollback()
        return found

    def written(self):
        """A key and a field that client 0 wrote last, and the number of its transaction."""
        found = self.workload._writers(self.connection)
        self.connection.rollback()
        (key, field), writer = next(
            (place, writer) for place, writer in found.items() if writer.client == 0
        )
        return key, field, writer.number


@pytest.mark.one_duckdb
def test_ycsb_holds(opened):
    ycsb = Ycsb(opened, 30)
    assert ycsb.failures() == []
    assert ycsb.failures(before=51) == ["there were 51 rows, and are 50"]
    (failure,) = ycsb.failures(lost=1)
    assert "left traces" in failure


@pytest.mark.one_duckdb
@pytest.mark.parametrize("value", ["loaded", "0 {earlier} x"])
def test_ycsb_finds_a_lost_update(opened, value):
    """What a client wrote last to a field is gone, to what was there before it."""
    ycsb = Ycsb(opened, 30)
    key, field, number = ycsb.written()
    before = value.format(earlier=number - 1)
    sql = f"UPDATE usertable SET field{field} = '{before}' WHERE ycsb_key = {key}"
    change(ycsb.connection, sql)
    (failure,) = ycsb.failures()
    assert f"transaction {number} wrote field {field} of row {key}" in failure


@pytest.mark.one_duckdb
def test_ycsb_finds_what_nobody_committed(opened):
    ycsb = Ycsb(opened, 3)
    found = ycsb.workload._writers(ycsb.connection)
    ycsb.connection.rollback()
    key, field = next(
        (key, field)
        for key in range(50)
        for field in range(10)
        if (key, field) not in found
    )
    sql = f"UPDATE usertable SET field{field} = '0 1 x' WHERE ycsb_key = {key}"
    change(ycsb.connection, sql)
    assert f"never wrote field {field} of row {key}" in ycsb.failures()[0]


@pytest.mark.engine_free
def test_what_was_loaded_has_no_writer():
    assert Writer.of("3 14 xxx") == (3, 14)
    assert Writer.of("aB3dEf") is None


@pytest.mark.one_duckdb
def test_write_skew_is_counted(opened):
    """Two see both on call, and take off one each: natively, under snapshot isolation."""
    workload = WriteSkewWorkload(2, seed=1)
    first, second = opened(workload)
    before = workload.state(first)
    first.rollback()
    for member, connection in enumerate((first, second)):
        assert len(rows(connection, "SELECT * FROM duty WHERE on_call = 1")) == 2
        connection.cursor().execute(
            "UPDATE duty SET on_call = 0, changes = changes + 1 WHERE pair = 0"
            f" AND member = {member}"
        )
    for connection in (first, second):
        connection.commit()
    assert workload.failures(first, before, {"change": 2}) == []
    assert workload.anomalies(first) == 1
    first.rollback()

    # Who meets the pair counts it, once, and brings one back.
    workload.client(0, second, "qmark").next_transaction().run()
    assert rows(first, "SELECT sum(on_call) FROM duty") == [(1,)]
    assert workload.anomalies(first) == 1
    assert workload.failures(first, before, {"change": 3}) == []
    (failure,) = workload.failures(first, before, {"change": 4})
    assert "changes went from 0 to 3 in 4 commits" in failure
    first.rollback()


@pytest.mark.one_duckdb
def test_write_skew_has_no_anomaly_one_after_the_other(opened):
    workload = WriteSkewWorkload(4, seed=1)
    connections = opened(workload)
    clients = [
        workload.client(number, each, "qmark")
        for number, each in enumerate(connections)
    ]
    for _ in range(40):
        for client in clients:
            client.next_transaction().run()
    connection, _ = connections
    assert workload.anomalies(connection) == 0
    on_call = "SELECT count(DISTINCT pair), sum(changes) FROM duty"
    assert rows(connection, on_call) == [(2, 80)]
    connection.rollback()


@pytest.mark.engine_free
def test_pairs_are_locked_at_read_committed_alone():
    workload = WriteSkewWorkload(4, seed=1)
    assert workload.at("READ COMMITTED").locking
    assert not workload.at("SERIALIZABLE").locking
    assert not workload.at("SNAPSHOT").locking


def run(tmp_path, command, *arguments):
    lengths = ["--seconds", "1", "--warmup", "0.2", "--rounds", "1"]
    work = ["--work-directory", str(tmp_path / "work")]
    result = CliRunner().invoke(main, [command, *lengths, *work, *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.one_duckdb
def test_protocols_varies_threads_and_skews(tmp_path):
    plot = tmp_path / "protocols.png"
    output = run(
        tmp_path,
        "protocols",
        *("--workloads", "read-intensive,write-skew", "--targets", "duckdb+tique"),
        *("--level", "read committed,snapshot", "--threads", "1,3", "--theta", "0.5"),
        *("--thetas", "0.2,0.5", "--clients", "2", "--records", "200"),
        *("--seconds", "0.2", "--warmup", "0.1", "--plot", str(plot), "--json"),
    )
    report = json.loads(output)
    assert report["failures"] == []
    measured = [
        (each["workload"], each["theta"], summary["clients"])
        for each in report["found"]
        for summary in each["comparison"]["summaries"]
        if summary["setup"]["level"] == "SNAPSHOT"
    ]
    assert measured == [
        ("read-intensive", 0.2, 2),
        *(("read-intensive", 0.5, threads) for threads in (1, 2, 3)),
        *(("write-skew", None, threads) for threads in (1, 3)),
    ]
    for each in report["found"]:
        for summary in each["comparison"]["summaries"]:
            assert summary["throughput"]["median"] > 0
        costs = each["comparison"]["costs"]
        assert {cost["setup"]["level"] for cost in costs} == {"READ COMMITTED"}
    assert plot.stat().st_size > 1000


@pytest.mark.one_duckdb
def test_protocols_prints_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(WriteSkewWorkload, "anomalies", lambda *_: 31_415)
    output = run(
        tmp_path,
        "protocols",
        *("--workloads", "update-intensive,tpcc,write-skew"),
        *("--targets", "duckdb+tique"),
        *("--level", "snapshot", "--threads", "2", "--thetas", "0.8"),
        *("--clients", "2", "--records", "100", "--warehouses", "1"),
        *("--customers", "30", "--items", "100"),
    )
    assert "all checks hold" in output
    assert "update-intensive" in output
    assert "of SNAPSHOT" in output
    assert "31,415" in output


@pytest.mark.engine_free
def test_a_target_without_the_protocol_is_refused(tmp_path):
    options = ("--targets", "postgresql+tique", "--protocols", "ssn")
    with pytest.raises(AssertionError, match=r"has optimistic, locking only"):
        run(tmp_path, "protocols", *options)


@pytest.mark.one_duckdb
def test_an_anomaly_fails_a_serializable_run_only(tmp_path, monkeypatch):
    monkeypatch.setattr(WriteSkewWorkload, "anomalies", lambda *_: 3)
    options = ("--workloads", "write-skew", "--targets", "duckdb+tique")
    options += ("--threads", "1", "--protocols", "optimistic", "--json")
    output = run(tmp_path, "protocols", *options, "--level", "snapshot")
    (found,) = json.loads(output)["found"]
    assert found["comparison"]["summaries"][0]["anomalies"] == 3
    with pytest.raises(AssertionError, match="3 anomalies in serializable"):
        run(tmp_path, "protocols", *options, "--level", "serializable")


@pytest.mark.long_only
@pytest.mark.postgresql
def test_levels_side_by_side(tmp_path):
    """TPC-C at two levels in turns, natively too: what SERIALIZABLE costs is told."""
    output = run(
        tmp_path,
        "compare",
        *("--targets", "postgresql+tique,postgresql", "--clients", "2", "--json"),
        *("--level", "snapshot,serializable", "--warehouses", "1"),
        *("--customers", "30", "--items", "100"),
    )
    report = json.loads(output)
    assert report["failures"] == []
    ours, theirs = (
        {"target": name, "level": "SERIALIZABLE", "protocol": protocol}
        for name, protocol in (
            ("postgresql+tique", "optimistic"),
            ("postgresql", None),
        )
    )
    assert [each["setup"] for each in report["costs"]] == [ours, theirs]
    for each in report["costs"]:
        assert each["baseline"] == {
            **each["setup"],
            "level": "SNAPSHOT",
            "protocol": None,
        }
        assert each["ratio"]["median"] > 0
        assert -1 < each["more_aborts"]["median"] < 1
    assert [each["setup"]["level"] for each in report["ratios"]] == [
        "SNAPSHOT",
        "SERIALIZABLE",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "target",
    [
        pytest.param("duckdb+tique", marks=pytest.mark.one_duckdb),
        pytest.param("postgresql+tique", marks=pytest.mark.postgresql),
        pytest.param("postgresql", marks=pytest.mark.postgresql),
    ],
)
def test_write_skew_happens_at_snapshot_alone(tmp_path, target):
    """To eight threads that want four pairs all the time."""
    output = run(
        tmp_path,
        "protocols",
        *("--workloads", "write-skew", "--targets", target, "--rows", "8"),
        *("--threads", "8", "--protocols", "optimistic", "--json"),
    )
    (found,) = json.loads(output)["found"]
    anomalies = {
        each["setup"]["level"]: each["anomalies"]
        for each in found["comparison"]["summaries"]
    }
    assert anomalies.pop("SNAPSHOT") > 0
    assert anomalies == {"READ COMMITTED": 0, "SERIALIZABLE": 0}


@pytest.mark.long_only
@pytest.mark.postgresql
@pytest.mark.parametrize("target", ["postgresql", "postgresql+tique"])
def test_ycsb_on_postgresql(tmp_path, target):
    """Eight threads on twenty rows lose nothing that was committed."""
    output = run(
        tmp_path,
        "protocols",
        *("--workloads", "update-intensive", "--targets", target, "--json"),
        *("--records", "20", "--threads", "8", "--thetas", "0.8", "--clients", "8"),
        *("--level", "read committed,snapshot", "--ordered"),
    )
    report = json.loads(output)
    assert report["failures"] == []
    for each in report["found"][0]["comparison"]["summaries"]:
        assert each["kinds"]["update"]["committed"] > 0
