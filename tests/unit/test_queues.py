"""Queues that several threads empty."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.effort import patience
from tique_backends.concurrency.pool import Pool
from tique_backends.concurrency.queues import taken
from tique_backends.errors import EngineError, ErrorKind

THREADS = 4


@pytest.fixture
def _switching():
    """Threads take turns after nearly every instruction."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work):
    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(work, range(400)))


class Connection:
    is_open = True

    def close(self):
        pass


@pytest.fixture
def full():
    """A pool whose server has one connection for it, and counts how often it is asked."""
    asked = []

    def connect():
        asked.append(None)
        if len(asked) > 1:
            raise EngineError(ErrorKind.OPERATIONAL, "cannot connect")
        return Connection()

    return Pool(connect)


def test_another_threads_connection_is_waited_for(full):
    """P6: the server has no other one, and that thread gives it back soon."""
    connection = full.take()
    giving = threading.Timer(0.1, full.give_back, [connection])
    giving.start()
    assert full.take() is connection
    giving.join()


def test_a_connection_that_does_not_come_back_is_not_waited_for_long(full):
    full.take()
    began = time.monotonic()
    with pytest.raises(EngineError, match="cannot connect"):
        full.take()
    assert time.monotonic() - began < patience(10)


@pytest.mark.usefixtures("_switching")
def test_connections_that_are_lost_at_once():
    """Each thread closes the idle ones, which others are closing (seen: IndexError)."""
    pool = Pool(Connection)

    def lose(_):
        for _ in range(500):
            for connection in [pool.take() for _ in range(4)]:
                pool.give_back(connection)
            pool._close_idle()

    assert in_threads(lose) == [None] * 400


@pytest.mark.usefixtures("_switching")
def test_each_item_goes_to_one_thread():
    queue = deque(range(40_000))
    found = in_threads(lambda _: list(taken(queue)))
    assert sorted(item for items in found for item in items) == list(range(40_000))
