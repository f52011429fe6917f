"""Backends of other packages, found by their entry points."""

from __future__ import annotations

import sys
from contextlib import closing

import pytest

import tique
from tique_backends import registry

MODULE = """
from tique_backends.duckdb import locate, open_engine

has_server = {}
"""
ENTRY = "[tique.backends]\nducks = tique_ducks\n"


@pytest.fixture
def add(tmp_path, monkeypatch):
    """Installs a package with a backend, of that module's text."""

    def add(text):
        (tmp_path / "tique_ducks.py").write_text(text)
        info = tmp_path / "tique_ducks-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Name: tique-ducks\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(ENTRY)
        monkeypatch.syspath_prepend(str(tmp_path))
        registry._others.cache_clear()

    yield add
    registry._others.cache_clear()
    sys.modules.pop("tique_ducks", None)


def test_a_database_is_opened_by_it(add, tmp_path):
    with pytest.raises(tique.InterfaceError, match="unknown backend 'ducks'"):
        tique.connect(f"ducks:///{tmp_path / 'pond.db'}")
    add(MODULE.format(False))
    with closing(tique.connect(f"ducks:///{tmp_path / 'pond.db'}")) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
        assert connection.execute("SELECT id FROM t").fetchall() == [(1,)]
    assert (tmp_path / "pond.db").exists()


def test_it_says_that_its_urls_name_a_server(add):
    add(MODULE.format(True))
    with pytest.raises(tique.InterfaceError, match="a ducks URL names a database"):
        tique.connect("ducks://lake")


def test_what_it_lacks_is_told(add):
    add("import tique_geese\n")
    with pytest.raises(tique.NotSupportedError, match="'tique_geese'"):
        tique.connect("ducks:///pond.db")


def test_tiques_own_come_first(add, monkeypatch):
    """Nothing that is installed beside it takes their place."""
    monkeypatch.setattr(
        sys.modules[__name__], "ENTRY", ENTRY.replace("ducks =", "duckdb =")
    )
    add("raise AssertionError\n")
    with closing(tique.connect("duckdb:///:memory:")) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
