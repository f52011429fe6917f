"""Compiling, caching, and doing without a compiler."""

import ctypes
import logging
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tique_udfs
from tique_udfs import BuildError, _interface, open_sequencer
from tique_udfs._interface import KEY_CAPACITY
from tique_udfs.build import build

pytestmark = pytest.mark.engine_free

CORE = Path(tique_udfs.__file__).parent / "core"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TIQUE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TIQUE_SEQUENCER", raising=False)
    return tmp_path / "cache"


def test_build_compiles_once(cache, monkeypatch):
    first = build()
    assert first.parent == cache
    assert first.suffix == ".duckdb_extension"
    assert list(cache.iterdir()) == [first]
    before = first.stat()
    monkeypatch.setenv("CC", "/nonexistent/cc")
    assert build("duckdb") == first
    assert first.stat() == before


def test_force_compiles_again(cache):
    first = build()
    inode = first.stat().st_ino
    assert build(force=True) == first
    assert first.stat().st_ino != inode
    assert list(cache.iterdir()) == [first]


def test_the_library_is_private_to_the_user(cache):
    build()
    assert cache.stat().st_mode & 0o077 == 0


def test_processes_may_build_at_once(cache):
    program = (
        "from tique_udfs import open_sequencer\n"
        "from tique_udfs.build import build\n"
        "print(build(), open_sequencer('x').begin())"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(_):
        return subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    with ThreadPoolExecutor(3) as pool:
        outputs = set(pool.map(run, range(3)))
    (library,) = cache.iterdir()
    assert outputs == {f"{library} (1, 0)\n"}


def test_an_unknown_target_is_refused(cache):
    with pytest.raises(
        BuildError, match="no build for 'oracle'; targets: duckdb, monetdb, postgresql"
    ):
        build("oracle")


def test_the_compilers_output_is_in_the_error(cache, tmp_path, monkeypatch):
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho sequencer.c:1: it is broken\nexit 3\n")
    compiler.chmod(0o700)
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(BuildError, match=r"status 3:\nsequencer\.c:1: it is broken"):
        build()
    assert list(cache.iterdir()) == []


def test_a_compiler_command_may_have_arguments(cache, monkeypatch):
    monkeypatch.setenv("CC", "env cc")
    assert build().is_file()


def test_a_missing_compiler_is_named(cache, monkeypatch):
    monkeypatch.setenv("CC", "/nonexistent/cc")
    with pytest.raises(BuildError, match=r"'/nonexistent/cc' cannot be run .* set CC"):
        build()


def test_a_folder_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TIQUE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(BuildError, match=r"file/cache \(Not a directory\)"):
        build()


def test_a_folder_that_others_may_write_to_is_refused(cache, monkeypatch):
    library = build()
    cache.chmod(0o777)
    with pytest.raises(BuildError, match="other users may write there"):
        build()
    cache.chmod(0o700)
    assert build() == library


def test_the_temporary_folder_serves_when_home_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("TIQUE_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    library = build()
    assert library.parent == tmp_path / f"tique-{os.geteuid()}"
    assert library.parent.stat().st_mode & 0o777 == 0o700
    assert build() == library


def test_without_a_compiler_python_steps_in_and_says_so(cache, monkeypatch, caplog):
    monkeypatch.setenv("CC", "/nonexistent/cc")
    with caplog.at_level(logging.WARNING, logger="tique"):
        sequencer = open_sequencer("shop")
    assert sequencer.kind == "python"
    assert sequencer.begin() == (1, 0)
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("tique.sequencer", "WARNING")
    message = record.getMessage()
    for part in ("'shop'", "/nonexistent/cc", "tique udf build", "tique_sts()"):
        assert part in message


def test_a_library_that_cannot_be_opened_is_no_better(cache, caplog):
    library = build()
    library.write_bytes(b"not a library")
    assert open_sequencer("shop").kind == "python"
    assert str(library) in caplog.text


def test_the_c_sequencer_can_be_insisted_on(cache, monkeypatch):
    monkeypatch.setenv("CC", "/nonexistent/cc")
    monkeypatch.setenv("TIQUE_SEQUENCER", "c")
    with pytest.raises(BuildError, match="no C compiler"):
        open_sequencer("shop")


def test_the_python_sequencer_can_be_chosen(cache, monkeypatch, caplog):
    monkeypatch.setenv("TIQUE_SEQUENCER", "python")
    assert open_sequencer("shop").kind == "python"
    assert caplog.records == []
    assert not cache.exists()


def test_another_choice_is_refused(monkeypatch):
    monkeypatch.setenv("TIQUE_SEQUENCER", "rust")
    with pytest.raises(ValueError, match="'auto', 'c' or 'python', not 'rust'"):
        open_sequencer("shop")


def test_a_dropped_sequencer_is_closed():
    sequencer = open_sequencer("dropped")
    assert sequencer.kind == "c"
    library, handle = ctypes.CDLL(str(build())), sequencer.handle
    assert library.tique_finish(handle, ctypes.c_int64(1)) == -4
    del sequencer
    assert library.tique_finish(handle, ctypes.c_int64(1)) == -1


def test_both_sequencers_have_room_for_as_much():
    header = (CORE / "sequencer.h").read_text()
    defined = re.findall(r"#define TIQUE_(\w+_(?:CAPACITY|PER_\w+)) (\d+)", header)
    assert len(defined) == 13
    for name, number in defined:
        assert getattr(_interface, name) == int(number)


@pytest.mark.slow
@pytest.mark.parametrize("keys", [KEY_CAPACITY, 16])
def test_the_core_under_threads_that_no_interpreter_lock_tames(tmp_path, keys):
    """P3, P7 and the ring in C alone, with threads that truly run at once."""
    program = tmp_path / "hammer"
    subprocess.run(
        [
            *("cc", "-std=c11", "-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Werror"),
            *(f"-DTIQUE_KEY_CAPACITY={keys}", "-I", str(CORE), "-o", str(program)),
            *map(str, [*sorted(CORE.glob("*.c")), Path(__file__).parent / "hammer.c"]),
        ],
        check=True,
    )
    done = subprocess.run(
        [str(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
