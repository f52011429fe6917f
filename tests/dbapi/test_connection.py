"""Connections: their life, autocommit, isolation, and use after the end."""

from __future__ import annotations

import gc
import os
import time
import warnings

import pytest

import tique


@pytest.fixture
def connection(engine):
    connection = engine.connect()
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
    return connection


def rows(connection):
    found = connection.execute("SELECT id, v FROM t ORDER BY id").fetchall()
    connection.rollback()
    return found


def wait_until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def test_close_rolls_back(engine, connection):
    """P8: uncommitted writes are gone."""
    connection.execute("INSERT INTO t VALUES (1, 'a')")
    connection.close()
    connection.close()
    assert connection.closed
    assert rows(engine.connect()) == []


@pytest.mark.parametrize(
    "use",
    [
        lambda c: c.cursor(),
        lambda c: c.execute("SELECT 1"),
        lambda c: c.commit(),
        lambda c: c.rollback(),
        lambda c: c.checkpoint(),
        lambda c: c.cancel(),
        lambda c: c.outcome(1),
        lambda c: c.__enter__(),
        lambda c: c.transaction().__enter__(),
        lambda c: setattr(c, "autocommit", True),
        lambda c: setattr(c, "isolation_level", "SNAPSHOT"),
    ],
)
def test_use_after_close(connection, use):
    connection.close()
    with pytest.raises(tique.InterfaceError, match="closed"):
        use(connection)


def test_cursors_end_with_their_connection(connection):
    """PEP 249: the same applies to all cursors that try to use it."""
    connection.execute("INSERT INTO t VALUES (1, 'a')")
    cursors = [
        connection.execute("SELECT * FROM t WHERE id = 1"),
        connection.execute("SELECT * FROM t"),
    ]
    connection.close()
    for cursor in cursors:
        for use in (cursor.fetchone, cursor.fetchall, cursor.fetch_arrow_table):
            with pytest.raises(tique.InterfaceError, match="closed"):
                use()
        with pytest.raises(tique.InterfaceError, match="closed"):
            cursor.execute("SELECT 1")
        cursor.close()


def test_with_commits_and_closes(engine, connection):
    with connection as entered:
        assert entered is connection
        connection.execute("INSERT INTO t VALUES (1, 'a')")
    assert connection.closed
    assert rows(engine.connect()) == [(1, "a")]


def test_with_rolls_back_on_an_exception(engine, connection):
    connection.commit()
    with pytest.raises(KeyError), connection:  # noqa: PT012
        connection.execute("INSERT INTO t VALUES (1, 'a')")
        raise KeyError
    assert connection.closed
    assert rows(engine.connect()) == []


def test_with_bears_a_close_inside(connection):
    with connection:
        connection.close()
    assert connection.closed


def test_autocommit(engine, connection):
    connection.commit()
    connection.autocommit = True
    connection.execute("INSERT INTO t VALUES (1, 'a')")
    assert not connection.in_transaction
    assert rows(engine.connect()) == [(1, "a")]
    with pytest.raises(tique.IntegrityError):
        connection.execute("INSERT INTO t VALUES (1, 'b')")
    assert not connection.in_transaction
    connection.rollback()
    assert rows(engine.connect()) == [(1, "a")]


def test_autocommit_rests_between_begin_and_commit(engine, connection):
    connection.commit()
    connection.autocommit = True
    connection.execute("BEGIN")
    connection.execute("INSERT INTO t VALUES (1, 'a')")
    assert rows(engine.connect()) == []
    connection.execute("ROLLBACK")
    connection.execute("START TRANSACTION")
    connection.execute("INSERT INTO t VALUES (2, 'b')")
    connection.execute("COMMIT")
    assert connection.autocommit
    assert rows(engine.connect()) == [(2, "b")]


def test_autocommit_and_isolation_cannot_change_in_a_transaction(connection):
    connection.execute("SELECT 1")
    with pytest.raises(tique.ProgrammingError, match="autocommit") as caught:
        connection.autocommit = True
    assert caught.value.sqlstate == "25001"
    with pytest.raises(tique.ProgrammingError, match="isolation"):
        connection.isolation_level = "READ COMMITTED"
    connection.commit()
    connection.autocommit = True
    connection.isolation_level = "read committed"
    assert connection.isolation_level == "READ COMMITTED"
    connection.isolation_level = tique.IsolationLevel.SNAPSHOT
    assert connection.isolation_level == "SNAPSHOT"
    connection.set_isolation_level("serializable")
    assert connection.isolation_level == "SERIALIZABLE"


