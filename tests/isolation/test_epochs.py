"""Transaction ids: none is used twice, and there are enough of them (P5, P6)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

import tique
from tests.sharing.playing import Process
from tique.timeline import ids, recovery
from tique_backends.engine import (
    FORMAT_OF_OWNERS_CODE,
    FORMAT_VERSION,
    FORMAT_WITHOUT_HISTORY,
)

LAST = 2**43 - 2
"""The number before that of the last epoch."""


def natively(engine, *statements):
    with closing(engine.native()) as native:
        for sql in statements:
            native.execute(sql)
        getattr(native, "commit", lambda: None)()


def epoch_of(engine):
    with closing(engine.native()) as native:
        rows = native.execute("SELECT version, epoch FROM tique.format").fetchall()
        return rows[0]


def txid_of(connection):
    connection.execute("SELECT 1")
    txid = connection.txid
    connection.rollback()
    return txid


@pytest.fixture
def few(monkeypatch):
    """Epochs of five transactions."""
    few = lambda epoch: range(epoch * 2**20, epoch * 2**20 + 6)  # noqa: E731
    monkeypatch.setattr(ids, "txids_of", few)


def test_openings_for_centuries(engine):
    """P6: as many as can be; then a word about it, and nothing is lost."""
    connection = engine.connect()
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    connection.commit()
    engine.close()
    natively(engine, f"UPDATE tique.format SET epoch = {LAST - 1}")
    with closing(tique.connect(engine.url)) as again:
        assert txid_of(again) == LAST * 2**20 + 1 < 2**63
        again.execute("INSERT INTO t VALUES (1)")
        again.commit()
    for _ in range(2):
        with pytest.raises(tique.OperationalError, match="are used up") as caught:
            tique.connect(engine.url)
        assert caught.value.sqlstate == "54000"
    natively(engine, f"UPDATE tique.format SET epoch = {LAST - 1}")
    with closing(tique.connect(engine.url)) as again:
        assert again.execute("SELECT * FROM t").fetchall() == [(1,)]


def test_a_process_that_begins_more_than_an_epoch(engine, few):
    """P4, P5: it takes another one, and the outcomes of all transactions are known."""
    with closing(engine.connect()) as one, closing(engine.connect()) as two:
        one.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        one.commit()
        two.execute("INSERT INTO t VALUES (100)")
        old = two.txid
        seen = []
        for number in range(12):
            one.execute(f"INSERT INTO t VALUES ({number})")
            seen.append(one.txid)
            one.commit()
        assert len({txid >> 20 for txid in seen}) >= 3
        assert sorted(set(seen)) == seen
        assert all(0 < txid % 2**20 < 6 for txid in seen)
        assert {one.outcome(txid) for txid in seen} == {"committed"}
        assert one.outcome(old) == "active"
        two.commit()
        assert one.outcome(old) == "committed"
        two.execute("INSERT INTO t VALUES (101)")
        lost = two.txid
        two.rollback()
        assert one.outcome(lost) == "aborted"
    engine.close()
    with closing(engine.connect()) as again:
        assert txid_of(again) > max(*seen, lost)
        assert again.execute("SELECT count(*) FROM t").fetchall() == [(13,)]


def test_threads_that_use_an_epoch_up_together(engine, few):
    with closing(engine.connect()) as first:
        txid_of(first)

        def begin(_):
            with closing(engine.connect()) as connection:
                return [txid_of(connection) for _ in range(20)]

        with ThreadPoolExecutor(4) as pool:
            seen = [txid for part in pool.map(begin, range(4)) for txid in part]
    assert len(set(seen)) == len(seen) == 80
    assert all(0 < txid % 2**20 < 6 for txid in seen)


@pytest.mark.parametrize(
    "found",
    [FORMAT_OF_OWNERS_CODE, FORMAT_WITHOUT_HISTORY],
)
def test_a_database_of_a_format_before(engine, found):
    """P5: it opens, and no id is used twice."""
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute("INSERT INTO t VALUES (1, 1)")
    connection.commit()
    engine.close()
    assert epoch_of(engine)[0] == FORMAT_VERSION
    natively(
        engine,
        "DROP TABLE tique.history",
        "DROP TABLE tique.moments",
        f"UPDATE tique.format SET version = {found}, epoch = 4194304",
    )
    with closing(engine.connect()) as again:
        assert txid_of(again) > 4194305 * 2**20
        again.execute("UPDATE t SET v = v + 1")
        again.commit()
        assert again.execute("SELECT * FROM t").fetchall() == [(1, 2)]
    engine.close()
    assert epoch_of(engine)[0] == FORMAT_VERSION
    with closing(engine.connect()) as again:
        assert again.execute("SELECT * FROM t").fetchall() == [(1, 2)]


@pytest.mark.parametrize(
    "found",
    [FORMAT_OF_OWNERS_CODE, FORMAT_WITHOUT_HISTORY],
)
def test_a_process_that_knows_a_format_before_only(shared_engine, found):
    """P5, P6: nothing changes under it; the database is upgraded when it has ended."""
    engine = shared_engine
    old = Process(engine.url)
    old.commit("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    natively(engine, f"UPDATE tique.format SET version = {found}")
    with pytest.raises(tique.OperationalError, match="older version") as refusal:
        Process(engine.url)
    assert refusal.value.sqlstate == "55006"
    assert epoch_of(engine)[0] == found
    old.close()
    new = Process(engine.url)
    assert epoch_of(engine)[0] == FORMAT_VERSION
    new.commit("INSERT INTO t VALUES (1)")
    assert new.rows("SELECT * FROM t") == [(1,)]
    new.close()


def test_an_epoch_is_a_range_of_ids():
    assert recovery.txids_of(0).start == 0
    assert recovery.txids_of(7).stop == recovery.txids_of(8).start
    assert recovery.txids_of(LAST).stop <= 2**63 - 2**20
