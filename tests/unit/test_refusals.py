"""Bad input and bad states: a clear error each, and nothing lost."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap

import pytest

import tique
import tique.errors
from tique_backends.engine import FORMAT_VERSION


@pytest.fixture
def connection(engine):
    opened = engine.connect(checkpoint="manual")
    opened.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    opened.execute("INSERT INTO t VALUES (1, 10)")
    opened.commit()
    opened.checkpoint()
    return opened


def child(code, *arguments, **options):
    """Run a script in another process; its output."""
    finished = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


# Statements


@pytest.mark.parametrize(
    ("statement", "parameters", "error", "message"),
    [
        # MonetDB cannot be asked whether that is SQL.
        (
            "SELEC * FROM t",
            None,
            (tique.NotSupportedError, tique.ProgrammingError),
            "SELEC",
        ),
        ("SELECT * FROM t WHERE (id = 1", None, tique.ProgrammingError, ""),
        ("", None, tique.ProgrammingError, ""),
        ("SELECT * FROM missing", None, tique.ProgrammingError, "missing"),
        ("UPDATE missing SET v = 1", None, tique.ProgrammingError, "missing"),
        ("UPDATE t SET missing = 1", None, tique.ProgrammingError, "missing"),
        ("SELECT missing FROM t", None, tique.ProgrammingError, "missing"),
        ("SELECT * FROM t WHERE id = %s", (), tique.ProgrammingError, "parameter"),
        ("SELECT * FROM t WHERE id = %s", (1, 2), tique.ProgrammingError, "parameter"),
        ("SELECT * FROM t WHERE id = %(a)s", {"b": 1}, tique.ProgrammingError, "a"),
        ("INSERT INTO t VALUES (2, 3, 4)", None, tique.ProgrammingError, ""),
        ("INSERT INTO t VALUES (2, 'x')", None, tique.DataError, ""),
        ("SELECT v, CAST('x' AS INTEGER) FROM t", None, tique.DataError, "x"),
        ("SELECT * FROM t; DROP TABLE t", None, tique.NotSupportedError, ""),
        # NotSupportedError where the engine has it, and else a syntax error.
        ("ATTACH 'x' AS y", None, tique.DatabaseError, "ATTACH"),
        ("SELECT * FROM tique.log", None, tique.NotSupportedError, "tique"),
        (
            "INSERT INTO t VALUES (1, 1)",
            None,
            tique.errors.UniqueViolation,
            ".t has a row",
        ),
        ("INSERT INTO t VALUES (NULL, 1)", None, tique.errors.NotNullViolation, "id"),
    ],
)
def test_a_bad_statement_leaves_the_transaction_as_it_was(
    connection, statement, parameters, error, message
):
    connection.execute("UPDATE t SET v = 11 WHERE id = 1")
    with pytest.raises(error) as caught:
        connection.execute(statement, parameters).fetchall()
    assert message.lower() in str(caught.value).lower()
    assert caught.value.sqlstate is not None
    connection.commit()
    assert connection.execute("SELECT * FROM t").fetchall() == [(1, 11)]


def test_use_after_close(engine, connection):
    cursor = connection.execute("SELECT * FROM t")
    cursor.close()
    with pytest.raises(tique.InterfaceError, match="cursor is closed"):
        cursor.fetchall()
    other = connection.cursor()
    connection.close()
    connection.close()
    for use in (
        lambda: connection.execute("SELECT 1"),
        lambda: other.execute("SELECT 1"),
        connection.cursor,
        connection.commit,
        connection.rollback,
        connection.checkpoint,
        lambda: connection.outcome(1),
    ):
        with pytest.raises(tique.InterfaceError, match="closed"):
            use()
    assert engine.connect().execute("SELECT * FROM t").fetchall() == [(1, 10)]


def test_open_work_is_rolled_back_by_close(engine, connection):
    connection.execute("UPDATE t SET v = 0")
    connection.close()
    assert engine.connect().execute("SELECT v FROM t").fetchall() == [(10,)]


# Databases


def test_another_format_version(engine, connection):
    engine.close()
    native = engine.native()
    native.execute("UPDATE tique.format SET version = 99")
    native.close()
    for _ in range(2):
        with pytest.raises(tique.OperationalError, match=r"format 99.*tique detach"):
            tique.connect(engine.url)
    # The file is let go of, and untouched.
    native = engine.native()
    native.execute(f"UPDATE tique.format SET version = {FORMAT_VERSION}")
    assert native.execute("SELECT * FROM t").fetchall() == [(1, 10)]
    assert engine.connect().execute("SELECT * FROM t").fetchall() == [(1, 10)]


@pytest.mark.parametrize("content", [b"", b"hello", b"hello world " * 1000])
def test_not_a_database(tmp_path, content):
    path = tmp_path / "text.duckdb"
    path.write_bytes(content)
    with pytest.raises(tique.OperationalError, match=r"text\.duckdb"):
        tique.connect(f"duckdb:///{path}")
    assert path.read_bytes() == content


def test_a_folder(tmp_path):
    with pytest.raises(tique.OperationalError, match="directory"):
        tique.connect(f"duckdb:///{tmp_path}")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(tique.OperationalError, match=r"no folder .*missing"):
        tique.connect(f"duckdb:///{tmp_path}/missing/shop.duckdb")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["tique.duckdb", "Tique.db", "tique.a.b", "tique"])
def test_a_file_called_as_the_schema(tmp_path, name):
    with pytest.raises(tique.NotSupportedError, match=f"cannot be called {name}"):
        tique.connect(f"duckdb:///{tmp_path}/{name}")
    assert list(tmp_path.iterdir()) == []


def test_wrong_options(engine):
    with pytest.raises(tique.InterfaceError, match=r"nope.*certifier"):
        engine.connect(nope=1)
    with pytest.raises(tique.InterfaceError, match="certifier='magic'"):
        engine.connect(certifier="magic")
    with pytest.raises(tique.InterfaceError, match="paramstyle"):
        engine.connect(paramstyle="numeric")
    with pytest.raises(tique.NotSupportedError, match="READ UNCOMMITTED"):
        engine.connect(isolation_level="READ UNCOMMITTED")
    with pytest.raises(tique.Error, match="nope"):
        tique.connect(engine.url + "?nope=1")
    assert engine.connect().execute("SELECT 1").fetchone() == (1,)


def test_conflicting_settings(engine, connection):
    with pytest.raises(tique.InterfaceError, match="share its settings"):
        engine.connect(checkpoint="auto", certifier="query")
    assert engine.connect(checkpoint="manual").execute("SELECT 1").fetchone() == (1,)


@pytest.mark.written_for(["duckdb"], reason="processes share a MonetDB database")
def test_a_second_process_is_told_why(engine, connection):
    said = child(
        """
        import sys, tique
        try:
            tique.connect(sys.argv[1])
        except tique.DatabaseLocked as error:
            print(error.sqlstate, error)
        """,
        engine.url,
    )
    assert said.startswith("55006")
    assert "one process at a time" in said
    assert str(os.getpid()) in said
    connection.execute("UPDATE t SET v = 12")
    connection.commit()


def _use(connection, results):
    for use in (
        lambda: connection.execute("SELECT 1"),
        connection.commit,
    ):
        try:
            use()
            results.put("worked")
        except tique.InterfaceError as error:
            results.put(str(error))
    connection.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_is_refused(engine, connection):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    connection.execute("UPDATE t SET v = 12")
    process = context.Process(target=_use, args=(connection, results))
    process.start()
    said = [results.get(timeout=20) for _ in range(2)]
    process.join(20)
    assert process.exitcode == 0
    assert all("fork" in text for text in said), said
    connection.commit()
    assert connection.execute("SELECT v FROM t").fetchall() == [(12,)]


# Disks

READ_ONLY = """
    import os, sys, tique
    tique.connect("duckdb:///:memory:").close()  # imports everything
    if os.getuid() == 0:
        # Root is not bound by permissions: become a user that is.
        os.setgid(65534)
        os.setuid(65534)
    try:
        tique.connect(sys.argv[1])
    except tique.OperationalError as error:
        print(error.sqlstate, error)
