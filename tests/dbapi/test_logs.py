"""Log records' loggers and fields, without values of rows, keys and parameters (P11)."""

from __future__ import annotations

import logging
import threading

import pytest

import tique
from tique_backends.errors import EngineError, ErrorKind

SECRET = "s3cr3t"
LEASE = 1.0


class Heard(logging.Handler):
    """Keeps tique's records, and lets a test wait for one."""

    def __init__(self):
        super().__init__()
        self._records = []
        self._changed = threading.Condition()

    def emit(self, record):
        with self._changed:
            self._records.append(record)
            self._changed.notify_all()

    def events(self, event):
        return [r for r in self._records if getattr(r, "tique_event", None) == event]

    def one(self, event):
        """The first record of an event, which another thread may yet log."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.events(event), 60), event
        return self.events(event)[0]

    def text(self):
        return "".join(f"{r.getMessage()} {vars(r)}" for r in self._records)


@pytest.fixture
def heard():
    logger, heard = logging.getLogger("tique"), Heard()
    before = logger.level
    logger.addHandler(heard)
    logger.setLevel(logging.DEBUG)
    yield heard
    logger.removeHandler(heard)
    logger.setLevel(before)


def filled(connection):
    connection.execute("CREATE TABLE t (id VARCHAR(20) PRIMARY KEY, v VARCHAR(20))")
    for key in (f"{SECRET}1", f"{SECRET}2"):
        connection.execute("INSERT INTO t VALUES (%s, %s)", (key, SECRET))
    connection.commit()


def test_a_conflict(engine, heard):
    with engine.connect(checkpoint="manual") as one, engine.connect() as other:
        filled(one)
        for each in (one, other):
            each.execute("SELECT v FROM t WHERE v = %s", (SECRET,)).fetchall()
            each.execute("UPDATE t SET v = 'x' WHERE v = %s", (SECRET,))
        one.commit()
        txid, number = other.txid, other.info.number
        with pytest.raises(tique.SerializationError) as raised:
            other.commit()
    (record,) = heard.events("conflict")
    assert (record.name, record.levelname) == ("tique.commit", "DEBUG")
    assert record.tique_table == f"{engine.schema}.t"
    assert (record.tique_txid, record.tique_connection) == (txid, number)
    assert record.tique_winner == raised.value.winner
    assert SECRET not in heard.text()


def test_a_checkpoint(engine, heard):
    with engine.connect(checkpoint="manual") as connection:
        filled(connection)
        connection.checkpoint()
    record = heard.events("checkpoint")[0]
    assert (record.name, record.levelname) == ("tique.checkpoint", "DEBUG")
    assert (record.tique_versions, record.tique_failed_tables) == (2, 0)
    assert record.tique_seconds > 0
    assert SECRET not in heard.text()


def test_a_table_that_cannot_be_folded(engine, heard):
    with engine.connect(checkpoint="manual") as connection:
        filled(connection)
        database = connection._database
        session = database.engine.session()
        session.execute("ALTER TABLE t RENAME TO gone")
        database.checkpointer.checkpoint(thorough=True)
        record = heard.one("fold_failed")
        assert (record.name, record.levelname) == ("tique.checkpoint", "WARNING")
        assert record.tique_table == f"{engine.schema}.t"
        assert record.tique_error in {kind.value for kind in ErrorKind}
        assert not heard.events("fold_possible")
        session.execute("ALTER TABLE gone RENAME TO t")
        session.close()
        database.checkpointer.checkpoint(thorough=True)
        assert heard.one("fold_possible").levelname == "INFO"
    assert SECRET not in heard.text()


def test_a_failing_checkpoint_of_the_background_thread(engine, heard, monkeypatch):
    """Its exception may quote a value; the status has it, and the log the frames."""
    with engine.connect(checkpoint_age=0.01) as connection:
        filled(connection)

        def fail(*_arguments):
            raise EngineError(ErrorKind.DATA, f"cannot convert '{SECRET}'")

        monkeypatch.setattr(connection._database.engine, "prune_log", fail)
        connection.execute("UPDATE t SET v = %s", (SECRET,))
        connection.commit()
        record = heard.one("checkpoint_failed")
        monkeypatch.undo()
    assert (record.name, record.levelname) == ("tique.checkpoint", "ERROR")
    assert record.tique_error == "data"
    assert "in _round" in record.getMessage()
    assert record.exc_info is None
    assert SECRET not in heard.text()


@pytest.mark.slow
def test_recovery(engine, heard):
    with engine.connect(checkpoint="manual") as connection:
        filled(connection)
    engine.restart()
    with engine.connect(checkpoint="manual"):
        record = heard.one("recovered")
    assert (record.name, record.levelname) == ("tique.recovery", "INFO")
    assert (record.tique_versions, record.tique_failed_tables) == (2, 0)
    assert SECRET not in heard.text()


@pytest.mark.never(
    ["duckdb"], raises=AttributeError, reason="one process owns the file"
)
def test_a_lost_lease(engine, heard):
    connection = engine.connect(checkpoint="manual", lease=LEASE)
    connection._database.engine.shared.leave()
    record = heard.one("lease_lost")
    assert (record.name, record.levelname) == ("tique.lease", "ERROR")
    refused = heard.events("lease_not_renewed")[0]
    assert (refused.name, refused.levelname) == ("tique.lease", "WARNING")
    assert refused.tique_seconds >= 0
    assert refused.tique_error in {kind.value for kind in ErrorKind}
    with pytest.raises(tique.OperationalError):
        connection.execute("SELECT 1")
