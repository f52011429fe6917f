"""The library for MonetDB, opened by stubs for servers of several releases."""

import subprocess
import time
from pathlib import Path

import pytest

import tique_udfs.monetdb
from tique_udfs.build import build
from tique_udfs.monetdb import FUNCTIONS, TEXTS

pytestmark = pytest.mark.engine_free

HEADERS = Path(tique_udfs.monetdb.__file__).parent


@pytest.fixture(scope="module")
def open_library(tmp_path_factory):
    """Open the library in a program that says it is MonetDB of some version."""
    program = tmp_path_factory.mktemp("stub") / "server"
    source = Path(__file__).parent / "server_stub.c"
    subprocess.run(
        [
            *("cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-rdynamic"),
            *("-I", str(HEADERS), "-o", str(program), str(source), "-ldl"),
        ],
        check=True,
    )
    library = build("monetdb")

    def open_library(version):
        done = subprocess.run(
            [str(program), version, str(library)],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout.splitlines(), done.stderr

    return open_library


@pytest.mark.parametrize(
    "version",
    ["11.41.14", "11.43.9", "11.45.7", "11.47.1", "11.49.1", "11.51.3", "11.53.3"],
)
def test_each_known_release_gets_every_function(open_library, version):
    before = time.time_ns()
    (*registered, incarnation), message = open_library(version)
    assert message == ""
    assert registered == [
        " ".join(
            [
                f"unsafe command tique.{function.name} {function.name} 1",
                "lng" if function.result == "BIGINT" else "str",
                *("str" if name in TEXTS else "lng" for name in function.parameters),
            ]
        )
        for function in FUNCTIONS
    ]
    # Called as those releases do: with a place for the result and nothing else.
    assert before < int(incarnation) < time.time_ns()


@pytest.mark.parametrize(
    "version", ["11.39.1", "11.42.1", "11.410.1", "11.54.0", "11.55.1", "12"]
)
def test_an_unknown_version_gets_nothing(open_library, version):
    registered, message = open_library(version)
    assert registered == []
    assert message.startswith(f"tique: MonetDB {version} is none of those")
    assert message.endswith("11.51, 11.53); it was not loaded\n")