@pytest.mark.parametrize("level", ["READ UNCOMMITTED", "STRICT SERIALIZABLE", "", 7])
def test_other_isolation_levels_are_refused(engine, connection, level):
    """P10: refused, not weakened."""
    connection.commit()
    with pytest.raises(tique.NotSupportedError, match="isolation level"):
        connection.isolation_level = level
    with pytest.raises(tique.NotSupportedError, match="isolation level"):
        engine.connect(isolation_level=level)


def test_unknown_options_are_named(engine):
    with pytest.raises(tique.InterfaceError, match="certifyer"):
        engine.connect(certifyer="memory")
    with pytest.raises(tique.InterfaceError, match="numeric"):
        engine.connect(paramstyle="numeric")
    with pytest.raises(tique.InterfaceError, match="certifier='x'"):
        engine.connect(certifier="x")


def test_qmark(engine, connection):
    connection.commit()
    asking = engine.connect(paramstyle="qmark")
    asking.execute("INSERT INTO t VALUES (?, ?)", (1, "100%s ?"))
    assert asking.execute("SELECT v, '%s' FROM t WHERE id = ?", [1]).fetchone() == (
        "100%s ?",
        "%s",
    )
    with pytest.raises(tique.ProgrammingError, match="1 placeholder"):
        asking.execute("SELECT v FROM t WHERE id = ?", (1, 2))


def test_a_garbage_collected_connection_holds_nothing_back(engine, connection):
    """P6: an abandoned transaction's snapshot does not hold checkpoints back."""
    connection.execute("INSERT INTO t VALUES (1, 'a')")
    connection.commit()
    import tique as driver  # not through the fixture, which would keep it alive

    abandoned = driver.connect(engine.url)
    abandoned.execute("SELECT * FROM t").fetchall()
    abandoned.execute("INSERT INTO t VALUES (2, 'lost')")
    connection.execute("UPDATE t SET v = 'b' WHERE id = 1")
    connection.commit()
    txid = abandoned.txid
    del abandoned
    gc.collect()
    assert connection.outcome(txid) == "aborted"
    connection.checkpoint()
    versions = connection._database.catalog.all_versions()
    wait_until(
        lambda: connection.checkpoint() == 0 and all(v.is_empty for v in versions)
    )
    assert rows(connection) == [(1, "b")]
    wait_until(lambda: connection._database.connections == 1)


def test_outcomes(connection):
    """P4: the outcome of a transaction can be asked for by its txid."""
    connection.commit()
    assert connection.txid is None
    connection.execute("INSERT INTO t VALUES (1, 'a')")
    committed = connection.txid
    assert connection.outcome(committed) == "active"
    connection.commit()
    connection.execute("INSERT INTO t VALUES (2, 'b')")
    aborted = connection.txid
    connection.rollback()
    assert connection.outcome(committed) == "committed"
    assert connection.outcome(aborted) == "aborted"
    assert connection.outcome(committed + 10**15) == "unknown"


def test_a_fork_may_not_use_the_connection(engine, connection):
    connection.execute("INSERT INTO t VALUES (1, 'a')")
    connection.commit()
    cursor = connection.execute("SELECT * FROM t")
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        refused = 0
        for use in (
            lambda: connection.execute("SELECT 1"),
            connection.commit,
            connection.rollback,
            cursor.fetchone,
        ):
            try:
                use()
            except tique.InterfaceError as error:
                refused += "fork" in str(error)
            except BaseException:
                pass
        os.write(writing, bytes([refused]))
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as answer:
        assert answer.read() == bytes([4])
    os.waitpid(child, 0)
    assert cursor.fetchone() == (1, "a")
    assert rows(connection) == [(1, "a")]


def test_info(connection):
    info = connection.info
    assert info.sequencer in ("c", "python")
    assert info.certifier == "memory"
    assert info.engine_statements > 0
    assert info.engine_seconds > 0


def test_the_url_may_give_the_isolation_level(engine):
    """P12: the keyword comes first, and what is not there is refused."""
    sign = "&" if "?" in engine.url else "?"
    url = f"{engine.url}{sign}isolation_level="
    for given, level in (
        ("READ%20COMMITTED", "READ COMMITTED"),
        ("read_committed", "READ COMMITTED"),
        ("repeatable%20read", "SNAPSHOT"),
        ("snapshot", "SNAPSHOT"),
        ("serializable", "SERIALIZABLE"),
    ):
        with tique.connect(url + given) as connection:
            assert connection.isolation_level == level
    with tique.connect(url + "READ%20COMMITTED", isolation_level="SNAPSHOT") as found:
        assert found.isolation_level == "SNAPSHOT"
    for wrong in ("read%20uncommitted", "", "chaos"):
        with pytest.raises(tique.NotSupportedError, match="isolation level"):
            tique.connect(url + wrong)
    tique.adopt(url + "snapshot", [])