"""


@pytest.mark.slow
@pytest.mark.written_for(["duckdb"], reason="it is about a file")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_read_only(what, tmp_path, engine, connection):
    engine.close()
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder.name.startswith(
            ("pytest", "popen")
        ):
            folder.chmod(0o755)
    name = "test.duckdb" if what == "file" else "new.duckdb"
    if what == "file":
        (tmp_path / name).chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        said = child(READ_ONLY, f"duckdb:///{tmp_path}/{name}")
    finally:
        tmp_path.chmod(0o755)
        (tmp_path / "test.duckdb").chmod(0o644)
    assert said.startswith("25006"), said
    assert name in said
    assert engine.connect().execute("SELECT * FROM t").fetchall() == [(1, 10)]


FULL = """
    import resource, signal, sys, tique
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    connection = tique.connect(sys.argv[1], checkpoint="manual")
    connection.execute("CREATE TABLE big (id INTEGER PRIMARY KEY, text VARCHAR)")
    connection.commit()
    resource.setrlimit(resource.RLIMIT_FSIZE, (6 << 20, resource.RLIM_INFINITY))
    committed = 0
    try:
        while committed < 100:
            connection.execute(
                "INSERT INTO big SELECT range + %s, md5(range::VARCHAR) FROM range(9000)",
                (committed * 9000,),
            )
            connection.commit()
            committed += 1
    except tique.OperationalError as error:
        print(committed, isinstance(error, tique.OutcomeUnknown), error.sqlstate, error)
    # In any state of the engine, an error is one of tique's own.
    for statement in ("SELECT count(*) FROM big", "INSERT INTO big VALUES (-1, 'x')"):
        try:
            connection.rollback()
            connection.execute(statement).rowcount
        except tique.Error:
            pass
    connection.close()
"""


@pytest.mark.slow
@pytest.mark.written_for(["duckdb"], reason="it is about a file")
def test_a_full_disk(engine, connection):
    """A commit that does not fit is refused; acknowledged commits are there."""
    engine.close()
    said = child(FULL, engine.url)
    committed, unknown, sqlstate, message = said.split(" ", 3)
    assert int(committed) < 100
    again = engine.connect()
    (count,) = again.execute("SELECT count(*) FROM big WHERE id >= 0").fetchone()
    assert count == 9000 * int(committed) or (
        unknown == "True" and count == 9000 * (int(committed) + 1)
    )
    assert sqlstate in ("53100", "08007"), message
    assert again.execute("SELECT * FROM t").fetchall() == [(1, 10)]
    again.execute("INSERT INTO big VALUES (-5, 'fits')")
    again.commit()
