"""A DuckDB file with tables of an application's own, and ways to run ``tique``."""

import json
import logging
import os
import subprocess
import sys

import duckdb
import pytest
from click.testing import CliRunner

from tique.cli._program import main

PROGRAM = "from tique.cli import main; main()"

TABLES = """
CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
INSERT INTO account SELECT i, 100 FROM range(1200) AS t(i);
CREATE TABLE log (entry VARCHAR);
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(path) as native:
        native.execute(TABLES)
    return path


@pytest.fixture
def url(path):
    return f"duckdb:///{path}"


@pytest.fixture
def run():
    """Run a command in this process; its standard output, parsed with --json."""

    def run(*arguments, code=0):
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert result.exit_code == code, result.output
        if code:
            assert result.stdout == ""
            return result.stderr
        assert result.stderr == ""
        if "--json" in arguments:
            assert result.stdout.count("\n") == 1
            return json.loads(result.stdout)
        return result.stdout

    yield run
    assert logging.getLogger("tique").handlers == []


@pytest.fixture
def tique_process():
    """Run a command in a process of its own."""

    def start(*arguments, **environment):
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, *map(str, arguments)],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=120,
        )

    return start


@pytest.fixture
def adopted(run, url):
    run("adopt", url)
    return url


@pytest.fixture
def query(path):
    """Ask the file without tique."""

    def query(sql):
        with duckdb.connect(path) as native:
            return native.execute(sql).fetchall()

    return query
