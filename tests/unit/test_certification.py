"""Certification in memory is held against certification as a query (P3)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tique
from tests.portable import numbers

ROWS = st.tuples(st.integers(1, 5), st.one_of(st.none(), st.integers(1, 4)))
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("INSERT INTO t VALUES (%s, %s)"), ROWS),
        st.tuples(
            st.just("UPDATE t SET u = %s WHERE id = %s"), ROWS.map(lambda r: r[::-1])
        ),
        st.tuples(st.just("DELETE FROM t WHERE id = %s"), st.tuples(st.integers(1, 5))),
        st.tuples(
            st.just("UPDATE t SET id = id + 5 WHERE id = %s"),
            st.tuples(st.integers(1, 5)),
        ),
    ),
    min_size=1,
    max_size=4,
)


def run(connection, changes):
    for query, parameters in changes:
        try:
            connection.execute(query, parameters)
        except tique.IntegrityError:
            continue


@pytest.mark.slow
@given(first=CHANGES, mine=CHANGES, later=CHANGES)
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_both_certifiers_agree(engine, first, mine, later):
    """P3: the query is the definition, the index its fast form."""
    one = engine.connect(checkpoint="manual")
    two = engine.connect(checkpoint="manual")
    one.execute(
        "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, u INTEGER UNIQUE)"
    )
    one.commit()
    one.execute("DELETE FROM t")
    run(one, first)
    one.commit()
    two.execute("SELECT 1")
    run(two, mine)
    run(one, later)
    one.commit()
    transaction = two._execution.transaction
    memory = two._database.certifier
    query = memory._query
    for writes in transaction.writes.values():
        found = memory.conflict(writes, two._execution.session)
        defined = query.conflict(writes, two._execution.session)
        assert (found is None) == (defined is None)
    two.rollback()
    one.checkpoint()
    one.close()
    two.close()


@pytest.mark.parametrize("rows", [1, 199, 200, 201, 450])
def test_a_conflict_among_many_keys(engine, rows):
    """P3: every key of a large write set is asked about, however it is cut."""
    one = engine.connect(certifier="query")
    one.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    one.execute(f"INSERT INTO t SELECT number, 0 FROM {numbers(500)}")
    one.commit()
    two = engine.connect()
    two.execute("UPDATE t SET v = 1 WHERE id < %s", (rows,))
    one.execute("UPDATE t SET v = 2 WHERE id = %s", (rows - 1,))
    one.commit()
    with pytest.raises(tique.SerializationError) as caught:
        two.commit()
    assert caught.value.key == (rows - 1,)
    assert caught.value.winner == one._database.sequencer.sts()


@pytest.mark.parametrize("certifier", ["memory", "query"])
@pytest.mark.parametrize("mine", ["few", "many"])
@pytest.mark.parametrize("theirs", ["few", "many"])
def test_large_and_small_transactions_meet(engine, certifier, mine, theirs):
    """P3: staged and buffered writes are certified against each other."""
    one = engine.connect(certifier=certifier, checkpoint="manual")
    one.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    one.execute(f"INSERT INTO t SELECT number, 0 FROM {numbers(3000)}")
    one.commit()
    two = engine.connect()
    changes = {
        "few": "UPDATE t SET v = v + 1 WHERE id = 7",
        "many": "UPDATE t SET v = v + 1",
    }
    two.execute(changes[mine])
    one.execute(changes[theirs])
    one.commit()
    with pytest.raises(tique.SerializationError):
        two.commit()
    two.execute(changes[mine])
    two.commit()
    assert two.execute("SELECT v FROM t WHERE id = 7").fetchone() == (2,)
