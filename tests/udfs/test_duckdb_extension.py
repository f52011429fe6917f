"""The sequencer's SQL functions in DuckDB."""

import os
import subprocess
import sys
import threading
import time

import duckdb
import pytest

from tique_udfs import SequencerError, open_sequencer
from tique_udfs.duckdb import PreparedError, load, prepared

NUMBERS = "SELECT tique_sts(), tique_cts(), tique_lambda(), tique_active()"


def connect(path=":memory:"):
    return duckdb.connect(path, config={"allow_unsigned_extensions": "true"})


@pytest.fixture
def connection():
    with connect() as opened:
        yield opened


def numbers(sequencer):
    return (
        sequencer.sts(),
        sequencer.cts(),
        sequencer.stable(),
        len(sequencer.active()),
    )


def test_sql_and_driver_share_one_state(connection, native):
    assert load(connection, native) is True
    native.recover(sts=20, txid=3)
    native.begin()
    native.begin()
    native.finish(native.next_cts())
    native.next_cts()
    assert connection.execute(NUMBERS).fetchone() == numbers(native) == (21, 22, 20, 2)
    with connection.cursor() as other:
        assert other.execute(NUMBERS).fetchone() == (21, 22, 20, 2)


def test_the_functions_are_volatile(connection, native):
    load(connection, native)
    rows = "SELECT count(*), min(tique_sts()), max(tique_sts()) FROM range(5000)"
    assert connection.execute(rows).fetchone() == (5000, 0, 0)
    connection.execute("PREPARE look AS SELECT tique_sts()")
    for sts in (1, 2):
        native.finish(native.next_cts())
        assert connection.execute("EXECUTE look").fetchone() == (sts,)
    functions = connection.execute(
        "SELECT DISTINCT function_name, stability FROM duckdb_functions() "
        "WHERE function_name LIKE 'tique%' ORDER BY ALL"
    ).fetchall()
    assert functions == [
        (f"tique_{name}", "VOLATILE")
        for name in ("active", "binding", "cts", "lambda", "sts")
    ]


def test_each_instance_has_its_own_sequencer(connection, native):
    second = open_sequencer("second")
    with connect() as other:
        load(connection, native)
        load(other, second)
        second.recover(sts=7, txid=0)
        assert connection.execute("SELECT tique_sts()").fetchone() == (0,)
        assert other.execute("SELECT tique_sts()").fetchone() == (7,)
        second.close()
        assert connection.execute("SELECT tique_sts()").fetchone() == (0,)


def test_loading_again_changes_nothing(connection, native):
    for _ in range(2):
        assert load(connection, native) is True
    assert connection.execute("SELECT tique_sts()").fetchone() == (0,)


def test_a_closed_sequencer_is_an_sql_error(connection, native):
    load(connection, native)
    native.close()
    for name in ("sts", "cts", "lambda", "active"):
        with pytest.raises(duckdb.Error, match="sequencer is closed"):
            connection.execute(f"SELECT tique_{name}()").fetchall()
    assert connection.execute("SELECT 42").fetchone() == (42,)


def test_an_instance_outlives_its_sequencer(connection, native):
    load(connection, native)
    native.close()
    successor = open_sequencer("successor")
    successor.recover(sts=5, txid=0)
    assert load(connection, successor) is True
    assert connection.execute("SELECT tique_sts()").fetchone() == (5,)


def test_an_instance_cannot_belong_to_two_sequencers(connection, native):
    load(connection, native)
    second = open_sequencer("second")
    second.recover(sts=5, txid=0)
    with pytest.raises(SequencerError, match="'second' already belongs to another"):
        load(connection, second)
    assert connection.execute("SELECT tique_sts()").fetchone() == (0,)


def test_a_file_opened_again_gets_the_functions_again(native, tmp_path):
    for _ in range(3):
        with connect(tmp_path / "shop.duckdb") as connection:
            assert load(connection, native) is True
            assert connection.execute("SELECT tique_sts()").fetchone() == (0,)


def test_only_the_driver_loads_it(connection, native):
    with pytest.raises(duckdb.Error, match="only the tique driver loads"):
        connection.execute(f"LOAD '{native.library.path}'")
    assert load(connection, native) is True


def test_a_refusal_by_duckdb_is_logged(native, caplog):
    with duckdb.connect() as strict:
        assert load(strict, native) is False
        with pytest.raises(duckdb.Error, match="tique_sts"):
            strict.execute("SELECT tique_sts()")
    (record,) = caplog.records
    assert record.name == "tique.sequencer"
    assert "unsigned" in record.getMessage()


def test_the_next_load_after_a_refusal_is_right(connection, native, caplog):
    second = open_sequencer("second")
    with duckdb.connect() as strict:
        load(strict, second)
    load(connection, native)
    native.recover(sts=3, txid=0)
    assert connection.execute("SELECT tique_sts()").fetchone() == (3,)


def test_a_python_sequencer_has_no_functions(connection, monkeypatch):
    monkeypatch.setenv("TIQUE_SEQUENCER", "python")
    slow = open_sequencer("slow")
    assert load(connection, slow, for_prepared=True) is False
    assert prepared(connection, slow, INSERT) is None


# The prepared statement

INSERT = "INSERT INTO log VALUES ($1, $2, $3)"


