"""A replica that is promoted is an ordinary database at its last epoch."""

from __future__ import annotations

from contextlib import closing

import pytest

import tique
from tests.replica.test_replication import caught_up, rows


@pytest.mark.slow
def test_it_takes_writes(shared_engine, source, replicate, target):
    """P4, P5: everything that was durable is there, and no timestamp is used twice."""
    replication = replicate()
    source.execute("UPDATE account SET balance = 1 WHERE id = 1")
    version = caught_up(replication, source)
    replication.stop()
    source.execute("UPDATE account SET balance = 2 WHERE id = 1")
    source.commit()
    source.execute("UPDATE account SET balance = 3 WHERE id = 1")
    source.commit()
    promoted = tique.promote(target, source=shared_engine.url)
    assert promoted.cts >= version
    assert promoted.lost == 2
    table = f"{shared_engine.schema}.account"
    with closing(tique.connect(target)) as connection:
        assert connection.version >= promoted.cts
        assert connection._database.replica is None
        assert rows(connection, f"SELECT balance FROM {table} ORDER BY id") == [
            (1,),
            (20,),
        ]
        connection.execute(f"UPDATE {table} SET balance = 9 WHERE id = 2")
        connection.commit()
        assert connection.version > promoted.cts
    with closing(tique.connect(target)) as connection:
        assert rows(connection, f"SELECT balance FROM {table} ORDER BY id") == [
            (1,),
            (9,),
        ]
    with pytest.raises(tique.OperationalError, match="no replica"):
        tique.promote(target)


@pytest.mark.slow
def test_it_is_in_use(source, replicate, reading, target):
    """One that is followed, or read, is not promoted."""
    replication = replicate()
    with pytest.raises(tique.OperationalError, match="open in this process"):
        tique.promote(target)
    copy = reading()
    replication.stop()
    with pytest.raises(tique.OperationalError, match="open in this process"):
        tique.promote(target)
    copy.close()
    assert tique.promote(target).lost in (0, None)
