"""A process forks while its connections are in use: ``os.fork``, multiprocessing, gunicorn.

Invariant: what a forked process inherits it can neither use, nor end, nor wait for, and it
begins without it; the parent does not notice (P4, P6, P12).
"""

from __future__ import annotations

import multiprocessing
import signal
import time

import pytest

import tique
from tests.effort import patience
from tests.processes.children import ChildProcess

ADVICE = ("forked", "after the fork", "spawn")


@pytest.fixture
def table(engine):
    with engine.connect() as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
        values = ", ".join(f"({id}, 0)" for id in range(1, 501))
        connection.execute(f"INSERT INTO t VALUES {values}")
        connection.commit()
    engine.close()


@pytest.mark.slow
@pytest.mark.every_engine
@pytest.mark.parametrize("end", ["_exit", "exit"])
@pytest.mark.parametrize("way", ["driver", "sqlalchemy"])
def test_children_of_a_process_at_work(engine, table, way, end):
    """P4, P6, P12: they open a server's database anew; a file's is refused with advice."""
    with ChildProcess("tests.processes.forking_child", engine.url, way, end) as child:
        child.end(timeout=90)
        assert child.of_kind("status") == [["0"], ["0"]], child.errors
        assert child.of_kind("finished") == [[]], child.errors
        if engine.name == "duckdb":
            refused = [" ".join(words) for words in child.of_kind("refused")]
            assert len(refused) == 2
            assert all(part in text for text in refused for part in ADVICE), refused
            assert child.of_kind("rows") == [[]]
        else:
            assert child.of_kind("rows") == [["-2", "-1"]], child.lines
        assert "Traceback" not in child.errors


def _add(url, number, told):
    try:
        with tique.connect(url) as connection:
            connection.execute(f"INSERT INTO t VALUES ({number}, 0)")
    except tique.Error as error:
        told.put((type(error).__name__, str(error)))
    else:
        told.put(("", ""))


@pytest.mark.slow
@pytest.mark.every_engine
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_multiprocessing(engine, table, method):
    """P12: its workers write; one process has DuckDB's file, and the error says what to do."""
    context = multiprocessing.get_context(method)
    told = context.Queue()
    with engine.connect() as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (500,)
        workers = [
            context.Process(target=_add, args=(engine.url, -number, told))
            for number in (1, 2)
        ]
        for worker in workers:
            worker.start()
        answers = [told.get(timeout=patience(30)) for _ in workers]
        for worker in workers:
            worker.join(patience(30))
            assert worker.exitcode == 0
        connection.rollback()
        added = connection.execute("SELECT id FROM t WHERE id < 0").fetchall()
    if engine.name != "duckdb":
        assert answers == [("", "")] * 2
        assert sorted(added) == [(-2,), (-1,)]
    else:
        kind = "InterfaceError" if method == "fork" else "DatabaseLocked"
        assert {name for name, _ in answers} == {kind}
        if method == "fork":
            assert all(part in text for _, text in answers for part in ADVICE)
        assert added == []


def test_a_child_keeps_no_session_of_its_parent_alive(shared_engine):
    """P6: a server learns that the parent was killed, though its child lives."""
    shared_engine.restart()
    connection = shared_engine.connect(lease=300)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    connection.commit()
    with ChildProcess(
        "tests.processes.forking_child", shared_engine.url, "orphan", "300"
    ) as parent:
        parent.await_lines("forked")
        assert connection.status().processes == 2
        parent.signal(signal.SIGKILL)
        latest = time.monotonic() + patience(10)
        while connection.status().processes > 1:
            assert time.monotonic() < latest
            time.sleep(0.1)
        parent.end()
