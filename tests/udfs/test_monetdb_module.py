"""The library for MonetDB, opened by servers of several versions."""

import subprocess
from pathlib import Path

import pytest

import tique_udfs.monetdb
from tique_udfs.build import build
from tique_udfs.monetdb import FUNCTIONS

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


@pytest.mark.parametrize("version", ["11.41.14", "11.45.7"])
def test_each_known_version_gets_its_layout(open_library, version):
    assert open_library(version) == (
        [
            f"tique.{function.name} {len(function.parameters) + 1} "
            f"{'lng' if function.result == 'BIGINT' else 'str'}"
            for function in FUNCTIONS
        ],
        "",
    )


@pytest.mark.parametrize("version", ["11.39.1", "11.43.1", "11.410.1", "11.53.3", "12"])
def test_an_unknown_version_gets_nothing(open_library, version):
    registered, message = open_library(version)
    assert registered == []
    assert message.startswith(f"tique: MonetDB {version} is none of those")
