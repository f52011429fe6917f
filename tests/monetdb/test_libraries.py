"""Where MonetDB's libraries come from."""

import subprocess
import sys

import pytest

from tique_backends.monetdb.server import ServerError, process
from tique_backends.monetdb.server.process import monetdb_libraries


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TIQUE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def offline(monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")


def test_they_are_fetched_once(cache, monkeypatch):
    folder = monetdb_libraries()
    assert list(cache.iterdir()) == [folder]
    assert len(list(folder.glob("libmonetdb5-*.so*"))) == 1

    def never(*_, **__):
        raise AssertionError("fetched again")

    monkeypatch.setattr(subprocess, "run", never)
    assert monetdb_libraries() == folder


def test_what_is_not_the_known_file_is_not_used(cache, monkeypatch):
    """P11: another library in a mirror is refused."""
    monkeypatch.setattr(process, "_SHA256", "0" * 64)
    with pytest.raises(ServerError, match="not the file that was expected"):
        monetdb_libraries()
    assert list(cache.iterdir()) == []


@pytest.mark.usefixtures("offline")
def test_without_a_network_pips_words_are_in_the_error(cache):
    with pytest.raises(ServerError, match=r"could not fetch monetdbe==0\.11"):
        monetdb_libraries()
    assert list(cache.iterdir()) == []


def test_without_pip_the_error_says_so(cache, monkeypatch, tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(bare))
    with pytest.raises(ServerError, match="No module named pip"):
        monetdb_libraries()


def test_a_folder_that_others_may_write_to_is_not_used(cache):
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.raises(ServerError, match="other users may write there"):
        monetdb_libraries()


@pytest.mark.parametrize(
    ("name", "value"), [("system", "Darwin"), ("machine", "aarch64")]
)
def test_another_kind_of_machine_is_refused(cache, monkeypatch, name, value):
    monkeypatch.setattr(process.platform, name, lambda: value)
    with pytest.raises(ServerError, match=f"{value}.* a MonetDB server of your own"):
        monetdb_libraries()


def test_a_machine_without_glibc_is_refused(cache, monkeypatch):
    monkeypatch.setattr(process.platform, "libc_ver", lambda: ("", ""))
    with pytest.raises(ServerError, match="glibc"):
        monetdb_libraries()
