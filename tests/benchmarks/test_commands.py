from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import tique
from benchmarks import targets
from benchmarks.ablation import VARIANTS, policy
from benchmarks.cli import main
from benchmarks.measures import percentile, spread
from benchmarks.micro.group_commit import GroupCommitWorkload
from benchmarks.micro.hot_row import HotRowWorkload
from benchmarks.targets.duckdb_native import DuckDBTarget

pytestmark = pytest.mark.one_duckdb

TINY = ["--customers", "30", "--items", "100"]


def invoke(tmp_path, *arguments):
    return CliRunner().invoke(
        main, [*arguments, "--work-directory", str(tmp_path / "work")]
    )


def compare(tmp_path, *arguments):
    lengths = ["--seconds", "1", "--warmup", "0.2", "--rounds", "1"]
    return invoke(
        tmp_path,
        "compare",
        *("--targets", "duckdb", "--warehouses", "2", *lengths, *TINY),
        *arguments,
    )


@pytest.mark.slow
def test_compare_prints_json(tmp_path):
    result = compare(tmp_path, "--clients", "1,2", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["failures"] == []
    assert [each["clients"] for each in report["summaries"]] == [1, 2]
    assert report["plan"]["targets"] == ["duckdb"]
    assert report["environment"]["fsync_ms"] > 0
    first = report["summaries"][0]
    assert first["throughput"]["median"] > 0
    assert first["statements_per_transaction"]["median"] > 5
    assert set(first["kinds"]) == {
        "new_order",
        "payment",
        "order_status",
        "delivery",
        "stock_level",
    }


def test_compare_prints_tables_and_reuses_the_database(tmp_path):
    assert compare(tmp_path, "--clients", "1").exit_code == 0
    (database,) = (tmp_path / "work").glob("*.duckdb")
    written = database.stat().st_mtime_ns
    result = compare(tmp_path, "--clients", "1", "--roam")
    assert result.exit_code == 0, result.output
    assert "all checks hold" in result.stdout
    assert database.stat().st_mtime_ns == written


def test_analytics_are_compared(tmp_path):
    """All 22 queries run through tique, and answer as natively."""
    plot = tmp_path / "ratios.png"
    result = invoke(
        tmp_path,
        "compare",
        *("--workload", "ch", "--targets", "duckdb+tique,duckdb", "--warehouses", "2"),
        *("--versions", "0,500", "--repetitions", "1", "--plot", str(plot), "--json"),
        *TINY,
    )
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["failures"] == []
    assert len(report["results"]) == 2 * 22
    assert plot.with_stem("ratios-duckdb+tique").stat().st_size > 1000


def test_analytics_are_printed(tmp_path):
    result = invoke(
        tmp_path,
        "compare",
        *("--workload", "ch", "--warehouses", "1", "--versions", "0"),
        *("--repetitions", "1", "--queries", "Q1,Q22", *TINY),
    )
    assert result.exit_code == 0, result.output
    assert "geometric mean of the ratios" in result.stdout


def test_hybrid_prints_a_table(tmp_path):
    result = invoke(
        tmp_path,
        "hybrid",
        *("--oltp", "1", "--olap", "1", "--warehouses", "1", "--seconds", "0.5"),
        *("--warmup", "0.1", "--rounds", "1", "--targets", "duckdb+tique", *TINY),
        *("--queries", "Q1,Q6"),
    )
    assert result.exit_code == 0, result.output
    assert "seen after" in result.stdout


@pytest.mark.parametrize("rate", ["0", "50"])
def test_hybrid(tmp_path, rate):
    plot = tmp_path / "hybrid.png"
    result = invoke(
        tmp_path,
        "hybrid",
        *("--oltp", "2", "--olap", "1", "--warehouses", "2", "--seconds", "1"),
        *("--warmup", "0.2", "--rounds", "1", "--rate", rate, "--plot", str(plot)),
        *("--json", *TINY),
    )
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["failures"] == []
    assert [(p["oltp"], p["olap"]) for p in report["phases"]] == 2 * [
        (2, 0),
        (0, 1),
        (2, 1),
    ]
    for phase in report["phases"]:
        assert (phase["transactions"]["median"] > 0) == (phase["oltp"] > 0)
        assert (phase["queries"]["median"] > 0) == (phase["olap"] > 0)
    assert plot.stat().st_size > 1000


@pytest.mark.parametrize(
    "arguments",
    [
        ["--targets", "oracle"],
        ["--clients", "0"],
        ["--clients", "1,many"],
        ["--workload", "tpcx"],
    ],
)
def test_compare_refuses_what_it_does_not_know(tmp_path, arguments):
    result = compare(tmp_path, *arguments)
    assert result.exit_code == 2
    assert "Invalid value" in result.output


def test_a_failing_client_fails_the_run(tmp_path, monkeypatch):
    def broken(*_arguments):
        raise LookupError("no such customer")

    monkeypatch.setattr("benchmarks.tpcc.inputs.Terminal.deal", broken)
    result = compare(tmp_path, "--clients", "2", "--json")
    assert result.exit_code == 1
    assert "no such customer" in json.loads(result.stdout)["failures"][0]


@pytest.mark.parametrize(("options", "statements"), [([], 1), (["--explicit"], 3)])
def test_group_commit(tmp_path, options, statements):
    result = invoke(
        tmp_path,
        "group-commit",
        *("--targets", "duckdb", "--threads", "4", "--seconds", "0.5"),
        *("--rounds", "1", "--warmup", "0.1", "--json", *options),
    )
    assert result.exit_code == 0, result.output
    (summary,) = json.loads(result.stdout)["summaries"]
    found = summary["statements_per_transaction"]["median"]
    assert found == pytest.approx(statements, rel=0.2)


def test_foreign_keys(tmp_path):
    result = compare(
        tmp_path,
        *("--workload", "tpcc-foreign-keys", "--targets", "duckdb+tique"),
        *("--clients", "2", "--json"),
    )
    assert result.exit_code == 0, result.output
    (summary,) = json.loads(result.stdout)["summaries"]
    assert summary["kinds"]["new_order"]["committed"] > 0


@pytest.mark.parametrize("mode", ["autocommit", "transaction", "read-write"])
def test_hot_row(tmp_path, mode):
    result = invoke(
        tmp_path,
        *("hot-row", "--targets", "duckdb+tique", "--threads", "3", "--mode", mode),
        *("--seconds", "0.5", "--rounds", "1", "--warmup", "0.1", "--json"),
    )
    assert result.exit_code == 0, result.output
    (summary,) = json.loads(result.stdout)["summaries"]
    assert len(summary["kinds"]) == 3
    assert all(found["committed"] > 0 for found in summary["kinds"].values())


def test_contention(tmp_path):
    result = invoke(
        tmp_path,
        *("contention", "--targets", "duckdb+tique", "--warehouses", "2,1"),
        *("--seconds", "0.5", "--warmup", "0.2", "--rounds", "1", "--json", *TINY),
    )
    assert result.exit_code == 0, result.output
    one, two = json.loads(result.stdout)["rows"]
    assert (one["warehouses"], two["warehouses"]) == (1, 2)
    assert one["throughput"]["median"] > 0
    assert two["share"] == 1


def test_feed(tmp_path):
    result = invoke(tmp_path, "feed", "--commits", "400", "--seconds", "0.5", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["commits"] == 400
    assert found["failures"] == []
    assert found["beside_delivered_per_second"] > 0


def test_hot_row_finds_a_lost_update(tmp_path):
    workload = HotRowWorkload("autocommit", 1)
    workload.load(tmp_path / "counter.duckdb")
    target = DuckDBTarget()
    target.prepare(tmp_path / "counter.duckdb")
    connection = target.connect(autocommit=True)
    workload.client(0, connection, "qmark").next_transaction().run()
    assert workload.failures(connection, 0, {"client 0": 1}) == []
    assert workload.failures(connection, 0, {"client 0": 2}) != []
    connection.close()
    target.close()


def test_group_commit_finds_a_lost_update(tmp_path):
    workload = GroupCommitWorkload()
    workload.load(tmp_path / "account.duckdb")
    target = DuckDBTarget()
    target.prepare(tmp_path / "account.duckdb")
    connection = target.connect(autocommit=True)
    workload.client(3, connection, "qmark").next_transaction().run()
    assert workload.failures(connection, 0, {"update": 1}) == []
    assert workload.failures(connection, 0, {"update": 2}) != []
    connection.close()
    target.close()


def test_demo(tmp_path):
    result = invoke(
        tmp_path,
        *("demo", "--target", "duckdb", "--seconds", "1", "--clients", "2"),
        *("--districts", "2", *TINY),
    )
    assert result.exit_code == 0, result.output
    assert "CH-benCHmark Q1" in result.stdout
    assert "revenue" in result.stdout
    assert "all checks hold" in result.stdout


def test_baselines():
    assert targets.baseline_of("duckdb+tique") == "duckdb"
    assert targets.baseline_of("postgresql+tique-plain") == "postgresql"
    assert targets.baseline_of("duckdb") is None
    with pytest.raises(ValueError, match="no target"):
        targets.target_class("oracle")


def test_percentiles_and_spreads():
    assert percentile([1, 2, 3, 4], 0.5) == 2
    assert percentile([1, 2, 3, 4], 0.99) == 4
    assert percentile([], 0.5) == 0
    assert spread([3, 1, 2]).shown() == "2.0 (1.0–3.0)"  # noqa: RUF001


@pytest.mark.long_only
def test_endure_shows_slices_beside_open_snapshots(tmp_path):
    result = invoke(
        tmp_path,
        "endure",
        *("--targets", "duckdb+tique", "--clients", "2", "--json"),
        *("--snapshots", "2", "--writes"),
        *("--warmup", "1", "--slice", "1.5", "--slices", "3"),
        *("--warehouses", "2", *TINY),
    )
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["failures"] == []
    # What ends in the last slice may take longer than that.
    *ends, last = [each["end"] // 1.5 for each in report["slices"]]
    assert ends == [1, 2]
    assert last >= 3
    assert all(each["throughput"] > 0 for each in report["slices"])
    assert all(each["sizes"]["memory"] > 1 << 20 for each in report["slices"])
    assert [each["opened"] // 1.5 for each in report["ages"]] == [0, 2]
    assert all(len(each["first"]) == len(each["last"]) == 2 for each in report["ages"])


@pytest.mark.slow
def test_ablation_switches_each_part_off(tmp_path):
    lengths = ["--seconds", "0.5", "--warmup", "0.2", "--rounds", "1"]
    result = invoke(
        tmp_path,
        "ablation",
        *("--clients", "1", "--warehouses", "1", "--json", *lengths, *TINY),
    )
    assert result.exit_code == 0, result.output
    found = {each["name"]: each for each in json.loads(result.stdout)}
    assert set(found) == set(VARIANTS)
    assert found["everything"]["share"] == 1
    assert all(each["throughput"]["median"] > 0 for each in found.values())
    for query in ("Q1", "Q6"):
        assert all(each["queries"][query]["median"] > 0 for each in found.values())


@pytest.mark.parametrize("part", ["rows", "ranges"])
def test_what_is_switched_off_is_not_kept(part, tmp_path):
    with policy(VARIANTS[f"without {part}"]):
        connection = tique.connect(f"duckdb:///{tmp_path / 'test.duckdb'}")
    connection.execute("CREATE TABLE t (a INTEGER, n INTEGER, PRIMARY KEY (a, n))")
    connection.execute("INSERT INTO t SELECT range % 7, range FROM range(500)")
    connection.commit()
    connection.checkpoint()
    for _ in range(3):
        for n in range(20):
            connection.execute("SELECT n FROM t WHERE a = %s AND n = %s", (n % 7, n))
            connection.execute("SELECT sum(n) FROM t WHERE a = %s", (n % 7,))
    caches = {each.name: each for each in connection.info.caches}
    connection.close()
    assert caches.pop(part).entries == 0
    assert any(each.entries for each in caches.values())


def test_folds_are_timed(tmp_path):
    options = ["--warehouses", "2", "--keys", "5,50", "--rounds", "2", "--json"]
    result = invoke(tmp_path, "folds", *options, *TINY)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["failures"] == []
    assert len(report["times"]) == 6
