"""The PostgreSQL target: its tables, its rounds, and that it leaves nothing."""

from __future__ import annotations

import json
import tempfile
from contextlib import closing
from pathlib import Path
from time import perf_counter

import duckdb
import pytest
from click.testing import CliRunner

from benchmarks.cli import main
from benchmarks.targets.postgresql_native import PostgreSQLTarget
from benchmarks.tpcc import schema
from benchmarks.tpcc.inputs import Delivery, NewOrder, OrderedItem, StockLevel
from benchmarks.tpcc.transactions import Application
from tests.benchmarks.test_transactions import NOW

pytestmark = pytest.mark.postgresql


@pytest.fixture(scope="module")
def target(loaded_file):
    target = PostgreSQLTarget()
    try:
        target.prepare(loaded_file)
        yield target
    finally:
        target.close()


@pytest.fixture
def connection(target):
    with closing(target.connect()) as connection:
        yield connection


def rows(connection, sql, *parameters):
    cursor = connection.cursor()
    cursor.execute(sql, parameters)
    return cursor.fetchall()


def seconds(connection, sql, *parameters):
    started = perf_counter()
    rows(connection, sql, *parameters)
    return perf_counter() - started


def compare(tmp_path, *arguments):
    return CliRunner().invoke(
        main,
        [
            *("compare", "--targets", "postgresql", "--clients", "2", "--json"),
            *("--seconds", "1", "--warmup", "0.2", "--rounds", "1"),
            *("--warehouses", "2", "--customers", "30", "--items", "100"),
            *("--work-directory", str(tmp_path / "work"), *arguments),
        ],
    )


@pytest.fixture
def servers(monkeypatch):
    """Where servers are made; the account postgres can reach it, unlike tmp_path."""
    with tempfile.TemporaryDirectory(prefix="tique-test-") as name:
        path = Path(name)
        path.chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", name)
        yield path


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["0", "2"])
def test_compare(tmp_path, servers, processes):
    result = compare(tmp_path, "--processes", processes)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["failures"] == []
    assert report["settings"]["postgresql"]["synchronous_commit"] == "on"
    (summary,) = report["summaries"]
    assert summary["throughput"]["median"] > 0
    assert summary["statements_per_transaction"]["median"] > 5
    assert list(servers.iterdir()) == []


@pytest.mark.slow
def test_distance_is_paid_once_per_round_trip(loaded_file):
    target = PostgreSQLTarget()
    target.distance = 20.0
    try:
        target.prepare(loaded_file)
        with closing(target.connect(autocommit=True)) as connection:
            assert min(seconds(connection, "SELECT 1") for _ in range(5)) >= 0.02
            # A message longer than the server's buffer takes one round trip, too.
            long = "x" * 100_000
            query = "SELECT length(%s::text)"
            assert min(seconds(connection, query, long) for _ in range(5)) < 0.1
    finally:
        target.close()


def test_embedded_engines_have_no_distance(tmp_path):
    result = compare(tmp_path, "--targets", "duckdb", "--distance", "1")
    assert result.exit_code == 2
    assert "duckdb cannot be further away" in result.output


@pytest.mark.slow
@pytest.mark.parametrize("target", ["postgresql", "postgresql+tique"])
def test_clients_of_read_committed_lock_what_they_write(tmp_path, target):
    """Eight clients on one warehouse: without the locks an order's number comes twice."""
    level = ("--level", "read committed", "--warehouses", "1", "--clients", "8")
    result = compare(tmp_path, "--targets", target, *level)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["plan"]["levels"] == ["READ COMMITTED"]


def test_duckdb_itself_has_one_level(tmp_path):
    result = compare(tmp_path, "--targets", "duckdb", "--level", "read committed")
    assert result.exit_code == 2
    assert "duckdb has no READ COMMITTED" in result.output


def test_every_row_is_loaded_as_it_is(loaded_file, connection):
    with duckdb.connect(str(loaded_file), read_only=True) as source:
        for table in schema.KEYS:
            query = f"SELECT * FROM {table}"
            expected = source.execute(query).fetchall()
            assert sorted(map(repr, rows(connection, query))) == sorted(
                map(repr, expected)
            )


def test_keys_are_there(connection):
    found = rows(
        connection,
        "SELECT indrelid::regclass::text, array_agg(attname::text ORDER BY place)"
        " FROM pg_index, unnest(indkey::int[]) WITH ORDINALITY AS key (number, place),"
        " pg_attribute"
        " WHERE indisprimary AND attrelid = indrelid AND attnum = number"
        " AND indrelid::regclass::text = ANY(%s) GROUP BY 1",
        list(schema.KEYS),
    )
    keys = {table: key for table, key in schema.KEYS.items() if key}
    assert {table: tuple(key) for table, key in found} == keys


def test_snapshot_and_conflict(target, connection):
    total = "SELECT SUM(d_ytd) FROM district"
    before = rows(connection, total)
    change = "UPDATE district SET d_ytd = d_ytd + 1 WHERE d_w_id = 1 AND d_id = 1"
    with closing(target.connect(autocommit=True)) as other:
        other.cursor().execute(change)
    assert rows(connection, total) == before
    with pytest.raises(target.conflicts):
        connection.cursor().execute(change)
    connection.rollback()
    assert rows(connection, total) == [(before[0][0] + 1,)]


def test_statements_are_counted(target, connection):
    application = Application(connection, target.parameter_style)
    before = target.engine_statements()
    application.stock_level(StockLevel(1, 1, 15))
    # BEGIN, two queries, COMMIT.
    assert target.engine_statements() - before == 4
    items = (OrderedItem(10, 1, 3), OrderedItem(20, 2, 5))
    application.new_order(NewOrder(1, 2, 3, items, NOW))
    # BEGIN, three queries, three changes; two queries and two changes per item; COMMIT.
    assert target.engine_statements() - before == 4 + 7 + 8 + 1
    delivered = application.delivery(Delivery(2, 10, 7, NOW))
    assert len(delivered) == 10
    # BEGIN, three queries and four changes per district, COMMIT.
    assert target.engine_statements() - before == 20 + 72


def test_autocommit_has_no_begin(target):
    with closing(target.connect(autocommit=True)) as connection:
        connection.cursor().execute("SELECT 1")
        assert connection.statements == 1


def test_compacting_leaves_no_transaction(target, connection):
    target.compact(connection)
    assert not connection._in_transaction()


@pytest.mark.slow
@pytest.mark.usefixtures("bare_postgresql")
def test_endure_tells_sizes(tmp_path):
    """And the command brings the extension along: it need not be installed before."""
    result = CliRunner().invoke(
        main,
        [
            *("endure", "--targets", "postgresql+tique", "--clients", "2", "--json"),
            *("--processes", "2", "--warmup", "1", "--slice", "1.5", "--slices", "2"),
            *("--warehouses", "2", "--customers", "30", "--items", "100"),
            *("--work-directory", str(tmp_path / "work")),
        ],
    )
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["failures"] == []
    for each in report["slices"]:
        assert set(each["sizes"]) == {"memory", "tables", "cache", "log"}
        assert all(each["sizes"].values())
