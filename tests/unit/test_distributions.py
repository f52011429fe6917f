"""The distributions: our four packages, whole, the licence, the compiled sequencer.

The wheel is built from the unpacked source distribution, as pip does it.
"""

import email
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.engine_free

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "tique": ROOT,
    "tique_rewriter": ROOT / "rewriter",
    "tique_backends": ROOT / "backends",
    "tique_udfs": ROOT / "udfs",
}
KINDS = {".py", ".c", ".h", ".sql", ".out", ".control", ".typed"}
GENERIC = {"rewriter", "backends", "udfs", "tests", "benchmarks", "jepsen"}
LICENSE = (ROOT / "LICENSE").read_bytes()
NO_COMPILER = "/nonexistent/cc"


def build(kind, source, folder, **environment):
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", folder],
        cwd=source,
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
        text=True,
    )
    (made,) = folder.iterdir()
    return made, done.stderr


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The unpacked source distribution."""
    folder = tmp_path_factory.mktemp("sdist")
    archive, _ = build("sdist", ROOT, folder)
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    archive.unlink()
    (source,) = folder.iterdir()
    return source


@pytest.fixture(scope="module")
def wheel(source, tmp_path_factory):
    made, _ = build("wheel", source, tmp_path_factory.mktemp("wheel"))
    return made


@pytest.fixture(scope="module")
def unpacked(wheel):
    site = wheel.parent / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


def metadata(unpacked):
    (path,) = unpacked.glob("*.dist-info/METADATA")
    return email.message_from_string(path.read_text())


def run(unpacked, program, **environment):
    """Run a program that sees the wheel's packages and the environment's others."""
    return subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            f"import sys\nsys.path.insert(0, {str(unpacked)!r})\n{program}",
        ],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_top_level_names(unpacked):
    names = {entry.name for entry in unpacked.iterdir()}
    assert {name for name in names if not name.endswith(".dist-info")} == set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_is_left_out(unpacked, package):
    source = PACKAGES[package]
    wanted = {
        path.relative_to(source)
        for path in (source / package).rglob("*")
        if path.suffix in KINDS or path.name == "Makefile"
    }
    packed = {path.relative_to(unpacked) for path in (unpacked / package).rglob("*")}
    assert wanted
    assert wanted <= packed


def test_import_brings_in_no_generic_name(unpacked):
    output = run(
        unpacked,
        "import importlib, json\n"
        f"modules = [importlib.import_module(name) for name in {list(PACKAGES)!r}]\n"
        "print(json.dumps([[m.__file__ for m in modules], sorted(sys.modules)]))\n",
    ).stdout
    files, modules = json.loads(output)
    assert all(Path(file).is_relative_to(unpacked) for file in files)
    assert not GENERIC & set(modules)


def test_both_carry_the_licence(source, unpacked):
    assert (source / "LICENSE").read_bytes() == LICENSE
    (licence,) = unpacked.glob("*.dist-info/licenses/LICENSE")
    assert licence.read_bytes() == LICENSE
    assert metadata(unpacked)["License-Expression"] == "Apache-2.0"


def test_the_source_distribution_has_no_tests(source):
    """Tests need the checkout around them; half of it would fail on import."""
    assert not {"tests", "benchmarks", "jepsen"} & {p.name for p in source.iterdir()}


def test_the_wheel_needs_no_compiler(wheel, unpacked, tmp_path):
    assert wheel.name.endswith(".whl")
    assert "py3-none-any" not in wheel.name
    done = run(
        unpacked,
        "import logging\n"
        "logging.basicConfig(level='INFO')\n"
        "from tique_udfs import open_sequencer\n"
        "from tique_udfs.build import build\n"
        "print(open_sequencer('shop').kind, build('duckdb'), build('monetdb'))\n",
        CC=NO_COMPILER,
        TIQUE_CACHE_DIR=str(tmp_path / "cache"),
        TIQUE_SEQUENCER="auto",
    )
    kind, *libraries = done.stdout.split()
    assert kind == "c"
    assert {Path(library).parent for library in libraries} == {
        unpacked / "tique_udfs" / "compiled"
    }
    assert f"the sequencer of 'shop' runs in C: {libraries[0]}" in done.stderr
    assert not (tmp_path / "cache").exists()


def test_a_library_for_other_sources_is_not_used(unpacked, tmp_path):
    """The sequencer that runs is the one whose sources lie beside it."""
    changed = tmp_path / "site"
    subprocess.run(["cp", "-r", unpacked, changed], check=True)
    with (changed / "tique_udfs" / "core" / "sequencer.c").open("a") as file:
        file.write("/* changed */\n")
    done = run(
        changed,
        "from tique_udfs import open_sequencer\nprint(open_sequencer('shop').kind)\n",
        CC=NO_COMPILER,
        TIQUE_CACHE_DIR=str(tmp_path / "cache"),
        TIQUE_SEQUENCER="auto",
    )
    assert done.stdout == "python\n"


def test_without_a_compiler_the_wheel_is_pure_and_the_build_says_so(source, tmp_path):
    made, messages = build("wheel", source, tmp_path, CC=NO_COMPILER)
    assert made.name.endswith("-py3-none-any.whl")
    assert "the wheel carries no compiled sequencer" in messages
    assert NO_COMPILER in messages


@pytest.mark.parametrize("package", ["click", "rich"])
def test_the_command_line_is_an_extra(unpacked, package):
    wanted = metadata(unpacked).get_all("Requires-Dist")
    assert [line for line in wanted if line.startswith(package)] == [
        line for line in wanted if line.startswith(package) and "extra == 'cli'" in line
    ]
    without = f"sys.modules[{package!r}] = None\n"
    assert run(unpacked, f"{without}import tique\n").returncode == 0
    done = run(unpacked, f"{without}from tique.cli import main\nmain()\n")
    assert done.returncode == 1
    assert done.stderr == (
        f"tique: the command line needs {package}, which is not installed; "
        "run: pip install 'tique[cli]'\n"
    )
