"""The parts of the benchmark of replicas run, and the replica answers as DuckDB does."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from benchmarks.ch.queries import QUERIES
from benchmarks.cli import main

pytestmark = [pytest.mark.one_duckdb, pytest.mark.postgresql]


@pytest.mark.long_only
@pytest.mark.parametrize("part", ["queries", "beside", "rate", "writers"])
def test_parts(part, tmp_path):
    words = ["--warehouses", "2", "--customers", "30", "--items", "100"]
    words += [
        "--seconds",
        "1",
        "--warmup",
        "0.2",
        "--rounds",
        "1",
        "--repetitions",
        "1",
    ]
    words += ["--epochs", "0.015", "--work-directory", str(tmp_path), "--json"]
    done = CliRunner().invoke(main, ["replica", "--parts", part, *words])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["failures"] == []
    ((headings, rows),) = [(each["headings"], each["rows"]) for each in found["parts"]]
    assert all(len(row) == len(headings) for row in rows)
    names = [row[0] for row in rows]
    if part in ("queries", "beside"):
        assert names == [*QUERIES, "geometric mean"]
    if part == "rate":
        ((_, commits, applied, _, _),) = rows
        assert commits["median"] > 0
        assert applied["median"] > 0
    if part == "writers":
        analyst = "epochs of 15 ms, an analyst"
        assert names == [
            "alone",
            "no replica",
            "epochs of 15 ms",
            analyst,
            "hot standby",
        ]
        lags = {row[0]: row[3] for row in rows if row[3] != ""}
        assert set(lags) == set(names[2:])
        assert all(lag["low"] > 0 for lag in lags.values())


@pytest.mark.slow
def test_tables(tmp_path):
    words = ["--warehouses", "1", "--customers", "30", "--items", "100"]
    words += ["--repetitions", "1", "--work-directory", str(tmp_path)]
    done = CliRunner().invoke(main, ["replica", "--parts", "queries", *words])
    assert done.exit_code == 0, done.output
    assert "geometric mean" in done.stdout
    assert "replica/PostgreSQL" in done.stdout