def prepare(connection, native):
    connection.execute("CREATE TABLE log (a BIGINT, b BIGINT, text VARCHAR NOT NULL)")
    assert load(connection, native, for_prepared=True) is True
    return prepared(connection, native, INSERT)


def logged(connection):
    return connection.execute("SELECT * FROM log ORDER BY a").fetchall()


def test_a_prepared_statement_runs_again_and_again(connection, native):
    statement = prepare(connection, native)
    texts = ["", "it's", "a\0b", "é😀", "x" * 1_000_000]
    for number, text in enumerate(texts):
        assert statement.run(number, -(2**63), text) is True
    assert logged(connection) == [(n, -(2**63), t) for n, t in enumerate(texts)]


def test_it_is_prepared_anew_where_definitions_change(connection, native):
    statement = prepare(connection, native)
    statement.run(1, 1, "before")
    connection.execute("CREATE TABLE other (n INTEGER)")
    statement.run(2, 2, "beside another table")
    connection.execute("ALTER TABLE log RENAME TO old")
    connection.execute("CREATE TABLE log AS FROM old LIMIT 0")
    statement.run(3, 3, "to another table")
    assert logged(connection) == [(3, 3, "to another table")]


def test_its_failure_is_an_error_and_undone(connection, native):
    statement = prepare(connection, native)
    connection.execute("CREATE UNIQUE INDEX once ON log (a)")
    statement.run(1, 1, "first")
    with pytest.raises(PreparedError, match="Duplicate key"):
        statement.run(1, 2, "again")
    statement.run(2, 2, "second")
    connection.execute("DROP TABLE log")
    for _ in range(2):
        with pytest.raises(PreparedError, match=r"Table with name .*log"):
            statement.run(3, 3, "nowhere")
    connection.execute("CREATE TABLE log (a BIGINT, b BIGINT, text VARCHAR)")
    statement.run(4, 4, "here")
    assert logged(connection) == [(4, 4, "here")]


def test_it_is_a_transaction_of_its_own(connection, native):
    statement = prepare(connection, native)
    connection.execute("BEGIN")
    assert logged(connection) == []
    statement.run(1, 1, "beside the open transaction")
    assert logged(connection) == []
    connection.execute("ROLLBACK")
    assert len(logged(connection)) == 1


def is_open(path):
    """Whether this process has the file open: no other one can open it then."""
    code = f"import duckdb; duckdb.connect({str(path)!r}).close()"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0 or "lock" in found.stderr
    return found.returncode != 0


def test_the_instance_is_open_until_it_is_closed(native, tmp_path):
    path = tmp_path / "shop.duckdb"
    connection = connect(path)
    statement = prepare(connection, native)
    connection.close()
    assert statement.run(1, 1, "nobody else is connected") is True
    assert is_open(path)
    statement.close()
    statement.close()
    assert not is_open(path)
    assert statement.run(2, 2, "it is closed") is False
    with connect(path) as reader:
        assert len(logged(reader)) == 1


def test_it_is_closed_with_its_object(native, tmp_path):
    path = tmp_path / "shop.duckdb"
    connection = connect(path)
    statement = prepare(connection, native)
    connection.close()
    assert is_open(path)
    del statement
    assert not is_open(path)


def test_a_fork_leaves_it_to_its_process(connection, native):
    statement = prepare(connection, native)
    child = os.fork()
    if child == 0:
        statement.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert statement.run(1, 1, "in the parent") is True


def test_an_instance_that_outlived_its_sequencer_has_none(connection, native):
    statement = prepare(connection, native)
    statement.close()
    native.close()
    successor = open_sequencer("successor")
    assert load(connection, successor, for_prepared=True) is True
    assert prepared(connection, successor, INSERT).run(1, 1, "no connection") is False


def test_it_runs_while_the_interpreter_goes_on_and_it_is_closed(connection, native):
    statement = prepare(connection, native)
    done = []

    def run():
        while statement.run(len(done), 0, "x" * 1000):
            done.append(None)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    while len(done) < 200:
        time.sleep(0.001)
    statement.close()
    for thread in threads:
        thread.join(10.0)
        assert not thread.is_alive()
    assert connection.execute("SELECT count(*) FROM log").fetchone() == (len(done),)


def test_sql_reads_while_transactions_run_and_the_sequencer_closes(connection, native):
    load(connection, native)
    advances = [threading.Event() for _ in range(3)]
    errors = []

    def read(advanced):
        with connection.cursor() as cursor:
            last = 0
            try:
                while True:
                    (sts,) = cursor.execute("SELECT tique_sts()").fetchone()
                    assert sts >= last
                    if sts > last > 0:
                        advanced.set()
                    last = sts
            except (duckdb.Error, AssertionError) as error:
                errors.append(str(error))

    readers = [threading.Thread(target=read, args=(event,)) for event in advances]
    for reader in readers:
        reader.start()
    deadline = time.monotonic() + 20
    while not all(event.is_set() for event in advances):
        assert time.monotonic() < deadline
        txid, _ = native.begin()
        native.finish(native.next_cts())
        native.end(txid)
    native.close()
    for reader in readers:
        reader.join(20)
    assert len(errors) == 3
    assert all("sequencer is closed" in error for error in errors)
