"""Exit codes, error lines, and side effects that must not happen."""

import json
import logging
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import tique
from tique.cli._output import counted, one_line, progress
from tique.cli._program import main
from tique_backends.engine import FORMAT_VERSION

COMMANDS = ["adopt", "detach", "checkpoint", "status", "top", "explain"]


def arguments(command, url):
    return [command, url, *(["SELECT 1"] if command == "explain" else [])]


def test_version(run):
    assert run("--version") == f"tique, version {tique.__version__}\n"


@pytest.mark.parametrize("command", [[], *([c] for c in COMMANDS), ["udf", "build"]])
def test_help(run, command):
    assert run(*command, "--help").startswith("Usage: ")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "url", ["shop.duckdb", "nosql:///x", "duckdb:///", "duckdb://host/x", "duckdb:///%"]
)
def test_a_malformed_url_is_wrong_usage(run, command, url):
    assert "Invalid value for 'URL'" in run(*arguments(command, url), code=2)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_url_or_unknown_option_is_wrong_usage(run, command):
    run(command, code=2)
    run(*arguments(command, "duckdb:///x"), "--nonsense", code=2)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_file_is_not_created(run, tmp_path, command):
    path = tmp_path / "typo.duckdb"
    message = run(*arguments(command, f"duckdb:///{path}"), code=1)
    assert message == f"Error: there is no database {path}\n"
    assert not path.exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_no_database(run, tmp_path, command):
    path = tmp_path / "notes.txt"
    path.write_text("hello " * 1000)
    message = run(*arguments(command, f"duckdb:///{path}"), code=1)
    assert message.startswith("Error: ")
    assert str(path) in message
    assert message.count("\n") == 1
    assert path.read_text() == "hello " * 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "instead"),
    [
        ("adopt", "tique.adopt()"),
        ("detach", "tique.detach()"),
        ("checkpoint", "Connection.checkpoint()"),
        ("status", "Connection.status()"),
        ("explain", "EXPLAIN"),
    ],
)
def test_a_database_in_use_elsewhere(adopted, path, tique_process, command, instead):
    with tique.connect(adopted) as conn:
        conn.execute("SELECT 1")
        done = tique_process(*arguments(command, adopted), "--json")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    assert str(path) in done.stderr
    assert "belongs to one process at a time" in done.stderr
    assert f"In that process, use {instead}" in done.stderr


@pytest.mark.slow
def test_exit_codes_of_a_process(adopted, tique_process):
    assert tique_process("--version").returncode == 0
    good = tique_process("status", adopted, "--json")
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["format_version"] == FORMAT_VERSION
    assert tique_process("status").returncode == 2
    assert tique_process("detach", adopted, "nothing").returncode == 1


@pytest.mark.slow
def test_warnings_are_lines_on_standard_error(adopted, tique_process, tmp_path):
    done = tique_process(
        "status", adopted, "--json", CC="no-such-compiler", TIQUE_CACHE_DIR=tmp_path
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["sequencer"] == "python"
    assert done.stderr.startswith("Warning: using the Python sequencer")
    assert done.stderr.count("\n") == 1


def test_a_logged_exception_has_no_traceback(monkeypatch):
    def fail():
        try:
            raise RuntimeError("inner")
        except RuntimeError:
            logging.getLogger("tique").exception("checkpoint failed")

    monkeypatch.setattr(main.commands["status"], "callback", lambda **_: fail())
    result = CliRunner().invoke(main, ["status", "duckdb:///x"])
    assert result.stderr == "Error: checkpoint failed\n"


def test_a_fault_is_a_line(monkeypatch):
    def fail(**_):
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(main.commands["status"], "callback", fail)
    result = CliRunner().invoke(main, ["status", "duckdb:///x"])
    assert result.exit_code == 1
    assert result.stderr == "Error: ZeroDivisionError: division by zero\n"


@pytest.mark.slow
def test_udf_build(run, tmp_path, monkeypatch):
    monkeypatch.setenv("TIQUE_CACHE_DIR", str(tmp_path))
    library = Path(run("udf", "build").rstrip("\n"))
    assert library.parent == tmp_path
    first = library.stat().st_mtime_ns
    assert run("udf", "build", "duckdb", "--json") == {
        "target": "duckdb",
        "path": str(library),
    }
    assert library.stat().st_mtime_ns == first
    run("udf", "build", "--force")
    assert library.stat().st_mtime_ns > first


def test_udf_build_of_something_unknown(run):
    assert run("udf", "build", "abacus", code=1) == (
        "Error: there is no build for 'abacus'; targets: duckdb, monetdb, postgresql\n"
    )


@pytest.mark.postgresql
def test_udf_build_installs_into_postgresql_only(run, tmp_path, pg_config):
    folder = pg_config(tmp_path)
    path = run("udf", "build", "postgresql", "--json")["path"]
    assert run("udf", "build", "postgresql", "--install", "--json") == {
        "target": "postgresql",
        "path": path,
        "installed": [
            str(folder / "lib" / Path(path).name),
            str(folder / "share" / "extension" / "tique--1.0.sql"),
            str(folder / "share" / "extension" / "tique.control"),
        ],
    }
    assert run("udf", "build", "postgresql").rstrip("\n") == path
    message = run("udf", "build", "duckdb", "--install", code=2)
    assert "--install is for postgresql only" in message


def test_udf_build_without_a_compiler(run, tmp_path, monkeypatch):
    monkeypatch.setenv("TIQUE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    message = run("udf", "build", "--json", code=1)
    assert "no-such-compiler" in message
    assert message.count("\n") == 1


def test_progress_is_for_terminals_only(monkeypatch, capfd):
    with progress("Working"):
        pass
    assert capfd.readouterr().err == ""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress("Working"):
        pass
    output = capfd.readouterr()
    assert "Working" in output.err
    assert output.out == ""


def test_one_line():
    assert one_line(" a\nb\tc \n\nLINE 1: x") == "a b c"
    assert one_line("a\x1b[31m\udc80") == "a\\x1b[31m\\udc80"


def test_counted():
    assert counted(0, "row") == "0 rows"
    assert counted(1, "row") == "1 row"
    assert counted(1200, "row") == "1,200 rows"
