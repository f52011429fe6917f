"""Notebooks: ``%sql`` of jupysql in a shell of IPython's."""

from __future__ import annotations

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config


@pytest.fixture
def shell(monkeypatch, tmp_path):
    # It reports its use to its makers, and has files in the user's folder.
    monkeypatch.setenv("PLOOMBER_STATS_ENABLED", "false")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell(config=config)
    with capture_output():
        shell.run_line_magic("load_ext", "sql")
        yield shell


def test_sql_in_cells(shell, url):
    shell.run_line_magic("sql", f"{url} --alias shop")
    for statement in (
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER)",
        "INSERT INTO t VALUES (1, 10), (2, 20)",
        "UPDATE t SET b = b + 1 WHERE a = 2",
    ):
        shell.run_line_magic("sql", statement)
    least = 5
    shell.push({"least": least})
    found = shell.run_cell_magic(
        "sql", "", "SELECT a, b FROM t WHERE b > {{least}} ORDER BY a"
    )
    assert [tuple(row) for row in found] == [(1, 10), (2, 21)]
    assert found.DataFrame()["b"].sum() == 31
    shell.run_line_magic("sql", "--close shop")
