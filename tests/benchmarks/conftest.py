from __future__ import annotations

import pytest

from benchmarks.tpcc.load import load
from benchmarks.tpcc.rules import Scale

SMALL = Scale(warehouses=2, districts=10, customers=30, items=100)


@pytest.fixture(scope="session")
def small_scale():
    return SMALL


@pytest.fixture(scope="session")
def loaded_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("tpcc") / "small.duckdb"
    load(path, SMALL, seed=7)
    return path
