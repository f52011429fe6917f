"""A server without tique's module: all of it works, for one process at a time."""

from __future__ import annotations

import pytest

import tique
from tests.isolation.test_bank import Bank
from tests.plugins.engine import MonetDB
from tests.portable import numbers
from tique_backends.monetdb.server import MonetDBServer


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unprepared") / "server"
    with MonetDBServer(folder, sequencer=False) as server:
        yield server


@pytest.fixture
def alone(server):
    engine = MonetDB.emptied(server)
    yield engine
    engine.close()


def test_it_is_this_processs_own(alone):
    connection = alone.connect()
    status = connection.status()
    assert status.sequencer in {"c", "python"}
    assert status.processes == 1


@pytest.mark.parametrize("certifier", ["memory", "query"])
def test_bank(alone, certifier):
    """P1 to P3, P7."""
    bank = Bank(alone, certifier=certifier)
    bank.run(seconds=3, writers=6, interval=0.3)
    bank.check()


def test_bulk_writes_checkpoints_and_reopening(alone):
    """P4, P5, P8."""
    with alone.connect() as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v CLOB)")
        connection.execute(f"INSERT INTO t SELECT number, 'a' FROM {numbers(5000)}")
        connection.commit()
        connection.execute("UPDATE t SET v = 'b' WHERE id < 3000")
        connection.execute("DELETE FROM t WHERE id = 7")
        connection.commit()
        with pytest.raises(tique.IntegrityError):
            connection.execute("INSERT INTO t VALUES (8, 'c')")
    alone.close()
    with alone.connect() as connection:
        found = connection.execute("SELECT v, count(*) FROM t GROUP BY v ORDER BY v")
        assert found.fetchall() == [("a", 2000), ("b", 2999)]
        connection.rollback()
        connection.checkpoint()
        assert all(t.cached_rows == 0 for t in connection.status().tables)


def test_its_server_may_get_the_module_and_lose_it(tmp_path):
    """P5, P8: the database goes on."""
    kinds = {False: {"c", "python"}, True: {"server"}}
    for number, has_module in enumerate([False, True, False, True]):
        with (
            MonetDBServer(tmp_path / "server", sequencer=has_module) as server,
            tique.connect(server.url) as connection,
        ):
            assert connection.status().sequencer in kinds[has_module]
            connection.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY)")
            connection.execute("INSERT INTO t VALUES (%s)", (number,))
            connection.commit()
            found = connection.execute("SELECT id FROM t ORDER BY id").fetchall()
            assert [key for (key,) in found] == list(range(number + 1))
