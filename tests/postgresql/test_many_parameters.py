"""How many parameters a statement may have."""

from __future__ import annotations

import pytest

import tique
from tests.portable import numbers

MOST = 65_535

pytestmark = pytest.mark.written_for(["postgresql"], reason="the limit is PostgreSQL's")


@pytest.mark.slow
def test_more_than_the_protocol_has(engine):
    connection = engine.connect()
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    connection.execute(f"INSERT INTO t SELECT number FROM {numbers(100)}")
    connection.commit()

    def count(length):
        listed = ",".join(["%s"] * length)
        query = f"SELECT count(*) FROM t WHERE id + 0 IN ({listed})"
        return connection.execute(query, list(range(50, 50 + length))).fetchone()

    with pytest.raises(
        tique.OperationalError, match="takes 65,535 parameters"
    ) as refused:
        count(MOST + 1)
    assert refused.value.sqlstate == "54000"
    # The connection is as good as before.
    assert count(10) == (10,)
    connection.execute("DELETE FROM t WHERE id = ANY (%s)", (list(range(MOST + 1)),))
    connection.commit()
    assert count(10) == (0,)
