"""Named anomalies as two- and three-transaction scripts (P1, P3).

``r(x)`` reads the value of row x, ``w(x, v)`` writes it. Under SNAPSHOT only write
skew may happen; under READ COMMITTED also what a snapshot per statement allows.
"""

from __future__ import annotations

import pytest

import tique


class Script:
    """A transaction of a script, one letter per step."""

    def __init__(self, connection):
        self.connection = connection

    def r(self, key):
        row = self.connection.execute(
            "SELECT value FROM t WHERE id = %s", (key,)
        ).fetchone()
        return None if row is None else row[0]

    def w(self, key, value):
        self.connection.execute("UPDATE t SET value = %s WHERE id = %s", (value, key))

    def all(self):
        return dict(
            self.connection.execute("SELECT id, value FROM t ORDER BY id").fetchall()
        )

    def commit(self):
        self.connection.commit()

    def abort(self):
        self.connection.rollback()


@pytest.fixture(params=["memory", "query"])
def certifier(request):
    return request.param


@pytest.fixture(params=["SNAPSHOT", "READ COMMITTED"])
def level(request):
    return request.param


@pytest.fixture
def script(engine, certifier):
    with engine.connect(certifier=certifier) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, value INTEGER)")
        connection.execute("INSERT INTO t VALUES (1, 10), (2, 20)")

    def start(level="SNAPSHOT"):
        return Script(engine.connect(certifier=certifier, isolation_level=level))

    return start


def fails_with_conflict(transaction):
    with pytest.raises(tique.SerializationError) as caught:
        transaction.commit()
    assert caught.value.sqlstate == "40001"
    assert caught.value.table in ("main.t", "sys.t", "public.t")
    return caught.value


def test_g0_dirty_write(script, level):
    one, two = script(level), script(level)
    one.w(1, 11)
    two.w(1, 12)
    one.w(2, 21)
    one.commit()
    two.w(2, 22)
    conflict = fails_with_conflict(two)
    assert conflict.key == (1,)
    assert script().all() == {1: 11, 2: 21}


def test_g1a_aborted_read(script, level):
    one, two = script(level), script(level)
    one.w(1, 101)
    assert two.r(1) == 10
    assert two.all() == {1: 10, 2: 20}
    one.abort()
    assert two.r(1) == 10
    two.commit()


def test_g1b_intermediate_read(script, level):
    one, two = script(level), script(level)
    one.w(1, 101)
    assert two.r(1) == 10
    one.w(1, 11)
    one.commit()
    assert two.r(1) == (10 if level == "SNAPSHOT" else 11)


def test_g1c_circular_information_flow(script, level):
    one, two = script(level), script(level)
    one.w(1, 11)
    two.w(2, 22)
    assert one.r(2) == 20
    assert two.r(1) == 10
    one.commit()
    two.commit()
    assert script().all() == {1: 11, 2: 22}


def test_otv_observed_transaction_vanishes(script, level):
    one, two, three = script(level), script(level), script(level)
    one.w(1, 11)
    one.w(2, 19)
    two.w(1, 12)
    one.commit()
    seen = three.all()
    two.w(2, 18)
    fails_with_conflict(two)
    assert seen == three.all() == {1: 11, 2: 19}


def test_pmp_predicate_many_preceders(script):
    one, two = script(), script()
    query = "SELECT count(*) FROM t WHERE value >= 30"
    assert one.connection.execute(query).fetchone() == (0,)
    two.connection.execute("INSERT INTO t VALUES (3, 30)")
    two.commit()
    assert one.connection.execute(query).fetchone() == (0,)


def test_p4_lost_update(script):
    one, two = script(), script()
    seen_by_one, seen_by_two = one.r(1), two.r(1)
    one.w(1, seen_by_one + 1)
    two.w(1, seen_by_two + 1)
    one.commit()
    fails_with_conflict(two)
    assert script().r(1) == 11


def test_g_single_read_skew(script):
    one, two = script(), script()
    assert one.r(1) == 10
    two.w(1, 12)
    two.w(2, 18)
    two.commit()
    assert one.r(2) == 20
    assert one.all() == {1: 10, 2: 20}


def test_g_single_read_skew_happens_under_read_committed(script):
    one, two = script("READ COMMITTED"), script()
    assert one.r(1) == 10
    two.w(1, 12)
    two.w(2, 18)
    two.commit()
    assert one.r(2) == 18


def test_g2_item_write_skew_is_allowed(script):
    one, two = script(), script()
    assert one.r(1) + one.r(2) == two.r(1) + two.r(2) == 30
    one.w(1, -10)
    two.w(2, -10)
    one.commit()
    two.commit()
    assert script().all() == {1: -10, 2: -10}


def test_serializable_is_refused_not_weakened(script):
    with pytest.raises(tique.NotSupportedError, match="SERIALIZABLE"):
        script("SERIALIZABLE")


def test_unique_key_race(engine, certifier):
    """P9: of two transactions that insert the same UNIQUE value one commits."""
    setup = engine.connect(certifier=certifier)
    setup.execute("CREATE TABLE u (id INTEGER PRIMARY KEY, name TEXT UNIQUE)")
    setup.commit()
    one, two = engine.connect(certifier=certifier), engine.connect(certifier=certifier)
    one.execute("INSERT INTO u VALUES (1, 'same')")
    two.execute("INSERT INTO u VALUES (2, 'same')")
    one.commit()
    with pytest.raises(tique.SerializationError):
        two.commit()


def test_insert_race_on_a_primary_key(script):
    one, two = script(), script()
    one.connection.execute("INSERT INTO t VALUES (7, 1)")
    two.connection.execute("INSERT INTO t VALUES (7, 2)")
    one.commit()
    fails_with_conflict(two)
    assert script().r(7) == 1


def test_delete_and_update_of_the_same_row(script):
    one, two = script(), script()
    one.connection.execute("DELETE FROM t WHERE id = 1")
    two.w(1, 12)
    one.commit()
    fails_with_conflict(two)
    assert script().all() == {2: 20}


def test_two_deletes_of_one_copy_in_a_table_without_a_key(engine, certifier):
    setup = engine.connect(certifier=certifier)
    setup.execute("CREATE TABLE b (x INTEGER)")
    setup.execute("INSERT INTO b VALUES (1), (2)")
    setup.commit()
    setup.checkpoint()
    one, two = engine.connect(certifier=certifier), engine.connect(certifier=certifier)
    one.execute("DELETE FROM b WHERE x = 1")
    two.execute("DELETE FROM b WHERE x = 1")
    one.commit()
    with pytest.raises(tique.SerializationError):
        two.commit()
    assert setup.execute("SELECT x FROM b").fetchall() == [(2,)]


def test_a_later_transaction_sees_an_acknowledged_commit(script):
    """P2, strong: whoever begins after commit() returned sees it."""
    one = script()
    for value in range(50):
        one.w(1, value)
        one.commit()
        assert script().r(1) == value
