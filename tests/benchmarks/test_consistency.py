from __future__ import annotations

import shutil

import pytest

from benchmarks.targets.duckdb_native import DuckDBTarget
from benchmarks.tpcc.consistency import failed_conditions
from benchmarks.tpcc.workload import TpccWorkload

pytestmark = pytest.mark.one_duckdb


@pytest.fixture
def connection(loaded_file, tmp_path):
    target = DuckDBTarget()
    target.prepare(shutil.copy(loaded_file, tmp_path / "copy.duckdb"))
    connection = target.connect()
    yield connection
    connection.close()
    target.close()


def test_a_loaded_database_is_consistent(connection):
    assert failed_conditions(connection) == []


@pytest.mark.parametrize(
    ("condition", "sabotage"),
    [
        ("1", "UPDATE warehouse SET w_ytd = w_ytd + 0.01 WHERE w_id = 2"),
        ("1", "DELETE FROM district WHERE d_w_id = 1"),
        ("2", "UPDATE district SET d_next_o_id = 99 WHERE d_w_id = 1 AND d_id = 3"),
        ("2", "DELETE FROM orders WHERE o_w_id = 1 AND o_d_id = 3"),
        ("2", "DELETE FROM new_order WHERE no_w_id = 1 AND no_o_id = 30"),
        ("3", "DELETE FROM new_order WHERE no_w_id = 1 AND no_o_id = 25"),
        ("4", "DELETE FROM order_line WHERE ol_w_id = 2 AND ol_o_id = 4"),
        ("4", "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_id = 4"),
    ],
)
def test_sabotage_is_found(connection, condition, sabotage):
    connection.cursor().execute(sabotage)
    connection.commit()
    failures = failed_conditions(connection)
    assert any(line.startswith(f"condition {condition} ") for line in failures)


def test_delivered_districts_need_no_new_orders(connection):
    connection.cursor().execute("DELETE FROM new_order WHERE no_w_id = 1")
    connection.commit()
    assert failed_conditions(connection) == []


def test_a_lost_order_is_found(connection, small_scale):
    workload = TpccWorkload(small_scale, seed=7)
    before = workload.state(connection)
    assert workload.failures(connection, before, {"new_order": 0}) == []
    (failure,) = workload.failures(connection, before, {"new_order": 2})
    assert "2 New-Orders were committed" in failure
