"""Processes on one database, which any engine that several may use holds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.portable import numbers
from tests.sharing.playing import ROWS, Process


@pytest.fixture
def process(shared_engine):
    started = []

    def start(**options):
        started.append(Process(shared_engine.url, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def pair(process):
    first = process()
    first.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, note TEXT)")
    first.commit("INSERT INTO t VALUES (1, 0, 'a'), (2, 0, 'b')")
    return first, process()


@pytest.fixture
def filled(pair):
    first, second = pair
    first.commit(f"INSERT INTO t SELECT number + 10, 0, '' FROM {numbers(ROWS)}")
    return first, second


@pytest.fixture
def pool():
    with ThreadPoolExecutor(2) as pool:
        yield pool
